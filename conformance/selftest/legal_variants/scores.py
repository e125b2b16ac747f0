"""Oddities of log probabilities, and of tokens that show elsewhere than in the text."""

from __future__ import annotations

from dataclasses import replace

from conformance.model import Contract, Level, StopText
from conformance.reference.alterations import Alteration, Call, Stage
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices
from conformance.selftest.legal_variant import LegalVariant, enter, legal_variant

LOWEST = -9999.0
THOUGHTS = 2  # tokens


def _shape_is_free(contract: Contract) -> bool:
    return contract.semantics.logprobs_shape_is_free


@legal_variant(Stage.REPLY, fits=_shape_is_free)
def scores_come_as_in_chat(documents: list[Json], call: Call) -> list[Json]:
    """Log probabilities have the shape of chat completions, where none is promised."""
    for choice in choices(documents):
        if lists := choice.get("logprobs"):
            content = []
            for token, value, top in zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"], strict=True):
                others = [{"token": name, "logprob": one, "bytes": None} for name, one in (top or {}).items()]
                score = LOWEST if value is None else value
                content.append({"token": token, "logprob": score, "bytes": None, "top_logprobs": others})
            choice["logprobs"] = {"content": content, "refusal": None}
    return documents


def _may_be_left_out(contract: Contract) -> bool:
    needed = "response.choices[].logprobs.top_logprobs.required"
    return all(row.level is Level.MAY for row in contract.requirements if row.id == needed)


@legal_variant(Stage.REPLY, fits=_may_be_left_out)
def alternatives_are_left_out_where_none_is_asked_for(documents: list[Json], call: Call) -> list[Json]:
    """With `logprobs: 0` there is no list of alternatives, where it is optional."""
    for choice in choices(documents) if call.params.logprobs == 0 else ():
        (choice.get("logprobs") or {}).pop("top_logprobs", None)
    return documents


@legal_variant(Stage.REPLY)
def scores_are_those_after_temperature(documents: list[Json], call: Call) -> list[Json]:
    """At temperature 0 the token that is taken has the log probability 0, and all others have none to speak of."""
    if call.params.sampling.temperature == 0 and not call.params.echo:
        for choice in choices(documents):
            if lists := choice.get("logprobs"):
                lists["token_logprobs"] = [0.0 for _ in lists["tokens"]]
                lists["top_logprobs"] = [
                    {name: 0.0 if name == token else LOWEST for name in top}
                    for token, top in zip(lists["tokens"], lists["top_logprobs"], strict=True)
                ]
    return documents


def _tells_reasoning(contract: Contract) -> bool:
    items = contract.response.get("properties", {}).get("choices", {}).get("items", {})
    return "reasoning" in items.get("properties", {})


def _think(texts: list[Text], call: Call) -> list[Text]:
    """The texts without their first tokens, which are kept for the reply."""
    told: dict[int, str] = call.notes.setdefault("reasoning", {})
    told.clear()
    if call.params.output:
        return texts
    found = []
    for text in texts:
        written = text.written
        told[text.index] = "".join(step.text for step in written.steps[:THOUGHTS])
        rest = replace(written, steps=written.steps[THOUGHTS:], text=written.text[len(told[text.index]) :])
        found.append(replace(text, written=rest))
    return found


def _tell(documents: list[Json], call: Call) -> list[Json]:
    told = dict(call.notes.get("reasoning", {}))
    for choice in choices(documents):
        choice["reasoning"] = told.pop(choice["index"], None)
    return documents


enter(
    LegalVariant(
        "reasoning_stands_apart",
        "The first tokens of a text are no part of it: they are counted, and told as reasoning.",
        alterations=(
            Alteration("reasoning_stands_apart", Stage.TEXTS, _think),
            Alteration("reasoning_stands_apart", Stage.REPLY, _tell),
        ),
        fits=_tells_reasoning,
    )
)


def _stop_is_kept(contract: Contract) -> bool:
    return contract.semantics.stop_text is StopText.INCLUDED


@legal_variant(Stage.TEXTS, fits=_stop_is_kept)
def token_that_stops_is_whole(texts: list[Text], call: Call) -> list[Text]:
    """A text ends with the token that completed a stop sequence, be the sequence shorter or not."""
    return [_whole(text) for text in texts]


def _whole(text: Text) -> Text:
    written = text.written
    rest = written.beyond[len(written.text) :]
    if not rest or not written.steps:
        return text
    last = written.steps[-1]
    top = tuple((last.text + rest if name == last.text else name, value) for name, value in last.top or ())
    steps = (*written.steps[:-1], replace(last, text=last.text + rest, top=top))
    return replace(text, written=replace(written, steps=steps, text=written.beyond))
