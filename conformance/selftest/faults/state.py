"""A reply depends on other requests: one like it, a refusal or a left stream before it, the number of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.model.json_text import MISSING, dumps
from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.selftest.edits import with_other_text
from conformance.selftest.fault import Condition, plant
from conformance.selftest.faults.contexts import EVERYWHERE

# A cache of replies whose key lacks a parameter, with the check that shows it.
FORGOTTEN: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "temperature": ("sampling_varies", ("greedy_repeats", "parameter_spreads_texts", "narrow_sampling_is_greedy")),
    "logprobs": ("logprobs_are_returned", ("logprobs_are_not_unasked", "top_logprobs_have_n")),
    "echo": ("echo_begins_with_prompt", ("echo_adds_only_the_prompt",)),
    "suffix": ("suffix_is_used", ()),
    "n": ("choices_are_complete", ()),
    "stop": ("stop_text_is_as_promised", ("stop_cuts_earliest", "stop_that_never_matches")),
    "seed": ("sampling_varies", ("seed_repeats",)),
    "stream": ("stream_has_events", ("plain_is_one_json_text", "plain_declares_json", "stream_declares_event_stream")),
    "max_tokens": ("completion_tokens_within_limit", ("longer_limit_extends", "length_uses_the_limit")),
    "top_p": ("narrow_sampling_is_greedy", ("parameter_spreads_texts", "filter_bounds_the_choice")),
    "logit_bias": ("bias_forces", ("bias_bans",)),
    "presence_penalty": ("penalty_reduces_repetition", ()),
    "frequency_penalty": ("penalty_reduces_repetition", ()),
    "repetition_penalty": ("penalty_reduces_repetition", ()),
    "best_of": ("best_of_is_the_likeliest", ("invalid_is_refused",)),
    "response_format": ("json_is_valid", ()),
}


def _cache_without(name: str) -> Callable[[Any, Call], Any]:
    def change(body: Any, call: Call) -> Any:
        if not isinstance(body, dict):
            return body
        rest = dumps({key: value for key, value in body.items() if key != name})
        cache: dict[str, Any] = call.notes.setdefault(f"cache without {name}", {})
        first = cache.setdefault(rest, body.get(name, MISSING))
        others = {key: value for key, value in body.items() if key != name}
        return others if first is MISSING else {**others, name: first}

    return change


for _name, (_check, _others) in FORGOTTEN.items():
    plant(
        f"cache_forgets_{_name}",
        f"The key of a cache of replies lacks {_name}, so that a request gets the reply to one with another value.",
        Stage.BODY,
        _check,
        _cache_without(_name),
        others=_others,
        also=EVERYWHERE,
        needs=(_name,),
    )


def _counts_are_kept(params: GenerationParameters, call: Call) -> GenerationParameters:
    """Another text each time for a prompt that was penalized before, as if earlier tokens still counted."""
    if not params.sampling.presence and not params.sampling.frequency and params.sampling.repetition == 1:
        return params
    counts: Counter[Any] = call.notes.setdefault("penalized", Counter())
    before = counts[params.prompts]
    counts[params.prompts] += 1
    return replace(params, suffix=params.suffix + "\n" * before)


plant(
    "penalties_count_earlier_texts",
    "Penalties count the tokens of earlier replies to the same prompt.",
    Stage.PARAMETERS,
    "greedy_repeats",
    _counts_are_kept,
    also=EVERYWHERE,
    needs=("presence_penalty",),
)

# What goes wrong in a reply that follows another, or has a certain number.


def _other_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    return with_other_text(params)


def _cut_short(params: GenerationParameters, call: Call) -> GenerationParameters:
    limit = params.max_tokens or 0
    return replace(params, max_tokens=limit - 1) if limit > 1 else params


def _without_stops(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, stops=())


def _unscored(params: GenerationParameters, call: Call) -> GenerationParameters:
    return replace(params, logprobs=None)


# What is wrong, and whether it shows in each reply by itself; else only beside other replies to the same request.
WRONG: Final[Mapping[str, tuple[Callable[..., Any], str, str, tuple[str, ...]]]] = {
    "has_another_text": (_other_text, "has another text", "nothing_is_left_behind", ()),
    "is_cut_short": (_cut_short, "lacks its last token", "length_means_the_limit", ()),
    "ignores_stop": (_without_stops, "ignores its stop sequences", "stop_text_is_as_promised", ("stop",)),
    "is_unscored": (_unscored, "has no log probabilities", "logprobs_are_returned", ("logprobs",)),
}


def _after_refusal(call: Call) -> bool:
    """Whether the request before this one was refused; notes whether this one is."""
    refused = call.reference.memory.last_refused
    return bool(refused and refused == call.number - 1)


def _after_left_stream(call: Call) -> bool:
    """Whether the client of the request before this one left before its end."""
    left = call.reference.memory.last_left
    return bool(left and left == call.number - 1)


def _again(call: Call) -> bool:
    seen: dict[bytes, int] = call.notes.setdefault("seen", {})
    return seen.setdefault(call.request.body, call.number) < call.number


WHEN: Final[Mapping[str, tuple[Condition, str]]] = {
    "after_a_refusal": (_after_refusal, "The reply after a refusal"),
    "after_a_left_stream": (_after_left_stream, "The reply after a stream that its client left"),
    "every_10th": (lambda call: call.number % 10 == 0, "Every tenth reply"),
    "every_50th": (lambda call: call.number % 50 == 0, "Every fiftieth reply"),
    "the_second_time": (_again, "The reply to a request that was sent before"),
    "in_a_crowd": (lambda call: len(call.reference.memory.in_flight) > 1, "A reply among others in progress"),
}
# Where another text is a defect and no matter of chance: nothing but the circumstance differs.
# Where requests with stop sequences follow.
FOLLOWED_BY_STOPS: Final = frozenset({"after_a_refusal", "every_10th", "every_50th"})
ATTRIBUTABLE: Final = frozenset({"after_a_refusal", "after_a_left_stream"})

for _circumstance, (_holds, _subject) in WHEN.items():
    for _name, (_change, _words, _check, _needs) in WRONG.items():
        if _name == "has_another_text" and _circumstance not in ATTRIBUTABLE:
            continue
        if "stop" in _needs and _circumstance not in FOLLOWED_BY_STOPS:
            continue
        if _needs and _circumstance == "after_a_left_stream":  # the base request follows, which has no such member
            continue
        plant(
            f"reply_{_circumstance}_{_name}",
            f"{_subject} {_words}.",
            Stage.PARAMETERS,
            _check,
            _change,
            others=("nothing_is_left_behind", "length_uses_the_limit") if _change is _cut_short else (),
            also=EVERYWHERE,
            needs=_needs,
            only=_holds,
        )
