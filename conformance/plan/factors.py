"""The factors that are combined and the levels of each, the level of the base request first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.model import Validity
from conformance.model.json_text import MISSING, dumps
from conformance.plan.boundaries import ends
from conformance.plan.context import (
    BIAS_TOKENS,
    FORCED,
    FORCED_AMONG_MANY,
    PROMPT,
    TOKENS_SHORT,
    PlanContext,
)
from conformance.plan.input_model import valid_classes
from conformance.plan.parameter_values import FactorLevel, factor_level, sample_levels

# Characters of two, three and four bytes, an accent that combines, and a joined emoji: what byte-wise code breaks; and
# white space, escapes and ligatures, which code that cleans up its input changes.
UNICODE: Final = (
    "Liebe Grüße aus 東京 e\u0301\r\n\t<b>&amp; 'n' \\n %20</b> \ufb01ne "
    "\N{EVERGREEN TREE}\N{ROCKET} \N{WOMAN}\u200d\N{PERSONAL COMPUTER} "
)
SECOND_PROMPT: Final = "Red, green, blue,"
# Ids that even a vocabulary of single bytes has; in most vocabularies each stands for a printable character.
IDS: Final = (72, 45, 90, 61, 84)
OTHER_IDS: Final = (90, 50, 66)
# Doubled separator symbols: no model writes this within a few tokens.
UNLIKELY_STOP: Final = "\u241f\u241fnever\u241f\u241f"
ABSENT: Final = MISSING


@dataclass(frozen=True)
class Factor:
    """A parameter that is combined with others, or the channel, and the values that it takes."""

    name: str
    levels: tuple[FactorLevel, ...]
    any_value: bool = False  # any value of a kind does as well as another
    classes: tuple[FactorLevel, ...] = ()  # values that rows have in turn in the place of the one level that is sent

    @property
    def parameter(self) -> str:
        """The parameter that it is named after; the channel is chosen by `stream`."""
        return "stream" if self.name == "channel" else self.name

    @property
    def base(self) -> FactorLevel:
        return self.levels[0]

    def of(self, body: Mapping[str, Any]) -> FactorLevel | None:
        """The level that a body has; None for another value. Where any value does, its shape decides."""
        exact = next((level for level in self.levels if level.holds(body)), None)
        if exact is None and any(level.holds(body) for level in self.classes):
            return self.levels[1]
        if exact is not None or not self.any_value or body.get(self.name) is None:
            return exact
        shape = self._shape(body[self.name])
        return next(
            (level for level in self.levels if shape and self._shape(level.patch.get(self.name)) == shape), None
        )

    def _shape(self, value: Any) -> str:
        """The kind of a value: a form of a prompt, a text, an integer; empty for anything else."""
        match value:
            case bool() | "" | [] | [_]:
                return ""
            case str():
                return "characters" if self.name == "prompt" and not value.isascii() else "text"
            case int():
                return "number"
            case [str(), *_]:
                return "texts"
            case [int(), *_]:
                return "ids"
            case [list(), *_]:
                return "lists of ids"
        return ""


def factors(context: PlanContext, *, in_doubt: bool = False) -> tuple[Factor, ...]:
    """The factors of a contract, with every level that it surely allows and that the target has not rejected.

    With `in_doubt`, levels as well that were rejected in joint cases only.
    """
    key = "factors, those in doubt too" if in_doubt else "factors"
    known_factors: tuple[Factor, ...] | None = context.memo.get(key)
    if known_factors is None:
        known_factors = context.memo[key] = tuple(_factors(context, in_doubt))
    return known_factors


def _factors(context: PlanContext, in_doubt: bool) -> Iterator[Factor]:
    for name in ("channel", *context.contract.parameters):
        if name in {"model", "stream", "stream_options"} or not context.has("stream" if name == "channel" else name):
            continue
        build = _KNOWN.get(name, _by_traits)
        first, *others = build(context, name)
        levels = [
            first,
            *(level for level in others if level.label != first.label and _usable(context, level, in_doubt)),
        ]
        if len(levels) > 1:
            turns = context.full and len(levels) == 2 and levels[0].value is ABSENT and name not in _KNOWN
            classes = tuple(_classes(context, name)) if turns else ()
            yield Factor(name, tuple(levels), context.traits(name).any_value, classes)


def _classes(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    """The valid classes of a parameter that stand for its one value in rows of covering arrays."""
    for input_class in valid_classes(context.contract, name):
        if input_class.value in (None, ABSENT) or input_class.spelled:
            continue
        level = factor_level(name, input_class.value)
        rejected = level.label in context.known.refused or level.label in context.known.in_doubt
        if not rejected and context.validity_alone(level.patch) is Validity.VALID:
            yield level


def _usable(context: PlanContext, level: FactorLevel, in_doubt: bool) -> bool:
    """Whether a level may be combined. One that the document leaves open is tried alone in `full`, then combined."""
    if level.label in context.known.refused or (not in_doubt and level.label in context.known.in_doubt):
        return False
    standing = context.validity_alone(level.patch)
    return standing is Validity.VALID or (standing is Validity.UNSPECIFIED and context.full)


def _channel(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield FactorLevel("plain", {"stream": ABSENT, "stream_options": ABSENT})
    yield STREAM
    if context.has("stream_options"):
        yield USAGE
        if context.full:
            yield FactorLevel("stream-without-usage", {"stream": True, "stream_options": {"include_usage": False}})


STREAM: Final = FactorLevel("stream", {"stream": True, "stream_options": ABSENT})
USAGE: Final = FactorLevel("stream-with-usage", {"stream": True, "stream_options": {"include_usage": True}})


def streaming(context: PlanContext) -> Mapping[str, Any]:
    """The members that request a stream, with usage where the contract has that option."""
    return (USAGE if context.has("stream_options") else STREAM).patch


def observation_channel(context: PlanContext, name: str) -> Mapping[str, Any]:
    """The channel on which `gate`, which has no room for both, observes the effect of a parameter.

    Servers stream by code of their own, which may forget a parameter. Most effects are observed in a stream and
    compared with a plain reply, so that one request detects a parameter that is ignored always or in streams only.
    """
    streamed = not context.full and context.traits(name).seen_in == "stream" and context.has("stream")
    return streaming(context) if streamed else {}


def allowed_members(context: PlanContext, patch: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a patch that contract and target allow together, added in their order."""
    kept: dict[str, Any] = {}
    for name, value in patch.items():
        body = context.body(kept, {name: value})
        if context.has(name) and context.may_send(body):
            kept[name] = value
    return kept


