"""Requests of one size or with one value are answered wrongly: batches, empty texts, maps, members of enumerations.

Each fault is a row of a table. What the input model lists as a class, some server has got wrong in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.contract.openapi import branches
from conformance.model import Contract
from conformance.model.json_text import is_number, json_equal
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal
from conformance.reference.responses import Text
from conformance.selftest.edits import sent
from conformance.selftest.fault import plant

ACCEPTED: Final = "combination_is_accepted"
BESIDES: Final = (
    "valid_is_accepted", "combination_is_accepted", "channels_accept_alike", "limits", "default_is_explicit",
    "relations", "robustness", "null_is_absent",
)  # fmt: skip


def _prompts(call: Call) -> list[Any]:
    prompt = sent(call, "prompt")
    return prompt if isinstance(prompt, list) else []


def _texts(call: Call) -> list[str]:
    return [item for item in _prompts(call) if isinstance(item, str)]


# Valid requests that are refused: which, and the sentence that says so.
REFUSED: Final[Mapping[str, tuple[Callable[[Call], bool], str]]] = {
    "batches_of_three": (lambda call: len(_texts(call)) == 3, "A batch of three prompts is refused."),
    "batches_of_more_than_sixteen": (lambda call: len(_texts(call)) > 16, "More than 16 prompts are refused."),
    "batches_of_one": (lambda call: len(_texts(call)) == 1, "A list of one prompt is refused."),
    "empty_prompts_in_batches": (lambda call: "" in _texts(call), "An empty prompt in a batch is refused."),
    "batches_with_a_prompt_twice": (
        lambda call: len(set(_texts(call))) < len(_texts(call)),
        "A batch with the same prompt twice is refused.",
    ),
    "prompts_with_nul": (lambda call: any("\0" in text for text in _texts(call)), "A prompt with NUL is refused."),
    "negative_seeds": (
        lambda call: is_number(sent(call, "seed")) and sent(call, "seed") < 0,
        "A negative seed is refused.",
    ),
    "large_seeds": (
        lambda call: is_number(sent(call, "seed")) and sent(call, "seed") >= 2**53,
        "A seed from 2^53 is refused.",
    ),
    "empty_maps": (lambda call: sent(call, "logit_bias") == {}, "A logit_bias without entries is refused."),
    "maps_of_many_entries": (
        lambda call: isinstance(sent(call, "logit_bias"), dict) and len(sent(call, "logit_bias")) > 16,
        "A logit_bias of more than 16 entries is refused.",
    ),
    "names_beyond_ascii": (
        lambda call: isinstance(sent(call, "user"), str) and not sent(call, "user").isascii(),
        "A user with characters beyond ASCII is refused.",
    ),
    "long_names": (
        lambda call: isinstance(sent(call, "user"), str) and len(sent(call, "user")) > 64,
        "A user of more than 64 characters is refused.",
    ),
}
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "negative_seeds": ("seed",),
    "large_seeds": ("seed",),
    "empty_maps": ("logit_bias",),
    "maps_of_many_entries": ("logit_bias",),
    "names_beyond_ascii": ("user",),
    "long_names": ("user",),
}


def _refusing(param: str, refused: Callable[[Call], bool]) -> Callable[[Refusal | None, Call], Refusal | None]:
    def change(refusal: Refusal | None, call: Call) -> Refusal | None:
        if refusal is not None or not isinstance(call.body, dict) or not refused(call):
            return refusal
        return Refusal(400, (Problem(f"{param} has an invalid value", param, "invalid_value"),))

    return change


def _fits_seeds(contract: Contract) -> bool:
    """Whether the document itself allows integers of any sign and size."""
    limit = contract.limit("seed")
    return limit is None or (limit.binding and (limit.low or 0) < 0)


for _name, (_refused, _says) in REFUSED.items():
    _needs = NEEDS.get(_name, ())
    plant(
        f"{_name}_are_refused",
        _says,
        Stage.REFUSAL,
        "valid_is_accepted" if _needs == ("seed",) else ACCEPTED,
        _refusing(_needs[0] if _needs else "prompt", _refused),
        needs=_needs,
        also=BESIDES,
        fits=_fits_seeds if _needs == ("seed",) else None,
    )


def _loses(size: int, remaining: slice) -> Callable[[list[Text], Call], list[Text]]:
    def change(texts: list[Text], call: Call) -> list[Text]:
        return texts[remaining] if len(call.params.prompts) == size and call.params.n == 1 else texts

    return change


for _name, _size, _kept in (("three", 3, slice(2)), ("seventeen", 17, slice(16))):
    plant(
        f"batches_of_{_name}_lose_one",
        f"A batch of {_name} prompts gets one choice too few.",
        Stage.TEXTS,
        "choices_are_complete",
        _loses(_size, _kept),
        also=(*BESIDES, "choices", "usage", "echo", "finish", "length_uses_the_limit"),
    )


def _without_empty(texts: list[Text], call: Call) -> list[Text]:
    return [text for text in texts if text.generation.text] or texts


def _first_32(texts: list[Text], call: Call) -> list[Text]:
    return texts[:32] if len(call.params.prompts) > 1 and call.params.n > 1 else texts


for _name, _says, _change in (
    ("choices_beyond_32_are_dropped", "Of several prompts with n, 32 choices come at most.", _first_32),
    ("empty_completions_are_dropped", "A choice without text is left out.", _without_empty),
):
    plant(
        _name,
        _says,
        Stage.TEXTS,
        "choices_are_complete",
        _change,
        also=(*BESIDES, "choices", "usage", "echo", "finish", "stop", "length_uses_the_limit", "logprobs"),
    )


def _members(contract: Contract) -> list[tuple[str, Any]]:
    """The documented members of enumerations, those of unions of objects included, each with its parameter."""
    members = []
    for name, parameter in contract.parameters.items():
        every = branches(parameter.schema)
        values = [value for branch in every for value in branch.get("enum", ())]
        if name != "model" and (values or "response_format" in name):
            members += [(name, value) for value in contract.examples.get(name, ()) or values]
    return members


def _refuses_member(number: int) -> Callable[[Refusal | None, Call], Refusal | None]:
    def change(refusal: Refusal | None, call: Call) -> Refusal | None:
        members = _members(call.reference.contract)
        if refusal is not None or number >= len(members):
            return refusal
        name, value = members[number]
        if not json_equal(sent(call, name), value):
            return refusal
        return Refusal(400, (Problem(f"{name} has an unknown value", name, "invalid_value"),))

    return change


for _number in range(5):
    plant(
        f"member_{_number + 1}_of_enumerations_is_refused",
        f"Of all documented members of enumerations, number {_number + 1} is refused.",
        Stage.REFUSAL,
        "valid_is_accepted",
        _refuses_member(_number),
        also=(*BESIDES, "json_is_valid"),
        fits=lambda contract, number=_number: len(_members(contract)) > number,
    )
