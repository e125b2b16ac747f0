"""Log probabilities are missing, misplaced, or not what they are called."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters
from conformance.reference.responses import LISTS
from conformance.selftest.edits import Json, choices, logprobs, several
from conformance.selftest.fault import fault

NEEDS = ("logprobs",)
GONE = (
    "logprobs_are_returned",
    "zero_logprobs_means_sampled_only",
    "logprobs_cover_echo",
    "plain_field_conforms",
    "chunk_field_conforms",
    "logprobs_count_the_tokens",
    "choices_agree_when_greedy",
)
TEXT = (
    "tokens_join_to_text",
    "text_offsets_follow_tokens",
    "sampled_token_is_listed",
    "logprobs_cover_echo",
    "top_logprobs_are_plausible",
)
VALUES = ("logprobs_are_finite", "top_logprobs_are_plausible", "plain_field_conforms", "chunk_field_conforms")


def scored(call: Call) -> bool:
    """Only where log probabilities are asked for."""
    return call.params.logprobs is not None


def echoing(call: Call) -> bool:
    """Only where the prompt is to be scored as well."""
    return call.params.echo and scored(call)


def _drop(documents: list[Json], beyond: int = -1) -> list[Json]:
    for choice in choices(documents):
        if choice["index"] > beyond:
            choice["logprobs"] = None
    return documents


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=NEEDS,
    variants=("plain", "streamed", "sometimes"),
    only=scored,
    also=GONE,
    imitates="Servers answered `logprobs: null` whatever was asked.",
)
def logprobs_stay_null(documents: list[Json], call: Call) -> list[Json]:
    """Log probabilities are asked for, and null."""
    return _drop(documents)


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=NEEDS,
    only=lambda call: scored(call) and several(call),
    also=GONE,
    imitates="Prompts after the first had no log probabilities.",
)
def later_choices_have_no_logprobs(documents: list[Json], call: Call) -> list[Json]:
    """With several choices, the first alone has log probabilities."""
    return _drop(documents, 0)


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=(*NEEDS, "stop"),
    only=lambda call: scored(call) and bool(call.params.stops),
    also=GONE,
)
def logprobs_are_lost_beside_stop(documents: list[Json], call: Call) -> list[Json]:
    """With stop sequences, log probabilities are null."""
    return _drop(documents)


@fault(
    Stage.REPLY,
    "logprobs_are_returned",
    needs=NEEDS,
    only=scored,
    also=(*GONE, *TEXT, "logprob_lists_are_parallel"),
    imitates="The object had the shape of chat completions.",
    fits=lambda contract: not contract.semantics.logprobs_shape_is_free,
)
def logprobs_have_the_shape_of_chat(documents: list[Json], call: Call) -> list[Json]:
    """Log probabilities come as in chat: a list of objects called `content`."""
    for choice in choices(documents):
        if lists := choice.get("logprobs"):
            pairs = zip(lists["tokens"], lists["token_logprobs"], strict=True)
            choice["logprobs"] = {"content": [{"token": token, "logprob": value} for token, value in pairs]}
    return documents


@fault(
    Stage.WISH,
    "logprobs_are_not_unasked",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=(
        "text_offsets_follow_tokens",
        "logprobs_change_nothing",
        "null_is_absent",
        "default_is_explicit",
        "choices_agree_when_greedy",
        "stop_that_never_matches",
    ),
)
def logprobs_come_unasked(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Every reply has log probabilities."""
    return replace(params, logprobs=1) if params.logprobs is None else params


@fault(
    Stage.REPLY,
    "zero_logprobs_means_sampled_only",
    needs=NEEDS,
    only=lambda call: call.params.logprobs == 0,
    also=(
        "logprobs_cover_echo",
        "first_echo_logprob_is_null_or_number",
        "logprobs_count_the_tokens",
        "plain_field_conforms",
        "chunk_field_conforms",
    ),
    imitates="Zero was taken for no.",
)
def zero_is_taken_for_no(documents: list[Json], call: Call) -> list[Json]:
    """`logprobs: 0` brings no log probabilities."""
    return _drop(documents)


@fault(
    Stage.REPLY,
    "zero_logprobs_means_sampled_only",
    needs=NEEDS,
    only=lambda call: call.params.logprobs == 0,
    also=("top_logprobs_have_n",),
)
def zero_brings_an_alternative(documents: list[Json], call: Call) -> list[Json]:
    """`logprobs: 0` lists another token beside the sampled one."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [one if one is None else {**one, " quite": -9.0} for one in lists["top_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "logprob_lists_are_parallel",
    needs=NEEDS,
    only=scored,
    variants=("plain", "streamed"),
    also=("logprobs_are_returned", *TEXT, "logprobs_count_the_tokens"),
    imitates="Tokens and their values had different lengths.",
)
def values_lack_the_last_token(documents: list[Json], call: Call) -> list[Json]:
    """The list of values is one shorter than that of tokens."""
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
    """With echo, alternatives are listed for the completion alone."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [one for one in lists["top_logprobs"] if one is not None][1:]
    return documents


@fault(
    Stage.REPLY,
    "logprobs_cover_echo",
    needs=(*NEEDS, "echo"),
    only=echoing,
    variants=("plain", "streamed"),
    also=(
        "zero_logprobs_means_sampled_only",
        "logprobs_are_returned",
        "logprobs_count_the_tokens",
        "tokens_join_to_text",
        "text_offsets_follow_tokens",
        "echo_adds_only_the_prompt",
    ),
    imitates="With echo, the completion alone was scored.",
)
def echoed_prompt_is_not_scored(documents: list[Json], call: Call) -> list[Json]:
    """With echo, log probabilities cover the completion alone."""
    left: dict[int, int] = {}
    for choice in choices(documents):
        tokens = len(call.params.prompts[choice["index"] // call.params.n].tokens)
        if lists := choice.get("logprobs"):
            skip = left.setdefault(choice["index"], tokens)
            left[choice["index"]] = max(0, skip - len(lists["tokens"]))
            choice["logprobs"] = {name: lists[name][skip:] for name in LISTS}
    return documents


@fault(
    Stage.REPLY,
    "logprobs_count_the_tokens",
    needs=NEEDS,
    only=scored,
    variants=("plain", "streamed"),
    also=("bias_forces", *TEXT, "top_logprobs_are_plausible"),
)
def tokens_are_listed_twice(documents: list[Json], call: Call) -> list[Json]:
    """The end of each text is scored twice, the second time as empty tokens."""
    for choice in choices(documents):
        lists = choice.get("logprobs")
        if lists and choice["finish_reason"]:
            lists["tokens"] += ["", "", ""]
            lists["token_logprobs"] += [-0.5, -0.5, -0.5]
            lists["top_logprobs"] += [{"": -0.5, " and": -2.0}] * 3 if call.params.logprobs else [{"": -0.5}] * 3
            lists["text_offset"] += (
                [lists["text_offset"][-1] + len(lists["tokens"][-4])] * 3 if lists["text_offset"] else [0] * 3
            )
    return documents


@fault(
    Stage.WISH,
    "logprobs_change_nothing",
    needs=NEEDS,
    only=scored,
    imitates="Asking for log probabilities took another route, with another prompt template.",
    also=(
        "twin_text_agrees",
        "echo_adds_only_the_prompt",
        "longer_limit_extends",
        "stop_that_never_matches",
        "batch_is_singles",
        "choices_agree_when_greedy",
    ),
)
def logprobs_take_another_route(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, another text is written."""
    return replace(params, suffix=params.suffix + "\n")
