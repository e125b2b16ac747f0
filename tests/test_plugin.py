"""The suite under pytest: outcomes, exit codes, pages, options. Runs are made up, so that no target is needed."""

import json
from dataclasses import replace

import fake_runs
import pytest

from conformance.config.settings import KEY_VARIABLE, SettingsError
from conformance.model import Level, Outcome
from conformance.pytest_plugin.plugin import arguments
from conformance.run import launch

pytest_plugins = ("pytester",)


@pytest.fixture
def suite(pytester, monkeypatch):
    """Run the suite in this process on a made-up run; gives pytest's result."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)

    def start(run, *options, plugins=()):
        if isinstance(run, Exception):

            def make(settings, watcher=None, stop_after=0):
                raise run

            monkeypatch.setattr(launch, "checked_contract", lambda _: fake_runs.failing().contract)
        else:
            seen = {}

            def make(settings, watcher=None, stop_after=0):
                seen.update(settings=settings, watcher=watcher, stop_after=stop_after)
                return replace(run, profile=settings.profile, seed=settings.seed)

            monkeypatch.setattr(launch, "checked_contract", lambda _: run.contract)
        monkeypatch.setattr(launch, "launch", make)
        words = ["--pyargs", "conformance.suite", "-p", "conformance.plugin", "-p", "pytest_metadata.plugin"]
        result = pytester.runpytest_inprocess(
            *words, "-p", "pytest_html.plugin", "--provider=example", *options, plugins=list(plugins)
        )
        result.seen = seen if not isinstance(run, Exception) else {}
        result.folder = pytester.path / "reports" / "example"
        return result

    return start


def test_each_requirement_is_an_item_with_an_outcome_of_its_own(suite):
    result = suite(fake_runs.failing(), "-v")
    outcomes = {
        "usage.chunk.empty-choices": "FAILED",
        "errors.envelope.members": "XFAIL",
        "stream.id.one": "FAILED",
        "framing.utf8": "ERROR",
        "stop.text": "ERROR",
        "logprobs.parallel": "SKIPPED",
        "usage.total.adds-up": "PASSED",
        "echo.prefix": "SKIPPED",
    }
    result.stdout.fnmatch_lines([f"*test_requirement?{name}? {outcome}*" for name, outcome in outcomes.items()])
    result.assert_outcomes(passed=1, failed=2, errors=2, skipped=2, xfailed=1, warnings=1)


def test_a_failure_shows_the_block_and_no_traceback(suite):
    result = suite(fake_runs.failing())
    result.stdout.fnmatch_lines(
        [
            "FAIL example usage.chunk.empty-choices (MUST)",
            "  observed  scenario/3f9a1c, event 6 /choices: choices is *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*def test_requirement*")


@pytest.mark.parametrize(
    ("verdicts", "incomplete", "options", "code"),
    [
        ([fake_runs.verdict()], (), [], 0),
        ([fake_runs.verdict(), fake_runs.broken()], (), [], 1),
        ([fake_runs.failing().verdicts[1]], (), [], 0),
        ([fake_runs.failing().verdicts[1]], (), ["--conformance-strict"], 1),
        ([fake_runs.verdict()], ("the budget ended",), [], 3),
        ([fake_runs.verdict(Outcome.INCONCLUSIVE, incomplete=True, reason="none did")], (), [], 3),
        ([fake_runs.verdict(Outcome.ERROR, reason="raised")], (), [], 4),
        ([fake_runs.broken()], ("the budget ended",), [], 1),
    ],
)
def test_the_exit_status_is_that_of_the_command_line(suite, verdicts, incomplete, options, code):
    result = suite(fake_runs.run(*verdicts, incomplete=incomplete), *options)
    assert result.ret == code


def test_all_files_are_written(suite):
    result = suite(fake_runs.failing())
    machines = {"results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json", "badge.svg"}
    assert {path.name for path in result.folder.iterdir()} == {"report.html", *machines}
    assert (result.folder.parent / "index.html").exists()
    assert json.loads((result.folder / "results.json").read_text("utf-8"))["verdict"] == "broken"


def test_the_page_is_pytest_htmls_with_our_report_in_it(suite):
    result = suite(fake_runs.failing())
    html = (result.folder / "report.html").read_text("utf-8")
    assert 'id="results-table"' in html
    assert 'id="conformance"' in html
    assert '<tbody class="r" id="usage.chunk.empty-choices"' in html
    assert "Does not conform" in html


def test_the_page_of_six_hundred_exchanges_and_three_hundred_rows_stays_under_two_megabytes(suite):
    page = suite(fake_runs.large()).folder / "report.html"
    assert page.stat().st_size < 2_000_000


def test_pytest_htmls_table_has_the_columns_of_a_requirement(suite):
    html = (suite(fake_runs.failing()).folder / "report.html").read_text("utf-8")
    for name in ("area", "id", "level", "layer", "outcome", "promise", "examined", "source"):
        assert f'data-column-type="{name}"' in html


def test_hostile_text_stays_text_on_pytest_htmls_page_too(suite):
    html = (suite(fake_runs.hostile(), "--conformance-name=x").folder.parent / "x" / "report.html").read_text("utf-8")
    assert "<img src=x" not in html
    assert html.count("<script") == 2


def test_only_what_was_selected_is_judged(suite):
    result = suite(fake_runs.failing(), "--conformance-select=usage.*")
    result.assert_outcomes(failed=1, passed=1)
    rows = json.loads((result.folder / "results.json").read_text("utf-8"))["requirements"]
    assert [row["id"] for row in rows] == ["usage.chunk.empty-choices", "usage.total.adds-up"]


def test_pytests_own_selection_counts_as_well(suite):
    result = suite(replace(fake_runs.failing(), incomplete=()), "-k", "usage.total")
    assert result.ret == 0
    result.assert_outcomes(passed=1, deselected=7)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (["-k", "usage.total"], ("usage.total.adds-up",)),
        (["-m", "SHOULD"], ("errors.envelope.members",)),
        (["-m", "MUST and usage and contract"], ("usage.chunk.empty-choices", "usage.total.adds-up")),
        ([], ()),
    ],
)
def test_what_pytest_selects_is_all_that_is_sent(suite, options, sent):
    assert suite(fake_runs.failing(), *options).seen["settings"].select == sent


def test_a_deselected_requirement_is_not_sent(suite):
    result = suite(fake_runs.failing(), "-v")
    node = next(line.split(" ")[0] for line in result.outlines if "framing.utf8" in line)
    sent = suite(fake_runs.failing(), "--deselect", node).seen["settings"].select
    assert "framing.utf8" not in sent
    assert len(sent) == 7


def test_what_failed_last_is_all_that_is_sent_again(suite, pytester):
    suite(fake_runs.failing(), "--conformance-strict")
    sent = suite(fake_runs.failing(), "--lf", "--conformance-strict").seen["settings"].select
    assert 0 < len(sent) < 8
    assert "usage.total.adds-up" not in sent


def test_ids_with_brackets_select_themselves(suite):
    rows = [fake_runs.requirement(f"response.choices[].{name}.type") for name in ("text", "index")]
    result = suite(fake_runs.run(*(fake_runs.verdict(row=row) for row in rows)), "-k", "text")
    assert result.seen["settings"].select == ("response.choices[[]].text.type",)


@pytest.mark.parametrize(("options", "most"), [(["-x"], 1), (["--maxfail=3"], 3), ([], 0)])
def test_a_run_stops_where_pytest_does(suite, options, most):
    assert suite(fake_runs.failing(), *options).seen["stop_after"] == most


def test_markers_are_registered(suite):
    result = suite(fake_runs.failing(), "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.MUST: requirements of this level, layer or area"])
    assert suite(fake_runs.failing(), "--strict-markers").ret == 1


def test_the_short_summary_has_the_finding(suite, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    result = suite(fake_runs.failing())
    result.stdout.fnmatch_lines(
        ["FAILED *test_requirement[[]usage.chunk.empty-choices[]] - choices is [[]*beside usage; expected [[]]"]
    )
    result.stdout.fnmatch_lines(["usage.chunk.empty-choices (MUST): choices is [[]*; expected [[]]"])


def test_options_reach_the_run(suite):
    options = ["--conformance-seed=7", "--profile=full", "--max-requests=9", "--claim=no echo", "--header=X-A: b"]
    settings = suite(fake_runs.failing(), *options).seen["settings"]
    assert (settings.seed, settings.profile, settings.budget.requests) == (7, "full", 9)
    assert (settings.claims, settings.headers) == (("no echo",), (("X-A", "b"),))


def test_arguments_say_the_same_as_the_options_they_are_made_from(suite):
    given = {"seed": 3, "strict": True, "header": ("X-A: -b", "X-C: d"), "model": "--odd", "max_seconds": 1.5}
    words = [word for word in arguments("example", given) if word.startswith("--conformance-")]
    settings = suite(fake_runs.failing(), *words).seen["settings"]
    assert (settings.seed, settings.strict, settings.model) == (3, True, "--odd")
    assert settings.headers == (("X-A", "-b"), ("X-C", "d"))
    assert settings.budget.seconds == 1.5


def test_an_option_that_another_plugin_has_keeps_its_prefix(suite):
    class Other:
        def pytest_addoption(self, parser):
            parser.addoption("--timeout", dest="other")

    settings = suite(fake_runs.failing(), "--timeout=5", "--conformance-timeout=9", plugins=[Other()]).seen["settings"]
    assert settings.timeout == 9.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--conformance-select=nothing.*"], "matches none of 8 requirements"),
        (["--conformance-concurrency=0"], "expected a number above 0"),
        (["--conformance-header=secret"], "expected 'Name: value'"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(pytester, monkeypatch, capfd, options, said):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(launch, "checked_contract", lambda _: fake_runs.failing().contract)
    plugins = ["-p", "conformance.plugin", "-p", "pytest_html.plugin", "-p", "pytest_metadata.plugin"]
    code = pytest.main(["--pyargs", "conformance.suite", *plugins, "--provider=example", *options])
    assert code == 2
    told = capfd.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1
    assert not (pytester.path / "reports").exists()


def test_misuse_that_shows_late_leaves_the_last_report_alone(suite, pytester):
    there = pytester.mkdir("reports") / "example"
    there.mkdir()
    (there / "report.html").write_text("yesterday", "utf-8")
    result = suite(SettingsError("no model is named; give --model NAME"))
    assert result.ret == 2
    assert "no model is named" in result.stdout.str() + result.stderr.str()
    assert (there / "report.html").read_text("utf-8") == "yesterday"


def test_a_crash_of_ours_is_exit_code_4_with_its_traceback(suite):
    result = suite(ZeroDivisionError("oops"))
    assert result.ret == 4
    assert "internal error of the suite" in result.stdout.str() + result.stderr.str()
    assert "ZeroDivisionError: oops" in result.stderr.str()


def test_an_interruption_before_the_run_is_incomplete_and_leaves_the_last_report_alone(suite, pytester):
    there = pytester.mkdir("reports") / "example"
    there.mkdir()
    (there / "report.html").write_text("yesterday", "utf-8")

    class Impatient:
        def pytest_conformance_watcher(self):
            raise KeyboardInterrupt

    result = suite(fake_runs.failing(), plugins=[Impatient()])
    assert result.ret == 3
    assert (there / "report.html").read_text("utf-8") == "yesterday"


def test_an_interruption_after_the_run_keeps_its_verdicts(suite):
    class Impatient:
        def pytest_runtest_logstart(self):
            raise KeyboardInterrupt

    assert suite(fake_runs.failing(), plugins=[Impatient()]).ret == 1
    assert suite(fake_runs.run(fake_runs.verdict()), plugins=[Impatient()]).ret == 3


def test_nothing_selected_has_pytests_own_exit_status(suite):
    result = suite(fake_runs.failing(), "-k", "nosuchthing")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not list(result.folder.glob("*"))
    assert result.seen == {}


def test_a_run_without_pytest_html_writes_its_own_page(suite):
    result = suite(fake_runs.failing(), "-p", "no:html", "-p", "no:pytest_html.plugin")
    assert result.ret == 1
    assert "Does not conform" in (result.folder / "report.html").read_text("utf-8")


def test_pytest_html_need_not_be_loaded(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(launch, "checked_contract", lambda _: fake_runs.failing().contract)
    monkeypatch.setattr(launch, "launch", lambda *_: fake_runs.failing())
    result = pytester.runpytest_inprocess(
        "--pyargs", "conformance.suite", "-p", "conformance.plugin", "--provider=example"
    )
    assert result.ret == 1
    page = pytester.path / "reports" / "example" / "report.html"
    assert "Does not conform" in page.read_text("utf-8")


def test_a_page_elsewhere_leaves_no_page_of_an_earlier_run_beside_the_results(suite, pytester):
    result = suite(fake_runs.failing(), "--html=elsewhere.html")
    assert (pytester.path / "elsewhere.html").exists()
    assert "Does not conform" in (result.folder / "report.html").read_text("utf-8")


def test_the_suite_without_a_provider_says_what_to_give(monkeypatch, capfd):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ["-p", "conformance.plugin", "-p", "pytest_html.plugin", "-p", "pytest_metadata.plugin"]
    assert pytest.main(["--pyargs", "conformance.suite", *plugins]) == 2
    assert capfd.readouterr().err == "Exit: no provider is given; expected --provider NAME\n"


def test_collecting_sends_nothing_and_writes_nothing(suite):
    result = suite(fake_runs.failing(), "--collect-only", "-q")
    assert result.ret == 0
    assert result.seen == {}
    assert not result.folder.exists()
    result.stdout.fnmatch_lines(["*test_requirement?usage.chunk.empty-choices?"])


def test_what_ci_systems_put_into_the_environment_stays_out(suite, monkeypatch):
    monkeypatch.setenv("GITLAB_CI", "1")
    monkeypatch.setenv("CI_REPOSITORY_URL", "https://token:canary@host/x")
    monkeypatch.setenv("GITHUB_ACTIONS", "1")
    monkeypatch.setenv("GITHUB_ACTOR", "canary")
    folder = suite(fake_runs.failing()).folder
    assert not any("canary" in path.read_text("utf-8") for path in folder.iterdir())


def test_others_may_watch_and_are_told_the_results(suite):
    told = {}

    class Progress:
        def pytest_conformance_watcher(self, contract):
            return contract

        def pytest_conformance_results(self, results):
            told.update(results)

    result = suite(fake_runs.failing(), plugins=[Progress()])
    assert result.seen["watcher"].provider == "example"
    assert told["verdict"] == "broken"


def test_tests_of_ones_own_may_run_beside_the_suite(suite, pytester):
    mine = pytester.makepyfile(test_mine="def test_mine(): assert False")
    result = suite(fake_runs.run(fake_runs.verdict()), str(mine))
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == 1


def test_a_warning_is_a_failure_where_pytest_is_told_so(suite):
    warned = fake_runs.verdict(
        Outcome.WARN, fake_runs.requirement(level=Level.SHOULD), violations=1, reason="observed; expected"
    )
    suite(fake_runs.run(warned), "-W", "error::conformance.plugin.NotMet").assert_outcomes(failed=1)
