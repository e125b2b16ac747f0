"""What no document promises: the order of choices, equal texts under best effort, the status of a refusal."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from conformance.model import Contract, Level
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.messages import Refusal, Request, Response
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices, sent, synthetic_response, usages
from conformance.selftest.legal_variant import legal_variant

FAILURES = 0.25  # share of the requests whose seed has no effect, where it is best effort
FILTERED = 7  # each seventh reply is cut by the content filter
OTHER_STATUSES = (403, 404, 409, 413, 415, 451)


@legal_variant(Stage.REPLY)
def choices_come_in_another_order(documents: list[Json], call: Call) -> list[Json]:
    """Choices are listed in reverse order, each under its own index."""
    return [{**document, "choices": document["choices"][::-1]} for document in documents]


@legal_variant(Stage.REPLY)
def stream_opens_without_choices(documents: list[Json], call: Call) -> list[Json]:
    """The first chunk of a stream has an empty list of choices."""
    return [{**documents[0], "choices": []}, *documents] if call.streamed and len(documents) > 1 else documents


def _takes_seeds(contract: Contract) -> bool:
    return "seed" in contract.parameters


@legal_variant(Stage.PARAMETERS, fits=_takes_seeds)
def seed_is_best_effort(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Some requests with a seed go to a machine whose rounding differs, which gives another text."""
    fails = Random(f"best effort {call.number}").random() < FAILURES  # noqa: S311 - not cryptographic
    return replace(params, seed=params.seed + call.number) if params.seed is not None and fails else params


@legal_variant(Stage.PARAMETERS, fits=_takes_seeds)
def seed_gives_streams_another_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A seed gives another text in a stream, whose parameters differ."""
    return replace(params, seed=params.seed + 1) if params.seed is not None and params.stream else params


def _promises_nothing_of_seeds(contract: Contract) -> bool:
    rows = [row for row in contract.requirements if row.id == "effects.seed.repeats"]
    return bool(rows) and all(row.level is Level.MAY for row in rows)


@legal_variant(Stage.PARAMETERS, fits=_promises_nothing_of_seeds)
def seed_has_no_effect(params: GenerationParameters, call: Call) -> GenerationParameters:
    """A seed is accepted and has no effect, where the document does not say what it does."""
    return replace(params, seed=None)


@legal_variant(Stage.REPLY, fits=lambda contract: "suffix" in contract.parameters)
def offsets_count_the_template(documents: list[Json], call: Call) -> list[Json]:
    """With a suffix, text_offset counts from the beginning of the text that joins prompt and suffix for the model."""
    for choice in choices(documents) if sent(call, "suffix") else ():
        if lists := choice.get("logprobs"):
            lists["text_offset"] = [offset + 70 for offset in lists["text_offset"]]
    return documents


@legal_variant(Stage.REPLY)
def echoed_tokens_are_not_alternatives(documents: list[Json], call: Call) -> list[Json]:
    """The alternatives of a token of an echoed prompt are the likeliest tokens, and it need not be one of them."""
    counts = [len(prompt.tokens) for prompt in call.params.prompts for _ in range(call.params.n)]
    for choice in choices(documents) if call.params.echo and call.params.logprobs else ():
        lists = choice.get("logprobs") or {"tokens": []}
        echoed = min(counts[choice["index"]], len(lists["tokens"]))
        counts[choice["index"]] -= echoed
        for token, top in zip(lists["tokens"][:echoed], lists.get("top_logprobs", ()), strict=False):
            if top and token in top:
                top["~"] = top.pop(token)
    return documents


@legal_variant(Stage.REPLY)
def start_token_is_listed(documents: list[Json], call: Call) -> list[Json]:
    """The log probabilities of an echoed prompt begin with the tokenizer's start token, which has no text."""
    seen = set()
    for choice in choices(documents) if call.params.echo else ():
        lists = choice.get("logprobs")
        if lists and lists["tokens"] and choice["index"] not in seen:
            seen.add(choice["index"])
            if lists["token_logprobs"][0] is None:
                lists["token_logprobs"][0] = -4.5
                lists["top_logprobs"][0] = {lists["tokens"][0]: -4.5}
            for name, value in (("tokens", "<s>"), ("token_logprobs", None), ("top_logprobs", None)):
                lists[name].insert(0, value)
            lists["text_offset"].insert(0, lists["text_offset"][0])
    return documents


def _may_filter(contract: Contract) -> bool:
    return any("content_filter" in row.params.get("values", ()) for row in contract.requirements)


@legal_variant(Stage.TEXTS, fits=_may_filter)
def some_texts_are_filtered(texts: list[Text], call: Call) -> list[Text]:
    """One reply of seven ends by `content_filter` after two tokens."""
    if call.number % FILTERED:
        return texts
    filtered = []
    for text in texts:
        steps = text.generation.steps[:2]
        generation = replace(text.generation, steps=steps, text="".join([step.text for step in steps]))
        filtered.append(replace(text, generation=generation, finish="content_filter"))
    return filtered


def _errors_are_undocumented(contract: Contract) -> bool:
    return not contract.errors


@legal_variant(Stage.REFUSAL, fits=_errors_are_undocumented)
def invalid_requests_have_many_statuses(refusal: Refusal | None, call: Call) -> Refusal | None:
    """The status of a refusal depends on what is wrong: 403, 404, 409, 413, 415 or 451."""
    if refusal is None or refusal.status not in {400, 422}:
        return refusal
    return replace(refusal, status=OTHER_STATUSES[len(refusal.first.message) % len(OTHER_STATUSES)])


@legal_variant(Stage.ARRIVAL)
def limit_is_reached_now_and_then(request: Request, call: Call) -> Request | Response:
    """One new request of five is answered by 429 without a body or Retry-After, the first time."""
    seen: dict[bytes, int] = call.notes.setdefault("limit_is_reached_now_and_then", {})
    seen[request.body] = seen.get(request.body, 0) + 1
    limited = seen[request.body] == 1 and len(seen) % 5 == 0
    return synthetic_response(429, b"", "text/plain") if limited else request


@legal_variant(Stage.REPLY)
def prompts_are_cached_in_part(documents: list[Json], call: Call) -> list[Json]:
    """Usage says that half of each prompt came from a cache, where it breaks prompts down."""
    for usage in usages(documents):
        if "cached_tokens" in (usage.get("prompt_tokens_details") or {}):
            usage["prompt_tokens_details"]["cached_tokens"] = usage["prompt_tokens"] // 2
    return documents


@legal_variant(Stage.USAGE)
def stop_sequences_are_counted(usage: Json, call: Call) -> Json:
    """The token that completes a stop sequence counts, though the text leaves it out."""
    params = call.params
    limit = params.max_tokens and params.max_tokens * params.best_of * len(params.prompts)
    if not params.stops or not usage or (limit is not None and usage["completion_tokens"] >= limit):
        return usage
    counted = {name: usage[name] + 1 for name in ("completion_tokens", "total_tokens")}
    return {**usage, **counted}
