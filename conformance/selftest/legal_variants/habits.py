"""Habits of models and servers that every contract leaves free."""

from __future__ import annotations

from conformance.reference.language_model import Endings
from conformance.reference.tokenizer import Tokenizer
from conformance.selftest.legal_variant import option_variant

option_variant("texts_end_often", "The model likes to end its texts early.", model={"endings": Endings.OFTEN})
option_variant("texts_end_at_once", "The model has nothing to say.", model={"endings": Endings.AT_ONCE})
option_variant("texts_never_end", "The model never ends a text by itself.", model={"endings": Endings.NEVER})
option_variant(
    "prompts_have_a_start_token",
    "Each prompt is opened by a token that is counted.",
    model={"tokenizer": Tokenizer(bos=True)},
)
option_variant(
    "tokens_are_bytes", "The tokenizer has one token for each byte.", model={"tokenizer": Tokenizer(bytewise=True)}
)
option_variant(
    "the_model_is_certain", "The model never has any doubt which token comes next.", model={"certainty": 60.0}
)
option_variant("context_is_short", "The model holds few tokens.", model={"context": 640})
option_variant("context_is_tiny", "The model holds hardly more than a paragraph.", model={"context": 200})
option_variant(
    "context_is_endless", "There is no number of tokens that the model cannot hold.", model={"context": 10**12}
)
option_variant(
    "offsets_count_from_zero", "text_offset counts from the completion's first character.", offsets_from_zero=True
)
option_variant(
    "first_echoed_logprob_is_zero", "An echoed prompt's first token has the log probability 0.", first_logprob=0.0
)
option_variant(
    "one_more_alternative", "Each position lists one token more than was asked for.", one_more_alternative=True
)
option_variant(
    "logprobs_are_absent_unasked",
    "Choices have no `logprobs` unless asked, where it is optional.",
    unasked_logprobs="absent",
)
option_variant("chunks_hold_several_tokens", "A chunk holds up to five tokens.", tokens_per_chunk=5)
option_variant("stream_is_one_chunk", "A chunk holds a whole text.", tokens_per_chunk=100_000)
option_variant("finish_comes_alone", "The finish reason comes on a chunk without text.", finish_alone=True)
option_variant("finish_comes_twice", "The finish reason is repeated on a chunk without text.", finish_twice=True)
option_variant("choices_finish_together", "One chunk brings the finish reasons of all choices.", finish_together=True)
option_variant(
    "finish_has_empty_lists",
    "The finish chunk has log probabilities: four empty lists.",
    finish_has_empty_lists=True,
    finish_alone=True,
)
option_variant("streams_open_without_text", "The first chunk of each choice has no text.", opening_chunk=True)
option_variant("choices_follow_one_another", "The choices of a stream are not interleaved.", one_after_another=True)
option_variant("the_end_is_counted", "The token that ended a text counts as a completion token.", counts_the_end=True)
option_variant("greedy_is_best_effort", "The same greedy request gives another text now and then.", greedy_varies=True)
option_variant("open_points_are_refused", "What the contract leaves open is turned away.", lenient=False)
option_variant(
    "invalid_is_422", "Invalid requests get 422, where neither 400 nor 422 is documented.", invalid_status=422
)
option_variant(
    "model_goes_by_another_name", "Replies name the snapshot that served the request.", alias="reference:2026-01-01-v2"
)
option_variant("answers_take_their_time", "A fifth of a second passes before each answer.", latency=0.2)
