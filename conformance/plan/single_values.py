"""Each documented value, alone on the base where there is room, in company where there is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.model import Limit, Membership, Validity
from conformance.model.json_text import dumps
from conformance.plan.boundaries import ends, open_ends
from conformance.plan.case_group import CaseGroup
from conformance.plan.context import PlanContext, part
from conformance.plan.factors import ABSENT, STREAM, factors, far_ends, runs_on, way
from conformance.plan.learned_target import FEW
from conformance.plan.parameter_values import FactorLevel, factor_level, specimens

LAST: Final = 9
TOGETHER: Final = frozenset({"row", "relation", "cut"})  # cases of which a refusal speaks of a combination
MOST_CLEARED: Final = 2
CROWD: Final = 8


def first(context: PlanContext) -> Iterator[CaseGroup]:
    """The base; and the bare request, where the base is left open by the document or was refused before."""
    told = FactorLevel(factor_level("model", context.model).label, context.base)
    if context.validity_of(context.base) is Validity.VALID and not context.known.no_cold:
        yield CaseGroup("base", 0, (context.case("base", context.base, *both(context, told)),))
        return
    cold = factor_level("temperature", context.base.get("temperature", ABSENT))
    yield CaseGroup("base", 0, (context.case("base", context.bare, *both(context, replace(told, patch=context.bare))),))
    if context.base != context.bare:
        yield alone(context, cold, rank=0, phase="base", control=context.bare, origin="base")


def both(context: PlanContext, value: FactorLevel) -> list[Membership]:
    """Both parts in the groups on accepting a value: what everything else is compared with is its own control."""
    return [*accepts(context, value, "control"), *accepts(context, value, "probe")]


def singles(context: PlanContext) -> Iterator[CaseGroup]:
    """Wave 0: each value of each dimension by itself. In `gate` one for each dimension that a reply shows.

    The other values of `gate` come first in rows, in the company of others; what that leaves in doubt goes alone then.
    """
    found = factors(context)
    if context.full:
        yield from (alone(context, value, rank=1) for one in found for value in one.levels[1:])
        yield from (alone(context, value, rank=3) for value in _others(context))
        yield from (alone(context, value, rank=1) for value in _nulls(context))
        yield from _nothing_but_echo(context)
        return
    shared = [one for dimension in found for value in dimension.levels for one in accepts(context, value, "control")]
    yield CaseGroup("values", 0, (context.case("base", context.base, *shared),))
    for one in found:
        known = context.traits(one.parameter)
        # a plain stream is left out: a stream with usage shows as much and more
        wanted = [value for value in one.levels[1:] if known.visible_in_reply and value.label != STREAM.label]
        elsewhere = known.also_shown_elsewhere
        streamed = {} if elsewhere else way(context, one.parameter)
        yield from (alone(context, value, rank=4 if elsewhere else 1, way=streamed) for value in wanted[:1])
    if context.validity_of(context.base) is not Validity.VALID:
        # where temperature 0 is left open, what nothing else shows is asked for without it
        last = [value for one in found for value in one.levels[1:] if context.standing(value.patch) is Validity.VALID]
        bodies = [
            {key: member for key, member in {**context.bare, **one.patch}.items() if member is not ABSENT}
            for one in last
        ]
        yield from (CaseGroup("rows", LAST, (context.case("value", body),)) for body in bodies)
    yield from _nothing_but_echo(context)
    # the ends of ranges that rows do not try
    tried = {value.label for one in found for value in one.levels}
    far = [value for one in found for value in _untried_ends(context, one.parameter) if value.label not in tried]
    for bundle in _companies(context, far, "values", 1):
        names = {one.key.split(".")[1] for one in bundle.cases[1].groups}
        many = any(context.traits(name).multiplies_cost for name in names)
        yield bundle if many or len(bundle.cases[1].groups) > 1 else replace(bundle, rank=3)
    alike = [value for value in _nulls(context) if value.patch.keys() & {"prompt", "temperature"}]
    kept = [value for value in _nulls(context) if value.patch.keys() & {"max_tokens"}]
    for some in (alike, [value for value in _nulls(context) if value not in (*alike, *kept)]):
        yield from _companies(context, some, "values", 1)
    if not runs_on(context):  # which the reply to none tells, so null waits for it
        yield from _companies(context, kept, "learned", 1)


def _untried_ends(context: PlanContext, name: str) -> list[FactorLevel]:
    """The ends of a range that no row combines; the low end of what multiplies the cost is the base already."""
    known = context.traits(name)
    if known.multiplies_cost:
        return far_ends(context, name)[1:]
    return [] if known.visible_in_reply or known.in_every_request or known.any_value else far_ends(context, name)


def edges(context: PlanContext) -> Iterator[CaseGroup]:
    """Both ends of every range and one step inside of each; what the document leaves open is observed."""
    settled = context.known.accepted | context.known.refused.keys()
    within: list[FactorLevel] = []
    for limit in _limits(context):
        for value in ends(context, limit):
            if value.label in settled:
                continue
            if _on_the_end(limit, value):
                yield alone(context, value, rank=3, phase="rows", origin="edge")
            else:
                within.append(value)
        row = f"request.{limit.parameter}.edge"
        yield from (_observed(context, row, one.label, one.patch) for one in open_ends(limit) if row in context.rows)
    yield from _companies(context, within, "rows", 3)
    observed = {row.id for row in context.rows_on("observe")}
    for rule in context.contract.combinations:
        if rule.id in observed and rule.example and context.has(*rule.example):
            yield _observed(context, rule.id, "", rule.example)


def named(context: PlanContext) -> Iterator[CaseGroup]:
    """Members that a row of the contract names itself, such as a field that the document does not know."""
    for row in context.rows_on("accept"):
        members = row.params.get("probe")
        if isinstance(members, Mapping):
            key = f"{row.id} {dumps(members)}"
            control = context.case("base", context.base, part("accept", key, "control"))
            probe = context.case("value", context.body(members), part("accept", key, "probe"))
            yield CaseGroup("values", 3, (control, probe))


def unlimited(context: PlanContext) -> Iterator[CaseGroup]:
    """No limit of tokens: once absent, once null, streamed and hung up on.

    That is where the document has no default; and null, where the reply without a limit went far beyond the default.
    """
    open_ended = context.full and context.contract.default("max_tokens") is None
    if not context.has("max_tokens", "stream") or not (open_ended or runs_on(context)):
        return
    row = "request.max_tokens.null"
    for value in (None, ABSENT) if open_ended else (None,):
        if value is None and row not in context.rows:
            continue
        control = context.case("base", context.body(STREAM.patch), part("accept", f"{row} streamed", "control"))
        group = [part("accept", f"{row} streamed", "probe")] if value is None else []
        body = context.body(STREAM.patch, {"max_tokens": value})
        yield CaseGroup("rows", 3, (control, context.case("edge", body, *group, hang_up_after=2)))


def suspects(context: PlanContext) -> Iterator[CaseGroup]:
    """What was refused in company is sent in smaller company, then alone, so that only the guilty values leave.

    The company of a value is the bare request at last: what is taken there and refused at temperature 0 stays, and
    only the two do not meet again. A value that a refusal spoke of goes alone at once.
    """
    found = [value for one in factors(context, suspects=True) for value in one.levels[1:]]
    found += [value for limit in _limits(context) for value in ends(context, limit)]
    found += [factor_level(name, None) for name in context.contract.parameters]
    doubted = list({one.label: one for one in found if one.label in context.known.suspect}.values())
    tried = context.known.replies
    told = [
        one for one in doubted if one.patch.keys() & context.known.named and _on_the_bare(context, one) not in tried
    ]
    size_of = {one.label: _halved(context, context.known.company.get(one.label, 1)) for one in doubted}
    single = told or [one for one in doubted if size_of[one.label] <= 1]
    rest = [] if told else [one for one in doubted if size_of[one.label] > 1]
    size = min((size_of[one.label] for one in rest), default=1)
    several = [rest[start : start + size] for start in range(0, len(rest), size)]
    for company in (*([one] for one in single), *several):
        for bundle in _companies(context, company, "alone", 1, context.bare):
            # its control need not go out more than once: the group has the base as well
            sent = bundle.cases[0].content in tried
            yield replace(bundle, cases=bundle.cases[1:]) if sent else bundle


def _halved(context: PlanContext, size: int) -> int:
    """How many values go together next: half as many, or one where they are few or most of them seem to be guilty."""
    return -(-size // 2) if size > CROWD and len(context.known.refused) < FEW else 1


def _on_the_bare(context: PlanContext, one: FactorLevel) -> bytes:
    body = {name: value for name, value in {**context.bare, **one.patch}.items() if value is not ABSENT}
    return dumps(body).encode()


def cleared(context: PlanContext) -> Iterator[CaseGroup]:
    """Rows that were refused with a member beside them that the document leaves open, without that member.

    Only then does a refusal say something: of values that are each taken, and not together.
    """
    refused = [x.case for x in context.known.replies.values() if x.refused and x.case.origin in TOGETHER]
    for case in refused:
        spoke = any(one.kind in {"overflow", "observe"} for one in case.groups)
        if case.validity is Validity.UNSPECIFIED and isinstance(case.body, Mapping) and not spoke:
            for body in _closed(context, case.body):
                yield CaseGroup("alone", 3, (context.case(case.origin, body),))


def _closed(context: PlanContext, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A body less what the document leaves open: single members, else one of those that it does not join."""
    kept = {name: value for name, value in body.items() if name in context.bare or _sure(context, name, value)}
    if context.validity_of(kept) is Validity.VALID:
        return [kept]
    fewer = [{one: value for one, value in kept.items() if one != name} for name in kept.keys() - context.bare.keys()]
    return sorted([one for one in fewer if context.validity_of(one) is Validity.VALID], key=dumps)[:MOST_CLEARED]


