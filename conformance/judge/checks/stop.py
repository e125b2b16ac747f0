"""Stop sequences in one reply: whether the text contains them, or continues after one."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, plural, show
from conformance.judge.checks.logprobs import token_strings, unfiltered_choices
from conformance.judge.checks.logprobs_text import prompt_of
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, stream
from conformance.judge.token_text import echoed_length, ends_inside_a_token
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.request_view import RequestView

STOP = {"stop": ["DE", "HI"], "prompt": "ABC"}


def text_without_stop_is_required(request: RequestView, context: CheckContext) -> bool:
    """Expected with stop sequences, unless the provider keeps them in the text, which need not contain one."""
    return bool(request.stops) and context.get("text") != "included" and request.max_tokens != 0


def generated_text(request: RequestView, answer: Choice) -> str | None:
    """The text without its echoed prompt; None where the two cannot be separated."""
    if not request.echo:
        return answer.text
    prompt = prompt_of(request, answer.index)
    length = echoed_length(answer.text, prompt) if isinstance(prompt, str) and prompt else None
    return None if length is None else answer.text[length:]


def _rest_of_token(answer: Choice, rest: str) -> Finding | None:
    """The finding on text after a stop sequence if it may belong to the token that completed it; None if it cannot.

    The listed tokens decide. Without them, a piece of a word is the rest of a token, and a whole word may be.
    """
    tokens = [token for token in token_strings(answer.logprobs or {}) or () if token]
    if tokens and "".join(tokens) == answer.text:
        return Satisfied(answer.at) if len(rest) < len(tokens[-1]) else None
    if ends_inside_a_token(rest):
        return Satisfied(answer.at)
    reason = f"{show(rest)} follows the stop sequence, and may belong to the token that completed it"
    return Inconclusive(reason) if ends_inside_a_token(rest.strip()) else None


def _in_one_token(*tokens: str) -> Exchange:
    """A text that ended with `stop`, with its tokens."""
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
    """The text has no stop sequence if that is promised, and never continues after one.

    Parsers split answers at these sequences; text after one is not part of the answer.

    Fix: search the whole text so far after each token, not only its end, and cut it at the first match.
    """
    request, rule = context.request(x), context.get("text", "either")
    if not request.stops:
        return
    for answer in unfiltered_choices(x):
        text = generated_text(request, answer)
        if not text:
            continue
        ends = [(text.find(stop) + len(stop), stop) for stop in request.stops if stop in text]
        if not ends:
            if rule != "included":
                yield Satisfied(answer.at)
            continue
        end, stop = min(ends)
        if rule == "excluded":
            observed = f"the text has the stop sequence {show(stop)}: {show(text)}"
            yield Violation(f"{observed}; expected it to end before the sequence", answer.at)
        elif end == len(text):
            yield Satisfied(answer.at)
        elif answer.finish_reason == context.stop and (finding := _rest_of_token(answer, text[end:])) is not None:
            yield finding
        else:
            rest = f"{show(text[end:])} ({plural(len(text) - end, 'character')})"
            observed = f"{rest} comes after the stop sequence {show(stop)}"
            yield Violation(f"{observed}; expected the text to end with the sequence", answer.at)
