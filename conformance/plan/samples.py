"""Drawn bodies: free text and free combinations, by schemathesis from the projected document and by own strategies.

The only place for schemathesis and hypothesis. Everything is drawn before anything is sent, from one seed, and
stored with the plan, because another version of hypothesis may draw other values from the same seed.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, configuration, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.strategies import SearchStrategy

from conformance.model import Edge, Limit, Validity
from conformance.model.json_text import MISSING, dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PlanContext
from conformance.plan.factors import Factor, factors
from conformance.plan.row_requests import bodies_of_single_rows, with_drawn_values

Body = dict[str, Any]
LEAST: Final = 10  # bodies of `full` that have each documented parameter
BODIES: Final = 100  # drawn bodies of `full`, at least
SPEC, OWN, SPEC_GATE, OWN_GATE = 40, 20, 2, 4
SPECIAL: Final = ("<|endoftext|>", "<s>", "</s>", "[INST]")  # single tokens to some models: an echo may lack them
SURROGATE: Final = re.compile(r"\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE)
SURROGATE_PAIR: Final = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}", re.IGNORECASE)
LONGEST: Final = 600
VOCABULARY: Final = 32_000  # ids beyond this may not exist
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
    """The drawn bodies of a plan, each once; in `full` also patches for rows, and each parameter LEAST times."""
    spec, own = (SPEC, OWN) if context.full else (SPEC_GATE, OWN_GATE)
    found: dict[bytes, Body] = {}
    for body in (*_from_document(context, spec), *_collect(_bodies(context, ()), own, context.seed)):
        _keep(context, found, body)
    bare = bodies_of_single_rows(context) if context.full else []
    patches = _collect(_patches(context), len(bare), context.seed) if bare else []
    rows = [row for body, patch in zip(bare, patches, strict=False) if (row := with_drawn_values(body, patch)) != body]
    counts = Counter(name for body in (*found.values(), *rows) for name in body)
    for name in context.contract.parameters if context.full else ():
        turn = 0
        while context.has(name) and counts[name] < LEAST and turn < 6:
            turn += 1
            wanted = LEAST - counts[name] + turn
            for body in _collect(_bodies(context, (name,)), wanted, context.seed + turn):
                counts.update(_keep(context, found, body).keys())
    missing = BODIES - len(rows) if context.full else 0
    for body in _collect(_bodies(context, ()), missing * 2, context.seed + BODIES) if missing > len(found) else ():
        if len(found) < missing:
            _keep(context, found, body)
    return (*found.values(), *patches)


def _patches(context: PlanContext) -> SearchStrategy[Body]:
    """Values for rows whose parameters take any value: text that no server may refuse for its content."""

    def is_sure(text: str) -> bool:
        return bool(text.strip()) and not _is_unusual(text) and not any(token in text for token in SPECIAL)

    sure = free_text().filter(is_sure)
    strategies = {"prompt": sure, "suffix": sure, "user": sure, "seed": st.integers(0, 2**31)}
    return st.fixed_dictionaries({name: one for name, one in strategies.items() if context.has(name)})


def _keep(context: PlanContext, found: dict[bytes, Body], body: Body) -> Body:
    """Add a body unless it is there already or breaks the contract; of members that must not be combined one is kept.

    Returns the body that was added, or an empty one.
    """
    for rule in context.contract.combinations:
        if rule.validity is Validity.INVALID and context.clashes(body):
            body = {name: value for name, value in body.items() if name not in rule.given}
    content = dumps(body).encode()
    if content in found or context.validity(content, body) is Validity.INVALID:
        return {}
    found[content] = body
    return body


def _collect(strategy: SearchStrategy[Body], count: int, start: int) -> list[Body]:
    found: list[Body] = []

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
        found.append(body)

    with _isolated_hypothesis():
        take()
    return found


@contextmanager
def _isolated_hypothesis() -> Iterator[None]:
    """Draw the same everywhere, and leave no files.

    hypothesis mixes in constants from the source of whatever modules of the user's are loaded, so that one seed would
    give other bodies in another folder; and it keeps its tables of characters in the working directory.
    """
    home = configuration.storage_directory(intent_to_write=False).home_directory
    mined = providers._get_local_constants
    providers.CONSTANTS_CACHE.cache.clear()
    providers._get_local_constants = Constants
    configuration.set_hypothesis_home_dir(_cache())
    try:
        yield
    finally:
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
    members = {one.name: _members(context, one) for one in factors(context)}
    prompt = members.pop("prompt", st.just({"prompt": context.bare["prompt"]}))
    if members.pop("max_tokens", None) is not None:
        prompt = st.tuples(prompt, st.integers(1, 4)).map(lambda both: {**both[0], "max_tokens": both[1]})
    owed = ["channel" if name in {"stream", "stream_options"} else name for name in owed]

    @st.composite
    def drawn_body(choose: st.DrawFn) -> Body:
        body: Body = {**context.bare, **choose(prompt)}
        some = choose(st.lists(st.sampled_from(sorted(members)), max_size=4, unique=True)) if members else []
        for name in dict.fromkeys((*some, *(one for one in owed if one in members))):
            body.update(choose(members[name]))
        return body

    return drawn_body()


def _members(context: PlanContext, one: Factor) -> SearchStrategy[Body]:
    """The members that a factor adds to a body."""
    text = free_text()
    match one.name:
        case "channel":
            patches = [
                {key: value for key, value in level.patch.items() if value is not MISSING} for level in one.levels
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
            strategy = _from_levels(context, one)
    return strategy.map(lambda value: {one.name: value})


def _from_levels(context: PlanContext, one: Factor) -> SearchStrategy[Any]:
    values = [level.value for level in one.levels if level.value is not MISSING]
    limit = context.contract.limit(one.name)
    types = context.contract.parameters[one.name].types
    if "number" in types and limit is not None and limit.low is not None and limit.high is not None:
        low, width = limit.low, limit.high - limit.low
        inside = st.integers(1, 999).map(lambda share: round(low + width * share / 1000, 4))
        return st.one_of(st.sampled_from(values), inside) if values else inside
    return st.sampled_from(values)


def _from_document(context: PlanContext, count: int) -> Iterable[Body]:
    """Bodies that schemathesis draws from the projected document: the model fixed, nothing undocumented, few tokens."""
    from schemathesis import GenerationMode, openapi

    document = {
        "openapi": "3.1.0",
        "info": {"title": "projected", "version": "1"},
        "paths": {
            "/": {
                "post": {
                    "requestBody": {"required": True, "content": {"application/json": {"schema": _projected(context)}}},
                    "responses": {"200": {"description": "A completion."}},
                }
            }
        },
    }
    operation = openapi.from_dict(document)["/"]["POST"]
    drawn: SearchStrategy[Any] = operation.as_strategy(generation_mode=GenerationMode.POSITIVE).map(
        lambda case: case.body
    )
    return [body for body in _collect(drawn, count, context.seed) if isinstance(body, dict)]


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
    members: dict[str, Any] = {}
    for name, parameter in context.contract.parameters.items():
        if context.has(name):
            given = context.contract.examples.get(name)
            free = {"enum": list(given)} if given and "object" in parameter.types else dict(parameter.schema)
            members[name] = small.get(name, _ranged(free, context.contract.limit(name)))
    required = [name for name in ("model", "prompt", "max_tokens") if name in members]
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}


_SHORT: Final = {"type": "string", "minLength": 1, "maxLength": 8}


def _ranged(schema: dict[str, Any], limit: Limit | None) -> dict[str, Any]:
    if limit is None or "anyOf" in schema or "oneOf" in schema:
        return {"allOf": [schema, _range(limit)]} if limit is not None else schema
    return {**{key: value for key, value in schema.items() if not key.startswith("exclusive")}, **_range(limit)}


def _range(limit: Limit) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if limit.low is not None:
        found["minimum" if limit.low_edge is Edge.CLOSED else "exclusiveMinimum"] = limit.low
    if limit.high is not None:
        found["maximum" if limit.high_edge is Edge.CLOSED else "exclusiveMaximum"] = limit.high
    return found


def drawn_requests(context: PlanContext, drawn: Iterable[Mapping[str, Any]]) -> Iterator[CaseGroup]:
    """The drawn bodies as cases. Text that a server may refuse for its content makes a request UNSPECIFIED."""
    for body in (one for one in drawn if "model" in one):
        if not context.without & body.keys() and not context.barred(body):
            content = dumps(body).encode()
            validity = context.validity(content, body)
            if validity is Validity.VALID and _doubtful(body):
                validity = Validity.UNSPECIFIED
            yield CaseGroup("rows", Rank.NORMAL, (context.case("sample", body, validity=validity),))


def _doubtful(body: Mapping[str, Any]) -> bool:
    prompt = body.get("prompt")
    listed = prompt if isinstance(prompt, list) else [prompt]
    flat = [one for item in listed for one in (item if isinstance(item, list) else [item])]
    odd = any(
        (isinstance(one, int) and not 0 <= one < VOCABULARY) or (isinstance(one, str) and not 0 < len(one) <= LONGEST)
        for one in flat
    )
    return odd or _is_unusual(body)


def _is_unusual(value: Any) -> bool:
    """Whether a text contains NUL or a lone surrogate, which not every server accepts, or is very long."""
    text = dumps(value)
    long = isinstance(value, str) and len(value) > LONGEST
    return long or bool(SURROGATE.search(SURROGATE_PAIR.sub("", text))) or "\\u0000" in text


__all__ = ["LEAST", "draw", "drawn_requests", "free_text"]
