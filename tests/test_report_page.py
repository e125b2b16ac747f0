"""report.html and index.html: complete, self-contained, safe and small. How they behave is in test_report_browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import fake_runs
import pytest

from conformance.contract import load, providers
from conformance.model import Outcome
from conformance.report import index, page, results
from conformance.report.verdict_words import AREAS, MEANINGS, ORIGINS
from conformance.selftest.mutation_testing import baseline

VOID = {"br", "wbr", "input", "meta", "link", "img", "hr"}


class Tree(HTMLParser):
    """What a parser sees: tags in balance, ids, all text and attributes."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.words, self.attributes = [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in {"script", "style"}:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def rendered(name="failing", **more):
    run = getattr(fake_runs, name)(**more)
    return page.render(results.document(run), run.exchanges)


def test_the_header_answers_the_three_questions():
    text = Tree(rendered()).text
    assert "Does not conform" in text
    assert "2 MUSTs are broken." in text
    assert "Verified 3 /6" in text
    assert "Passed 1 /3" in text
    assert "3 of 6 MUSTs that apply were not verified." in text
    assert "Incomplete: the budget ended before 4 planned requests" in text
    for fact in (
        "http://127.0.0.1:8080/v1",
        "example 2026-01-01",
        "gate, 1",
        "118 in 121 attempts",
        "1,812 prompt, 1,204 completion",
    ):
        assert fact in text


def test_every_requirement_has_a_row_to_link_to_and_ids_are_unique():
    tree = Tree(rendered())
    assert {row.requirement.id for row in fake_runs.failing().verdicts} <= set(tree.ids)
    assert len(tree.ids) == len(set(tree.ids))


def test_links_inside_the_page_lead_somewhere():
    tree = Tree(rendered())
    inside = {value[1:] for name, value in tree.attributes if name == "href" and value.startswith("#")}
    assert inside <= set(tree.ids)


def test_a_row_holds_the_whole_story():
    text = Tree(rendered()).text
    for part in (
        "Clients recognise this chunk by its empty choices",  # why
        "Send usage in a chunk of its own",  # how to fix
        "#/components/schemas/StreamOptions/properties/include_usage 001_example.txt:212",
        "2 of 6 occurrences in 6 exchanges broke the promise",
        "Observed choices is [{'index': 0}] beside usage Expected []",
        "curl -sSNi",
        "client.completions.create(",
        "usage unasked sent on each stream",
    ):
        assert part in text


def test_an_exchange_that_several_rows_cite_is_in_the_page_once():
    rows = [replace(fake_runs.broken(), requirement=fake_runs.requirement(f"usage.row-{n}")) for n in range(5)]
    run = fake_runs.run(*rows, exchanges=[fake_runs.stream()])
    html = page.render(results.document(run), run.exchanges)
    assert html.count('<details class="x"') == 1
    assert html.count('data-x="x0"') == 5


def test_a_page_without_the_exchanges_says_where_they_are():
    html = page.render(results.document(fake_runs.failing()))
    assert '<details class="x"' not in html
    assert "conformance send example scenario/3f9a1c" in Tree(html).text


@pytest.mark.parametrize("name", ["failing", "hostile"])
def test_the_page_asks_for_nothing_from_anywhere(name):
    tree = Tree(rendered(name))
    assert not {"link", "img", "iframe", "object", "embed", "base", "video", "audio"} & set(tree.tags)
    assert not [value for key, value in tree.attributes if key in {"src", "srcset", "action", "background"}]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", rendered(name))


def test_hostile_text_stays_text():
    tree = Tree(rendered("hostile"))
    assert tree.tags.count("script") == 1
    assert "img" not in tree.tags
    assert not [key for key, _ in tree.attributes if key.startswith("on")]
    assert "</script><img src=x onerror=alert(1)>" in tree.text
    assert "␀␛[31m<U+202E>" in tree.text
    assert "{{7*7}}" in tree.text


