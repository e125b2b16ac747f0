"""Log probabilities: present if requested, in the shape of text completions, with lists of equal length."""

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
HUGE = 2**1000  # larger integers would overflow a float in arithmetic
TOKENS = (" 4", ",", " 5")
CHAT = {"content": [{"token": token, "logprob": -0.1} for token in TOKENS]}
SCORED = {"logprobs": 1}
ECHOED = {"logprobs": 1, "echo": True, "prompt": "1, 2,"}


def asks_for_logprobs(request: RequestView, context: CheckContext) -> bool:
    """Expected where log probabilities are requested and there is a token to score."""
    return request.logprobs is not None and (request.max_tokens != 0 or request.echo)


def asks_for_alternatives(request: RequestView, context: CheckContext) -> bool:
    """Expected where at least one alternative is requested."""
    return asks_for_logprobs(request, context) and (request.logprobs or 0) > 0


def asks_for_no_logprobs(request: RequestView, context: CheckContext) -> bool:
    """Expected where the request has no log probabilities, or null for them."""
    return request.raw("logprobs") in (MISSING, None)


def unfiltered_choices(x: Exchange) -> Iterator[Choice]:
    """The choices of a reply that neither an error nor a content filter cut short."""
    if x.error is MISSING:
        yield from (answer for answer in x.choices.values() if answer.finish_reason != "content_filter")


def choices_with_logprobs(x: Exchange) -> Iterator[tuple[Choice, Mapping[str, list[Any]]]]:
    """The choices that have log probabilities, each with its lists."""
    for answer in unfiltered_choices(x):
        if answer.logprobs is not None:
            yield answer, answer.logprobs


def token_entries(lists: Mapping[str, list[Any]]) -> list[Any]:
    """One entry for each token, from the lists of text completions or from the single list of chat completions."""
    return lists.get("tokens") or lists.get("content") or []


def token_strings(lists: Mapping[str, list[Any]], name: str = "tokens") -> list[str] | None:
    """The named list, if it consists of strings and is not empty; else None."""
    items = lists.get(name, [])
    return items if items and all(isinstance(item, str) for item in items) else None


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that fits a finite float."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < HUGE


def example_of(request: Mapping[str, Any], text: str = " 4, 5", **lists: Any) -> Exchange:
    """A reply with one choice and consistent lists, except those given; MISSING leaves one out."""
    members = {**logprobs(TOKENS, start=len("1, 2, 3,")), **lists}
    present = {name: value for name, value in members.items() if value is not MISSING}
    return plain(completion(choice(text, logprobs=present)), request)


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
    """Every choice has the requested log probabilities, in the lists of text completions where those are promised.

    Evaluation tools score texts with these lists; a null makes them crash, or report meaningless scores.

    Fix: fill `logprobs` with tokens and token_logprobs for each choice, plain and streamed, or refuse the parameter.
    """
    if not context.request(x).logprobs:
        return
    required = context.get("members", ("tokens", "token_logprobs"))
    for answer in unfiltered_choices(x):
        lists = answer.logprobs
        if not answer.text and not lists:
            continue  # an empty text has no token to score
        if lists is None:
            yield Violation("logprobs is null in every part; expected an object, as requested", answer.at)
            continue
        if context.get("shape") == "free" and not lists.get("tokens") and lists.get("content"):
            yield _scores_chat_content(lists["content"][context.request(x).echo :], answer.at)
            continue
        absent = [name for name in required if not lists.get(name)]
        empty = not answer.text and not any(lists.values())
        shape = " (the shape of chat completions)" if "content" in lists else ""
        observed = f"logprobs has {show(sorted(lists))}{shape} without {show(absent)}"
        yield expect(not absent or empty, observed, "these lists, with an entry for each token", answer.at)


