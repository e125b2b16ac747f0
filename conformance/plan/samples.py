"""Drawn bodies: free text, free combinations and invalid values, by schemathesis and by strategies of our own.

The only place for schemathesis and hypothesis. Everything is drawn before anything is sent, from one seed, and
stored with the plan, because another version of hypothesis may draw other values from the same seed.

schemathesis contributes in two ways. It draws valid bodies from the projected document; and its coverage phase
enumerates classes of values, valid and invalid, independently of our input model. Each of these values is put into a
drawn body, because schemathesis changes a request that is itself refused, which proves nothing. Whether a body is
valid is computed, never believed.

hypothesis does not shrink what fails. It needs a failing test of its own, in which it sends one candidate after
another; `run/shrink.py` halves whole sets of members, tests candidates against the replies that the run has already,
sends the candidates of several failures together, and stops after 12 requests. For 39 failures of drawn bodies, each
caused by one member or two, ours asked for 6 requests on average and left 3.9 members; hypothesis asked for 35 after
the first failure and left 4.6.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, configuration, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine, providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.strategies import SearchStrategy

from conformance.model import Edge, Limit, Validity
from conformance.model.json_text import MISSING, dumps
from conformance.plan.context import PlanContext
from conformance.plan.drawn_requests import (
    LONGEST,
    MINIMUM,
    VOCABULARY,
    breaks_one_rule,
    changes,
    is_sure,
    is_unusual,
    with_member,
)
from conformance.plan.factors import Factor, factors
from conformance.plan.parameter_values import sample_levels
from conformance.plan.row_requests import bodies_of_single_rows, with_drawn_values

Body = dict[str, Any]
LEAST: Final = 10  # bodies of `full` that have each documented parameter
SPEC, OWN, SPEC_GATE, OWN_GATE = 20, 20, 2, 8
SPARE: Final = 1.5  # invalid bodies for each that must be sent: a target may refuse the valid ones that some come from
HOSTS: Final = 4  # valid bodies that are tried for a wrong value, which may break a second rule in some of them
OF_EACH: Final = 2  # invalid bodies of each valid one that come before any others: the ratio of what must be sent
NAMED, NAMED_GATE = 4, 2  # arbitrary values that are drawn for each parameter
MOST_REJECTED: Final = 50  # values before hypothesis gives up: by then it has found all that it finds in 500
SPECIAL: Final = ("<|endoftext|>", "<s>", "</s>", "[INST]")  # single tokens to some models: an echo may lack them
# Text that breaks careless code which builds streams, pages, templates or terminal output from it.
LOOK_ALIKES: Final = (
    "[DONE]", "data: [DONE]\n\n", "\n\ndata: {}\n\n", "event: error\ndata: x", ": comment", "\r\n\r\n",
    "\x00", "\ufeff", "</script><script>alert(1)</script>", "{{7*7}}", "${7*7}", "%s%n%d", "<|endoftext|>",
    "<s>", "</s>", "[INST]", "null", '"}]}', "\\u0000", "\x1b[31mred\x1b[0m", "'; DROP TABLE t; --",
    "../../etc/passwd", "\u202eabc\u202c", "NaN", " ",
)  # fmt: skip
SCRIPTS: Final = (
    "\u0600-\u06ff", "\u0590-\u05ff", "\u0900-\u097f", "\u0e00-\u0e7f", "\u4e00-\u4eff", "\u3040-\u30ff",
    "\uac00-\uacff", "\u0400-\u04ff", "\u0370-\u03ff", "\u0300-\u036f", "\U0001f300-\U0001f5ff",
    "\U00010300-\U0001034f", " -~",
)  # fmt: skip
FAMILY: Final = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
JOINED: Final = (FAMILY, "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f1e9\U0001f1ea", "e\u0301")


def _script(span: str) -> SearchStrategy[str]:
    return st.text(st.characters(min_codepoint=ord(span[0]), max_codepoint=ord(span[-1])), min_size=1, max_size=12)


@cache
def free_text() -> SearchStrategy[str]:
    """Text in many scripts, joined emoji, white space, look-alikes of syntax; rarely lone surrogates and long runs."""
    pieces = st.one_of(
        *(_script(span) for span in SCRIPTS),
        st.sampled_from(LOOK_ALIKES),
        st.sampled_from(JOINED),
        st.text(st.sampled_from(" \t\n\u00a0\u3000\u200b"), min_size=1, max_size=4),
        st.text(st.characters(categories=["L", "N", "P", "S", "Z"]), min_size=1, max_size=10),
    )
    joined = st.lists(pieces, min_size=1, max_size=4).map("".join)
    odd = st.sampled_from(("\ud83d", "a\udc00b", "\ud800\ud800", "x" * LONGEST * 2, "\U0001f680" * LONGEST, ""))
    return st.integers(0, 19).flatmap(lambda turn: odd if turn == 19 else joined)


def _ids() -> SearchStrategy[list[int]]:
    inside, outside = st.integers(33, 250), st.sampled_from((VOCABULARY * 2, 2**31, 2**63, -1))
    return st.integers(0, 9).flatmap(
        lambda turn: st.lists(outside if turn == 9 else inside, min_size=1, max_size=6)
    )  # fmt: skip


def draw(context: PlanContext) -> tuple[Body, ...]:
    """The drawn bodies of a plan, each once: valid ones, each before the invalid ones that are made of it.

    In `full` also patches for rows, and each parameter LEAST times.
    """
    spec, own = (SPEC, OWN) if context.full else (SPEC_GATE, OWN_GATE)
    unique: dict[bytes, Body] = {}
    enumerated = coverage_classes(context)
    for body in (*_from_document(context, spec), *_collect(_bodies(context, ()), own, context.seed)):
        _keep(context, unique, body)
    bare = bodies_of_single_rows(context) if context.full else []
    patches = _collect(_patches(context), len(bare), context.seed) if bare else []
    rows = [row for body, patch in zip(bare, patches, strict=False) if (row := with_drawn_values(body, patch)) != body]
    counts = Counter(name for body in (*unique.values(), *rows) for name in body)
    for name in context.contract.parameters if context.full else ():
        turn = 0
        while context.has(name) and counts[name] < LEAST and turn < 6:
            turn += 1
            wanted = LEAST - counts[name] + turn
            for body in _collect(_bodies(context, (name,)), wanted, context.seed + turn):
                counts.update(_keep(context, unique, body).keys())
    least = MINIMUM[context.profile]
    for turn in range(1, 6):
        missing = least.valid - sum(is_sure(context, body) for body in unique.values())
        for body in _collect(_bodies(context, ()), missing * 2, context.seed + 100 * turn) if missing > 0 else ():
            _keep(context, unique, body)
    for library, gave in (("schemathesis enumerated no classes", enumerated), ("hypothesis drew no bodies", unique)):
        if not gave:
            warnings.warn(
                f"{library} of {context.contract.provider}: drawn requests are missing",
                category=RuntimeWarning,
                stacklevel=2,
            )
    bodies = _enriched(context, list(unique.values()), enumerated)
    if not context.full:
        bodies.sort(key=len, reverse=True)  # few are sent, so those with the most members come first
    return (*_with_invalid(context, bodies, enumerated), *patches)


def _enriched(context: PlanContext, bodies: list[Body], enumerated: Sequence[CoverageClass]) -> list[Body]:
    """The bodies, each with one more value that schemathesis calls valid where that leaves it valid and cheap."""
    valid = [listed for listed in enumerated if listed.positive and listed.member and listed.value is not MISSING]
    values = _shuffled(context, valid)
    enriched: dict[bytes, Body] = {}
    for body in bodies:
        chosen = next((valid_class for valid_class in values if _suits(context, body, valid_class)), None)
        if chosen is not None:
            values.remove(chosen)
            body = with_member(body, chosen.member, chosen.value)
        enriched.setdefault(dumps(body).encode(), body)
    return list(enriched.values())


def _suits(context: PlanContext, body: Body, valid_class: CoverageClass) -> bool:
    free = valid_class.member not in {"model", "prompt", *body} and not isinstance(valid_class.value, (list, dict))
    return (
        free
        and valid_class.value == _rounded(valid_class.value)
        and is_sure(context, with_member(body, valid_class.member, valid_class.value))
    )


def _with_invalid(context: PlanContext, bodies: Sequence[Body], enumerated: Sequence[CoverageClass]) -> Iterator[Body]:
    """Each body, and after it those that a wrong value makes of it; parameters and sources of values take turns."""
    hosts = [body for body in bodies if is_sure(context, body)]
    invalid: dict[bytes, list[Body]] = {dumps(body).encode(): [] for body in hosts}
    wanted = wanted_in_all = int(MINIMUM[context.profile].invalid * SPARE)
    turn = 0
    for name, value in _wrong_values(context, enumerated):
        if not wanted:
            break
        turns = (hosts[(turn + step) % len(hosts)] for step in range(min(len(hosts), HOSTS)))
        host = next((host for host in turns if breaks_one_rule(context, host, name, value)), None)
        if host is not None:
            invalid[dumps(host).encode()].append(with_member(host, name, value))
            wanted -= 1
            turn += 1
    # what must be sent comes first: a few of each valid body, so that all of them have some
    for first, last in ((0, OF_EACH), (OF_EACH, wanted_in_all)):
        for body in bodies:
            wrong = invalid.get(dumps(body).encode(), [])[first:last]
            if wrong or not first:
                yield body
                yield from wrong


def _wrong_values(context: PlanContext, enumerated: Sequence[CoverageClass]) -> Iterator[tuple[str, Any]]:
    """Values that break the contract by themselves, a different parameter each time, enumerated and drawn in turn."""
    by_name: dict[str, list[Any]] = {name: [] for name in _shuffled_names(context)}
    for wrong_class in _shuffled(context, [wrong_class for wrong_class in enumerated if not wrong_class.positive]):
        if wrong_class.member in by_name and not (wrong_class.member == "model" and wrong_class.value is MISSING):
            by_name[wrong_class.member].append(wrong_class.value)
    names = [name for name in by_name if context.has(name)]
    values = st.fixed_dictionaries(dict.fromkeys(names, anything()))
    for drawn in _collect(values, 1 + (NAMED if context.full else NAMED_GATE), context.seed)[1:]:  # the first is zeros
        for name, value in drawn.items():
            by_name[name].insert(min(1, len(by_name[name])), value)
    tried: set[str] = set()
    for turn in range(max(map(len, by_name.values()), default=0)):
        for name in names:
            content = f"{name} {dumps(_shown(by_name[name][turn]))}" if turn < len(by_name[name]) else ""
            if content and content not in tried:
                tried.add(content)
                yield name, by_name[name][turn]


@cache
def anything() -> SearchStrategy[Any]:
    """Any JSON value: mostly small ones, lists and objects of them."""
    numbers = st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False))
    text = st.text(st.characters(categories=["L", "N", "P", "S", "Z"]), max_size=12)
    scalars = st.one_of(numbers, text, st.booleans())
    return st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(text, scalars, max_size=2))


def _shuffled(context: PlanContext, classes: Sequence[CoverageClass]) -> list[CoverageClass]:
    """In an order that the seed decides."""
    return sorted(
        classes, key=lambda listed: _order(context, f"{listed.member} {listed.positive} {dumps(_shown(listed.value))}")
    )


def _shuffled_names(context: PlanContext) -> list[str]:
    return sorted(context.contract.parameters, key=lambda name: _order(context, name))


def _order(context: PlanContext, text: str) -> bytes:
    return hashlib.sha256(f"{context.seed} {text}".encode()).digest()


def _shown(value: Any) -> Any:
    return "absent" if value is MISSING else value


def _patches(context: PlanContext) -> SearchStrategy[Body]:
    """Values for rows whose parameters take any value: text that no server may refuse for its content."""

    def carries(text: str) -> bool:
        return bool(text.strip()) and not is_unusual(text) and not any(token in text for token in SPECIAL)

    sure = free_text().filter(carries)
    strategies = {"prompt": sure, "suffix": sure, "user": sure, "seed": st.integers(0, 2**31)}
    return st.fixed_dictionaries({name: strategy for name, strategy in strategies.items() if context.has(name)})


def _keep(context: PlanContext, unique: dict[bytes, Body], body: Body) -> Body:
    """Add a body unless it is there already or breaks the contract; of members that must not be combined one is kept.

    Returns the body that was added, or an empty one.
    """
    for rule in context.contract.combinations:
        if rule.validity is Validity.INVALID and context.clashes(body):
            body = {name: value for name, value in body.items() if name not in rule.given}
    body = {name: _rounded(value) for name, value in body.items()}
    content = dumps(body).encode()
    if content in unique or context.validity(content, body) is Validity.INVALID:
        return {}
    unique[content] = body
    return body


def _rounded(value: Any) -> Any:
    """A number to digits that servers with short floating-point numbers tell apart from the ends of a range."""
    return round(value, 4) + 0.0 if isinstance(value, float) else value


def _collect(strategy: SearchStrategy[Body], count: int, start: int) -> list[Body]:
    bodies: list[Body] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        derandomize=False,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def take(body: Body) -> None:
        bodies.append(body)

    with _isolated_hypothesis():
        take()
    return bodies


@contextmanager
def _isolated_hypothesis() -> Iterator[None]:
    """Draw the same everywhere, leave no files, and do not search long for values that do not exist.

    hypothesis mixes in constants from the source of whatever modules of the user's are loaded, so that one seed would
    give other bodies in another folder; it keeps its tables of characters in the working directory; and it rejects
    hundreds of values before it gives up, for which schemathesis waits where no value has the class that it is after.
    """
    rejected = engine.INVALID_THRESHOLD_BASE
    engine.INVALID_THRESHOLD_BASE = MOST_REJECTED
    home = configuration.storage_directory(intent_to_write=False).home_directory
    mined = providers._get_local_constants
    providers.CONSTANTS_CACHE.cache.clear()
    providers._get_local_constants = Constants
    configuration.set_hypothesis_home_dir(_cache())
    try:
        yield
    finally:
        engine.INVALID_THRESHOLD_BASE = rejected
        configuration.set_hypothesis_home_dir(home)
        providers._get_local_constants = mined
        providers.CONSTANTS_CACHE.cache.clear()


def _cache() -> Path:
    """Where hypothesis may keep its tables from one run to the next; it does without where that cannot be written."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        home = Path(tempfile.gettempdir())
    return home / "completions-conformance" / "hypothesis"