def _sure(context: PlanContext, name: str, value: Any) -> bool:
    return name == "stream_options" or context.standing({name: value}) is Validity.VALID


def alone(
    context: PlanContext,
    value: FactorLevel,
    *,
    rank: int,
    phase: str = "values",
    origin: str = "value",
    control: Mapping[str, Any] | None = None,
    way: Mapping[str, Any] | None = None,
) -> CaseGroup:
    """A value with its control, which differs in it only."""
    base = dict(context.base if control is None else control)
    if _multiplies(context, value) and "max_tokens" in base:
        base["max_tokens"] = 1
    body = {name: one for name, one in {**base, **value.patch, **(way or {})}.items() if one is not ABSENT}
    if context.standing(value.patch) is not Validity.VALID:
        groups = [part("observe", f"{row} {value.label}", "probe") for row in rows_of(context, value.patch)]
        return CaseGroup(phase, rank, (context.case("base", base), context.case(origin, body, *groups)))
    # beside a member that the bare request has not, a refusal need not speak of the value: then it is in company
    role = "probe" if _lonely(context, base, body) else "joint"
    probe = context.case(origin, body, *accepts(context, value, role))
    return CaseGroup(phase, rank, (context.case("base", base, *accepts(context, value, "control")), probe))


def accepts(context: PlanContext, value: FactorLevel, role: str) -> list[Membership]:
    """A case's part in the groups on accepting each member of a value."""
    return [part("accept", f"{row} {value.label}", role) for row in rows_of(context, value.patch)]


