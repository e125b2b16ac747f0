"""What is known about a request member beyond its schema: what it does, where that shows, which values show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What a parameter does that only some providers have, under a name of their own."""

    CONTEXT_OVERFLOW = "context-overflow-policy"  # whether a request beyond the context is refused or truncated
    FALLBACK_MODELS = "fallback-models"  # models to try where the first one is not served
    IGNORES_END = "ignores-end-of-text"  # the text goes on to its limit
    PROBABILITY_FLOOR = "probability-floor"  # the least share of the likeliest token's probability
    REPORTED = "reported-in-reply"  # the reply has a member of the same name with the value that was used


class Bends(StrEnum):
    """Where a parameter changes the choice of a token, so that it need not fit the model's own distribution."""

    CONTEXT = "context"  # the model is given more than the prompt
    LOGITS = "logits"  # single tokens are made more or less likely
    GRAMMAR = "grammar"  # tokens that break a format are ruled out
    FILTER = "filter"  # unlikely tokens are ruled out


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterTraits:
    """The traits of a parameter; one about which nothing is known has none.

    Cost and place in requests:
    `multiplies_cost`: a request costs this number of times as much. `in_every_request`: nearly all requests
    have it, so refusing one of its values does not make it unsupported.

    Where it shows:
    `visible_in_reply`: a reply shows its value, so that one value of it is tried alone in every profile;
    `also_shown_elsewhere`: other requests show it as well. `visible_default`: a reply shows its default. `seen_in`:
    the channel on which its effect is observed where a profile has room for one channel only. `combined_values`: the
    number of values that are combined with other parameters where two of them differ in the reply.

    Effect on the text:
    `bends` and `neutral`: where it changes the choice of tokens, and the value at which it does not. `breaks_format`:
    a text may leave its format because of it. `ends_forced_text`: a text of one forced token may end early because of
    it. `acts_on_repetition`: it changes the likelihood of tokens that came before.

    Values:
    `any_value`: any value of a kind does as well as another, such as any text for `user`. `sample`: a value to combine
    with others. `inside`: a number well inside of its range. `inert`: a value that must not change the text.
    `narrowing`: numbers that leave the likeliest token only. `bounding`: numbers that rule out some tokens. `ends`:
    numbers near the low and near the high end of its range, best first, whose effects differ. `choices`: its values by
    what they mean for its role.
    """

    role: Role | None = None
    multiplies_cost: bool = False
    in_every_request: bool = False
    visible_in_reply: bool = False
    also_shown_elsewhere: bool = False
    visible_default: bool = False
    seen_in: str = "plain"
    combined_values: int = 1
    bends: Bends | None = None
    neutral: Any = None
    breaks_format: bool = False
    ends_forced_text: bool = False
    acts_on_repetition: bool = False
    any_value: bool = False
    sample: Any = None
    inside: float | None = None
    inert: Any = None
    narrowing: tuple[float, ...] = ()
    bounding: tuple[float, ...] = (0.5,)
    ends: tuple[tuple[float, ...], tuple[float, ...]] = ((-2, -1.9), (2, 1.9))
    choices: Mapping[str, Any] = field(default_factory=dict)


NO_TRAITS = ParameterTraits()

__all__ = ["NO_TRAITS", "Bends", "ParameterTraits", "Role"]
