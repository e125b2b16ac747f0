"""What changes every week, so that samples cover everything in time."""

import os
from datetime import UTC, datetime


def rotation() -> str:
    """The week, or CONFORMANCE_ROTATION."""
    year, week, _ = datetime.now(UTC).isocalendar()
    return os.environ.get("CONFORMANCE_ROTATION") or f"{year}-{week}"
