"""Relations: groups of requests whose replies must agree or must differ.

Each relation is tested on the base request and, in `full`, again in settings where defects hide: streamed, with
several choices, with several prompts, echoed. Most groups share the request without the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.model import Validity
from conformance.model.json_text import dumps
from conformance.model.parameter_traits import Role
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import (
    BIAS_TOKENS,
    FORCED,
    FORCED_AMONG_MANY,
    PROMPT,
    STORY,
    TOKENS_LONG,
    TOKENS_MANY,
    TRACES,
    PlanContext,
    part,
    rename,
)
from conformance.plan.factors import (
    ABSENT,
    IDS,
    OTHER_IDS,
    RICH,
    STREAM,
    TEXTS,
    UNICODE,
    UNLIKELY_STOP,
    USAGE,
    allowed_members,
    exceeds_default_limit,
    first_level_value,
    gate_choices,
    most_alternatives,
    observation_channel,
    streaming,
    sure_members,
)
from conformance.plan.parameter_values import sample_levels

MOST_TOKENS: Final = 64  # a larger default of max_tokens would cost more than it shows
ENDLESS: Final = 9_000_000
SUFFIX: Final = " and so on."
SINGLES, BESTS = 40, 12  # samples that suffice to distinguish the best of twenty from any of them
OPEN: Final = (("temperature",), ("logprobs",), ("temperature", "logprobs"))
FEW_ALTERNATIVES: Final = 2  # so few that one of them is not the likeliest
AT_ONCE: Final = 4  # of the best, as prompts of one request
SEEDS: Final = (1, 257, 65537)  # equal in their lowest byte, which must not be all that a server uses
SEED: Final = 20261
# One that a server may take for none, one with a sign, and those that an integer may be too short for.
SEEDS_OF_SETTINGS: Final = {"streamed": 0, "choices": -7, "batch of choices": 2**31 - 1, "best choices": 2**40}
Patch = Mapping[str, Any]
Setting = tuple[str, Patch]
Build = Callable[[PlanContext, str, Patch], Iterator[CaseGroup]]


def relations(context: PlanContext) -> Iterator[CaseGroup]:
    """Every group that some check of the contract looks at, the plain setting first."""
    for index, (name, setting) in enumerate(_settings(context)):
        for kind, build in KINDS.items():
            fits = not index or kind in SETTINGS[name][1]
            if fits and kind in context.kinds and (context.greedy or kind in WITHOUT_TEMPERATURE_ZERO):
                for case_group in build(context, name, setting):
                    # what combines values waits until each of them was tried alone
                    combines = any(_combines(context, case.body) for case in case_group.cases)
                    waits = index or (combines and not context.full and kind != "many")
                    later = min(index, 1 if (name, kind) in PREFERRED else 2)
                    lowest = Rank.NORMAL if (name, kind) in SHOWN_HERE else Rank.USEFUL
                    rank = min(case_group.rank + later, lowest if name in SEVERAL else Rank.OBSERVED)
                    yield replace(case_group, phase="rows", rank=rank) if waits else case_group
        if name in SEVERAL:
            yield from _extremes(context, setting)


def _extremes(context: PlanContext, setting: Patch) -> Iterator[CaseGroup]:
    """A setting of several members with no token, with one, and without an end before the limit."""
    endless = context.contract.by_role(Role.IGNORES_END)
    extremes: list[dict[str, Any]] = [{"max_tokens": 0}, {"max_tokens": 1}]
    if endless:
        extremes += [{endless: True}, {endless: True, "max_tokens": 1}]
    for patch in extremes:
        # without what the document leaves open, so that the reply is judged as that to any valid request
        bodies = [context.body(setting, patch, dict.fromkeys(names, ABSENT)) for names in ((), *OPEN)]
        valid = [body for body in bodies if context.validity_of(body) is Validity.VALID]
        if context.has(*patch) and context.may_send(body := (valid or bodies)[0]):
            yield CaseGroup("rows", Rank.USEFUL, (context.case("row", body),))


def _combines(context: PlanContext, body: Any) -> bool:
    """Whether a request has several values that are each tried alone in phase `values`."""
    usual = {**context.defaults, **context.base}
    varied = {name for name in body if body[name] is not None and body[name] != usual.get(name)}
    return len(varied - {"stream", "stream_options", "max_tokens"}) > 1


def _settings(context: PlanContext) -> list[Setting]:
    """The settings that this contract allows and this target accepts; the first two of them in `gate`."""
    allowed: list[Setting] = []
    for name, (setting, _) in SETTINGS.items():
        kept = allowed_members(context, setting)
        if _may_send(context, kept) and (not allowed or kept):
            allowed.append((name, kept))
    return allowed if context.full else allowed[:2]


def _may_send(context: PlanContext, *patches: Patch) -> bool:
    return context.may_send(context.body(*patches))


def _pair(
    context: PlanContext,
    kind: str,
    key: str,
    roles: tuple[str, str],
    first: Patch,
    second: Patch,
    *,
    rank: int = Rank.NORMAL,
) -> Iterator[CaseGroup]:
    """A group of two requests, where the contract allows both."""
    if _may_send(context, first) and _may_send(context, second):
        cases = [
            context.case("relation", context.body(patch), part(kind, key, role))
            for role, patch in zip(roles, (first, second), strict=True)
        ]
        yield CaseGroup("values", rank, tuple(cases))


def _plain_streamed(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if not context.has("stream"):
        return
    settings = [(name, setting)]
    if not context.full and name == "plain":
        # one pair with everything that must keep its index and with characters of several bytes; one with less
        settings += [("unicode", sure_members(context, {**RICH, "max_tokens": TOKENS_LONG}))]
        settings += (
            [("logprobs", {"logprobs": first_level_value(context, "logprobs")})] if context.has("logprobs") else []
        )
    for key, patch in settings:
        plain = {**patch, "stream": ABSENT, "stream_options": ABSENT}
        yield from _pair(
            context,
            "twin",
            key,
            ("plain", "stream"),
            plain,
            {**patch, **streaming(context)},
            rank=Rank.ALWAYS if key == "unicode" else Rank.NORMAL,
        )


def _repeat(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """The base request of phase `base` is sent again in `values` as a control, which is a repetition already."""
    body = context.body(setting)
    first, second = (context.case("relation", body, part("repeat", name, role)) for role in ("first", "second"))
    if name == "plain":
        # what follows an adversarial request is compared with these, see `adversarial`
        alone = [part("after", key, "alone") for key in TRACES if "after" in context.kinds and context.hostile]
        first, second = (rename(case, case.id, (*case.groups, *alone)) for case in (first, second))
        yield CaseGroup("base", Rank.ESSENTIAL, (first,))
        yield CaseGroup("values", Rank.ESSENTIAL, (second,))
        if context.full:
            # on a connection of its own, while all others share a few
            headers = (*second.headers, ("connection", "close"))
            apart = replace(second, headers=headers, groups=(part("repeat", name, "second"),))
            yield CaseGroup("values", Rank.NORMAL, (apart,))
    else:
        yield CaseGroup("values", Rank.NORMAL, (first, second), (0, 1))


def _seed(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("seed", "temperature"):
        wanted = SEEDS_OF_SETTINGS.get(name, SEED)
        sure = context.validity_alone({"seed": wanted}) is Validity.VALID
        seeded = {
            **setting,
            "seed": wanted if sure else SEED,
            "temperature": 1,
            **({} if context.full else allowed_members(context, {"n": 2})),
        }
        body = context.body(seeded)
        if _may_send(context, seeded):
            cases = [context.case("relation", body, part("seed", name, role)) for role in ("first", "second")]
            yield CaseGroup("values", Rank.NORMAL, tuple(cases), (0, 1))

    if context.full and name == "plain" and context.has("seed", "temperature", "stream"):
        drawn = {**setting, **allowed_members(context, {"n": 2}), "seed": SEED, "temperature": 1}
        yield from _pair(
            context, "seed", "on both channels", ("first", "second"), drawn, {**drawn, **streaming(context)}
        )


def _best(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Single samples, and the best of many: so few tokens that hardly any text ends by itself."""
    if not context.full or name != "plain" or not context.has("best_of", "n", "logprobs", "temperature", "max_tokens"):
        return
    ground = {**setting, "temperature": 1, "max_tokens": 2, "logprobs": 1}
    single = {**ground, "n": SINGLES}
    best = {**ground, "best_of": context.number("best_of", 20), "prompt": [PROMPT] * AT_ONCE}
    if best["best_of"] == 20 and _may_send(context, single) and _may_send(context, best):
        request = [single, *[best] * (BESTS // AT_ONCE)]
        roles = ("one", *["best"] * (BESTS // AT_ONCE))
        cases = [
            context.case("relation", context.body(patch), part("best", name, role))
            for role, patch in zip(roles, request, strict=True)
        ]
        yield CaseGroup("values", Rank.NORMAL, tuple(cases), (0, *range(BESTS // AT_ONCE)))


def _vary(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    hot = context.number("temperature", 1.8, 1.5, 1) if context.has("temperature") else None
    if hot is None:
        return
    if context.has("logprobs"):
        setting = {"logprobs": 1, **setting}  # shows whether the model had a choice
    two_choices = {"n": 2} if context.has("n") and "n" not in setting else {}
    drawn = {**setting, **two_choices, "temperature": hot, "max_tokens": 8}
    if _may_send(context, drawn):
        cases = [context.case("relation", context.body(drawn), part("vary", name, "draw")) for _ in range(2)]
        yield CaseGroup("values", Rank.NORMAL, tuple(cases), (0, 1))
    if context.full and context.has("seed") and name in {"plain", "streamed"}:
        bodies = [context.body({**setting, "temperature": hot, "max_tokens": 8, "seed": seed}) for seed in SEEDS]
        cases = [context.case("relation", body, part("vary", f"seeds {name}", "draw")) for body in bodies]
        yield CaseGroup("values", Rank.USEFUL, tuple(cases))


def _null(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Null against absent, but for members that keep a reply short or repeatable."""
    kept = {"model", "prompt", "max_tokens", "temperature", *setting}
    if context.has("max_tokens") and context.contract.parameters["max_tokens"].nullable and _short_default(context):
        # the two differ only in a text that does not end by itself before the default; in `gate` requests are shared
        prompt = {"prompt": STORY} if context.full and "prompt" not in setting else {}
        absent, null = ({**setting, **prompt, "max_tokens": limit} for limit in (ABSENT, None))
        for case_group in (
            ()
            if exceeds_default_limit(context)
            else _pair(context, "null", f"max_tokens {name}", ("absent", "null"), absent, null)
        ):
            yield replace(case_group, phase="rows")  # when it is known how long a reply without a limit is
    nullable = [key for key, parameter in context.contract.parameters.items() if parameter.nullable]
    allowed = [key for key in nullable if context.has(key) and f"{key}=null" not in context.known.refused]
    nulls = {key: None for key in allowed if key not in kept}
    one_by_one = context.full and name == "plain"
    for key, patch in {key: {key: None} for key in nulls}.items() if one_by_one else [("all", nulls)]:
        if patch:
            # the effect of a penalty shows where words occur again
            length = (
                {"max_tokens": TOKENS_MANY}
                if context.traits(key).acts_on_repetition and context.has("max_tokens")
                else {}
            )
            absent, null = {**setting, **length}, {**setting, **length, **patch}
            yield from _pair(context, "null", f"{key} {name}", ("absent", "null"), absent, null)


def _short_default(context: PlanContext) -> bool:
    default = context.contract.default("max_tokens")
    return isinstance(default, int) and default <= MOST_TOKENS


def _default(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Each default by itself; in `gate` and in settings all in one request, which proves each where nothing changes."""
    one_by_one = context.full and name == "plain"
    for key, default in _visible_defaults(context).items() if context.full else ():
        if one_by_one or key in setting:
            yield from _one_default(context, f"{key} {name}", setting, {key: default})
    if not one_by_one and (context.full or name == "plain"):
        yield from _joint_defaults(context, name, _beside_defaults(context, setting))


def _one_default(
    context: PlanContext, key: str, setting: Patch, default: Patch, rank: int | None = None
) -> Iterator[CaseGroup]:
    (member,) = default
    if rank is None:
        rank = Rank.RELEVANT if f"request.{member}.default" in context.rows else Rank.USEFUL
    ground = {**setting, "stream_options": ABSENT} if member == "stream" else setting
    absent, explicit = {**ground, member: ABSENT}, {**ground, **default}
    yield from _pair(context, "default", key, ("absent", "explicit"), absent, explicit, rank=rank)


def _visible_defaults(context: PlanContext, kept: Collection[str] = ()) -> dict[str, Any]:
    return {
        key: default
        for key, default in context.defaults.items()
        if key not in {"prompt", "model", "temperature", *kept}
        and context.has(key)
        and isinstance(default, (bool, int, float, str))
        and not (isinstance(default, int) and default > MOST_TOKENS)
    }


def _beside_defaults(context: PlanContext, setting: Patch) -> Patch:
    """The setting with log probabilities, beside which a default may be lost."""
    return {**allowed_members(context, {"logprobs": FEW_ALTERNATIVES}), **setting}


def _joint_defaults(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    defaults = _combined_defaults(context, setting)
    cases = [
        context.case("relation", body, *(part("default", f"{key} together {name}", role) for key in defaults))
        for role, body in _with_and_without(context, defaults, setting).items()
    ]
    if defaults and all(context.may_send(case.body) for case in cases):
        yield CaseGroup("values", Rank.RELEVANT, tuple(cases))


def _combined_defaults(context: PlanContext, setting: Patch) -> dict[str, Any]:
    """The defaults that show in replies and may be named together."""
    kept: dict[str, Any] = {}
    visible = _visible_defaults(context, setting).items()
    before = context.broken_combinations(context.body(setting))
    for key, default in sorted(visible, key=lambda item: f"request.{item[0]}.default" not in context.rows):
        if context.broken_combinations(context.body(setting, kept, {key: default})) == before:
            kept[key] = default
    return kept


def _with_and_without(context: PlanContext, defaults: Mapping[str, Any], setting: Patch) -> dict[str, dict[str, Any]]:
    return {"absent": context.body(setting, dict.fromkeys(defaults, ABSENT)), "joint": context.body(setting, defaults)}


def defaults_in_doubt(context: PlanContext) -> Iterator[CaseGroup]:
    """Each default by itself, where all of them together changed the reply or were not answered."""
    if "default" not in context.kinds:
        return
    for name, setting in _settings(context):
        joint = "default" in SETTINGS[name][1] if context.full else name == "plain"
        if joint:
            yield from _defaults_alone(context, name, _beside_defaults(context, setting))


def _defaults_alone(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    defaults = _combined_defaults(context, setting)
    contents = [dumps(body).encode() for body in _with_and_without(context, defaults, setting).values()]
    if not all(content in context.known.replies for content in contents):
        return
    absent, joint = (context.known.reply(content) for content in contents)
    if absent is not None and joint is not None:
        texts = [[choice.text for choice in reply.choices.values()] for reply in (absent, joint)]
        if texts[0] == texts[1]:
            return
    rank = Rank.NORMAL if context.full else Rank.ALWAYS
    for key, default in defaults.items():
        for case_group in _one_default(context, f"{key} alone {name}", setting, {key: default}, rank):
            yield replace(case_group, phase="learned")


def _batch(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    prompts: tuple[Any, ...] = (PROMPT, UNICODE)
    if "prompt" in setting and isinstance(setting["prompt"], list) and isinstance(setting["prompt"][0], list):
        prompts = tuple(setting["prompt"])
    batch = {**setting, "prompt": list(prompts), **_channel(context, "prompt", setting)}
    patches = [batch, *({**setting, "prompt": prompt} for prompt in prompts)]
    roles = ("batch", *(f"single-{index}" for index in range(len(prompts))))
    if all(_may_send(context, patch) for patch in patches):
        cases = [
            context.case("relation", context.body(patch), part("batch", name, role))
            for role, patch in zip(roles, patches, strict=True)
        ]
        yield CaseGroup("values", Rank.NORMAL, tuple(cases))


def _never(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """A stop sequence that cannot occur, and members that must not change the text."""
    known = ((name, context.traits(name).inert) for name in context.contract.parameters)
    given = [(name, value) for name, value in known if value is not None]
    inert = {
        **context.first_allowed("stop", [UNLIKELY_STOP], UNLIKELY_STOP),
        **dict(sorted(given, key=lambda item: isinstance(item[1], int))),  # text first, then numbers
    }
    if context.contract.unknown_fields is Validity.VALID:
        inert["x_unknown_field"] = "ignored"
    for key, value in inert.items():
        shows = key == "stop" or name in {"plain", "batch of choices"}
        if (context.has(key) or key == "x_unknown_field") and key not in setting and shows:
            ground = (
                {**gate_choices(context), "max_tokens": TOKENS_LONG, **setting}
                if key == "stop" and context.has("max_tokens")
                else setting
            )
            patch = {**ground, key: value, **_channel(context, key, setting)}
            rank = Rank.NORMAL if key == "stop" else Rank.USEFUL
            yield from _pair(context, "never", f"{key} {name}", ("without", "with"), ground, patch, rank=rank)


def _logprobs(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("logprobs"):
        without, request = (
            {**setting, "logprobs": ABSENT},
            {**setting, "logprobs": first_level_value(context, "logprobs")},
        )
        yield from _pair(context, "logprobs", name, ("without", "with"), without, request)


def _ranks(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Two alternatives, and as many as may be requested: the two are the likeliest of them."""
    most = most_alternatives(context) if context.full and context.has("logprobs") else 0
    if most > FEW_ALTERNATIVES:
        few, many = ({**setting, "logprobs": number} for number in (FEW_ALTERNATIVES, most))
        yield from _pair(context, "ranks", name, ("many", "few"), many, few)


def _several_choices(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("n"):
        # `gate` tries both in one request
        names = [key for key in context.contract.parameters if key in {"n", "logprobs"} and context.has(key)]
        several = {"n": 2} if context.full else {key: first_level_value(context, key) for key in names}
        yield from _pair(context, "many", name, ("one", "many"), {**setting, "n": ABSENT}, {**setting, **several})


def _prefix(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("max_tokens"):
        members = {**gate_choices(context), **setting}
        short = {**members, "max_tokens": 3, **_channel(context, "max_tokens", setting)}
        yield from _pair(context, "prefix", name, ("short", "long"), short, {**members, "max_tokens": TOKENS_LONG})


def _echo(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("echo"):
        without = {**setting, "echo": ABSENT}
        echoed = {**setting, "echo": True, **_channel(context, "echo", setting)}
        yield from _pair(context, "echo", name, ("without", "with"), without, echoed)


def _narrow(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    # the highest temperature, so that a filter that is ignored shows in a short text
    hot = context.number("temperature", 2, 1.9, 1.5, 1) if context.has("temperature") else None
    ground = {**gate_choices(context), **setting, **({"max_tokens": TOKENS_LONG} if context.has("max_tokens") else {})}
    if context.full and name == "plain" and hot is not None and _may_send(context, {**ground, "temperature": hot}):
        # the same without a filter comes first, so that a cache whose key lacks the filter has another text
        unfiltered = context.case("relation", context.body(ground, {"temperature": hot}))
        yield CaseGroup("values", Rank.NORMAL, (unfiltered,))
    for parameter in context.contract.parameters:
        values = context.traits(parameter).narrowing
        # where the end of the range is not surely valid, the middle that `number` falls back to would not be narrow
        limit = context.contract.limit(parameter)
        zero_is_narrow = context.traits(parameter).neutral != 0 and limit is not None and limit.low == 0
        if values and zero_is_narrow and name != "plain":
            values = (0, *values)  # which code may take for none
        narrow_value = (
            context.number(parameter, *values) if values and context.has(parameter) and hot is not None else None
        )
        if narrow_value is not None and narrow_value in values:
            narrow = {**ground, "temperature": hot, parameter: narrow_value, **_channel(context, parameter, setting)}
            yield from _pair(context, "narrow", f"{parameter} {name}", ("greedy", "narrow"), ground, narrow)


def _suffix(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("suffix"):
        without = {**setting, "suffix": ABSENT}
        request = {**setting, "suffix": SUFFIX, **_channel(context, "suffix", setting)}
        yield from _pair(context, "suffix", name, ("without", "with"), without, request)


def _force(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    if context.has("logit_bias"):
        two_choices = {} if context.full else allowed_members(context, {"n": 2})
        bias = FORCED if name == "plain" else FORCED_AMONG_MANY
        forced = {**setting, "logit_bias": bias, **two_choices, **_channel(context, "logit_bias", setting)}
        key = f"{BIAS_TOKENS[0]} {name}"
        yield from _pair(context, "force", key, ("without", "with"), setting, forced, rank=Rank.RELEVANT)


def _ban(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Two tokens are forced, then one of them banned, so that the other is left: where no echo spells the ids."""
    if not context.full or not context.has("logit_bias") or (name == "plain" and context.has("echo")):
        return
    for banned, other in (BIAS_TOKENS, BIAS_TOKENS[::-1]):
        both = {**setting, "logit_bias": dict.fromkeys(BIAS_TOKENS, 100)}
        one_banned = {**setting, "logit_bias": {banned: -100, other: 100}}
        yield from _pair(context, "ban", f"{banned} {name}", ("forced", "with"), both, one_banned)


def _json(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """Each format plain and streamed; in `gate` alternating, with the most demanding format streamed."""
    if not context.has("response_format"):
        return
    index = 0
    limit = {"max_tokens": TOKENS_MANY} if context.has("max_tokens") else {}
    levels = sample_levels(context.contract, "response_format")
    for level in levels if context.full else sorted(levels, key=lambda level: "schema" not in dumps(level.value)):
        wanted = level.value.get("type") if isinstance(level.value, Mapping) else None
        patch = {**setting, **level.patch, **limit}
        if wanted not in {"json_object", "json_schema"} or not _may_send(context, patch):
            continue
        streamed = (
            streaming(context)
            if context.full and context.has("stream")
            else _channel(context, "response_format", setting)
        )
        several = {
            **allowed_members(context, {"n": 2}),
            **streamed,
        }  # the second choice has the format too
        if name != "plain":
            ways: tuple[Patch, ...] = ({},)
        else:
            ways = ({}, several) if context.full else ({} if index % 2 else several,)
        for way in ways:
            if _may_send(context, {**patch, **way}):
                probe = context.case(
                    "relation", context.body(patch, way), part("json", f"{level.label} {name}", "probe")
                )
                yield CaseGroup("values", Rank.NORMAL, (probe,))
        index += 1


def _channel(context: PlanContext, name: str, setting: Patch) -> Patch:
    return {} if "stream" in setting else observation_channel(context, name)


def _reported_value(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    reported = context.contract.by_role(Role.REPORTED)
    if context.has(reported) and name == "plain":
        for level in sample_levels(context.contract, reported):
            if _may_send(context, level.patch):
                probe = context.case("relation", context.body(level.patch), part("tier", level.label, "probe"))
                yield CaseGroup("values", Rank.NORMAL, (probe,))


def _overflow(context: PlanContext, name: str, setting: Patch) -> Iterator[CaseGroup]:
    """A limit beyond any context. Stop sequences keep the reply short where a target lowers the limit."""
    policy = context.contract.by_role(Role.CONTEXT_OVERFLOW)
    choices = context.traits(policy).choices
    for row in context.rows_on("overflow") if name == "plain" and context.has("max_tokens") else ():
        patch = {key: value for key, value in row.when.items() if key in context.contract.parameters}
        if context.has(policy) and row.params.get("behaviour") in choices:
            patch[policy] = choices[row.params["behaviour"]]
        brief = context.first_allowed("stop", [" ", ",", "\n", "."], [" ", ","], [" "], " ")
        control = context.case("relation", context.body(patch), part("overflow", row.id, "control"))
        beyond = context.body(patch, brief, {"max_tokens": ENDLESS})
        probe = context.case("relation", beyond, part("overflow", row.id, "probe"), validity=Validity.UNSPECIFIED)
        yield CaseGroup("values", Rank.NORMAL, (control, probe))
        if context.full and context.has("stream"):
            # a stream may begin before the limit is looked at, and the limit of one of many choices be overlooked
            begun = part("overflow", f"{row.id} streamed", "probe")
            control = context.case("relation", context.body(patch), part("overflow", f"{row.id} streamed", "control"))
            several = allowed_members(context, {**streaming(context), "prompt": [PROMPT, UNICODE], "n": 2})
            beyond = context.body(patch, brief, {"max_tokens": ENDLESS}, several)
            probe = context.case("relation", beyond, begun, validity=Validity.UNSPECIFIED)
            yield CaseGroup("values", Rank.NORMAL, (control, probe))


KINDS: Final[Mapping[str, Build]] = {
    "twin": _plain_streamed, "never": _never, "logprobs": _logprobs, "echo": _echo, "many": _several_choices,
    "default": _default, "ranks": _ranks,
    "prefix": _prefix, "batch": _batch, "null": _null, "repeat": _repeat, "seed": _seed, "force": _force, "ban": _ban,
    "narrow": _narrow, "suffix": _suffix, "vary": _vary, "json": _json, "tier": _reported_value, "overflow": _overflow,
    "best": _best,
}  # fmt: skip
# Relations that several choices a prompt break most easily rank before the others in settings.
PREFERRED: Final = frozenset({("choices", "batch"), ("choices", "seed")})
# What a setting of several members may break: each effect, and each comparison of one text with another.
# Settings of several members at once: a promise that is broken beside any of them is broken here.
SEVERAL: Final = frozenset(
    {"batch of choices", "best choices", "batch of ids", "equal prompts", "empty prompt", "penalized"}
)
# Little else shows promises beside token ids, or these relations beside a choice of the best candidates.
OF_CHOICE: Final = (
    "vary", "narrow", "suffix", "ban", "repeat", "seed", "batch", "many", "prefix", "logprobs", "ranks",
)  # fmt: skip
SHOWN_HERE: Final = frozenset(
    {
        *(("batch of ids", kind) for kind in KINDS),
        *(("best choices", kind) for kind in OF_CHOICE),
        ("penalized", "repeat"),
    }
)
# What concerns texts and choices may be lost in each of them; what a parser does once for all members, in the first.
OF_TEXTS: Final = frozenset(KINDS) - {"twin", "tier", "overflow", "best", "default", "json"}
# The settings in which relations are tested, and which relations: those that code for the setting could break.
SETTINGS: Final[Mapping[str, tuple[Patch, frozenset[str]]]] = {
    "plain": ({}, frozenset()),
    "streamed": (
        {**STREAM.patch, "prompt": UNICODE},
        frozenset(KINDS) - {"twin", "json", "ban", "batch", "logprobs", "many", "null", "default", "ranks"},
    ),
    "choices": ({"n": 2, "logprobs": 1}, frozenset({"twin", "echo", "batch", "seed"})),
    "echoed": ({"echo": True, "logprobs": 1, "prompt": UNICODE}, frozenset({"twin"})),
    # rewarded repetition changes any text, so that a penalty that is lost on one channel shows
    "rewarded": (
        {"presence_penalty": -1.9, "frequency_penalty": -1.9, "repetition_penalty": 0.6, "max_tokens": 2 * TOKENS_LONG},
        frozenset({"twin", "batch", "many", "echo"}),
    ),
    "batch of choices": (
        {**USAGE.patch, **TEXTS.patch, "n": 2, "logprobs": 2, "echo": True, "suffix": SUFFIX},
        OF_TEXTS | {"twin", "default", "json"},
    ),
    "best choices": ({**TEXTS.patch, "echo": True, "best_of": 3, "n": 2, "logprobs": 2}, OF_TEXTS | {"json"}),
    "batch of ids": (
        {"prompt": [list(IDS), list(OTHER_IDS)], "n": 2, "logprobs": 1, **STREAM.patch},
        OF_TEXTS - {"null"} | {"twin"},
    ),
    # a prompt that comes again has choices of its own, and an empty one has an empty echo
    "equal prompts": ({**RICH, "max_tokens": TOKENS_LONG}, frozenset({"twin", "echo"})),
    "empty prompt": ({"prompt": [PROMPT, ""], "n": 2}, frozenset({"echo"})),
    # counts that are kept from one request to the next change what is penalized
    "penalized": (
        {"presence_penalty": 1, "frequency_penalty": 1, "repetition_penalty": 1.2, "max_tokens": TOKENS_LONG},
        frozenset({"repeat", "many"}),
    ),
}
# Relations that do not need repeatable replies; the others are left out where the target rejects temperature 0.
WITHOUT_TEMPERATURE_ZERO: Final = frozenset(
    {"twin", "batch", "many", "vary", "seed", "json", "tier", "overflow", "force", "default"}
)

__all__ = ["ENDLESS", "KINDS", "defaults_in_doubt", "relations"]
