"""Fields of a reply that are missing, or not what the schema says."""

from __future__ import annotations

from conformance.model import Contract
from conformance.model.json_text import dumps
from conformance.model.parameter_traits import Role
from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, streaming, usages
from conformance.selftest.fault import fault

PLAIN, CHUNK = "plain_field_conforms", "chunk_field_conforms"
SEEN = (
    "choices_are_complete",
    "batch_order_holds",
    "choice_indices_are_unique",
    "every_choice_finishes",
    "twin_choices_agree",
    "twin_text_agrees",
    "twin_finish_agrees",
    "twin_logprobs_agree",
    "chunk_has_choices",
    "chunk_field_conforms",
    "plain_field_conforms",
    "choices_are_in_order",
    "best_of_returns_n",
    "usage_chunk_has_no_choices",
    "choices_agree_when_greedy",
    "deltas_are_not_cumulative",
)


def required(contract: Contract, name: str) -> bool:
    """Only where the response needs this member."""
    return name in contract.response.get("required", ())


def described(contract: Contract, name: str) -> bool:
    """Only where the response describes this member."""
    return name in contract.response.get("properties", {})


def describes_logprobs(contract: Contract) -> bool:
    """Only where the response says what log probabilities look like."""
    return '"token_logprobs"' in dumps(contract.response)


def requires_service_tier(contract: Contract) -> bool:
    """Only where the reply must name its service tier."""
    return required(contract, contract.by_role(Role.REPORTED))


def _without(documents: list[Json], name: str) -> list[Json]:
    return [{key: value for key, value in document.items() if key != name} for document in documents]


def _each(documents: list[Json], name: str, value: object) -> list[Json]:
    return [{**document, name: value} if name in document else document for document in documents]


@fault(Stage.REPLY, PLAIN, also=(CHUNK,), fits=lambda contract: required(contract, "id"))
def id_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Replies have no id."""
    return _without(documents, "id")


@fault(Stage.REPLY, PLAIN, also=(CHUNK,), fits=lambda contract: required(contract, "object"))
def object_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Replies do not say what kind of object they are."""
    return _without(documents, "object")


@fault(Stage.REPLY, PLAIN, also=(CHUNK,), fits=lambda contract: required(contract, "model"))
def model_is_null(documents: list[Json], call: Call) -> list[Json]:
    """Replies name no model."""
    return _each(documents, "model", None)


@fault(Stage.REPLY, CHUNK, only=streaming, fits=lambda contract: required(contract, "model"))
def chunks_do_not_name_the_model(documents: list[Json], call: Call) -> list[Json]:
    """Chunks have no model."""
    return _without(documents, "model")


@fault(Stage.REPLY, PLAIN, also=(CHUNK,), imitates="Completions declared themselves as chat completions.")
def object_is_that_of_chat(documents: list[Json], call: Call) -> list[Json]:
    """Replies say that they are chat completions."""
    return _each(documents, "object", "chat.completion")


@fault(Stage.REPLY, CHUNK, only=streaming, imitates="Chunks of completions declared themselves as chat chunks.")
def chunks_are_those_of_chat(documents: list[Json], call: Call) -> list[Json]:
    """Chunks say that they are chunks of a chat completion."""
    return _each(documents, "object", "chat.completion.chunk")


@fault(Stage.REPLY, PLAIN, also=(CHUNK, "created_is_in_seconds"), imitates="`created` was a date in words.")
def created_is_a_date(documents: list[Json], call: Call) -> list[Json]:
    """`created` is a date in words."""
    return _each(documents, "created", "2026-01-01T00:00:00Z")


@fault(
    Stage.REPLY,
    "created_is_in_seconds",
    also=(PLAIN, CHUNK),
    variants=("plain", "streamed"),
    imitates="Servers counted milliseconds.",
)
def created_is_in_milliseconds(documents: list[Json], call: Call) -> list[Json]:
    """`created` counts milliseconds."""
    return [{**document, "created": document["created"] * 1000} for document in documents]


@fault(
    Stage.REPLY,
    "created_agrees_with_the_clock",
    variants=("plain", "streamed"),
    imitates="A naive local time was taken for UTC.",
)
def created_is_local_time(documents: list[Json], call: Call) -> list[Json]:
    """`created` is the server's local time, eight hours ahead of UTC."""
    return [{**document, "created": document["created"] + 8 * 3600} for document in documents]


@fault(Stage.REPLY, "created_is_in_seconds", also=(PLAIN, CHUNK))
def created_is_zero(documents: list[Json], call: Call) -> list[Json]:
    """`created` is 0."""
    return _each(documents, "created", 0)


@fault(
    Stage.REPLY,
    "id_is_not_empty",
    also=(PLAIN, CHUNK, "ids_are_unique"),
    variants=("plain", "streamed"),
    imitates="Ids were empty strings.",
)
def id_is_empty(documents: list[Json], call: Call) -> list[Json]:
    """The id is an empty string."""
    return _each(documents, "id", "")


@fault(Stage.REPLY, "ids_are_unique")
def all_ids_are_alike(documents: list[Json], call: Call) -> list[Json]:
    """All completions have the same id."""
    return _each(documents, "id", "cmpl-id")


