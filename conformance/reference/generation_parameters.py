"""A request body → what the model is to generate. Every accepted body can be generated for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.model import Contract, StopText
from conformance.model.json_text import MISSING
from conformance.model.parameter_traits import Role
from conformance.model.request_view import RequestView
from conformance.reference.language_model import LanguageModel
from conformance.reference.sampling import Sampling
from conformance.reference.tokenizer import EOS, SIZE, spell

LARGEST_REAL: Final = 1e4  # sampling parameters beyond this have no further effect
LARGEST_WHOLE: Final = 2.0**62  # larger token ids and counts are reduced to this, so that any number can be converted
MOST_CHOICES: Final = 5000  # of one prompt: more are refused anyway


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as text and as tokens. `given_as_tokens`: the request has token ids."""

    text: str
    tokens: tuple[int, ...]
    given_as_tokens: bool = False


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """The request's parameters with defaults filled in; those that the contract does not document are ignored."""

    model: str
    prompts: tuple[Prompt, ...]
    max_tokens: int | None
    sampling: Sampling
    n: int = 1
    best_of: int = 1
    logprobs: int | None = None
    echo: bool = False
    stops: tuple[str, ...] = ()
    keep_stop: bool = False
    suffix: str = ""
    seed: int | None = None
    stream: bool = False
    include_usage: bool = False
    output: Mapping[str, Any] | None = None
    overflow: str | None = None
    tier: Any = None


def documented(contract: Contract, body: Any) -> RequestView:
    """The members that the contract documents, with its defaults; others have no effect."""
    members = body if isinstance(body, Mapping) else {}
    return RequestView({name: members[name] for name in members if name in contract.parameters}, contract.defaults)


def read(contract: Contract, body: Any, model: LanguageModel, served: tuple[str, ...]) -> GenerationParameters:
    """The parameters that a body has under a contract."""
    request = documented(contract, body)
    n = min(max(_whole(request, "n", 1), 1), MOST_CHOICES)
    seed = request.get("seed")
    output = request.get("response_format")
    overflow = request.get(contract.by_role(Role.CONTEXT_OVERFLOW))
    return GenerationParameters(
        model=_model(contract, request, served),
        prompts=_prompts(request, model),
        max_tokens=max(_whole(request, "max_tokens", 0), 0) if _is_number(request.get("max_tokens")) else None,
        sampling=_sampling(contract, request),
        n=n,
        best_of=max(min(_whole(request, "best_of", n), MOST_CHOICES), n),
        logprobs=max(_whole(request, "logprobs", 0), 0) if _is_number(request.get("logprobs")) else None,
        echo=request.echo,
        stops=request.stops,
        keep_stop=contract.semantics.stop_text is StopText.INCLUDED,
        suffix=suffix if isinstance(suffix := request.get("suffix"), str) else "",
        seed=int(seed) if _is_number(seed) and abs(seed) < float("inf") else None,
        stream=request.stream,
        include_usage=request.include_usage,
        output=output if isinstance(output, Mapping) else None,
        overflow=overflow if isinstance(overflow, str) else None,
        tier=request.get(contract.by_role(Role.REPORTED)),
    )


def _model(contract: Contract, request: RequestView, served: tuple[str, ...]) -> str:
    """The first model, of the one named and its fallbacks, that is served; an unknown name where none is."""
    fallbacks = request.get(contract.by_role(Role.FALLBACK_MODELS))
    candidates = [request.get("model"), *(fallbacks if isinstance(fallbacks, list) else ())]
    available = [name for name in candidates if name in served]
    return available[0] if available else next((name for name in candidates if isinstance(name, str)), served[0])


def _sampling(contract: Contract, request: RequestView) -> Sampling:
    bias = request.get("logit_bias")
    pairs = bias.items() if isinstance(bias, Mapping) else ()
    return Sampling(
        temperature=max(_real(request, "temperature", 1.0), 0.0),
        top_p=_real(request, "top_p", 1.0),
        top_k=_whole(request, "top_k", 0),
        probability_floor=_real(request, contract.by_role(Role.PROBABILITY_FLOOR), 0.0),
        presence=_real(request, "presence_penalty", 0.0),
        frequency=_real(request, "frequency_penalty", 0.0),
        repetition=max(_real(request, "repetition_penalty", 1.0), 1e-3),
        # A bias on an id beyond the vocabulary has no effect.
        bias={int(key): _clamped(value) for key, value in pairs if _is_token_id(key) and _is_number(value)},
        ignore_end=request.get(contract.by_role(Role.IGNORES_END)) is True,
    )


def _prompts(request: RequestView, model: LanguageModel) -> tuple[Prompt, ...]:
    given = request.raw("prompt")
    if given is None or given is MISSING:
        return (Prompt("", (EOS,)),)  # the beginning of a new document
    if isinstance(given, list):
        if given and all(_is_number(item) for item in given):
            return (_from_tokens(given),)
        prompts = tuple(_from_tokens(item) if isinstance(item, list) else _from_text(item, model) for item in given)
        return prompts or (_from_text("", model),)
    return (_from_text(given, model),)


def _from_text(value: Any, model: LanguageModel) -> Prompt:
    text = value if isinstance(value, str) else ""
    # A lone surrogate is no character, and cannot be echoed.
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Prompt(clean, model.tokenizer.encode(clean))


def _from_tokens(ids: list[Any]) -> Prompt:
    tokens = tuple(int(_clamped(item, LARGEST_WHOLE)) for item in ids if _is_number(item))
    return Prompt("".join(spell(tokens)), tokens, given_as_tokens=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _is_token_id(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 10 and int(key) < SIZE


def _clamped(value: float, largest: float = LARGEST_REAL) -> float:
    return max(-largest, min(largest, value))


def _real(request: RequestView, name: str, default: float) -> float:
    value = request.get(name)
    return float(_clamped(value)) if _is_number(value) else default


def _whole(request: RequestView, name: str, default: int) -> int:
    value = request.get(name)
    return int(_clamped(value, LARGEST_WHOLE)) if _is_number(value) else default
