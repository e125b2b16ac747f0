"""Log probabilities are missing, unrequested, or have another shape."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import Json, choices, echoing, logprobs, scored, several, stopping
from conformance.selftest.fault import fault

NEEDS = ("logprobs",)
MISSING = (
    "logprobs_are_returned", "zero_logprobs_means_sampled_only", "logprobs_cover_echo", "plain_field_conforms",
    "chunk_field_conforms", "logprobs_count_the_tokens", "choices_agree_when_greedy",
)  # fmt: skip
TEXT = (
    "tokens_join_to_text", "text_offsets_follow_tokens", "sampled_token_is_listed", "logprobs_cover_echo",
    "top_logprobs_are_plausible",
)  # fmt: skip


def _without_logprobs(documents: list[Json], after: int = -1) -> list[Json]:
    """The documents with null log probabilities in each choice after this index."""
    for choice in choices(documents):
        if choice["index"] > after:
            choice["logprobs"] = None
    return documents


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=NEEDS,
    when=("plain", "streamed", "sometimes"),
    only=scored,
    also=MISSING,
    imitates="Servers answered `logprobs: null` whatever was requested.",
)
def logprobs_stay_null(documents: list[Json], call: Call) -> list[Json]:
    """Log probabilities are requested, and are null."""
    return _without_logprobs(documents)


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=NEEDS,
    only=lambda call: scored(call) and several(call),
    also=MISSING,
    imitates="Prompts after the first had no log probabilities.",
)
def later_choices_have_no_logprobs(documents: list[Json], call: Call) -> list[Json]:
    """With several choices, only the first has log probabilities."""
    return _without_logprobs(documents, after=0)


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=(*NEEDS, "stop"),
    only=lambda call: scored(call) and stopping(call),
    also=MISSING,
)
def logprobs_are_lost_beside_stop(documents: list[Json], call: Call) -> list[Json]:
    """With stop sequences, log probabilities are null."""
    return _without_logprobs(documents)


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=NEEDS,
    only=scored,
    also=(*MISSING, *TEXT, "logprob_lists_are_parallel"),
    imitates="The object had the shape of chat completions.",
    fits=lambda contract: not contract.semantics.logprobs_shape_is_free,
)
def logprobs_have_the_shape_of_chat(documents: list[Json], call: Call) -> list[Json]:
    """Log probabilities have the shape of chat completions: a list of objects called `content`."""
    for choice in choices(documents):
        if lists := choice.get("logprobs"):
            pairs = zip(lists["tokens"], lists["token_logprobs"], strict=True)
            choice["logprobs"] = {"content": [{"token": token, "logprob": value} for token, value in pairs]}
    return documents


@fault(
    Stage.PARAMETERS,
    "logprobs_are_not_unasked",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=(
        "text_offsets_follow_tokens", "logprobs_change_nothing", "null_is_absent", "default_is_explicit",
        "choices_agree_when_greedy", "stop_that_never_matches",
    ),
)  # fmt: skip
def logprobs_come_unasked(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Every reply has log probabilities, requested or not."""
    return replace(params, logprobs=1) if params.logprobs is None else params


@fault(
    Stage.REPLY,
    "zero_logprobs_means_sampled_only",
    needs=NEEDS,
    only=lambda call: call.params.logprobs == 0,
    also=(
        "logprobs_cover_echo", "first_echo_logprob_is_null_or_number", "logprobs_count_the_tokens",
        "plain_field_conforms", "chunk_field_conforms",
    ),
    imitates="Zero was treated as false.",
)  # fmt: skip
def zero_is_taken_for_no(documents: list[Json], call: Call) -> list[Json]:
    """With `logprobs: 0`, there are no log probabilities."""
    return _without_logprobs(documents)


@fault(
    Stage.REPLY,
    "zero_logprobs_means_sampled_only",
    needs=NEEDS,
    only=lambda call: call.params.logprobs == 0,
    also=("top_logprobs_have_n",),
)
def zero_brings_an_alternative(documents: list[Json], call: Call) -> list[Json]:
    """With `logprobs: 0`, another token is listed beside the sampled one."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [top if top is None else {**top, " quite": -9.0} for top in lists["top_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "logprob_lists_are_parallel",
    needs=NEEDS,
    only=scored,
    when=("plain", "streamed"),
    also=("logprobs_are_returned", *TEXT, "logprobs_count_the_tokens"),
    imitates="Tokens and their values had different lengths.",
)
def values_lack_the_last_token(documents: list[Json], call: Call) -> list[Json]:
    """token_logprobs is one shorter than tokens."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = lists["token_logprobs"][:-1]
    return documents


@fault(
    Stage.REPLY,
    "logprob_lists_are_parallel",
    needs=(*NEEDS, "echo"),
    only=echoing,
    also=(*TEXT, "logprobs_count_the_tokens"),
)
def alternatives_lack_the_echoed_prompt(documents: list[Json], call: Call) -> list[Json]:
    """With echo, top_logprobs lacks entries for the first tokens of the prompt."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [top for top in lists["top_logprobs"] if top is not None][1:]
    return documents


@fault(
    Stage.REPLY,
    "first_echo_logprob_is_null_or_number",
    needs=(*NEEDS, "echo"),
    only=echoing,
    also=("logprobs_are_finite", "plain_field_conforms", "chunk_field_conforms"),
)
def first_echoed_value_is_a_word(documents: list[Json], call: Call) -> list[Json]:
    """With echo, the first token's log probability is the string "NaN"."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = ["NaN" if value is None else value for value in lists["token_logprobs"]]
    return documents
