"""How long to wait for a target, how often to try again, and how fast to go. Pure: clocks and dice are handed in."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

RETRIED: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class TimeoutPolicy:
    """Time-outs in seconds, the size cap, and what retries may take."""

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 30.0
    whole: float = 180.0
    most_bytes: int = 16 * 1024 * 1024
    retries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 60.0


@dataclass(frozen=True, slots=True)
class RateLimits:
    """How many requests are in flight at once, and how many requests and tokens go out in a minute at most."""

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Bucket:
    """A token bucket that lends: what is taken beyond its content must be waited for, so large amounts pass too."""

    def __init__(self, per_minute: float | None, clock: Callable[[], float]) -> None:
        self._rate = None if per_minute is None else per_minute / 60.0
        self._most = max(1.0, self._rate or 0.0)
        self._level = self._most
        self._clock = clock
        self._seen = clock()

    def take(self, amount: float) -> float:
        """Take an amount, and say for how many seconds it must be waited."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._seen) * self._rate) - amount
        self._seen = now
        return max(0.0, -self._level / self._rate)

    def give_back(self, amount: float) -> None:
        """Return what was taken and not used."""
        self._level += amount


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a Retry-After asks to wait, in either form; None where it is absent or makes no sense."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    until = _http_date(value)
    if until is None:
        return None
    # the target's own clock is the one its date was written by
    return max(0.0, until - (_http_date(headers.get("date", "")) or now))


def _http_date(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def back_off(patience: TimeoutPolicy, attempt: int, dice: random.Random) -> float:
    """Seconds before the next attempt where the target names none: doubled each time, at least half of it certain."""
    most = min(patience.longest_wait, patience.first_wait * 2 ** (attempt - 1))
    return float(most * (0.5 + dice.random() / 2))
