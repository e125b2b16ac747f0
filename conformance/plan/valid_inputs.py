"""Every valid class of every input, many in one request: a server may accept one of them and not another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.model import Combination, Validity
from conformance.model.json_text import MISSING, dumps, is_number
from conformance.plan.boundaries import ends, open_ends
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import NEAR_ZERO_TEMPERATURE, PROMPT, PlanContext, part
from conformance.plan.factors import IDS, OTHER_IDS, allowed_members, several, streaming, sure_members
from conformance.plan.input_model import DELICATE_TEXTS, LONG_TEXT, PLAIN_TEXTS, InputClass, valid_classes
from conformance.plan.parameter_values import FactorLevel, factor_level
from conformance.plan.single_values import joint_cases, limits_of, value_alone

LEVELS: Final = "levels of classes"
# What of log probabilities shows where nothing but the likeliest tokens may come, and no rows have together.
SCORED_IDS: Final[Mapping[str, Any]] = {
    "prompt": [list(IDS), list(OTHER_IDS)],
    "logprobs": 2,
    "max_tokens": 1,
    "best_of": 2,
}
SIZES: Final = (3, 17)  # prompts of a batch
# Other parts of the plan try these; the values of the second set decide what a request costs, so they go together.
ELSEWHERE: Final = frozenset({"model", "stream", "echo"})
COSTLY: Final = frozenset({"max_tokens", "n", "best_of"})
MOST_COSTLY: Final = 128  # choices or tokens
TO_BE_READ: Final = frozenset({"prompt", "suffix"})  # by the model, so that the context must hold them
SURELY_FITS: Final = 100  # characters of JSON
MOST_OPEN: Final = 14  # requests with values that the contract leaves open


def valid_inputs(context: PlanContext) -> Iterator[CaseGroup]:
    """The classes that no factor has, in joint cases; and batches whose prompts are the classes of text."""
    if not context.full:
        yield from _echoed_texts(context)
        return
    levels = levels_of_classes(context)
    costly = [level for level in levels if not COSTLY.isdisjoint(level.patch)]
    costly += [level for level in levels if "prompt" in level.patch and _is_one_list_of_ids(level.value)]
    yield from joint_cases(context, costly, "rows", Rank.NORMAL)
    yield from joint_cases(context, [level for level in levels if level not in costly], "rows", Rank.NORMAL)
    yield from _spelled(context)
    yield from _open(context)
    # where the document leaves open what temperature 0 means, the least that it surely allows
    nearly_zero = {} if context.validity_of(context.base) is Validity.VALID else {"temperature": NEAR_ZERO_TEMPERATURE}
    if scored := sure_members(context, {**nearly_zero, **SCORED_IDS}):
        yield CaseGroup("rows", Rank.RELEVANT, (context.case("row", context.body(scored)),))
    for key, prompts in _batches():
        yield from _batch(context, key, prompts)


def _is_one_list_of_ids(prompt: Any) -> bool:
    """Whether a prompt is ids of tokens and no batch, so that it adds little to what many choices cost."""
    return isinstance(prompt, list) and all(isinstance(item, int) for item in prompt)


def range_ends(context: PlanContext) -> Iterator[CaseGroup]:
    """Both ends of every range and one step inside of each, where no class has them; what is left open is observed."""
    settled = context.known.accepted | context.known.refused.keys()
    settled |= {level.label for level in levels_of_classes(context)} if context.full else set()
    joint: list[FactorLevel] = []
    for limit in limits_of(context):
        for value in ends(context, limit):
            if value.label in settled:
                continue
            if context.validity_alone(value.patch) is Validity.VALID:
                joint.append(value)
            else:
                phase = "rows" if context.full else "values"  # where the base request is sent anyway
                yield value_alone(context, value, rank=Rank.NORMAL, phase=phase, origin="edge")
        row = f"request.{limit.parameter}.edge"
        if row in context.rows:
            yield from (_observed(context, row, value.label, value.patch) for value in open_ends(limit))
    yield from joint_cases(context, joint, "rows", Rank.NORMAL)
    observed = {row.id for row in context.rows_on("observe")}
    for rule in context.contract.combinations:
        if rule.id in observed and rule.example and context.has(*rule.example):
            yield _observed(context, rule.id, "", rule.example)
            yield from _of_another_form(context, rule)


def _of_another_form(context: PlanContext, rule: Combination) -> Iterator[CaseGroup]:
    """The first class of the input model that a rule leaves open as well: a word for a key that is a number."""
    for input_class in _classes(context) if context.full else ():
        same = input_class.patch.keys() == rule.example.keys() and not input_class.spelled
        if same and context.broken_combinations(context.body(input_class.patch)) == {rule.id}:
            yield _observed(context, rule.id, input_class.name, input_class.patch)
            return


def _observed(context: PlanContext, row: str, label: str, patch: Mapping[str, Any]) -> CaseGroup:
    key = f"{row} {label}".strip()
    control = context.case("base", context.base, part("observe", key, "control"))
    probe = context.case("edge", context.body(patch), part("observe", key, "probe"))
    return CaseGroup("values", Rank.NORMAL if context.full else Rank.OBSERVED, (control, probe))


def levels_of_classes(context: PlanContext) -> list[FactorLevel]:
    """The valid classes of each parameter that costs little, as levels; those left out that the target rejects."""
    levels: list[FactorLevel] | None = context.memo.get(LEVELS)
    if levels is None:
        rejected = context.known.refused.keys() | context.known.in_doubt
        levels = context.memo[LEVELS] = [level for level in _levels(context) if level.label not in rejected]
    return levels


def classes_in_doubt(context: PlanContext) -> list[FactorLevel]:
    """The levels that were rejected in joint cases only; those left out that may be too long for the context."""
    levels = [level for level in _levels(context) if level.label in context.known.in_doubt] if context.full else []
    return [level for level in levels if TO_BE_READ.isdisjoint(level.patch) or len(dumps(level.value)) <= SURELY_FITS]


def _levels(context: PlanContext) -> list[FactorLevel]:
    by_patch: dict[str, FactorLevel] = {}
    batches = {dumps(list(prompts)) for _, prompts in _batches()}
    for input_class in _classes(context):
        if input_class.path == "prompt[]" and dumps(input_class.value) in batches:
            continue
        level = factor_level(*next(iter(input_class.patch.items())))
        if "stream_options" in input_class.patch and context.has("stream"):
            level = FactorLevel(level.label, {"stream": True, **input_class.patch})
        if not input_class.spelled and context.validity_alone(level.patch) is Validity.VALID:
            by_patch.setdefault(dumps(level.patch), level)
    return list(by_patch.values())


def _classes(context: PlanContext) -> Iterator[InputClass]:
    for name in context.contract.parameters:
        if name not in ELSEWHERE and context.has(name):
            for input_class in valid_classes(context.contract, name):
                costs = name in COSTLY and is_number(input_class.value) and input_class.value > MOST_COSTLY
                if input_class.value not in (MISSING, None) and not costs:
                    yield input_class


def _spelled(context: PlanContext) -> Iterator[CaseGroup]:
    """Numbers that are written in another way, each way in one request: valid, as JSON has them equal."""
    ways: dict[str, dict[str, InputClass]] = {}
    for input_class in _classes(context):
        if input_class.spelled and context.validity_alone(input_class.patch) is Validity.VALID:
            ways.setdefault(input_class.name, {})[input_class.path] = input_class
    for way, members in ways.items():
        values = {name: input_class.value for name, input_class in members.items()}
        content = spelled(context.body(values), {name: input_class.spelled for name, input_class in members.items()})
        key = f"request.{next(iter(members))}.accepts {way}"
        control = context.case("base", context.base, part("accept", key, "control"))
        validity = context.validity_of(context.body(values))
        joint = context.case("value", content, part("accept", key, "joint"), validity=validity)
        yield CaseGroup("rows", Rank.NORMAL, (control, joint))


def spelled(body: Mapping[str, Any], numbers: Mapping[str, str]) -> bytes:
    """A body in which some members are given as JSON text."""
    rest = dumps({name: value for name, value in body.items() if name not in numbers})
    return (rest[:-1] + "".join(f',"{name}":{text}' for name, text in numbers.items()) + "}").encode()


def _open(context: PlanContext) -> Iterator[CaseGroup]:
    """What the contract leaves open, many values in one request, whose reply is judged like any other."""
    by_name: dict[str, list[InputClass]] = {}
    for input_class in _classes(context):
        if context.validity_alone(input_class.patch) is Validity.UNSPECIFIED:
            by_name.setdefault(next(iter(input_class.patch)), []).append(input_class)
    for index in range(min(MOST_OPEN, max(map(len, by_name.values()), default=0))):
        members = {name: classes[index] for name, classes in by_name.items() if index < len(classes)}
        values = {name: input_class.value for name, input_class in members.items()}
        content = spelled(
            context.body(values),
            {name: input_class.spelled for name, input_class in members.items() if input_class.spelled},
        )
        case = context.case("edge", content, validity=Validity.UNSPECIFIED)
        yield CaseGroup("rows", Rank.USEFUL, (case,))


def _echoed_texts(context: PlanContext) -> Iterator[CaseGroup]:
    """In `gate`, texts of every class as they come back: scored in a stream without generation, and plain.

    What a server may refuse as a whole is sent in a request of its own.
    """
    scored = {"prompt": [*PLAIN_TEXTS, PLAIN_TEXTS[0]], "n": several(context), "logprobs": 5, **streaming(context)}
    plain = {"prompt": [*DELICATE_TEXTS, PLAIN_TEXTS[-1]], "max_tokens": 1}
    for rank, members in ((Rank.ALWAYS, {"max_tokens": 0, **scored}), (Rank.ESSENTIAL, plain)):
        patch = allowed_members(context, {"echo": True, **members})
        if "echo" in patch and "prompt" in patch:
            yield CaseGroup("rows", rank, (context.case("row", context.body(patch)),))


def _batches() -> Iterator[tuple[str, Sequence[str]]]:
    # what a server may refuse spoils its own batch only
    yield "texts", PLAIN_TEXTS
    yield "texts that parsers treat specially", (*DELICATE_TEXTS, LONG_TEXT)
    for size in SIZES:
        yield f"{size} prompts", [f"item {place}" for place in range(size)]
    yield "empty prompts first, in the middle and last", ["", PROMPT, "", "One, two", ""]


def _batch(context: PlanContext, key: str, prompts: Sequence[str]) -> Iterator[CaseGroup]:
    """A batch, plain and streamed, echoed where it can be, so that every text has to come back as it was sent."""
    wanted: dict[str, Any] = {"prompt": list(prompts), "max_tokens": 1, "echo": True}
    if len(prompts) == max(SIZES):
        wanted["n"] = 2  # more choices than prompts or choices alone may come to
    patch = allowed_members(context, wanted)
    if patch.get("prompt") != list(prompts):
        return
    row = f"request.prompt.accepts {key}"
    control = context.case("base", context.base, part("accept", row, "control"))
    plain = context.case("value", context.body(patch), part("accept", row, "joint"), part("twin", key, "plain"))
    yield CaseGroup("rows", Rank.NORMAL, (control, plain))
    if context.has("stream"):
        streamed = context.case("value", context.body(patch, streaming(context)), part("twin", key, "stream"))
        yield CaseGroup("rows", Rank.NORMAL, (plain, streamed))


__all__ = ["classes_in_doubt", "levels_of_classes", "range_ends", "spelled", "valid_inputs"]
