"""Results for people and machines.

In: a finished `Run` (verdicts, recorded exchanges, plan), waivers.
Out: results.json; and from results.json alone, with the recorded exchanges, report.html, index.html, history.html,
JUnit, CTRF, Markdown, badges, terminal text, differences between runs.
Never imports certificate, pytest_plugin or cli, and never sends or judges anything.
"""
