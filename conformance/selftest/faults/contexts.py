"""A promise is broken in one context only: in streams, in batches, beside another parameter, for the second choice.

Servers build each kind of reply on a path of its own, and forget a parameter on one of them. `PROMISES` says what goes
wrong, `CONTEXTS` where; the faults are their products, less those of a context that the promise is about itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from zlib import crc32

from conformance.model import Contract, Validity
from conformance.reference.alterations import Alteration, Call, Change, Stage
from conformance.reference.core import texts_of
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.messages import Refusal
from conformance.reference.responses import Text
from conformance.selftest.edits import (
    Json,
    choices,
    length_reason,
    logprobs,
    several,
    several_prompts,
    stop_reason,
    streaming,
    wants_usage,
    with_counts,
    with_reason,
    with_sampling,
    with_text,
)
from conformance.selftest.fault import REGISTERED, Condition, Fault, conditional

EVERYWHERE: Final = (
    "relations", "effects", "stop", "echo", "usage", "logprobs", "choices", "limits", "stream", "tokens", "errors",
    "schema", "unicode", "concurrency", "robustness", "finish",
)  # fmt: skip


Position: TypeAlias = Callable[[Text, Call], bool]


@dataclass(frozen=True)
class RequestContext:
    """A context: the calls that are in it, in words, the parameters that it needs, and those that it is about."""

    holds: Condition
    words: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Broken:
    """What goes wrong: the change, in words, the check that detects it, and others that do so as well in a context."""

    change: Callable[[Any, Call], Any]
    words: str
    stage: Stage
    check: str
    others: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    not_in: frozenset[str] = frozenset()
    fits: Callable[[Contract], bool] | None = None


def _has_ids(call: Call) -> bool:
    return any(prompt.given_as_tokens for prompt in call.params.prompts)


CONTEXTS: Final[Mapping[str, RequestContext]] = {
    "streams": RequestContext(streaming, "in streams"),
    "usage_streams": RequestContext(wants_usage, "in streams with usage", ("stream_options",)),
    "batches": RequestContext(several_prompts, "in batches"),
    "n": RequestContext(lambda call: call.params.n > 1, "beside n", ("n",)),
    "best_of": RequestContext(lambda call: call.params.best_of > call.params.n, "beside best_of", ("best_of",)),
    "echo": RequestContext(lambda call: call.params.echo, "beside echo", ("echo",)),
    "logprobs": RequestContext(lambda call: call.params.logprobs is not None, "beside logprobs", ("logprobs",)),
    "suffix": RequestContext(lambda call: bool(call.params.suffix), "beside a suffix", ("suffix",)),
    "ids": RequestContext(_has_ids, "with token ids"),
    "one_token": RequestContext(lambda call: call.params.max_tokens == 1, "with max_tokens 1", ("max_tokens",)),
}
PAIRS: Final = (
    ("streams", "batches"), ("streams", "n"), ("streams", "echo"), ("streams", "logprobs"), ("streams", "ids"),
    ("streams", "suffix"), ("usage_streams", "n"), ("usage_streams", "batches"), ("batches", "n"), ("batches", "echo"),
    ("batches", "logprobs"), ("n", "echo"), ("n", "logprobs"), ("echo", "logprobs"), ("best_of", "echo"),
    ("best_of", "logprobs"), ("best_of", "batches"), ("ids", "echo"), ("ids", "n"), ("suffix", "n"),
)  # fmt: skip


# A refused request builds no reply, so these are the contexts in which it may be parsed by other code.
PARSED_APART: Final = frozenset({"streams", "usage_streams", "batches", "n"})
# Which choices of a reply are wrong where only some are, in words, and the parameters that this needs.
POSITIONS: Final[Mapping[str, tuple[str, Position, tuple[str, ...]]]] = {
    "second_choices": ("for the second choice of a prompt", lambda text, call: text.index % call.params.n == 1, ("n",)),
    "later_prompts": ("for every prompt but the first", lambda text, call: text.index >= call.params.n, ()),
}


def _both(first: RequestContext, second: RequestContext) -> RequestContext:
    return RequestContext(
        lambda call: first.holds(call) and second.holds(call),
        f"{first.words} {second.words}" if first.words.startswith("in") else f"{first.words} and {second.words}",
        (*first.needs, *second.needs),
    )


# Changes of parameters.


def _without_stops(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, stops=())


def _without_bias(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, bias={})


def _never_cold(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, temperature=1.0) if params.sampling.temperature == 0 else params


def _always_cold(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, temperature=0.0)


def _without_seed(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, seed=None)


def _without_top_p(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, top_p=1.0)


def _without_top_k(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, top_k=0)


def _without_presence(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, presence=0.0)


def _without_frequency(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, frequency=0.0)


def _without_repetition(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_sampling(params, repetition=1.0)


def _without_suffix(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, suffix="")


def _without_echo(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, echo=False)


def _without_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, n=1, best_of=1) if params.n > 1 else params


def _without_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, logprobs=None)


def _one_alternative(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, logprobs=1) if (params.logprobs or 0) > 1 else params


def _one_more_token(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, max_tokens=params.max_tokens + 1) if params.max_tokens else params


def _without_format(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, output=None)


# Changes of the reply.


def _prompt_counted_twice(usage: Json, call: Call) -> Json:
    return with_counts(usage, prompt_tokens=2 * usage["prompt_tokens"] + 3)


def _one_token_added(usage: Json, call: Call) -> Json:
    return with_counts(usage, completion_tokens=usage["completion_tokens"] + 1)


def _total_is_completion(usage: Json, call: Call) -> Json:
    return {**usage, "total_tokens": usage["completion_tokens"]}


def _no_usage(usage: Json, call: Call) -> None:
    return None


def _length_called_stop(documents: list[Json], call: Call) -> list[Json]:
    return with_reason(documents, stop_reason(call), length_reason(call))


def _stop_called_length(documents: list[Json], call: Call) -> list[Json]:
    return with_reason(documents, length_reason(call), stop_reason(call))


def _no_reason(documents: list[Json], call: Call) -> list[Json]:
    return with_reason(documents, None)


def _ids_move(documents: list[Json], call: Call) -> list[Json]:
    return [
        {**document, "id": document["id"] if not at else f"{document['id']}-{at}"}
        for at, document in enumerate(documents)
    ]


def _same_index(documents: list[Json], call: Call) -> list[Json]:
    for choice in choices(documents):
        choice["index"] = 0
    return documents


def _indices_reversed(documents: list[Json], call: Call) -> list[Json]:
    last = max((choice["index"] for choice in choices(documents)), default=0)
    for choice in choices(documents):
        choice["index"] = last - choice["index"]
    return documents


def _offsets_shifted(documents: list[Json], call: Call) -> list[Json]:
    for lists in logprobs(documents):
        lists["text_offset"] = [offset + at for at, offset in enumerate(lists["text_offset"])]
    return documents


def _offsets_from_zero(documents: list[Json], call: Call) -> list[Json]:
    for lists in logprobs(documents):
        first = lists["text_offset"][0] if lists["text_offset"] else 0
        lists["text_offset"] = [offset - first for offset in lists["text_offset"]]
    return documents


def _last_token_unlisted(documents: list[Json], call: Call) -> list[Json]:
    for lists in logprobs(documents):
        for name, column in lists.items():
            if isinstance(column, list):
                lists[name] = column[:-1]
    return documents


def _alternatives_short(documents: list[Json], call: Call) -> list[Json]:
    for lists in logprobs(documents):
        tops = lists.get("top_logprobs") or []
        lists["top_logprobs"] = [dict(list(top.items())[:1]) if top else top for top in tops]
    return documents


def _values_halved(documents: list[Json], call: Call) -> list[Json]:
    for lists in logprobs(documents):
        lists["token_logprobs"] = [value and value / 2 for value in lists["token_logprobs"]]
    return documents


def _first_character_lost(texts: list[Text], call: Call) -> list[Text]:
    return [with_text(text, text.generation.text[1:]) for text in texts]


def _ascii_only(texts: list[Text], call: Call) -> list[Text]:
    return [with_text(text, text.generation.text.encode("ascii", "ignore").decode()) for text in texts]


def _same_text(texts: list[Text], call: Call) -> list[Text]:
    return [replace(text, generation=texts[0].generation) for text in texts]


# Refusals.


def _without(kinds: set[str]) -> Callable[[Refusal | None, Call], Refusal | None]:
    def change(refusal: Refusal | None, call: Call) -> Refusal | None:
        if refusal is None or refusal.first.kind not in kinds:
            return refusal
        call.params = replace(call.params, model=call.reference.models[0])
        return None

    return change


PARAMETERS, USAGE, REPLY, TEXTS, REFUSAL = Stage.PARAMETERS, Stage.USAGE, Stage.REPLY, Stage.TEXTS, Stage.REFUSAL
SAME_TEXTS: Final = ("twin_text_agrees", "batch_is_singles", "choices_agree_when_greedy", "longer_limit_extends")
PROMISES: Final[Mapping[str, Broken]] = {
    "stop_is_ignored": Broken(
        _without_stops,
        "Stop sequences are ignored",
        PARAMETERS,
        "stop_text_is_as_promised",
        ("stop_cuts_earliest",),
        ("stop",),
    ),
    "bias_is_ignored": Broken(
        _without_bias, "The bias is ignored", PARAMETERS, "bias_forces", SAME_TEXTS, ("logit_bias",)
    ),
    "temperature_0_is_ignored": Broken(
        _never_cold,
        "A temperature of 0 is treated as absent",
        PARAMETERS,
        "greedy_repeats",
        (
            *SAME_TEXTS,
            "echo_adds_only_the_prompt",
            "stop_that_never_matches",
            "logprobs_change_nothing",
            "null_is_absent",
            "default_is_explicit",
        ),
        ("temperature",),
    ),
    "temperature_is_always_0": Broken(
        _always_cold,
        "The likeliest token is taken at any temperature",
        PARAMETERS,
        "sampling_varies",
        ("parameter_spreads_texts",),
        ("temperature",),
    ),
    "seed_is_ignored": Broken(_without_seed, "A seed is ignored", PARAMETERS, "seed_repeats", (), ("seed",)),
    "top_p_is_ignored": Broken(
        _without_top_p,
        "top_p is ignored",
        PARAMETERS,
        "narrow_sampling_is_greedy",
        ("filter_bounds_the_choice",),
        ("top_p",),
    ),
    "top_k_is_ignored": Broken(
        _without_top_k,
        "top_k is ignored",
        PARAMETERS,
        "narrow_sampling_is_greedy",
        ("filter_bounds_the_choice",),
        ("top_k",),
    ),
    "presence_is_ignored": Broken(
        _without_presence,
        "The presence penalty is ignored",
        PARAMETERS,
        "penalty_reduces_repetition",
        SAME_TEXTS,
        ("presence_penalty",),
        frozenset({"one_token"}),
    ),
    "frequency_is_ignored": Broken(
        _without_frequency,
        "The frequency penalty is ignored",
        PARAMETERS,
        "penalty_reduces_repetition",
        SAME_TEXTS,
        ("frequency_penalty",),
        frozenset({"one_token"}),
    ),
    "repetition_is_ignored": Broken(
        _without_repetition,
        "The repetition penalty is ignored",
        PARAMETERS,
        "penalty_reduces_repetition",
        SAME_TEXTS,
        ("repetition_penalty",),
        frozenset({"one_token", "suffix", "best_of"}),  # no document has these beside it
    ),
    "suffix_is_ignored": Broken(
        _without_suffix,
        "A suffix is ignored",
        PARAMETERS,
        "suffix_is_used",
        SAME_TEXTS,
        ("suffix",),
        frozenset({"suffix"}),
    ),
    "echo_is_ignored": Broken(
        _without_echo, "echo is ignored", PARAMETERS, "echo_begins_with_prompt", (), ("echo",), frozenset({"echo"})
    ),
    "n_is_ignored": Broken(
        _without_n, "n is ignored", PARAMETERS, "choices_are_complete", (), ("n",), frozenset({"n"})
    ),
    "logprobs_are_left_out": Broken(
        _without_logprobs,
        "Log probabilities are left out",
        PARAMETERS,
        "logprobs_are_returned",
        (),
        ("logprobs",),
        frozenset({"logprobs"}),
    ),
    "alternatives_are_one": Broken(
        _one_alternative,
        "Each position has one alternative",
        PARAMETERS,
        "top_logprobs_have_n",
        (),
        ("logprobs",),
        frozenset({"logprobs"}),
    ),
    "limit_is_exceeded": Broken(
        _one_more_token,
        "A text has one token more than max_tokens",
        PARAMETERS,
        "completion_tokens_within_limit",
        ("logprobs_count_the_tokens",),
        ("max_tokens",),
    ),
    "format_is_ignored": Broken(
        _without_format, "response_format is ignored", PARAMETERS, "json_is_valid", (), ("response_format",)
    ),
    "prompt_tokens_are_doubled": Broken(
        _prompt_counted_twice,
        "The prompt is counted twice and with a margin",
        USAGE,
        "batch_usage_is_the_sum",
        ("twin_usage_agrees", "prompt_tokens_match_ids", "logprobs_count_the_tokens"),
    ),
    "one_token_is_added": Broken(
        _one_token_added,
        "completion_tokens is one too many",
        USAGE,
        "completion_tokens_within_limit",
        ("batch_usage_is_the_sum", "twin_usage_agrees", "logprobs_count_the_tokens"),
    ),
    "total_is_completion": Broken(_total_is_completion, "total_tokens leaves out the prompt", USAGE, "usage_adds_up"),
    "usage_is_left_out": Broken(
        _no_usage, "Usage is left out", USAGE, "usage_chunk_is_sent", ("plain_field_conforms",)
    ),
    "length_is_called_stop": Broken(
        _length_called_stop,
        "A text that the limit cut finishes with stop",
        REPLY,
        "cut_text_finishes_with_length",
        ("length_uses_the_limit", "twin_finish_agrees", "batch_is_singles"),
    ),
    "stop_is_called_length": Broken(
        _stop_called_length,
        "A text that a stop sequence cut finishes with length",
        REPLY,
        "stop_finishes_with_stop",
        ("length_means_the_limit",),
        ("stop",),
    ),
    "reason_is_null": Broken(_no_reason, "finish_reason is null", REPLY, "every_choice_finishes"),
    "ids_change": Broken(_ids_move, "Each chunk has another id", REPLY, "chunks_share_one_id"),
    "index_is_0": Broken(
        _same_index, "Each choice has index 0", REPLY, "choices_are_complete", ("choice_indices_are_unique",)
    ),
    "indices_are_reversed": Broken(
        _indices_reversed, "Indices count down", REPLY, "batch_is_singles", ("batch_order_holds", "twin_text_agrees")
    ),
    "offsets_are_shifted": Broken(
        _offsets_shifted, "Offsets grow too fast", REPLY, "text_offsets_follow_tokens", (), ("logprobs",)
    ),
    "offsets_begin_at_0": Broken(
        _offsets_from_zero,
        "Offsets begin at 0",
        REPLY,
        "text_offsets_follow_tokens",
        ("twin_logprobs_agree",),
        ("logprobs",),
    ),
    "last_token_is_unlisted": Broken(
        _last_token_unlisted, "The last token has no log probability", REPLY, "tokens_join_to_text", (), ("logprobs",)
    ),
    "alternatives_are_lost": Broken(
        _alternatives_short, "All alternatives but the first are lost", REPLY, "top_logprobs_have_n", (), ("logprobs",)
    ),
    "values_are_halved": Broken(
        _values_halved,
        "Log probabilities are half of what they are",
        REPLY,
        "top_logprobs_are_plausible",
        ("twin_logprobs_agree",),
        ("logprobs",),
    ),
    "first_character_is_lost": Broken(
        _first_character_lost,
        "Texts lack their first character",
        TEXTS,
        "twin_text_agrees",
        (*SAME_TEXTS, "tokens_join_to_text", "echo_adds_only_the_prompt"),
    ),
    "other_characters_are_lost": Broken(
        _ascii_only, "Characters that are not ASCII are lost", TEXTS, "twin_text_agrees", SAME_TEXTS
    ),
    "choices_have_one_text": Broken(
        _same_text,
        "All choices have the text of the first",
        TEXTS,
        "sampling_varies",
        ("batch_is_singles", "batch_order_holds"),
    ),
    "ranges_are_unchecked": Broken(
        _without({"out_of_range"}),
        "Numbers out of range are accepted",
        REFUSAL,
        "invalid_is_refused",
        fits=lambda contract: any(limit.binding for limit in contract.limits),
    ),
    "types_are_unchecked": Broken(
        _without({"invalid_type"}), "Values of another type are accepted", REFUSAL, "invalid_is_refused"
    ),
    "combinations_are_unchecked": Broken(
        _without({"invalid_combination"}),
        "Forbidden combinations are accepted",
        REFUSAL,
        "invalid_is_refused",
        fits=lambda contract: any(
            rule.validity is Validity.INVALID and "prompt" not in rule.example for rule in contract.combinations
        ),
    ),
    "unknown_models_are_served": Broken(
        _without({"model_not_found"}), "Unknown models are served", REFUSAL, "invalid_is_refused", ()
    ),
    "long_prompts_are_accepted": Broken(
        _without({"context_length_exceeded"}), "Prompts beyond the context are accepted", REFUSAL, "context_overflow"
    ),
    "absence_is_accepted": Broken(
        _without({"missing"}), "Required members may be absent", REFUSAL, "invalid_is_refused"
    ),
}


def _contexts(broken: Broken) -> Iterator[tuple[str, RequestContext]]:
    """The contexts that a promise can be broken in, by name: those of one member, and pairs of them."""
    of_one_member = {name: context for name, context in CONTEXTS.items() if name not in broken.not_in}
    if broken.stage is Stage.REFUSAL:
        of_one_member = {name: context for name, context in of_one_member.items() if name in PARSED_APART}
    yield from of_one_member.items()
    for first, second in PAIRS:
        if {first, second} <= of_one_member.keys():
            yield f"{first}_{second}", _both(of_one_member[first], of_one_member[second])


def _crossed() -> Iterator[Fault]:
    for name, broken in PROMISES.items():
        for context_name, context in _contexts(broken):
            yield _fault(f"{name}_in_{context_name}", broken, context, broken.stage, broken.change)
        if broken.stage is Stage.PARAMETERS and "n" not in broken.needs:
            for context_name, (words, holds, needs) in POSITIONS.items():
                context = RequestContext(several, words, needs)
                yield _fault(f"{name}_for_{context_name}", broken, context, Stage.TEXTS, _at(holds, broken.change))


def _fault(name: str, broken: Broken, context: RequestContext, stage: Stage, change: Change) -> Fault:
    return Fault(
        name=name,
        says=f"{broken.words} {context.words}.",
        check=broken.check,
        alteration=Alteration(name, stage, conditional(change, [context.holds])),
        others=broken.others,
        besides=EVERYWHERE,
        needs=(*broken.needs, *context.needs),
        fits=broken.fits,
        module="contexts",
    )


def _at(holds: Position, change: Change) -> Change:
    """The texts of the choices at a position as they are after a change of the parameters."""

    def altered(texts: list[Text], call: Call) -> list[Text]:
        others = texts_of(replace(call, params=change(call.params, call)))
        return [other if holds(text, call) else text for text, other in zip(texts, others, strict=True)]

    return altered


CROSSED: Final[Mapping[str, Fault]] = {fault.name: fault for fault in _crossed()}
"""All of them."""
SHARE: Final = 8
"""One of this number belongs to the catalogue of faults, chosen by the hash of its name: all would take hours."""
REGISTERED.update({name: fault for name, fault in CROSSED.items() if crc32(name.encode()) % SHARE == 0})
