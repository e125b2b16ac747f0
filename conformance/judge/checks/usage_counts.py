"""Usage counts: how they relate to each other, to the request and to the text. Their place is a matter of `usage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, plural, show
from conformance.judge.fixtures import choice, completion, example, plain, stream, usage
from conformance.model.exchange import Exchange
from conformance.model.json_text import as_integer
from conformance.model.request_view import RequestView

COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
WORDS_PER_TOKEN: Final = 16  # a choice: tokenizers split at spaces, so real tokens have one word
LONGEST_PROMPT: Final = 8_000  # characters, a choice: longer prompts may be truncated, as some documents allow


def token_count(report: Any, name: str) -> int | None:
    """A count of a usage object; None where there is none. `completion_tokens` may be absent: 0 is its default."""
    if not isinstance(report, Mapping):
        return None
    return 0 if name == "completion_tokens" and name not in report else as_integer(report.get(name))


def usage_is_required(request: RequestView, context: CheckContext) -> bool:
    """Expected where the contract requires usage in every such reply; a client cannot trigger an optional member."""
    if request.stream:
        return request.include_usage or context.contract.semantics.usage_unasked
    required = context.contract.response.get("required", ())
    return isinstance(required, (list, tuple)) and "usage" in required


def usage_is_required_for_ids(request: RequestView, context: CheckContext) -> bool:
    """Expected where usage is required, all prompts are lists of token ids, and no suffix counts as well."""
    return (
        usage_is_required(request, context)
        and not request.get("suffix")
        and bool(request.prompts)
        and all(isinstance(prompt, tuple) for prompt in request.prompts)
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

    Bills and budgets are computed from any two of the three counts; a total that disagrees charges the wrong amount.

    Fix: compute `total_tokens` from the other two when they are reported.
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

    SDK types require all three; a client raises on a missing one, or books it as zero.

    Fix: fill in all three wherever usage is built, streams included.
    """
    for document in x.reports:
        missing = [name for name in COUNTS if document.usage.get(name) is None]
        if missing == ["completion_tokens"] and not any(choice.text for choice in x.choices.values()):
            missing = []  # 0 is its default
        yield expect(not missing, f"usage has no {', '.join(missing)}", "all three counts", f"{document.at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required,
    good=lambda: example(plain(completion(choice(), usage=usage(4.0, 4.0)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, -1)))),
)
def usage_counts_are_whole(x: Exchange, context: CheckContext) -> Findings:
    """Token counts are integers of at least 0.

    A count that is negative, a fraction or a string breaks every sum that a client computes from it.

    Fix: report integers; count tokens, do not estimate them.
    """
    for document in x.reports:
        counts = {name: document.usage[name] for name in COUNTS if document.usage.get(name) is not None}
        wrong = {name: value for name, value in counts.items() if (number := as_integer(value)) is None or number < 0}
        if counts:
            yield expect(not wrong, f"usage has {show(wrong)}", "integers of at least 0", f"{document.at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=lambda request, context: usage_is_required(request, context) and request.max_tokens is not None,
    good=lambda: example(plain(completion(choice(), choice(index=1), usage=usage(4, 8)), {"n": 2, "max_tokens": 4})),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, 9)), {"max_tokens": 4})),
)
def completion_tokens_within_limit(x: Exchange, context: CheckContext) -> Findings:
    """completion_tokens is at most max_tokens for each candidate.

    Clients cap their cost with `max_tokens`; a higher count is either a wrong bill or an ignored limit.

    Fix: count each generated token once, and stop each candidate at `max_tokens`.
    """
    request = context.request(x)
    generated = token_count(x.usage, "completion_tokens")
    zero_is_a_limit = context.contract.binding("max_tokens_zero") is not None
    if generated is None or request.max_tokens is None or request.max_tokens < (0 if zero_is_a_limit else 1):
        return
    limit = request.max_tokens * request.best_of * max(len(request.prompts), 1)
    expected = f"at most {show(limit)} ({show(request.max_tokens)} for each candidate)"
    yield expect(generated <= limit, f"completion_tokens is {show(generated)}", expected, f"{x.reports[-1].at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required,
    good=lambda: example(plain(completion(choice(), usage=usage(4, 4)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, 0)))),
)
def completion_tokens_are_counted(x: Exchange, context: CheckContext) -> Findings:
    """completion_tokens counts at least one token for each choice with text.

    A count of zero for delivered text hides its cost from quotas and budgets.

    Fix: pass the engine's counts on to the report in every code path, streams included.
    """
    if context.request(x).echo:  # the text may be the prompt alone
        return
    generated = token_count(x.usage, "completion_tokens")
    least = sum(bool(choice.text) for choice in x.choices.values())
    if generated is not None and least:
        observed = f"completion_tokens is {generated} for {plural(least, 'choice')} with text"
        yield expect(generated >= least, observed, f"{least} or more", f"{x.reports[-1].at} /usage")


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
    """prompt_tokens counts at least one token for each prompt that is not empty, and more for a long one.

    Input tokens are most of a bill; a zero, or the number of prompts instead of tokens, makes every budget wrong.

    Fix: report the number of tokens of all prompts together.
    """
    prompts = context.request(x).prompts
    counted = token_count(x.usage, "prompt_tokens")
    if counted is None or not any(prompts):
        return
    least = 0
    for prompt in prompts:
        words = len(prompt.split()) if isinstance(prompt, str) and len(prompt) <= LONGEST_PROMPT else 0
        least += max(words // WORDS_PER_TOKEN, 1) if prompt else 0
    yield expect(counted >= least, f"prompt_tokens is {counted}", f"{least} or more", f"{x.reports[-1].at} /usage")


@check(
    "usage",
    Scope.SUCCESS,
    expected_when=usage_is_required_for_ids,
    good=lambda: example(plain(completion(choice(), usage=usage(4)), {"prompt": [5, 6, 7]})),
    bad=lambda: example(plain(completion(choice(), usage=usage(9)), {"prompt": [5, 6, 7]})),
)
def prompt_tokens_match_ids(x: Exchange, context: CheckContext) -> Findings:
    """prompt_tokens is the number of token ids sent, or one more for each prompt if a start token is added.

    A caller that sends ids knows the number exactly, and finds every wrong count.

    Fix: count the ids as sent; do not decode and tokenize them again.
    """
    prompts = context.request(x).prompts
    counted = token_count(x.usage, "prompt_tokens")
    if counted is None or not prompts or not all(isinstance(prompt, tuple) for prompt in prompts):
        return
    if context.request(x).get("suffix"):  # its tokens are part of the prompt
        return
    ids = sum(map(len, prompts))
    expected = f"{ids}, or {ids + len(prompts)} with a start token each"
    matches = counted in {ids, ids + len(prompts)}
    yield expect(matches, f"prompt_tokens is {counted} for {ids} ids", expected, f"{x.reports[-1].at} /usage")


def _detail_counts(report: Mapping[str, Any], member: str) -> dict[str, int]:
    """The token counts of one details object by name."""
    details = report.get(member)
    if not isinstance(details, Mapping):
        return {}
    numbers = {name: as_integer(value) for name, value in details.items() if name.endswith("_tokens")}
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
    """cached_tokens is at most prompt_tokens.

    Cached tokens are billed at a discount: more of them than prompt tokens gives a negative price.

    Fix: report the cached tokens of this request's prompts, summed over a batch.
    """
    for document in x.reports:
        cached = _detail_counts(document.usage, "prompt_tokens_details").get("cached_tokens")
        prompt = token_count(document.usage, "prompt_tokens")
        if cached is not None and prompt is not None:
            observed = f"cached_tokens is {cached} of {prompt} prompt tokens"
            yield expect(0 <= cached <= prompt, observed, f"0 to {prompt}", f"{document.at} /usage")


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
    """No count in the usage details is larger than the count that it is a part of.

    Details break a count down; a part that exceeds the whole shows that one of the two is wrong.

    Fix: count details and totals from the same tokens; leave tokens after the end of the text out of both.
    """
    for document in x.reports:
        for member, name in (("prompt_tokens_details", COUNTS[0]), ("completion_tokens_details", COUNTS[1])):
            total = token_count(document.usage, name)
            parts = _detail_counts(document.usage, member)
            parts.pop("cached_tokens", None)  # judged by `cached_tokens_within_prompt`
            if total is None or not parts:
                continue
            wrong = {part: number for part, number in parts.items() if not 0 <= number <= total}
            yield expect(not wrong, f"{member} has {show(wrong)}", f"0 to {total}", f"{document.at} /usage")
