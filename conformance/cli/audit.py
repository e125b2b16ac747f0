"""`conformance audit`: judge recorded traffic with the same checks, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import options
from conformance.config.settings import Settings, SettingsError

RECORDED: Final = "recorded"
"""The profile, and the base URL if it is not known, of traffic that this suite did not send."""

if TYPE_CHECKING:
    from conformance.model import Contract
    from conformance.recording.load import Gathered
    from conformance.run import Run


@click.command("audit")
@click.argument("provider")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@options("specs", "select", "strict", "waivers", "name", "out")
@click.option("--quiet", "-q", is_flag=True, help="Print the summary only.")
def audit_command(provider: str, files: tuple[Path, ...], quiet: bool, **given: Any) -> int:
    """Judge recorded traffic against the contract of PROVIDER: our NDJSON, HAR, folders of .http and .sse files.

    Reports are written only with --out.
    """
    from conformance.cli.pytest_session import write_report_page
    from conformance.recording import RecordingError
    from conformance.recording.load import gather
    from conformance.report import index, outputs, results, terminal
    from conformance.run import launch
    from conformance.run.launch import load_contract, waivers_from_settings

    chosen = launch.resolve_settings(provider, given)
    contract = load_contract(chosen)
    try:
        gathered = gather(files, contract)
    except RecordingError as error:
        raise SettingsError(str(error)) from None
    run = judged(contract, gathered, chosen)
    document = results.document(
        run, strict=chosen.strict, waivers=waivers_from_settings(chosen), folder=str(chosen.folder)
    )
    if not quiet:
        for block in terminal.blocks(document):
            click.echo(block + "\n")
        _print_not_examined(document["requirements"])
    for reason in gathered.left_out[:20]:
        click.echo(f"left out: {reason}", err=True)
    if len(gathered.left_out) > 20:
        click.echo(f"left out: {len(gathered.left_out) - 20} more", err=True)
    for reason in gathered.unjudged[:20]:
        click.echo(f"not judged: {reason}", err=True)
    if len(gathered.unjudged) > 20:
        click.echo(f"not judged: {len(gathered.unjudged) - 20} more", err=True)
    click.echo(terminal.summary(document))
    if given.get("out"):
        outputs.write(chosen.folder, document, run.exchanges, page=False)
        write_report_page(chosen.folder / index.REPORT, document, run.exchanges)
        click.echo(f"  report: {chosen.folder / 'report.html'}")
    return int(document["exit_code"])


def judged(contract: Contract, gathered: Gathered, chosen: Settings) -> Run:
    """The traffic as a run: described by the header of our own recordings, otherwise by the exchanges themselves."""
    from conformance.judge import judge_all
    from conformance.run import Endpoint, Run, totals
    from conformance.run.launch import selected_requirements
    from conformance.run.reproducer import smallest, traffic

    header = gathered.headers[0] if gathered.headers else {}
    where = header.get("target", {})
    exchanges = gathered.exchanges
    ids = selected_requirements(chosen, contract)
    verdicts = judge_all(contract, traffic(exchanges, gathered.planned))
    times = [attempt.started_at for x in exchanges for attempt in x.attempts]
    ends = [x.last.started_at + x.last.elapsed for x in exchanges]
    body = exchanges[0].case.body if exchanges else None
    name = chosen.name or where.get("name") or contract.provider
    model = where.get("model") or (body.get("model", "") if isinstance(body, dict) else "")
    return Run(
        contract=contract,
        target=Endpoint.of({"base_url": RECORDED, **where, "name": name, "model": str(model)}),
        profile=header.get("profile", RECORDED),
        seed=header.get("seed", 0),
        plan_sha256=gathered.plan_sha256,
        planned=gathered.planned,
        exchanges=exchanges,
        verdicts=tuple(verdict for verdict in verdicts if verdict.requirement.id in ids),
        totals=totals(exchanges),
        started_at=header.get("started_at") or min(times, default=0.0),
        duration_s=max(ends, default=0.0) - min(times, default=0.0),
        incomplete=(*gathered.incomplete, *_nothing_judged(gathered)),
        claims=tuple(header.get("claims", ())),
        recorded=None if gathered.headers else _recorded(gathered),
        smallest=smallest(contract, verdicts, exchanges),
    )


def _recorded(gathered: Gathered) -> dict[str, Any]:
    """How many exchanges there are in recordings of others, how many were judged, and why the others were not."""
    reasons = [*gathered.left_out, *gathered.unjudged]
    total = len(gathered.exchanges) + len(gathered.left_out)
    return {"exchanges": total, "judged": total - len(reasons), "reasons": reasons}


def _nothing_judged(gathered: Gathered) -> list[str]:
    if len(gathered.unjudged) < len(gathered.exchanges):
        return []
    return [f"none of {len(gathered.exchanges)} exchanges could be judged: {gathered.unjudged[0]}"]


def _print_not_examined(rows: list[dict[str, Any]]) -> None:
    """List the requirements for which the traffic contains no occurrence."""
    missing = [row for row in rows if not row["examined"] and not row["observations"]]
    if missing:
        click.echo(f"The traffic shows nothing about {len(missing)} of {len(rows)} requirements:")
        for row in missing:
            click.echo(f"  {row['id']} ({row['level']}): {row['reason']}")
        click.echo("")
