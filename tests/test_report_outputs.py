"""What a run writes for machines: each file keeps to the schema that its readers publish, whatever a target says.

The schemas are written down here from the public specifications: ctrf.io, shields.io, and what Jenkins reads as JUnit.
"""

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import fake_runs
import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from conformance.model import Level, Outcome
from conformance.report import badge, ctrf, junit, markdown, outputs, results

RUNS = ("failing", "hostile", "fine", "empty")


def document(name="failing", **more):
    made = {
        "fine": lambda: fake_runs.run(fake_runs.verdict()),
        "empty": fake_runs.run,
        "failing": fake_runs.failing,
        "hostile": fake_runs.hostile,
    }
    return results.document(made[name](), **more)


# CTRF

TEXT, WHOLE, FREE, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "object"}, {"type": "boolean"}
UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
STATUSES = ["passed", "failed", "skipped", "pending", "other"]


def only(required, **members):
    return {"type": "object", "required": required, "properties": members, "additionalProperties": False}


COUNTS = dict.fromkeys(("tests", *STATUSES, "start", "stop"), WHOLE)
CTRF = only(
    ["reportFormat", "specVersion", "results"],
    reportFormat={"const": "CTRF"},
    specVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    reportId=UUID,
    timestamp={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"},
    generatedBy=TEXT,
    extra=FREE,
    results=only(
        ["tool", "summary", "tests"],
        tool=only(["name"], name={"type": "string", "minLength": 1}, version=TEXT, extra=FREE),
        summary=only(list(COUNTS), **COUNTS, flaky=WHOLE, suites=WHOLE, duration=WHOLE, extra=FREE),
        tests={
            "type": "array",
            "items": only(
                ["name", "status", "duration"],
                id=UUID,
                name={"type": "string", "minLength": 1},
                status={"enum": STATUSES},
                rawStatus=TEXT,
                duration=WHOLE,
                suite={"type": "array", "minItems": 1, "items": TEXT},
                tags={"type": "array", "items": TEXT},
                message=TEXT,
                trace=TEXT,
                snippet=TEXT,
                flaky=FLAG,
                extra=FREE,
            ),
        },
        environment=only([], appName=TEXT, extra=FREE),
        extra=FREE,
    ),
)


@pytest.mark.parametrize("name", RUNS)
def test_ctrf_keeps_to_its_schema(name):
    Draft202012Validator(CTRF).validate(json.loads(ctrf.render(document(name))))


def test_ctrf_has_one_test_for_each_requirement_and_its_counts_add_up():
    told = ctrf.document(document())["results"]
    assert [test["name"] for test in told["tests"]] == [row["id"] for row in document()["requirements"]]
    assert sum(told["summary"][status] for status in STATUSES) == told["summary"]["tests"] == 8
    assert told["summary"]["stop"] - told["summary"]["start"] == 14_250
    assert {test["rawStatus"]: test["status"] for test in told["tests"]} == {
        "fail": "failed",
        "warn": "other",
        "flaky": "failed",
        "error": "other",
        "inconclusive": "other",
        "not_run": "pending",
        "pass": "passed",
        "not_applicable": "skipped",
    }


def test_ctrf_is_stricter_where_the_run_was():
    (warned,) = (
        test for test in ctrf.document(document(strict=True))["results"]["tests"] if test["rawStatus"] == "warn"
    )
    assert warned["status"] == "failed"
    assert "FAIL" not in warned["trace"]
    assert warned["trace"].startswith("WARN example errors.envelope.members")
    assert "curl" in warned["snippet"]


def test_ctrf_shows_the_smallest_request():
    tests = {test["name"]: test for test in ctrf.document(document())["results"]["tests"]}
    assert '"prompt":"1, 2, 3,","stream":true}' in tests["usage.chunk.empty-choices"]["snippet"]


def test_the_same_results_make_the_same_files_and_other_results_other_ids():
    for made in outputs.MADE.values():
        assert made(document()) == made(document())
    one, other = ctrf.document(document()), ctrf.document({**document(), "plan_sha256": "c" * 64})
    assert one["reportId"] != other["reportId"]
    assert [test["id"] for test in one["results"]["tests"]] == [test["id"] for test in other["results"]["tests"]]


# JUnit, as the schema of Jenkins' xUnit plugin has it; properties of a case as pytest and Testmo write them

ATTRIBUTES = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"name", "tests", "failures", "errors"},
    ),
    "testcase": ({"name", "classname", "time"}, {"name"}),
    "properties": (set(), set()),
    "property": ({"name", "value"}, {"name", "value"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
INSIDE = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "testcase": {"properties", "failure", "error", "skipped", "system-out"},
    "properties": {"property"},
}


def complaints(element):
    allowed, required = ATTRIBUTES[element.tag]
    if not required <= set(element.keys()) <= allowed:
        yield f"{element.tag} has attributes {sorted(element.keys())}"
    for name in {"tests", "failures", "errors", "skipped"} & set(element.keys()):
        if not element.get(name).isdigit():
            yield f"{element.tag} {name} is {element.get(name)}"
    if not re.fullmatch(r"\d*(\.\d*)?", element.get("time", "0")):
        yield f"{element.tag} time is {element.get('time')}"
    for child in element:
        if child.tag not in INSIDE.get(element.tag, ()):
            yield f"{child.tag} is inside {element.tag}"
        yield from complaints(child)
    if element.tag in INSIDE and (element.text or "").strip():
        yield f"{element.tag} holds text"


@pytest.mark.parametrize("name", RUNS)
def test_junit_keeps_to_the_schema_of_its_readers(name):
    root = ElementTree.fromstring(junit.render(document(name)))
    assert root.tag == "testsuites"
    assert list(complaints(root)) == []


def test_the_check_of_junit_can_fail():
    wrong = "<testsuites skipped='1'><testsuite name='a' tests='x' failures='0'/><testcase/></testsuites>"
    assert len(list(complaints(ElementTree.fromstring(wrong)))) == 5


# Markdown


class Seen(HTMLParser):
    """What a browser makes of rendered Markdown."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.rows = set(), "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not attrs, f"{tag} has {attrs}"
        if tag == "tr":
            self.rows.append(0)
        if tag in {"td", "th"}:
            self.rows[-1] += 1

    def handle_data(self, data):
        self.text += data


def seen(text):
    return Seen(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))


def test_the_summary_says_what_is_broken_and_how_far_it_can_be_trusted():
    text = seen(markdown.render(document())).text
    for told in (
        "example: does not conform",
        "3 of 6 MUSTs",
        "1 of 3 of these",
        "usage.chunk.empty-choices (MUST)",
        "choices is [{'index': 0}] beside usage; expected []",
        "the budget ended before 4 planned requests",
        "stop.text (MUST): 3 requests were due, none did",
        "usage.chunk.empty-choices: curl -sSNi http://127.0.0.1:8080/v1/completions",
        """--data-raw '{"model":"m","prompt":"1, 2, 3,","stream":true}'""",
    ):
        assert told in text


@pytest.mark.parametrize("name", RUNS)
def test_hostile_text_makes_no_markup_in_the_summary(name):
    found = seen(markdown.render(document(name)))
    tables = {"table", "thead", "tbody", "tr", "th", "td"}
    assert found.tags <= {"h2", "h3", "p", "ul", "li", "code", "details", "summary", *tables}
    assert set(found.rows) <= {2, 3, 4, 5, 6, 7, 8, 9}
    if name == "hostile":
        assert "</script><img src=x onerror=alert(1)>\"'`&amp;" in found.text


@pytest.mark.parametrize(
    "text",
    [
        "a | b || c",
        "`code` ``` *b* _i_ __b__ ~~s~~ **",
        "[a](javascript:alert(1)) ![i](http://x/y.png) <http://x>",
        "https://evil.example/x?y www.evil.example a@evil.example @someone #12 GH-1",
        "- item",
        "1. item",
        "+ item",
        "# head",
        "> quote",
        "--- === ***",
        "<!-- x --> <details> </code></table> &lt; &#60;",
        "$$x$$ :tada: \\| \\`",
        "a\nb\r\n\r\n# c\u2028d\x00",
        "\ud800 \U0001f600 日本語 é ١",
    ],
)
def test_any_text_is_shown_as_it_is(text):
    line = next(markdown.table(["x"], [[markdown.plain(text)]]))
    table = "\n".join([*markdown.table(["x"], [[markdown.plain(text)]])])
    assert line == "| x |"
    found = seen(table)
    assert found.rows == [1, 1]
    assert found.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    shown = found.text.split("x", 1)[1].strip()
    assert shown == markdown.visible(text).strip()
    assert seen(f"- {markdown.plain(text)}").tags <= {"ul", "li"}
    for alive in ("http:", "www.", "@", "](", "`", "|", "<"):
        assert alive not in markdown.plain(text)


def test_a_long_summary_is_cut_where_ci_systems_would_refuse_it():
    many = fake_runs.large(600, 600)
    text = markdown.render(results.document(many))
    assert "and 560 more in the report." in text
    assert len(text) < 60_000


# Badges

SHIELDS = {
    **only(
        ["schemaVersion", "label", "message"],
        schemaVersion={"const": 1},
        label=TEXT,
        message={"type": "string", "minLength": 1},
        color={"enum": ["brightgreen", "green", "yellowgreen", "yellow", "red", "blue", "purple"]},
        isError=FLAG,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_the_badge_is_what_shields_asks_an_endpoint_for(name):
    Draft202012Validator(SHIELDS).validate(json.loads(badge.endpoint(document(name))))


def verdicts():
    yield fake_runs.run(fake_runs.verdict()), "1 of 1 MUST verified", "brightgreen"
    yield fake_runs.failing(), "2 MUSTs broken", "red"
    owed = fake_runs.verdict(Outcome.INCONCLUSIVE, reason="no", incomplete=True)
    yield fake_runs.run(owed), "incomplete, 0 of 1 MUST verified", "yellow"
    yield fake_runs.run(fake_runs.verdict(Outcome.ERROR, reason="no")), "suite fault", "purple"


@pytest.mark.parametrize(("run", "message", "colour"), list(verdicts()))
def test_the_badge_says_the_verdict_and_what_it_rests_on(run, message, colour):
    told = json.loads(badge.endpoint(results.document(run)))
    assert (told["label"], told["message"], told["color"]) == ("example conformance", message, colour)
    assert told.get("isError", False) is (colour == "purple")


def test_a_strict_run_broken_by_a_should_says_so():
    row = fake_runs.requirement(level=Level.SHOULD)
    run = fake_runs.run(fake_runs.verdict(Outcome.WARN, row, violations=1, reason="x"))
    assert badge.label_and_message(results.document(run, strict=True))[1] == "1 SHOULD broken"


@pytest.mark.parametrize("name", RUNS)
def test_the_drawn_badge_is_svg_with_nothing_alive_in_it(name):
    root = ElementTree.fromstring(badge.drawing(document(name)))
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    assert {one.tag.removeprefix(space) for one in root.iter()} == {
        "svg",
        "title",
        "clipPath",
        "rect",
        "g",
        "path",
        "text",
    }
    names = {name for one in root.iter() for name in one.keys()}  # noqa: SIM118 - an element is no dict
    assert not any(name.startswith("on") or "href" in name for name in names)
    label, message = badge.label_and_message(document(name))
    assert [one.text for one in root.iter(f"{space}text")] == [label, message]
    assert root.find(f"{space}title").text == root.get("aria-label") == f"{label}: {message}"
    assert int(root.get("width")) < 500


# All of them


def test_the_summary_goes_to_the_page_of_the_job(tmp_path, monkeypatch):
    page = tmp_path / "step.md"
    page.write_text("what stood there")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    outputs.publish(document())
    outputs.publish(document("fine"))
    text = page.read_text()
    assert text.startswith("what stood there\n## example")
    assert text.count("\n## example") == 2


def test_no_verdict_is_lost_where_that_page_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "step.md"))
    outputs.publish(document())
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    outputs.publish(document())
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_a_machine_reads_holds_a_control_or_half_a_character(tmp_path):
    run = fake_runs.hostile()
    outputs.write(tmp_path, results.document(run), run.exchanges)
    for name in outputs.MADE:
        text = (tmp_path / name).read_text("utf-8")
        if name.endswith(".json"):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff]", text), name


def test_a_waiver_is_none_of_our_business_yet():
    assert {row["waiver"] for row in document()["requirements"]} == {None}
