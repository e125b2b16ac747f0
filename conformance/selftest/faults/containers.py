"""Lists and maps of which only the first or the last element is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.model import Contract, Validity, json_types
from conformance.model.json_text import is_number
from conformance.reference.alterations import Call, Stage
from conformance.selftest.fault import fault

CHECK: Final = "invalid_is_refused"
Right = Callable[[Contract, str, Any], bool]


def _of_text(contract: Contract, name: str, value: Any) -> bool:
    return isinstance(value, str)


def _of_number(contract: Contract, name: str, value: Any) -> bool:
    return is_number(value)


def _in_range(contract: Contract, name: str, value: Any) -> bool:
    limit = contract.limit(f"{name}.*")
    return not is_number(value) or limit is None or limit.classify(value) is not Validity.INVALID


def _of_ids(contract: Contract, name: str, value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int for token in value)


def _texts(contract: Contract, name: str) -> bool:
    return name == "stop"


def _numbers(contract: Contract, name: str) -> bool:
    return f"request.{name}.*.type" in {row.id for row in contract.requirements} and name == "logit_bias"


def _ranges(contract: Contract, name: str) -> bool:
    limit = contract.limit(f"{name}.*")
    return _numbers(contract, name) and limit is not None and limit.binding


def _prompts(contract: Contract, name: str) -> bool:
    return name == "prompt" and "array" in json_types(contract.parameters[name].schema)


# Kinds of containers with the rule that their elements must keep: whose they are, the rule, and the sentence.
RULES: Final[Mapping[str, tuple[Callable[[Contract, str], bool], Right, str]]] = {
    "types_of_texts": (_texts, _of_text, "Of a list of texts, the type of one item is checked"),
    "types_of_map_values": (_numbers, _of_number, "Of a map of numbers, the type of one value is checked"),
    "ranges_of_map_values": (_ranges, _in_range, "Of a map of numbers, the range of one value is checked"),
    "types_of_ids": (_prompts, _of_ids, "Of a batch of token ids, one prompt is checked"),
}
POSITIONS: Final[Mapping[str, tuple[int, str]]] = {"first": (0, "the first."), "last": (-1, "the last.")}


def _build(name: str, position: str) -> None:
    applies, right, sentence = RULES[name]
    index, ending = POSITIONS[position]

    def keeps(contract: Contract, member: str, values: list[Any]) -> list[bool]:
        """Which elements are let through to the reference: wrong ones are dropped unless they are looked at."""
        looked_at = values[index] if values else None
        return [right(contract, member, value) or value is looked_at for value in values]

    def change(body: Any, call: Call) -> Any:
        if not isinstance(body, dict):
            return body
        contract = call.reference.contract
        changed = dict(body)
        for member, value in body.items():
            if member not in contract.parameters or top(member) != member or not applies(contract, member):
                continue
            if isinstance(value, list) and value and right(contract, member, value[index]):
                keeps_element = keeps(contract, member, value)
                changed[member] = [element for element, keep in zip(value, keeps_element, strict=True) if keep]
            elif isinstance(value, dict) and value:
                keeps_element = keeps(contract, member, list(value.values()))
                changed[member] = {key: value[key] for key, keep in zip(value, keeps_element, strict=True) if keep}
        return changed

    def fits(contract: Contract) -> bool:
        return any(applies(contract, member) for member in contract.parameters)

    change.__name__ = f"{name}_are_checked_of_the_{position}_only"
    change.__doc__ = f"{sentence}, {ending}"
    fault(Stage.BODY, CHECK, fits=fits)(change)


for _name in RULES:
    for _position in POSITIONS:
        _build(_name, _position)
