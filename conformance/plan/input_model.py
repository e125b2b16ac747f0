"""The input model: every class of value that a documented input can take, valid and invalid, derived from the contract.

A class is a kind of value that servers are likely to treat alike: a number in quotes, text with combining marks, a list
one item too long. Classes follow from the JSON Schema, the limits and the examples of each input; whether one is valid
is computed from a request that has it, never assumed. `full` sends every class, so a server that gets a whole kind of
input wrong is caught whatever the parameter is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.contract.derived_rows import fields
from conformance.contract.openapi import branches
from conformance.model import Contract, Limit, Validity, json_types
from conformance.model.json_text import MISSING, dumps
from conformance.plan.context import BIAS_TOKENS
from conformance.plan.parameter_values import inside

Labelled = tuple[str, Any]


@dataclass(frozen=True)
class InputClass:
    """A kind of value of one input. `path` is `temperature`, `stop[]` or `logit_bias.*`; `value` is the whole member.

    `look_alike`: the value of another JSON type that a lenient parser converts, such as `"5"` for 5. `spelled`: the
    JSON text of the member, where it is not the one that an encoder writes. `any_value`: another value of the same JSON
    type is of the same class.
    """

    path: str
    name: str
    value: Any
    look_alike: bool = False
    spelled: str = ""
    any_value: bool = False

    @property
    def patch(self) -> dict[str, Any]:
        """The members of a request body that have this class."""
        return {top(self.path): self.value}

    @property
    def key(self) -> str:
        """What a request has that exercises the class; see `input_classes.keys`."""
        if self.value is MISSING:
            return f"{self.path} absent"
        if self.any_value:
            return f"{self.path} is {self.name}"
        return f"{top(self.path)}={self.spelled or dumps(self.value)}"


@dataclass(frozen=True)
class TextClass(InputClass):
    """A kind of text, which any string at its path may contain beside others."""

    @property
    def key(self) -> str:
        return f"{self.path} has {self.name}"


# Text that a server must carry through unchanged. Each is a class of its own: code that is right for one may be wrong
# for another.
SPECIAL_NAMES: Final = "names of special tokens"
TEXTS: Final[Mapping[str, str]] = {
    "ASCII": "plain words",
    "characters of two bytes": "Grüße",
    "characters of three bytes": "東京",
    "characters of four bytes": "\N{ROCKET}\N{EVERGREEN TREE}",
    "composed accents (NFC)": "caf\u00e9",
    "combining accents (NFD)": "cafe\u0301",
    "joined emoji": "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}",
    "right-to-left text": "\u05e9\u05dc\u05d5\u05dd",
    "bidirectional controls": "a\u200eb\u202ec\u202cd\u2066e\u2069f",
    "tab": "a\tb",
    "line feed": "a\nb",
    "carriage return": "a\rb",
    "CR LF": "a\r\nb",
    "line separator U+2028": "a\u2028b",
    "byte order mark": "a\ufeffb",
    "byte order mark first": "\ufeffa",
    "HTML special characters": '<b>&amp; "q"</b>',
    "JSON special characters": '{"a": "\\\\"}',
    "SQL special characters": "'; -- %",
    "regular expression": "[a-z]+(.*)\\d$",
    "event stream field": "data: [DONE]",
    "backslashes": "a\\nb",
    "surrounding white space": "  a  ",
    "URL escapes": "a%20b+c",
    "compatibility characters": "\ufb01 \u2460 \uff21",
    "non-breaking and zero-width space": "a\u00a0b\u200bc",
    "NUL": "a\0b",
    "control characters": "a\x01b\x1b[0mc\x7fd",
    SPECIAL_NAMES: "a<|endoftext|>b</s>c",
}
LONG_TEXT: Final = "One, two, three, four, five, six, seven, eight, nine, ten. " * 20
MANY_ITEMS: Final = 17
KEYS: Final[Mapping[str, str]] = {
    "a word": "one",
    "a fraction": "1.5",
    "a negative number": "-1",
    "a number in spaces": " 100 ",
    "empty": "",
}
"""Keys of a map by token ids that are none."""
EVERY_TEXT: Final[Mapping[str, str]] = {**TEXTS, "long text": LONG_TEXT}
CONTROLS: Final = frozenset(map(chr, (*range(32), 127))) - set("\t\n\r")
PLAIN_TEXTS: Final = tuple(text for name, text in TEXTS.items() if CONTROLS.isdisjoint(text) and name != SPECIAL_NAMES)
DELICATE_TEXTS: Final = tuple(text for text in TEXTS.values() if text not in PLAIN_TEXTS)
"""Texts that a server may refuse as a whole are kept apart from the others."""
# Numbers that a parser may wrap, round or overflow; each is outside of every documented range.
EXTREMES: Final[tuple[tuple[str, float], ...]] = (
    ("2^63", 2**63),
    ("-2^63 - 1", -(2**63) - 1),
    ("1e308", 1e308),
    ("-1e308", -1e308),
    ("2^31", 2**31),
    ("-2^31 - 1", -(2**31) - 1),
    ("10^30", 10**30),
    ("-10^30", -(10**30)),
)

WORDS: Final = frozenset({"true", "false", "yes", "off", "null", "none"})  # that a lenient parser takes for others
WRONG_NAMES: Final[Mapping[str, str]] = {
    "string": "a word",
    "integer": "a number",
    "boolean": "a boolean",
    "array": "a list in a list",
    "object": "an object",
}
WRONG_TYPES: Final[Mapping[str, Any]] = {
    "string": "many",
    "integer": 1,
    "boolean": True,
    "array": [[True]],
    "object": {"value": 1},
}
# Where a wrong value stands in its list or map: in words, and how many valid values stand before and behind it.
# A server that checks one element only is caught wherever that element is.
POSITIONS: Final[tuple[tuple[str, int, int], ...]] = (
    (", last of two", 1, 0),
    ("", 0, 0),
    (", last of three", 2, 0),
    (", first of two", 0, 1),
)
LONGEST_SHOWN: Final = 60  # characters of a value in the name of a class
TEXT_INPUTS: Final = frozenset({"prompt", "stop", "suffix", "user"})
"""Members that may be any text; what others mean is not for the schema to say, such as a grammar or an image."""
DEEP: Final = 2  # members inside of members: few servers look at them, and those that do use one validator for all
MOST_DEEP: Final = 2  # classes of each kind
NUMERIC: Final = frozenset({"integer", "number"})


def nodes(contract: Contract) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every documented input of the body with its schema: members, and what is inside them."""
    for name, parameter in contract.parameters.items():
        yield name, parameter.schema
        for branch in branches(parameter.schema):
            yield from ((field.path, field.schema) for field in fields(branch, name) if field.path != name)


