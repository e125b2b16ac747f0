"""A legal variant: unusual behaviour that the contract allows; no check may fail because of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.model import Contract
from conformance.reference.alterations import Alteration, Change, Stage


@dataclass(frozen=True)
class LegalVariant:
    """Other options of the reference, another model, alterations of a reply, or all three.

    `says`: what is unusual, in one sentence. `fits`: whether a contract allows it; None where every contract does.
    """

    name: str
    says: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    alterations: tuple[Alteration, ...] = ()
    fits: Callable[[Contract], bool] | None = None

    def applies(self, contract: Contract) -> bool:
        """Whether this contract allows it."""
        return self.fits is None or self.fits(contract)


REGISTERED: Final[dict[str, LegalVariant]] = {}


def legal_variant(stage: Stage, fits: Callable[[Contract], bool] | None = None) -> Callable[[Change], Change]:
    """Register the decorated alteration under its function's name; its docstring says what is unusual."""

    def decorate(change: Change) -> Change:
        name, says = change.__name__, " ".join((change.__doc__ or "").split())
        register(LegalVariant(name, says, alterations=(Alteration(name, stage, change),), fits=fits))
        return change

    return decorate


def option_variant(name: str, says: str, *, model: Mapping[str, Any] | None = None, **settings: Any) -> None:
    """Register a legal variant that is a choice of options, or of the model's properties."""
    register(LegalVariant(name, says, settings, model or {}))


def register(variant: LegalVariant) -> None:
    """Register a legal variant under its name."""
    if variant.name in REGISTERED:
        raise ValueError(f"two legal variants are called {variant.name}")
    REGISTERED[variant.name] = variant