def sure_members(context: PlanContext, patch: Mapping[str, Any]) -> dict[str, Any]:
    """The same, without members that would make the request one that the contract leaves open."""
    kept: dict[str, Any] = {}
    for name, value in patch.items():
        body = context.body(kept, {name: value})
        sure = context.validity_of(body) in {Validity.VALID, context.validity_of(context.base)}
        if context.has(name) and sure and context.may_send(body):
            kept[name] = value
    return kept


def gate_choices(context: PlanContext) -> Mapping[str, Any]:
    """In `gate`, several choices and log probabilities where a text is cut or lengthened: each must be cut with it."""
    return {} if context.full else allowed_members(context, {"n": several(context), "logprobs": 2})


def several(context: PlanContext) -> int:
    """The choices of requests of `gate`: three, because the third may be made otherwise than the second."""
    return int(context.number("n", 3, 2) or 1)


def first_level_value(context: PlanContext, name: str) -> Any:
    """The first value of a parameter that the base does not have: tried alone, so that relations share the request."""
    levels = next((factor.levels for factor in factors(context) if factor.name == name), ())
    return levels[1].value if levels else ABSENT


def _prompt(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield FactorLevel("prompt=text", {"prompt": PROMPT})
    yield TEXTS
    yield FactorLevel("prompt=ids", {"prompt": list(IDS)})
    more_lists = [] if context.full else [list(IDS)]
    yield FactorLevel("prompt=id-lists", {"prompt": [list(IDS), list(OTHER_IDS), *more_lists]})
    if context.full:
        yield FactorLevel("prompt=unicode", {"prompt": UNICODE})


TEXTS: Final = FactorLevel("prompt=texts", {"prompt": [PROMPT, UNICODE]})
# What a reply of `gate` may have all at once; a prompt that comes again has choices of its own.
SCORED: Final[Mapping[str, Any]] = {"prompt": [PROMPT, UNICODE, PROMPT], "n": 3, "logprobs": 5}
RICH: Final[Mapping[str, Any]] = {"echo": True, **SCORED}


def _n(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield from _listed(name, ABSENT, *((2, 3) if context.full else (several(context),)))


def _best_of(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield from _listed(name, ABSENT, 4)  # above each n of the rows, so that there is a choice to make


def _flag(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield from _listed(name, ABSENT, True)


def _logprobs(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    high = most_alternatives(context)
    yield from _listed(name, ABSENT, *((1, 0, high, None) if context.full else (high, 0)))


def most_alternatives(context: PlanContext) -> int:
    """The largest number of alternatives that may surely be requested."""
    limit = context.contract.limit("logprobs")
    most = int(limit.high) if limit is not None and limit.high is not None else 5
    return most if context.validity_alone({"logprobs": most}) is Validity.VALID else most - 1


def _stop(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    hit = likely_stop(context)
    yield factor_level(name, ABSENT)
    listed = FactorLevel("stop=list", {name: [UNLIKELY_STOP, hit]})
    yield listed
    if context.full or context.validity_alone(listed.patch) is Validity.INVALID:
        yield FactorLevel("stop=text", {name: hit})
    if context.full:
        yield FactorLevel("stop=four", {name: [UNLIKELY_STOP, "\n\n\n\n", UNICODE, hit]})


def likely_stop(context: PlanContext) -> str:
    """A stop sequence that is likely to occur in other texts of the model as well, and not as their first word.

    It is the commonest letter of the reply to the base request; else two characters of that, else a comma.
    """
    text = context.known.text(dumps(context.base).encode())
    letters = [char for char in dict.fromkeys(text) if char.isalpha() and text.find(char) * 5 >= len(text)]
    if letters:
        return max(letters, key=text.count)
    middle = max(1, len(text) // 2)
    two_characters = text[middle : middle + 2]
    return two_characters if two_characters.strip() else ","


def _max_tokens(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield from _listed(name, TOKENS_SHORT, *((0, 1) if context.full else ()))
    if context.full and context.contract.default(name) is not None and not exceeds_default_limit(context):
        yield factor_level(name, ABSENT)


def exceeds_default_limit(context: PlanContext) -> bool:
    """Whether a reply without a limit was more than four times as long as the documented default allows."""
    default = context.contract.default("max_tokens")
    return isinstance(default, int) and context.known.longest_unlimited > 4 * default


def _temperature(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    yield factor_level(name, context.base.get(name, ABSENT))
    yield factor_level(name, ABSENT)
    most = context.number(name, 2, 1.9, 1.5)
    if most is not None:
        yield factor_level(name, most)


def _bias(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    """A forced token, which a reply lacks if the bias is ignored; the ban of an unlikely token changes nothing."""
    yield factor_level(name, ABSENT)
    if context.full:
        yield from _listed(name, FORCED, {BIAS_TOKENS[0]: -100})
    else:
        yield FactorLevel(f"{name} of {len(FORCED_AMONG_MANY)} entries", {name: FORCED_AMONG_MANY})


def _ranged(context: PlanContext, name: str, inside: float) -> Iterator[FactorLevel]:
    """A range whose value no reply shows: a value inside of it in `full`; the one or the other end in `gate`."""
    number = context.number(name, inside)
    if not context.full and (reach := far_ends(context, name)):
        turn = list(context.contract.parameters).index(name) + context.seed
        number = reach[turn % len(reach)].value
    yield from _listed(name, ABSENT, *(() if number is None else (number,)))


def accepted_values(context: PlanContext) -> Hashable:
    """Everything of the target that decides which values are sent: see `planner.Input`."""
    known = context.known
    rejected = repr(
        (known.refused, known.incompatible, known.unsupported, sorted(known.in_doubt), known.rejects_temperature_zero)
    )
    return rejected, likely_stop(context), exceeds_default_limit(context)


def far_ends(context: PlanContext, name: str) -> list[FactorLevel]:
    """The lowest and the highest value that a range surely allows."""
    limit = context.contract.limit(name)
    reach = list(ends(context, limit)) if limit is not None and limit.binding else []
    return [min(reach, key=lambda level: level.value), max(reach, key=lambda level: level.value)] if reach else []


def _by_traits(context: PlanContext, name: str) -> Iterator[FactorLevel]:
    """Absent, and what the traits of a parameter name; else what its schema or the contract's examples offer."""
    known = context.traits(name)
    if known.inside is not None:
        yield from _ranged(context, name, known.inside)
    elif known.sample is not None:
        # of all integers, code most often takes 0 for none
        zero = not context.full and isinstance(known.sample, int) and context.number(name, 0) == 0
        yield from _listed(name, ABSENT, 0 if zero else known.sample)
    else:
        yield factor_level(name, ABSENT)
        if not context.contract.parameters[name].required:
            yield from sample_levels(context.contract, name)[: known.combined_values]


def _listed(name: str, *values: Any) -> Iterator[FactorLevel]:
    yield from {level.label: level for level in (factor_level(name, value) for value in values)}.values()


_KNOWN: Final[Mapping[str, Callable[[PlanContext, str], Iterator[FactorLevel]]]] = {
    "channel": _channel,
    "prompt": _prompt,
    "n": _n,
    "best_of": _best_of,
    "echo": _flag,
    "logprobs": _logprobs,
    "stop": _stop,
    "max_tokens": _max_tokens,
    "temperature": _temperature,
    "logit_bias": _bias,
}

__all__ = [
    "ABSENT",
    "IDS",
    "OTHER_IDS",
    "RICH",
    "SCORED",
    "SECOND_PROMPT",
    "STREAM",
    "TEXTS",
    "UNICODE",
    "UNLIKELY_STOP",
    "USAGE",
    "Factor",
    "accepted_values",
    "allowed_members",
    "exceeds_default_limit",
    "factors",
    "far_ends",
    "first_level_value",
    "gate_choices",
    "likely_stop",
    "most_alternatives",
    "observation_channel",
    "several",
    "streaming",
    "sure_members",
]  # fmt: skip
