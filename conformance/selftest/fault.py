"""A fault: one departure from the contract, the check that must notice it, and those that may notice it too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.judge.catalogue import load
from conformance.model import Contract, Level
from conformance.reference.alterations import Alteration, Call, Change, Stage

Condition = Callable[[Call], bool]
Faulty = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """A planted defect.

    `check` must fail or warn because of it; `besides` names checks, or whole areas of them, that may. `needs` are
    parameters that the contract must document for it to have an occasion. `imitates` tells of a public defect of the
    kind, in words.
    """

    name: str
    says: str
    check: str
    alteration: Alteration
    besides: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    imitates: str = ""
    fits: Callable[[Contract], bool] | None = None

    @property
    def also(self) -> frozenset[str]:
        """The names of all checks that may fail besides the one that must."""
        return frozenset(name for name, one in load().items() if {name, one.area} & {*self.besides}) - {self.check}

    def applies(self, contract: Contract) -> bool:
        """Whether this contract gives the fault an occasion and has a requirement that it breaks."""
        bound = any(row.check == self.check and row.level is not Level.MAY for row in contract.requirements)
        documented = all(name in contract.parameters for name in self.needs)
        return bound and documented and (self.fits is None or self.fits(contract))


FAULTS: dict[str, Fault] = {}

VARIANTS: dict[str, Condition] = {
    "plain": lambda call: not call.streamed,
    "streamed": lambda call: call.streamed,
    "sometimes": lambda call: call.number % 3 == 0,
    "crowded": lambda call: len(call.reference.memory.in_flight) > 1,
}
# What shows on one channel, or now and then, shows in every comparison of replies as well.
TWINS = ("relations",)


def fault(
    stage: Stage,
    check: str,
    *,
    also: Sequence[str] = (),
    needs: Sequence[str] = (),
    only: Condition | None = None,
    variants: Sequence[str] = (),
    each: Sequence[str] = (),
    imitates: str = "",
    fits: Callable[..., bool] | None = None,
) -> Callable[[Faulty], Faulty]:
    """Enter a fault under its function's name, its docstring saying what goes wrong.

    `only`: it shows on such calls alone. `variants`: it is entered once for each of plain, streamed, sometimes (every
    third call) and crowded (more than one request under way). `each`: once for each of these parameters, whose name is
    the function's third argument (and the second of `fits`), and which the contract must document.
    """

    def enter(function: Faulty) -> Faulty:
        for parameter in each or ("",):
            for variant in variants or ("",):
                name = (
                    function.__name__ + (f"_{parameter}" if parameter else "") + (f"_when_{variant}" if variant else "")
                )
                if name in FAULTS:
                    raise ValueError(f"two faults are called {name}")
                conditions = [one for one in (only, VARIANTS.get(variant)) if one is not None]
                change = _conditional(_bound(function, parameter), conditions)
                twins = TWINS if variant in {"plain", "streamed", "sometimes"} else ()
                FAULTS[name] = Fault(
                    name=name,
                    says=" ".join((function.__doc__ or "").split()).replace("{name}", parameter),
                    check=check,
                    alteration=Alteration(name, stage, change),
                    besides=(*also, *twins),
                    needs=(*needs, *((parameter,) if parameter else ())),
                    imitates=imitates,
                    fits=_fitting(fits, parameter),
                )
        return function

    return enter


def _bound(function: Faulty, parameter: str) -> Change:
    return (lambda value, call: function(value, call, parameter)) if parameter else function


def _fitting(fits: Callable[..., bool] | None, parameter: str) -> Callable[[Contract], bool] | None:
    if fits is None or not parameter:
        return fits
    return lambda contract: fits(contract, parameter)


def _conditional(change: Change, conditions: Sequence[Condition]) -> Change:
    if not conditions:
        return change
    return lambda value, call: change(value, call) if all(condition(call) for condition in conditions) else value
