"""What was exchanged is on disk as it happened, and any change to it shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import recording
from conformance.judge.fixtures import case, plain, stream
from conformance.model import Credential, Ending, Membership, Phase, RequestCase, Validity
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.recording import Recorder, RecordingError

HEADER = {"suite_version": "0", "contract": {"provider": "example", "sha256": "0" * 64}, "seed": 1}

texts = st.text(max_size=12)
names = st.text(st.characters(max_codepoint=255), max_size=12)
times = st.floats(0, 1e9)
attempts = st.builds(
    Attempt,
    times,
    st.none() | st.integers(100, 999),
    st.lists(st.tuples(names, names), max_size=3).map(tuple),
    st.lists(st.builds(Piece, times, st.binary(max_size=20)), max_size=4).map(tuple),
    st.sampled_from(Ending),
    st.text(st.characters(), max_size=9),
    times,
    st.sampled_from(["HTTP/1.0", "HTTP/1.1"]),
)
request_cases = st.builds(
    RequestCase,
    id=st.uuids().map(str),
    content=st.binary(max_size=30) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
    origin=texts,
    validity=st.sampled_from(Validity),
    breaks=st.lists(texts, max_size=2).map(tuple),
    groups=st.lists(st.builds(Membership, texts, texts, texts), max_size=2).map(tuple),
    method=st.sampled_from(["POST", "GET"]),
    path=texts,
    headers=st.lists(st.tuples(names, names), max_size=3).map(tuple),
    credential=st.sampled_from(Credential),
    hang_up_after=st.none() | st.integers(0, 9),
    hostile=st.booleans(),
    repeats=texts,
    note=texts,
)
exchanges = st.builds(Exchange, request_cases, st.lists(attempts, min_size=1, max_size=3).map(tuple))


def saved(path, *made: Exchange, **footer):
    recording.write(path, HEADER, [Phase("all", tuple(x.case for x in made))], made, **footer)
    return path


@pytest.fixture
def file(tmp_path):
    made = [replace(plain({"a": place}), case=replace(case(), id=f"c/{place}")) for place in range(3)]
    return saved(tmp_path / "exchanges.ndjson", *made)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(exchanges, max_size=3), st.booleans(), st.integers(0, 3))
def test_what_is_written_is_read_back_exactly(tmp_path, made, serial, burst):
    path = tmp_path / "exchanges.ndjson"
    phase = Phase("w", tuple(x.case for x in made), serial, burst)
    recording.write(path, HEADER, [phase], made, reasons=["none"])
    found = recording.read(path)
    assert found.exchanges == tuple(made)
    assert found.phases == (phase,)
    assert found.header["seed"] == 1
    assert found.footer is not None
    assert found.footer["reasons"] == ["none"]
    assert found.torn == ""


def test_text_stays_readable_and_other_bytes_are_kept_in_base64(tmp_path):
    x = stream(b"data: \xc3\xa9\n\n", b"data: \xff\n\n")
    lines = saved(tmp_path / "x", x).read_text("ascii").splitlines()
    pieces = json.loads(lines[3])["pieces"]
    assert pieces[0][1] == "data: é\n\n"
    assert pieces[1][1] == {"base64": "ZGF0YTog/woK"}


def test_each_record_is_on_disk_before_the_next_thing_happens(tmp_path):
    path = tmp_path / "deep" / "exchanges.ndjson"
    x = plain({})
    with Recorder(path, HEADER) as recorder:
        recorder.planned(Phase("w", (x.case,)))
        recorder.started(x.case)
        assert recording.read(path).in_flight == {x.case.id}
        recorder.attempted(x.case, x.last, False)
        assert recording.read(path).exchanges == ()
        recorder.attempted(x.case, x.last, True)
        found = recording.read(path)
    assert found.exchanges == (Exchange(x.case, (x.last, x.last)),)
    assert found.in_flight == set()
    assert found.footer is None


def test_what_was_not_sent_is_kept_with_the_reason(tmp_path):
    path = tmp_path / "x"
    with Recorder(path, HEADER) as recorder:
        recorder.planned(Phase("w", (case(),)))
        recorder.unsent({case().id: "the budget ended"})
        recorder.unsent({})
        recorder.close({"incomplete": ["the budget ended"]})
    found = recording.read(path)
    assert found.unsent == {"example/0": "the budget ended"}
    assert found.planned == (case(),)
    assert found.exchanges == ()


def test_a_torn_tail_is_told_and_the_good_part_is_used_wherever_it_tears(file):
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    good = recording.read(file)
    for cut in range(len(lines[0]), len(whole), 13):
        file.write_bytes(whole[:cut])
        found = recording.read(file)
        assert found.footer is None
        assert (found.torn == "") == (whole[cut - 1 : cut] == b"\n")
        assert found.exchanges == good.exchanges[: len(found.exchanges)]


def test_any_changed_byte_shows(file):
    whole = file.read_bytes()
    for place in range(0, len(whole) - 1, 5):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(bytes(changed))
        with pytest.raises(RecordingError, match=r"line \d"):
            recording.read(file)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[:3] + lines[4:], "line 4: its chain hash is"),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], "line 3: its chain hash is"),
        (lambda lines: [*lines, lines[-1]], "follows the footer"),
        (lambda lines: lines[1:], "line 1: its chain hash is"),
        (lambda lines: [*lines[:2], b'{"record":"start"}\n', *lines[2:]], "line 3: it does not end with"),
        (lambda lines: lines[:0], "no header"),
        (lambda lines: [b"<html>\n", *lines[:0]], "is not a recording"),
    ],
)
def test_dropped_moved_and_added_records_show(file, change, says):
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    with pytest.raises(RecordingError, match=says):
        recording.read(file)


def test_a_record_that_is_chained_but_makes_no_sense_is_refused_in_one_line(tmp_path):
    path = tmp_path / "x"
    for kind, content in (
        ("attempt", {}),
        ("attempt", {"case": 1}),
        ("wave", {"cases": 3}),
        ("what", {}),
        ("header", {}),
    ):
        with Recorder(path, HEADER) as recorder:
            recorder._append(kind, content)
        with pytest.raises(RecordingError, match="line 2") as caught:
            recording.read(path)
        assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path):
    with pytest.raises(RecordingError, match="cannot be read"):
        recording.read(tmp_path / "none")


def test_an_interrupted_recording_goes_on_in_the_same_chain(file):
    x, more = plain({}), plain({"more": 1}, id="more")
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])  # within the footer
    found = recording.read(file)
    assert found.torn
    with Recorder.resume(file, found) as recorder:
        recorder.planned(Phase("more", (more.case,)))
        recorder.started(more.case)
        recorder.attempted(more.case, more.last, True)
        recorder.close({})
    again = recording.read(file)
    assert [one.case.id for one in again.exchanges] == ["c/0", "c/1", "c/2", "more"]
    assert again.footer is not None
    assert x.case.id not in again.begun


def test_a_footer_gives_way_when_the_recording_goes_on(file):
    found = recording.read(file)
    assert found.footer is not None
    with Recorder.resume(file, found) as recorder:
        recorder.close({"again": True})
    assert (recording.read(file).footer or {})["again"] is True


def test_the_last_hash_stands_for_all(file, tmp_path):
    with Recorder(tmp_path / "a", HEADER) as one, Recorder(tmp_path / "b", {**HEADER, "seed": 2}) as other:
        assert one.close({}) != other.close({})


def test_two_runs_never_write_to_one_recording(tmp_path):
    path = tmp_path / "exchanges.ndjson"
    with Recorder(path, {}) as first:
        first.planned(Phase("w", (case(),)))
        there = path.read_bytes()
        for again in (lambda: Recorder(path, {}), lambda: Recorder.resume(path, recording.read(path))):
            with pytest.raises(RecordingError, match="another run is writing to it"):
                again()
        assert path.read_bytes() == there
    with Recorder(path, {}):
        assert path.read_bytes() != there
