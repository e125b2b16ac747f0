"""Text beyond ASCII: each character arrives whole, even if it consists of several tokens or spans chunks."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.plain_streamed import ROLES, pair
from conformance.judge.comparison import contrast, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, plain, stream
from conformance.judge.token_text import LONGEST_MATCHED, REPLACEMENT, covers, is_text
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
    """No text has U+FFFD where the same reply, streamed or not, has a real character.

    A server that decodes tokens one by one breaks characters of several tokens, which most scripts have.

    Fix: decode incrementally, and hold bytes back until a character is complete.
    """
    if not_comparable(group, *ROLES):
        return
    plains, streams = members(group, "plain"), members(group, "stream")
    for x, others in [(x, streams) for x in plains] + [(x, plains) for x in streams]:
        for index, answer in x.choices.items():
            others_texts = [other.choices[index].text for other in others if index in other.choices]
            intact = next((intact for intact in others_texts if _replaces_characters(answer.text, intact)), None)
            if intact is not None:
                observed, expected = contrast(answer.text, intact)
                yield Violation(f"the text is {observed}; expected {expected}", answer.at, x.case.id)
            elif not answer.text.isascii() and answer.text in others_texts:
                yield Satisfied(answer.at)


def _replaces_characters(text: str, intact: str) -> bool:
    """Whether the text is the intact one with U+FFFD in place of characters beyond ASCII."""
    body = text.rstrip(REPLACEMENT) if intact.rstrip(REPLACEMENT) == text.rstrip(REPLACEMENT) else text
    missing = body.count(REPLACEMENT) > intact.count(REPLACEMENT)
    real = any(not char.isascii() and char != REPLACEMENT for char in intact)
    return missing and real and len(intact) <= LONGEST_MATCHED and covers(body, intact)


@check(
    "unicode",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice(PLANT)))),
    bad=lambda: example(stream(*(completion(choice(half)) for half in HALVES))),
)
def text_has_no_lone_surrogates(x: Exchange, context: CheckContext) -> Findings:
    """The text of every body and chunk has no lone surrogate.

    A lone surrogate is no character: most languages cannot store, print or send it, and fail far from the cause.

    Fix: split texts between characters, never between UTF-16 code units.
    """
    request = context.request(x)
    sent = "".join(prompt for prompt in request.prompts if isinstance(prompt, str)) if request.echo else ""
    if not is_text(sent.replace(REPLACEMENT, "")):
        return  # an echo may return the lone surrogates of the prompt
    for answer in x.choices.values():
        broken = [part for part in answer.parts if not is_text(part.text.replace(REPLACEMENT, ""))]
        if broken:
            observed = f"the text {show(broken[0].text)} has a lone surrogate"
            yield Violation(f"{observed}; expected whole characters", broken[0].at)
        elif answer.text:
            yield Satisfied(answer.at)


def _planted(*texts: str) -> Group:
    return pair(completion(choice(PLANT)), *(completion(choice(text)) for text in texts))