def _bodies(context: PlanContext, owed: Sequence[str]) -> SearchStrategy[Body]:
    """Bodies with a few parameters each: any text where any text does, factor levels and ranges elsewhere."""
    members = {factor.name: _members(context, factor) for factor in factors(context)}
    prompt = members.pop("prompt", st.just({"prompt": context.bare["prompt"]}))
    if members.pop("max_tokens", None) is not None:
        prompt = st.tuples(prompt, st.integers(1, 4)).map(lambda pair: {**pair[0], "max_tokens": pair[1]})
    owed = ["channel" if name in {"stream", "stream_options"} else name for name in owed]

    @st.composite
    def drawn_body(choose: st.DrawFn) -> Body:
        body: Body = {**context.bare, **choose(prompt)}
        chosen = choose(st.lists(st.sampled_from(sorted(members)), max_size=4, unique=True)) if members else []
        for name in dict.fromkeys((*chosen, *(name for name in owed if name in members))):
            body.update(choose(members[name]))
        return body

    return drawn_body()


def _members(context: PlanContext, factor: Factor) -> SearchStrategy[Body]:
    """The members that a factor adds to a body."""
    text = free_text()
    match factor.name:
        case "channel":
            patches = [
                {key: value for key, value in level.patch.items() if value is not MISSING} for level in factor.levels
            ]
            return st.sampled_from(patches[1:])
        case "prompt":
            forms = [text, st.lists(text, min_size=1, max_size=2), _ids(), st.lists(_ids(), min_size=1, max_size=2)]
            strategy: SearchStrategy[Any] = st.one_of(*forms)
        case "stop":
            stop = text.filter(lambda value: 0 < len(value) <= LONGEST)
            strategy = st.one_of(stop, st.lists(stop, min_size=1, max_size=4, unique=True))
        case "user" | "suffix":
            strategy = text
        case "seed":
            strategy = st.integers(0, 2**31)
        case "logit_bias":
            strategy = st.dictionaries(st.integers(33, 250).map(str), st.integers(-5, 5), max_size=3)
        case _:
            strategy = _from_levels(context, factor)
    return strategy.map(lambda value: {factor.name: value})


