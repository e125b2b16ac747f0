"""Drawn bodies as requests: valid ones that must be accepted, and invalid ones beside the valid body they come from.

A list of drawn bodies explains itself: an invalid body follows the valid one from which it differs in one member, which
may occur more than once for it, so that a stored plan needs nothing else. What has no `model` is a patch for a covering
row, see `row_requests`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.contract.openapi import branches
from conformance.model import Level, RequestCase, Validity, json_types
from conformance.model.budget import worst_case
from conformance.model.json_text import MISSING, dumps, is_number
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PlanContext, part

ORIGIN: Final = "sample"
"""The origin of drawn requests."""
LOOK_ALIKE: Final = "look-alike"
"""The role of a look-alike in showing that the type is checked."""
ACCEPTS: Final = "request.drawn.accepts"
REFUSES: Final = "request.drawn.refuses"
COERCION: Final = "request.drawn.coercion"


@dataclass(frozen=True)
class Minimum:
    """How many drawn requests a profile sends at least: valid ones, and invalid ones."""

    valid: int
    invalid: int


MINIMUM: Final[Mapping[str, Minimum]] = {"gate": Minimum(4, 8), "full": Minimum(40, 80)}
SURROGATE: Final = re.compile(r"\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE)
SURROGATE_PAIR: Final = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}", re.IGNORECASE)
LONGEST: Final = 600
VOCABULARY: Final = 32_000  # ids beyond this may not exist
MOST_TOKENS: Final = 16  # of a drawn request in all its choices, so that a hundred of them are affordable
MOST_CHOICES: Final = 16  # numbers above these cost too much where a server ignores the limit
MOST_ASKED: Final = 64
WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", ""})
NUMERIC: Final = frozenset({"integer", "number"})
PYTHON_TYPES: Final[Mapping[str, Any]] = {
    "string": str,
    "number": (int, float),
    "integer": (int, float),
    "boolean": bool,
    "array": list,
    "object": Mapping,
    "null": type(None),
}


def drawn_requests(context: PlanContext, drawn: Iterable[Mapping[str, Any]]) -> Iterator[CaseGroup]:
    """The drawn bodies as cases; as many of them as the profile must send are guaranteed."""
    least = MINIMUM[context.profile]
    valid = invalid = 0
    host: RequestCase | None = None
    hosts: dict[bytes, RequestCase] = {}
    for body in (dict(body) for body in drawn if "model" in body):
        if context.validity_of(body) is Validity.INVALID:
            group = _refusal(context, host, body) if host is not None else None
            if group is not None:
                invalid += 1
                yield _ranked(context, group, guaranteed=invalid <= least.invalid)
        elif _has_unsupported(context, body) or context.barred(body):
            host = None
        elif (content := dumps(body).encode()) in hosts:
            host = hosts[content]
        elif is_sure(context, body):
            valid += 1
            host = hosts[content] = _case(context, body)
            yield _ranked(context, (host,), guaranteed=valid <= least.valid)
        else:
            # text that a server may refuse for its content
            host = None
            case = context.case(ORIGIN, body, validity=Validity.UNSPECIFIED)
            yield CaseGroup("rows", Rank.LAST_RESORT, (case,))


def again(context: PlanContext, failed: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The bodies that failed before, up to half of what the profile sends at least."""
    least = MINIMUM[context.profile]
    left = {True: least.valid // 2, False: least.invalid // 2}
    taken: list[Mapping[str, Any]] = []
    for body in failed:
        breaks = context.validity_of(body) is Validity.INVALID
        if left[not breaks] > 0:
            taken.append(body)
            left[not breaks] -= 1
    return tuple(taken)


def _has_unsupported(context: PlanContext, body: Mapping[str, Any]) -> bool:
    """Whether a body has a documented member that is not claimed, or that was rejected whatever its value was."""
    return not all(context.has(name) for name in body if name in context.contract.parameters)


def _ranked(context: PlanContext, cases: tuple[RequestCase, ...], *, guaranteed: bool) -> CaseGroup:
    if context.full:
        rank = Rank.NORMAL if guaranteed else Rank.LAST_RESORT  # the classes of the input model come first
    else:
        rank = Rank.NORMAL if guaranteed else Rank.EXTRA
    return CaseGroup("rows", rank, cases, guaranteed=guaranteed)


def _case(context: PlanContext, body: Mapping[str, Any]) -> RequestCase:
    row = [part("drawn", f"{ACCEPTS} {_digest(body)}", "probe")] if ACCEPTS in context.rows else []
    return context.case(ORIGIN, body, *row)


def _refusal(context: PlanContext, host: RequestCase, body: Mapping[str, Any]) -> tuple[RequestCase, ...] | None:
    """An invalid body with its control; None where several members differ, or no row demands the refusal."""
    changed = changes(host.body, body)
    if len(changed) != 1 or _has_unsupported(context, body):
        return None
    row = refusing_row(context, changed[0], body.get(changed[0], MISSING))
    if row not in context.rows:
        return None
    key = f"{row} {changed[0]} {_digest(body)}"
    also = () if context.full else _shown_too(context, changed[0], body.get(changed[0], MISSING), _digest(body))
    controls = (part(kind, name, "control") for kind, name, _ in also)
    control = context.case(ORIGIN, host.body, *host.groups, part("drawn-invalid", key, "control"), *controls)
    probes = (part(kind, name, role) for kind, name, role in also)
    probe = context.case(ORIGIN, body, part("drawn-invalid", key, "probe"), *probes, breaks=(row,))
    return control, probe


def _shown_too(context: PlanContext, name: str, value: Any, digest: str) -> list[tuple[str, str, str]]:
    """The rows on one parameter that an invalid body shows as well, so that a small budget need not show them again."""
    if value is MISSING:
        rows = {f"request.{name}.required": "probe"}
    elif value is not None and is_look_alike(context.contract.parameters[name].schema, value):
        rows = {f"request.{name}.coercion": "probe", f"request.{name}.type": LOOK_ALIKE}
    else:
        rows = (
            {f"request.{name}.type": "probe"} if not _has_type(value, context.contract.parameters[name].types) else {}
        )
    shown = [("refuse", f"{row} drawn {digest}", role) for row, role in rows.items() if row in context.rows]
    return shown if any(role == "probe" for _, _, role in shown) else []


def _has_type(value: Any, types: Collection[str]) -> bool:
    """Whether a value is of one of these JSON types."""
    return any(
        isinstance(value, PYTHON_TYPES[name]) and isinstance(value, bool) is (name == "boolean") for name in types
    )


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(body).encode()).hexdigest()[:10]


