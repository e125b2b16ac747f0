"""The pages as a reader meets them: driven in headless Chromium, from disk, with no network at all."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import fake_runs
import pytest

from conformance.model import Outcome
from conformance.report import history, index, outputs, page, results
from conformance.report.diff import compare
from conformance.report.diff_formats import html
from conformance.report.pytest_html import front

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "playwright" if find_spec("playwright") is None else "" if CHROMIUM else "chromium"
if MISSING and os.environ.get("CI"):
    pytest.fail(f"{MISSING} is missing, so the reports are NOT tested in a browser", pytrace=False)
pytest_plugins = ("pytester",)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is missing: REPORTS ARE NOT TESTED IN A BROWSER")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a file as a reader would; whatever the page complains about or asks for fails the test."""
    opened = []

    def go(path: Path, fragment: str = "", **options):
        tab = browser.new_page(viewport={"width": 1300, "height": 900}, **options)
        tab.wrong = []
        tab.on("console", lambda said: tab.wrong.append(said.text) if said.type in {"error", "warning"} else None)
        tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
        tab.on("request", lambda asked: None if asked.url.startswith("file:") else tab.wrong.append(asked.url))
        tab.on("dialog", lambda dialog: tab.wrong.append(dialog.message))
        tab.goto(path.as_uri() + fragment)
        opened.append(tab)
        return tab

    yield go
    for tab in opened:
        assert tab.wrong == []
        tab.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A folder with a failing target, a hostile one and one that conforms, and their index."""
    folder = tmp_path_factory.mktemp("reports")
    runs_of = {
        "failing": fake_runs.failing(),
        "hostile": fake_runs.hostile(),
        "fine": fake_runs.run(fake_runs.verdict()),
    }
    for name, run in runs_of.items():
        run = replace(run, target=replace(run.target, name=name))
        outputs.write(folder / name, results.document(run), run.exchanges)
    index.write(folder)
    runs, left_out = history.collect(folder)
    (folder / "history.html").write_text(history.render(runs, left_out), "utf-8")
    before, after = results.document(runs_of["fine"]), results.document(runs_of["failing"])
    for name, pair in (("diff.html", (before, after)), ("back.html", (after, before))):
        (folder / name).write_text(html(compare(*pair)), "utf-8")
    return folder


def shown(tab):
    rows = "Array.from(document.querySelectorAll('.reqs .r')).filter((row) => row.checkVisibility())"
    return tab.evaluate(f"{rows}.map((row) => row.id)")


def test_chips_of_one_kind_add_up_and_kinds_narrow(visit, pages):
    tab = visit(pages / "failing/report.html")
    tab.get_by_role("button", name="fail 1").click()
    assert shown(tab) == ["usage.chunk.empty-choices"]
    tab.get_by_role("button", name="warn 1").click()
    assert shown(tab) == ["usage.chunk.empty-choices", "errors.envelope.members"]
    tab.get_by_role("button", name="SHOULD", exact=True).click()
    assert shown(tab) == ["errors.envelope.members"]
    assert tab.locator("#shown").inner_text() == "1 of 8 requirements"
    tab.get_by_role("button", name="Clear filters").click()
    assert len(shown(tab)) == 5


def test_filters_are_in_the_address_and_survive_a_reload(visit, pages):
    tab = visit(pages / "failing/report.html")
    tab.get_by_role("button", name="fail 1").click()
    tab.get_by_role("button", name="MUST", exact=True).click()
    tab.locator("#q").fill("chunk")
    assert tab.evaluate("location.hash") == "#?o=fail&l=MUST&q=chunk"
    tab.reload()
    assert shown(tab) == ["usage.chunk.empty-choices"]
    assert tab.locator("#q").input_value() == "chunk"
    assert tab.get_by_role("button", name="fail 1").get_attribute("aria-pressed") == "true"
    tab.get_by_role("button", name="Clear filters").click()
    assert tab.evaluate("location.hash") == ""


def test_an_address_may_have_a_row_and_filters(visit, pages):
    tab = visit(pages / "failing/report.html", "#usage.chunk.empty-choices?l=MUST")
    tab.locator("tbody[id='usage.chunk.empty-choices'] .ev.here").wait_for()
    assert "errors.envelope.members" not in shown(tab)
    tab.evaluate("location.hash = '#stream.id.one'")
    tab.locator("tbody[id='stream.id.one'] .detail").wait_for()
    tab.wait_for_function("location.hash === '#stream.id.one?l=MUST'")


def test_keys_lead_to_the_next_and_the_previous_failure(visit, pages):
    tab = visit(pages / "failing/report.html")
    seen = []
    for key in "nnnp":
        tab.keyboard.press(key)
        seen.append(tab.evaluate("document.activeElement.closest('.r').id"))
    assert seen == ["usage.chunk.empty-choices", "stream.id.one", "errors.envelope.members", "stream.id.one"]
    assert tab.evaluate("location.hash") == "#stream.id.one"
    tab.locator("#q").focus()
    tab.keyboard.press("n")
    assert tab.locator("#q").input_value() == "n"


def test_what_passed_is_folded_until_it_is_asked_for(visit, pages):
    tab = visit(pages / "failing/report.html")
    assert "usage.total.adds-up" not in shown(tab)
    tab.get_by_role("button", name="Show 3 more: passed, not run or not applicable").click()
    assert len(shown(tab)) == 8
    tab.reload()
    assert len(shown(tab)) == 8
    plain = visit(pages / "failing/report.html", java_script_enabled=False)
    assert plain.locator("tbody[id='usage.total.adds-up']").is_visible()


def test_search_looks_into_messages_and_says_when_nothing_fits(visit, pages):
    tab = visit(pages / "failing/report.html")
    tab.keyboard.press("/")
    tab.keyboard.type("'INDEX': 0")
    assert shown(tab) == ["usage.chunk.empty-choices"]
    tab.locator("#q").fill("no such thing")
    assert shown(tab) == []
    assert tab.get_by_text("No requirement matches these filters.").is_visible()


def test_an_area_narrows_the_table(visit, pages):
    tab = visit(pages / "failing/report.html")
    tab.locator(".area[data-area=usage]").click()
    assert shown(tab) == ["usage.chunk.empty-choices", "usage.total.adds-up"]


def test_a_row_opens_by_keyboard_down_to_the_offending_event(visit, pages):
    tab = visit(pages / "failing/report.html")
    row = tab.locator("tbody[id='usage.chunk.empty-choices']")
    button = row.locator(".open")
    assert button.get_attribute("aria-expanded") == "false"
    button.focus()
    tab.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    here = row.locator(".ev.here")
    here.wait_for()
    assert here.locator("mark").inner_text().startswith('[{"text": ""')
    assert row.locator("svg.timeline").is_visible()
    assert "curl -sSNi" in row.locator(".code pre").first.inner_text()
    tab.keyboard.press("Enter")
    assert not row.locator(".d").is_visible()


def test_an_open_row_shows_the_smallest_request_as_curl_and_as_python(visit, pages):
    tab = visit(pages / "failing/report.html")
    row = tab.locator("tbody[id='usage.chunk.empty-choices']")
    row.locator(".open").click()
    pair = row.locator(".least .pair .code pre")
    assert pair.count() == 2
    assert """{"model":"m","prompt":"1, 2, 3,","stream":true}'""" in pair.first.inner_text()
    assert "client.completions.create(" in pair.last.inner_text()
    row.locator(".open").click()
    row.locator(".open").click()
    assert pair.count() == 2


