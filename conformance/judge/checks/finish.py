"""Finish: why each choice ended, said once and for good."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.usage_counts import token_count
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, stream, usage
from conformance.judge.tolerances import SMALL_MAX_TOKENS
from conformance.model import Observation, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.json_text import MISSING

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

    Without it a client cannot tell a whole text from one that was cut, and agents wait for an end that never comes.

    Fix: send the reason of each index, on every path: stop sequence, end of text and limit, with n > 1 and in batches.
    """
    if x.error is not MISSING:
        return
    held = 0
    for one in x.choices.values():
        if one.finish_reason is not None:
            held += 1
        else:
            said = show(one.parts[-1].value.get("finish_reason", MISSING))
            seen = f"finish_reason is {said} at the end of choice {show(one.index)}, {len(one.parts)} parts"
            yield Violation(f"{seen}; expected a reason", one.parts[-1].at)
    if held:
        yield Satisfied(count=held)


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

    Clients map it to an enumeration: an engine's own word or an empty string raises, or passes as unfinished.

    Fix: translate the engine's reasons to the documented ones; send null, not '', until the choice is finished.
    """
    values = context.get("values", VALUES["values"])
    null_is_fine = not x.streamed or context.get(
        "null_in_chunks", True
    )  # null in a plain body: see every_choice_finishes
    held = 0
    for document in x.documents:
        for one in document.choices:
            reason = one.get("finish_reason", MISSING)
            if reason is MISSING or (reason is None and null_is_fine):
                continue
            if isinstance(reason, str) and reason in values:
                held += 1
            else:
                allowed = [*values, None] if x.streamed and null_is_fine else values
                expected = " or ".join("null" if value is None else str(value) for value in allowed)
                yield Violation(f"finish_reason is {show(reason)}; expected {expected}", document.at)
    if held:
        yield Satisfied(count=held)


@check(
    "finish",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), completion(choice("")))),
    bad=lambda: example(stream(completion(choice(finish="stop")), completion(choice("", finish="length")))),
)
def finish_reason_is_settled(x: Exchange, context: CheckContext) -> Findings:
    """A choice is given one finish reason; it may be said twice, but not changed.

    A client acts on the first reason it sees: it asks for more after `length` and stops after `stop`.

    Fix: decide the reason once, where generation ends, and send that.
    """
    if not x.streamed:
        return
    for one in x.choices.values():
        if one.finish_reason is None:
            continue
        reasons = list(dict.fromkeys(part.finish_reason for part in one.parts if part.finish_reason))
        if len(reasons) == 1:
            yield Satisfied(one.at)
        else:
            seen = f"choice {show(one.index)} finishes with {' and then '.join(map(show, reasons))}"
            yield Violation(f"{seen}; expected one reason", one.parts[-1].at)


@check(
    "finish",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), completion(choice("")))),
    bad=lambda: example(stream(completion(choice(finish="stop")), completion(choice(" 6")))),
)
def no_text_after_finish(x: Exchange, context: CheckContext) -> Findings:
    """No text of a choice comes after its finish reason.

    A client closes the choice when it finishes; what comes later is lost, or breaks its state.

    Fix: send the reason with the last text, or after it.
    """
    if not x.streamed:
        return
    for one in x.choices.values():
        if one.finish_reason is None:
            continue
        first = next(place for place, part in enumerate(one.parts) if part.finish_reason)
        late = next((part for part in one.parts[first + 1 :] if part.text), None)
        if late is None:
            yield Satisfied(one.at)
        else:
            seen = f"choice {show(one.index)} has text {show(late.text, 60)} after finish_reason"
            yield Violation(f"{seen} {show(one.parts[first].finish_reason)}; expected no more text", late.at)


SCORED = {"max_tokens": 4, "logprobs": 1}
FOUR = (" a b c d", [" a", " b", " c", " d"])
SHORT = 1_000  # bytes of a request whose prompt fits any context beside so few tokens


def _visible(one: Choice, limit: int, spent: bool) -> int:
    """How many tokens of a choice have text, as far as that is certain.

    Those listed, where they make up its text; or its chunks with text, where as many tokens as allowed were `spent`;
    or one, where no more are allowed.
    """
    tokens = (one.logprobs or {}).get("tokens", ())
    if all(isinstance(token, str) for token in tokens) and "".join(tokens) == one.text:
        return sum(bool(token) for token in tokens)
    chunks = sum(bool(part.text) for part in one.parts)
    return chunks if spent else min(chunks, 1) if limit == 1 else 0


@check(
    "finish",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: (
        *example(plain(completion(choice(FOUR[0], logprobs=logprobs(FOUR[1]))), SCORED)),
        *example(plain(completion(choice(" a b", finish="stop", logprobs=logprobs([" a", " b"]))), SCORED)),
        *example(plain(completion(choice(" a b", logprobs=logprobs([" a", " b"]), reasoning="Well …")), SCORED)),
    ),
    bad=lambda: (
        *example(plain(completion(choice(" a b", logprobs=logprobs([" a", " b"]))), SCORED)),
        *example(plain(completion(choice(FOUR[0], finish="stop", logprobs=logprobs(FOUR[1]))), SCORED)),
        *example(plain(completion(choice(" a", finish="stop")), {"max_tokens": 1})),
        *example(
            stream(OPEN, completion(choice(finish="stop")), completion(usage=usage(4, 2)), request={"max_tokens": 2})
        ),
    ),
)
def length_means_the_limit(x: Exchange, context: CheckContext) -> Findings:
    """A choice is said to have reached the limit where it has that many tokens, and only there.

    After `length` a client asks for the rest, after `stop` it does not: told wrongly it pays more or loses the end.

    Fix: decide the reason for each choice by its own tokens; say `stop` only after a stop sequence or the end of text.
    """
    request = context.request(x)
    limit, reason = request.max_tokens or 0, context.get("reason", context.length)
    if not 0 < limit <= SMALL_MAX_TOKENS or request.echo or len(x.case.content) > SHORT:
        return
    used_up = token_count(x.usage, "completion_tokens") == limit * request.choices and request.best_of == request.n
    spent = x.streamed and used_up
    may_stop = bool(request.stops) or request.get("response_format") is not None
    for one in x.choices.values():
        at = one.parts[-1].at
        if x.reasoned:
            yield Observation("reasoning", "its tokens count, and are not listed", at)
        elif one.finish_reason == reason:
            tokens = len((one.logprobs or {}).get("tokens", ()))
            if tokens < limit and used_up:
                yield Satisfied(at)  # that fewer are listed than counted is a row of its own
            elif tokens:
                seen = f"choice {show(one.index)} finishes with {show(reason)} after {tokens} tokens"
                yield expect(tokens >= limit, seen, f"{limit} tokens, its max_tokens", at)
        elif one.finish_reason == context.stop and not may_stop and (visible := _visible(one, limit, spent)):
            # An end of text that comes as the last token leaves no room for so many visible ones.
            seen = f"choice {show(one.index)} finishes with {show(context.stop)} after {visible} visible tokens"
            yield expect(visible < limit, seen, f"{show(reason)}, for max_tokens is {limit}", at)
