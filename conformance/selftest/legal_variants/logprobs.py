"""Log probabilities of another shape or after sampling, and tokens that are not in the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.model import Contract, Level, StopText
from conformance.reference.alterations import Alteration, Call, Stage
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices
from conformance.selftest.legal_variant import LegalVariant, legal_variant, register

LOWEST = -9999.0  # what some engines send for minus infinity
REASONING = 2  # tokens


def _shape_is_free(contract: Contract) -> bool:
    return contract.semantics.logprobs_shape_is_free


@legal_variant(Stage.REPLY, fits=_shape_is_free)
def scores_come_as_in_chat(documents: list[Json], call: Call) -> list[Json]:
    """Log probabilities have the shape of chat completions, where none is promised."""
    for choice in choices(documents):
        if lists := choice.get("logprobs"):
            content = []
            for token, value, top in zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"], strict=True):
                others = [{"token": name, "logprob": other, "bytes": None} for name, other in (top or {}).items()]
                logprob = LOWEST if value is None else value
                content.append({"token": token, "logprob": logprob, "bytes": None, "top_logprobs": others})
            choice["logprobs"] = {"content": content, "refusal": None}
    return documents


def _alternatives_are_optional(contract: Contract) -> bool:
    required = "response.choices[].logprobs.top_logprobs.required"
    return all(row.level is Level.MAY for row in contract.requirements if row.id == required)


@legal_variant(Stage.REPLY, fits=_alternatives_are_optional)
def alternatives_are_left_out_where_none_is_asked_for(documents: list[Json], call: Call) -> list[Json]:
    """With `logprobs: 0` there is no top_logprobs, where it is optional."""
    for choice in choices(documents) if call.params.logprobs == 0 else ():
        (choice.get("logprobs") or {}).pop("top_logprobs", None)
    return documents


@legal_variant(Stage.REPLY)
def scores_are_those_after_temperature(documents: list[Json], call: Call) -> list[Json]:
    """At temperature 0 the sampled token has the log probability 0, and all others -9999."""
    if call.params.sampling.temperature == 0 and not call.params.echo:
        for choice in choices(documents):
            if lists := choice.get("logprobs"):
                lists["token_logprobs"] = [0.0 for _ in lists["tokens"]]
                lists["top_logprobs"] = [
                    {name: 0.0 if name == token else LOWEST for name in top}
                    for token, top in zip(lists["tokens"], lists["top_logprobs"], strict=True)
                ]
    return documents


def _has_reasoning(contract: Contract) -> bool:
    items = contract.response.get("properties", {}).get("choices", {}).get("items", {})
    return "reasoning" in items.get("properties", {})


def _without_reasoning(texts: list[Text], call: Call) -> list[Text]:
    """The texts without their first tokens, which are noted for the reply."""
    reasoning: dict[int, str] = call.notes.setdefault("reasoning", {})
    reasoning.clear()
    if call.params.output:
        return texts
    answers = []
    for text in texts:
        generation = text.generation
        reasoning[text.index] = "".join(step.text for step in generation.steps[:REASONING])
        answer = generation.text[len(reasoning[text.index]) :]
        rest = replace(generation, steps=generation.steps[REASONING:], text=answer)
        answers.append(replace(text, generation=rest))
    return answers


def _with_reasoning(documents: list[Json], call: Call) -> list[Json]:
    """The documents with the noted tokens as `reasoning`."""
    reasoning = dict(call.notes.get("reasoning", {}))
    for choice in choices(documents):
        choice["reasoning"] = reasoning.pop(choice["index"], None)
    return documents


register(
    LegalVariant(
        "reasoning_stands_apart",
        "The first tokens of a text are sent as `reasoning`, not as a part of the text, and are counted.",
        alterations=(
            Alteration("reasoning_stands_apart", Stage.TEXTS, _without_reasoning),
            Alteration("reasoning_stands_apart", Stage.REPLY, _with_reasoning),
        ),
        fits=_has_reasoning,
    )
)


def _stop_is_kept(contract: Contract) -> bool:
    return contract.semantics.stop_text is StopText.INCLUDED


@legal_variant(Stage.TEXTS, fits=_stop_is_kept)
def token_that_stops_is_whole(texts: list[Text], call: Call) -> list[Text]:
    """A text ends with the whole token that completed a stop sequence, even if the sequence ends within it."""
    return [_uncut(text) for text in texts]


def _uncut(text: Text) -> Text:
    generation = text.generation
    rest = generation.uncut_text[len(generation.text) :]
    if not rest or not generation.steps:
        return text
    last = generation.steps[-1]
    top = tuple((last.text + rest if name == last.text else name, value) for name, value in last.top or ())
    steps = (*generation.steps[:-1], replace(last, text=last.text + rest, top=top))
    return replace(text, generation=replace(generation, steps=steps, text=generation.uncut_text))


def _register_rounding(name: str, says: str, rounded: Callable[[float], float]) -> None:
    def change(documents: list[Json], call: Call) -> list[Json]:
        for choice in choices(documents):
            if lists := choice.get("logprobs"):
                values, tops = lists["token_logprobs"], lists["top_logprobs"]
                lists["token_logprobs"] = [value if value is None else rounded(value) for value in values]
                lists["top_logprobs"] = [
                    top and {token: rounded(value) for token, value in top.items()} for top in tops
                ]
        return documents

    register(LegalVariant(name, says, alterations=(Alteration(name, Stage.REPLY, change),)))


_register_rounding(
    "scores_have_two_decimals", "Log probabilities are rounded to two decimals.", lambda value: round(value, 2)
)
_register_rounding(
    "scores_have_half_precision",
    "Log probabilities are multiples of 1/16, as half precision makes them.",
    lambda value: round(value * 16) / 16,
)


@legal_variant(Stage.REPLY)
def parts_of_characters_share_a_name(documents: list[Json], call: Call) -> list[Json]:
    """Each token beyond ASCII is listed as U+FFFD, so that alternatives with equal names are lost."""
    for choice in choices(documents):
        if lists := choice.get("logprobs"):
            lists["tokens"] = [_printable(token) for token in lists["tokens"]]
            lists["top_logprobs"] = [
                top and {_printable(token): value for token, value in top.items()} for top in lists["top_logprobs"]
            ]
    return documents


def _printable(token: str) -> str:
    return token if token and token.isascii() and not token.startswith("bytes:") else "\ufffd"
