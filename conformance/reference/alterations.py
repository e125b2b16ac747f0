"""Where the reference can be altered: the stages of a reply, and a change at one of them.

The code of the reference never asks whether it is altered: it hands each intermediate value to `Call.apply`, which
changes it only where the reference has an alteration for that stage. It counts the changes, so that a fault can be
shown to have fired.
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
    from conformance.reference.generation_parameters import GenerationParameters


class Stage(Enum):
    """The intermediate values of a reply, in order; the comments say what an alteration takes and returns."""

    ARRIVAL = "arrival"  # Request → Request, or a Response that is sent at once
    BODY = "body"  # the parsed body → a body
    PARAMETERS = "parameters"  # GenerationParameters → GenerationParameters; `call.params` has the unaltered ones
    REFUSAL = "refusal"  # Refusal or None → Refusal or None
    TEXTS = "texts"  # list of Text → list of Text
    USAGE = "usage"  # the usage object → a usage object, or None to leave it out
    REPLY = "reply"  # list of documents (one of a plain reply, the chunks of a stream) → list of documents
    FRAMES = "frames"  # list of events of a stream, as bytes → list of events
    ERROR = "error"  # the document of a refusal → a document
    RESPONSE = "response"  # Response → Response, for success and refusal


Change: TypeAlias = Callable[[Any, "Call"], Any]


@dataclass(frozen=True)
class Alteration:
    """A change at one stage; how often it fires is counted under its name."""

    name: str
    stage: Stage
    change: Change


@dataclass
class Memory:
    """What a provider keeps between requests: their number, those in progress, and the notes of faults.

    `last_refused` and `last_left` are the numbers of the last refusal and of the last reply whose client did not wait
    for its end.
    """

    calls: int = 0
    last_refused: int = 0
    last_left: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    in_flight: list[Request] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Call:
    """One request on its way through the reference, with everything known about it so far."""

    reference: Reference
    request: Request
    number: int
    body: Any = None
    usage: Any = None
    params: GenerationParameters = field(default=None)  # type: ignore[assignment]  # set before the stages that use it

    @property
    def streamed(self) -> bool:
        return isinstance(self.body, Mapping) and self.body.get("stream") is True

    @property
    def notes(self) -> dict[str, Any]:
        return self.reference.memory.notes

    def apply(self, stage: Stage, value: Any) -> Any:
        """The value after the alterations of this stage."""
        for alteration in self.reference.alterations_by_stage[stage]:
            before = _fingerprint(value)
            value = alteration.change(deepcopy(value) if isinstance(value, (dict, list)) else value, self)
            if _fingerprint(value) != before:
                self.reference.memory.fired[alteration.name] += 1
        return value


def _fingerprint(value: Any) -> Any:
    """A text that differs whenever the bytes on the wire do: 1 and 1.0 differ, and so does the order of members."""
    return dumps(value) if isinstance(value, dict) or (isinstance(value, list) and _is_json(value)) else repr(value)


def _is_json(value: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in value)
