"""Tokens and their offsets do not fit the text, or not the prompt, or the counts."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.reference.responses import LISTS
from conformance.selftest.edits import (
    Json,
    choices,
    echoing,
    logprobs,
    prompt_of,
    scored,
    several,
    several_prompts,
    streaming,
    with_counts,
)
from conformance.selftest.fault import fault
from conformance.selftest.faults import plain_streamed
from conformance.selftest.faults.logprobs import NEEDS, TEXT

# Tokens that do not make up the text.


@fault(
    Stage.REPLY,
    "tokens_join_to_text",
    needs=NEEDS,
    only=scored,
    when=("plain", "streamed"),
    also=TEXT,
    imitates="Tokens had lost their leading spaces.",
)
def tokens_lose_their_spaces(documents: list[Json], call: Call) -> list[Json]:
    """Tokens are listed without their leading spaces."""
    for lists in logprobs(documents):
        lists["tokens"] = [token.strip(" ") for token in lists["tokens"]]
    return documents


@fault(
    Stage.REPLY,
    "tokens_join_to_text",
    needs=NEEDS,
    only=lambda call: scored(call) and several(call),
    also=(
        "top_logprobs_have_n", "length_means_the_limit", "logprobs_are_finite", *TEXT, "logprobs_count_the_tokens",
        "twin_logprobs_agree", "logprob_lists_are_parallel",
    ),
)  # fmt: skip
def tokens_are_those_of_the_first_choice(documents: list[Json], call: Call) -> list[Json]:
    """With several choices, all have the log probabilities of the first."""
    first = next((choice for choice in choices(documents) if choice.get("logprobs")), None)
    for choice in choices(documents):
        if first is not None and choice.get("logprobs"):
            choice["logprobs"] = first["logprobs"]
    return documents


@fault(
    Stage.REPLY,
    "tokens_join_to_text",
    only=lambda call: call.streamed and call.params.n > 1,
    also=("twin_text_agrees", *plain_streamed.TEXT),
    needs=("n", "logprobs"),
)
def chunks_of_other_choices_are_mixed_in(documents: list[Json], call: Call) -> list[Json]:
    """With n, the second chunks of two choices of a stream are exchanged."""
    with_text = [choice for choice in choices(documents) if choice["text"]]
    n = call.params.n * len(call.params.prompts)
    if len(with_text) > n + 1:
        with_text[n]["text"], with_text[n + 1]["text"] = with_text[n + 1]["text"], with_text[n]["text"]
    return documents


# Offsets.


@fault(Stage.REPLY, "text_offsets_follow_tokens", needs=NEEDS, only=scored, imitates="Every offset was -1.")
def offsets_are_minus_one(documents: list[Json], call: Call) -> list[Json]:
    """Every offset is -1."""
    for lists in logprobs(documents):
        lists["text_offset"] = [-1 for _ in lists["text_offset"]]
    return documents


@fault(
    Stage.REPLY,
    "text_offsets_follow_tokens",
    needs=NEEDS,
    only=lambda call: scored(call) and streaming(call),
    also=("twin_logprobs_agree",),
)
def offsets_start_again_with_each_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Offsets in a stream count from the beginning of each chunk."""
    for lists in logprobs(documents):
        first = (lists["text_offset"] or [0])[0]
        lists["text_offset"] = [offset - first for offset in lists["text_offset"]]
    return documents


@fault(
    Stage.REPLY,
    "text_offsets_follow_tokens",
    needs=(*NEEDS, "echo"),
    only=lambda call: echoing(call) and streaming(call),
    also=("twin_logprobs_agree",),
    imitates="With echo, offsets after the first chunk did not count the prompt.",
)
def offsets_forget_the_echo(documents: list[Json], call: Call) -> list[Json]:
    """With echo, offsets in later chunks do not count the prompt."""
    for choice in choices(documents):
        length = len(prompt_of(call, choice).text)
        if lists := choice.get("logprobs"):
            lists["text_offset"] = [offset - length if offset >= length else offset for offset in lists["text_offset"]]
    return documents


