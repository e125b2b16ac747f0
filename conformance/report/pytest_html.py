"""The parts of pytest-html's page that are ours: the report in front, and the columns of its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

from conformance.model.exchange import Exchange
from conformance.report.page import asset, fragment
from conformance.report.tally import Row
from conformance.report.text import visible

COLUMNS: Final = ("area", "id", "level", "layer", "outcome", "promise", "examined", "source")
_SORTABLE: Final = dict.fromkeys(COLUMNS[:5], ' class="sortable"')


def front(results: Mapping[str, Any], exchanges: Iterable[Exchange], folder: str = "") -> str:
    """The whole report; its script folds pytest-html's own table below it."""
    report = fragment(results, exchanges, folder)
    return f"<style>{asset('style.css')}</style>{report}<script>{asset('report.js')}</script>"


def header(result: str) -> list[str]:
    """The column headings; pytest-html's script needs its own result and testId."""
    headings = [f'<th{_SORTABLE.get(name, "")} data-column-type="{name}">{name}</th>' for name in COLUMNS]
    return [result, '<th class="sortable" data-column-type="testId" hidden></th>', *headings]


def cells(row: Row, result: str) -> list[str]:
    """The cells of one requirement, without quotes: each takes five characters in pytest-html's data, often twice."""
    texts = {**row, "source": row["source"]["at"] or row["source"]["page"]}
    values = [f"<td class=col-{name}>{escape(visible(str(texts[name])))}</td>" for name in COLUMNS]
    return [result, f"<td class=col-testId hidden>test-{escape(row['id'])}</td>", *values]


def link(row: Row) -> str:
    """A link from pytest-html's table to the evidence."""
    return f"<a href=#{escape(row['id'])}>evidence of {escape(row['id'])}</a>"
