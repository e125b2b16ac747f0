"""Each documented value: alone on the base request, or with others in a joint case where there is no room for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.model import Limit, Membership, Validity
from conformance.model.json_text import dumps
from conformance.plan.boundaries import ends
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PlanContext, part
from conformance.plan.factors import (
    ABSENT,
    STREAM,
    Factor,
    exceeds_default_limit,
    factors,
    far_ends,
    observation_channel,
    streaming,
)
from conformance.plan.learned_target import FEW
from conformance.plan.parameter_values import FactorLevel, factor_level, sample_levels

COMBINING: Final = frozenset({"row", "relation", "cut"})  # origins whose refusal says something of a combination
MOST_REDUCED: Final = 2  # requests that are tried in place of one rejected combination
MOST_CHOICES: Final = 4  # choices or candidates that may have more than one token each
MOST_LISTED: Final = 6  # examples or enum values of a parameter that are tried
BISECTED_FROM: Final = 9  # values of a rejected joint case: fewer are sent one by one


def base_requests(context: PlanContext) -> Iterator[CaseGroup]:
    """The base request; the bare request as well, where the base is unspecified or was rejected before."""
    model = FactorLevel(factor_level("model", context.model).label, context.base)
    if context.validity_of(context.base) is Validity.VALID and not context.known.rejects_temperature_zero:
        case = context.case("base", context.base, *_control_and_probe(context, model))
        yield CaseGroup("base", Rank.ALWAYS, (case,))
        return
    bare = context.case("base", context.bare, *_control_and_probe(context, replace(model, patch=context.bare)))
    yield CaseGroup("base", Rank.ALWAYS, (bare,))
    if context.base != context.bare:
        temperature = factor_level("temperature", context.base.get("temperature", ABSENT))
        yield value_alone(context, temperature, rank=Rank.ALWAYS, phase="base", control=context.bare, origin="base")


def _control_and_probe(context: PlanContext, value: FactorLevel) -> list[Membership]:
    """Both roles in the groups on accepting a value: the request that all others differ from is its own control."""
    return [*accepts(context, value, "control"), *accepts(context, value, "probe")]


def single_values(context: PlanContext) -> Iterator[CaseGroup]:
    """Each level of each factor by itself; in `gate` one level of each factor whose value shows in the reply.

    The other levels of `gate` occur in rows first, combined with others; those that this leaves in doubt are isolated.
    """
    if context.full:
        yield from _all_levels_alone(context)
    else:
        yield from _gate_values(context)


def _all_levels_alone(context: PlanContext) -> Iterator[CaseGroup]:
    together: list[FactorLevel] = []
    for factor in factors(context):
        alone = context.traits(factor.parameter).visible_in_reply
        sure = [value for value in factor.levels[1:] if context.validity_alone(value.patch) is Validity.VALID]
        together += [] if alone else sure
        for value in factor.levels[1:]:
            if alone or value not in sure:
                yield value_alone(context, value, rank=Rank.ESSENTIAL)
    together += [value for value in _listed_values(context) if value not in together]
    yield from joint_cases(context, together, "values", Rank.ESSENTIAL)
    yield from (value_alone(context, value, rank=Rank.ESSENTIAL) for value in _nulls(context))
    yield from _echo_without_generation(context)


def _gate_values(context: PlanContext) -> Iterator[CaseGroup]:
    all_factors = factors(context)
    shared = [
        membership
        for factor in all_factors
        for value in factor.levels
        for membership in accepts(context, value, "control")
    ]
    yield CaseGroup("values", Rank.ALWAYS, (context.case("base", context.base, *shared),))
    for factor in all_factors:
        yield from _visible_value(context, factor)
    if context.validity_of(context.base) is not Validity.VALID:
        yield from _on_the_bare_request(context, all_factors)
    yield from _untried_ends(context, all_factors)
    yield from _joint_nulls(context)


def _visible_value(context: PlanContext, factor: Factor) -> Iterator[CaseGroup]:
    """The first level of a factor whose value shows in the reply; other requests are compared with this one."""
    traits = context.traits(factor.parameter)
    if not traits.visible_in_reply:
        return
    # a plain stream is left out: a stream with usage shows as much and more
    values = [value for value in factor.levels[1:] if value.label != STREAM.label]
    elsewhere = traits.also_shown_elsewhere
    channel = {} if elsewhere else observation_channel(context, factor.parameter)
    rank = Rank.USEFUL if elsewhere else Rank.ESSENTIAL
    yield from (value_alone(context, value, rank=rank, channel=channel) for value in values[:1])


def _on_the_bare_request(context: PlanContext, all_factors: Sequence[Factor]) -> Iterator[CaseGroup]:
    """Each level without a temperature of 0, which is unspecified: a last resort for what nothing else shows."""
    for factor in all_factors:
        for value in factor.levels[1:]:
            if context.validity_alone(value.patch) is Validity.VALID:
                case = context.case("value", _without_absent({**context.bare, **value.patch}))
                yield CaseGroup("rows", Rank.LAST_RESORT, (case,))


def _untried_ends(context: PlanContext, all_factors: Sequence[Factor]) -> Iterator[CaseGroup]:
    """The ends of ranges that no row combines, in joint cases."""
    tried = {value.label for factor in all_factors for value in factor.levels}
    values = [
        value
        for factor in all_factors
        for value in _ends_outside_rows(context, factor.parameter)
        if value.label not in tried
    ]
    # token ids beside the most candidates show whether the prompt is counted once
    ids = [
        value
        for factor in all_factors
        if factor.name == "prompt"
        for value in factor.levels
        if value.label == "prompt=ids"
    ]
    for case_group in joint_cases(context, [*values, *ids], "values", Rank.ESSENTIAL):
        parts = case_group.cases[1].groups
        costly = any(context.traits(membership.key.split(".")[1]).multiplies_cost for membership in parts)
        yield case_group if costly or len(parts) > 1 else replace(case_group, rank=Rank.NORMAL)


def _ends_outside_rows(context: PlanContext, name: str) -> list[FactorLevel]:
    """The ends of a range; only the high end of what multiplies the cost, whose low end is the base already."""
    traits = context.traits(name)
    if traits.multiplies_cost:
        return far_ends(context, name)[1:]
    return [] if traits.visible_in_reply or traits.in_every_request or traits.any_value else far_ends(context, name)


def _joint_nulls(context: PlanContext) -> Iterator[CaseGroup]:
    """Documented nulls in joint cases: those that change every reply, the others, and that of the token limit.

    The others are streamed, so that both channels meet some.
    """
    nulls = {next(iter(value.patch)): value for value in _nulls(context)}
    limit = [nulls.pop(name) for name in ("max_tokens",) if name in nulls]
    plain = {"prompt", "temperature", "stream", "stream_options"}
    changing = [value for name, value in nulls.items() if name in plain]
    yield from joint_cases(context, changing, "values", Rank.ESSENTIAL)
    others = [value for value in nulls.values() if value not in changing]
    streamed = context.body(streaming(context)) if context.has("stream") else context.base
    yield from joint_cases(context, others, "values", Rank.ESSENTIAL, streamed)
    if not exceeds_default_limit(context):  # known once a request without a limit was answered
        yield from joint_cases(context, limit, "learned", Rank.ESSENTIAL)


def members_of_rows(context: PlanContext) -> Iterator[CaseGroup]:
    """Members that a row of the contract names itself, such as a field that the document does not know."""
    for row in context.rows_on("accept"):
        members = row.params.get("probe")
        if isinstance(members, Mapping):
            key = f"{row.id} {dumps(members)}"
            control = context.case("base", context.base, part("accept", key, "control"))
            probe = context.case("value", context.body(members), part("accept", key, "probe"))
            yield CaseGroup("values", Rank.NORMAL, (control, probe))


def without_token_limit(context: PlanContext) -> Iterator[CaseGroup]:
    """No limit of tokens: absent, then null, streamed, with the connection closed after the first events.

    Both where the document has no default; null alone where a reply without a limit far exceeded the default.
    """
    no_default = context.full and context.contract.default("max_tokens") is None
    if not context.has("max_tokens", "stream") or not (no_default or exceeds_default_limit(context)):
        return
    row = "request.max_tokens.null"
    for value in (None, ABSENT) if no_default else (None,):
        if value is None and row not in context.rows:
            continue
        control = context.case("base", context.body(STREAM.patch), part("accept", f"{row} streamed", "control"))
        groups = [part("accept", f"{row} streamed", "probe")] if value is None else []
        body = context.body(STREAM.patch, {"max_tokens": value})
        yield CaseGroup("rows", Rank.NORMAL, (control, context.case("edge", body, *groups, hang_up_after=2)))


def isolated_values(context: PlanContext, classes: Iterable[FactorLevel] = ()) -> Iterator[CaseGroup]:
    """Bisect rejected joint cases to isolate the rejected values: half as many values together, at last each alone.

    `classes` are the levels of the input model that joint cases have as well.

    Each is tried on the bare request: a value that is accepted there and rejected at temperature 0 stays in use, and
    only the two are not combined again. A value that a refusal named is sent alone at once.
    """
    values = _values_in_doubt(context, classes)
    named = [value for value in values if _is_named_and_untried(context, value)]
    if named:
        groups = [[value] for value in named]
    else:
        sizes = {value.label: _next_size(context, context.known.group_size.get(value.label, 1)) for value in values}
        together = [value for value in values if sizes[value.label] > 1]
        size = min((sizes[value.label] for value in together), default=1)
        groups = [[value] for value in values if sizes[value.label] <= 1]
        groups += [together[start : start + size] for start in range(0, len(together), size)]
    for group in groups:
        for case_group in joint_cases(context, group, "alone", Rank.ESSENTIAL, context.bare):
            # its control need not be sent again: the group has the base request as well
            sent = case_group.cases[0].content in context.known.replies
            yield replace(case_group, cases=case_group.cases[1:]) if sent else case_group


def _values_in_doubt(context: PlanContext, classes: Iterable[FactorLevel]) -> list[FactorLevel]:
    """The values that were rejected in joint cases only."""
    values = [value for factor in factors(context, in_doubt=True) for value in factor.levels[1:]]
    values += [value for limit in limits_of(context) for value in ends(context, limit)]
    values += [factor_level(name, None) for name in context.contract.parameters]
    values += [*_listed_values(context), *classes]
    return list({value.label: value for value in values if value.label in context.known.in_doubt}.values())


def _is_named_and_untried(context: PlanContext, value: FactorLevel) -> bool:
    """Whether a refusal named a member of the value, which was not yet sent alone on the bare request."""
    alone = dumps(_without_absent({**context.bare, **value.patch})).encode()
    return bool(value.patch.keys() & context.known.named_in_refusals) and alone not in context.known.replies


def _next_size(context: PlanContext, size: int) -> int:
    """How many values go together next: half as many; one where they are few, or where many values are rejected."""
    return -(-size // 2) if size >= BISECTED_FROM and len(context.known.refused) < FEW else 1


def without_open_members(context: PlanContext) -> Iterator[CaseGroup]:
    """Rejected combinations that the contract leaves open, without the members because of which it does.

    Only then does a rejection say something: of values that are accepted one by one, and not together.
    """
    rejected = [x.case for x in context.known.replies.values() if x.refused and x.case.origin in COMBINING]
    for case in rejected:
        observes = any(membership.kind in {"overflow", "observe"} for membership in case.groups)
        if case.validity is Validity.UNSPECIFIED and isinstance(case.body, Mapping) and not observes:
            for body in _valid_reductions(context, case.body):
                yield CaseGroup("alone", Rank.NORMAL, (context.case(case.origin, body),))


def _valid_reductions(context: PlanContext, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A body without its unspecified members; where it is still not valid, without one more member each."""
    kept = {
        name: value for name, value in body.items() if name in context.bare or _is_valid_alone(context, name, value)
    }
    if context.validity_of(kept) is Validity.VALID:
        return [kept]
    reduced = [
        {name: value for name, value in kept.items() if name != left_out}
        for left_out in kept.keys() - context.bare.keys()
    ]
    valid = [candidate for candidate in reduced if context.validity_of(candidate) is Validity.VALID]
    return sorted(valid, key=dumps)[:MOST_REDUCED]


