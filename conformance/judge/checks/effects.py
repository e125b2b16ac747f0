"""Parameters whose effect a reply must show: seed, temperature, narrow sampling, suffix, ignore_eos, service tier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.logprobs import unfiltered_choices
from conformance.judge.checks.logprobs_text import prompt_of
from conformance.judge.comparison import (
    attribute_to,
    commonest,
    compare,
    contrast,
    counted,
    members,
    not_comparable,
    texts,
)
from conformance.judge.fixtures import choice, completion, example, group, plain, stream, usage
from conformance.judge.near_ties import near_tie
from conformance.judge.token_text import echoed_length, repeats_itself
from conformance.model import ENOUGH_REPLIES, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.parameter_traits import Role

SEEDED = {"temperature": 1, "seed": 7}
LONG_SUFFIX = 4
"""Characters from which a text ends with the suffix by chance hardly ever. A choice."""
AGREED = 3
"""More than one of three replies must agree, where repeatability is promised as best effort. A choice: with a third or
fewer in agreement no caller could rely on it."""


def repeats(group: Group, roles: Sequence[str], because: str, context: CheckContext, *, promised: bool) -> Findings:
    """Whether replies to the same request have the same text: most of them, or any two where no more is `promised`."""
    problem = not_comparable(group, *roles)
    if problem:
        yield problem
        return
    replies = [tuple(texts(x).items()) for role in roles for x in members(group, role)]
    if not any(text for reply in replies for _, text in reply):
        yield Inconclusive("every text is empty, so there is nothing to compare")
        return
    commonest_reply, count = commonest(replies)
    other = next((reply for reply in replies if reply != commonest_reply), commonest_reply)
    observed, expected = contrast("".join(text for _, text in other), "".join(text for _, text in commonest_reply))
    if count == len(replies):
        yield Satisfied()
    elif len(replies) < 2 * ENOUGH_REPLIES:
        difference = f"one request returned {observed} and {expected}, {because}"
        yield Inconclusive(f"{difference}, in {len(replies)} replies; {2 * ENOUGH_REPLIES} are needed", repeat=True)
    elif tie := _near_tie_in_all([members(group, role) for role in roles], context):
        yield Inconclusive(f"texts differ, as they may at a near tie: {tie}")
    elif count * AGREED > len(replies) if promised else count > 1:
        yield Inconclusive(f"the target is not deterministic: {count} of {len(replies)} replies agree, {because}")
    else:
        difference = f"{len(set(replies))} different texts in {len(replies)} replies, such as {observed} and {expected}"
        yield Violation(f"{difference}; expected one text, {because}")


def _near_tie_in_all(sides: Sequence[Sequence[Exchange]], context: CheckContext) -> str:
    """The first near tie, if each choice whose texts differ has one; else empty."""
    replies = [texts(x) for side in sides for x in side]
    different = [index for index in replies[0] if len({reply.get(index) for reply in replies}) > 1]
    ties = [near_tie(sides, index, context) for index in different]
    return ties[0] if ties and all(ties) else ""


@check(
    "effects",
    Scope.GROUP,
    group="seed",
    good=lambda: example(_draws("seed", [" 4", " 4"])),
    bad=lambda: (
        example(_draws("seed", [" 4", " 5", " 6", " 7", " 8", " 9"]))
        + example(
            group(
                "seed",
                first=[plain(completion(choice(" 4")), SEEDED)] * ENOUGH_REPLIES,
                second=[stream(completion(choice(text)), request=SEEDED) for text in (" 5", " 6", " 7")],
            )
        )
    ),
)
def seed_repeats(group: Group, context: CheckContext) -> Findings:
    """A seed has an effect: of requests with the same seed and parameters, at least two have the same text.

    Tests and evaluations are repeated with their seed; where it is ignored, no two runs can be compared.

    Fix: seed the sampler of each request, and of each choice by its index.
    """
    streamed = [{context.request(x).stream for x in group.all(role)} for role in ("first", "second")]
    if streamed[0] == streamed[1]:
        yield from repeats(group, ("first", "second"), "as the seed is the same", context, promised=False)
        return
    for finding in compare(group, ("first", "second"), texts, "text with the same seed", context, exact=True):
        if isinstance(finding, Violation) and finding.steady:
            reason = "a seed repeats a text for the same parameters, and `stream` is one of them"
            yield Inconclusive(f"{reason}; {finding.message}")
        else:
            yield finding


@check(
    "relations",
    Scope.GROUP,
    group="repeat",
    good=lambda: example(_draws("repeat", [" 4", " 4"])),
    bad=lambda: example(_draws("repeat", [" 4", " 5", " 6", " 7", " 8", " 9"])),
)
def greedy_repeats(group: Group, context: CheckContext) -> Findings:
    """The same request at temperature 0 gives the same text.

    Caches, tests and evaluations rely on temperature 0 being repeatable.

    Fix: take the likeliest token at temperature 0 instead of dividing by a small number.
    """
    if all(context.request(x).greedy for role in ("first", "second") for x in members(group, role)):
        yield from repeats(group, ("first", "second"), "as temperature is 0", context, promised=True)
    else:
        yield Inconclusive("the requests do not have temperature 0")


@check(
    "effects",
    Scope.GROUP,
    group="narrow",
    good=lambda: example(_narrow([" 4, 5"])),
    bad=lambda: example(_narrow([" 6", " 7", " 8"])),
)
def narrow_sampling_is_greedy(group: Group, context: CheckContext) -> Findings:
    """Sampling that is narrowed to the likeliest token gives the text of temperature 0.

    Callers who cannot set temperature 0 narrow top_p or top_k instead; where that is ignored, texts stay random.

    Fix: apply top_k and top_p to the distribution that is drawn from, and keep at least one token.
    """
    yield from compare(group, ("greedy", "narrow"), texts, "text", context, exact=True)


@check(
    "effects",
    Scope.GROUP,
    group="suffix",
    good=lambda: example(_suffix(" 4, 5", 9)) + example(_suffix(" and", 4)),
    bad=lambda: example(_suffix(" 4, 5", 4)) + example(_suffix(" 4, 5 6, 7", 9)),
)
def suffix_is_used(group: Group, context: CheckContext) -> Findings:
    """A suffix that is accepted has an effect: the text or the number of prompt tokens differs from that without it.

    Editors insert text between a prefix and a suffix; a server that ignores the suffix, or appends it to the text,
    writes it a second time.

    Fix: pass the suffix to a model that can insert, and return only what it inserts, or refuse it with a clear 4xx.
    """
    problem = not_comparable(group, "without", "with")
    if problem:
        yield problem
        return
    if appended := _with_suffix_behind(members(group, "with"), context):
        yield appended
        return
    sides = [
        [(dict(texts(x)), counted(x, "prompt_tokens")) for x in members(group, role)] for role in ("without", "with")
    ]
    if not any(without == reply for without in sides[0] for reply in sides[1]):
        yield Satisfied()
    elif not any(map(is_informative, _generated_texts((*members(group, "without"), *members(group, "with")), context))):
        yield Inconclusive("the texts are empty or one piece repeated, as they may be with any suffix")
    elif min(map(len, sides)) < ENOUGH_REPLIES:
        yield Inconclusive(_same_text(sides[1][0]), repeat=True)
    elif all(reply == sides[0][0] for side in sides for reply in side):
        yield Violation(f"{_same_text(sides[1][0])} each time; expected an effect of the suffix, or a 4xx")
    else:
        yield Inconclusive("the target is not deterministic: texts with and without a suffix overlap")


def _same_text(reply: tuple[Mapping[int, str], int | None]) -> str:
    """What replies with and without a suffix have in common."""
    answers, prompt_tokens = reply
    counts = "" if prompt_tokens is None else f", and prompt_tokens is {prompt_tokens}"
    return f"the text is {show(' / '.join(answers.values()))}{counts}, with and without a suffix"


def _with_suffix_behind(replies: Sequence[Exchange], context: CheckContext) -> Violation | None:
    """The violation where the suffix stands behind each text that the limit ended; None where it does not.

    A model may write the suffix itself, but the limit would end its text there only by chance.
    """
    cut = [
        (x, answer.text, suffix)
        for x in replies
        if isinstance(suffix := context.request(x).get("suffix"), str) and len(suffix.strip()) >= LONG_SUFFIX
        for answer in x.choices.values()
        if answer.finish_reason == context.length
    ]
    if not cut or not all(text.endswith(suffix) for _, text, suffix in cut):
        return None
    x, text, suffix = cut[0]
    observed = f"the text ends with the suffix {show(suffix)}: {show(text[-60:])}, though the limit ended it"
    return Violation(f"{observed}; expected only what stands before it", case=x.case.id)


@check(
    "effects",
    Scope.SUCCESS,
    expected_when=lambda request, context: (
        request.get(context.contract.by_role(Role.IGNORES_END)) is True
        and not request.stops
        and request.max_tokens != 0
        and not request.get("response_format")
    ),
    good=lambda: example(plain(completion(choice()), {"endless": True})),
    bad=lambda: example(plain(completion(choice(finish="stop")), {"endless": True})),
)
def ignore_eos_goes_on(x: Exchange, context: CheckContext) -> Findings:
    """With `ignore_eos` a text does not end before its limit.

    Load tests request texts of an exact length; one that ends earlier falsifies their figures.

    Fix: ban the tokens that end a text during the whole generation.
    """
    request = context.request(x)
    name = context.contract.by_role(Role.IGNORES_END)
    if request.get(name) is not True or request.stops or request.get("response_format"):
        return
    for answer in unfiltered_choices(x):
        observed = f"finish_reason is {show(answer.finish_reason)} with {name}"
        yield expect(answer.finish_reason != context.stop, observed, show(context.length), answer.at)


@check(
    "effects",
    Scope.GROUP,
    group="tier",
    good=lambda: example(_tier("flex")) + example(_tier("default", request="auto")),
    bad=lambda: example(_tier("default")) + example(_tier(None)),
)
def tier_is_reported(group: Group, context: CheckContext) -> Findings:
    """A reply names the service tier that served it: the requested one, or the one that `auto` selected.

    Prices and limits depend on the tier; without it a caller cannot check the bill.

    Fix: copy the tier that the scheduler used into `service_tier`.
    """
    problem = not_comparable(group, "probe")
    if problem:
        yield problem
        return
    member = context.contract.by_role(Role.REPORTED)
    for x in members(group, "probe"):
        requested = context.request(x).get(member)
        if not isinstance(requested, str):
            continue
        tiers = [tier for document in x.documents if isinstance(tier := _member(document.value, member), str)]
        allowed: Sequence[Any] = context.get("auto", ()) if requested == "auto" else (requested,)
        observed = f"{member} is {show(tiers[-1])}" if tiers else f"{member} is missing"
        reported = bool(tiers) and (not allowed or tiers[-1] in allowed)
        expected = " or ".join(map(show, allowed)) or "the tier that served it"
        yield attribute_to(expect(reported, f"{observed} for {show(requested)}", expected), x.case.id)


def _generated_texts(replies: Iterable[Exchange], context: CheckContext) -> Iterator[str]:
    """The texts of these replies without the echo of their prompts."""
    for x in replies:
        request = context.request(x)
        for index, text in texts(x).items():
            prompt = prompt_of(request, index) if request.echo else ""
            yield text[echoed_length(text, prompt) or 0 :] if isinstance(prompt, str) else text


def is_informative(text: str) -> bool:
    """Whether another text would have been likely: this one is neither empty nor one piece repeated."""
    return bool(text.strip()) and not repeats_itself(text)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _draws(kind: str, drawn: Sequence[str]) -> Group:
    request = {"temperature": 0} if kind == "repeat" else SEEDED
    replies = [plain(completion(choice(text)), request) for text in drawn]
    half = len(replies) // 2
    return group(kind, first=replies[:half], second=replies[half:])


def _narrow(drawn: Sequence[str]) -> Group:
    narrow = [plain(completion(choice(text)), {"temperature": 1, "top_p": 0.001}) for text in drawn]
    greedy = plain(completion(choice()), {"temperature": 0})
    return group("narrow", greedy=[greedy] * len(drawn), narrow=narrow)


def _suffix(text: str, tokens: int) -> Group:
    alone = plain(completion(choice(), usage=usage(4, 4)), {"temperature": 0})
    between = plain(completion(choice(text), usage=usage(tokens, 4)), {"temperature": 0, "suffix": " 6, 7"})
    return Group("suffix", "example", {"without": (alone,) * ENOUGH_REPLIES, "with": (between,) * ENOUGH_REPLIES})


def _tier(tier: str | None, request: str = "flex") -> Group:
    return group("tier", probe=plain(completion(choice(), tier=tier), {"tier": request}))
