"""The one table of what planning, judging and the reference know about request members, beyond their schemas.

A row describes a parameter that several providers document under one name. What a single provider documents is
described in its contract.yaml, under `parameters:`, in the same traits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.model import Contract
from conformance.model.parameter_traits import NO_TRAITS, Bends, ParameterTraits, Role
from conformance.model.request_view import RequestView

TRAITS: Final[Mapping[str, ParameterTraits]] = {
    "model": ParameterTraits(in_every_request=True),
    "prompt": ParameterTraits(in_every_request=True, visible_in_reply=True, seen_in="stream", any_value=True),
    "max_tokens": ParameterTraits(
        in_every_request=True,
        visible_in_reply=True,
        also_shown_elsewhere=True,
        visible_default=True,
        seen_in="stream",
    ),
    "stream": ParameterTraits(in_every_request=True, visible_in_reply=True, visible_default=True),
    "stream_options": ParameterTraits(in_every_request=True),
    "n": ParameterTraits(multiplies_cost=True, visible_in_reply=True, visible_default=True),
    "best_of": ParameterTraits(multiplies_cost=True, visible_in_reply=True, also_shown_elsewhere=True),
    "echo": ParameterTraits(visible_in_reply=True, visible_default=True, seen_in="stream"),
    "logprobs": ParameterTraits(visible_in_reply=True, visible_default=True),
    "stop": ParameterTraits(visible_in_reply=True, also_shown_elsewhere=True, seen_in="stream", ends_forced_text=True),
    "suffix": ParameterTraits(
        visible_in_reply=True,
        seen_in="stream",
        bends=Bends.CONTEXT,
        neutral="",
        breaks_format=True,
        any_value=True,
        sample=" and so on.",
    ),
    "user": ParameterTraits(any_value=True, sample="user-1", inert="user-2"),
    "seed": ParameterTraits(any_value=True, sample=7, inert=11),
    "response_format": ParameterTraits(
        seen_in="stream", combined_values=2, bends=Bends.GRAMMAR, neutral={}, ends_forced_text=True
    ),
    "logit_bias": ParameterTraits(seen_in="stream", bends=Bends.LOGITS, neutral={}, breaks_format=True),
    "temperature": ParameterTraits(in_every_request=True, ends=((0.01,), (2, 1.9, 1.5))),
    "top_p": ParameterTraits(
        seen_in="stream",
        bends=Bends.FILTER,
        neutral=1,
        inside=0.5,
        narrowing=(0.001, 0.01),
        ends=((0.01, 0.001), (1, 0.99)),
    ),
    "top_k": ParameterTraits(
        bends=Bends.FILTER, neutral=0, inside=5, narrowing=(1,), bounding=(2, 3), ends=((1, 2), (100, 50))
    ),
    "presence_penalty": ParameterTraits(bends=Bends.LOGITS, neutral=0, acts_on_repetition=True, inside=0.5),
    "frequency_penalty": ParameterTraits(bends=Bends.LOGITS, neutral=0, acts_on_repetition=True, inside=0.5),
    "repetition_penalty": ParameterTraits(
        bends=Bends.LOGITS, neutral=1, acts_on_repetition=True, inside=1.2, ends=((1,), (1.9, 1.5))
    ),
}


def traits(contract: Contract, name: str) -> ParameterTraits:
    """The traits of a parameter: those that its contract describes, else its row of the table."""
    return contract.described.get(name) or common_traits(name)


def common_traits(name: str) -> ParameterTraits:
    """The row of the table for a parameter."""
    return TRAITS.get(name, NO_TRAITS)


def bends(contract: Contract, request: RequestView, *places: Bends) -> bool:
    """Whether a request changes the choice of tokens in one of these places; no parameter does at its neutral value."""
    return any(
        request.get(name) not in (None, traits.neutral)
        for name, traits in {**TRAITS, **contract.described}.items()
        if traits.bends in places
    )


def described(data: Mapping[str, Mapping[str, Any]]) -> dict[str, ParameterTraits]:
    """The `parameters:` of a contract.yaml, which are valid under its JSON Schema, as traits."""
    return {
        name: ParameterTraits(**{key: _read(key, value) for key, value in row.items()}) for name, row in data.items()
    }


def _read(key: str, value: Any) -> Any:
    match key:
        case "role":
            return Role(value)
        case "bends":
            return Bends(value)
        case "ends":
            low, high = value
            return tuple(low), tuple(high)
        case "narrowing" | "bounding":
            return tuple(value)
    return value


__all__ = ["TRAITS", "bends", "common_traits", "described", "traits"]
