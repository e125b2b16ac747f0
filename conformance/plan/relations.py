"""Requests that belong together: the same thing asked in two ways, whose replies must agree or must differ.

A relation is told once on the base and, in `full`, again in settings where defects hide: streamed, with several
choices, with several prompts, echoed, with log probabilities. Most share the request without the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.model import Validity
from conformance.model.json_text import dumps
from conformance.model.parameter_traits import Role
from conformance.plan.case_group import CaseGroup
from conformance.plan.context import PAIR, PROMPT, TOKENS_LONG, TOKENS_MANY, PlanContext, part
from conformance.plan.factors import (
    ABSENT,
    IDS,
    OTHER_IDS,
    STREAM,
    TEXTS,
    UNICODE,
    UNLIKELY_STOP,
    USAGE,
    exceeds_default_limit,
    fitting,
    observation_channel,
    rich,
    shown,
    streaming,
)
from conformance.plan.parameter_values import sample_levels

MOST_TOKENS: Final = 64  # a larger default of max_tokens would cost more than it shows
ENDLESS: Final = 9_000_000
SINGLES, BESTS = 40, 12  # draws that tell the best of twenty from any of them
AT_ONCE: Final = 4  # of them, as prompts of one request
SEEDS: Final = (1, 257, 65537)  # alike in their lowest bits, which must not be all that counts
Patch = Mapping[str, Any]
Setting = tuple[str, Patch]
Build = Callable[[PlanContext, str, Patch], Iterator[CaseGroup]]


def relations(context: PlanContext) -> Iterator[CaseGroup]:
    """Every group that some requirement of the contract judges, the plain setting first."""
    for place, (name, setting) in enumerate(_settings(context)):
        for kind, build in KINDS.items():
            fits = not place or kind in SETTINGS[name][1]
            if fits and kind in context.kinds and (context.greedy or kind in WITHOUT_COLD):
                for bundle in build(context, name, setting):
                    # settings combine values, so they wait until each value was tried alone
                    waits = place or (not context.full and any(_combines(context, case.body) for case in bundle.cases))
                    later = min(place, 1 if (name, kind) in DEAR else 2)
                    yield replace(bundle, phase="rows", rank=bundle.rank + later) if waits else bundle


def _combines(context: PlanContext, body: Any) -> bool:
    """Whether a request has several values that wave 0 tries one by one."""
    told = {name for name in body if body[name] is not None and body[name] != context.base.get(name)}
    return len(told - {"stream", "stream_options", "max_tokens"}) > 1


def _settings(context: PlanContext) -> list[Setting]:
    """Where relations are told: settings that this contract allows and this target takes, two of them in `gate`."""
    found: list[Setting] = []
    for name, (setting, _) in SETTINGS.items():
        kept = {key: value for key, value in setting.items() if context.has(key)}
        if _fine(context, kept) and (not found or kept):
            found.append((name, kept))
    return found if context.full else found[:2]


def _fine(context: PlanContext, *patches: Patch) -> bool:
    body = context.body(*patches)
    return not context.barred(body) and context.validity_of(body) is not Validity.INVALID


def _two(
    context: PlanContext, kind: str, key: str, roles: tuple[str, str], one: Patch, other: Patch, *, rank: int = 3
) -> Iterator[CaseGroup]:
    """A group of two requests, where the contract allows both."""
    if _fine(context, one) and _fine(context, other):
        cases = [
            context.case("relation", context.body(patch), part(kind, key, role))
            for role, patch in zip(roles, (one, other), strict=True)
        ]
        yield CaseGroup("values", rank, tuple(cases))


def _twin(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if not context.has("stream"):
        return
    settings = [(name, setting)]
    if not context.full and name == "plain":
        # one twin with all that has to arrive in the right place, and characters of several bytes; one with less
        whole = {**TEXTS.patch, "n": 2, "echo": True, "logprobs": 1, "max_tokens": TOKENS_LONG}
        settings += [("unicode", fitting(context, whole))]
        settings += [("logprobs", {"logprobs": shown(context, "logprobs")})] if context.has("logprobs") else []
    for key, patch in settings:
        plain = {**patch, "stream": ABSENT, "stream_options": ABSENT}
        yield from _two(
            context,
            "twin",
            key,
            ("plain", "stream"),
            plain,
            {**patch, **streaming(context)},
            rank=2 if key == "unicode" else 3,
        )


def _repeat(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """The base in the first wave and again as a control of the next is a repetition already."""
    body = context.body(setting)
    first, second = (context.case("relation", body, part("repeat", name, role)) for role in ("first", "second"))
    if name == "plain":
        yield CaseGroup("base", 1, (first,))
        yield CaseGroup("values", 1, (second,))
    else:
        yield CaseGroup("values", 3, (first, second), (0, 1))


def _seed(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("seed", "temperature"):
        seeded = {**setting, "seed": 20261, "temperature": 1, **({} if context.full else fitting(context, {"n": 2}))}
        body = context.body(seeded)
        if _fine(context, seeded):
            cases = [context.case("relation", body, part("seed", name, role)) for role in ("first", "second")]
            yield CaseGroup("values", 3, tuple(cases), (0, 1))

    if context.full and name == "plain" and context.has("seed", "temperature", "stream"):
        drawn = {**setting, **fitting(context, {"n": 2}), "seed": 20261, "temperature": 1}
        yield from _two(
            context, "seed", "on both channels", ("first", "second"), drawn, {**drawn, **streaming(context)}
        )


def _best(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Single draws, and the best of many: so few tokens that hardly any text ends of itself."""
    if not context.full or name != "plain" or not context.has("best_of", "n", "logprobs", "temperature", "max_tokens"):
        return
    ground = {**setting, "temperature": 1, "max_tokens": 2, "logprobs": 1}
    one = {**ground, "n": SINGLES}
    best = {**ground, "best_of": context.number("best_of", 20), "prompt": [PROMPT] * AT_ONCE}
    if best["best_of"] == 20 and _fine(context, one) and _fine(context, best):
        request = [one, *[best] * (BESTS // AT_ONCE)]
        roles = ("one", *["best"] * (BESTS // AT_ONCE))
        cases = [
            context.case("relation", context.body(patch), part("best", name, role))
            for role, patch in zip(roles, request, strict=True)
        ]
        yield CaseGroup("values", 3, tuple(cases), (0, *range(BESTS // AT_ONCE)))


def _vary(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    hot = context.number("temperature", 1.8, 1.5, 1) if context.has("temperature") else None
    if hot is None:
        return
    if context.has("logprobs"):
        setting = {"logprobs": 1, **setting}  # whether chance had room in what is drawn
    more = {"n": 2} if context.has("n") and "n" not in setting else {}
    drawn = {**setting, **more, "temperature": hot, "max_tokens": 8}
    if _fine(context, drawn):
        cases = [context.case("relation", context.body(drawn), part("vary", name, "draw")) for _ in range(2)]
        yield CaseGroup("values", 3, tuple(cases), (0, 1))
    if context.full and context.has("seed"):
        bodies = [context.body({**setting, "temperature": hot, "max_tokens": 8, "seed": seed}) for seed in SEEDS]
        cases = [context.case("relation", body, part("vary", f"seeds {name}", "draw")) for body in bodies]
        yield CaseGroup("values", 4, tuple(cases))


def _null(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Null against absent; null in place of what keeps a reply short or repeatable would change it."""
    kept = {"model", "prompt", "max_tokens", "temperature", *setting}
    if context.has("max_tokens") and context.contract.parameters["max_tokens"].nullable and _short_default(context):
        absent, null = {**setting, "max_tokens": ABSENT}, {**setting, "max_tokens": None}
        for bundle in (
            ()
            if exceeds_default_limit(context)
            else _two(context, "null", f"max_tokens {name}", ("absent", "null"), absent, null)
        ):
            yield replace(bundle, phase="rows")  # when it is known what no limit costs
    nullable = [one for one, told in context.contract.parameters.items() if told.nullable and context.has(one)]
    nulls = {one: None for one in nullable if one not in kept and f"{one}=null" not in context.known.refused}
    each = context.full and name == "plain"
    for key, patch in {one: {one: None} for one in nulls}.items() if each else [("all", nulls)]:
        if patch:
            # what a penalty does shows where words come again
            more = (
                {"max_tokens": TOKENS_MANY}
                if context.traits(key).acts_on_repetition and context.has("max_tokens")
                else {}
            )
            absent, null = {**setting, **more}, {**setting, **more, **patch}
            yield from _two(context, "null", f"{key} {name}", ("absent", "null"), absent, null)


def _short_default(context: PlanContext) -> bool:
    default = context.contract.default("max_tokens")
    return isinstance(default, int) and default <= MOST_TOKENS


def _default(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if name not in {"plain", "streamed"}:
        return
    for key, default in context.defaults.items():
        if default is None or key in {"prompt", "model", "temperature", *setting} or not context.has(key):
            continue
        if isinstance(default, (bool, int, float, str)) and not (isinstance(default, int) and default > MOST_TOKENS):
            rank = 2 if f"request.{key}.default" in context.rows else 4
            absent, told = {**setting, key: ABSENT}, {**setting, key: default}
            yield from _two(context, "default", f"{key} {name}", ("absent", "explicit"), absent, told, rank=rank)


def _batch(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    prompts: tuple[Any, ...] = (PROMPT, UNICODE)
    if "prompt" in setting and isinstance(setting["prompt"], list) and isinstance(setting["prompt"][0], list):
        prompts = tuple(setting["prompt"])
    whole = {**setting, "prompt": list(prompts), **_channel(context, "prompt", setting)}
    patches = [whole, *({**setting, "prompt": prompt} for prompt in prompts)]
    roles = ("batch", *(f"single-{place}" for place in range(len(prompts))))
    if all(_fine(context, patch) for patch in patches):
        cases = [
            context.case("relation", context.body(patch), part("batch", name, role))
            for role, patch in zip(roles, patches, strict=True)
        ]
        yield CaseGroup("values", 3, tuple(cases))


def _never(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """A stop sequence that cannot occur, and members that have no business with the text."""
    known = ((name, context.traits(name).inert) for name in context.contract.parameters)
    given = [(name, value) for name, value in known if value is not None]
    inert = {
        **context.fitting("stop", [UNLIKELY_STOP], UNLIKELY_STOP),
        **dict(sorted(given, key=lambda item: isinstance(item[1], int))),  # text first, then numbers
    }
    if context.contract.unknown_fields is Validity.VALID:
        inert["x_unknown_field"] = "ignored"
    for key, value in inert.items():
        if (context.has(key) or key == "x_unknown_field") and key not in setting and (key == "stop" or name == "plain"):
            ground = (
                {**rich(context), "max_tokens": TOKENS_LONG, **setting}
                if key == "stop" and context.has("max_tokens")
                else setting
            )
            patch = {**ground, key: value, **_channel(context, key, setting)}
            rank = 3 if key == "stop" else 4
            yield from _two(context, "never", f"{key} {name}", ("without", "with"), ground, patch, rank=rank)


def _logprobs(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("logprobs"):
        without, request = {**setting, "logprobs": ABSENT}, {**setting, "logprobs": shown(context, "logprobs")}
        yield from _two(context, "logprobs", name, ("without", "with"), without, request)


def _many(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("n"):
        yield from _two(context, "many", name, ("one", "many"), {**setting, "n": ABSENT}, {**setting, "n": 2})


def _prefix(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("max_tokens"):
        more = {**rich(context), **setting}
        short = {**more, "max_tokens": 3, **_channel(context, "max_tokens", setting)}
        yield from _two(context, "prefix", name, ("short", "long"), short, {**more, "max_tokens": TOKENS_LONG})


def _echo(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("echo"):
        without = {**setting, "echo": ABSENT}
        echoed = {**setting, "echo": True, **_channel(context, "echo", setting)}
        yield from _two(context, "echo", name, ("without", "with"), without, echoed)


def _narrow(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    # in long texts at a high temperature chance would have its way
    hot = context.number("temperature", 2, 1.9, 1.5, 1) if context.has("temperature") else None
    ground = {**rich(context), **setting, **({"max_tokens": TOKENS_LONG} if context.has("max_tokens") else {})}
    for parameter in context.contract.parameters:
        values = context.traits(parameter).narrowing
        # the very end of a range may be left open: where it is no VALID value, what comes next would not be narrow
        found = context.number(parameter, *values) if values and context.has(parameter) and hot is not None else None
        if found is not None and found in values:
            narrow = {**ground, "temperature": hot, parameter: found, **_channel(context, parameter, setting)}
            yield from _two(context, "narrow", f"{parameter} {name}", ("greedy", "narrow"), ground, narrow)


def _suffix(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("suffix"):
        request = {**setting, "suffix": " and so on.", **_channel(context, "suffix", setting)}
        yield from _two(context, "suffix", name, ("without", "with"), setting, request)


def _force(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("logit_bias"):
        more = {} if context.full else fitting(context, {"n": 2})
        forced = {**setting, "logit_bias": {"100": 100}, **more, **_channel(context, "logit_bias", setting)}
        yield from _two(context, "force", f"100 {name}", ("without", "with"), setting, forced, rank=2)


def _ban(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Two tokens are forced, then one of them banned: the other is left. For targets without echo, which spells ids."""
    if not context.full or name != "plain" or not context.has("logit_bias") or context.has("echo"):
        return
    for banned, other in (PAIR, PAIR[::-1]):
        both, one = {"logit_bias": {banned: 100, other: 100}}, {"logit_bias": {banned: -100, other: 100}}
        yield from _two(context, "ban", f"{banned} {name}", ("forced", "with"), both, one)


def _json(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Each format plain and streamed; in `gate` the most demanding of them streamed, the others plain."""
    if not context.has("response_format"):
        return
    place = 0
    limit = {"max_tokens": TOKENS_MANY} if context.has("max_tokens") else {}
    found = sample_levels(context.contract, "response_format")
    for one in found if context.full else sorted(found, key=lambda level: "schema" not in dumps(level.value)):
        wanted = one.value.get("type") if isinstance(one.value, Mapping) else None
        patch = {**setting, **one.patch, **limit}
        if wanted not in {"json_object", "json_schema"} or not _fine(context, patch):
            continue
        streamed = (
            streaming(context)
            if context.full and context.has("stream")
            else _channel(context, "response_format", setting)
        )
        several = {**fitting(context, {"n": 2}), **streamed}  # the second choice keeps to the format, too
        for more in ({}, several) if context.full else ({} if place % 2 else several,):
            if _fine(context, {**patch, **more}):
                probe = context.case(
                    "relation", context.body(patch, more), part("json", f"{one.label} {name}", "probe")
                )
                yield CaseGroup("values", 3, (probe,))
        place += 1


def _channel(context: PlanContext, name: str, setting: Patch) -> Patch:
    return {} if "stream" in setting else observation_channel(context, name)


def _tier(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    reported = context.contract.by_role(Role.REPORTED)
    if context.has(reported) and name == "plain":
        for one in sample_levels(context.contract, reported):
            if _fine(context, one.patch):
                probe = context.case("relation", context.body(one.patch), part("tier", one.label, "probe"))
                yield CaseGroup("values", 3, (probe,))


def _overflow(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """More tokens than any context has. Stop sequences keep a target cheap that lowers the limit, as some promise."""
    policy = context.contract.by_role(Role.CONTEXT_OVERFLOW)
    choices = context.traits(policy).choices
    for row in context.rows_on("overflow") if name == "plain" and context.has("max_tokens") else ():
        patch = {key: value for key, value in row.when.items() if key in context.contract.parameters}
        if context.has(policy) and row.params.get("behaviour") in choices:
            patch[policy] = choices[row.params["behaviour"]]
        brief = context.fitting("stop", [" ", ",", "\n", "."], [" ", ","], [" "], " ")
        control = context.case("relation", context.body(patch), part("overflow", row.id, "control"))
        beyond = context.body(patch, brief, {"max_tokens": ENDLESS})
        probe = context.case("relation", beyond, part("overflow", row.id, "probe"), validity=Validity.UNSPECIFIED)
        yield CaseGroup("values", 3, (control, probe))


KINDS: Final[Mapping[str, Build]] = {
    "twin": _twin, "never": _never, "logprobs": _logprobs, "echo": _echo, "many": _many, "default": _default,
    "prefix": _prefix, "batch": _batch, "null": _null, "repeat": _repeat, "seed": _seed, "force": _force, "ban": _ban,
    "narrow": _narrow, "suffix": _suffix, "vary": _vary, "json": _json, "tier": _tier, "overflow": _overflow,
    "best": _best,
}  # fmt: skip
# What several choices a prompt upset most goes before the other relations in settings.
DEAR: Final = frozenset({("choices", "batch"), ("choices", "seed")})
# Where relations are told besides the plain base, and which: those that code for the setting could break.
SETTINGS: Final[Mapping[str, tuple[Patch, frozenset[str]]]] = {
    "plain": ({}, frozenset()),
    "streamed": (
        {**STREAM.patch, "prompt": UNICODE},
        frozenset(KINDS) - {"twin", "default", "json"},
    ),
    "choices": (
        {"n": 2, "logprobs": 1},
        frozenset({"twin", "never", "echo", "prefix", "batch", "repeat", "seed", "force"}),
    ),
    "batch": (
        {**USAGE.patch, **TEXTS.patch},
        frozenset({"twin", "never", "logprobs", "echo", "many", "prefix", "force", "seed"}),
    ),
    "echoed": (
        {"echo": True, "logprobs": 1, "prompt": UNICODE},
        frozenset({"twin", "never", "many", "prefix", "force"}),
    ),
    # rewarded repetition changes any text, so that penalties which get lost on one way show
    "rewarded": (
        {"presence_penalty": -1.9, "frequency_penalty": -1.9, "repetition_penalty": 0.6, "max_tokens": 2 * TOKENS_LONG},
        frozenset({"twin", "batch", "many", "echo"}),
    ),
    "ids": (
        {"prompt": [list(IDS), list(OTHER_IDS)], "n": 2, **STREAM.patch},
        frozenset({"twin", "batch", "echo", "logprobs", "many", "never"}),
    ),
}
# What does not rest on a reply that repeats; the rest is left out where the target refuses temperature 0.
WITHOUT_COLD: Final = frozenset(
    {"twin", "batch", "many", "vary", "seed", "json", "tier", "overflow", "force", "default"}
)

__all__ = ["ENDLESS", "KINDS", "relations"]
