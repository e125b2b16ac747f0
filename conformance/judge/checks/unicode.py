"""Text beyond ASCII: characters arrive whole, however many tokens or chunks they were made of."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.plain_streamed import ROLES, pair
from conformance.judge.comparison import contrast, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, plain, stream
from conformance.judge.token_text import REPLACEMENT, covers, is_text
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange, Group

PLANT = "a \U0001f331 b"
HALVES = ("a \ud83c", "\udf31 b")


@check(
    "unicode",
    Scope.GROUP,
    group="twin",
    expected_when=None,
    good=lambda: example(_planted("a ", PLANT[2:])),
    bad=lambda: example(_planted("a \ufffd", "\ufffd b")),
)
def no_replacement_characters(group: Group, context: CheckContext) -> Findings:
    """No U+FFFD stands where the other form of the same reply has a real character.

    Characters of several tokens that are decoded one by one break in every script but the Latin one.

    Fix: decode incrementally, and hold bytes back until a character is whole.
    """
    if not_comparable(group, *ROLES):
        return
    plains, streams = members(group, "plain"), members(group, "stream")
    for x, others in [(x, streams) for x in plains] + [(x, plains) for x in streams]:
        for index, found in x.choices.items():
            wholes = [other.choices[index].text for other in others if index in other.choices]
            broken = next((whole for whole in wholes if _broken(found.text, whole)), None)
            if broken is not None:
                observed, expected = contrast(found.text, broken)
                yield Violation(f"the text is {observed}; expected {expected}", found.at, x.case.id)
            elif not found.text.isascii() and found.text in wholes:
                yield Satisfied(found.at)


def _broken(text: str, whole: str) -> bool:
    """Whether U+FFFD stands in the text where the whole has something else beyond ASCII."""
    body = text.rstrip(REPLACEMENT) if whole.rstrip(REPLACEMENT) == text.rstrip(REPLACEMENT) else text
    missing = body.count(REPLACEMENT) > whole.count(REPLACEMENT)
    real = any(not char.isascii() and char != REPLACEMENT for char in whole)
    return missing and real and len(whole) <= 20_000 and covers(body, whole)


@check(
    "unicode",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice(PLANT)))),
    bad=lambda: example(stream(*(completion(choice(half)) for half in HALVES))),
)
def text_has_no_lone_surrogates(x: Exchange, context: CheckContext) -> Findings:
    """The text of every body and chunk is made of whole characters, without half of a surrogate pair.

    Half a pair is no character: most languages refuse to store, print or send it, and fail far from the cause.

    Fix: cut texts between characters, never between UTF-16 units.
    """
    request = context.request(x)
    given = "".join(prompt for prompt in request.prompts if isinstance(prompt, str)) if request.echo else ""
    if not is_text(given.replace(REPLACEMENT, "")):
        return  # what was sent in halves may come back so
    for found in x.choices.values():
        halves = [part for part in found.parts if not is_text(part.text.replace(REPLACEMENT, ""))]
        if halves:
            told = f"the text {show(halves[0].text)} holds half a surrogate pair"
            yield Violation(f"{told}; expected whole characters", halves[0].at)
        elif found.text:
            yield Satisfied(found.at)


def _planted(*texts: str) -> Group:
    return pair(completion(choice(PLANT)), *(completion(choice(text)) for text in texts))
