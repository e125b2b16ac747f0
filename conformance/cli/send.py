"""`conformance send`: send one request case again, and show the exchange and its findings."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from conformance.cli.options import of_targets, options
from conformance.cli.printing import say
from conformance.cli.selected_targets import selected_jobs, single_job
from conformance.config.settings import Settings, SettingsError
from conformance.model import BROKEN, Contract, Level, Phase, RequestCase
from conformance.model.exchange import Exchange
from conformance.model.exit_codes import ExitCode


@click.command("send")
@click.argument("words", nargs=-1, required=True, metavar="[PROVIDER] CASE")
@options(
    "base-url",
    "model",
    "header",
    "query",
    "credential",
    "api-key-env",
    "specs",
    "out",
    "name",
    "profile",
    "seed",
    "timeout",
)
@of_targets("Send to this target of the file instead of PROVIDER.")
def send_command(words: tuple[str, ...], config: Path | None, globs: tuple[str, ...], **given: Any) -> int:
    """Send CASE again and show request, response and findings.

    The case is taken from the recording of the last run, otherwise from a new plan. An unambiguous beginning of its id
    is enough. Exit code 1 if a MUST is broken.
    """
    from conformance.run.launch import load_contract, open_target

    provider, case = _words(words)
    chosen, _ = single_job(selected_jobs(provider, config, globs, given), "a case")
    contract = load_contract(chosen)
    with open_target(chosen, contract) as (target, _):
        again = replace(_case(case, chosen), repeats="")
        exchange = asyncio.run(_send(again, target, chosen))
        for line in _as_text(exchange, target):
            say(line)
    if exchange.status is None:
        say(f"conformance: no response, so nothing could be judged: {exchange.last.error}", err=True)
        return ExitCode.INCOMPLETE
    return _print_findings(exchange, contract)


def _words(words: tuple[str, ...]) -> tuple[str | None, str]:
    if len(words) > 2:
        raise SettingsError(f"{len(words)} arguments are given; expected PROVIDER and CASE, or --target NAME and CASE")
    return (words[0], words[1]) if len(words) == 2 else (None, words[0])


def _case(prefix: str, chosen: Settings) -> RequestCase:
    """The case with this id, or the only one whose id begins with it."""
    cases = {case.id: case for case in _cases(chosen)}
    if prefix in cases:
        return cases[prefix]
    matches = [name for name in cases if name.startswith(prefix)]
    if len(matches) == 1:
        return cases[matches[0]]
    if matches:
        raise SettingsError(
            f"{len(matches)} cases begin with {prefix!r}: {', '.join(matches[:3])} …; give more of the id"
        )
    raise SettingsError(f"there is no case {prefix!r} among {len(cases)}; `{_listing(chosen)}` shows ids")


def _listing(chosen: Settings) -> str:
    """The command that lists the cases of a plan with these settings: ids are hashes of what is sent."""
    given = [
        *(["--model", chosen.model] if chosen.model else []),
        *(["--profile", chosen.profile] if chosen.profile != "gate" else []),
        *(["--seed", str(chosen.seed)] if chosen.seed else []),
        *(word for folder in chosen.specs for word in ("--specs", str(folder))),
    ]
    return shlex.join(["conformance", "plan", chosen.provider, "--cases", *given])


def _cases(chosen: Settings) -> Iterator[RequestCase]:
    from conformance import recording
    from conformance.cli.plan import forecast
    from conformance.run.launch import recording_path

    path = recording_path(chosen)
    if path.exists():
        try:
            yield from recording.read(path).planned
        except recording.RecordingError as error:
            raise SettingsError(str(error)) from None
        return
    yield from forecast(chosen).cases


async def _send(case: RequestCase, target: Any, chosen: Settings) -> Exchange:
    from conformance.model.budget import Account, Budget
    from conformance.run.launch import timeout_policy
    from conformance.send import Sender

    without_retries = replace(timeout_policy(chosen), retries=0)
    async with Sender(target, Account(Budget()), timeouts=without_retries) as sender:
        (exchange,) = await sender.send(Phase("send", (case,)))
    return exchange


def _as_text(exchange: Exchange, target: Any) -> Iterator[str]:
    """The exchange as text with arrival times; the key is masked and control characters are escaped."""
    from conformance.report.text import decoded, visible
    from conformance.send import Redaction

    mask, last = Redaction(target.secrets).text, exchange.last
    yield f"> {exchange.case.method} {mask(target.url(exchange.case))}"
    for name, value in target.head(exchange.case):
        yield f"> {name}: {mask(visible(value))}"
    yield f">\n{decoded(exchange.case.content)}\n"
    yield (
        f"< {exchange.last.http_version} {exchange.status}"
        if exchange.status is not None
        else f"< no response: {visible(exchange.last.error)}"
    )
    for name, value in exchange.headers:
        yield f"< {visible(name)}: {visible(value)}"
    yield f"< {exchange.ending}{f' ({visible(last.error)})' if last.error else ''} after {last.elapsed:.3f} s"
    if exchange.header("content-encoding"):
        yield decoded(exchange.content)
        return
    for piece in exchange.pieces:
        yield f"[{piece.at:.3f} s] {decoded(piece.data)}"


def _print_findings(exchange: Exchange, contract: Contract) -> int:
    from conformance.judge import Traffic, judge_all

    verdicts = judge_all(contract, Traffic((exchange,)))
    broken = [verdict for verdict in verdicts if verdict.outcome in BROKEN]
    say("")
    for verdict in broken:
        requirement = verdict.requirement
        say(f"{verdict.outcome.upper()} {requirement.id} ({requirement.level}): {verdict.reason}")
    examined = sum(verdict.examined > 0 for verdict in verdicts)
    say(f"{examined} requirements were examined on this exchange alone, {len(broken)} of them are broken")
    must = any(verdict.requirement.level is Level.MUST for verdict in broken)
    return ExitCode.BROKEN if must else ExitCode.CONFORMANT