def _is_valid_alone(context: PlanContext, name: str, value: Any) -> bool:
    # stream_options is valid beside stream only, and goes where stream goes
    return name == "stream_options" or context.validity_alone({name: value}) is Validity.VALID


def value_alone(
    context: PlanContext,
    value: FactorLevel,
    *,
    rank: int,
    phase: str = "values",
    origin: str = "value",
    control: Mapping[str, Any] | None = None,
    channel: Mapping[str, Any] | None = None,
) -> CaseGroup:
    """A value with its control, which differs from it in this value only."""
    base = dict(context.base if control is None else control)
    if _multiplies_cost(context, value) and "max_tokens" in base:
        base["max_tokens"] = 1
    body = _without_absent({**base, **value.patch, **(channel or {})})
    if context.validity_alone(value.patch) is not Validity.VALID:
        groups = [part("observe", f"{row} {value.label}", "probe") for row in rows_of(context, value.patch)]
        return CaseGroup(phase, rank, (context.case("base", base), context.case(origin, body, *groups)))
    probe = context.case(origin, body, *accepts(context, value, _role(context, base, body)))
    return CaseGroup(phase, rank, (context.case("base", base, *accepts(context, value, "control")), probe))


def accepts(context: PlanContext, value: FactorLevel, role: str) -> list[Membership]:
    """A case's memberships in the groups on accepting each member of a value."""
    return [part("accept", f"{row} {value.label}", role) for row in rows_of(context, value.patch)]


