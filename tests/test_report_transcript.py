"""An exchange as a reader sees it: places found in bytes, long bodies folded, streams drawn over time."""

import json

import fake_runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judge import fixtures as ex
from conformance.report import timeline
from conformance.report.replay_commands import Destination
from conformance.report.source_map import event_of, pointer_of, span
from conformance.report.text import decoded, visible
from conformance.report.transcript import excerpt, transcript

TO = Destination("http://127.0.0.1:9/v1", "/completions")


def shown(x, *places, most=6_000):
    return transcript(x, TO, places, "x0", most)


def text_of(transcript):
    return "".join(segment.text for passage in transcript.passages for segment in passage.segments)


@pytest.mark.parametrize(
    ("at", "event", "pointer"),
    [
        ("event 12 /choices/0", 12, "/choices/0"),
        ("event 3", 3, ""),
        ("body /usage", None, "/usage"),
        ("body/usage/total_tokens", None, "/usage/total_tokens"),
        ("event 7/choices", 7, "/choices"),
        ("choice 0", None, ""),
        ("", None, ""),
        ("/choices", None, "/choices"),
    ],
)
def test_a_place_names_event_and_pointer(at, event, pointer):
    assert (event_of(at), pointer_of(at)) == (event, pointer)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/choices/1/text", '"b,]}"'),
        ("/choices/0", '{"text": "a"}'),
        ("/usage", "null"),
        ("/a~1b", "1"),
        ("", None),
        ("/twice", "2"),
    ],
)
def test_a_pointer_finds_the_very_bytes_of_its_value(pointer, value):
    text = ' {"choices": [{"text": "a"}, {"text" : "b,]}" }], "usage":null, "a/b":1, "twice":1, "twice":2}'
    start, end = span(text, pointer)
    assert text[start:end] == (text.strip() if value is None else value)


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a":', '{"a":1', "[1", "nonsense", '{"a" 1}', "[" * 5_000])
def test_a_pointer_into_no_json_finds_nothing(text):
    assert span(text, "/a") is None
    assert span(text, "/0/0") is None


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda leaf: st.lists(leaf) | st.dictionaries(st.text(), leaf))
)
@settings(max_examples=60, deadline=None)
def test_every_member_of_any_json_is_found(value):
    text = json.dumps(value)

    def visit(inner, pointer):
        start, end = span(text, pointer)
        assert json.loads(text[start:end]) == inner
        members = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        for name, member in members:
            visit(member, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")

    visit(value, "")


def test_the_cited_event_is_marked_down_to_the_value():
    found = shown(fake_runs.stream(), "event 6 /choices")
    (cited,) = [passage for passage in found.passages if passage.cited]
    assert cited.number == 6
    (marked,) = [segment.text for segment in cited.segments if segment.kind == "mark"]
    assert json.loads(marked)[0]["finish_reason"] == "length"
    assert cited.at == "536 ms"


def test_a_short_stream_is_shown_byte_for_byte():
    x = ex.stream(b": hello\n\n", ex.completion(ex.choice()), b"data: \xff\n\n")
    raw = "\n".join("".join(segment.text for segment in passage.segments) for passage in shown(x).passages)
    assert (
        raw
        == ": hello\ndata: " + json.dumps(x.documents[0].value, separators=(",", ":")) + "\ndata: \\xff\ndata: [DONE]"
    )


def test_a_long_stream_keeps_its_ends_and_what_is_cited():
    x = fake_runs.stream(chunks=400)
    found = shown(x, "event 200", most=2_000)
    numbers = [passage.number for passage in found.passages if passage.number is not None]
    assert {0, 1, 199, 200, 201, 400, 401} <= set(numbers)
    assert len(text_of(found)) < 4_000
    assert "more events" in text_of(found)


def test_folded_events_account_for_every_byte():
    x = fake_runs.stream(chunks=400)
    found = shown(x, most=2_000)
    folded = [segment.text for passage in found.passages for segment in passage.segments if passage.number is None]
    left_out = sum(int(text.split(", ")[-1].split()[0].replace(",", "")) for text in folded)
    kept = {passage.number for passage in found.passages} - {None}
    assert left_out + sum(len(event.raw) for number, event in enumerate(x.messages) if number in kept) == len(x.content)


def test_a_long_body_keeps_its_ends_and_the_marked_place():
    body = {"first": "x" * 9_000, "usage": {"total_tokens": -1}, "last": "y" * 9_000, "end": 1}
    found = shown(ex.plain(body), "body /usage/total_tokens", most=1_000)
    segments = found.passages[0].segments
    assert [one.text for one in segments if one.kind == "mark"] == ["-1"]
    assert segments[0].text.startswith('{\n  "first"')
    assert segments[-1].text.endswith('"end": 1\n}')
    assert sum(len(one.text) for one in segments) < 1_500


@given(st.text(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300))), st.integers(1, 400))
@settings(max_examples=80, deadline=None)
def test_an_excerpt_neither_doubles_nor_reorders_text(text, spans, most):
    spans = [(min(a, b), max(a, b)) for a, b in spans if max(a, b) <= len(text)]
    segments = excerpt(text, spans, most)
    folded = sum(int(one.text.split()[0].replace(",", "")) for one in segments if one.kind == "fold")
    place = 0
    for one in segments:
        if one.kind == "fold":
            place += int(one.text.split()[0].replace(",", ""))
        else:
            raw = next(
                length
                for length in range(len(text) - place + 1)
                if visible(text[place : place + length], lines=True) == one.text
            )
            place += raw
    assert place == len(text)
    assert folded <= max(len(text) - most // 2, 0)


def test_attempts_are_told_where_there_were_several():
    x = fake_runs.hostile().exchanges[0]
    found = shown(x)
    assert len(found.attempts) == 2
    assert found.attempts[0].startswith("attempt 1: </script>")
    assert "attempt 2: HTTP 200" in found.attempts[1]


def test_no_response_at_all_says_why():
    x = ex.response([], status=None, error="connection refused")
    assert shown(x).status == "no response: connection refused"
    assert shown(x).passages == ()


def test_the_drawing_places_ticks_by_arrival_and_marks_by_kind():
    x = fake_runs.stream()
    ticks = timeline.ticks(x)
    assert [tick.kind for tick in ticks] == ["text"] * 6 + ["usage", "done"]
    assert ticks[0].at == pytest.approx(0.110)
    drawn = str(timeline.draw(ticks, x.last.elapsed, {6}))
    assert drawn.count('class="cited"') == 1
    assert 'class="usage"' in drawn
    assert 'class="done"' in drawn
    assert drawn.count("v20") == 6


def test_the_caption_says_what_the_drawing_shows():
    x = fake_runs.stream()
    words = timeline.caption(timeline.ticks(x), x.last.elapsed)
    assert (
        words
        == "8 events, first after 110 ms, last after 557 ms, longest pause 321 ms, closed after 567 ms, ◆ usage, ⚑ done"
    )


@pytest.mark.parametrize("x", [ex.plain({}), ex.stream(headers={"content-encoding": "gzip"}), ex.response([])])
def test_there_is_no_drawing_where_arrival_cannot_be_told(x):
    assert timeline.ticks(x) == ()
    assert timeline.draw((), 1.0) == ""


def test_ten_thousand_events_make_a_small_drawing():
    x = fake_runs.stream(chunks=10_000)
    assert len(timeline.draw(timeline.ticks(x), x.last.elapsed)) < 8_000


def test_what_hides_is_spelled_out():
    assert visible("a\x00\x1b[31m\u202eb\u2028\ud800") == "a␀␛[31m<U+202E>b<U+2028><U+D800>"
    assert visible("a\nb") == "a␊b"
    assert decoded(b"a\r\n\xff\xc3\xa9") == "a␍\n\\xffé"


@given(st.binary(max_size=200), st.lists(st.sampled_from(["event 0 /choices", "body /a", "choice 1", "event 9"])))
@settings(max_examples=80, deadline=None)
def test_no_bytes_make_a_transcript_raise(content, places):
    for kind in ("text/event-stream", "application/json"):
        shown(ex.response(content, media_type=kind), *places, most=100)