def test_a_deep_link_opens_its_row(visit, pages):
    tab = visit(pages / "failing/report.html", "#usage.chunk.empty-choices")
    row = tab.locator("tbody[id='usage.chunk.empty-choices']")
    row.locator(".ev.here").wait_for()
    tab.evaluate("location.hash = '#errors.envelope.members'")
    tab.locator("tbody[id='errors.envelope.members'] .xb").wait_for()


def test_a_deep_link_to_a_row_that_is_filtered_out_clears_the_filter(visit, pages):
    tab = visit(pages / "failing/report.html")
    tab.get_by_role("button", name="pass 1").click()
    tab.evaluate("location.hash = '#usage.chunk.empty-choices'")
    tab.locator("tbody[id='usage.chunk.empty-choices'] .ev.here").wait_for()
    assert len(shown(tab)) == 5


def test_columns_sort_both_ways(visit, pages):
    tab = visit(pages / "failing/report.html")
    head = tab.get_by_role("button", name="Requirement", exact=True)
    head.click()
    assert shown(tab) == sorted(shown(tab))
    head.click()
    assert shown(tab) == sorted(shown(tab), reverse=True)
    assert tab.locator("th.c-id").get_attribute("aria-sort") == "descending"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_until_the_reader_chooses(visit, pages, scheme):
    tab = visit(pages / "failing/report.html", color_scheme=scheme)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert (tab.evaluate(paper) == "rgb(21, 23, 27)") is (scheme == "dark")
    tab.get_by_role("button", name="Switch between light and dark").click()
    assert (tab.evaluate(paper) == "rgb(21, 23, 27)") is (scheme == "light")
    tab.reload()
    assert (tab.evaluate(paper) == "rgb(21, 23, 27)") is (scheme == "light")


def test_copying_takes_the_whole_command(visit, pages):
    tab = visit(pages / "failing/report.html", "#usage.chunk.empty-choices")
    tab.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }")
    tab.locator("tbody:target .copy").first.click()
    assert tab.evaluate("copied").startswith("curl -sSNi http://127.0.0.1:8080/v1/completions")


def test_printing_opens_what_is_broken_and_nothing_else(visit, pages):
    tab = visit(pages / "failing/report.html")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened = [row.get_attribute("id") for row in tab.locator(".r:has(.d:not([hidden]))").all()]
    assert opened == ["usage.chunk.empty-choices", "stream.id.one", "errors.envelope.members"]
    tab.emulate_media(media="print")
    assert not tab.locator("#q").is_visible()


def test_without_scripts_everything_is_there_to_read(visit, pages):
    tab = visit(pages / "failing/report.html", java_script_enabled=False)
    assert tab.get_by_text("Clients recognise this chunk by its empty choices").first.is_visible()
    assert tab.locator("#x0").is_visible()


