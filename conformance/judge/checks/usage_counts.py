"""Usage as numbers: what the counts of a report must be to each other, to the request and to the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.fixtures import choice, completion, example, plain, stream, usage
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange
from conformance.model.request_view import RequestView

COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
WORDS_IN_A_TOKEN: Final = 16  # no tokenizer joins that many words
LONGEST: Final = 8_000  # a longer prompt may have been truncated as documented


def whole_number(value: Any) -> int | None:
    """The value as a count, 1.0 included; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return None
    return int(value)


def token_count(report: Any, name: str) -> int | None:
    """A count of a usage object. `completion_tokens` may be left out where it is 0: its documented default."""
    if not isinstance(report, Mapping):
        return None
    return 0 if name == "completion_tokens" and name not in report else whole_number(report.get(name))


def usage_is_required(request: RequestView, context: CheckContext) -> bool:
    """Due where the contract has every such reply carry usage; an optional member cannot be provoked."""
    if request.stream:
        return request.include_usage or context.contract.semantics.usage_unasked
    required = context.contract.response.get("required", ())
    return isinstance(required, (list, tuple)) and "usage" in required


def usage_is_required_for_ids(request: RequestView, context: CheckContext) -> bool:
    """Due where usage is, on prompts of token ids."""
    return (
        usage_is_required(request, context)
        and bool(request.prompts)
        and all(isinstance(one, tuple) for one in request.prompts)
    )


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required,
    good=lambda: example(plain(completion(choice(), usage=usage(4, 4)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, 4, total=9)))),
)
def usage_adds_up(x: Exchange, context: CheckContext) -> Findings:
    """Total tokens are prompt tokens plus completion tokens.

    Bills and budgets are computed from any two of the three numbers; a total that disagrees charges the wrong amount.

    Fix: compute `total_tokens` from the other two at the moment they are reported.
    """
    for document in x.reports:
        prompt, generated, total = (token_count(document.usage, name) for name in COUNTS)
        if prompt is None or generated is None or total is None:
            continue
        yield expect(
            total == prompt + generated, f"total_tokens is {total}", f"{prompt} + {generated}", f"{document.at} /usage"
        )


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required,
    good=lambda: example(plain(completion(choice(""), usage={"prompt_tokens": 4, "total_tokens": 4}))),
    bad=lambda: example(stream(completion(choice()), completion(usage={"prompt_tokens": 4, "completion_tokens": 4}))),
)
def usage_has_three_counts(x: Exchange, context: CheckContext) -> Findings:
    """A usage object has prompt_tokens, completion_tokens and total_tokens.

    SDK types require the three; a report that lacks one raises, or is booked as zero.

    Fix: fill in all three wherever usage is built, the streaming path too.
    """
    for document in x.reports:
        missing = [name for name in COUNTS if document.usage.get(name) is None]
        if missing == ["completion_tokens"] and not any(one.text for one in x.choices.values()):
            missing = []  # 0 is its default
        yield expect(not missing, f"usage lacks {', '.join(missing)}", "three counts", f"{document.at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required,
    good=lambda: example(plain(completion(choice(), usage=usage(4.0, 4.0)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, -1)))),
)
def usage_counts_are_whole(x: Exchange, context: CheckContext) -> Findings:
    """Counts of tokens are whole numbers from 0 up.

    A negative, broken or textual count breaks the sums of whoever adds them up.

    Fix: report integers; count, do not estimate.
    """
    for document in x.reports:
        told = {name: document.usage[name] for name in COUNTS if document.usage.get(name) is not None}
        wrong = {name: value for name, value in told.items() if (number := whole_number(value)) is None or number < 0}
        if told:
            yield expect(not wrong, f"usage has {show(wrong)}", "whole numbers from 0 up", f"{document.at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=lambda request, context: usage_is_required(request, context) and request.max_tokens is not None,
    good=lambda: example(plain(completion(choice(), choice(index=1), usage=usage(4, 8)), {"n": 2, "max_tokens": 4})),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, 9)), {"max_tokens": 4})),
)
def completion_tokens_within_limit(x: Exchange, context: CheckContext) -> Findings:
    """No more tokens are counted than max_tokens allows for all candidates together.

    `max_tokens` is how a client caps its cost; a count beyond it is either a wrong bill or an ignored cap.

    Fix: count each generated token once, and stop each candidate at `max_tokens`.
    """
    request = context.request(x)
    generated = token_count(x.usage, "completion_tokens")
    if generated is None or request.max_tokens is None or request.max_tokens < 1:
        return
    most = request.max_tokens * request.best_of * max(len(request.prompts), 1)
    if generated <= most:
        yield Satisfied(f"{x.reports[-1].at} /usage")
    else:
        expected = f"at most {show(most)} ({show(request.max_tokens)} for each candidate)"
        yield Violation(f"completion_tokens is {generated}; expected {expected}", f"{x.reports[-1].at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required,
    good=lambda: example(plain(completion(choice(), usage=usage(4, 4)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, 0)))),
)
def completion_tokens_are_counted(x: Exchange, context: CheckContext) -> Findings:
    """Each choice that has text has at least one token counted.

    A report of zero for text that was delivered hides what it cost from quotas and budgets.

    Fix: carry the engine's counts through to the report on each path, streams of this route included.
    """
    if context.request(x).echo:  # the text may be the prompt alone
        return
    generated, least = token_count(x.usage, "completion_tokens"), sum(bool(one.text) for one in x.choices.values())
    if generated is not None and least:
        seen = f"completion_tokens is {generated} for {least} choices with text"
        yield expect(generated >= least, seen, f"{least} or more", f"{x.reports[-1].at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=lambda request, context: usage_is_required(request, context) and any(request.prompts),
    good=lambda: example(plain(completion(choice(), choice(index=1), usage=usage(5)), {"prompt": ["a", "b c d"]})),
    bad=lambda: (
        *example(plain(completion(choice(), usage=usage(0)))),
        *example(plain(completion(choice(), usage=usage(1)), {"prompt": "one two " * 40})),
    ),
)
def prompt_tokens_are_counted(x: Exchange, context: CheckContext) -> Findings:
    """The prompt is counted: at least one token for each prompt that is not empty, and more for a long one.

    Input tokens are most of a bill; a zero, or the number of prompts in their place, makes every budget wrong.

    Fix: report the number of tokens that the tokenizer made of all prompts together.
    """
    prompts = context.request(x).prompts
    told = token_count(x.usage, "prompt_tokens")
    if told is None or not any(prompts):
        return
    least = 0
    for prompt in prompts:
        words = len(prompt.split()) if isinstance(prompt, str) and len(prompt) <= LONGEST else 0
        least += max(words // WORDS_IN_A_TOKEN, 1) if prompt else 0
    yield expect(told >= least, f"prompt_tokens is {told}", f"{least} or more", f"{x.reports[-1].at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required_for_ids,
    good=lambda: example(plain(completion(choice(), usage=usage(4)), {"prompt": [5, 6, 7]})),
    bad=lambda: example(plain(completion(choice(), usage=usage(9)), {"prompt": [5, 6, 7]})),
)
def prompt_tokens_match_ids(x: Exchange, context: CheckContext) -> Findings:
    """A prompt of token ids counts as many tokens as it has ids; one more for each prompt where a start token is added.

    Whoever sends ids knows the number exactly: this is where a wrong count can be proved.

    Fix: count the ids as given; do not decode and tokenize them again.
    """
    prompts = context.request(x).prompts
    told = token_count(x.usage, "prompt_tokens")
    if told is None or not prompts or not all(isinstance(prompt, tuple) for prompt in prompts):
        return
    ids = sum(map(len, prompts))
    expected = f"{ids}, or {ids + len(prompts)} with a start token each"
    held = told in {ids, ids + len(prompts)}
    yield expect(held, f"prompt_tokens is {told} for {ids} ids", expected, f"{x.reports[-1].at} /usage")


def _details(report: Mapping[str, Any], member: str) -> dict[str, int]:
    found = report.get(member)
    if not isinstance(found, Mapping):
        return {}
    numbers = {name: whole_number(value) for name, value in found.items() if name.endswith("_tokens")}
    return {name: number for name, number in numbers.items() if number is not None}


CACHED: Final = {"prompt_tokens_details": {"cached_tokens": 64}}


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: example(plain(completion(choice(), usage=usage(80, 4, **CACHED)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(40, 4, **CACHED)))),
)
def cached_tokens_within_prompt(x: Exchange, context: CheckContext) -> Findings:
    """No more tokens came from the cache than the prompts have.

    Cached tokens are billed at a discount: more of them than input tokens gives a negative price.

    Fix: report the cached part of this request's prompts, summed over a batch.
    """
    for document in x.reports:
        cached = _details(document.usage, "prompt_tokens_details").get("cached_tokens")
        prompt = token_count(document.usage, "prompt_tokens")
        if cached is not None and prompt is not None:
            seen = f"cached_tokens is {cached} of {prompt} prompt tokens"
            yield expect(0 <= cached <= prompt, seen, f"0 to {prompt}", f"{document.at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: example(
        plain(completion(choice(), usage=usage(4, 4, completion_tokens_details={"reasoning_tokens": 3})))
    ),
    bad=lambda: example(
        plain(completion(choice(), usage=usage(4, 4, completion_tokens_details={"reasoning_tokens": 5})))
    ),
)
def details_within_totals(x: Exchange, context: CheckContext) -> Findings:
    """No detail of the usage is larger than the count that it is a part of.

    Details explain a total; a part that exceeds the whole shows that one of the two was not counted.

    Fix: count details and totals from the same tokens, those beyond the end of text left out of both.
    """
    for document in x.reports:
        for member, name in (("prompt_tokens_details", COUNTS[0]), ("completion_tokens_details", COUNTS[1])):
            total = token_count(document.usage, name)
            parts = _details(document.usage, member)
            parts.pop("cached_tokens", None)  # has a check of its own
            if total is None or not parts:
                continue
            wrong = {part: number for part, number in parts.items() if not 0 <= number <= total}
            yield expect(not wrong, f"{member} has {show(wrong)}", f"0 to {total}", f"{document.at} /usage")
