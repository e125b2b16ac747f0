"""What pytest-html's page is dressed in: our report in front, and a requirement's columns in its own table."""

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


def front(results: Mapping[str, Any], exchanges: Iterable[Exchange]) -> str:
    """Our report, whole; its script folds pytest-html's own table below."""
    report = fragment(results, exchanges)
    return f"<style>{asset('style.css')}</style>{report}<script>{asset('report.js')}</script>"


def header(result: str) -> list[str]:
    """The heads of the columns; pytest-html's script needs its own result and testId."""
    named = [f'<th{_SORTABLE.get(name, "")} data-column-type="{name}">{name}</th>' for name in COLUMNS]
    return [result, '<th class="sortable" data-column-type="testId" hidden></th>', *named]


def cells(row: Row, result: str) -> list[str]:
    """The cells of one requirement. Quotes are left out: each is five characters in pytest-html's data, often twice."""
    told = {**row, "source": row["source"]["at"] or row["source"]["page"]}
    shown = [f"<td class=col-{name}>{escape(visible(str(told[name])))}</td>" for name in COLUMNS]
    return [result, f"<td class=col-testId hidden>test-{escape(row['id'])}</td>", *shown]


def link(row: Row) -> str:
    """From pytest-html's table to the evidence."""
    return f"<a href=#{escape(row['id'])}>evidence of {escape(row['id'])}</a>"
