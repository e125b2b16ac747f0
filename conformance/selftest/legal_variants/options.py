"""Legal choices of the reference's options, and other legal models."""

from __future__ import annotations

from conformance.reference.language_model import Endings
from conformance.reference.tokenizer import Tokenizer
from conformance.selftest.legal_variant import option_variant

# The model and its tokenizer.

option_variant("texts_end_often", "The model often ends its texts early.", model={"endings": Endings.OFTEN})
option_variant(
    "texts_end_after_a_token_or_two",
    "The model ends nearly every text after one token or two.",
    model={"endings": Endings.EARLY},
)
option_variant(
    "texts_end_at_once", "The model ends every text at once, without a token.", model={"endings": Endings.AT_ONCE}
)
option_variant("texts_never_end", "The model never ends a text by itself.", model={"endings": Endings.NEVER})
option_variant(
    "prompts_have_a_start_token",
    "Each prompt begins with a start token, which is counted.",
    model={"tokenizer": Tokenizer(bos=True)},
)
option_variant(
    "tokens_are_bytes", "The tokenizer has one token for each byte.", model={"tokenizer": Tokenizer(bytewise=True)}
)
option_variant("the_model_is_certain", "The model is always certain of the next token.", model={"certainty": 60.0})
option_variant("context_is_short", "The context holds 640 tokens.", model={"context": 640})
option_variant("context_is_tiny", "The context holds 200 tokens.", model={"context": 200})
option_variant("context_is_endless", "The context holds any number of tokens.", model={"context": 10**12})
option_variant(
    "greedy_is_best_effort",
    "The same request at temperature 0 sometimes gives another text.",
    greedy_is_nondeterministic=True,
)

# Log probabilities.

option_variant(
    "offsets_count_from_zero", "text_offset counts from the completion's first character.", offsets_from_zero=True
)
option_variant(
    "first_echoed_logprob_is_zero", "An echoed prompt's first token has the log probability 0.", first_logprob=0.0
)
option_variant("one_more_alternative", "One alternative more is listed than requested.", extra_alternative=True)
option_variant(
    "logprobs_are_absent_unasked",
    "Choices have no `logprobs` unless requested, where the member is optional.",
    unasked_logprobs="absent",
)
option_variant(
    "parts_of_characters_are_named",
    "A token that is a part of a character is listed as bytes:\\xf0.",
    bytes_are_named=True,
)

# Chunks.

option_variant("chunks_hold_several_tokens", "A chunk holds up to five tokens.", tokens_per_chunk=5)
option_variant("stream_is_one_chunk", "A chunk holds the complete text of a choice.", tokens_per_chunk=100_000)
option_variant("finish_comes_alone", "The finish reason comes in a chunk without text.", finish_alone=True)
option_variant("finish_comes_twice", "The finish reason is repeated in a chunk without text.", finish_twice=True)
option_variant("choices_finish_together", "One chunk has the finish reasons of all choices.", finish_together=True)
option_variant(
    "finish_has_empty_lists",
    "The finish chunk has log probabilities: four empty lists.",
    finish_has_empty_lists=True,
    finish_alone=True,
)
option_variant("streams_open_without_text", "The first chunk of each choice has no text.", opening_chunk=True)
option_variant("choices_follow_one_another", "The choices of a stream are not interleaved.", choices_in_sequence=True)

# Counts, refusals, names and times.

option_variant("the_end_is_counted", "The end-of-text token counts as a completion token.", counts_end_token=True)
option_variant("open_points_are_refused", "Requests of unspecified validity are refused.", lenient=False)
option_variant(
    "invalid_is_422", "Invalid requests get 422, where neither 400 nor 422 is documented.", invalid_status=422
)
option_variant(
    "model_goes_by_another_name",
    "Replies name the dated snapshot that served the request.",
    alias="reference:2026-01-01-v2",
)
option_variant("answers_take_their_time", "Each reply begins after a fifth of a second.", latency=0.2)
