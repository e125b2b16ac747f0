"""Time-outs, retry delays and rate limits. Pure: the caller passes the clock and the random generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

RETRIED: Final = frozenset({429, 502, 503, 504})
SEVERAL: Final = 2
"""Exchanges without a response, all attempts included, from which on others are tried once. A choice."""


@dataclass(frozen=True, slots=True)
class TimeoutPolicy:
    """Time-outs in seconds, the size limit, and the number and delays of retries."""

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 30.0
    total: float = 180.0
    most_bytes: int = 16 * 1024 * 1024
    retries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 60.0


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The maximum number of requests in flight, and of requests and tokens per minute."""

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


def in_outage(unanswered: int) -> bool:
    """Whether several exchanges in a row got no response, so that retries would only use up the budget."""
    return unanswered >= SEVERAL


class Bucket:
    """A token bucket whose level may become negative, so that an amount larger than its capacity only waits longer."""

    def __init__(self, per_minute: float | None, clock: Callable[[], float]) -> None:
        self._rate = None if per_minute is None else per_minute / 60.0
        self._most = max(1.0, self._rate or 0.0)
        self._level = self._most
        self._clock = clock
        self._seen = clock()

    def take(self, amount: float) -> float:
        """Take an amount, and return the seconds to wait before using it."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._seen) * self._rate) - amount
        self._seen = now
        return max(0.0, -self._level / self._rate)

    def give_back(self, amount: float) -> None:
        """Return an amount that was taken but not used."""
        self._level += amount


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The delay in seconds from Retry-After (seconds or date, RFC 9110); None if it is absent or malformed."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    until = _http_date(value)
    if until is None:
        return None
    # both dates come from the target's clock, which may differ from ours
    return max(0.0, until - (_http_date(headers.get("date", "")) or now))


def _http_date(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def back_off(timeouts: TimeoutPolicy, attempt: int, generator: random.Random) -> float:
    """The delay in seconds before a retry without Retry-After: doubled each time, then reduced by up to half."""
    longest = min(timeouts.longest_wait, timeouts.first_wait * 2 ** (attempt - 1))
    return float(longest * (0.5 + generator.random() / 2))
