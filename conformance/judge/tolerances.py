"""Numbers that decide verdicts, each defined once, with its reason and the side on which it errs.

Where a number is a choice and no derivation, it errs towards overlooking a defect, never towards accusing a target.
"""

from __future__ import annotations

from typing import Any, Final

RISK: Final = 1e-6
"""The highest probability of a false violation in a statistical verdict. Five targets with ten such verdicts each,
judged every night, make 18,000 in a year: one false violation in more than fifty years."""

LOGPROB_ROUNDING: Final = 1e-3
"""How far above 0 a log probability may be by rounding: float16 has 11 bits of precision, so its epsilon is 2⁻¹⁰."""

LOGPROB_MASS: Final = 1.05
"""What the probabilities of alternatives may add up to. A choice: it allows for each of them to be 5 % too high, and
one rounding to bfloat16 (8 bits of precision) is an error of at most 0.4 %."""

LOGPROB_NOISE: Final = 0.2
"""How far apart two evaluations of one log probability may be. A choice: bfloat16 logits between 16 and 32 are 0.125
apart, so it allows for one such step and a half."""

NEAR_TIE: Final = 0.5
"""Up to which difference of log probabilities rounding may decide between two tokens. A choice: four steps of 0.125
between bfloat16 logits, two for each token."""

LOGPROB_ABSOLUTE: Final = 0.25
LOGPROB_RELATIVE: Final = 0.05
"""How far apart the log probabilities of two requests may be, near 0 and in proportion to their size. A choice: the
first is two steps of 0.125 between bfloat16 logits, the second allows for the larger steps of larger logits."""

NEAR_ZERO_TEMPERATURE: Final = 0.01
"""Up to here sampling is as good as greedy: a token 0.14 below the likeliest is drawn with odds of e⁻¹⁴ < RISK."""

NEGLIGIBLE_GAP: Final = 14.0
"""A token that is this far below the likeliest is drawn with odds of e⁻¹⁴ < RISK."""

SMALL_MAX_TOKENS: Final = 256
"""A request with a limit up to this ends at its own limit, not at that of any context. A choice: completion models
have contexts of 2,048 tokens and more."""


def close_logprobs(first: Any, second: Any) -> bool:
    """Whether two log probabilities of the same token in two replies may be one value, rounded in two ways."""
    return bool(abs(first - second) <= LOGPROB_ABSOLUTE + LOGPROB_RELATIVE * abs(first))
