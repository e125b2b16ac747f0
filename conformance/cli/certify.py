"""Certificates: `keygen`, `certify`, `verify`, `submit-check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from conformance.config.settings import SettingsError

if TYPE_CHECKING:
    from conformance.certificate.reasons import Rejection
    from conformance.certificate.verify import VerifierKnowledge

WHOLE, BROKEN, OPEN = 0, 1, 3
DAYS: Final = 180
MOST_LINES: Final = 12
ASSURANCES: Final = ("self-reported", "audited", "independent")
FOLDER: Final = click.Path(path_type=Path, exists=True, file_okay=False)
FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
Command = TypeVar("Command", bound=Callable[..., Any])


def _specs(command: Command) -> Command:
    says = "A folder of further providers."
    return click.option("--specs", multiple=True, type=FOLDER, metavar="DIR", help=says)(command)


def _known(command: Command) -> Command:
    for option in (
        click.option("--on", metavar="DATE", help="Judge as of this day. [today]"),
        click.option(
            "--seen", type=click.Path(path_type=Path, exists=True), metavar="PATH",
            help="Certificates that are known: a folder of them, or a file with a nonce and an id a line.",
        ),
        click.option("--revoked", type=FILE, metavar="LIST", help="Ids, keys and nonces taken back, a line each."),
        click.option("--trust", type=FILE, metavar="KEYS", help="The public keys that count, a line each."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("keygen")
@click.argument("path", metavar="KEY", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Whose key it is, for the file of the public half.")
def keygen_command(path: Path, name: str) -> int:
    """Make a pair of keys: KEY, which only you can read and which is never shown, and KEY.pub for everybody."""
    from conformance.certificate.keys import KeyFileError, generate

    try:
        public = generate(path, name)
    except KeyFileError as error:
        raise SettingsError(str(error)) from None
    click.echo(f"{path}: keep it to yourself, and a copy of it safe")
    click.echo(f"{path}.pub: {public}")
    click.echo(f"key id {public.id}")
    return WHOLE


@click.command("certify")
@click.argument("bundle", type=FOLDER)
@click.option(
    "--key", required=True, type=click.Path(path_type=Path), metavar="KEY", help="The private key that signs."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where to write. [BUNDLE/certificate]")
@click.option("--days", type=click.IntRange(1, 366), default=DAYS, show_default=True, help="How long it holds.")
@click.option("--assurance", type=click.Choice(ASSURANCES), default=ASSURANCES[0], show_default=True)
@click.option("--nonce", metavar="TEXT", help="The nonce that you gave; above self-reported it is demanded.")
@click.option("--issuer", default="", metavar="NAME", help="Who certifies, for readers.")
@_specs
def certify_command(
    bundle: Path,
    key: Path,
    out: Path | None,
    days: int,
    assurance: str,
    nonce: str | None,
    issuer: str,
    specs: tuple[Path, ...],
) -> int:
    """Sign what the run in BUNDLE shows: certificate.json, a page and a badge.

    BUNDLE is the folder that `conformance run --plan` wrote. Every verdict is made again from its bytes first.
    Exit code 0 where all areas hold, 1 where the certificate names what lacks, 3 where nothing is certified.
    """
    from conformance.certificate import keys
    from conformance.certificate.bundle import OWN
    from conformance.certificate.issue import issue
    from conformance.certificate.statement import FAILED, CertificateTerms
    from conformance.config.settings import Settings

    try:
        private = keys.load(key)
    except keys.KeyFileError as error:
        raise SettingsError(str(error)) from None
    terms = CertificateTerms(assurance, " ".join(issuer.split()), private.public, datetime.now(UTC), days)
    secret = Settings("").key
    made = issue(bundle, private, terms, nonce=nonce, specs=specs, secrets=[secret] if secret else [])
    if made.faults:
        _told(made.faults, "refused: ")
        click.echo(f"nothing is certified of {bundle}", err=True)
        return OPEN
    folder = out or bundle / OWN
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    _summed(made.statement)
    click.echo(f"  {folder / 'certificate.json'}, page and badge beside it")
    return BROKEN if made.statement["predicate"]["result"] == FAILED else WHOLE


@click.command("verify")
@click.argument("certificate", type=FILE, metavar="CERT")
@click.option("--bundle", type=FOLDER, metavar="DIR", help="The evidence: every verdict is made again from its bytes.")
@_known
@_specs
def verify_command(
    certificate: Path,
    bundle: Path | None,
    trust: Path | None,
    revoked: Path | None,
    seen: Path | None,
    on: str | None,
    specs: tuple[Path, ...],
) -> int:
    """Verify CERT without a network: signature, dates, revocation and, with --bundle, everything it says.

    Exit code 0 where all holds, 1 with a line and a code for each reason why not, 3 where nothing is wrong and
    something was not examined.
    """
    from conformance.certificate.verify import verify

    found = verify(certificate, bundle, _reader(trust, revoked, seen), _day(on), specs)
    _told(found.faults)
    if found.statement and not found.faults:
        _summed(found.statement)
        if found.signer:
            click.echo(f"  signed by {found.signer}")
    if found.id:
        click.echo(f"  certificate {found.id}")
    for one in found.unexamined:
        click.echo(f"not examined: {one}", err=True)
    click.echo("DOES NOT HOLD" if found.faults else "holds as far as it was examined" if found.unexamined else "HOLDS")
    return BROKEN if found.faults else OPEN if found.unexamined else WHOLE


@click.command("submit-check")
@click.argument("folder", type=FOLDER, metavar="DIR")
@_known
@_specs
def submit_check_command(
    folder: Path,
    trust: Path | None,
    revoked: Path | None,
    seen: Path | None,
    on: str | None,
    specs: tuple[Path, ...],
) -> int:
    """Go through the reviewer's checklist on a submission: certificate, bundle, product.toml, README.md.

    Exit code 0 where all is in order, 1 where something is not, 3 where something was left open.
    """
    from conformance.certificate.submission import checked

    marks = {True: "ok", False: "NO", None: "open"}
    entries = list(checked(folder, _reader(trust, revoked, seen), _day(on), specs))
    for one in entries:
        click.echo(f"{marks[one.holds]:<5} {one.about:<12} {one.said}")
    if any(one.holds is False for one in entries):
        return BROKEN
    return OPEN if any(one.holds is None for one in entries) else WHOLE


def _reader(trust: Path | None, revoked: Path | None, seen: Path | None) -> VerifierKnowledge:
    from conformance.certificate import trust as lists
    from conformance.certificate.keys import KeyFileError
    from conformance.certificate.verify import VerifierKnowledge

    try:
        return VerifierKnowledge(
            lists.trusted(trust) if trust else None,
            lists.revoked(revoked) if revoked else {},
            lists.seen(seen) if seen else {},
        )
    except KeyFileError as error:
        raise SettingsError(str(error)) from None


def _day(told: str | None) -> date:
    from conformance.model.clock import today

    try:
        return date.fromisoformat(told) if told else today()
    except ValueError:
        raise SettingsError(f"--on is {told!r}; expected a date such as 2026-11-20") from None


def _told(faults: Iterable[Rejection], prefix: str = "") -> None:
    """Each reason in a line, of each code no more than can be read."""
    from conformance.report.text import visible

    counts: Counter[str] = Counter()
    for one in faults:
        counts[one.code] += 1
        if counts[one.code] <= MOST_LINES:
            click.echo(visible(f"{prefix}{one}"), err=True)
    for code, count in counts.items():
        if count > MOST_LINES:
            click.echo(f"{prefix}{code}: {count - MOST_LINES} more", err=True)


def _summed(statement: dict[str, Any] | Any) -> None:
    """Level, areas, index and score of a certificate."""
    from conformance.certificate.levels import names
    from conformance.certificate.statement import OURS
    from conformance.report.text import visible

    ours = statement["predicate"][OURS]
    name, index, score = visible(ours["target"]["name"]), ours["index"], ours["score"]
    click.echo(f"{name}: {ours['level']}, {ours['assurance']}, until {ours['expires_on']}")
    told = (
        f"index {index['verified']}/{index['of']} MUSTs verified, score {score['passed']}/{score['of']} of these passed"
    )
    click.echo(f"  {told}")
    for area in names():
        one = ours["areas"][area]
        lacks = f", lacks {', '.join(one['lacking'])}" if one["lacking"] else ""
        click.echo(f"  {area:<10} {one['level']:<7} {one['passed']}/{one['of']}{lacks}")
    if ours["claims"]:
        click.echo(visible(f"  claimed: {', '.join(ours['claims'])}"))
    for one in ours["left_out"]:
        click.echo(visible(f"  left out: {one}"))
