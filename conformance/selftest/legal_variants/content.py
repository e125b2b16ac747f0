"""Members of documents: more or fewer, in another order, with other ids and numbers; and other refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.contract.openapi import branches
from conformance.model import Contract, Level
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal
from conformance.reference.tokenizer import SIZE
from conformance.selftest.edits import Json, choices, sent, usages, without_member
from conformance.selftest.legal_variant import legal_variant


@legal_variant(Stage.REPLY)
def replies_have_more_members(documents: list[Json], call: Call) -> list[Json]:
    """Documents, choices and usage have undocumented members."""
    for document in documents:
        document |= {"time_info": {"queue": 0.001}, "warnings": [], "x_served_by": None}
    for choice in choices(documents):
        choice |= {"stop_reason": None, "token_ids": [1, 2], "seed": 2**60}
    for usage in usages(documents):
        usage |= {"cost": 0.0001, "num_cached": 0}
    return documents


@legal_variant(Stage.REPLY)
def members_come_in_another_order(documents: list[Json], call: Call) -> list[Json]:
    """Members come in reverse order, at every depth."""
    return [_reversed(document) for document in documents]


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(member) for name, member in reversed(value.items())}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@legal_variant(Stage.REPLY)
def whole_numbers_have_a_point(documents: list[Json], call: Call) -> list[Json]:
    """Whole numbers are written as 1.0 where the schema says number, not integer."""
    schema = call.reference.contract.response
    return [_with_points(document, schema) for document in documents]


def _with_points(value: Any, schema: Any) -> Any:
    narrow = next(iter(branches(schema)), schema) if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        members = narrow.get("properties", {})
        return {name: _with_points(member, members.get(name, {})) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_points(item, narrow.get("items", {})) for item in value]
    types = narrow.get("type", ())
    number = types == "number" or (isinstance(types, list) and "number" in types)
    return float(value) if number and isinstance(value, int) and not isinstance(value, bool) else value


@legal_variant(Stage.REPLY)
def ids_are_bare(documents: list[Json], call: Call) -> list[Json]:
    """The id is a UUID without a prefix."""
    uuid = f"5f0c2e1a-0000-4000-8000-{call.number:012x}"
    return [{**document, "id": uuid} for document in documents]


@legal_variant(Stage.REPLY)
def time_passes_within_a_stream(documents: list[Json], call: Call) -> list[Json]:
    """`created` advances during a stream."""
    return [{**document, "created": document["created"] + number // 3} for number, document in enumerate(documents)]


@legal_variant(Stage.REPLY)
def fingerprint_is_left_out(documents: list[Json], call: Call) -> list[Json]:
    """`system_fingerprint` is not sent."""
    if "system_fingerprint" in call.reference.contract.response.get("required", ()):
        return documents
    return without_member(documents, "system_fingerprint")


@legal_variant(Stage.REPLY)
def chunks_without_text_come_between(documents: list[Json], call: Call) -> list[Json]:
    """A stream has further chunks without text, as while a stop sequence may be beginning."""
    if not call.streamed or len(documents) < 2:
        return documents
    first = documents[0]
    empty = [{**choice, "text": "", "logprobs": None, "finish_reason": None} for choice in first["choices"]]
    lists: Json = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for choice in empty:
        if not call.reference.shape.logprobs_may_be_null:
            choice["logprobs"] = lists
    return [{**first, "choices": empty}, first, {**first, "choices": empty}, *documents[1:]]


def _usage_may_be_null(contract: Contract) -> bool:
    return "null" in str(contract.chunk.get("properties", {}).get("usage", "null"))


@legal_variant(Stage.REPLY, fits=_usage_may_be_null)
def usage_is_null_unasked(documents: list[Json], call: Call) -> list[Json]:
    """Chunks carry `usage: null` although usage is not requested."""
    return [{**document, "usage": document.get("usage")} for document in documents] if call.streamed else documents


@legal_variant(Stage.REPLY)
def usage_comes_unasked(documents: list[Json], call: Call) -> list[Json]:
    """A stream without include_usage reports usage in its last chunk, where the contract does not say."""
    if not call.streamed or call.params.include_usage or any(usages(documents)):
        return documents
    return [*documents[:-1], {**documents[-1], "usage": call.usage}]


@legal_variant(Stage.REPLY)
def breakdowns_are_null(documents: list[Json], call: Call) -> list[Json]:
    """The details of usage are left out."""
    for usage in usages(documents):
        for name in [name for name in usage if name.endswith("_details")]:
            del usage[name]
    return documents


@legal_variant(Stage.ERROR)
def errors_have_more_members(body: Json, call: Call) -> Json:
    """Error documents have undocumented members."""
    for problem in body.get("detail", ()) if isinstance(body.get("detail"), list) else ():
        problem |= {"input": None, "ctx": {"le": 2}, "url": "https://errors.example/less_than_equal"}
    if isinstance(body.get("error"), dict):
        body["error"] |= {"request_id": f"req-{call.number}", "docs": "https://docs.example/errors"}
    return {**body, "request_id": f"req-{call.number}"}


def _with_status(refusal: Refusal | None, kind: str, status: int) -> Refusal | None:
    return replace(refusal, status=status) if refusal is not None and refusal.first.kind == kind else refusal


def _errors_are_undocumented(contract: Contract) -> bool:
    return not contract.errors


@legal_variant(Stage.REFUSAL, fits=_errors_are_undocumented)
def unknown_model_is_400(refusal: Refusal | None, call: Call) -> Refusal | None:
    """An unknown model is answered by 400."""
    return _with_status(refusal, "model_not_found", 400)


@legal_variant(Stage.REFUSAL, fits=_errors_are_undocumented)
def unknown_key_is_403(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A request without a valid key is answered by 403."""
    return _with_status(refusal, "invalid_api_key", 403)


@legal_variant(Stage.REFUSAL, fits=_errors_are_undocumented)
def wrong_media_type_is_400(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A body of another media type is answered by 400."""
    return _with_status(refusal, "media_type", 400)


@legal_variant(Stage.REFUSAL)
def unknown_token_ids_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A prompt with a token id beyond the vocabulary is refused."""
    unknown = [token for prompt in call.params.prompts for token in prompt.tokens if not 0 <= token < SIZE]
    if refusal or not unknown:
        return refusal
    problem = Problem(f"the token {unknown[0]} in prompt is out of vocabulary", "prompt", "out_of_vocabulary")
    return Refusal(422 if "422" in call.reference.contract.errors else 400, (problem,))


def _suffix_is_optional(contract: Contract) -> bool:
    return any(row.id == "request.suffix.accepts" and row.level is Level.MAY for row in contract.requirements)


@legal_variant(Stage.REFUSAL, fits=_suffix_is_optional)
def suffix_is_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """A suffix is refused, where only some models must accept it."""
    if refusal or sent(call, "suffix") is None:
        return refusal
    return Refusal(400, (Problem("suffix is not supported by this model", "suffix", "unsupported"),))
