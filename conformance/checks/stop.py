"""Stop sequences in one reply: what the text holds of them."""

from __future__ import annotations

from conformance.asked import Asked
from conformance.catalogue import Findings, Scope, Terms, check, show
from conformance.checks.logprobs import judged
from conformance.checks.logprobs_text import prompt_of
from conformance.examples import choice, completion, example, plain, stream
from conformance.exchange import Choice, Exchange
from conformance.model import Held, Violation
from conformance.texts import echoed, ends_inside_a_token

STOP = {"stop": ["DE", "HI"], "prompt": "ABC"}


def owes_absence(asked: Asked, terms: Terms) -> bool:
    """Due where stop sequences are asked for and a text without them keeps the promise."""
    return bool(asked.stops) and terms.get("text") != "included" and asked.max_tokens != 0


def generated(asked: Asked, found: Choice) -> str | None:
    """The text without its echoed prompt; None where the two cannot be told apart."""
    if not asked.echo:
        return found.text
    prompt = prompt_of(asked, found.index)
    length = echoed(found.text, prompt) if isinstance(prompt, str) and prompt else None
    return None if length is None else found.text[length:]


@check(
    "stop",
    Scope.SUCCESS,
    due=owes_absence,
    good=lambda: (
        example(plain(completion(choice(" ", finish="stop")), STOP), text="excluded")
        + example(plain(completion(choice(" DE", finish="stop")), STOP), text="included")
        + example(plain(completion(choice(" DEF", finish="stop")), STOP), text="either")
    ),
    bad=lambda: (
        example(plain(completion(choice(" DEFGHI")), STOP), text="excluded")
        + example(stream(completion(choice(" DE", finish=None)), completion(choice("FG J")), asked=STOP), text="either")
    ),
)
def stop_text_is_as_promised(x: Exchange, terms: Terms) -> Findings:
    """The text holds no stop sequence where that is promised, and nowhere goes on after one.

    Parsers split answers at these sequences; text behind one is the model talking to itself.

    Fix: search the whole text so far after each token, not only its end, and cut it at the first match.
    """
    asked, rule = terms.asked(x), terms.get("text", "either")
    if not asked.stops:
        return
    for found in judged(x):
        text = generated(asked, found)
        if not text:
            continue
        ends = [(text.find(stop) + len(stop), stop) for stop in asked.stops if stop in text]
        if not ends:
            if rule != "included":
                yield Held(found.at)
            continue
        end, stop = min(ends)
        if rule == "excluded":
            told = f"the text holds the stop sequence {show(stop)}: {show(text)}"
            yield Violation(f"{told}; expected it to end before", found.at)
        elif end == len(text) or (found.finish_reason == terms.stop and ends_inside_a_token(text[end:])):
            yield Held(found.at)
        else:
            told = f"{len(text) - end} characters follow the stop sequence {show(stop)}: {show(text[end:])}"
            yield Violation(f"{told}; expected the text to end there", found.at)
