"""Relations: requests that differ in something that must not matter, or that matters in a known way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.comparison import (
    View,
    attribute_to,
    compare,
    compare_values,
    constant,
    contrast,
    counted,
    finish_reasons,
    members,
    not_comparable,
    texts,
    unchanged,
)
from conformance.judge.fixtures import choice, completion, example, group, plain, usage
from conformance.judge.near_ties import near_tie
from conformance.model import ENOUGH_REPLIES, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

COLD = {"temperature": 0}


def _pair(kind: str, roles: Sequence[str], found: Sequence[str], times: int = 1, finish: str = "length") -> Group:
    """A group of two roles with these texts; the reason is that of the first."""
    reasons = (finish, "length")
    replies = [
        plain(completion(choice(text, finish=one)), {**COLD, "user": role})
        for text, one, role in zip(found, reasons, roles, strict=True)
    ]
    return Group(kind, "example", {role: (reply,) * times for role, reply in zip(roles, replies, strict=True)})


def _speaks_of(group: Group, context: CheckContext) -> bool:
    return context.get("parameter") in {None, group.key.split(" ")[0]}


@check(
    "relations",
    Scope.GROUP,
    group="null",
    good=lambda: example(_pair("null", ("absent", "null"), (" 4", " 4"))),
    bad=lambda: example(_pair("null", ("absent", "null"), (" 4", " 5"), ENOUGH_REPLIES)),
)
def null_is_absent(group: Group, context: CheckContext) -> Findings:
    """A parameter that is null counts as one that is absent.

    Typed clients send null for what was not set; read as 0, false or the text "null" it changes the answer.

    Fix: treat null as absence before defaults are applied.
    """
    if _speaks_of(group, context):
        yield from unchanged(group, ("absent", "null"), context)


@check(
    "relations",
    Scope.GROUP,
    group="default",
    good=lambda: example(_pair("default", ("absent", "explicit"), (" 4", " 4"))),
    bad=lambda: example(_pair("default", ("absent", "explicit"), (" 4, 5", " 4"), ENOUGH_REPLIES)),
)
def default_is_explicit(group: Group, context: CheckContext) -> Findings:
    """A parameter that is absent counts as its documented default.

    Callers leave out what the document says is the default anyway; another value at work surprises all of them.

    Fix: read defaults from the document, not from the engine.
    """
    if _speaks_of(group, context):
        yield from unchanged(group, ("explicit", "absent"), context)


@check(
    "relations",
    Scope.GROUP,
    group="logprobs",
    good=lambda: example(_pair("logprobs", ("without", "with"), (" 4", " 4"))),
    bad=lambda: example(_pair("logprobs", ("without", "with"), (" 4", " Sure!"), ENOUGH_REPLIES)),
)
def logprobs_change_nothing(group: Group, context: CheckContext) -> Findings:
    """Asking for log probabilities does not change the text.

    They are asked for to understand an answer; if they change it, they explain another one.

    Fix: route and sample the request as without them.
    """
    yield from unchanged(group, ("without", "with"), context)


@check(
    "relations",
    Scope.GROUP,
    group="batch",
    good=lambda: example(_batch((" 4", " b"))),
    bad=lambda: example(_batch((" 4", " c"), ENOUGH_REPLIES)),
)
def batch_is_singles(group: Group, context: CheckContext) -> Findings:
    """Several prompts at once get the texts that each gets alone.

    Batching is a matter of speed; padding or shared state that leaks into the text makes results depend on neighbours.

    Fix: mask padding, and keep sampling and limits per prompt.
    """
    for role in _singles(group):
        place = int(role[7:])
        problem = not_comparable(group, "batch", role)
        if problem:
            yield problem
            continue

        for view, noun in ((texts, "text"), (finish_reasons, "finish_reason")):

            def part(x: Exchange, place: int = place, view: View = view) -> Mapping[int, object]:
                n, found = context.request(x).n, view(x)
                start = place * n if len(context.request(x).prompts) > 1 else 0
                return {index - start: value for index, value in found.items() if start <= index < start + n}

            yield from compare(group, (role, "batch"), part, f"{noun} of prompt {place}", context)


@check(
    "relations",
    Scope.GROUP,
    group="batch",
    good=lambda: example(_batch((" 4", " b"), counts=(8, 8))),
    bad=lambda: (
        example(_batch((" 4", " b"), counts=(4, 8))) + example(_batch((" 4", " b"), ENOUGH_REPLIES, counts=(8, 4)))
    ),
)
def batch_usage_is_the_sum(group: Group, context: CheckContext) -> Findings:
    """The usage of several prompts at once is the sum of what each costs alone.

    Costs are shared out among the prompts of a batch; counts of one prompt only make the rest look free.

    Fix: add up prompt and completion tokens over all prompts and choices.
    """
    roles = _singles(group)
    if not_comparable(group, "batch", *roles) or not roles:
        return
    if len(roles) < len(context.request(members(group, "batch")[0]).prompts):
        yield Inconclusive("not each prompt of the batch was answered alone, so there is no sum")
        return
    alone = [members(group, role) for role in roles]
    batch = members(group, "batch")
    prompts = [counted(replies[0], "prompt_tokens") for replies in alone]
    told = [counted(x, "prompt_tokens") for x in batch]
    known = [one for one in prompts if one is not None]
    for x, one in zip(batch, told, strict=True):
        if one is not None and len(known) == len(roles):
            fits = one == sum(known)
            told_whole = f"prompt_tokens is {one} for the batch"
            yield attribute_to(expect(fits, told_whole, " + ".join(map(str, known)), "usage"), x.case.id)
    answers = [text for replies in alone for text in texts(replies[0]).values()]
    same = [x for x in batch if list(texts(x).values()) == answers]
    sums = [_sum(replies[0] for replies in alone)] if all(constant(map(texts, replies)) for replies in alone) else []
    counts = [one for one in (counted(x, "completion_tokens") for x in same) if one is not None]
    if counts and sums and sums[0] is not None:
        first = sums * min(map(len, alone))
        yield compare_values(first, counts, "completion_tokens", ("the prompts alone", "batch"), case=batch[0].case.id)


def _sum(replies: Iterable[Exchange]) -> int | None:
    total = 0
    for x in replies:
        one = counted(x, "completion_tokens")
        if one is None:
            return None
        total += one
    return total


def _singles(group: Group) -> list[str]:
    named = (role for role in group.members if role.startswith("single-") and role[7:].isdecimal())
    return sorted(named, key=lambda role: int(role[7:]))


@check(
    "relations",
    Scope.GROUP,
    group="many",
    good=lambda: example(_many([" 4", " 4"])),
    bad=lambda: example(_many([" 4", " 5"], ENOUGH_REPLIES)),
)
def choices_agree_when_greedy(group: Group, context: CheckContext) -> Findings:
    """At temperature 0 all choices of a prompt have the text that one alone has.

    Several choices share everything but chance; at temperature 0 a difference is one choice's state in another.

    Fix: give each choice its own copy of the state behind the prompt.
    """
    problem = not_comparable(group, "one", "many")
    if problem:
        yield problem
        return
    greedy = all(context.request(x).greedy for role in ("one", "many") for x in members(group, role))
    for index in members(group, "many")[0].choices:
        alone = [text for x in members(group, "one") if (text := _same_prompt(x, index, group, context)) is not None]
        if not alone:
            continue
        found = [texts(x)[index] for x in members(group, "many") if index in x.choices]
        case = members(group, "many")[0].case.id
        if not any((*alone, *found)):
            yield Inconclusive("every text is empty, so there is nothing to compare")
            continue
        finding = compare_values(alone, found, "text", ("one", "many"), at=f"choice {index}", case=case, drawn=True)
        if isinstance(finding, Satisfied):
            yield finding
        elif not greedy:
            yield Inconclusive("texts may differ above temperature 0")
        elif tied := near_tie([members(group, "many"), members(group, "one")], index, context):
            yield Inconclusive(f"texts differ, as they may at a near tie: {tied}")
        else:
            yield finding


def _same_prompt(x: Exchange, index: int, group: Group, context: CheckContext) -> str | None:
    """The text that answers alone the prompt which a choice of many answers."""
    place = index // context.request(members(group, "many")[0]).n
    return texts(x).get(place * context.request(x).n)


@check(
    "relations",
    Scope.GROUP,
    group="prefix",
    good=lambda: example(_pair("prefix", ("short", "long"), (" 4,", " 4, 5"))),
    bad=lambda: example(_pair("prefix", ("short", "long"), (" 6,", " 4, 5"), ENOUGH_REPLIES)),
)
def longer_limit_extends(group: Group, context: CheckContext) -> Findings:
    """A higher max_tokens continues the text that a lower one cut, and changes nothing before.

    Callers raise the limit to read on; another beginning means the limit took part in the answer.

    Fix: use max_tokens for nothing but the end of the generation.
    """

    def extends(one: str, other: str) -> bool:
        return one.startswith(other) or other.startswith(one)

    yield from compare(group, ("long", "short"), texts, "text", context, same=extends)


@check(
    "relations",
    Scope.GROUP,
    group="prefix",
    good=lambda: example(_pair("prefix", ("short", "long"), (" 4,", " 4, 5"))),
    bad=lambda: example(_pair("prefix", ("short", "long"), (" 4,", " 4, 5"), ENOUGH_REPLIES, finish="stop")),
)
def cut_text_finishes_with_length(group: Group, context: CheckContext) -> Findings:
    """A text that goes on under a higher limit was finished by `length`.

    With `stop` a caller takes half an answer for a whole one.

    Fix: report `length` whenever the limit ended the text, `stop` only where the model or a stop sequence did.
    """
    problem = not_comparable(group, "short", "long")
    if problem:
        yield problem
        return
    longs = members(group, "long")
    for index, model in longs[0].choices.items():
        wholes = [texts(x)[index] for x in longs if index in x.choices]
        shorts = [x for x in members(group, "short") if index in x.choices]
        cut = [x for x in shorts if _goes_on(texts(x)[index], wholes)]
        wrong = [x for x in cut if finish_reasons(x)[index] != context.length]
        if not cut:
            yield Inconclusive("the text does not go on under the higher limit")
        elif not wrong:
            yield Satisfied(f"choice {index}")
        else:
            observed, whole = contrast(texts(wrong[0])[index], model.text)
            told = f"finish_reason is {show(finish_reasons(wrong[0])[index])} after {observed}"
            if min(len(shorts), len(wholes)) < ENOUGH_REPLIES:
                yield Inconclusive(f"{told}, though a higher limit gives {whole}; more replies would tell", repeat=True)
            elif constant(wholes) and constant([texts(x)[index] for x in shorts]):
                flaky = len(wrong) < len(cut)
                message = f"{told}; expected {show(context.length)}, as a higher limit gives {whole}"
                yield Violation(message, f"choice {index}", wrong[0].case.id, flaky=flaky)
            else:
                yield Inconclusive("the target is not deterministic: the text differs between replies to one request")


def _goes_on(text: str, wholes: Sequence[str]) -> bool:
    return all(whole.startswith(text) and len(whole) > len(text) for whole in wholes)


def _batch(found: Sequence[str], times: int = 1, counts: tuple[int, int] = (8, 8)) -> Group:
    whole = completion(*(choice(text, index) for index, text in enumerate(found)), usage=usage(*counts))
    batch = plain(whole, {**COLD, "prompt": ["1, 2, 3,", "a"]})
    first = plain(completion(choice(" 4"), usage=usage(4, 4)), COLD)
    second = plain(completion(choice(" b"), usage=usage(4, 4)), {**COLD, "prompt": "a"})
    return group("batch", "two", batch=[batch] * times, single_0=[first] * times, single_1=[second] * times)


def _many(found: Sequence[str], times: int = 1) -> Group:
    one = plain(completion(choice(" 4")), COLD)
    many = plain(completion(*(choice(text, index) for index, text in enumerate(found))), {**COLD, "n": len(found)})
    return group("many", one=[one] * times, many=[many] * times)
