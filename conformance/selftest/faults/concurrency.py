"""Requests that run at the same time get each other's texts."""

from __future__ import annotations

from typing import Any

from conformance.model.json_text import loads
from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices
from conformance.selftest.fault import fault
from conformance.selftest.faults.plain_streamed import TEXT

MIXED = ("twin_text_agrees", "batch_is_singles", "greedy_repeats")


@fault(Stage.BODY, "burst_does_not_mix", also=MIXED, imitates="Concurrent requests got each other's texts.")
def prompts_are_exchanged_in_a_crowd(body: Any, call: Call) -> Any:
    """A request that runs beside another gets the answer to the other's prompt."""
    others = [request.body for request in call.reference.memory.in_flight if request.body != call.request.body]
    other = next((loads(content) for content in others if content.startswith(b"{") and b'"prompt"' in content), None)
    return {**body, "prompt": other["prompt"]} if isinstance(other, dict) and isinstance(body, dict) else body


@fault(
    Stage.REPLY, "burst_does_not_mix", also=(*MIXED, *TEXT), only=lambda call: len(call.reference.memory.in_flight) > 1
)
def slots_are_not_cleared_in_a_crowd(documents: list[Json], call: Call) -> list[Json]:
    """A request that runs beside another gets words of the other's answer at the end of its own."""
    leftover = call.notes.get("slots_are_not_cleared_in_a_crowd", "")
    with_text = [choice for choice in choices(documents) if choice["text"]]
    if with_text:
        call.notes["slots_are_not_cleared_in_a_crowd"] = with_text[0]["text"]
        with_text[-1]["text"] += leftover
    return documents
