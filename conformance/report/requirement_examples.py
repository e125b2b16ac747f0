"""A good and a bad exchange for one requirement: its own request where it has one, else the example of its check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from conformance.judge.catalogue import CheckContext, load
from conformance.judge.fixtures import plain, stream
from conformance.model import Contract, Credential, Level, RequestCase, Requirement, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING

Subject: TypeAlias = Exchange | Group
Cases: TypeAlias = dict[tuple[str, str, str], RequestCase]
MODEL: Final = "MODEL"
KEY: Final = "sk-example"
_KEPT: Final[dict[str, Cases]] = {}
OTHERS: Final[tuple[Any, ...]] = (7, "seven", True, None, [], {})


@dataclass(frozen=True, slots=True)
class Exhibit:
    """`own`: the check judges it so under this very requirement; otherwise under a like one, or not at all."""

    subject: Subject
    own: bool


def exhibits(contract: Contract, row: Requirement) -> tuple[Exhibit, Exhibit | None]:
    """One that keeps the promise and one that breaks it; no bad one where the requirement only observes."""
    check = load()[row.check]
    good = _first(contract, row, _good(contract, row), breaks=False)
    if good is None:  # what is only observed holds nothing, but it has a request of its own
        tried = next(_tried(contract, row, as_promised=True), None) if row.level is Level.MAY else None
        good = Exhibit(tried or check.good()[0].subject, own=tried is not None)
    bad = _first(contract, row, _bad(contract, row), breaks=True)
    if bad is None and row.level is not Level.MAY:
        bad = Exhibit(check.bad()[0].subject, own=False)
    return good, bad


def _first(contract: Contract, row: Requirement, found: Iterable[Subject], *, breaks: bool) -> Exhibit | None:
    """The first that the check judges so."""
    terms, function = CheckContext(contract, row.params), load()[row.check].function
    for one in found:
        kinds = {type(finding) for finding in function(one, terms)}
        if (Violation in kinds) if breaks else (Satisfied in kinds and Violation not in kinds):
            return Exhibit(one, own=True)
    return None


def _good(contract: Contract, row: Requirement) -> Iterator[Subject]:
    yield from _tried(contract, row, as_promised=True)
    if "keyword" in row.params and "path" in row.params:
        yield from (_reply(row, asked, document) for asked, document in _documents(contract, row))
    yield from (one.subject for one in load()[row.check].good())


def _bad(contract: Contract, row: Requirement) -> Iterator[Subject]:
    yield from _tried(contract, row, as_promised=False)
    if "keyword" in row.params and "path" in row.params:
        for asked, document in _documents(contract, row):
            yield from (_reply(row, asked, spoilt) for spoilt in _spoilt(document, row))
    yield from (one.subject for one in load()[row.check].bad())


# Requests that are tried for this very row


def _cases(contract: Contract) -> Cases:
    """What a plan sends for each requirement, by kind of group, id and role."""
    from conformance import plan as planning
    from conformance.plan.planner import bundles

    if contract.sha256 not in _KEPT:
        found = _KEPT[contract.sha256] = {}
        options = planning.PlanOptions(model=MODEL, profile="full", has_key=True)
        for bundle in bundles(planning.plan_context(contract, load(), options)):
            for case in bundle.cases:
                for part in case.groups:
                    found.setdefault((part.kind, part.key.partition(" ")[0], part.role), case)
    return _KEPT[contract.sha256]


def _tried(contract: Contract, row: Requirement, *, as_promised: bool) -> Iterator[Group]:
    """The request of this row beside its control: answered as the contract has it, or the other way round."""
    check = load()[row.check]
    if not check.keyed:
        return
    cases = _cases(contract)
    probe, control = (cases.get((check.group, row.id, role)) for role in ("probe", "control"))
    if probe is None:
        return
    accepted = control or replace(probe, credential=Credential.KEY)
    right = _answered(contract, probe)
    wrong = _refusal(contract, right) if right.successful else _like(_answered(contract, accepted), probe)
    members = {} if control is None else {"control": (_answered(contract, control),)}
    yield Group(check.group, f"{row.id} example", {**members, "probe": (right if as_promised else wrong,)})


def _answered(contract: Contract, case: RequestCase) -> Exchange:
    from conformance.reference import Reference
    from conformance.selftest.in_process import exchange

    return exchange(Reference(contract, key=KEY, models=(MODEL,), now=lambda: 1_700_000_000.0), case)


def _like(x: Exchange, case: RequestCase) -> Exchange:
    return replace(x, case=case)


def _refusal(contract: Contract, right: Exchange) -> Exchange:
    """The same request, refused in the documented shape."""
    return _like(plain(_complaint(contract, 400, "this is not supported"), status=400), right.case)


def _complaint(contract: Contract, status: int, words: str) -> Any:
    from conformance.contract.validity import error_entry
    from conformance.reference.messages import Problem, Refusal
    from conformance.reference.schema_instance import ENVELOPE, complaint

    schema = contract.errors.get(error_entry(contract, status), ENVELOPE)
    return complaint(schema, Refusal(status, (Problem(words, "prompt"),)))


# Documents of which one field is spoilt


def _documents(contract: Contract, row: Requirement) -> Iterator[tuple[dict[str, Any], Any]]:
    """A request and a document of its reply: as it comes, and with the field filled in."""
    if row.params.get("channel") == "error":
        yield {"prompt": None}, _complaint(contract, _status(row), "the prompt is missing")
        return
    streamed = row.params.get("channel") == "chunk"
    body = {"model": MODEL, "prompt": "One, two,", "max_tokens": 2, "temperature": 0, "logprobs": 1}
    if "service_tier" in row.params["path"]:
        body["service_tier"] = "default"
    asked = {name: value for name, value in body.items() if name in contract.parameters}
    way: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
    asked |= {name: value for name, value in way.items() if name in contract.parameters}
    from conformance.judge.fixtures import case

    for document in _answered(contract, case(asked)).documents:
        yield asked, document.value
        yield asked, _with(contract, row, document.value)


def _status(row: Requirement) -> int:
    told = str(row.params.get("status", "400")).replace("XX", "00")
    return int(told) if told.isdigit() else 400


def _reply(row: Requirement, asked: dict[str, Any], document: Any) -> Exchange:
    if row.params.get("channel") == "error":
        return plain(document, {"model": MODEL, **asked}, status=_status(row))
    return stream(document, request=asked) if row.params.get("channel") == "chunk" else plain(document, asked)


def _with(contract: Contract, row: Requirement, document: Any) -> Any:
    """The document with an optional field filled in, so that there is something to look at."""
    from conformance.contract.derived_rows import fields
    from conformance.reference.schema_instance import fill

    schema = contract.chunk if row.params.get("channel") == "chunk" else contract.response
    known = {field.path: field.schema for field in fields(schema)}
    steps = row.params["path"].replace("[]", ".[]").split(".")
    document = deepcopy(document)
    path = ""
    for place, step in enumerate(steps):
        path = f"{path}{step}" if step == "[]" else f"{path}.{step}".lstrip(".")
        for holder, name in _places(document, steps[: place + 1], absent=True):
            if holder[name] is MISSING or holder[name] is None or holder[name] == []:
                holder[name] = fill(known.get(path, {}), step)
    return document


def _spoilt(document: Any, row: Requirement) -> Iterator[Any]:
    """The document with the field made what the keyword forbids."""
    steps = row.params["path"].replace("[]", ".[]").split(".")
    for value in _forbidden(row.params["keyword"], row.params["expected"]):
        copy = deepcopy(document)
        places = list(_places(copy, steps))
        for holder, name in places[:1]:
            if value is MISSING:
                del holder[name]
            else:
                holder[name] = value
        if places:
            yield copy


def _forbidden(keyword: str, expected: Any) -> Iterator[Any]:
    special: dict[str, Callable[[], tuple[Any, ...]]] = {
        "required": lambda: (MISSING,),
        "not_null": lambda: (None,),
        "enum": lambda: ("something_else", 7),
        "const": lambda: ("something_else", 7),
        "minimum": lambda: (expected - 1,),
        "maximum": lambda: (expected + 1,),
        "minItems": lambda: ([],),
    }
    yield from special.get(keyword, lambda: OTHERS)()


def _places(document: Any, steps: list[str], *, absent: bool = False) -> Iterator[tuple[Any, Any]]:
    """The holders of the field and its name in each; where `absent`, of a field that is not there too, as MISSING."""
    if not steps:
        return
    step, rest = steps[0], steps[1:]
    names: list[Any] = []
    if step == "[]" and isinstance(document, list):
        names = list(range(len(document)))
    elif step == "*" and isinstance(document, dict):
        names = list(document)
    elif isinstance(document, dict) and step not in {"[]", "*"}:
        if step not in document and absent and not rest:
            document[step] = MISSING
        names = [step] if step in document else []
    for name in names:
        if not rest:
            yield document, name
        else:
            yield from _places(document[name], rest, absent=absent)
