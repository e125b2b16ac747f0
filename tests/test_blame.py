"""A defect breaks the rows that name it, and no row about something else."""

import pytest

from conformance.model import BROKEN, Outcome
from conformance.selftest.faults import FAULTS
from conformance.selftest.mutation_testing import baseline


def verdicts(fault, provider="openai", profile="gate"):
    _, made = baseline(provider, profile).run(faults=(FAULTS[fault],))
    return {verdict.requirement.id: verdict for verdict in made.verdicts}


def broken(fault, **where):
    return {name for name, verdict in verdicts(fault, **where).items() if verdict.outcome in BROKEN}


@pytest.mark.parametrize("fault", ["n_is_ignored_in_batches", "n_is_ignored_when_plain", "n_is_ignored_when_streamed"])
def test_choices_that_are_lost_in_a_batch_are_no_matter_of_their_texts_and_offsets(fault):
    assert broken(fault) <= {"choices.complete", "choices.best-of", "relations.twin.choices"}


@pytest.mark.parametrize("fault", ["n_is_ignored_when_streamed", "index_counts_the_chunks"])
def test_choices_that_a_stream_does_not_have_are_no_matter_of_stop_echo_or_seed(fault):
    named = broken(fault)
    assert "choices.complete" in named
    assert not {name for name in named if name.startswith(("stop.", "echo.", "effects.seed", "relations.many"))}


@pytest.mark.slow
def test_an_index_that_is_no_prompts_is_compared_with_no_prompt():
    named = broken("n_is_ignored_when_streamed", profile="full")
    assert "relations.twin.choices" in named
    assert named.isdisjoint({"choices.batch", "relations.many", "relations.batch", "echo.prefix", "stop.never"})


def test_a_text_that_every_stream_loses_is_no_matter_of_stop_sequences():
    named = broken("second_chunk_is_lost")
    assert "relations.twin.text" in named
    assert not {name for name in named if name.startswith("stop.")}


@pytest.mark.slow
def test_a_plain_reply_that_plain_replies_contradict_is_blamed_whatever_a_stream_has():
    assert broken("bans_are_ignored_when_plain", profile="full") == {"effects.bias.ban"}


@pytest.mark.parametrize(
    ("fault", "row"),
    [
        ("streams_are_500", "request.stream.accepts"),
        ("null_prompt_is_500", "request.prompt.null"),
        ("temperature_below_0_is_500", "request.temperature.minimum"),
    ],
)
def test_the_row_that_names_a_server_error_is_broken(fault, row):
    assert row in broken(fault)


@pytest.mark.parametrize("fault", ["zero_tokens_kill", "hostile_requests_kill"])
@pytest.mark.slow
def test_a_target_that_stops_answering_is_broken_and_what_came_last_is_named(fault):
    alive = verdicts(fault, profile="full")["robustness.alive"]
    assert alive.outcome is Outcome.FAIL
    assert "no response to 8 requests, first to" in alive.reason
    assert "was answered, nor to 3 that had been answered before" in alive.reason


@pytest.mark.slow
def test_hundreds_of_choices_are_judged_in_time():
    assert "choices.complete" in broken("index_counts_the_chunks", profile="full")