def _from_levels(context: PlanContext, factor: Factor) -> SearchStrategy[Any]:
    values = [level.value for level in factor.levels if level.value is not MISSING]
    limit = context.contract.limit(factor.name)
    types = context.contract.parameters[factor.name].types
    if "number" in types and limit is not None and limit.low is not None and limit.high is not None:
        low, width = limit.low, limit.high - limit.low
        inside = st.integers(1, 999).map(lambda share: round(low + width * share / 1000, 4))
        return st.one_of(st.sampled_from(values), inside) if values else inside
    return st.sampled_from(values)


@dataclass(frozen=True, slots=True)
class CoverageClass:
    """A class of values that schemathesis' coverage phase enumerates, in its words.

    `member` is empty where the class is one of the request as a whole; `value` is MISSING where the member, or the
    body, is left out.
    """

    scenario: str
    positive: bool
    member: str
    value: Any
    method: str = "POST"


def coverage_classes(context: PlanContext) -> tuple[CoverageClass, ...]:
    """What the coverage phase of schemathesis sends, as changes of the request that it begins with."""
    return _covered(dumps(_whole(context)))


@lru_cache(maxsize=16)
def _covered(request_schema: str) -> tuple[CoverageClass, ...]:
    from schemathesis import GenerationMode
    from schemathesis.config import GenerationConfig

    schema, operation = _operation(json.loads(request_schema))
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    with _isolated_hypothesis():
        cases = list(
            schema.iter_coverage_cases(operation, generation_modes=modes, generation_config=GenerationConfig())
        )
    template = next((case.body for case in cases if isinstance(case.body, dict)), {})
    return tuple(_coverage_class(case, template) for case in cases)


