"""A fault: one departure from the contract, the check that must notice it, and those that may notice it too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.model import Contract
from conformance.reference.alter import Alteration, Call, Change, Stage

Condition = Callable[[Call], bool]
Applies = Callable[[Contract], bool]


@dataclass(frozen=True)
class Fault:
    """A planted defect.

    `check` must fail or warn because of it; `also` are checks that may. `needs` are parameters that the contract must
    document for it to have an occasion. `imitates` tells of a public defect of the kind, in words.
    """

    name: str
    says: str
    check: str
    alteration: Alteration
    also: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    imitates: str = ""
    fits: Applies | None = None

    def applies(self, contract: Contract) -> bool:
        """Whether this contract gives the fault an occasion and has a requirement that it breaks."""
        bound = contract.binding(self.check) is not None
        documented = all(name in contract.parameters for name in self.needs)
        return bound and documented and (self.fits is None or self.fits(contract))


FAULTS: dict[str, Fault] = {}

_VARIANTS: dict[str, Condition] = {
    "plain": lambda call: not call.streamed,
    "streamed": lambda call: call.streamed,
    "intermittent": lambda call: call.number % 3 == 0,
    "crowded": lambda call: len(call.reference.memory.in_flight) > 1,
}
# What differs between a plain reply and a streamed one shows in every comparison of the two as well.
TWINS = ("twin_text_agrees", "twin_finish_agrees", "twin_usage_agrees", "twin_logprobs_agree", "twin_choices_agree")


def fault(
    stage: Stage,
    check: str,
    *,
    also: Sequence[str] = (),
    needs: Sequence[str] = (),
    only: Condition | None = None,
    variants: Sequence[str] = (),
    imitates: str = "",
    fits: Applies | None = None,
) -> Callable[[Change], Change]:
    """Enter a fault under its function's name, its docstring saying what goes wrong.

    `only`: the fault shows on such calls alone. `variants` enters it once more for each of plain, streamed,
    intermittent and crowded (more than one request under way), instead of as it is.
    """

    def enter(change: Change) -> Change:
        says = " ".join((change.__doc__ or "").split())
        for variant in variants or ("",):
            name = change.__name__ + (f"_when_{variant}" if variant else "")
            if name in FAULTS:
                raise ValueError(f"two faults are called {name}")
            conditions = [one for one in (only, _VARIANTS.get(variant)) if one is not None]
            alteration = Alteration(name, stage, _conditional(change, conditions))
            twins = TWINS if variant in {"plain", "streamed"} else ()
            FAULTS[name] = Fault(
                name,
                says,
                check,
                alteration,
                (*also, *(one for one in twins if one != check)),
                tuple(needs),
                imitates,
                fits,
            )
        return change

    return enter


def _conditional(change: Change, conditions: Sequence[Condition]) -> Change:
    if not conditions:
        return change
    return lambda value, call: change(value, call) if all(condition(call) for condition in conditions) else value
