"""The trend of each target: every run once, in its order, and nothing of an incomplete run looks settled."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from shutil import copytree

import fake_runs
import pytest

from conformance.cli import _guarded
from conformance.model import Level, Outcome
from conformance.report import history, outputs, results, trend
from conformance.report.trend import Point, draw
from tests.test_report_page import Tree

DAY = 86_400.0
BEGIN = 1_760_000_000.0


def write(folder, *outcomes, day=0, level=Level.MUST, **more):
    """A run of that day, with one requirement for each outcome."""
    known = {Outcome.FAIL: {"violations": 1, "reason": "no"}, Outcome.WARN: {"violations": 1, "reason": "no"}}
    verdicts = [
        fake_runs.verdict(
            one,
            fake_runs.requirement(f"usage.row-{number}", Level.SHOULD if one is Outcome.WARN else level),
            **known.get(one, {"reason": "" if one is Outcome.PASS else "why"}),
        )
        for number, one in enumerate(outcomes)
    ]
    run = fake_runs.run(*verdicts, started_at=BEGIN + day * DAY, **more)
    outputs.write(folder, results.document(run), ())
    return folder


@pytest.fixture
def nights(tmp_path):
    """Four nights: fine, incomplete, broken, mended; in folders that are not named by their order."""
    write(tmp_path / "z", Outcome.PASS, Outcome.PASS, Outcome.PASS)
    write(tmp_path / "b" / "deep", Outcome.PASS, Outcome.NOT_RUN, Outcome.WARN, day=1, incomplete=("the budget ended",))
    write(tmp_path / "a", Outcome.FAIL, Outcome.PASS, Outcome.WARN, day=2)
    write(tmp_path / "c", Outcome.PASS, Outcome.PASS, Outcome.WARN, day=3)
    return tmp_path


def page_of(folder):
    return history.render(*history.collect(folder))


def test_runs_are_found_anywhere_and_stand_in_the_order_they_were_made(nights):
    found, left_out = history.collect(nights)
    assert [link for link, _ in found] == ["z/report.html", "b/deep/report.html", "a/report.html", "c/report.html"]
    assert left_out == []


def test_times_of_other_zones_are_ordered_by_the_moment_they_name(tmp_path):
    for name, started in (("a", "2026-01-02T00:30:00+00:00"), ("b", "2026-01-02T01:00:00+02:00")):
        found = json.loads((write(tmp_path / name, Outcome.PASS) / "results.json").read_text())
        (tmp_path / name / "results.json").write_text(results.dumps({**found, "started_at": started}))
    assert [link[0] for link, _ in history.collect(tmp_path)[0]] == ["b", "a"]


def test_a_copy_of_a_run_is_no_second_run(nights):
    copytree(nights / "a", nights / "copy")
    assert len(history.collect(nights)[0]) == 4


def test_the_page_tells_what_each_run_broke_and_fixed(nights):
    tree = Tree(page_of(nights))
    text = tree.text.replace(". ", ".")
    assert "4 runs of 1 target" in text
    assert "newly broken: usage.row-0" in text
    assert "fixed: usage.row-0" in text
    assert "newly broken: usage.row-2" in text
    text = text[text.index("newest first") :]
    assert text.index("2025-10-12 08:53") < text.index("2025-10-11 08:53") < text.index("2025-10-10 08:53")


def test_the_page_begins_with_what_changed_in_the_latest_run(nights):
    write(nights / "d", Outcome.FAIL, Outcome.PASS, Outcome.WARN, day=4)
    write(nights / "o", Outcome.PASS, target=fake_runs.target("another"))
    text = Tree(page_of(nights)).text.replace(". ", ".")
    assert text.index("1 newly broken in the latest runs") < text.index("6 runs of 2 targets")
    latest = text[text.index("What changed in the latest run") :]
    assert latest.index("example newly broken usage.row-0 no") < latest.index("Runs, newest first")
    assert latest.index("example") < latest.index("another")


def test_a_night_without_an_answer_is_a_gap_and_the_next_is_compared_with_the_one_before(nights):
    write(nights / "d", Outcome.NOT_RUN, Outcome.NOT_RUN, day=3.5, incomplete=("connection refused",))
    page = page_of(nights)
    assert "1 target not judged in the latest run" in page
    assert page.count('<rect class="gap"') == 1
    write(nights / "e", Outcome.PASS, Outcome.PASS, Outcome.WARN, day=4)
    page = page_of(nights)
    assert "Nothing broken or fixed in the latest run" in page
    assert "1 not judged, drawn as empty frames (connection refused)" in page


def test_an_incomplete_run_is_hollow_and_its_counts_are_lower_bounds(nights):
    page = page_of(nights)
    text = Tree(page).text
    assert "at least 0 MUST, 1 SHOULD" in text
    assert "1 incomplete: hollow, and numbers with + because more may be broken" in text
    assert "the budget ended" in text
    assert ">1+</text>" in page
    assert page.count('<rect class="shoulds unsure"') == 1
    assert page.count('<rect class="shoulds"') == 2


def test_a_check_that_crashed_leaves_its_run_unsettled(tmp_path):
    write(tmp_path / "a", Outcome.PASS, Outcome.ERROR)
    assert '<circle class="none unsure"' in page_of(tmp_path)


def test_where_the_contract_changed_numbers_do_not_compare_and_a_line_says_so(nights):
    path = nights / "c" / "results.json"
    path.write_text(path.read_text().replace('"contract_sha256": "0', '"contract_sha256": "1', 1))
    page = page_of(nights)
    assert page.count('class="cut"') == 1
    assert "2025-10-12 08:53: the contract changed" in page


def test_each_target_has_a_drawing_of_its_own(nights):
    write(nights / "o", Outcome.PASS, target=fake_runs.target("other"))
    page = page_of(nights)
    assert page.count('<svg class="trend"') == 2
    assert "5 runs of 2 targets" in page


def test_the_page_asks_nothing_of_anybody(nights):
    tree = Tree(page_of(nights))
    links = [value for name, value in tree.attributes if name in {"src", "href"}]
    assert set(links) == {"z/report.html", "b/deep/report.html", "a/report.html", "c/report.html"}


def test_hostile_names_are_only_text(tmp_path):
    run = fake_runs.hostile()
    outputs.write(tmp_path / "javascript:alert(1)<x>", results.document(run), ())
    tree = Tree(page_of(tmp_path))
    assert "img" not in tree.tags
    assert tree.tags.count("script") == 1
    assert ("href", "javascript%3Aalert%281%29%3Cx%3E/report.html") in tree.attributes


def test_what_cannot_be_read_is_named_and_left_out(nights):
    (nights / "odd").mkdir()
    (nights / "odd" / "results.json").write_text("{}")
    found = json.loads((nights / "a" / "results.json").read_text())
    (nights / "b" / "results.json").write_text(results.dumps({**found, "started_at": "<b>yesterday</b>"}))
    runs, left_out = history.collect(nights)
    assert len(runs) == 4
    assert len(left_out) == 2
    assert "yesterday" in " ".join(left_out)
    assert "Left out:" in history.render(runs, left_out)


# The drawing


def points(number, **more):
    return [Point(f"2026-01-{1 + place % 28:02}", place % 3, 0, True, **more) for place in range(number)]


@pytest.mark.parametrize("number", [1, 2, 3, 60, 400])
def test_any_number_of_runs_is_drawn_inside_its_frame(number):
    root = ElementTree.fromstring(draw(points(number)))
    _, _, wide, high = map(float, root.get("viewBox").split())
    for one in root.iter():
        for name, most in (("cx", wide), ("x", wide), ("cy", high), ("y", high)):
            assert 0 <= float(one.get(name, 0)) <= most
    assert len(root.findall("circle")) + len(root.findall("rect")) == number


def test_bars_grow_with_what_is_broken_and_nothing_broken_has_none():
    tall = [float(one.get("height")) for one in ElementTree.fromstring(draw(points(3))).findall("rect")]
    assert len(tall) == 2
    assert tall[1] == 2 * tall[0]


def test_one_broken_promise_is_a_quarter_of_the_height_however_many_are_kept():
    root = ElementTree.fromstring(draw([Point("2026-01-01", 0, 0, True), Point("2026-01-02", 1, 0, True)]))
    (bar,) = root.findall("rect")
    assert float(bar.get("height")) == (trend.BASE - trend.TOP) / 4
    assert [one.text for one in root.findall("text")][:5] == ["0", "1", "2", "3", "4"]


def test_a_run_without_an_answer_is_a_gap_with_its_reason():
    root = ElementTree.fromstring(draw([Point("2026-01-01", 0, 0, False, gap="connection refused")]))
    (frame,) = root.findall("rect")
    assert frame.get("class") == "gap"
    assert frame.find("title").text == "2026-01-01: not judged, connection refused"
    assert root.findall("circle") == []


def test_what_a_drawing_says_is_escaped():
    drawn = draw([Point("<img>", 1, 1, True, "<script>"), Point("<img>", 0, 0, False, gap="<script>")])
    assert not re.search("<(img|script)", drawn)


# The command


def test_the_page_is_written_into_the_folder_or_where_it_is_asked_for(nights, capsys):
    assert _guarded(["history", str(nights)], debug=False) == 0
    assert capsys.readouterr().out.strip() == str(nights / "history.html")
    assert (nights / "history.html").stat().st_size > 10_000
    assert _guarded(["history", str(nights), "--out", str(nights / "x.html")], debug=False) == 0
    assert Tree((nights / "x.html").read_text()).text


def test_a_folder_without_runs_is_one_line_and_exit_code_2(tmp_path, capsys):
    assert _guarded(["history", str(tmp_path)], debug=False) == 2
    assert "contains no readable results.json" in capsys.readouterr().err
    assert _guarded(["history", str(tmp_path / "none")], debug=False) == 2