def rows_of(context: PlanContext, patch: Mapping[str, Any]) -> Iterator[str]:
    """The rows on accepting the members of a patch, as far as the contract has them."""
    for name, value in patch.items():
        row = f"request.{name}.{'null' if value is None else 'accepts'}"
        if value is not ABSENT and row in context.rows:
            yield row


def limits_of(context: PlanContext) -> list[Limit]:
    """The ranges that bind a documented parameter which the target has not rejected altogether."""
    return [limit for limit in context.contract.limits if limit.binding and context.has(top(limit.parameter))]


def joint_cases(
    context: PlanContext, values: Iterable[FactorLevel], phase: str, rank: int, base: Mapping[str, Any] | None = None
) -> Iterator[CaseGroup]:
    """Many values in few joint cases. Accepted, one proves each of its values; rejected, none."""
    rest = list(values)
    while rest:
        joined: list[FactorLevel] = []
        for value in rest:
            taken = {name for other in joined for name in other.patch}
            if not taken & value.patch.keys() and context.validity_alone(_patch([*joined, value])) is Validity.VALID:
                joined.append(value)
        if not joined:
            return
        rest = [value for value in rest if value not in joined]
        yield _joint_case(context, joined, phase, rank, base or context.base)


def _joint_case(
    context: PlanContext, joined: list[FactorLevel], phase: str, rank: int, base: Mapping[str, Any]
) -> CaseGroup:
    members = {**base, **_patch(joined)}
    if any(_multiplies_cost(context, value) for value in joined) and "max_tokens" in members:
        members["max_tokens"] = 1
    body = _without_absent(members)
    role = _role(context, base, body) if len(joined) == 1 else "joint"
    control = [membership for value in joined for membership in accepts(context, value, "control")]
    joint = [membership for value in joined for membership in accepts(context, value, role)]
    return CaseGroup(phase, rank, (context.case("base", dict(base), *control), context.case("value", body, *joint)))


