"""The date in UTC, the same everywhere at once."""

from datetime import UTC, date, datetime


def today() -> date:
    """Today's date in UTC, so that waivers and certificates expire everywhere at the same moment."""
    return datetime.now(UTC).date()
