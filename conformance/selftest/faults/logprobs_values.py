"""Log probabilities of tokens and of their alternatives have impossible values, or too few or too many entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation import Step
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices, logprobs, scored
from conformance.selftest.fault import fault
from conformance.selftest.faults.logprobs import NEEDS, TEXT

VALUES = (
    "logprobs_are_finite",
    "top_logprobs_are_plausible",
    "greedy_takes_the_likeliest",
    "plain_field_conforms",
    "chunk_field_conforms",
)
Alternatives = dict[str, float]


def with_values(documents: list[Json], change: Callable[[float], object]) -> list[Json]:
    """The documents with the log probability of each sampled token changed."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = [None if value is None else change(value) for value in lists["token_logprobs"]]
    return documents


def with_alternatives(documents: list[Json], change: Callable[[Alternatives], Alternatives]) -> list[Json]:
    """The documents with the alternatives of each token changed."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [None if top is None else change(top) for top in lists["top_logprobs"]]
    return documents


# Values.


@fault(
    Stage.REPLY,
    "logprobs_are_finite",
    needs=NEEDS,
    only=scored,
    when=("plain", "streamed"),
    also=VALUES,
    imitates="Values were positive: logits that were not normalised.",
)
def values_are_positive(documents: list[Json], call: Call) -> list[Json]:
    """Values are logits, not log probabilities, and some are positive."""
    with_values(documents, lambda value: value + 12)
    return with_alternatives(documents, lambda top: {name: value + 12 for name, value in top.items()})


@fault(
    Stage.REPLY,
    "logprobs_are_finite",
    needs=NEEDS,
    only=scored,
    also=(
        *VALUES, *TEXT, "plain_is_one_json_text", "stream_payloads_are_json", "every_choice_finishes",
        "twin_text_agrees", "choices_are_complete", "twin_choices_agree", "twin_logprobs_agree", "usage_chunk_is_sent",
        "logprobs_are_returned", "logprobs_change_nothing", "choices_agree_when_greedy",
        "zero_logprobs_means_sampled_only", "logprobs_cover_echo", "choices_are_in_order", "choice_indices_are_unique",
        "best_of_returns_n", "twin_finish_agrees", "bias_bans",
    ),
    imitates="The log probability of an impossible token was minus infinity.",
)  # fmt: skip
def impossible_values_are_strings(documents: list[Json], call: Call) -> list[Json]:
    """The log probability of an unlikely token is the string "-inf"."""
    return with_values(documents, lambda value: "-inf" if value < -2 else value)


@fault(
    Stage.REPLY,
    "top_logprobs_are_plausible",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 1,
    when=("plain", "streamed"),
    also=("logprobs_are_finite", "greedy_takes_the_likeliest", "filter_bounds_the_choice"),
    imitates="Values were not a log-softmax.",
)
def alternatives_are_probabilities_halved(documents: list[Json], call: Call) -> list[Json]:
    """Alternatives have a hundredth of their log probability, so that their probabilities sum to more than 1."""
    return with_alternatives(documents, lambda top: {name: value / 100 for name, value in top.items()})


@fault(
    Stage.REPLY,
    "top_logprobs_are_plausible",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 0,
    also=("filter_bounds_the_choice", "greedy_takes_the_likeliest"),
)
def alternatives_are_those_of_the_next_token(documents: list[Json], call: Call) -> list[Json]:
    """The sampled token's log probability is not the one that its alternatives list for it."""
    return with_values(documents, lambda value: value - 1.5)


@fault(
    Stage.REPLY,
    "greedy_takes_the_likeliest",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 1 and call.params.sampling.temperature == 0,
    also=("alternatives_are_the_likeliest", "top_logprobs_have_n", "logprobs_change_nothing"),
    imitates="The alternatives were those of another step.",
)
def another_token_ranks_first(documents: list[Json], call: Call) -> list[Json]:
    """At temperature 0, the sampled token is listed far below another one."""
    for lists in logprobs(documents):
        values = [None if value is None else value - 3 for value in lists["token_logprobs"]]
        for token, value, top in zip(lists["tokens"], values, lists["top_logprobs"], strict=True):
            if top and value is not None:
                top.clear()
                top.update({" rival": -0.1, token: value})
        lists["token_logprobs"] = values
    return documents


# Alternatives.


