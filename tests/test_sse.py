"""The stream reader: WHATWG event streams, without loss, wherever the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.model.sse import BOM, Event, Reader, read

ALPHABET = [
    b"data",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"x",
    b"event",
    b"id",
    b"{}",
    b"[DONE]",
    BOM,
    b"\x00",
    b"\xff",
    b"\xc3",
]
STREAMS = st.lists(st.sampled_from(ALPHABET), max_size=30).map(b"".join) | st.binary(max_size=60)
CALM = settings(deadline=None, derandomize=True, database=None)


def seen(text: bytes) -> list[str]:
    """The data that a standard client is given."""
    return [event.data for event in read([text]) if event.dispatched]


def cut(text: bytes, places) -> list[bytes]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[low:high] for low, high in pairwise(edges)]


@CALM
@given(STREAMS)
def test_no_byte_is_lost(text):
    assert b"".join(event.raw for event in read([text])) == text


@CALM
@given(STREAMS)
def test_each_line_knows_its_place(text):
    lines = [line for event in read([text]) for line in event.lines]
    assert b"".join(line.raw for line in lines) == text
    for line in lines:
        assert text[line.start : line.start + len(line.raw)] == line.raw
        assert line.raw.removeprefix(BOM).removesuffix(line.ending) == line.content.removeprefix(BOM)
        assert line.ending in {b"\n", b"\r", b"\r\n", b""}


@CALM
@given(STREAMS, st.lists(st.integers(0, 80), max_size=10))
def test_the_cuts_of_the_transport_do_not_matter(text, places):
    assert list(read(cut(text, places))) == list(read([text]))


@CALM
@given(STREAMS)
def test_byte_by_byte_is_the_same(text):
    assert list(read(text[place : place + 1] for place in range(len(text)))) == list(read([text]))


@CALM
@given(STREAMS)
def test_only_the_tail_is_unterminated(text):
    events = list(read([text]))
    assert all(event.terminated for event in events[:-1])
    assert all(event.lines for event in events)
    if events and events[-1].terminated:
        assert text.endswith((b"\n", b"\r"))


@CALM
@given(st.lists(st.text(st.characters(exclude_characters="\r\n"), max_size=20), min_size=1, max_size=5))
def test_what_was_written_is_read(payloads):
    text = "".join(f"data: {payload}\n\n" for payload in payloads).encode("utf-8", "surrogatepass")
    assert [event.payload for event in read([text])] == [one.encode("utf-8", "surrogatepass") for one in payloads]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_of_the_standard_ends_a_line(end):
    assert seen(end.join([b"data: one", b"data: two", b"", b"data: three", b"", b""])) == ["one\ntwo", "three"]


def test_line_ends_may_be_mixed():
    assert seen(b"data: a\r\n\ndata: b\r\rdata: c\n\r\n") == ["a", "b", "c"]


def test_a_line_feed_after_a_carriage_return_belongs_to_it_even_in_the_next_piece():
    events = list(read([b"data: a\r", b"\n\r", b"\ndata: b\n\n"]))
    assert [event.data for event in events] == ["a", "b"]
    assert [len(event.lines) for event in events] == [2, 2]


def test_an_event_comes_as_soon_as_its_blank_line_does():
    reader = Reader()
    assert list(reader.feed(b"data: a\n")) == []
    assert [event.data for event in reader.feed(b"\ndata: b")] == ["a"]
    assert [(event.data, event.terminated) for event in reader.close()] == [("b", False)]


def test_after_a_lone_carriage_return_the_event_waits_for_one_more_byte():
    reader = Reader()
    assert list(reader.feed(b"data: a\r\r")) == []
    assert [event.data for event in reader.feed(b"d")] == ["a"]


def test_the_bom_is_ignored_once_at_the_start():
    assert seen(BOM + b"data: a\n\n") == ["a"]
    assert seen(BOM + BOM + b"data: a\n\n") == []
    assert seen(b"data: a\n\n" + BOM + b"data: b\n\n") == ["a"]
    assert [event.data for event in read([BOM[:1], BOM[1:], b"data: a\n\n"])] == ["a"]


def test_a_bom_alone_is_kept():
    (event,) = read([BOM])
    assert event.raw == BOM
    assert event.payload is None


class TestExamplesOfTheStandard:
    def test_several_data_lines_make_one_event(self):
        assert seen(b"data: YHOO\ndata: +2\ndata: 10\n\n") == ["YHOO\n+2\n10"]

    def test_four_blocks_of_which_one_is_a_comment_and_one_is_not_ended(self):
        text = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event"
        assert seen(text) == ["first event", "second event"]
        events = list(read([text]))
        assert [line.content for line in events[0].comments] == [b": test stream"]
        assert (events[-1].data, events[-1].terminated) == (" third event", False)

    def test_an_empty_data_line_is_an_event_too(self):
        assert seen(b"data\n\ndata\ndata\n\ndata:") == ["", "\n"]

    def test_one_space_after_the_colon_is_dropped(self):
        assert seen(b"data:test\n\ndata: test\n\n") == ["test", "test"]
        assert seen(b"data:  two\n\n") == [" two"]

    def test_the_event_field_names_the_event(self):
        text = b"event: add\ndata: 1\n\nevent: a\nevent: remove\ndata: 2\n\nevent\ndata: 3\n\ndata: 4\n\n"
        assert [event.name for event in read([text])] == ["add", "remove", "message", "message"]


def test_a_name_without_data_is_no_event():
    (event,) = read([b"event: ping\n\n"])
    assert event.terminated
    assert not event.dispatched


def test_a_field_is_what_stands_before_the_first_colon():
    (event,) = read([b"data: a: b\nData: c\n data: d\ndata : e\n\n"])
    assert [line.field for line in event.lines] == ["data", "Data", " data", "data ", ""]
    assert event.payload == b"a: b"


def test_bytes_that_are_no_utf8_are_kept_and_marked():
    good, bad = read([b"data: \xc3\xa9\n\ndata: \xc3\n\n"])
    assert (good.utf8, good.data) == (True, "é")
    assert (bad.utf8, bad.payload, bad.data) == (False, b"\xc3", "�")


def test_an_event_knows_where_it_stands():
    events = list(read([b": hi\n\ndata: a\n\n"]))
    assert [(event.start, event.end) for event in events] == [(0, 6), (6, 15)]


def test_nothing_in_nothing_out():
    assert list(read([])) == []
    assert list(read([b"", b""])) == []
    assert isinstance(next(iter(read([b"\n"]))), Event)


def test_a_long_stream_is_read_without_keeping_it():
    reader, count = Reader(), 0
    piece = b"data: " + b"x" * 1000 + b"\n\n"
    for _ in range(2000):
        count += sum(1 for _ in reader.feed(piece))
        assert len(reader._buffer) < 2048
    assert count == 2000


def test_a_long_line_that_comes_in_many_pieces_is_searched_once():
    """Quadratic search would take minutes here."""
    reader = Reader()
    for _ in range(20_000):
        assert not list(reader.feed(b"x" * 50))
    assert [len(event.raw) for event in reader.close()] == [1_000_000]
