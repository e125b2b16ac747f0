"""Log probabilities are there, and wrong: tokens, offsets, values, alternatives."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.selftest.edits import Json, choices, logprobs, several, streaming
from conformance.selftest.fault import fault
from conformance.selftest.faults.logprobs import NEEDS, TEXT, VALUES, echoing, scored


@fault(
    Stage.REPLY,
    "logprobs_are_finite",
    needs=NEEDS,
    only=scored,
    variants=("plain", "streamed"),
    also=VALUES,
    imitates="Values were positive: logits that nobody had normalised.",
)
def values_are_positive(documents: list[Json], call: Call) -> list[Json]:
    """Values are logits, not log probabilities, and some are positive."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = [None if one is None else one + 12 for one in lists["token_logprobs"]]
        lists["top_logprobs"] = [
            one if one is None else {name: value + 12 for name, value in one.items()} for one in lists["top_logprobs"]
        ]
    return documents


@fault(
    Stage.REPLY,
    "logprobs_are_finite",
    needs=NEEDS,
    only=scored,
    also=(
        *VALUES,
        *TEXT,
        "plain_is_one_json_text",
        "stream_payloads_are_json",
        "every_choice_finishes",
        "twin_text_agrees",
        "choices_are_complete",
        "twin_choices_agree",
        "twin_logprobs_agree",
        "usage_chunk_is_sent",
        "logprobs_are_returned",
        "logprobs_change_nothing",
        "choices_agree_when_greedy",
        "zero_logprobs_means_sampled_only",
        "logprobs_cover_echo",
        "choices_are_in_order",
        "choice_indices_are_unique",
        "best_of_returns_n",
        "twin_finish_agrees",
        "bias_bans",
    ),
    imitates="A token of no probability had minus infinity for a value.",
)
def impossible_values_are_strings(documents: list[Json], call: Call) -> list[Json]:
    """A very small value is the string "-inf"."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = ["-inf" if one is not None and one < -2 else one for one in lists["token_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "first_echo_logprob_is_null_or_number",
    needs=(*NEEDS, "echo"),
    only=echoing,
    also=("logprobs_are_finite", "plain_field_conforms", "chunk_field_conforms"),
)
def first_echoed_value_is_a_word(documents: list[Json], call: Call) -> list[Json]:
    """With echo, the first token has the string "NaN" for a value."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = ["NaN" if one is None else one for one in lists["token_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "tokens_join_to_text",
    needs=NEEDS,
    only=scored,
    variants=("plain", "streamed"),
    also=TEXT,
    imitates="Tokens had lost their leading spaces.",
)
def tokens_lose_their_spaces(documents: list[Json], call: Call) -> list[Json]:
    """Tokens come without their leading spaces."""
    for lists in logprobs(documents):
        lists["tokens"] = [token.strip(" ") for token in lists["tokens"]]
    return documents


@fault(
    Stage.REPLY,
    "tokens_join_to_text",
    needs=NEEDS,
    only=lambda call: scored(call) and several(call),
    also=(
        "top_logprobs_have_n",
        "length_means_the_limit",
        "logprobs_are_finite",
        *TEXT,
        "logprobs_count_the_tokens",
        "twin_logprobs_agree",
        "logprob_lists_are_parallel",
    ),
)
def tokens_are_those_of_the_first_choice(documents: list[Json], call: Call) -> list[Json]:
    """With several choices, all have the tokens of the first."""
    first = next((choice for choice in choices(documents) if choice.get("logprobs")), None)
    for choice in choices(documents):
        if first is not None and choice.get("logprobs"):
            choice["logprobs"] = first["logprobs"]
    return documents


@fault(Stage.REPLY, "text_offsets_follow_tokens", needs=NEEDS, only=scored, imitates="Every offset was -1.")
def offsets_are_minus_one(documents: list[Json], call: Call) -> list[Json]:
    """Every offset is -1."""
    for lists in logprobs(documents):
        lists["text_offset"] = [-1 for _ in lists["text_offset"]]
    return documents


@fault(
    Stage.REPLY,
    "text_offsets_follow_tokens",
    needs=NEEDS,
    only=lambda call: scored(call) and call.streamed,
    also=("twin_logprobs_agree",),
)
def offsets_start_again_with_each_chunk(documents: list[Json], call: Call) -> list[Json]:
    """Offsets of a stream count from the beginning of each chunk."""
    for lists in logprobs(documents):
        first = (lists["text_offset"] or [0])[0]
        lists["text_offset"] = [one - first for one in lists["text_offset"]]
    return documents


