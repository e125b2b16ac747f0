"""Concurrency: requests that run at the same time get their own answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.comparison import constant, contrast, counted, members, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, plain, response, usage
from conformance.model import ENOUGH_REPLIES, Ending, Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

Replies = tuple[Exchange, ...]

_WORD: Final = re.compile(r"\w{3,}")
RUN: Final = 2  # consecutive words of another answer. A choice: single words occur by chance


@check(
    "concurrency",
    Scope.GROUP,
    group="burst",
    good=lambda: example(_burst(" one uno", " two due dos deux")),
    bad=lambda: (
        example(_burst(" two due dos deux", " one uno", copies=ENOUGH_REPLIES))
        + example(_burst(" one uno", " two due dos deux", tokens=9))
        + example(_burst(" one due dos deux", " two due dos deux", copies=ENOUGH_REPLIES))
    ),
)
def burst_does_not_mix(group: Group, context: CheckContext) -> Findings:
    """A request that runs beside others gets its own answer, not theirs or parts of theirs.

    An answer to another request is wrong, and it shows one user's text to another.

    Fix: key all state of a generation by its request: slots, caches, detokenisers, output queues.
    """
    numbers = _numbers(group)
    if not numbers:
        return
    solo = {number: members(group, f"solo-{number}") for number in numbers}
    if not any(solo.values()):
        yield Inconclusive("no request of the burst was answered alone")
        return
    foreign = _foreign_words(group, solo, context)
    for number in numbers:
        problem = not_comparable(group, f"burst-{number}", f"solo-{number}")
        if problem:
            yield problem
            continue
        others = {other: replies for other, replies in solo.items() if other != number and replies}
        for x in members(group, f"burst-{number}"):
            yield _compared_with_solo(x, solo[number], others, foreign.get(id(x), ""))


def _numbers(group: Group) -> list[str]:
    return sorted(role[6:] for role in group.members if role.startswith("burst-"))


@check(
    "concurrency",
    Scope.GROUP,
    group="burst",
    good=lambda: example(_burst(" one uno", " two due dos deux")),
    bad=lambda: example(group("burst", beside=_cut(), alone=plain(completion(choice())))),
)
def complete_beside_others(group: Group, context: CheckContext) -> Findings:
    """A response that is complete alone is complete while other requests are in progress.

    A server that breaks one response off to begin another loses replies as soon as it has two users.

    Fix: queue what cannot run at once, or refuse it with 429 before the response begins.
    """
    pairs = [(f"burst-{number}", f"solo-{number}") for number in _numbers(group)]
    for burst_role, alone_role in pairs or [("beside", "alone")]:
        if not any(x.ending is Ending.COMPLETE for x in group.all(alone_role)):
            continue
        for x in group.all(burst_role):
            if x.status is not None and x.ending in {Ending.TRUNCATED, Ending.TIMED_OUT}:
                observed = f"{x.ending.value.replace('_', ' ')} beside other requests ({show(x.last.error, 120)})"
                yield Violation(f"{observed}; expected a complete response, as alone", case=x.case.id)
            elif x.ending is Ending.COMPLETE:
                yield Satisfied()


def _cut() -> Exchange:
    return response(b'{"id": "cmpl', ending=Ending.TRUNCATED, error="peer closed the connection")


def _compared_with_solo(
    x: Exchange, own_replies: Replies, others: Mapping[str, Replies], foreign_words: str
) -> Finding:
    """The finding on one reply of the burst, beside the replies to its request and to the others alone."""
    prompt_tokens, alone = counted(x, "prompt_tokens"), counted(own_replies[0], "prompt_tokens")
    if prompt_tokens is not None and alone is not None and prompt_tokens != alone:
        return Violation(
            f"prompt_tokens is {prompt_tokens} in a burst; expected {alone} as alone", "usage", case=x.case.id
        )
    expected_texts, answer = [texts(reply) for reply in own_replies], texts(x)
    if answer in expected_texts:
        return Satisfied()
    observed, expected = contrast(_joined(answer), _joined(expected_texts[0]))
    other_texts = {number: texts(replies[0]) for number, replies in others.items()}
    swapped_with = [number for number, text in other_texts.items() if text == answer and any(answer.values())]
    if swapped_with and len(own_replies) >= ENOUGH_REPLIES and constant(expected_texts):
        difference = f"the text is {observed}, that of request {swapped_with[0]} of the burst"
        return Violation(f"{difference}; expected {expected} as each time alone", case=x.case.id)
    lost = not any(answer.values()) and all(any(text.values()) for text in expected_texts)
    if not foreign_words and not lost and not swapped_with:
        difference = f"{observed} in a burst, {expected} alone, nothing from other requests"
        return Inconclusive(f"the target is not deterministic: {difference}")
    if len(own_replies) < ENOUGH_REPLIES:
        reason = f"the text is {observed} in a burst, {expected} alone"
        return Inconclusive(f"{reason}, in {len(own_replies)} replies; {ENOUGH_REPLIES} are needed", repeat=True)
    if constant(expected_texts):
        source = f" with {show(foreign_words)} of another request of the burst" if foreign_words else ""
        message = f"the text is {observed}{source}; expected {expected} as each time alone"
        return Violation(message, case=x.case.id)
    return Inconclusive("the target is not deterministic: the text differs between replies to one request")


def _foreign_words(group: Group, solo: Mapping[str, Replies], context: CheckContext) -> dict[int, str]:
    """The words in each reply of the burst, by its `id()`, that are another's; none where chance explains them.

    Near ties are decided differently under load, and the text that follows may contain any word. So a mix-up counts
    only where it shows in several replies, in consecutive words of another request's answer, and where no reply of the
    burst has a new word that occurs in no answer at all.
    """
    foreign: dict[int, str] = {}
    replies_with_foreign_words = 0
    for number, own_replies in solo.items():
        others = [_joined(texts(replies[0])) for other, replies in solo.items() if other != number and replies]
        for x in members(group, f"burst-{number}") if own_replies else ():
            prompt = " ".join(prompt for prompt in context.request(x).prompts if isinstance(prompt, str))
            words = _WORD.findall(_joined(texts(x)))
            known_text = " ".join((*(_joined(texts(reply)) for reply in own_replies), prompt))
            new = [word for word in words if word not in known_text]
            if not all(any(word in text for text in others) for word in new):
                return {}
            if run := _first_foreign_run(words, known_text, others):
                foreign[id(x)] = run
                replies_with_foreign_words += 1
    unconfirmed = all(len(own_replies) < ENOUGH_REPLIES for own_replies in solo.values())
    return foreign if unconfirmed or replies_with_foreign_words >= ENOUGH_REPLIES else {}


def _first_foreign_run(words: list[str], known: str, others: Iterable[str]) -> str:
    """The first consecutive words that are consecutive in another answer as well, and do not occur in its own."""
    sequences = [" ".join(_WORD.findall(text)) for text in others]
    for start in range(len(words) - RUN + 1):
        run = words[start : start + RUN]
        if not any(word in known for word in run) and any(" ".join(run) in sequence for sequence in sequences):
            return " ".join(run)
    return ""


def _joined(choices: Mapping[int, str]) -> str:
    return " ".join(choices.values())


def _burst(first: str, second: str, tokens: int = 4, copies: int = 1) -> Group:
    def reply(text: str, prompt: str, count: int = 4) -> Exchange:
        return plain(completion(choice(text), usage=usage(count, 4)), {"temperature": 0, "prompt": prompt})

    return group(
        "burst",
        solo_0=[reply(" one uno", "1")] * copies,
        solo_1=[reply(" two due dos deux", "2")] * copies,
        burst_0=[reply(first, "1", tokens)] * copies,
        burst_1=[reply(second, "2")] * copies,
    )
