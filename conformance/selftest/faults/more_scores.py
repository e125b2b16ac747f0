"""More of log probabilities and of chance: what goes wrong in the second place, prompt or choice alone."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices
from conformance.selftest.fault import fault


@fault(
    Stage.REPLY,
    "text_offsets_follow_tokens",
    needs=("logprobs",),
    also=("relations", "batch_is_singles"),
    only=lambda call: len(call.params.prompts) > 1,
)
def offsets_go_on_through_the_batch(documents: list[Json], call: Call) -> list[Json]:
    """The text_offset of each prompt's choices begins behind the prompts before it."""
    for choice in choices(documents):
        before = call.params.prompts[: choice["index"] // call.params.n]
        lists = choice.get("logprobs") or {"text_offset": []}
        start = sum(len(prompt.text) for prompt in before)
        lists["text_offset"] = [offset + start for offset in lists["text_offset"]]
    return documents


@fault(
    Stage.REPLY,
    "top_logprobs_have_n",
    needs=("logprobs",),
    also=("schema", "logprobs", "effects"),
    only=lambda call: bool(call.params.logprobs),
)
def alternatives_are_missing_in_places(documents: list[Json], call: Call) -> list[Json]:
    """Every third position lists no alternatives."""
    place: dict[int, int] = {}
    for choice in choices(documents):
        lists = choice.get("logprobs") or {"top_logprobs": []}
        at = place.get(choice["index"], 0)
        listed = lists["top_logprobs"]
        lists["top_logprobs"] = [None if (at + number) % 3 == 1 else top for number, top in enumerate(listed)]
        place[choice["index"]] = at + len(listed)
    return documents


@fault(
    Stage.TEXTS,
    "sampling_varies",
    needs=("n", "temperature"),
    also=(
        "usage",
        "tokens",
        "best_of_returns_n",
        "logprobs_count_the_tokens",
        "effects",
        "finish",
        "relations",
        "stop",
    ),
    imitates="With n, the first choice was sent n times.",
)
def choices_are_copies_of_the_first(texts: list[Text], call: Call) -> list[Text]:
    """All choices of a prompt have the text of its first."""
    return [replace(texts[text.index // call.params.n * call.params.n], index=text.index) for text in texts]