@fault(
    Stage.REPLY,
    "text_offsets_follow_tokens",
    needs=(*NEEDS, "echo"),
    only=lambda call: echoing(call) and call.streamed,
    also=("twin_logprobs_agree",),
    imitates="With echo, offsets after the first chunk missed the prompt's length.",
)
def offsets_forget_the_echo(documents: list[Json], call: Call) -> list[Json]:
    """With echo, offsets of later chunks are short of the prompt's length."""
    for choice in choices(documents):
        length = len(call.params.prompts[choice["index"] // call.params.n].text)
        if lists := choice.get("logprobs"):
            lists["text_offset"] = [one - length if one >= length else one for one in lists["text_offset"]]
    return documents


@fault(Stage.REPLY, "text_offsets_follow_tokens", needs=NEEDS, only=scored, also=("twin_logprobs_agree",))
def offsets_count_tokens(documents: list[Json], call: Call) -> list[Json]:
    """Offsets count tokens, not characters."""
    for lists in logprobs(documents):
        first = (lists["text_offset"] or [0])[0]
        lists["text_offset"] = [first + place for place, _ in enumerate(lists["text_offset"])]
    return documents


@fault(
    Stage.REPLY,
    "top_logprobs_have_n",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 2,
    variants=("plain", "streamed"),
    also=("sampled_token_is_listed",),
)
def alternatives_are_two_at_most(documents: list[Json], call: Call) -> list[Json]:
    """At most two tokens are listed, whatever was asked for."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [one if one is None else dict(list(one.items())[:2]) for one in lists["top_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "top_logprobs_have_n",
    needs=NEEDS,
    only=scored,
    also=("zero_logprobs_means_sampled_only", "top_logprobs_are_plausible"),
)
def alternatives_are_always_many(documents: list[Json], call: Call) -> list[Json]:
    """Ten tokens more are listed than were asked for."""
    extra = {f" q{place}": -20.0 - place for place in range(10)}
    for lists in logprobs(documents):
        lists["top_logprobs"] = [one if one is None else {**one, **extra} for one in lists["top_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "sampled_token_is_listed",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 0,
    also=("top_logprobs_have_n",),
)
def sampled_token_is_not_among_the_best(documents: list[Json], call: Call) -> list[Json]:
    """The sampled token is listed only where it is one of the best."""
    for lists in logprobs(documents):
        best = [
            one if one is None else dict(list(one.items())[: call.params.logprobs or 0])
            for one in lists["top_logprobs"]
        ]
        lists["top_logprobs"] = best
    return documents


@fault(
    Stage.REPLY,
    "top_logprobs_are_plausible",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 1,
    variants=("plain", "streamed"),
    also=("logprobs_are_finite",),
    imitates="Values were not a log-softmax.",
)
def alternatives_are_probabilities_halved(documents: list[Json], call: Call) -> list[Json]:
    """Alternatives have a hundredth of their log probability, so that together they exceed 1."""
    for lists in logprobs(documents):
        lists["top_logprobs"] = [
            one if one is None else {name: value / 100 for name, value in one.items()} for one in lists["top_logprobs"]
        ]
    return documents


@fault(
    Stage.REPLY,
    "top_logprobs_are_plausible",
    needs=NEEDS,
    only=lambda call: (call.params.logprobs or 0) > 0,
    also=("filter_bounds_the_choice",),
)
def alternatives_are_those_of_the_next_token(documents: list[Json], call: Call) -> list[Json]:
    """The value of a token and the alternatives beside it belong to different steps."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = [None if one is None else one - 1.5 for one in lists["token_logprobs"]]
    return documents


@fault(
    Stage.REPLY,
    "logprobs_are_not_all_zero",
    needs=NEEDS,
    only=scored,
    also=("top_logprobs_are_plausible",),
    imitates="Every value was 0.0.",
)
def values_are_all_zero(documents: list[Json], call: Call) -> list[Json]:
    """Every value is 0."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = [None if one is None else 0.0 for one in lists["token_logprobs"]]
        lists["top_logprobs"] = [
            None if one is None else {name: 0.0 if name == token else value - 40 for name, value in one.items()}
            for token, one in zip(lists["tokens"], lists["top_logprobs"], strict=True)
        ]
    return documents


@fault(Stage.REPLY, "twin_logprobs_agree", needs=NEEDS, only=lambda call: scored(call) and streaming(call), also=VALUES)
def values_are_rounded_in_streams(documents: list[Json], call: Call) -> list[Json]:
    """A stream has its values rounded to whole numbers."""
    for lists in logprobs(documents):
        lists["token_logprobs"] = [one if one is None else float(round(one - 1)) for one in lists["token_logprobs"]]
        lists["top_logprobs"] = [
            one if one is None else {name: float(round(value - 1)) for name, value in one.items()}
            for one in lists["top_logprobs"]
        ]
    return documents
