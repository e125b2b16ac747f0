"""Requirements → `Semantics`: the only place that derives the meaning of a provider's replies from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from conformance.model import ContextOverflow, Requirement, Semantics, StopText, UsagePlacement

Choice = TypeVar("Choice", bound=StrEnum)
NOTHING: Mapping[str, Any] = {}


def semantics(requirements: Iterable[Requirement]) -> Semantics:
    """The meaning of replies by the requirements; the first row that binds a check counts.

    Raises ValueError where a parameter of a row is none of the documented values.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for requirement in requirements:
        rows.setdefault(requirement.check, requirement.params)
    usage_chunk = rows.get("usage_chunk_is_sent", NOTHING)
    in_last_chunk = "usage_is_in_last_chunk" in rows
    placement = UsagePlacement.LAST_CHUNK if in_last_chunk else UsagePlacement.OWN_CHUNK
    return Semantics(
        sends_done=not rows or "done_is_sent" in rows,
        usage_placement=_chosen(UsagePlacement, usage_chunk, "placement", placement),
        usage_unasked=True in (usage_chunk.get("unasked"), rows.get("usage_is_in_last_chunk", NOTHING).get("unasked")),
        usage_in_last_chunk=in_last_chunk,
        length_reason=str(rows.get("length_means_the_limit", NOTHING).get("reason", "length")),
        stop_reason=str(rows.get("stop_finishes_with_stop", NOTHING).get("reason", "stop")),
        stop_text=_chosen(StopText, rows.get("stop_text_is_as_promised", NOTHING), "text", StopText.EITHER),
        context_overflow=_chosen(
            ContextOverflow, rows.get("context_overflow", NOTHING), "behaviour", ContextOverflow.EITHER
        ),
        logprobs_shape_is_free=rows.get("logprobs_are_returned", NOTHING).get("shape") == "free",
        automatic_tiers=tuple(rows.get("tier_is_reported", NOTHING).get("auto", ())),
    )


def _chosen(choices: type[Choice], params: Mapping[str, Any], name: str, default: Choice) -> Choice:
    value = params.get(name, default)
    if value not in list(choices):
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(choices)}")
    return choices(value)
