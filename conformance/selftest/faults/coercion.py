"""Look-alikes: values of another JSON type that a lenient parser converts, everywhere or on one path only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.model import Contract, json_types
from conformance.reference.alterations import Call, Stage
from conformance.selftest.fault import fault

CHECK: Final = "invalid_is_refused"
Convert = Callable[[Any], Any]


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        value = float(text)
        return int(value) if value == int(value) else value


def _quoted(value: Any) -> Any:
    return _number(value) if isinstance(value, str) and value and value == value.strip() else value


def _padded(value: Any) -> Any:
    return _number(value) if isinstance(value, str) and value != value.strip() else value


def _fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def _boolean(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _listed(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _empty(value: Any) -> Any:
    return None if value == "" else value


def _word(value: Any) -> Any:
    words = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
    return words.get(value, value) if isinstance(value, str) else value


def _digit(value: Any) -> Any:
    return bool(value) if type(value) is int and value in {0, 1} else value


def _pairs(value: Any) -> Any:
    return {} if value == [] else value


# What the parser converts: the types of the members that it does so for, what it does, and the sentence that says so.
CONVERSIONS: Final[Mapping[str, tuple[frozenset[str], Convert, str]]] = {
    "numbers_in_quotes": (frozenset({"integer", "number"}), _quoted, 'A number in quotes, such as "1", is converted'),
    "padded_numbers": (frozenset({"integer", "number"}), _padded, "A number in quotes and spaces is converted"),
    "fractions": (frozenset({"integer"}), _fraction, "A fraction is cut to an integer"),
    "booleans": (frozenset({"integer", "number"}), _boolean, "true counts as the number 1"),
    "lists_of_one_number": (frozenset({"integer", "number"}), _listed, "A list with one number counts as the number"),
    "empty_strings": (frozenset({"integer", "number"}), _empty, "An empty string counts as an absent number"),
    "words": (frozenset({"boolean"}), _word, 'A word such as "true" or "yes" counts as a boolean'),
    "digits": (frozenset({"boolean"}), _digit, "1 and 0 count as booleans"),
    "empty_lists": (frozenset({"object"}), _pairs, "An empty list counts as an empty map"),
}
# Where it does so: a path that reads its input by itself.
PATHS: Final[Mapping[str, tuple[Callable[[Any], bool] | None, str]]] = {
    "": (None, "."),
    "_in_streams": (lambda body: body.get("stream") is True, ", in streams only."),
    "_of_batches": (lambda body: isinstance(body.get("prompt"), list), ", of batches and token ids only."),
    "_beside_n": (lambda body: isinstance(body.get("n"), int) and body["n"] > 1, ", beside several choices only."),
}


def _types(contract: Contract, name: str) -> set[str]:
    return json_types(contract.parameters[name].schema) - {"null"}


def _build(name: str, path: str) -> None:
    types, convert, sentence = CONVERSIONS[name]
    where, ending = PATHS[path]

    def change(body: Any, call: Call) -> Any:
        if not isinstance(body, dict) or (where is not None and not where(body)):
            return body
        parameters = call.reference.contract.parameters
        convertible = [key for key in body if key in parameters and _types(call.reference.contract, key) <= types]
        try:
            return {key: convert(value) if key in convertible else value for key, value in body.items()}
        except ValueError:  # not a look-alike
            return body

    def fits(contract: Contract) -> bool:
        members = [key for key in contract.parameters if key != "stream"]  # which decides the path itself
        return any(_types(contract, key) and _types(contract, key) <= types for key in members)

    change.__name__ = f"{name}_are_converted{path}"
    change.__doc__ = sentence + ending
    fault(Stage.BODY, CHECK, fits=fits, imitates="Pydantic's lax mode converts strings to numbers and booleans.")(
        change
    )


for _name in CONVERSIONS:
    for _path in PATHS:
        _build(_name, _path)