def member(contract: Contract, path: str, value: Any) -> Any:
    """The top-level member's value in which `value` stands at a path, beside what an example has there."""
    name = top(path)
    steps = [step.replace("*", BIAS_TOKENS[0]) for step in path[len(name) :].replace("[]", ".[]").split(".")[1:]]
    examples = [example for example in contract.examples.get(name, ()) if isinstance(example, Mapping)]
    fitting = [example for depth in (steps, steps[:-1]) for example in examples if _holds(example, depth)]
    return _placed(fitting[0] if fitting else {}, steps, value)


def _holds(value: Any, steps: Sequence[str]) -> bool:
    return not steps or (isinstance(value, Mapping) and steps[0] in value and _holds(value[steps[0]], steps[1:]))


def _placed(value: Any, steps: Sequence[str], inner: Any) -> Any:
    if not steps:
        return inner
    if steps[0] == "[]":
        return [_placed({}, steps[1:], inner)]
    members = value if isinstance(value, Mapping) else {}
    return {**members, steps[0]: _placed(members.get(steps[0], {}), steps[1:], inner)}


def invalid_classes(contract: Contract, path: str, schema: Mapping[str, Any]) -> Iterator[InputClass]:
    """The classes that break the type of an input: every look-alike of a valid value, and every other JSON type."""
    deep = path.count(".") >= DEEP
    alike = dict([*_look_alikes(schema, contract.limit(path))][: MOST_DEEP if deep else None])
    for name, position, whole in _in_turn(contract, path, schema, alike.items()):
        yield InputClass(path, f"{name}{position}", whole, look_alike=True)
    seen = {dumps(value) for value in alike.values()}
    wrong = [labelled for labelled in _wrong_types(schema, nested=path != top(path)) if dumps(labelled[1]) not in seen]
    for name, position, whole in _in_turn(contract, path, schema, wrong[-MOST_DEEP:] if deep else wrong):
        any_value = path == top(path) and name in WRONG_NAMES.values()
        yield InputClass(path, f"{name}{position}", whole, any_value=any_value)


