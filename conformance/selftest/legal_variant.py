"""An oddity: a legal departure from what most providers do, which no check may hold against anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.model import Contract
from conformance.reference.alterations import Alteration, Change, Stage


@dataclass(frozen=True)
class Oddity:
    """Changed settings, a changed model, alterations of a reply, or all three. `says`: what is odd, in one sentence."""

    name: str
    says: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    alterations: tuple[Alteration, ...] = ()
    fits: Callable[[Contract], bool] | None = None

    def applies(self, contract: Contract) -> bool:
        """Whether this contract allows it."""
        return self.fits is None or self.fits(contract)


ODDITIES: dict[str, Oddity] = {}


def oddity(stage: Stage, fits: Callable[[Contract], bool] | None = None) -> Callable[[Change], Change]:
    """Enter a legal alteration of a reply under its function's name, its docstring saying what is odd."""

    def entered(change: Change) -> Change:
        says = " ".join((change.__doc__ or "").split())
        enter(Oddity(change.__name__, says, alterations=(Alteration(change.__name__, stage, change),), fits=fits))
        return change

    return entered


def habit(name: str, says: str, *, model: Mapping[str, Any] | None = None, **settings: Any) -> None:
    """Enter a legal habit: other settings, or another model."""
    enter(Oddity(name, says, settings, model or {}))


def enter(found: Oddity) -> None:
    """Enter an oddity under its name."""
    if found.name in ODDITIES:
        raise ValueError(f"two oddities are called {found.name}")
    ODDITIES[found.name] = found
