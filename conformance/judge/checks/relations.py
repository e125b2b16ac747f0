"""Relations: requests that differ in one respect, which must not change the reply, or must change it in a known way."""

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
    misnumbered,
    not_comparable,
    texts,
    unchanged,
)
from conformance.judge.fixtures import choice, completion, example, group, plain, usage
from conformance.judge.near_ties import near_tie
from conformance.model import ENOUGH_REPLIES, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

COLD = {"temperature": 0}


def _pair(kind: str, roles: Sequence[str], answers: Sequence[str], copies: int = 1, finish: str = "length") -> Group:
    """A group of two roles with these texts; `finish` is the finish_reason of the first."""
    replies = [
        plain(completion(choice(text, finish=reason)), {**COLD, "user": role})
        for text, reason, role in zip(answers, (finish, "length"), roles, strict=True)
    ]
    return Group(kind, "example", {role: (reply,) * copies for role, reply in zip(roles, replies, strict=True)})


def _is_about_parameter(group: Group, context: CheckContext) -> bool:
    """Whether the group varies the parameter that the requirement names, if it names one."""
    return context.get("parameter") in {None, group.key.split(" ")[0]}


@check(
    "relations",
    Scope.GROUP,
    group="null",
    good=lambda: example(_pair("null", ("absent", "null"), (" 4", " 4"))),
    bad=lambda: example(_pair("null", ("absent", "null"), (" 4", " 5"), ENOUGH_REPLIES)),
)
def null_is_absent(group: Group, context: CheckContext) -> Findings:
    """A parameter that is null has the effect of an absent one.

    Typed clients send null for members that are not set; read as 0, false or the string "null" it changes the reply.

    Fix: treat null as absent before defaults are applied.
    """
    if _is_about_parameter(group, context):
        yield from unchanged(group, ("absent", "null"), context)


@check(
    "relations",
    Scope.GROUP,
    group="default",
    good=lambda: example(_pair("default", ("absent", "explicit"), (" 4", " 4"))),
    bad=lambda: example(_pair("default", ("absent", "explicit"), (" 4, 5", " 4"), ENOUGH_REPLIES)),
)
def default_is_explicit(group: Group, context: CheckContext) -> Findings:
    """A parameter that is absent has the effect of its documented default.

    Callers leave out parameters whose documented default they want; another default gives them another reply.

    Fix: take defaults from the document, not from the engine.
    """
    if not _is_about_parameter(group, context):
        return
    if group.all("joint") and not group.all("explicit"):
        # several defaults in one request: the same reply proves each of them, another one says nothing of this one
        findings = list(unchanged(group, ("joint", "absent"), context))
        if all(isinstance(finding, Satisfied) for finding in findings):
            yield from findings
        return
    yield from unchanged(group, ("explicit", "absent"), context)


@check(
    "relations",
    Scope.GROUP,
    group="spelling",
    good=lambda: example(_pair("spelling", ("usual", "unusual"), (" 4", " 4"))),
    bad=lambda: example(_pair("spelling", ("usual", "unusual"), (" 4", " 5"), ENOUGH_REPLIES)),
)
def spelling_changes_nothing(group: Group, context: CheckContext) -> Findings:
    """A body that is escaped, spaced or sent in another way has the effect of the usual one.

    Encoders differ between languages: one escapes what another writes as UTF-8, and some send bodies in chunks.

    Fix: use the values that a complete JSON parser returns, never the text of the body.
    """
    yield from unchanged(group, ("usual", "unusual"), context)


