"""Where the reference can be bent: the stages of an answer, and what a fault or an oddity does at one of them.

The honest path never asks whether it is being bent: it hands each intermediate value to `Call.bend`, which changes it
only where an alteration was ordered, and counts each change, so that a fault can be shown to have fired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from conformance.model.json_text import dumps
from conformance.reference.messages import Request

if TYPE_CHECKING:
    from conformance.reference.core import Reference
    from conformance.reference.generation_request import GenerationParameters


class Stage(Enum):
    """The values of an answer in the making, in order; the comment says what an alteration gets and gives."""

    ARRIVAL = "arrival"  # Request → Request, or a Response at once
    BODY = "body"  # the parsed body → another
    WISH = "wish"  # Wish → Wish, after the body was read; `call.wish` is the honest one
    REFUSAL = "refusal"  # Refusal or None → Refusal or None
    TEXTS = "texts"  # list of Text → list of Text
    USAGE = "usage"  # the usage object → another, or None for none
    REPLY = "reply"  # the list of documents, as JSON: the one of a plain reply, or the chunks of a stream
    FRAMES = "frames"  # the events of the stream, as bytes
    ERROR = "error"  # the body of a refusal, as JSON
    RESPONSE = "response"  # Response → Response, whatever it is


Change: TypeAlias = Callable[[Any, "Call"], Any]


@dataclass(frozen=True)
class Alteration:
    """A change at one stage, under the name that its firing is counted by."""

    name: str
    stage: Stage
    change: Change


@dataclass
class Memory:
    """What a provider remembers between requests: how many there were, which are under way, and what faults keep."""

    calls: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    in_flight: list[Request] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Call:
    """One request on its way through the reference, with all that is known of it so far."""

    reference: Reference
    request: Request
    number: int
    body: Any = None
    usage: Any = None
    params: GenerationParameters = field(default=None)  # type: ignore[assignment]  # set before any stage that asks for it

    @property
    def streamed(self) -> bool:
        return isinstance(self.body, Mapping) and self.body.get("stream") is True

    @property
    def notes(self) -> dict[str, Any]:
        return self.reference.memory.notes

    def bend(self, stage: Stage, value: Any) -> Any:
        """The value as the alterations of this stage leave it."""
        for alteration in self.reference.alterations.get(stage, ()):
            before = _print(value)
            value = alteration.change(deepcopy(value) if isinstance(value, (dict, list)) else value, self)
            if _print(value) != before:
                self.reference.memory.fired[alteration.name] += 1
        return value


def _print(value: Any) -> Any:
    """Something that differs whenever the wire would: 1 and 1.0 do, and so does the order of members."""
    return dumps(value) if isinstance(value, dict) or (isinstance(value, list) and _is_json(value)) else repr(value)


def _is_json(value: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in value)