def changes(control: Mapping[str, Any], body: Mapping[str, Any]) -> list[str]:
    """The members in which two bodies differ."""
    names = dict.fromkeys((*control, *body))
    return [name for name in names if dumps(control.get(name, _ABSENT)) != dumps(body.get(name, _ABSENT))]


_ABSENT: Final = ["absent", "absent", "absent"]  # no drawn value


def breaks_one_rule(context: PlanContext, host: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a member's value makes a valid body invalid by itself, in a way that some row promises to refuse."""
    body = with_member(host, name, value)
    alone = context.validity_alone({name: value}) is Validity.INVALID
    costly = is_number(value) and value > (MOST_ASKED if name == "max_tokens" else MOST_CHOICES)
    if not alone or (costly and (name == "max_tokens" or context.traits(name).multiplies_cost)):
        return False
    return (
        context.validity_of(body) is Validity.INVALID
        and not context.clashes(body)
        and refusing_row(context, name, value) in context.rows
    )


def with_member(body: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """A body with one member set; MISSING takes it away."""
    return {key: item for key, item in {**body, name: value}.items() if item is not MISSING}


def refusing_row(context: PlanContext, name: str, value: Any) -> str:
    """The row that demands the refusal of a member's value; empty where none does.

    Of look-alikes and null a refusal is recommended. Of other values it is required where all rows on the parameter
    require it: which of them the value breaks would be a guess.
    """
    levels = _levels(context, name)
    if not levels:
        return ""
    if value is None or is_look_alike(context.contract.parameters[name].schema, value):
        return COERCION
    return REFUSES if levels == {Level.MUST} else ""


def _levels(context: PlanContext, name: str) -> frozenset[Level]:
    """The levels of the rows on refusing values of a parameter, but for those on look-alikes and null."""
    known: dict[str, frozenset[Level]] | None = context.memo.get("levels of refusals")
    if known is None:
        gathered: dict[str, set[Level]] = {}
        for row in context.rows_on("refuse"):
            parameter = row.params.get("parameter")
            if isinstance(parameter, str) and row.params.get("keyword") not in {"coercion", "nullable"}:
                gathered.setdefault(top(parameter), set()).add(row.level)
        known = context.memo["levels of refusals"] = {key: frozenset(levels) for key, levels in gathered.items()}
    return known.get(name, frozenset())


def is_look_alike(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a lenient parser may convert a value of the wrong type into one that the schema takes.

    At any depth: a list or an object may hold one.
    """
    if value is MISSING:
        return False
    types = json_types(schema) - {"null"}
    if isinstance(value, bool):
        return "boolean" not in types and bool(types & {*NUMERIC, "string", "array"})
    if isinstance(value, str):
        return "string" not in types and (
            (bool(types & NUMERIC) and _is_numeral(value))
            or ("boolean" in types and value.strip().lower() in {*WORDS, "1", "0"})
            or "array" in types
            or ("object" in types and value.lstrip()[:1] in {"", "{"})
        )
    if isinstance(value, float) and types & NUMERIC:
        return "number" not in types
    if is_number(value):
        return not types & NUMERIC and bool(types & {"boolean", "string", "array"})
    return _holds_look_alike(schema, types, value)


def _holds_look_alike(schema: Mapping[str, Any], types: set[str], value: Any) -> bool:
    if isinstance(value, list) and "array" not in types:
        return len(value) <= 1
    if isinstance(value, Mapping) and "object" not in types:
        return "array" in types
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    inner = list(_inner(schema))
    return any(item is None or any(is_look_alike(child, item) for child in inner) for item in parts)


def _inner(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas of the items, members and values of a schema."""
    for branch in branches(schema):
        children = (branch.get("items"), branch.get("additionalProperties"), *branch.get("properties", {}).values())
        yield from (child for child in children if isinstance(child, Mapping))


def _is_numeral(text: str) -> bool:
    if not text.strip():
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_sure(context: PlanContext, body: Mapping[str, Any]) -> bool:
    """Whether a body is valid, cheap, and holds nothing that a server may refuse for its content."""
    if context.validity_of(body) is not Validity.VALID or _doubtful(body):
        return False
    return worst_case(context.request(body)).completion <= MOST_TOKENS


def _doubtful(body: Mapping[str, Any]) -> bool:
    prompt = body.get("prompt")
    listed = prompt if isinstance(prompt, list) else [prompt]
    flat = [text_or_id for item in listed for text_or_id in (item if isinstance(item, list) else [item])]
    odd = any(
        (isinstance(text_or_id, int) and not 0 <= text_or_id < VOCABULARY)
        or (isinstance(text_or_id, str) and not 0 < len(text_or_id) <= LONGEST)
        for text_or_id in flat
    )
    return odd or is_unusual(body) or _holds_empty_text(body)


def _holds_empty_text(value: Any) -> bool:
    """Whether a text is empty somewhere, which is valid where the document is silent, and of no use to anybody."""
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value == "" or any(map(_holds_empty_text, parts))


def is_unusual(value: Any) -> bool:
    """Whether a text contains NUL or a lone surrogate, which not every server accepts, or is very long."""
    text = dumps(value)
    long = isinstance(value, str) and len(value) > LONGEST
    return long or bool(SURROGATE.search(SURROGATE_PAIR.sub("", text))) or "\\u0000" in text


__all__ = [
    "ACCEPTS",
    "COERCION",
    "LONGEST",
    "LOOK_ALIKE",
    "MINIMUM",
    "NUMERIC",
    "ORIGIN",
    "REFUSES",
    "VOCABULARY",
    "Minimum",
    "again",
    "breaks_one_rule",
    "changes",
    "drawn_requests",
    "is_look_alike",
    "is_sure",
    "is_unusual",
    "refusing_row",
    "with_member",
]  # fmt: skip
