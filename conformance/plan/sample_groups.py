"""Groups of many replies: concurrent bursts, and the arms of a statistical comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.model import ENOUGH_REPLIES, RequestCase, Validity
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PROMPT, TOKENS_LONG, TOKENS_MANY, PlanContext, part
from conformance.plan.factors import IDS, SECOND_PROMPT, UNICODE, USAGE, allowed_members, most_alternatives
from conformance.plan.relations import SUFFIX

# Prompts that lead to different answers, and whose answers share few words.
PROMPTS: Final = (
    PROMPT, SECOND_PROMPT, "January, February, March,", "A, B, C, D,", "Paris is a city, and", "do re mi fa",
    "Monday, Tuesday,", "The cat sat on the",
)  # fmt: skip
REPLIES: Final = 24
FEW: Final = 2
SCORED, ALSO = 4, 2  # of every four of a burst, the third asks for log probabilities
# What the effect of a sampling parameter may be lost in: a stream of several prompts and choices, and a choice of the
# best candidates. The prompts are equal, so that all choices have one distribution.
SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (
    {**USAGE.patch, "prompt": [PROMPT, PROMPT], "n": 2},
    {"prompt": list(IDS), "suffix": SUFFIX, "n": 2, "best_of": 4},
)
# What a filter may be lost in as well: a draw of one token, and another temperature.
FILTERED: Final[tuple[Mapping[str, Any], ...]] = (*SETTINGS, {"max_tokens": 1, "n": 8}, {"temperature": 0.5, "n": 4})


def bursts(context: PlanContext) -> Iterator[CaseGroup]:
    """Bursts: prompts with distinguishable answers, each by itself, then all at the same moment, some streamed."""
    if "burst" not in context.kinds or not context.greedy:
        return
    wanted = PROMPTS if context.full else (PROMPT, UNICODE)
    bodies = [
        context.body({"prompt": prompt, **_channel(context, index), **_scored(context, index)})
        for index, prompt in enumerate(wanted)
    ]
    solo = [context.case("relation", body, part("burst", "prompts", f"solo-{n}")) for n, body in enumerate(bodies)]
    burst = [context.case("burst", body, part("burst", "prompts", f"burst-{n}")) for n, body in enumerate(bodies)]
    concurrent = CaseGroup("learned", Rank.ESSENTIAL, tuple(burst))
    if context.known.reply(solo[-1].content) is None:
        yield CaseGroup("values", Rank.NORMAL, tuple(solo), then=concurrent)
    else:
        yield concurrent


def burst_first(cases: tuple[RequestCase, ...]) -> tuple[tuple[RequestCase, ...], int]:
    """The cases of a phase with those of its burst first, and how many these are."""
    at_once = [case for case in cases if any(part.kind == "burst" and part.role[:5] == "burst" for part in case.groups)]
    return (*at_once, *(case for case in cases if case not in at_once)), len(at_once)


def _channel(context: PlanContext, index: int) -> dict[str, Any]:
    streams = context.full and index % 2 and context.has("stream") and not context.known.rejects({"stream": True})
    return {"stream": True} if streams else {}


def _scored(context: PlanContext, index: int) -> Mapping[str, Any]:
    """Log probabilities for some of a burst, which must be of their own tokens."""
    return allowed_members(context, {"logprobs": 1}) if context.full and index % SCORED == ALSO else {}


def sample_arms(context: PlanContext) -> Iterator[CaseGroup]:
    """Sample groups: many replies at each end of a sampling parameter whose effect some requirement compares."""
    for row in context.rows_on("arms") if context.full else ():
        name = str(row.params.get("parameter"))
        if context.has(name):
            yield from _both_arms(context, name)


def filtered_samples(context: PlanContext) -> Iterator[CaseGroup]:
    """One long reply for each sampling filter, with log probabilities of the tokens that it should have ruled out."""
    for row in context.contract.requirements:
        name = str(row.params.get("parameter"))
        if row.check != "filter_bounds_the_choice" or not context.has(name, "logprobs", "temperature"):
            continue
        value = context.number(name, *context.traits(name).bounding)
        members: dict[str, Any] = {
            name: value,
            "temperature": 1,
            "max_tokens": 2 * TOKENS_LONG,
            "logprobs": most_alternatives(context),
        }
        for setting in FILTERED if context.full else ({"n": 4},):
            body = context.body(allowed_members(context, {**members, **setting}))
            if value is not None and not context.barred(body) and context.validity_of(body) is Validity.VALID:
                yield CaseGroup("rows", Rank.NORMAL, (context.case("relation", body),))


def _both_arms(context: PlanContext, name: str) -> Iterator[CaseGroup]:
    ends = _ends(context, name)
    if ends is None:
        return
    if context.traits(name).acts_on_repetition:
        # many tokens, so that some repeat; at temperature 0 as well, where the same text at both ends is conclusive
        yield from _arms(context, name, ends, name, {"temperature": 1, "max_tokens": 3 * TOKENS_LONG}, REPLIES)
        if context.greedy:
            for index, setting in enumerate(({}, *SETTINGS)):
                members = allowed_members(context, {"max_tokens": TOKENS_MANY, **setting, "n": ENOUGH_REPLIES})
                replies = 1 if members.get("n") == ENOUGH_REPLIES else ENOUGH_REPLIES
                yield from _arms(context, f"{name} greedy {index}", ends, name, members, replies)
    else:
        few = {"temperature": context.number("temperature", 1.5, 1), "max_tokens": FEW}
        yield from _arms(context, name, ends, name, few, REPLIES)
        streamed = allowed_members(context, {**few, **SETTINGS[0], "n": REPLIES // 2})
        if len(streamed.get("prompt", "")) * streamed.get("n", 1) >= REPLIES:
            yield from _arms(context, f"{name} streamed", ends, name, streamed, 1)


def _arms(
    context: PlanContext, key: str, ends: tuple[float, float], name: str, common: Mapping[str, Any], replies: int
) -> Iterator[CaseGroup]:
    """`replies` choices at each end, in one request where the contract allows that `n`."""
    many = replies if context.has("n") and context.validity_alone({"n": replies}) is Validity.VALID else 1
    cases, copies = [], []
    for role, value in zip(("low", "high"), ends, strict=True):
        members = {**common, name: value, **({"n": many} if many > 1 and "n" not in common else {})}
        # log probabilities show how sure the model was, which a penalty has to overcome
        body = context.body(members, {"logprobs": most_alternatives(context)} if context.has("logprobs") else {})
        if not context.may_send(body):
            return
        for number in range(-(-replies // many)):
            cases.append(context.case("relation", body, part("arms", key, role)))
            copies.append(number)
    yield CaseGroup("rows", Rank.NORMAL, tuple(cases), tuple(copies))


def _ends(context: PlanContext, name: str) -> tuple[float, float] | None:
    """Values near both ends of a parameter that the contract surely allows."""
    low, high = context.traits(name).ends
    near_ends = context.number(name, *low), context.number(name, *high)
    return None if near_ends[0] is None or near_ends[1] is None else (near_ends[0], near_ends[1])


__all__ = ["PROMPTS", "burst_first", "bursts", "filtered_samples", "sample_arms"]
