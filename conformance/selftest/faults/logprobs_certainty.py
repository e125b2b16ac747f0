"""Log probabilities that claim certainty."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, logprobs, scored
from conformance.selftest.fault import fault


@fault(
    Stage.REPLY,
    "logprobs_are_not_all_zero",
    needs=("logprobs",),
    only=scored,
    also=(
        "top_logprobs_are_plausible",
        "greedy_takes_the_likeliest",
    ),
    imitates="Every log probability was 0.0.",
)
def values_are_all_zero(documents: list[Json], call: Call) -> list[Json]:
    """Every sampled token has the log probability 0."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = [None if value is None else 0.0 for value in lists["token_logprobs"]]
        lists["top_logprobs"] = [
            None if top is None else {name: 0.0 if name == token else value - 40 for name, value in top.items()}
            for token, top in zip(lists["tokens"], lists["top_logprobs"], strict=True)
        ]
    return documents
