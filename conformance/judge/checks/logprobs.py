"""Log probabilities: whether they are there, in the shape of text completions, with lists that go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, stream
from conformance.model import Finding, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange
from conformance.model.json_text import MISSING
from conformance.model.request_view import RequestView

LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
HUGE = 2**1000
TOKENS = (" 4", ",", " 5")
CHAT = {"content": [{"token": token, "logprob": -0.1} for token in TOKENS]}
SCORED = {"logprobs": 1}
ECHOED = {"logprobs": 1, "echo": True, "prompt": "1, 2,"}


def asks_for_logprobs(request: RequestView, context: CheckContext) -> bool:
    """Due where log probabilities are asked for and there is something to score."""
    return request.logprobs is not None and (request.max_tokens != 0 or request.echo)


def asks_for_alternatives(request: RequestView, context: CheckContext) -> bool:
    """Due where at least one alternative is asked for."""
    return asks_for_logprobs(request, context) and (request.logprobs or 0) > 0


def asks_for_no_logprobs(request: RequestView, context: CheckContext) -> bool:
    """Due where the request does not mention log probabilities."""
    return request.raw("logprobs") in (MISSING, None)


def unfiltered_choices(x: Exchange) -> Iterator[Choice]:
    """The choices of a reply that no error and no filter cut short."""
    if x.error is MISSING:
        yield from (choice for choice in x.choices.values() if choice.finish_reason != "content_filter")


def choices_with_logprobs(x: Exchange) -> Iterator[tuple[Choice, Mapping[str, list[Any]]]]:
    """The choices that have log probabilities, with their lists."""
    for found in unfiltered_choices(x):
        if found.logprobs is not None:
            yield found, found.logprobs


def token_entries(lists: Mapping[str, list[Any]]) -> list[Any]:
    """One entry for each token, in the lists of text completions or in the one list of chat completions."""
    return lists.get("tokens") or lists.get("content") or []


def token_strings(lists: Mapping[str, list[Any]], name: str = "tokens") -> list[str] | None:
    """A list of the log probabilities, where all of it is strings and there are any."""
    found = lists.get(name, [])
    return found if found and all(isinstance(item, str) for item in found) else None


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that arithmetic can hold."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < HUGE


def example_of(request: Mapping[str, Any], text: str = " 4, 5", **lists: Any) -> Exchange:
    """A reply of one choice whose lists agree, apart from those given; MISSING leaves one out."""
    whole = {**logprobs(TOKENS, start=len("1, 2, 3,")), **lists}
    kept = {name: value for name, value in whole.items() if value is not MISSING}
    return plain(completion(choice(text, logprobs=kept)), request)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_alternatives,
    good=lambda: example(example_of(SCORED)) + example(plain(completion(choice(logprobs=CHAT)), SCORED), shape="free"),
    bad=lambda: (
        example(plain(completion(choice()), SCORED))
        + example(plain(completion(choice(logprobs=CHAT)), SCORED))
        + example(plain(completion(choice(logprobs={"content": [" 4", ",", " 5"]})), SCORED), shape="free")
    ),
)
def logprobs_are_returned(x: Exchange, context: CheckContext) -> Findings:
    """A request for log probabilities gets them for every choice, in the lists of text completions if any are promised.

    Evaluation tools score texts by these lists; a null makes them crash, or report chance as a result.

    Fix: fill `logprobs` with tokens and token_logprobs for each choice, plain and streamed, or refuse the parameter.
    """
    if not context.request(x).logprobs:
        return
    wanted = context.get("members", ("tokens", "token_logprobs"))
    for found in unfiltered_choices(x):
        lists = found.logprobs
        if not found.text and not lists:
            continue  # a text that ended before it began has nothing to score
        if lists is None:
            yield Violation("logprobs is null in every part; expected an object, as asked for", found.at)
            continue
        if context.get("shape") == "free" and not lists.get("tokens") and lists.get("content"):
            yield _as_in_chat(lists["content"][context.request(x).echo :], found.at)
            continue
        absent = [name for name in wanted if not lists.get(name)]
        empty = not found.text and not any(lists.values())
        shape = " (the shape of chat completions)" if "content" in lists else ""
        observed = f"logprobs has {show(sorted(lists))}{shape} without {show(absent)}"
        yield expect(not absent or empty, observed, "these lists, with an entry for each token", found.at)


def _as_in_chat(content: list[Any], at: str) -> Finding:
    """Whether a list of objects, a shape that some documents leave free, scores each token."""
    odd = next((one for one in content if not isinstance(one, Mapping) or not is_number(one.get("logprob"))), None)
    return expect(odd is None, f"an entry of content is {show(odd)}", "a token with its logprob", at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_no_logprobs,
    good=lambda: example(plain(completion(choice()))),
    bad=lambda: example(example_of({})),
)
def logprobs_are_not_unasked(x: Exchange, context: CheckContext) -> Findings:
    """Without a request for log probabilities there are none.

    They make a reply several times as long, and clients decide by their presence how to read a text.

    Fix: leave `logprobs` null unless the request names a number.
    """
    if not asks_for_no_logprobs(context.request(x), context):
        return
    for found in unfiltered_choices(x):
        tokens = token_entries(found.logprobs or {})
        yield expect(not tokens, f"logprobs holds {len(tokens)} tokens that nobody asked for", "null", found.at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_logprobs,
    good=lambda: example(example_of(SCORED)),
    bad=lambda: example(example_of(SCORED, token_logprobs=[-0.1, -0.2])),
)
def logprob_lists_are_parallel(x: Exchange, context: CheckContext) -> Findings:
    """The lists of a log probabilities object have one entry per token each.

    A client pairs them by position; one list that is shorter shifts every score behind the gap to another token.

    Fix: append to all four lists in one place, once per token.
    """
    zero = context.request(x).logprobs == 0
    for found in unfiltered_choices(x):
        held = 0
        for part in found.parts:
            lists = {name: (part.logprobs or {}).get(name) for name in LISTS}
            sizes = {name: len(value) for name, value in lists.items() if isinstance(value, list)}
            if zero and not sizes.get("top_logprobs"):
                sizes.pop("top_logprobs", None)
            if len(sizes) < 2:
                continue
            if len(set(sizes.values())) > 1:
                told = ", ".join(f"{name} {size}" for name, size in sizes.items())
                yield Violation(f"the lists differ in length ({told}); expected one entry per token each", part.at)
                break
            held += 1
        else:
            if held:
                yield Satisfied(found.at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=lambda request, context: request.logprobs == 0 and asks_for_logprobs(request, context),
    good=lambda: example(example_of({"logprobs": 0})),
    bad=lambda: (
        example(plain(completion(choice()), {"logprobs": 0}))
        + example(example_of({"logprobs": 0}, **logprobs(TOKENS, top=2)))
    ),
)
def zero_logprobs_means_sampled_only(x: Exchange, context: CheckContext) -> Findings:
    """With `logprobs: 0` each sampled token has its log probability, and there are no alternatives.

    Zero is the cheap way to score a text; read as "off" it returns nothing, read as a count of one it costs more.

    Fix: tell 0 from null: 0 asks for the sampled tokens alone.
    """
    if context.request(x).logprobs != 0:
        return
    for found in unfiltered_choices(x):
        lists = found.logprobs
        scored = bool(lists and token_entries(lists))
        if not found.text and not scored:
            continue  # nothing was sampled; empty lists say the same as none
        if not lists or not scored:
            yield Violation("logprobs is empty; expected the sampled tokens with their log probabilities", found.at)
            continue
        tokens = token_entries(lists)
        tops = [one.get("top_logprobs") if isinstance(one, Mapping) else None for one in lists.get("content", [])]
        more = [top for top in lists.get("top_logprobs", tops) if isinstance(top, (Mapping, list)) and len(top) > 1]
        yield expect(
            not more,
            f"{len(more)} of {len(tokens)} positions list alternatives, such as {show(more[0] if more else None)}",
            "the sampled token at most",
            found.at,
        )


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=lambda request, context: (
        request.echo and asks_for_logprobs(request, context) and bool(request.prompts)
    ),
    good=lambda: example(
        plain(completion(choice("1, 2, 3", logprobs=logprobs(["1", ",", " 2", ", 3"], [None, -1, -2, -1]))), ECHOED)
    ),
    bad=lambda: example(
        stream(completion(choice("1, 2", logprobs=logprobs(["1", ",", " 2"], [True, -1, -2]))), request=ECHOED)
    ),
)
def first_echo_logprob_is_null_or_number(x: Exchange, context: CheckContext) -> Findings:
    """The first token of an echoed prompt has null or a number as its log probability.

    Nothing precedes it, so there is nothing to condition on: tools skip exactly this entry, whatever it holds.

    Fix: put null (or 0) there and keep the entry, so that the lists stay parallel.
    """
    request = context.request(x)
    if not request.echo or request.logprobs is None:
        return
    for found, lists in choices_with_logprobs(x):
        values = lists.get("token_logprobs", [])
        if values:
            first = values[0]
            fits = first is None or (is_number(first) and first <= 0)
            yield expect(fits, f"the first log probability is {show(first)}", "null, or a number up to 0", found.at)