def test_hostile_text_does_nothing(visit, pages):
    tab = visit(pages / "hostile/report.html", "#usage.chunk.empty-choices")
    tab.locator("tbody:target .xb").wait_for()
    assert tab.locator("img").count() == 0
    assert "<img src=x onerror=alert(1)>" in tab.locator("tbody:target .about .bad").first.inner_text()
    visit(pages / "index.html")


def test_pytest_htmls_page_shows_ours_first_and_folds_its_own(visit, tmp_path, pytester_page):
    tab = visit(pytester_page, "#usage.chunk.empty-choices")
    tab.locator("tbody[id='usage.chunk.empty-choices'] .ev.here").wait_for()
    assert tab.get_by_role("heading", level=1).first.inner_text() == "Does not conform"
    assert not tab.locator("#results-table").is_visible()
    tab.get_by_text("The same results in pytest-html’s own table").click()
    assert tab.locator("#results-table tbody").count() == 8
    tab.locator("#results-table").get_by_role("link", name="evidence of usage.chunk.empty-choices").click()
    assert tab.evaluate("scrollY") < tab.evaluate("document.querySelector('details.pytest').offsetTop")
    ids = tab.evaluate("Array.from(document.querySelectorAll('[id]'), (node) => node.id)")
    assert len(ids) == len(set(ids))


@pytest.fixture
def pytester_page(pytester, monkeypatch):
    from conformance.run import launch

    run = fake_runs.failing()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(launch, "checked_contract", lambda _: run.contract)
    monkeypatch.setattr(launch, "launch", lambda *_: run)
    plugins = ["-p", "conformance.plugin", "-p", "pytest_html.plugin", "-p", "pytest_metadata.plugin"]
    pytester.runpytest_inprocess("--pyargs", "conformance.suite", *plugins, "--provider=example")
    return pytester.path / "reports/example/report.html"


def test_the_index_opens_areas_and_leads_to_the_row(visit, pages):
    tab = visit(pages / "index.html")
    assert tab.get_by_role("heading", level=1).inner_text() == "1 of 3 targets conform"
    area = tab.get_by_role("button", name="usage", exact=True)
    area.focus()
    tab.keyboard.press("Enter")
    assert area.get_attribute("aria-expanded") == "true"
    tab.locator("#a-usage a[href='failing/report.html#usage.chunk.empty-choices']").click()
    tab.locator("tbody[id='usage.chunk.empty-choices'] .ev.here").wait_for()
    tab.get_by_role("link", name="All targets").click()
    assert tab.url.endswith("index.html")


@pytest.mark.parametrize(
    "name", ["failing/report.html", "fine/report.html", "index.html", "history.html", "diff.html", "back.html"]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way_of_a_screen_reader(visit, pages, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = visit(pages / name, color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('.open').forEach((button) => button.click())")
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    tab.wait_for_timeout(100)
    found = axe.run(tab).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in {"serious", "critical"}]
    assert serious == []


@pytest.mark.parametrize("width", [390, 800, 1300])
def test_no_width_needs_sideways_scrolling(visit, pages, width):
    tab = visit(pages / "failing/report.html", "#usage.chunk.empty-choices")
    tab.set_viewport_size({"width": width, "height": 800})
    tab.locator("tbody:target .ev.here").wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.locator("tbody:target th").bounding_box()["width"] > 150


@pytest.mark.parametrize("name", ["index.html", "history.html"])
def test_a_phone_shows_all_of_the_targets_without_sideways_scrolling(visit, pages, name):
    tab = visit(pages / name)
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.evaluate("document.querySelectorAll('[data-all=true]').forEach((button) => button.click())")
    frames = "document.querySelectorAll('html, .wide:not(:has(.delta))')"
    assert tab.evaluate(f"Array.from({frames}).every((frame) => frame.scrollWidth <= frame.clientWidth)")


def test_the_names_of_targets_stay_in_sight_while_areas_are_read(visit, pages):
    tab = visit(pages / "index.html")
    tab.set_viewport_size({"width": 1300, "height": 300})
    tab.get_by_role("button", name="open all").click()
    tab.evaluate("document.querySelector('.matrix').lastElementChild.scrollIntoView({ block: 'end' })")
    assert tab.evaluate("document.querySelector('.matrix thead th').getBoundingClientRect().top") == 0


def test_a_page_of_six_hundred_exchanges_opens_quickly(visit, tmp_path):
    run = fake_runs.large()
    (tmp_path / "report.html").write_text(page.render(results.document(run), run.exchanges), "utf-8")
    tab = visit(tmp_path / "report.html")
    began = tab.evaluate("performance.timeOrigin")
    ready = tab.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert began > 0
    assert ready < 5_000
    tab.locator("#q").fill("row-299")
    assert shown(tab) == ["area19.row-299"]
    assert Outcome.FAIL in tab.locator(".r:visible .o").first.inner_text()


def test_the_dressing_is_one_string_that_pytest_html_can_place():
    run = fake_runs.failing()
    assert front(results.document(run), run.exchanges).startswith("<style>")