def _role(context: PlanContext, base: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """A probe where a rejection can only be for the value: on the bare request, where the body is surely valid."""
    alone = base.keys() <= context.bare.keys() and context.validity_of(body) is Validity.VALID
    return "probe" if alone else "joint"


def _multiplies_cost(context: PlanContext, value: FactorLevel) -> bool:
    """Whether a value asks for many choices, each of which may then have one token only."""
    counts = [count for name, count in value.patch.items() if context.traits(name).multiplies_cost]
    return max([count for count in counts if isinstance(count, int)], default=0) > MOST_CHOICES


def _echo_without_generation(context: PlanContext) -> Iterator[CaseGroup]:
    """Echo without generation scores the prompt: two values that mean this only together."""
    members = {"echo": True, "max_tokens": 0}
    if context.has(*members) and context.validity_alone(members) is Validity.VALID:
        yield CaseGroup("values", Rank.NORMAL, (context.case("value", context.body(members)),))


def _patch(levels: Iterable[FactorLevel]) -> dict[str, Any]:
    return {name: value for level in levels for name, value in level.patch.items()}


def _without_absent(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not ABSENT}


def _nulls(context: PlanContext) -> Iterator[FactorLevel]:
    """Documented nulls, except one that would lift the limit of tokens."""
    for name, parameter in context.contract.parameters.items():
        unlimited = name == "max_tokens" and context.contract.default(name) is None
        if parameter.nullable and context.has(name) and not unlimited:
            value = factor_level(name, None)
            if context.validity_alone(value.patch) is Validity.VALID:
                yield value


def _listed_values(context: PlanContext) -> Iterator[FactorLevel]:
    """Further values that examples and enums list, which are not combined."""
    for name, parameter in context.contract.parameters.items():
        listed = "enum" in parameter.schema or name in context.contract.examples
        if listed and context.has(name) and name not in {"model", "prompt"}:
            for value in sample_levels(context.contract, name)[:MOST_LISTED]:
                if context.validity_alone(value.patch) is Validity.VALID:
                    yield value


__all__ = [
    "accepts",
    "base_requests",
    "isolated_values",
    "joint_cases",
    "limits_of",
    "members_of_rows",
    "rows_of",
    "single_values",
    "value_alone",
    "without_open_members",
    "without_token_limit",
]  # fmt: skip