def _in_turn(
    contract: Contract, path: str, schema: Mapping[str, Any], labelled: Iterable[Labelled]
) -> Iterator[tuple[str, str, Any]]:
    """Each wrong value with its position and the whole member: those of a list or map take turns over the positions."""
    neighbours = _beside(contract, path, schema)
    for index, (name, value) in enumerate(labelled):
        position, before, behind = POSITIONS[index % len(POSITIONS)]
        if not neighbours:
            yield name, "", member(contract, path, value)
        elif path.endswith("[]"):
            yield name, position, [*neighbours[:before], value, *neighbours[:behind]]
        else:
            yield name, position, entries([*neighbours[:before], value, *neighbours[:behind]])


def entries(values: Iterable[Any]) -> dict[str, Any]:
    """A map with these values, by ids of tokens."""
    return dict(zip((BIAS_TOKENS[1], BIAS_TOKENS[0], "90"), values, strict=False))


def _beside(contract: Contract, path: str, schema: Mapping[str, Any]) -> list[Any]:
    """Valid values that may stand beside a wrong one in a list of texts, or in a map; none where they are not known."""
    name, types = top(path), json_types(schema) - {"null"}
    if path not in {f"{name}[]", f"{name}.*"} or "enum" in schema:
        return []
    if types == {"string"} and (name in TEXT_INPUTS or path.endswith(".*")):
        return ["a", "b"]
    number = inside(contract.limit(path), (1, 2, 0.5, 0))
    return [number, number] if types and types <= NUMERIC and path.endswith(".*") and number is not None else []


def wrong_type(value: Any) -> str:
    """The class of a value of a type that a member does not allow, unless a lenient parser may convert it."""
    match value:
        case bool():
            return WRONG_NAMES["boolean"]
        case str():
            return WRONG_NAMES["string"] if re.search("[a-z]{3}", value.lower()) and value not in WORDS else ""
        case int() | float():
            return WRONG_NAMES["integer"]
        case [_, _, *_] | [[*_]]:
            return WRONG_NAMES["array"]
        case dict():
            return WRONG_NAMES["object"]
    return ""


def _wrong_types(schema: Mapping[str, Any], *, nested: bool) -> Iterator[Labelled]:
    types = json_types(schema)
    for name, value in WRONG_TYPES.items():
        # a list of one is among the look-alikes of numbers and strings
        listed = name == "array" and types & {*NUMERIC, "string"}
        if name not in types and not listed and not (types & NUMERIC and name in NUMERIC):
            yield WRONG_NAMES[name], value
    if nested and "null" not in types:  # the null of a whole member has a row of its own
        yield "null", None
    lists = [branch["items"] for branch in branches(schema) if "items" in branch]
    if lists:
        yield from (("a list of objects", [{"value": 1}]), ("a list of nulls", [None]), ("a list of booleans", [True]))
    for items in lists:
        inner = json_types(items)
        if inner == {"string"} and len(lists) == 1:  # lists that mix the kinds of a union break another rule
            yield from (
                ("a list with a number first", [1, "a", "b"]),
                ("a list with a number in the middle", ["a", 1, "b"]),
                ("a list with a number last", ["a", "b", 1]),
                ("a list with null last", ["a", None]),
            )
        elif inner & NUMERIC:
            yield from (
                ("a list of fractions", [72.5]),
                ("a list with a fraction last", [72, 45, 90.5]),
                ("a list with a boolean last", [72, 45, True]),
                ("a list with null in the middle", [72, None, 90]),
            )
        elif inner == {"array"}:
            yield from (
                ("a list of lists of words", [["72"]]),
                ("a list of lists, the last of words", [[72, 45], ["72"]]),
                ("a list of lists with a boolean last", [[72], [45, True]]),
                ("a list of lists, the first of fractions", [[72.5], [45]]),
                ("a list of lists with a fraction last", [[72, 45], [90, 50.5]]),
                ("a list of lists and an id", [[72, 45], 90]),
            )