@fault(
    Stage.REPLY, PLAIN, also=("suffix_is_used", CHUNK, *SEEN), imitates="A native reply of the engine had no choices."
)
def choices_have_another_name(documents: list[Json], call: Call) -> list[Json]:
    """The list of choices is called `completions`."""
    return [{**_without([document], "choices")[0], "completions": document["choices"]} for document in documents]


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "suffix_is_used",
        CHUNK,
        *SEEN,
        "echo_begins_with_prompt",
        "tokens_join_to_text",
        "length_comes_with_text",
        "json_is_valid",
        "bias_forces",
        "logprobs_are_returned",
        "text_offsets_follow_tokens",
    ),
    imitates="Completions came in the shape of chat: `message` in place of `text`.",
)
def text_comes_as_a_message(documents: list[Json], call: Call) -> list[Json]:
    """Choices have a `message`, not a `text`."""
    for choice in choices(documents):
        choice["message"] = {"role": "assistant", "content": choice.pop("text")}
    return documents


@fault(
    Stage.REPLY,
    CHUNK,
    only=streaming,
    also=(
        "batch_is_singles",
        *SEEN,
        "echo_begins_with_prompt",
        "length_comes_with_text",
        "stop_cuts_earliest",
        "suffix_is_used",
    ),
    imitates="Chunks of text had a `delta` as in chat.",
)
def text_comes_as_a_delta(documents: list[Json], call: Call) -> list[Json]:
    """Choices of chunks have a `delta`, not a `text`."""
    for choice in choices(documents):
        choice["delta"] = {"content": choice.pop("text")}
    return documents


@fault(Stage.REPLY, CHUNK, only=streaming, imitates="The finish chunk had text null.")
def last_text_is_null(documents: list[Json], call: Call) -> list[Json]:
    """A chunk that brings no text has `text: null`."""
    for choice in choices(documents):
        choice["text"] = choice["text"] or None
    return documents


@fault(Stage.REPLY, PLAIN, also=(*SEEN, "suffix_is_used"))
def index_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Choices have no index."""
    for choice in choices(documents):
        del choice["index"]
    return documents


@fault(Stage.REPLY, PLAIN, also=(*SEEN, "suffix_is_used"))
def index_is_a_string(documents: list[Json], call: Call) -> list[Json]:
    """The index of a choice is a string."""
    for choice in choices(documents):
        choice["index"] = str(choice["index"])
    return documents


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "batch_is_singles",
        "cut_text_finishes_with_length",
        "stop_finishes_with_stop",
        "twin_finish_agrees",
        CHUNK,
        "every_choice_finishes",
    ),
    only=lambda call: not call.streamed,
    imitates="The key finish_reason was missing.",
)
def finish_reason_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Choices of plain replies have no `finish_reason`."""
    for choice in choices(documents):
        choice.pop("finish_reason", None)
    return documents


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "tier_is_reported",
        CHUNK,
    ),
    fits=requires_service_tier,
)
def tier_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """Replies do not name the service tier, where that is promised."""
    return _without(documents, call.reference.shape.reported)


@fault(Stage.REPLY, PLAIN, also=(CHUNK,), fits=lambda contract: described(contract, "system_fingerprint"))
def fingerprint_is_a_number(documents: list[Json], call: Call) -> list[Json]:
    """The fingerprint is a number."""
    return [{**document, "system_fingerprint": 7} for document in documents]


@fault(
    Stage.REPLY,
    "usage_counts_are_whole",
    also=(
        CHUNK,
        PLAIN,
        "usage_adds_up",
        "twin_usage_agrees",
        "length_uses_the_limit",
        "usage_has_three_counts",
        "batch_usage_is_the_sum",
    ),
)
def counts_are_strings(documents: list[Json], call: Call) -> list[Json]:
    """The counts of usage are strings."""
    for usage in usages(documents):
        usage["prompt_tokens"] = str(usage["prompt_tokens"])
    return documents


@fault(
    Stage.REPLY,
    PLAIN,
    also=(
        "logprobs_are_returned",
        "twin_logprobs_agree",
        CHUNK,
        "logprob_lists_are_parallel",
        "tokens_join_to_text",
        "logprobs_cover_echo",
        "zero_logprobs_means_sampled_only",
    ),
    needs=("logprobs",),
    fits=describes_logprobs,
)
def tokens_are_objects(documents: list[Json], call: Call) -> list[Json]:
    """The tokens of log probabilities are objects, not strings."""
    for choice in choices(documents):
        if choice.get("logprobs"):
            choice["logprobs"]["tokens"] = [{"token": one} for one in choice["logprobs"]["tokens"]]
    return documents


@fault(
    Stage.REPLY,
    "text_has_no_lone_surrogates",
    variants=("plain", "streamed"),
    also=(
        "echo_of_zero_tokens",
        "effects",
        "max_tokens_zero",
        "completion_tokens_are_counted",
        "echo_adds_only_the_prompt",
        "logprobs",
        "stop_cuts_earliest",
    ),
)
def half_a_pair_is_sent(documents: list[Json], call: Call) -> list[Json]:
    """A text ends in one half of a surrogate pair."""
    for choice in choices(documents):
        choice["text"] += "\ud83d"
    return documents