@check(
    "relations",
    Scope.GROUP,
    group="logprobs",
    good=lambda: example(_pair("logprobs", ("without", "with"), (" 4", " 4"))),
    bad=lambda: example(_pair("logprobs", ("without", "with"), (" 4", " Sure!"), ENOUGH_REPLIES)),
)
def logprobs_change_nothing(group: Group, context: CheckContext) -> Findings:
    """Asking for log probabilities does not change the text.

    Clients request them to understand a text; if they change the text, they explain another one.

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
    """Several prompts in one request get the texts that each gets alone.

    Callers batch for speed; with padding or state that leaks between prompts, a text depends on the other prompts.

    Fix: mask padding, and keep sampling state and limits per prompt.
    """
    for role in _single_roles(group):
        number = int(role[7:])  # of the prompt in the batch
        problem = not_comparable(group, "batch", role) or misnumbered(members(group, "batch"), context)
        if problem:
            yield problem
            continue

        for view, noun in ((texts, "text"), (finish_reasons, "finish_reason")):

            def of_prompt(x: Exchange, number: int = number, view: View = view) -> Mapping[int, object]:
                n, values = context.request(x).n, view(x)
                start = number * n if len(context.request(x).prompts) > 1 else 0
                return {index - start: value for index, value in values.items() if start <= index < start + n}

            yield from compare(group, (role, "batch"), of_prompt, f"{noun} of prompt {number}", context)


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
    """The usage of several prompts in one request is the sum of their usage alone.

    Clients split the cost of a batch among its prompts; counts of a single prompt make the others look free.

    Fix: add up prompt and completion tokens over all prompts and choices.
    """
    roles = _single_roles(group)
    if not_comparable(group, "batch", *roles) or not roles:
        return
    if len(roles) < len(context.request(members(group, "batch")[0]).prompts):
        yield Inconclusive("some prompt of the batch was not answered alone, so there is no sum")
        return
    alone = [members(group, role) for role in roles]
    batch = members(group, "batch")
    of_prompts = [count for replies in alone if (count := counted(replies[0], "prompt_tokens")) is not None]
    for x in batch:
        count = counted(x, "prompt_tokens")
        if count is not None and len(of_prompts) == len(roles):
            observed = f"prompt_tokens is {count} for the batch"
            total = f"{sum(of_prompts)} ({' + '.join(map(str, of_prompts))})"
            yield attribute_to(expect(count == sum(of_prompts), observed, total, "usage"), x.case.id)
    answers = [text for replies in alone for text in texts(replies[0]).values()]
    same = [x for x in batch if list(texts(x).values()) == answers]
    steady = all(constant(map(texts, replies)) for replies in alone)
    expected = _completion_tokens(replies[0] for replies in alone) if steady else None
    counts = [count for x in same if (count := counted(x, "completion_tokens")) is not None]
    if counts and expected is not None:
        sums, compared = [expected] * min(map(len, alone)), ("the prompts alone", "batch")
        yield compare_values(sums, counts, "completion_tokens", compared, case=batch[0].case.id)


def _completion_tokens(replies: Iterable[Exchange]) -> int | None:
    """The sum of completion_tokens; None where a reply does not report it."""
    total = 0
    for x in replies:
        count = counted(x, "completion_tokens")
        if count is None:
            return None
        total += count
    return total


def _single_roles(group: Group) -> list[str]:
    """The roles of the prompts that were sent alone, in the order of the batch."""
    single = (role for role in group.members if role.startswith("single-") and role[7:].isdecimal())
    return sorted(single, key=lambda role: int(role[7:]))


@check(
    "relations",
    Scope.GROUP,
    group="many",
    good=lambda: example(_many([" 4", " 4"])),
    bad=lambda: example(_many([" 4", " 5"], ENOUGH_REPLIES)),
)
def choices_agree_when_greedy(group: Group, context: CheckContext) -> Findings:
    """At temperature 0 all choices of a prompt have the text of a single choice.

    Choices differ by chance only; at temperature 0 a difference means that the state of one leaks into another.

    Fix: give each choice its own copy of the state after the prompt.
    """
    replies = (*members(group, "one"), *members(group, "many"))
    problem = not_comparable(group, "one", "many") or misnumbered(replies, context)
    if problem:
        yield problem
        return
    greedy = all(context.request(x).greedy for role in ("one", "many") for x in members(group, role))
    for index in members(group, "many")[0].choices:
        alone = [text for x in members(group, "one") if (text := _text_alone(x, index, group, context)) is not None]
        if not alone:
            continue
        many = [texts(x)[index] for x in members(group, "many") if index in x.choices]
        case = members(group, "many")[0].case.id
        if not any((*alone, *many)):
            yield Inconclusive("every text is empty, so there is nothing to compare")
            continue
        finding = compare_values(alone, many, "text", ("one", "many"), at=f"choice {index}", case=case, drawn=True)
        if isinstance(finding, Satisfied):
            yield finding
        elif not greedy:
            yield Inconclusive("texts may differ above temperature 0")
        elif tied := near_tie([members(group, "many"), members(group, "one")], index, context):
            yield Inconclusive(f"texts differ, as they may at a near tie: {tied}")
        else:
            yield finding


def _text_alone(x: Exchange, index: int, group: Group, context: CheckContext) -> str | None:
    """The text in a reply with one choice per prompt for the prompt of this choice among many."""
    number = index // context.request(members(group, "many")[0]).n
    return texts(x).get(number * context.request(x).n)


@check(
    "relations",
    Scope.GROUP,
    group="prefix",
    good=lambda: example(_pair("prefix", ("short", "long"), (" 4,", " 4, 5"))),
    bad=lambda: example(_pair("prefix", ("short", "long"), (" 6,", " 4, 5"), ENOUGH_REPLIES)),
)
def longer_limit_extends(group: Group, context: CheckContext) -> Findings:
    """A higher max_tokens continues the text that a lower one cut off, and does not change its beginning.

    Callers raise the limit to get the rest of a text; another beginning means that the limit influenced the text.

    Fix: use max_tokens only to end the generation.
    """

    def extends(first: str, second: str) -> bool:
        return first.startswith(second) or second.startswith(first)

    yield from compare(group, ("long", "short"), texts, "text", context, same=extends)


@check(
    "relations",
    Scope.GROUP,
    group="prefix",
    good=lambda: example(_pair("prefix", ("short", "long"), (" 4,", " 4, 5"))),
    bad=lambda: example(_pair("prefix", ("short", "long"), (" 4,", " 4, 5"), ENOUGH_REPLIES, finish="stop")),
)
def cut_text_finishes_with_length(group: Group, context: CheckContext) -> Findings:
    """A text that continues under a higher limit has the finish_reason `length`.

    With `stop` a caller takes half an answer for a complete one.

    Fix: report `length` whenever the limit ended the text, `stop` only if the model or a stop sequence did.
    """
    problem = not_comparable(group, "short", "long")
    if problem:
        yield problem
        return
    longs = members(group, "long")
    for index, model in longs[0].choices.items():
        wholes = [texts(x)[index] for x in longs if index in x.choices]
        shorts = [x for x in members(group, "short") if index in x.choices]
        cut = [x for x in shorts if _continues(texts(x)[index], wholes)]
        wrong = [x for x in cut if finish_reasons(x)[index] != context.length]
        if not cut:
            yield Inconclusive("the text does not continue under the higher limit")
        elif not wrong:
            yield Satisfied(f"choice {index}")
        else:
            observed, continued = contrast(texts(wrong[0])[index], model.text)
            reason = f"finish_reason is {show(finish_reasons(wrong[0])[index])} after {observed}"
            if min(len(shorts), len(wholes)) < ENOUGH_REPLIES:
                reason = f"{reason}, though a higher limit gives {continued}"
                yield Inconclusive(f"{reason}; needs {ENOUGH_REPLIES} replies of each", repeat=True)
            elif constant(wholes) and constant([texts(x)[index] for x in shorts]):
                flaky = len(wrong) < len(cut)
                message = f"{reason}; expected {show(context.length)}, as a higher limit gives {continued}"
                yield Violation(message, f"choice {index}", wrong[0].case.id, flaky=flaky)
            else:
                yield Inconclusive("the target is not deterministic: the text differs between replies to one request")


def _continues(text: str, wholes: Sequence[str]) -> bool:
    """Whether every text under the higher limit begins with this one and is longer."""
    return all(longer.startswith(text) and len(longer) > len(text) for longer in wholes)


def _batch(answers: Sequence[str], copies: int = 1, counts: tuple[int, int] = (8, 8)) -> Group:
    body = completion(*(choice(text, index) for index, text in enumerate(answers)), usage=usage(*counts))
    batch = plain(body, {**COLD, "prompt": ["1, 2, 3,", "a"]})
    first = plain(completion(choice(" 4"), usage=usage(4, 4)), COLD)
    second = plain(completion(choice(" b"), usage=usage(4, 4)), {**COLD, "prompt": "a"})
    return group("batch", "two", batch=[batch] * copies, single_0=[first] * copies, single_1=[second] * copies)


def _many(answers: Sequence[str], copies: int = 1) -> Group:
    single = plain(completion(choice(" 4")), COLD)
    many = plain(completion(*(choice(text, index) for index, text in enumerate(answers))), {**COLD, "n": len(answers)})
    return group("many", one=[single] * copies, many=[many] * copies)
