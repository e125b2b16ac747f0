"""An oddity: a legal departure from what most providers do, which no check may hold against anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.model import Contract
from conformance.reference.alterations import Alteration, Change, Stage


@dataclass(frozen=True)
class LegalVariant:
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


LEGAL_VARIANTS: dict[str, LegalVariant] = {}


def legal_variant(stage: Stage, fits: Callable[[Contract], bool] | None = None) -> Callable[[Change], Change]:
    """Enter a legal alteration of a reply under its function's name, its docstring saying what is odd."""

    def entered(change: Change) -> Change:
        says = " ".join((change.__doc__ or "").split())
        enter(LegalVariant(change.__name__, says, alterations=(Alteration(change.__name__, stage, change),), fits=fits))
        return change

    return entered


def option_variant(name: str, says: str, *, model: Mapping[str, Any] | None = None, **settings: Any) -> None:
    """Enter a legal habit: other settings, or another model."""
    enter(LegalVariant(name, says, settings, model or {}))


def enter(found: LegalVariant) -> None:
    """Enter an oddity under its name."""
    if found.name in LEGAL_VARIANTS:
        raise ValueError(f"two oddities are called {found.name}")
    LEGAL_VARIANTS[found.name] = found