@fault(
    Stage.REPLY,
    "top_logprobs_have_n",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 2,
    when=("plain", "streamed"),
    also=("sampled_token_is_listed",),
)
def alternatives_are_two_at_most(documents: list[Json], call: Call) -> list[Json]:
    """At most two alternatives are listed, however many were requested."""
    return with_alternatives(documents, lambda top: dict(list(top.items())[:2]))


@fault(
    Stage.REPLY,
    "top_logprobs_have_n",
    needs=NEEDS,
    only=scored,
    also=("zero_logprobs_means_sampled_only", "top_logprobs_are_plausible", "greedy_takes_the_likeliest"),
)
def alternatives_are_always_many(documents: list[Json], call: Call) -> list[Json]:
    """Ten more alternatives are listed than requested."""
    extra = {f" q{number}": -20.0 - number for number in range(10)}
    return with_alternatives(documents, lambda top: {**top, **extra})


@fault(
    Stage.REPLY,
    "top_logprobs_have_n",
    needs=NEEDS,
    also=("schema", "logprobs", "effects"),
    only=lambda call: bool(call.params.logprobs),
)
def alternatives_are_missing_in_places(documents: list[Json], call: Call) -> list[Json]:
    """Every third token has null in place of its alternatives."""
    counts: dict[int, int] = {}
    for choice in choices(documents):
        lists = choice.get("logprobs") or {"top_logprobs": []}
        first = counts.get(choice["index"], 0)
        tops = lists["top_logprobs"]
        lists["top_logprobs"] = [None if (first + number) % 3 == 1 else top for number, top in enumerate(tops)]
        counts[choice["index"]] = first + len(tops)
    return documents


@fault(
    Stage.REPLY,
    "sampled_token_is_listed",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 0,
    also=("top_logprobs_have_n",),
)
def sampled_token_is_not_among_the_best(documents: list[Json], call: Call) -> list[Json]:
    """The sampled token is listed only where it is one of the likeliest."""
    return with_alternatives(documents, lambda top: dict(list(top.items())[: call.params.logprobs or 0]))


@fault(
    Stage.REPLY,
    "alternatives_are_the_likeliest",
    needs=NEEDS,
    only=lambda call: 1 < (call.params.logprobs or 0) < 4,
    also=("sampled_token_is_listed", "top_logprobs_are_plausible", "greedy_takes_the_likeliest"),
    imitates="The likeliest tokens were taken from a partially sorted list.",
)
def alternatives_pass_over_the_second(documents: list[Json], call: Call) -> list[Json]:
    """The second most likely token is left out, and an unlikely one is listed in its place."""

    def passed_over(top: Alternatives) -> Alternatives:
        ranked = sorted(top, key=lambda name: -top[name])
        without_second = {name: top[name] for name in top if name != ranked[1]}
        return {**without_second, " q": -20.0}

    return with_alternatives(documents, lambda top: passed_over(top) if len(top) > 1 else top)


# Values of an echo.


@fault(
    Stage.TEXTS,
    "echo_scores_as_generated",
    needs=(*NEEDS, "echo", "temperature"),
    only=scored,
    imitates="A token had -10.8 in the prompt, and -0.0125 where it was generated.",
)
def echoed_tokens_are_scored_without_context(texts: list[Text], call: Call) -> list[Text]:
    """With echo, each token of the prompt is as unlikely as if nothing preceded it."""
    return [replace(text, echoed=tuple(map(_unlikely, text.echoed))) for text in texts]


def _unlikely(step: Step) -> Step:
    if step.logprob is None or step.top is None:
        return step
    return replace(step, logprob=step.logprob - 6, top=tuple((name, value - 6) for name, value in step.top))


@fault(
    Stage.TEXTS,
    "echo_scores_as_generated",
    needs=(*NEEDS, "echo", "temperature"),
    only=scored,
    also=(
        "top_logprobs_are_plausible",
        "greedy_takes_the_likeliest",
    ),
)
def echoed_values_belong_to_the_token_before(texts: list[Text], call: Call) -> list[Text]:
    """With echo, each token of the prompt has the log probability and the alternatives of the token before it."""
    return [replace(text, echoed=_late(text.echoed)) for text in texts]


def _late(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with the values of the step before them; the first two keep theirs."""
    return (*steps[:2], *(replace(step, logprob=last.logprob, top=last.top) for last, step in pairwise(steps[1:])))
