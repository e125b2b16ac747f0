"""Legal oddities: what conforming providers do differently from one another, and no check may blame."""

from __future__ import annotations

from conformance.reference.oddity import Oddity

ODDITIES: dict[str, Oddity] = {}