def _look_alikes(schema: Mapping[str, Any], limit: Limit | None) -> Iterator[Labelled]:
    """Values of another type that lenient parsers convert into a valid one."""
    types = json_types(schema) - {"null"}
    if types & NUMERIC:
        number = inside(limit, (1, 2, 0.5, 0, 3, 10))
        number = 1 if number is None else number
        whole = int(number) if number == int(number) else number
        yield "a number in quotes", dumps(whole)
        yield "a number in quotes with spaces", f" {dumps(whole)} "
        yield "a number in a list", [whole]
        yield "an empty string for a number", ""
        if "boolean" not in types:
            yield "true for a number", True
        if "number" not in types:
            yield "a fraction for an integer", whole + 0.5
    if types == {"boolean"}:
        yield from (("true in quotes", "true"), ("false in quotes", "false"), ("yes for true", "yes"))
        yield from (("1 for true", 1), ("0 for false", 0), ("1 in quotes", "1"), ("an empty string for false", ""))
    if types == {"object"}:
        yield from (
            ("a list for a map", []),
            ("a list of pairs for a map", [[BIAS_TOKENS[0], 1]]),
            ("a map in quotes", "{}"),
        )
    if types == {"string"}:
        yield from (("a number for a string", 1), ("true for a string", True), ("a string in a list", ["a"]))
    if types == {"array"}:
        yield from (("an item for a list", "a"), ("a map for a list", {"0": "a"}), ("a list in quotes", '["a"]'))


def near_misses(values: Iterable[Any]) -> Iterator[Labelled]:
    """Words that are almost one of an enumeration, each for another of its members."""
    words = [value for value in values if isinstance(value, str) and value]
    ways: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("another letter case", str.upper),
        ("a capital", str.capitalize),
        ("cut short", lambda word: word[:-1]),
        ("prolonged", lambda word: f"{word}s"),
        ("white space before", lambda word: f" {word}"),
        ("white space behind", lambda word: f"{word}\n"),
        ("another separator", lambda word: word.replace("_", "-") if "_" in word else word.replace("-", "_")),
    )
    for index, (label, change) in enumerate(ways):
        turned = words[index % len(words) :] + words[: index % len(words)] if words else []
        near = next((change(word) for word in turned if change(word) not in words), None)
        if near:
            yield label, near
    yield "an unknown word", "no-such-value"
    yield "an empty word", ""


def inputs(contract: Contract) -> dict[str, Mapping[str, Any]]:
    """The inputs of the body by path, the first schema of each."""
    by_path: dict[str, Mapping[str, Any]] = {}
    for path, schema in nodes(contract):
        by_path.setdefault(path, schema)
    return by_path


def valid_classes(contract: Contract, name: str) -> Iterator[InputClass]:
    """The kinds of values that the schema of a parameter allows; whether a request with one is valid is not said."""
    parameter = contract.parameters[name]
    if not parameter.required:
        yield InputClass(name, "absent", MISSING)
    if parameter.nullable:
        yield InputClass(name, "null", None)
    if parameter.default is not MISSING:
        yield InputClass(name, "its default, named", parameter.default)
    for value in contract.examples.get(name, ()):
        yield InputClass(name, f"the example {brief(value)}", value)
    for branch in branches(parameter.schema):
        yield from _of_branch(contract, name, branch)


def _of_branch(contract: Contract, name: str, branch: Mapping[str, Any]) -> Iterator[InputClass]:
    limit, types = contract.limit(name), json_types(branch)
    for value in branch.get("enum", ()):
        yield InputClass(name, f"the value {brief(value)}", value)
    if "boolean" in types:
        yield from (InputClass(name, dumps(value), value) for value in (True, False))
    if types & NUMERIC:
        yield from (InputClass(name, label, value) for label, value in _numbers(limit, whole="number" not in types))
        yield from _spellings(name, limit, whole="number" not in types)
    if types - {"null"} == {"string"} and name in TEXT_INPUTS:
        for label, text in (("text of every kind", PLAIN_TEXTS), ("delicate text", DELICATE_TEXTS)):
            yield InputClass(name, label, " ".join(text))
        yield from (InputClass(name, "long text", LONG_TEXT), InputClass(name, "an empty text", ""))
    if "array" in types:
        yield InputClass(f"{name}[]", "an empty list", [])
        yield from _lists(name, branch, contract.limit(f"{name}[]"))
    if "object" in types:
        yield from _maps(name, branch, contract.limit(f"{name}.*"))


def text_classes(contract: Contract) -> Iterator[TextClass]:
    """The kinds of text of each string that may be any text: a member, an item of a list, a value of a map."""
    for path, schema in inputs(contract).items():
        free = json_types(schema) - {"null"} == {"string"} and not {"enum", "const"} & schema.keys()
        whole = path == top(path) and any(json_types(branch) == {"string"} for branch in branches(schema))
        if (free or whole) and path != "model" and top(path) in TEXT_INPUTS | _maps_of_text(contract):
            yield from (TextClass(path, name, text) for name, text in EVERY_TEXT.items())