def _coverage_class(case: Any, template: Body) -> CoverageClass:
    scenario, mode = str(case.meta.phase.data.scenario.value), case.meta.generation.mode.value
    positive = mode == "positive"
    if not isinstance(case.body, dict):
        value = case.body if isinstance(case.body, (str, int, float, list, bool, type(None))) else MISSING
        return CoverageClass(scenario, positive, "", value, case.method)
    changed = changes(template, case.body)
    if len(changed) != 1:
        return CoverageClass(scenario, positive, "", case.body, case.method)
    return CoverageClass(scenario, positive, changed[0], case.body.get(changed[0], MISSING), case.method)


def _from_document(context: PlanContext, count: int) -> Iterable[Body]:
    """Bodies that schemathesis draws from the projected document: the model fixed, nothing undocumented, few tokens."""
    from schemathesis import GenerationMode

    _, operation = _operation(_projected(context))
    drawn: SearchStrategy[Any] = operation.as_strategy(generation_mode=GenerationMode.POSITIVE).map(
        lambda case: case.body
    )
    return [body for body in _collect(drawn, count, context.seed) if isinstance(body, dict)]


def _operation(schema: Mapping[str, Any]) -> tuple[Any, Any]:
    """A document with one operation that takes bodies of this schema, and the operation."""
    from schemathesis import openapi

    document = {
        "openapi": "3.1.0",
        "info": {"title": "projected", "version": "1"},
        "paths": {
            "/": {
                "post": {
                    "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                    "responses": {"200": {"description": "A completion."}},
                }
            }
        },
    }
    loaded = openapi.from_dict(document)
    return loaded, loaded["/"]["POST"]


