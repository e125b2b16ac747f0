"""The share of a budget that is planned with; the reserve is for confirmation, isolation and shrinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from conformance.model.budget import PROFILES, Budget

RESERVE: Final[Mapping[str, float]] = {"gate": 0.06, "full": 0.03}
"""The share by profile: a small run needs a larger share for confirmation; a large one repeats many requests anyway."""


def plannable(budget: Budget, profile: str) -> Budget:
    """The budget less the share that is set aside."""
    return share(budget, 1 - RESERVE[profile])


def share(budget: Budget, part: float) -> Budget:
    """A part of a budget."""

    def kept(amount: int | None) -> int | None:
        return None if amount is None else int(amount * part)

    return Budget(kept(budget.requests), kept(budget.completion_tokens), kept(budget.prompt_tokens), budget.seconds)


def smaller(first: Budget, second: Budget) -> Budget:
    """The lower ceiling of each kind."""

    def least(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else min(a, b)

    return Budget(*(least(getattr(first, name), getattr(second, name)) for name in _CEILINGS))  # type: ignore[arg-type]


_CEILINGS: Final = ("requests", "completion_tokens", "prompt_tokens", "seconds")

__all__ = ["PROFILES", "RESERVE", "plannable", "share", "smaller"]
