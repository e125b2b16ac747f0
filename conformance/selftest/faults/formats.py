"""`response_format` has no effect, or half of it."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import Json, choices
from conformance.selftest.fault import fault


@fault(
    Stage.PARAMETERS,
    "json_is_valid",
    needs=("response_format",),
    when=("plain", "streamed"),
    imitates="The format was ignored.",
)
def format_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The server ignores a JSON format and writes plain text."""
    return replace(params, output=None)


@fault(Stage.PARAMETERS, "json_is_valid", needs=("response_format",))
def schema_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The server writes JSON that does not keep to the requested schema."""
    return replace(params, output={"type": "json_object"}) if params.output else params


@fault(
    Stage.REPLY,
    "json_is_valid",
    needs=("response_format",),
    only=lambda call: bool(call.params.output),
    also=(
        "completion_tokens_are_counted", "echo_begins_with_prompt", "logprobs", "tokens_join_to_text",
        "stop_text_is_as_promised",
    ),
)  # fmt: skip
def json_stands_in_a_fence(documents: list[Json], call: Call) -> list[Json]:
    """The server wraps JSON in a Markdown code fence."""
    begun: set[int] = set()
    for choice in choices(documents):
        if choice["index"] not in begun:
            begun.add(choice["index"])
            choice["text"] = "```json\n" + choice["text"]
    return documents
