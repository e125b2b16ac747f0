"""`conformance send`: one case again, with all that came back and what it shows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from conformance.cli.options import of_targets, options
from conformance.cli.selected_targets import named, only
from conformance.config.settings import Settings, SettingsError
from conformance.model import BROKEN, Contract, Level, Phase, RequestCase
from conformance.model.exchange import Exchange


@click.command("send")
@click.argument("words", nargs=-1, required=True, metavar="[PROVIDER] CASE")
@options("base-url", "model", "header", "query", "api-key-env", "specs", "out", "name", "profile", "seed", "timeout")
@of_targets("Send to this target of the file instead of a PROVIDER.")
def send_command(words: tuple[str, ...], config: Path | None, globs: tuple[str, ...], **given: Any) -> int:
    """Send CASE again and show request, response and findings.

    The case is taken from the last run's recording, or planned anew. An unambiguous beginning of its id is enough.
    Exit code 1 where a MUST is broken.
    """
    from conformance.run.launch import load, target

    provider, case = _words(words)
    chosen, _ = only(named(provider, config, globs, given), "a case")
    contract = load(chosen)
    with target(chosen, contract) as (where, _):
        wanted = replace(_one(case, chosen), repeats="")
        exchange = asyncio.run(_send(wanted, where, chosen))
        for line in _told(exchange, where):
            click.echo(line)
    return _findings(exchange, contract)


def _words(words: tuple[str, ...]) -> tuple[str | None, str]:
    if len(words) > 2:
        raise SettingsError(f"{len(words)} words are given; expected PROVIDER and CASE, or --target NAME and CASE")
    return (words[0], words[1]) if len(words) == 2 else (None, words[0])


def _one(wanted: str, chosen: Settings) -> RequestCase:
    """The case of that id, or the only one whose id begins so."""
    known = {case.id: case for case in _cases(chosen)}
    begins = [name for name in known if name.startswith(wanted)]
    if wanted in known:
        return known[wanted]
    if len(begins) == 1:
        return known[begins[0]]
    if begins:
        raise SettingsError(
            f"{len(begins)} cases begin with {wanted!r}: {', '.join(begins[:3])} …; give more of the id"
        )
    raise SettingsError(f"there is no case {wanted!r} among {len(known)}; `conformance plan --cases` shows ids")


def _cases(chosen: Settings) -> Iterator[RequestCase]:
    from conformance import recording
    from conformance.cli.plan import forecast
    from conformance.run.launch import recorded

    path = recorded(chosen)
    if path.exists():
        try:
            yield from recording.read(path).planned
        except recording.RecordingError as error:
            raise SettingsError(str(error)) from None
        return
    yield from forecast(chosen).cases


async def _send(case: RequestCase, where: Any, chosen: Settings) -> Exchange:
    from conformance.model.budget import Account, Budget
    from conformance.run.launch import patience
    from conformance.send import Sender

    once = replace(patience(chosen), retries=0)
    async with Sender(where, Account(Budget()), patience=once) as sender:
        (exchange,) = await sender.send(Phase("send", (case,)))
    return exchange


def _told(x: Exchange, where: Any) -> Iterator[str]:
    """The exchange as text, times and all; the key masked, whatever a terminal would obey spelled out."""
    from conformance.report.text import decoded, visible
    from conformance.send import Redaction

    mask = Redaction(where.secrets).text
    yield f"> {x.case.method} {mask(where.url(x.case))}"
    for name, value in where.head(x.case):
        yield f"> {name}: {mask(visible(value))}"
    yield f">\n{decoded(x.case.content)}\n"
    yield f"< {x.last.http_version} {x.status}" if x.status is not None else f"< no response: {visible(x.last.error)}"
    for name, value in x.headers:
        yield f"< {visible(name)}: {visible(value)}"
    yield f"< {x.ending}{f' ({visible(x.last.error)})' if x.last.error else ''} after {x.last.elapsed:.3f} s"
    if x.header("content-encoding"):
        yield decoded(x.content)
        return
    for piece in x.pieces:
        yield f"[{piece.at:.3f} s] {decoded(piece.data)}"


def _findings(x: Exchange, contract: Contract) -> int:
    from conformance.judge import Traffic, judge_all

    verdicts = judge_all(contract, Traffic((x,)))
    broken = [one for one in verdicts if one.outcome in BROKEN]
    click.echo("")
    for verdict in broken:
        row = verdict.requirement
        click.echo(f"{verdict.outcome.upper()} {row.id} ({row.level}): {verdict.reason}")
    shown = sum(one.examined > 0 for one in verdicts)
    click.echo(f"{shown} requirements were seen on this exchange alone, {len(broken)} of them broken")
    return 1 if any(one.requirement.level is Level.MUST for one in broken) else 0
