"""An oddity: a legal departure from what most providers do, which no check may hold against anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.reference.alter import Alteration


@dataclass(frozen=True)
class Oddity:
    """Changed settings, a changed model, alterations of a reply, or all three. `says`: what is odd, in one sentence."""

    name: str
    says: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    alterations: tuple[Alteration, ...] = ()