def _maps_of_text(contract: Contract) -> set[str]:
    paths = {path for path, schema in nodes(contract) if path.endswith(".*") and json_types(schema) == {"string"}}
    return {top(path) for path in paths}


def _numbers(limit: Limit | None, *, whole: bool) -> Iterator[Labelled]:
    step = 1 if whole else 0.01
    low, high = (limit.low, limit.high) if limit is not None else (None, None)
    for label, bound, sign in (("lowest", low, 1), ("highest", high, -1)):
        if bound is not None:
            value = int(bound) if whole else bound
            yield f"the {label} value", value
            yield f"a step inside of the {label} value", round(value + sign * step, 6)
    yield from (("zero", 0), ("a negative number", -1))
    if whole:
        yield from (("2^31", 2**31), ("2^53", 2**53), ("2^53 + 1", 2**53 + 1), ("30 digits", 10**29 + 7))
    else:
        yield from (("a fraction", 0.5), ("a fraction of many digits", 0.123456789012345), ("a tiny number", 1e-9))


def _spellings(name: str, limit: Limit | None, *, whole: bool) -> Iterator[InputClass]:
    """A number that a parser sees to be the same, written in another way."""
    number = inside(limit, (1, 2, 0, 3))
    if number is not None and number == int(number):
        whole_number = int(number)
        yield InputClass(name, "a whole number with a point", float(whole_number))
        yield InputClass(name, "a number with an exponent", float(whole_number), spelled=f"{whole_number}e0")
        yield InputClass(name, "a number with a large exponent", float(whole_number), spelled=f"{whole_number}00E-2")
    if limit is None or limit.classify(0) is not Validity.INVALID:
        yield InputClass(name, "minus zero", 0 if whole else -0.0, spelled="-0")


def _lists(name: str, schema: Mapping[str, Any], limit: Limit | None) -> Iterator[InputClass]:
    items = schema.get("items", {})
    most = int(limit.high) if limit is not None and limit.high is not None else MANY_ITEMS
    sizes = sorted({1, 2, 3, most})
    path = f"{name}[]"
    types = json_types(items)
    if types == {"string"} and name in TEXT_INPUTS:
        for size in sizes:
            yield InputClass(path, f"{size} items", [f"item {place}" for place in range(size)])
        yield InputClass(path, "an item twice", ["item", "item"])
        if name != "prompt":  # prompts of each kind are echoed
            joined = [" ".join(PLAIN_TEXTS[::2]), " ".join(PLAIN_TEXTS[1::2]), " ".join(DELICATE_TEXTS), LONG_TEXT]
            yield InputClass(path, "items of every kind of text", joined[:most])
    elif types == {"array"}:
        for size in sizes:
            yield InputClass(path, f"{size} lists of ids", [[72 + place, 45, 90] for place in range(size)])
        yield InputClass(path, "a list of ids twice", [[72, 45], [72, 45]])
        yield InputClass(path, "lists of ids of several lengths", [[72], [45, 90, 61, 84], [90, 50]])
    elif types & NUMERIC:
        for size in sizes:
            yield InputClass(path, f"{size} ids", [72 - place for place in range(size)])
        yield InputClass(path, "an id twice", [72, 72])


def _maps(name: str, schema: Mapping[str, Any], limit: Limit | None) -> Iterator[InputClass]:
    values = schema.get("additionalProperties")
    path = f"{name}.*"
    if not isinstance(values, Mapping):
        return
    types = json_types(values)
    if types == {"string"}:
        for size in (0, 1, 2, 3, MANY_ITEMS):
            yield InputClass(path, f"{size} entries", {f"key {place}": f"text {place}" for place in range(size)})
        for label, texts in (("text", PLAIN_TEXTS), ("delicate text", (*DELICATE_TEXTS, LONG_TEXT))):
            half = len(texts) // 2
            pair = {"1": " ".join(texts[:half]), "2": " ".join(texts[half:])}
            yield InputClass(path, f"values with {label}", pair)
        yield InputClass(path, "a key of words", {"Grüße, a.b [c]": "text"})
    elif types & NUMERIC:
        for size in (0, 1, 2, 3, MANY_ITEMS):
            yield InputClass(path, f"{size} entries", {str(100 + place): 1 for place in range(size)})
        for label, value in _numbers(limit, whole="number" not in types):
            yield InputClass(path, label, {BIAS_TOKENS[0]: value})
        for label, key in KEYS.items():
            yield InputClass(path, f"a key that is {label}", {key: 1})


def brief(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = dumps(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
