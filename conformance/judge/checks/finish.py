"""Finish: each choice has one finish reason, and it is the right one."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, plural, show
from conformance.judge.checks.logprobs_text import first_generated
from conformance.judge.checks.usage_counts import token_count
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, stream, usage
from conformance.judge.tolerances import SMALL_MAX_TOKENS
from conformance.model import Observation, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.json_text import MISSING
from conformance.model.request_view import RequestView

OPEN = completion(choice(" 4", finish=None))


@check(
    "finish",
    Scope.SUCCESS,
    good=lambda: example(stream(OPEN, completion(choice()))),
    bad=lambda: (
        *example(stream(OPEN, OPEN)),
        *example(plain(completion(choice(), choice(index=1, finish=None)), {"n": 2})),
    ),
)
def every_choice_finishes(x: Exchange, context: CheckContext) -> Findings:
    """Each choice has a finish reason when the reply is complete.

    Without it a client cannot tell a complete text from one that was cut, and agents wait for an end that never comes.

    Fix: send the reason for each index, on every path: stop sequence, end of text and limit, with n > 1 and in batches.
    """
    if x.error is not MISSING:
        return
    satisfied = 0
    for answer in x.choices.values():
        if answer.finish_reason is not None:
            satisfied += 1
        else:
            last = answer.parts[-1]
            value = show(last.value.get("finish_reason", MISSING))
            position = f"the last of {plural(len(answer.parts), 'part')} of choice {show(answer.index)}"
            observed = f"finish_reason is {value} in {position}"
            yield Violation(f"{observed}; expected a reason", last.at)
    if satisfied:
        yield Satisfied(count=satisfied)


VALUES = {"values": ["stop", "length", "content_filter"], "null_in_chunks": True}


@check(
    "finish",
    Scope.SUCCESS,
    good=lambda: example(stream(OPEN, completion(choice())), **VALUES),
    bad=lambda: (
        *example(plain(completion(choice(finish="eos_token"))), **VALUES),
        *example(stream(completion(choice(finish="")), completion(choice())), **VALUES),
        *example(stream(OPEN, completion(choice())), values=["stop", "length"], null_in_chunks=False),
    ),
)
def finish_reason_is_one_of(x: Exchange, context: CheckContext) -> Findings:
    """A finish reason is one of the documented values, and null in a chunk before the end.

    Clients map it to an enumeration: an undocumented value raises there, and an empty string may pass as unfinished.

    Fix: translate the engine's reasons to the documented ones; send null, not "", until the choice is finished.
    """
    values = context.get("values", VALUES["values"])
    null_is_allowed = not x.streamed or context.get("null_in_chunks", True)  # every_choice_finishes judges plain bodies
    satisfied = 0
    for document in x.documents:
        for item in document.choices:
            reason = item.get("finish_reason", MISSING)
            if reason is MISSING or (reason is None and null_is_allowed):
                continue
            if isinstance(reason, str) and reason in values:
                satisfied += 1
            else:
                allowed = [*values, None] if x.streamed and null_is_allowed else values
                expected = " or ".join("null" if value is None else str(value) for value in allowed)
                yield Violation(f"finish_reason is {show(reason)}; expected {expected}", document.at)
    if satisfied:
        yield Satisfied(count=satisfied)


@check(
    "finish",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), completion(choice("")))),
    bad=lambda: example(stream(completion(choice(finish="stop")), completion(choice("", finish="length")))),
)
def finish_reason_is_settled(x: Exchange, context: CheckContext) -> Findings:
    """The finish reason of a choice may be sent again, but it never changes.

    A client acts on the first reason it sees: it requests more after `length` and stops after `stop`.

    Fix: decide the reason once, where generation ends, and send that.
    """
    if not x.streamed:
        return
    for answer in x.choices.values():
        if answer.finish_reason is None:
            continue
        reasons = list(dict.fromkeys(part.finish_reason for part in answer.parts if part.finish_reason))
        if len(reasons) == 1:
            yield Satisfied(answer.at)
        else:
            observed = f"choice {show(answer.index)} finishes with {' and then '.join(map(show, reasons))}"
            yield Violation(f"{observed}; expected one reason", answer.parts[-1].at)


@check(
    "finish",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), completion(choice("")))),
    bad=lambda: example(stream(completion(choice(finish="stop")), completion(choice(" 6")))),
)
def no_text_after_finish(x: Exchange, context: CheckContext) -> Findings:
    """No text of a choice is sent after its finish reason.

    A client closes the choice when it finishes; later text is lost, or breaks its state.

    Fix: send the reason with the last text, or after it.
    """
    if not x.streamed:
        return
    for answer in x.choices.values():
        if answer.finish_reason is None:
            continue
        finished = next(number for number, part in enumerate(answer.parts) if part.finish_reason)
        late = next((part for part in answer.parts[finished + 1 :] if part.text), None)
        if late is None:
            yield Satisfied(answer.at)
        else:
            observed = f"choice {show(answer.index)} has text {show(late.text, 60)} after finish_reason"
            yield Violation(f"{observed} {show(answer.parts[finished].finish_reason)}; expected no more text", late.at)


SCORED = {"max_tokens": 4, "logprobs": 1}
ECHOED = {**SCORED, "echo": True, "prompt": "x"}
FOUR = (" a b c d", [" a", " b", " c", " d"])
SHORT = 1_000  # bytes of a request whose prompt fits any context beside so few tokens


def _listed_tokens(choice: Choice, request: RequestView) -> list[str]:
    """The generated tokens that a choice lists; none of an echo whose tokens do not add up to the text."""
    tokens = list((choice.logprobs or {}).get("tokens", ()))
    if request.echo:
        is_whole = all(isinstance(token, str) for token in tokens) and "".join(tokens) == choice.text
        return tokens[first_generated(request, choice, tokens) :] if is_whole else []
    return tokens


def _tokens_with_text(choice: Choice, request: RequestView, used_up: bool) -> int:
    """A lower bound on the number of generated tokens of a choice that have text.

    The listed ones, where they add up to its text; or its chunks with text, where usage says that the limit was
    `used_up`; or one, where the limit is one.
    """
    tokens = _listed_tokens(choice, request)
    if request.echo:
        return sum(map(bool, tokens))
    if all(isinstance(token, str) for token in tokens) and "".join(tokens) == choice.text:
        return sum(map(bool, tokens))
    chunks = sum(bool(part.text) for part in choice.parts)
    return chunks if used_up else min(chunks, 1) if request.max_tokens == 1 else 0


@check(
    "finish",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: (
        *example(plain(completion(choice(FOUR[0], logprobs=logprobs(FOUR[1]))), SCORED)),
        *example(plain(completion(choice(" a b", finish="stop", logprobs=logprobs([" a", " b"]))), SCORED)),
        *example(plain(completion(choice(" a b", logprobs=logprobs([" a", " b"]), reasoning="Well …")), SCORED)),
        *example(plain(completion(choice("x a b c d", logprobs=logprobs(["x", *FOUR[1]]))), ECHOED)),
        *example(plain(completion(choice("x")), {"max_tokens": 0, "echo": True, "prompt": "x"})),
    ),
    bad=lambda: (
        *example(plain(completion(choice(" a b", logprobs=logprobs([" a", " b"]))), SCORED)),
        *example(plain(completion(choice(FOUR[0], finish="stop", logprobs=logprobs(FOUR[1]))), SCORED)),
        *example(plain(completion(choice(" a", finish="stop")), {"max_tokens": 1})),
        *example(plain(completion(choice("x a b c d", finish="stop", logprobs=logprobs(["x", *FOUR[1]]))), ECHOED)),
        *example(plain(completion(choice("x", finish="stop")), {"max_tokens": 0, "echo": True, "prompt": "x"})),
        *example(
            stream(OPEN, completion(choice(finish="stop")), completion(usage=usage(4, 2)), request={"max_tokens": 2})
        ),
    ),
)
def length_means_the_limit(x: Exchange, context: CheckContext) -> Findings:
    """A choice finishes with `length` where it has as many tokens as its limit allows, and only there.

    After `length` a client requests the rest, after `stop` it does not: a wrong reason costs money or loses text.

    Fix: decide the reason of each choice by its own tokens; use `stop` only for a stop sequence or the end of text.
    """
    request = context.request(x)
    limit, reason = request.max_tokens, context.get("reason", context.length)
    if limit is None or not 0 <= limit <= SMALL_MAX_TOKENS or len(x.case.content) > SHORT:
        return
    used_up = token_count(x.usage, "completion_tokens") == limit * request.choices and request.best_of == request.n
    may_stop = bool(request.stops) or request.get("response_format") is not None
    for answer in x.choices.values():
        at = answer.parts[-1].at
        if x.reasoned:
            yield Observation("reasoning", "its tokens count, and are not listed", at)
        elif answer.finish_reason == reason:
            tokens = len(_listed_tokens(answer, request))
            if not limit or (tokens < limit and used_up):
                yield Satisfied(at)  # another requirement judges that fewer tokens are listed than counted
            elif tokens:
                observed = f"choice {show(answer.index)} finishes with {show(reason)} after {plural(tokens, 'token')}"
                yield expect(tokens >= limit, observed, f"{limit} tokens, its max_tokens", at)
        elif may_stop or answer.finish_reason != context.stop:
            continue
        elif not limit:
            observed = f"choice {show(answer.index)} finishes with {show(context.stop)} though nothing was generated"
            yield Violation(f"{observed}; expected {show(reason)}, for max_tokens is 0", at)
        elif tokens := _tokens_with_text(answer, request, x.streamed and used_up):
            # A token that ends the text has none itself: of the tokens up to the limit, all but one may have text.
            length = f"{plural(tokens, 'token')} with text"
            observed = f"choice {show(answer.index)} finishes with {show(context.stop)} after {length}"
            yield expect(tokens < limit, observed, f"{show(reason)}, as max_tokens is {limit}", at)