def _scores_chat_content(content: list[Any], at: str) -> Finding:
    """Whether each entry of `content`, the list of chat completions, has a log probability."""
    unscored = [entry for entry in content if not isinstance(entry, Mapping) or not is_number(entry.get("logprob"))]
    observed = f"an entry of content is {show(unscored[0] if unscored else None)}"
    return expect(not unscored, observed, "a token with its logprob", at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_no_logprobs,
    good=lambda: example(plain(completion(choice()))),
    bad=lambda: example(example_of({})),
)
def logprobs_are_not_unasked(x: Exchange, context: CheckContext) -> Findings:
    """A reply has no log probabilities unless the request asks for them.

    They make a reply several times as long, and some clients decide by their presence how to read a text.

    Fix: leave `logprobs` null unless the request has a number for it.
    """
    if not asks_for_no_logprobs(context.request(x), context):
        return
    for answer in unfiltered_choices(x):
        tokens = token_entries(answer.logprobs or {})
        yield expect(not tokens, f"logprobs has {len(tokens)} tokens without a request for it", "null", answer.at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_logprobs,
    good=lambda: example(example_of(SCORED)),
    bad=lambda: example(example_of(SCORED, token_logprobs=[-0.1, -0.2])),
)
def logprob_lists_are_parallel(x: Exchange, context: CheckContext) -> Findings:
    """Each list of a log probabilities object has one entry per token.

    A client pairs them by position; a missing entry assigns every later score to the wrong token.

    Fix: append to all four lists in one place, once per token.
    """
    zero = context.request(x).logprobs == 0
    for answer in unfiltered_choices(x):
        compared = 0
        for part in answer.parts:
            lists = {name: (part.logprobs or {}).get(name) for name in LISTS}
            sizes = {name: len(value) for name, value in lists.items() if isinstance(value, list)}
            if zero and not sizes.get("top_logprobs"):
                sizes.pop("top_logprobs", None)
            if len(sizes) < 2:
                continue
            if len(set(sizes.values())) > 1:
                lengths = ", ".join(f"{name} {size}" for name, size in sizes.items())
                yield Violation(
                    f"the lists differ in length ({lengths}); expected one entry per token in each", part.at
                )
                break
            compared += 1
        else:
            if compared:
                yield Satisfied(answer.at)


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
    """With `logprobs: 0` each sampled token has its log probability, and no position lists alternatives.

    Zero is the cheapest way to score a text; read as "off" it returns nothing, read as one it returns more than needed.

    Fix: distinguish 0 from null: 0 requests the sampled tokens only.
    """
    if context.request(x).logprobs != 0:
        return
    for answer in unfiltered_choices(x):
        lists = answer.logprobs or {}
        tokens = token_entries(lists)
        if not answer.text and not tokens:
            continue  # nothing was sampled; empty lists mean the same as none
        if not tokens:
            yield Violation("logprobs is empty; expected the sampled tokens with their log probabilities", answer.at)
            continue
        tops = [entry.get("top_logprobs") if isinstance(entry, Mapping) else None for entry in lists.get("content", [])]
        tops = [top for top in lists.get("top_logprobs", tops) if isinstance(top, (Mapping, list)) and len(top) > 1]
        observed = (
            f"{len(tops)} of {len(tokens)} positions list alternatives, such as {show(tops[0] if tops else None)}"
        )
        yield expect(not tops, observed, "at most the sampled token", answer.at)


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
    """The log probability of the first token of an echoed prompt is null or a number.

    No token precedes it that it could depend on: tools skip exactly this entry, whatever its value.

    Fix: put null (or 0) there and keep the entry, so that the lists keep equal lengths.
    """
    request = context.request(x)
    if not request.echo or request.logprobs is None:
        return
    for answer, lists in choices_with_logprobs(x):
        values = lists.get("token_logprobs", [])
        if values:
            first = values[0]
            allowed = first is None or (is_number(first) and first <= 0)
            yield expect(allowed, f"the first log probability is {show(first)}", "null, or at most 0", answer.at)