def test_hostile_text_can_be_written_to_a_file():
    html = rendered("hostile")
    assert html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u2028\ud800-\udfff]", html)


def test_six_hundred_exchanges_stay_under_two_megabytes():
    assert len(rendered("large").encode()) < 2_000_000


def test_an_area_says_how_much_of_it_is_broken_or_kept():
    rows = results.document(fake_runs.failing())["requirements"]
    usage = page.summed([row for row in rows if row["area"] == "usage"])
    assert (usage["mood"], usage["summary"], usage["shares"]) == ("bad", "1 of 2 broken", [("fail", 1), ("pass", 1)])
    assert page.summed([row for row in rows if row["area"] == "errors"])["summary"] == "1 of 1 SHOULD broken"
    assert page.summed([row for row in rows if row["area"] == "echo"])["summary"] == "not applicable"


def test_a_claim_and_a_waiver_are_seen_at_once():
    document = results.document(fake_runs.run(fake_runs.broken(), claims=("no echo",)))
    document["requirements"][0]["waiver"] = {
        "requirement": "usage.*",
        "reason": "known since May",
        "owner": "ana",
        "link": "http://127.0.0.1/7",
        "expires": "2030-01-31",
    }
    text = Tree(page.render(document)).text
    assert "Claimed by the target: no echo." in text
    assert "waived" in text
    assert "known since May" in text


def folder(tmp_path):
    for name, run in (("one", fake_runs.failing()), ("two", fake_runs.run(fake_runs.verdict(), claims=("no echo",)))):
        (tmp_path / name).mkdir()
        document = results.document(replace(run, target=fake_runs.target(name)))
        (tmp_path / name / "results.json").write_text(results.dumps(document), "utf-8")
    return tmp_path


def test_the_index_sets_targets_side_by_side(tmp_path):
    written = index.write(folder(tmp_path))
    assert written.name == "index.html"
    tree = Tree(written.read_text("utf-8"))
    assert "1 of 2 targets conform" in tree.text
    assert "no echo" in tree.text
    links = {value for name, value in tree.attributes if name == "href"}
    assert {"one/report.html", "two/report.html", "one/report.html#usage.chunk.empty-choices"} <= links
    assert len(tree.ids) == len(set(tree.ids))


def test_the_index_tells_a_promise_that_is_kept_from_one_that_was_never_made(tmp_path):
    found, _ = index.collect(folder(tmp_path))
    areas = {area["name"]: area for area in index._areas(list(found.values()), ["one", "two"])}
    assert areas["usage"]["cells"][1]["summary"] == "1 of 1 passed"
    assert areas["stop"]["cells"][1] is None
    ((row, _), (missing, _)) = areas["stop"]["rows"][0]["cells"]
    assert (row["outcome"], missing) == ("inconclusive", None)


