"""How strongly the words of a document bind: one rule for every row of every contract.

A plain statement of what the API does, a required member, a type or a range is a MUST. A hedged one (best effort,
should, may, can, typically, recommended) is a SHOULD or a MAY. What only tells the client what to send is observed, at
MAY, unless the document says that the server refuses it. A row at another level has a reason: its own in contract.yaml,
that of its keyword in `LENIENT`, or that of its check in `INDIRECT`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from conformance.model import Layer, Level, Requirement

HEDGE: Final = re.compile(
    r"\b(best effort|should|may|might|can|could|typically|usually|generally|recommend(ed)?|reasonable|if applicable)\b",
    re.IGNORECASE,
)
ADVICE: Final = re.compile(r"\bonly set this\b|\bcannot be set by user\b|\bshould match\b", re.IGNORECASE)

LENIENT: Final[Mapping[str, str]] = {
    "coercion": "A server that reads a look-alike as what was meant is lenient, and misleads only careless clients.",
    "nullable": "Most servers and clients take null for an absent member.",
    "not_null": "Most servers and clients take null for an absent member.",
}
"""Keywords of derived rows that bind at SHOULD although the schema is plain, and why."""

_COMPARED: Final = "It compares replies to several requests, and no document promises that texts repeat exactly."
_SAMPLED: Final = "Samples show it, so the target's model decides whether a run can show it."
INDIRECT: Final[Mapping[str, str]] = {
    "batch_is_singles": _COMPARED,
    "echo_adds_only_the_prompt": _COMPARED,
    "greedy_repeats": _COMPARED,
    "narrow_sampling_is_greedy": _COMPARED,
    "stop_that_never_matches": _COMPARED,
    "suffix_is_used": _COMPARED,
    "twin_text_agrees": _COMPARED,
    "twin_usage_agrees": _COMPARED,
    "best_of_is_the_likeliest": _SAMPLED,
    "parameter_spreads_texts": _SAMPLED,
    "penalty_reduces_repetition": _SAMPLED,
    "sampling_varies": _SAMPLED,
    "greedy_takes_the_likeliest": "No document promises that temperature 0 takes the likeliest token at each step.",
    "sampled_token_is_listed": "The words promise its log probability, and token_logprobs has that as well.",
    "edge_is_observed": "The document leaves it open.",
}
"""Checks that show plain words only indirectly, so that a contract binds them at SHOULD or MAY, and why."""


def hedge(quote: str) -> str:
    """The first word of a quotation that hedges what it says; empty where it is plain."""
    match = HEDGE.search(quote)
    return match.group() if match else ""


def departure(row: Requirement, reason: str = "") -> str:
    """Why the level of a row does not follow from the words that it quotes; empty where it does.

    `reason` is the one recorded beside the row in contract.yaml.
    """
    if row.layer is not Layer.CONTRACT or reason:
        return ""
    word, advice = hedge(row.source.quote), ADVICE.search(row.source.quote)
    if row.level is Level.MUST:
        return f"MUST, though the quotation hedges: {word!r}" if word or advice else ""
    if word or advice or row.params.get("keyword") in LENIENT or row.check in INDIRECT:
        return ""
    return f"{row.level}, though the quotation is plain, and no reason is recorded"


def of_keyword(keyword: str, *, required: bool = False) -> Level:
    """The level of a row that is derived from a keyword of a schema."""
    return Level.SHOULD if keyword in LENIENT and not required else Level.MUST
