"""A request body → what the model is asked to do. Total: whatever was let in has a meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.model import Contract, StopText
from conformance.model.json_text import MISSING
from conformance.model.parameter_traits import Role
from conformance.model.request_view import RequestView
from conformance.reference.language_model import LanguageModel
from conformance.reference.sampling import Sampling
from conformance.reference.tokenizer import EOS, SIZE, spell

FAR = 1e4
MOST = 5000  # choices; whoever asks for more is turned away, or, by a fault, given this many


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as text and as tokens; `given_as_tokens` where the client cut it itself."""

    text: str
    tokens: tuple[int, ...]
    given_as_tokens: bool = False


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """What is wanted, every default filled in; what the contract does not document is not here."""

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
    """The members that the contract names, under its defaults; the rest might as well not be there."""
    told = body if isinstance(body, Mapping) else {}
    kept = {name: value for name, value in told.items() if name in contract.parameters}
    return RequestView(kept, contract.defaults)


def read(contract: Contract, body: Any, model: LanguageModel, served: tuple[str, ...]) -> GenerationParameters:
    """The wish that a body expresses."""
    asked = documented(contract, body)
    n = min(max(_whole(asked, "n", 1), 1), MOST)
    limit = asked.get("max_tokens")
    logprobs = asked.get("logprobs")
    seed = asked.get("seed")
    output = asked.get("response_format")
    return GenerationParameters(
        model=_model(contract, asked, served),
        prompts=_prompts(asked, model),
        max_tokens=max(_whole(asked, "max_tokens", 0), 0) if _is_number(limit) else None,
        sampling=_sampling(contract, asked),
        n=n,
        best_of=max(min(_whole(asked, "best_of", n), MOST), n),
        logprobs=max(_whole(asked, "logprobs", 0), 0) if _is_number(logprobs) else None,
        echo=asked.echo,
        stops=asked.stops,
        keep_stop=contract.semantics.stop_text is StopText.INCLUDED,
        suffix=suffix if isinstance(suffix := asked.get("suffix"), str) else "",
        seed=int(seed) if _is_number(seed) and abs(seed) < float("inf") else None,
        stream=asked.stream,
        include_usage=asked.include_usage,
        output=output if isinstance(output, Mapping) else None,
        overflow=behaviour
        if isinstance(behaviour := asked.get(contract.by_role(Role.CONTEXT_OVERFLOW)), str)
        else None,
        tier=asked.get(contract.by_role(Role.REPORTED)),
    )


def _model(contract: Contract, asked: RequestView, served: tuple[str, ...]) -> str:
    """The model that is named, or the first of the fallbacks that is served, or the first that is served at all."""
    fallbacks = asked.get(contract.by_role(Role.FALLBACK_MODELS))
    named = [asked.get("model"), *(fallbacks if isinstance(fallbacks, list) else ())]
    known = [name for name in named if name in served]
    return known[0] if known else next((name for name in named if isinstance(name, str)), served[0])


def _sampling(contract: Contract, asked: RequestView) -> Sampling:
    bias = asked.get("logit_bias")
    pairs = bias.items() if isinstance(bias, Mapping) else ()
    return Sampling(
        temperature=max(_real(asked, "temperature", 1.0), 0.0),
        top_p=_real(asked, "top_p", 1.0),
        top_k=_whole(asked, "top_k", 0),
        probability_floor=_real(asked, contract.by_role(Role.PROBABILITY_FLOOR), 0.0),
        presence=_real(asked, "presence_penalty", 0.0),
        frequency=_real(asked, "frequency_penalty", 0.0),
        repetition=max(_real(asked, "repetition_penalty", 1.0), 1e-3),
        # The vocabulary ends somewhere: an id beyond it can be biased as much as one likes.
        bias={int(key): _near(value) for key, value in pairs if _is_id(key) and _is_number(value)},
        ignore_end=asked.get(contract.by_role(Role.IGNORES_END)) is True,
    )


def _prompts(asked: RequestView, model: LanguageModel) -> tuple[Prompt, ...]:
    given = asked.raw("prompt")
    if given is None or given is MISSING:
        return (Prompt("", (EOS,)),)  # the beginning of a new document
    if isinstance(given, list):
        if given and all(_is_number(item) for item in given):
            return (_from_tokens(given),)
        found = tuple(_from_tokens(one) if isinstance(one, list) else _from_text(one, model) for one in given)
        return found or (_from_text("", model),)
    return (_from_text(given, model),)


def _from_text(text: Any, model: LanguageModel) -> Prompt:
    told = text if isinstance(text, str) else ""
    # A lone surrogate is no character; nobody can be asked to echo it.
    clean = told.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Prompt(clean, model.tokenizer.encode(clean))


def _from_tokens(ids: list[Any]) -> Prompt:
    tokens = tuple(int(_near(item, 2.0**62)) for item in ids if _is_number(item))
    return Prompt("".join(spell(tokens)), tokens, given_as_tokens=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _is_id(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 10 and int(key) < SIZE


def _near(value: float, far: float = FAR) -> float:
    return max(-far, min(far, value))


def _real(asked: RequestView, name: str, otherwise: float) -> float:
    value = asked.get(name)
    return float(_near(value)) if _is_number(value) else otherwise


def _whole(asked: RequestView, name: str, otherwise: int) -> int:
    value = asked.get(name)
    return int(_near(value, 2.0**62)) if _is_number(value) else otherwise