def _whole(context: PlanContext) -> dict[str, Any]:
    """The request schema with ranges from the limits, for classes: what they cost is decided where they are sent."""
    return _object(context, {"model": {"const": context.model}})


def _projected(context: PlanContext) -> dict[str, Any]:
    """The request schema with ranges from the limits, and with small numbers where a number costs tokens."""
    small: dict[str, Any] = {
        "model": {"const": context.model},
        "prompt": {"type": "string", "minLength": 1, "maxLength": 40},
        "max_tokens": {"enum": [1, 2, 3]},
        "n": {"enum": [1, 2]},
        "best_of": {"enum": [3]},
        "logit_bias": {"type": "object", "maxProperties": 2, "propertyNames": {"enum": ["100", "200"]},
                       "additionalProperties": {"enum": [-1, 1]}},
        "stop": {"anyOf": [_SHORT, {"type": "array", "items": _SHORT, "minItems": 1, "maxItems": 4}]},
    }  # fmt: skip
    for name, parameter in context.contract.parameters.items():
        if parameter.types & {"object", "array"} and name not in small:
            # what documents leave to prose, such as names of models, addresses of images and JSON Schemas
            levels = [level.value for level in sample_levels(context.contract, name)]
            small[name] = {"enum": [value for value in levels if value is not MISSING] or [None]}
    return _object(context, small)


def _object(context: PlanContext, replaced: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of the documented members, some of them with another schema; nothing else is allowed."""
    members = {
        name: replaced.get(name) or _ranged(dict(parameter.schema), context.contract.limit(name))
        for name, parameter in context.contract.parameters.items()
        if context.has(name)
    }
    required = [name for name in ("model", "prompt", "max_tokens") if name in members]
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}


_SHORT: Final = {"type": "string", "minLength": 1, "maxLength": 8}


def _ranged(schema: dict[str, Any], limit: Limit | None) -> dict[str, Any]:
    if limit is None or "anyOf" in schema or "oneOf" in schema:
        return {"allOf": [schema, _range(limit)]} if limit is not None else schema
    return {**{key: value for key, value in schema.items() if not key.startswith("exclusive")}, **_range(limit)}


def _range(limit: Limit) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if limit.low is not None:
        bounds["minimum" if limit.low_edge is Edge.CLOSED else "exclusiveMinimum"] = limit.low
    if limit.high is not None:
        bounds["maximum" if limit.high_edge is Edge.CLOSED else "exclusiveMaximum"] = limit.high
    return bounds


__all__ = ["LEAST", "CoverageClass", "coverage_classes", "draw", "free_text"]
