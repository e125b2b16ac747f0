"""Concurrency: requests that run at once get their own answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.comparison import constant, contrast, counted, members, not_comparable, texts
from conformance.judge.fixtures import choice, completion, example, group, plain, usage
from conformance.model import ENOUGH_REPLIES, Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Exchange, Group

Replies = tuple[Exchange, ...]

_WORD: Final = re.compile(r"\w{3,}")
RUN: Final = 2  # words of another answer, one after the other: single ones turn up by chance


@check(
    "concurrency",
    Scope.GROUP,
    group="burst",
    good=lambda: example(_burst(" one uno", " two due dos deux")),
    bad=lambda: (
        example(_burst(" two due dos deux", " one uno", times=ENOUGH_REPLIES))
        + example(_burst(" one uno", " two due dos deux", tokens=9))
        + example(_burst(" one due dos deux", " two due dos deux", times=ENOUGH_REPLIES))
    ),
)
def burst_does_not_mix(group: Group, context: CheckContext) -> Findings:
    """A request that runs beside others gets its own answer, not theirs or parts of theirs.

    An answer under another request is wrong and, worse, somebody else's.

    Fix: key all state of a generation by its request: slots, caches, detokenisers, output queues.
    """
    places = sorted(role[6:] for role in group.members if role.startswith("burst-"))
    solo = {place: members(group, f"solo-{place}") for place in places}
    if not any(solo.values()):
        yield Inconclusive("no request of the burst was answered alone")
        return
    mixed = _mixed(group, solo, context)
    for place in places:
        problem = not_comparable(group, f"burst-{place}", f"solo-{place}")
        if problem:
            yield problem
            continue
        others = {other: replies for other, replies in solo.items() if other != place and replies}
        for x in members(group, f"burst-{place}"):
            yield _judged(x, solo[place], others, mixed.get(id(x), ""))


def _judged(x: Exchange, own: Replies, others: Mapping[str, Replies], strange: str) -> Finding:
    told, alone = counted(x, "prompt_tokens"), counted(own[0], "prompt_tokens")
    if told is not None and alone is not None and told != alone:
        return Violation(f"prompt_tokens is {told} in a burst; expected {alone} as alone", "usage", x.case.id)
    mine, found = [texts(one) for one in own], texts(x)
    if found in mine:
        return Satisfied()
    foreign = {place: texts(replies[0]) for place, replies in others.items()}
    observed, expected = contrast(_joined(found), _joined(mine[0]))
    taken = [place for place, text in foreign.items() if text == found and text not in mine and any(found.values())]
    if taken and len(own) >= ENOUGH_REPLIES and constant(mine):
        told_text = f"the text is {observed}, that of request {taken[0]} of the burst"
        return Violation(f"{told_text}; expected {expected} as each time alone", "", x.case.id)
    lost = not any(found.values()) and all(any(one.values()) for one in mine)
    if not strange and not lost and not taken:
        return Inconclusive(
            f"the target is not deterministic: {observed} in a burst, {expected} alone, nothing from others"
        )
    if len(own) < ENOUGH_REPLIES:
        reason = f"the text is {observed} in a burst, {expected} alone"
        return Inconclusive(f"{reason}; {ENOUGH_REPLIES} replies alone would tell", repeat=True)
    if constant(mine):
        whose = f" with {show(strange)} of another request of the burst" if strange else ""
        message = f"the text is {observed}{whose}; expected {expected} as each time alone"
        return Violation(message, "", x.case.id)
    return Inconclusive("the target is not deterministic: the text differs between replies to one request")


def _mixed(group: Group, solo: Mapping[str, Replies], context: CheckContext) -> dict[int, str]:
    """What replies of the burst have of other answers; nothing where chance may have put it there.

    Near ties fall otherwise under load, and what is then said may use any word. So a mix-up shows in several replies,
    in words that follow one another in somebody else's answer, and leaves no word of the burst unexplained.
    """
    found: dict[int, str] = {}
    count = 0
    for place, own in solo.items():
        theirs = [_joined(texts(replies[0])) for other, replies in solo.items() if other != place and replies]
        for x in members(group, f"burst-{place}") if own else ():
            prompt = " ".join(one for one in context.request(x).prompts if isinstance(one, str))
            said = _joined(texts(x))
            known = " ".join((*(_joined(texts(one)) for one in own), prompt))
            new = [word for word in _WORD.findall(said) if word not in known]
            if not all(any(word in text for text in theirs) for word in new):
                return {}
            if words := _longest(_WORD.findall(said), known, theirs):
                found[id(x)] = words
                count += 1
    once = all(len(own) < ENOUGH_REPLIES for own in solo.values())  # to be sent again
    return found if once or count >= ENOUGH_REPLIES else {}


def _longest(said: list[str], known: str, theirs: Iterable[str]) -> str:
    """The first words of a reply, one after the other, that stand so in another answer and none of them in its own."""
    sequences = [" ".join(_WORD.findall(text)) for text in theirs]
    for start in range(len(said) - RUN + 1):
        run = said[start : start + RUN]
        if not any(word in known for word in run) and any(" ".join(run) in one for one in sequences):
            return " ".join(run)
    return ""


def _joined(found: Mapping[int, str]) -> str:
    return " ".join(found.values())


def _burst(first: str, second: str, tokens: int = 4, times: int = 1) -> Group:
    def reply(text: str, prompt: str, count: int = 4) -> Exchange:
        return plain(completion(choice(text), usage=usage(count, 4)), {"temperature": 0, "prompt": prompt})

    return group(
        "burst",
        solo_0=[reply(" one uno", "1")] * times,
        solo_1=[reply(" two due dos deux", "2")] * times,
        burst_0=[reply(first, "1", tokens)] * times,
        burst_1=[reply(second, "2")] * times,
    )