def rows_of(context: PlanContext, patch: Mapping[str, Any]) -> Iterator[str]:
    """The rows on accepting the members of a patch, as far as the contract has them."""
    for name, value in patch.items():
        row = f"request.{name}.{'null' if value is None else 'accepts'}"
        if value is not ABSENT and row in context.rows:
            yield row


def _limits(context: PlanContext) -> list[Limit]:
    return [limit for limit in context.contract.limits if limit.binding and context.has(top(limit.parameter))]


def _on_the_end(limit: Limit, value: FactorLevel) -> bool:
    found = value.value
    number = len(found) if isinstance(found, list) else next(iter(found.values())) if isinstance(found, dict) else found
    return number in {limit.low, limit.high}


def _companies(
    context: PlanContext, wanted: Iterable[FactorLevel], phase: str, rank: int, base: Mapping[str, Any] | None = None
) -> Iterator[CaseGroup]:
    """Many values in few requests. Their role is `joint`: accepted, it speaks for each of them; refused, for none."""
    rest = list(wanted)
    while rest:
        kept: list[FactorLevel] = []
        for one in rest:
            taken = {name for other in kept for name in other.patch}
            if not taken & one.patch.keys() and context.standing(_patch([*kept, one])) is Validity.VALID:
                kept.append(one)
        if not kept:
            return
        rest = [one for one in rest if one not in kept]
        yield _company(context, kept, phase, rank, base or context.base)


