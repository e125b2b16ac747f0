"""Stop sequences in one reply: what the text holds of them."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import token_strings, unfiltered_choices
from conformance.judge.checks.logprobs_text import prompt_of
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, stream
from conformance.judge.token_text import echoed_length, ends_inside_a_token
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView

STOP = {"stop": ["DE", "HI"], "prompt": "ABC"}


def text_without_stop_is_required(request: RequestView, context: CheckContext) -> bool:
    """Due where stop sequences are asked for and a text without them keeps the promise."""
    return bool(request.stops) and context.get("text") != "included" and request.max_tokens != 0


def generated_text(request: RequestView, found: Choice) -> str | None:
    """The text without its echoed prompt; None where the two cannot be told apart."""
    if not request.echo:
        return found.text
    prompt = prompt_of(request, found.index)
    length = echoed_length(found.text, prompt) if isinstance(prompt, str) and prompt else None
    return None if length is None else found.text[length:]


def _rest_of_token(found: Choice, rest: str) -> Finding | None:
    """What it comes to that this follows a stop sequence: the token that completed it may go on; None where it cannot.

    Listed tokens tell. Without them a piece of a word is the rest of a token, and a whole word may be.
    """
    tokens = [token for token in token_strings(found.logprobs or {}) or () if token]
    if tokens and "".join(tokens) == found.text:
        return Satisfied(found.at) if len(rest) < len(tokens[-1]) else None
    if ends_inside_a_token(rest):
        return Satisfied(found.at)
    word = f"{show(rest)} follows the stop sequence, and may belong to the token that completed it"
    return Inconclusive(word) if ends_inside_a_token(rest.strip()) else None


def _in_one_token(*tokens: str) -> Exchange:
    """A text that was stopped, with its tokens."""
    lists = logprobs(tokens)
    return plain(completion(choice("".join(tokens), finish="stop", logprobs=lists)), {**STOP, "logprobs": 1})


@check(
    "stop",
    Scope.SUCCESS,
    expected_when=text_without_stop_is_required,
    good=lambda: (
        example(plain(completion(choice(" ", finish="stop")), STOP), text="excluded")
        + example(plain(completion(choice(" DE", finish="stop")), STOP), text="included")
        + example(plain(completion(choice(" DEF", finish="stop")), STOP), text="either")
        + example(_in_one_token("A", " D", "E to "), text="included")
    ),
    bad=lambda: (
        example(plain(completion(choice(" DEFGHI")), STOP), text="excluded")
        + example(
            stream(completion(choice(" DE", finish=None)), completion(choice("FG J")), request=STOP), text="either"
        )
        + example(_in_one_token(" D", "E", "F"), text="included")
    ),
)
def stop_text_is_as_promised(x: Exchange, context: CheckContext) -> Findings:
    """The text holds no stop sequence where that is promised, and nowhere goes on after one.

    Parsers split answers at these sequences; text behind one is the model talking to itself.

    Fix: search the whole text so far after each token, not only its end, and cut it at the first match.
    """
    request, rule = context.request(x), context.get("text", "either")
    if not request.stops:
        return
    for found in unfiltered_choices(x):
        text = generated_text(request, found)
        if not text:
            continue
        ends = [(text.find(stop) + len(stop), stop) for stop in request.stops if stop in text]
        if not ends:
            if rule != "included":
                yield Satisfied(found.at)
            continue
        end, stop = min(ends)
        if rule == "excluded":
            told = f"the text holds the stop sequence {show(stop)}: {show(text)}"
            yield Violation(f"{told}; expected it to end before", found.at)
        elif end == len(text):
            yield Satisfied(found.at)
        elif found.finish_reason == context.stop and (kept := _rest_of_token(found, text[end:])) is not None:
            yield kept
        else:
            told = f"{len(text) - end} characters follow the stop sequence {show(stop)}: {show(text[end:])}"
            yield Violation(f"{told}; expected the text to end there", found.at)