@fault(Stage.REPLY, "text_offsets_follow_tokens", needs=NEEDS, only=scored, also=("twin_logprobs_agree",))
def offsets_count_tokens(documents: list[Json], call: Call) -> list[Json]:
    """Offsets count tokens, not characters."""
    for lists in logprobs(documents):
        first = (lists["text_offset"] or [0])[0]
        lists["text_offset"] = [first + number for number, _ in enumerate(lists["text_offset"])]
    return documents


@fault(
    Stage.REPLY,
    "text_offsets_follow_tokens",
    needs=NEEDS,
    also=("relations", "batch_is_singles"),
    only=several_prompts,
)
def offsets_go_on_through_the_batch(documents: list[Json], call: Call) -> list[Json]:
    """With several prompts, the offsets of each also count the prompts before it."""
    for choice in choices(documents):
        earlier = call.params.prompts[: choice["index"] // call.params.n]
        lists = choice.get("logprobs") or {"text_offset": []}
        start = sum(len(prompt.text) for prompt in earlier)
        lists["text_offset"] = [offset + start for offset in lists["text_offset"]]
    return documents


# The echoed prompt, and counts.


@fault(
    Stage.REPLY,
    "logprobs_cover_echo",
    needs=(*NEEDS, "echo"),
    only=echoing,
    when=("plain", "streamed"),
    also=(
        "zero_logprobs_means_sampled_only", "logprobs_are_returned", "logprobs_count_the_tokens", "tokens_join_to_text",
        "text_offsets_follow_tokens", "echo_adds_only_the_prompt",
    ),
    imitates="With echo, only the completion had log probabilities.",
)  # fmt: skip
def echoed_prompt_is_not_scored(documents: list[Json], call: Call) -> list[Json]:
    """With echo, log probabilities cover only the completion."""
    remaining: dict[int, int] = {}
    for choice in choices(documents):
        tokens = len(prompt_of(call, choice).tokens)
        if lists := choice.get("logprobs"):
            skip = remaining.setdefault(choice["index"], tokens)
            remaining[choice["index"]] = max(0, skip - len(lists["tokens"]))
            choice["logprobs"] = {name: lists[name][skip:] for name in LISTS}
    return documents


@fault(
    Stage.REPLY,
    "logprobs_count_the_tokens",
    needs=NEEDS,
    only=scored,
    when=("plain", "streamed"),
    also=("bias_forces", *TEXT, "top_logprobs_are_plausible", "greedy_takes_the_likeliest"),
)
def tokens_are_listed_twice(documents: list[Json], call: Call) -> list[Json]:
    """At the end of each text, log probabilities list three more tokens, all of them empty."""
    for choice in choices(documents):
        lists = choice.get("logprobs")
        if lists and choice["finish_reason"]:
            end = lists["text_offset"][-1] + len(lists["tokens"][-1]) if lists["text_offset"] else 0
            lists["tokens"] += ["", "", ""]
            lists["token_logprobs"] += [-0.5, -0.5, -0.5]
            lists["top_logprobs"] += [{"": -0.5, " and": -2.0}] * 3 if call.params.logprobs else [{"": -0.5}] * 3
            lists["text_offset"] += [end] * 3
    return documents


@fault(
    Stage.USAGE,
    "logprobs_count_the_tokens",
    only=echoing,
    also=(
        "bias_forces", "completion_tokens_within_limit", "length_uses_the_limit", "batch_usage_is_the_sum",
        "twin_usage_agrees",
    ),
    needs=(*NEEDS, "echo"),
)  # fmt: skip
def echoed_tokens_count_as_completion(usage: Json, call: Call) -> Json:
    """With echo and logprobs, the tokens of the prompt also count as completion tokens."""
    return with_counts(usage, completion_tokens=usage["completion_tokens"] + usage["prompt_tokens"])