def _company(
    context: PlanContext, kept: list[FactorLevel], phase: str, rank: int, base: Mapping[str, Any]
) -> CaseGroup:
    whole = {**base, **_patch(kept)}
    if any(_multiplies(context, one) for one in kept) and "max_tokens" in whole:
        whole["max_tokens"] = 1
    body = {name: value for name, value in whole.items() if value is not ABSENT}
    role = "probe" if len(kept) == 1 and _lonely(context, base, body) else "joint"
    control = [membership for one in kept for membership in accepts(context, one, "control")]
    joint = [membership for one in kept for membership in accepts(context, one, role)]
    return CaseGroup(phase, rank, (context.case("base", dict(base), *control), context.case("value", body, *joint)))


def _lonely(context: PlanContext, base: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether a value stands beside nothing but what every request has, in a request that is surely allowed."""
    return base.keys() <= context.bare.keys() and context.validity_of(body) is Validity.VALID


def _multiplies(context: PlanContext, value: FactorLevel) -> bool:
    """Whether a value asks for so many choices that each may only have one token."""
    counts = [count for name, count in value.patch.items() if context.traits(name).multiplies_cost]
    return max([count for count in counts if isinstance(count, int)], default=0) > FEW


def _nothing_but_echo(context: PlanContext) -> Iterator[CaseGroup]:
    """The prompt scored and nothing generated: two values that only mean something together."""
    told = {"echo": True, "max_tokens": 0}
    if context.has(*told) and context.standing(told) is Validity.VALID:
        yield CaseGroup("values", 3, (context.case("value", context.body(told)),))


def _patch(levels: Iterable[FactorLevel]) -> dict[str, Any]:
    return {name: value for one in levels for name, value in one.patch.items()}


def _nulls(context: PlanContext) -> Iterator[FactorLevel]:
    """Documented nulls, but for one that would lift the limit of tokens."""
    for name, parameter in context.contract.parameters.items():
        lifts = name == "max_tokens" and context.contract.default(name) is None
        if parameter.nullable and context.has(name) and not lifts and context.standing({name: None}) is Validity.VALID:
            yield factor_level(name, None)


def _others(context: PlanContext) -> Iterator[FactorLevel]:
    """Further values that examples and enums give, which are not combined."""
    for name, parameter in context.contract.parameters.items():
        told = "enum" in parameter.schema or name in context.contract.examples
        if told and context.has(name) and name not in {"model", "prompt"}:
            yield from (
                one for one in specimens(context.contract, name)[:6] if context.standing(one.patch) != "invalid"
            )


def _observed(context: PlanContext, row: str, label: str, patch: Mapping[str, Any]) -> CaseGroup:
    key = f"{row} {label}".strip()
    control = context.case("base", context.base, part("observe", key, "control"))
    probe = context.case("edge", context.body(patch), part("observe", key, "probe"))
    return CaseGroup("values", 5 if not context.full else 3, (control, probe))


__all__ = ["accepts", "alone", "cleared", "edges", "first", "named", "rows_of", "singles", "suspects", "unlimited"]
