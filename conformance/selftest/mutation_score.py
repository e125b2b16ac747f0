"""How many planted faults the suite finds: read from the scores that `nox -s mutants` left."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from conformance.model.budget import planned_as

FILE: Final = Path(__file__).resolve().with_name("scores.json")


def stored() -> dict[str, Any]:
    """The stored scores with the hash of the catalogue that they were earned with; nothing where there are none."""
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {"catalogue": "", "scores": {}}
    return found


@cache
def mutation_score(provider: str, profile: str) -> dict[str, int] | None:
    """Faults found, of those planted under this contract in this profile; None where that was never tried."""
    found = stored()["scores"].get(provider, {}).get(planned_as(profile))
    return {"killed": found["killed"], "of": found["of"]} if found else None
