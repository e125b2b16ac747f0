"""The chunks of a stream do not belong together, repeat text, or have no choices."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, streaming, wants_usage
from conformance.selftest.fault import fault


@fault(Stage.REPLY, "chunks_share_one_id", only=streaming, imitates="Servers made a new id for each chunk.")
def id_changes_with_each_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Each chunk has an id of its own."""
    return [{**document, "id": f"{document['id']}-{number}"} for number, document in enumerate(documents)]


@fault(Stage.REPLY, "chunks_share_one_id", only=lambda call: call.streamed and call.params.n > 1)
def id_differs_between_choices(documents: list[Json], call: Call) -> list[Json]:
    """With n, the chunks of each choice have an id of their own."""
    for document in documents:
        for choice in document["choices"][:1]:
            document["id"] += f"-{choice['index']}"
    return documents


@fault(Stage.REPLY, "chunks_share_one_id", needs=("stream_options",), only=wants_usage)
def id_of_the_usage_chunk_is_new(documents: list[Json], call: Call) -> list[Json]:
    """The chunk with usage has another id than the others."""
    return [*documents[:-1], {**documents[-1], "id": "cmpl-usage"}]


@fault(Stage.REPLY, "chunks_share_one_model", only=streaming)
def model_changes_within_a_stream(documents: list[Json], call: Call) -> list[Json]:
    """Chunks after the first name another model."""
    return [*documents[:1], *({**document, "model": "fallback-model"} for document in documents[1:])]


@fault(
    Stage.REPLY,
    "deltas_are_not_cumulative",
    also=(
        "batch_is_singles", "narrow_sampling_is_greedy", "stop_that_never_matches", "bias_forces", "twin_text_agrees",
        "stop_text_is_as_promised", "tokens_join_to_text", "json_is_valid", "burst_does_not_mix", "stop_cuts_earliest",
        "no_partial_stop_leaks", "echo_adds_only_the_prompt", "longer_limit_extends",
    ),
    only=streaming,
    imitates="A server repeated the whole text so far in every chunk.",
)  # fmt: skip
def deltas_repeat_the_text_so_far(documents: list[Json], call: Call) -> list[Json]:
    """Each chunk repeats the text of the chunks before it."""
    so_far: dict[int, str] = {}
    for choice in choices(documents):
        so_far[choice["index"]] = choice["text"] = so_far.get(choice["index"], "") + choice["text"]
    return documents


@fault(Stage.REPLY, "chunk_has_choices", also=("chunk_field_conforms", "other_chunks_carry_null_usage"), only=streaming)
def heartbeat_chunk_has_no_choices(documents: list[Json], call: Call) -> list[Json]:
    """Between tokens, a chunk with neither choices nor usage is sent to keep the connection open."""
    heartbeat = {name: value for name, value in documents[0].items() if name not in {"choices", "usage"}}
    return [documents[0], heartbeat, *documents[1:]]


@fault(
    Stage.REPLY,
    "chunk_field_conforms",
    also=(
        "id_is_not_empty",
        "created_is_in_seconds",
        "created_agrees_with_the_clock",
        "chunks_share_one_id",
        "chunks_share_one_model",
    ),
    only=streaming,
    imitates="A cloud's first chunk holds a filter's report, an empty list of choices, and no other values.",
)
def first_chunk_is_a_filters_report(documents: list[Json], call: Call) -> list[Json]:
    """The first chunk has no choices, and its id, object, time and model are empty."""
    report = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []}
    return [{**documents[0], **report}, *documents]