def test_results_that_cannot_be_read_are_named_and_left_out(tmp_path):
    folder(tmp_path)
    for name, text in (
        ("torn", '{"schema": "confor'),
        ("old", '{"schema": "other/1"}'),
        ("cut", '{"schema": "conformance-results/1"}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(text, "utf-8")
    text = Tree(index.write(tmp_path).read_text("utf-8")).text
    assert "1 of 2 targets conform" in text
    assert "torn/results.json cannot be read" in text
    assert 'old/results.json: schema is "other/1"' in text
    assert "cut/results.json lacks claims" in text


def test_an_empty_folder_makes_an_index_that_says_what_to_do(tmp_path):
    assert "conformance run all" in Tree(index.write(tmp_path).read_text("utf-8")).text


def test_the_index_is_as_safe_as_the_report():
    document = results.document(fake_runs.hostile())
    tree = Tree(index.render({"</script>": document}))
    assert tree.tags.count("script") == 1
    assert "img" not in tree.tags


def test_each_outcome_is_explained():
    assert set(MEANINGS) == {outcome.value for outcome in Outcome}


def test_a_broken_row_begins_with_what_was_observed_and_its_smallest_request():
    text = Tree(rendered()).text
    story = [
        "Observed choices is [{'index': 0}] beside usage",
        "Smallest request that shows the failure shrink/5ma11e57",
        "the response",
        "Evidence 1 of 2 occurrences",
    ]
    places = [text.index(part) for part in story]
    assert places == sorted(places)


def test_the_smallest_request_is_in_the_page_once_with_its_exchange_and_in_the_row_without():
    line = """--data-raw '{"model":"m","prompt":"1, 2, 3,","stream":true}'"""
    text = Tree(rendered()).text
    assert text.count(line) == 1
    assert text.index("shrink/5ma11e57 HTTP 200") < text.index(line)
    alone = Tree(page.render(results.document(fake_runs.failing()))).text
    assert alone.count(line) == 1
    assert "for chunk in client.completions.create(" in alone


def test_results_that_know_no_smallest_request_still_make_a_page():
    found = results.document(fake_runs.failing())
    for row in found["requirements"]:
        del row["smallest"]
    assert "Smallest request" not in Tree(page.render(found)).text


def test_the_mutation_score_is_a_note_and_says_for_which_build_it_was_measured():
    document = results.document(fake_runs.failing())
    for score, expected in (
        ({"killed": 419, "of": 420}, "this profile finds 419; a measure of our own making."),
        ({"killed": 1, "of": 1, "build": "abc1234def", "current": True}, "this profile finds 1; a measure"),
        (
            {"killed": 1, "of": 1, "build": "abc1234def", "current": False},
            "this profile finds 1, measured on build abc1234, not on this one; a measure of our own making.",
        ),
    ):
        html = page.render({**document, "mutation_score": score})
        assert expected in Tree(html).text
        assert '<li class="note"><span class="mark" aria-hidden="true">·</span> Of ' in html


def test_what_is_broken_is_told_by_causes_then_findings_how_often_and_why_a_client_cares():
    text = Tree(page.render(results.document(fake_runs.run(fake_runs.broken())))).text
    listed = text[text.index("What is broken") : text.index("How far to trust this")]
    assert "fail Streams do not report usage as promised" in listed
    assert "choices is [{'index': 0}] beside usage ; expected [] ." in listed
    assert "usage. chunk. empty-choices MUST · 2 of 6 occurrences · Clients recognise this chunk" in listed
    assert "has an empty choices list" not in listed


def test_of_many_findings_without_causes_the_first_are_listed_and_the_others_counted():
    rows = [replace(fake_runs.broken(), requirement=fake_runs.requirement(f"usage.row-{n}")) for n in range(20)]
    document = results.document(fake_runs.run(*rows))
    del document["causes"]
    html = page.render(document)
    assert f">and {20 - page.MOST_LISTED} more below</a>" in html


def test_the_index_has_failing_targets_first_and_says_each_reason_once():
    down = fake_runs.run(
        fake_runs.verdict(Outcome.NOT_RUN, reason="the budget ended", incomplete=True),
        incomplete=("http://127.0.0.1:9 gave no reply: connection refused",),
    )
    found = {
        "a": results.document(fake_runs.run(fake_runs.verdict())),
        "b": results.document(down),
        "c": results.document(fake_runs.failing()),
    }
    html = index.render(found)
    assert re.findall(r'<th scope="row"><a href="(\w)/report.html">', html) == ["c", "b", "a"]
    assert html.count("gave no reply") == 1


def test_ids_of_cases_are_explained():
    assert {x.case.origin for x in baseline("openai", "gate").plain.exchanges} <= ORIGINS.keys()
    assert f"shrink/ {ORIGINS['shrink'][:1].upper()}{ORIGINS['shrink'][1:]}" in Tree(rendered()).text


def test_areas_are_explained():
    areas = {row.area for provider in providers() for row in load(provider).requirements}
    assert areas == AREAS.keys()
    assert AREAS["usage"] in Tree(rendered()).text
    assert AREAS["usage"] in Tree(index.render({"example": results.document(fake_runs.failing())})).text
