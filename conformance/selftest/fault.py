"""A fault: one departure from the contract, the check that must detect it, and the checks that may detect it too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from conformance.judge.catalogue import load
from conformance.model import Contract, Level
from conformance.reference.alterations import Alteration, Call, Change, Stage

Condition: TypeAlias = Callable[[Call], bool]
ParameterChange: TypeAlias = Callable[..., Any]  # a Change, or one whose third argument names a parameter


@dataclass(frozen=True)
class Fault:
    """A defect built into the reference.

    `says`: what goes wrong, in one sentence. `check`, or one of `others`, which judge the same promise by other means,
    must fail or warn because of it; `besides` names further checks, or areas of checks, that may. `needs`: the
    parameters that the contract must document for the fault to show.
    `imitates`: a defect of this kind that was seen in public. `fits`: whether a contract lets the fault show. `module`:
    the module of `selftest.faults` that has it.
    """

    name: str
    says: str
    check: str
    alteration: Alteration
    others: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    imitates: str = ""
    fits: Callable[[Contract], bool] | None = None
    module: str = ""

    @property
    def input_class(self) -> str:
        """What of a request decides whether the fault shows."""
        return INPUT_CLASSES.get(self.module, "any request with the parameter")

    @property
    def also(self) -> frozenset[str]:
        """The names of all checks that may fail besides the primary one."""
        expected = {*self.besides, *self.others}
        if self.alteration.stage in DECIDES or ACCEPTANCE & {self.check, *expected}:
            expected |= DRAWN
        return frozenset(name for name, check in load().items() if {name, check.area} & expected) - {self.check}

    def applies(self, contract: Contract) -> bool:
        """Whether this contract lets the fault show, and has a requirement that it breaks."""
        checks = {self.check, *self.others}
        bound = any(row.check in checks and row.level is not Level.MAY for row in contract.requirements)
        documented = all(name in contract.parameters for name in self.needs)
        return bound and documented and (self.fits is None or self.fits(contract))


DECIDES: Final = frozenset({Stage.BODY, Stage.REFUSAL})
"""The stages at which it is decided whether a request is accepted, whatever body it has."""
ACCEPTANCE: Final = frozenset({"invalid_is_refused", "valid_is_accepted", "combination_is_accepted"})
DRAWN: Final = frozenset({"drawn_is_accepted", "drawn_is_refused"})
"""What judges the same of drawn bodies, any of which may show a fault in what is accepted."""
INPUT_CLASSES: Final = {
    "coercion": "a look-alike of another type",
    "containers": "one item of a list or map",
    "contexts": "a setting of several parameters",
    "drawn": "a drawn body",
    "protocol": "HTTP and the credential",
    "sizes": "a size or a single value",
    "state": "the requests before it",
    "text_classes": "a kind of text",
}
"""By the module of `selftest.faults`; scores are printed by these."""
REGISTERED: Final[dict[str, Fault]] = {}

CONDITIONS: Final[dict[str, Condition]] = {
    "plain": lambda call: not call.streamed,
    "streamed": lambda call: call.streamed,
    "sometimes": lambda call: call.number % 3 == 0,
    "crowded": lambda call: len(call.reference.memory.in_flight) > 1,
}
# A fault that shows in part of the replies also makes replies differ that are compared with each other.
PARTIAL: Final = frozenset({"plain", "streamed", "sometimes"})


def fault(
    stage: Stage,
    check: str,
    *,
    also: Sequence[str] = (),
    needs: Sequence[str] = (),
    only: Condition | None = None,
    when: Sequence[str] = (),
    parameters: Sequence[str] = (),
    imitates: str = "",
    fits: Callable[..., bool] | None = None,
) -> Callable[[ParameterChange], ParameterChange]:
    """Register the decorated function as a fault under its name; its docstring says what goes wrong.

    `only`: the fault shows on these calls alone. `when`: register it once for each of plain, streamed, sometimes
    (every third call) and `crowded` (several requests in progress). `parameters`: register it once for each of these
    parameters; the function gets the parameter's name as its third argument (`fits` as its second), and the contract
    must document the parameter.
    """

    def register(change: ParameterChange) -> ParameterChange:
        plant(
            change.__name__,
            " ".join((change.__doc__ or "").split()),
            stage,
            check,
            change,
            also=also,
            needs=needs,
            only=only,
            when=when,
            parameters=parameters,
            imitates=imitates,
            fits=fits,
        )
        return change

    return register


def plant(
    name: str,
    says: str,
    stage: Stage,
    check: str,
    change: ParameterChange,
    *,
    others: Sequence[str] = (),
    also: Sequence[str] = (),
    needs: Sequence[str] = (),
    only: Condition | None = None,
    when: Sequence[str] = (),
    parameters: Sequence[str] = (),
    imitates: str = "",
    fits: Callable[..., bool] | None = None,
) -> None:
    """Register a fault without a function of its own; the arguments are those of `fault`."""
    for parameter in parameters or ("",):
        for condition in when or ("",):
            full_name = name + (f"_{parameter}" if parameter else "") + (f"_when_{condition}" if condition else "")
            if full_name in REGISTERED:
                raise ValueError(f"two faults are called {full_name}")
            conditions = [test for test in (only, CONDITIONS.get(condition)) if test is not None]
            altered = conditional(_bound(change, parameter), conditions)
            REGISTERED[full_name] = Fault(
                name=full_name,
                says=says.replace("{name}", parameter),
                check=check,
                alteration=Alteration(full_name, stage, altered),
                others=tuple(others),
                besides=(*also, *(("relations",) if condition in PARTIAL else ())),
                needs=(*needs, *((parameter,) if parameter else ())),
                imitates=imitates,
                fits=_fitting(fits, parameter),
                module=change.__module__.rpartition(".")[2],
            )


def _bound(change: ParameterChange, parameter: str) -> Change:
    return (lambda value, call: change(value, call, parameter)) if parameter else change


def _fitting(fits: Callable[..., bool] | None, parameter: str) -> Callable[[Contract], bool] | None:
    if fits is None or not parameter:
        return fits
    return lambda contract: fits(contract, parameter)


def conditional(change: Change, conditions: Sequence[Condition]) -> Change:
    """The change on the calls that meet all conditions."""
    if not conditions:
        return change
    return lambda value, call: change(value, call) if all(condition(call) for condition in conditions) else value
