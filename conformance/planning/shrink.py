"""A failing request made smaller: members dropped, values simplified, as long as the failure still shows.

Only failures that one reply shows by itself are shrunk. An invalid request is minimal by construction, and a relation
between replies is told by the requests that stand in it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.catalogue import Scope, load
from conformance.exchange import Exchange
from conformance.judge import Traffic, judge
from conformance.model import BROKEN, Contract, RequestCase, Requirement, Validity, Verdict, Wave
from conformance.planning.scene import Scene, rename

PER_FAILURE: Final = 12
PER_RUN: Final = 60
Body = dict[str, Any]


def shrinking(
    contract: Contract, verdicts: Iterable[Verdict], exchanges: Sequence[Exchange]
) -> Generator[Wave, tuple[Exchange, ...], dict[str, RequestCase]]:
    """Waves of smaller requests; returned are the smallest that still fail, by the requirement that they break."""
    by_id = {x.case.id: x for x in exchanges}
    open_ends: dict[str, tuple[Requirement, Generator[RequestCase, bool, RequestCase]]] = {}
    for requirement, case in _failures(verdicts, by_id):
        if len(open_ends) < PER_RUN // PER_FAILURE:
            open_ends[requirement.id] = requirement, shrink(contract, case)
    found: dict[str, RequestCase] = {}
    answers: dict[str, bool | None] = dict.fromkeys(open_ends)
    taken = {x.case.id for x in exchanges}
    while open_ends:
        asked: dict[str, RequestCase] = {}
        for name, (_, search) in list(open_ends.items()):
            try:
                answer = answers[name]
                asked[name] = next(search) if answer is None else search.send(answer)
            except StopIteration as end:
                found[name] = end.value
                del open_ends[name]
        if not asked:
            break
        cases = {name: _fresh(case, taken) for name, case in asked.items()}
        back = {x.case.id: x for x in (yield Wave("shrink", tuple(cases.values())))}
        for name, case in cases.items():
            x = back.get(case.id)
            answers[name] = x is not None and _shows(open_ends[name][0], x, contract)
    return found


def _failures(
    verdicts: Iterable[Verdict], exchanges: Mapping[str, Exchange]
) -> Iterator[tuple[Requirement, RequestCase]]:
    """Distinct failures, each with the smallest request that shows it."""
    for verdict in verdicts:
        if verdict.outcome in BROKEN and load()[verdict.requirement.check].scope is not Scope.GROUP:
            blamed = [exchanges[one.case].case for one in verdict.evidence if one.case in exchanges]
            fit = [case for case in blamed if isinstance(case.body, Mapping) and case.hang_up_after is None]
            if fit:
                yield verdict.requirement, min(fit, key=lambda case: len(case.content))


def _fresh(case: RequestCase, taken: set[str]) -> RequestCase:
    """The case under an id that no other has: two failures may shrink to one request."""
    name, number = case.id, 1
    while name in taken:
        number += 1
        name = f"{case.id}-{number}"
    taken.add(name)
    return rename(case, name)


def _shows(requirement: Requirement, x: Exchange, contract: Contract) -> bool:
    return judge(requirement, Traffic([x]), contract).outcome in BROKEN


def shrink(contract: Contract, case: RequestCase) -> Generator[RequestCase, bool, RequestCase]:
    """Smaller and smaller requests; sent back is whether the failure shows in the last one. At most `PER_FAILURE`."""
    smallest, tries, tried = case, 0, {case.content}
    progress = True
    while progress:
        progress = False
        for body in _smaller(dict(smallest.body), contract):
            candidate = _case(contract, smallest, body)
            if candidate.content in tried or candidate.validity is not case.validity:
                continue
            if tries == PER_FAILURE:
                return smallest
            tries += 1
            tried.add(candidate.content)
            if (yield candidate):
                smallest, progress = candidate, True
                break
    return smallest


def _case(contract: Contract, case: RequestCase, body: Body) -> RequestCase:
    # what was called unspecified for its text stays so
    kept: dict[str, Any] = {"validity": case.validity} if case.validity is Validity.UNSPECIFIED else {}
    wire = {"method": case.method, "path": case.path, "headers": case.headers, "credential": case.credential}
    return Scene(contract, str(body.get("model", ""))).case("shrink", body, **wire, **kept)


def _smaller(body: Body, contract: Contract) -> Iterator[Body]:
    """Bodies one step smaller, the boldest steps first."""
    optional = [name for name in body if name not in contract.parameters or not contract.parameters[name].required]
    size = len(optional)
    while size > 0:
        for start in range(0, len(optional), size):
            gone = optional[start : start + size]
            yield {name: value for name, value in body.items() if name not in gone}
        size //= 2
    for name, value in body.items():
        if name != "model":
            yield from ({**body, name: simple} for simple in _simpler(value))


def _simpler(value: Any) -> Iterator[Any]:
    """Simpler values of the same shape."""
    if isinstance(value, str) and len(value) > 1:
        yield from dict.fromkeys(("a", value[: len(value) // 2], value[len(value) // 2 :]))
    elif isinstance(value, list) and len(value) > 1:
        yield from (value[:1], value[: len(value) // 2])
    elif isinstance(value, list) and value and isinstance(value[0], (str, list)):
        yield from ([simple] for simple in _simpler(value[0]))
    elif isinstance(value, dict) and value:
        yield from ({name: one for name, one in value.items() if name != gone} for gone in value)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 2:
        yield from dict.fromkeys((1, 2, value // 2))


__all__ = ["PER_FAILURE", "PER_RUN", "shrink", "shrinking"]
