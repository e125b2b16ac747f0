"""Every valid class of every input, many in one request: what one value of a parameter proves, another may disprove."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.model import Validity
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PlanContext, part
from conformance.plan.factors import allowed_members, streaming
from conformance.plan.input_model import LONG_TEXT, TEXTS, valid_classes
from conformance.plan.parameter_values import FactorLevel, factor_level
from conformance.plan.single_values import joint_cases

CONTROLS: Final = frozenset(map(chr, (*range(32), 127))) - set("\t\n\r")
SIZES: Final = (3, 17)  # prompts of a batch
# These decide what a request costs; their values are tried by themselves.
COSTLY: Final = frozenset({"model", "prompt", "max_tokens", "n", "best_of", "stream", "stream_options", "echo"})


def valid_inputs(context: PlanContext) -> Iterator[CaseGroup]:
    """The classes that no factor has, in joint cases; and batches whose prompts are the classes of text."""
    if not context.full:
        return
    yield from joint_cases(context, _untried(context), "rows", Rank.USEFUL)
    for key, prompts in _batches():
        yield from _batch(context, key, prompts)


def _untried(context: PlanContext) -> list[FactorLevel]:
    found: dict[str, FactorLevel] = {}
    for name in context.contract.parameters:
        if name in COSTLY or not context.has(name):
            continue
        for one in valid_classes(context.contract, name):
            level = factor_level(name, one.value)
            refused = context.known.refused.keys() | context.known.in_doubt
            if level.label not in refused and context.validity_alone(level.patch) is Validity.VALID:
                found.setdefault(dumps(level.patch), level)
    return list(found.values())


def _batches() -> Iterator[tuple[str, list[str]]]:
    # what a server may refuse spoils its own batch only
    controls = [text for text in TEXTS.values() if text.isascii() and not CONTROLS.isdisjoint(text)]
    yield "texts", [text for text in TEXTS.values() if text not in controls]
    yield "texts with control characters", [*controls, LONG_TEXT]
    for size in SIZES:
        yield f"{size} prompts", [f"Item {place} of {size}:" for place in range(size)]
    yield "an empty prompt among others", ["One, two", "", "three, four"]


def _batch(context: PlanContext, key: str, prompts: list[str]) -> Iterator[CaseGroup]:
    """A batch, plain and streamed, echoed where it can be, so that every text has to come back as it was sent."""
    wanted: dict[str, Any] = {"prompt": prompts, "max_tokens": 1, "echo": True}
    patch = allowed_members(context, wanted)
    if patch.get("prompt") != prompts:
        return
    row = f"request.prompt.accepts {key}"
    control = context.case("base", context.base, part("accept", row, "control"))
    plain = context.case("value", context.body(patch), part("accept", row, "joint"), part("twin", key, "plain"))
    yield CaseGroup("rows", Rank.USEFUL, (control, plain))
    if context.has("stream"):
        streamed = context.case("value", context.body(patch, streaming(context)), part("twin", key, "stream"))
        yield CaseGroup("rows", Rank.USEFUL, (plain, streamed))
