"""`conformance certify`: sign what a run under a locked plan shows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from conformance.cli.certificates import FILE, FOLDER, print_rejections, print_statement, specs_option
from conformance.cli.printing import say
from conformance.config.settings import SettingsError
from conformance.model.exit_codes import ExitCode

DAYS: Final = 180  # a server rarely stays the same for longer than half a year
ASSURANCES: Final = ("self-reported", "audited", "independent")


@click.command("certify")
@click.argument("bundle", type=FOLDER)
@click.option(
    "--key", required=True, type=click.Path(path_type=Path), metavar="KEY", help="The private key that signs."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Where the files are written. [BUNDLE/certificate]"
)
@click.option("--days", type=click.IntRange(1, 366), default=DAYS, show_default=True, help="How long it is valid.")
@click.option(
    "--assurance", type=click.Choice(ASSURANCES), default=ASSURANCES[0], show_default=True, help="Who made the run."
)
@click.option("--nonce", metavar="TEXT", help="The nonce that you issued for the plan; required unless self-reported.")
@click.option("--issuer", default="", metavar="NAME", help="The issuer's name, for readers.")
@click.option(
    "--product", type=FILE, metavar="FILE", help="The product.toml to sign with it, which a submission needs."
)
@specs_option
def certify_command(
    bundle: Path,
    key: Path,
    out: Path | None,
    days: int,
    assurance: str,
    nonce: str | None,
    issuer: str,
    product: Path | None,
    specs: tuple[Path, ...],
) -> int:
    """Sign what the run in BUNDLE shows: writes certificate.json, a page and a badge.

    BUNDLE is the folder that `conformance run --plan` wrote. First every verdict is derived again from the recorded
    bytes. Exit code 0 if every area conforms, 1 if the certificate names something that is missing, 3 if nothing could
    be certified.
    """
    from conformance.certificate import keys
    from conformance.certificate.bundle import OWN
    from conformance.certificate.issue import issue
    from conformance.certificate.statement import FAILED, CertificateTerms
    from conformance.certificate.submission import SCHEMA
    from conformance.config.settings import Settings
    from conformance.config.toml_file import read as read_toml

    try:
        private = keys.load(key)
    except keys.KeyFileError as error:
        raise SettingsError(str(error)) from None
    described = read_toml(product, SCHEMA) if product else {}
    issuer = " ".join(issuer.split())
    terms = CertificateTerms(assurance, issuer, private.public, datetime.now(UTC), days, described)
    secret = Settings("").key
    issued = issue(bundle, private, terms, nonce=nonce, specs=specs, secrets=[secret] if secret else [])
    if issued.faults:
        print_rejections(issued.faults, "refused: ")
        say(f"{bundle}: no certificate was issued", err=True)
        return ExitCode.INCOMPLETE
    folder = out or bundle / OWN
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in issued.files.items():
        (folder / name).write_bytes(content)
    print_statement(issued.statement)
    say(f"  {folder / 'certificate.json'}, page and badge beside it")
    return ExitCode.BROKEN if issued.statement["predicate"]["result"] == FAILED else ExitCode.CONFORMANT
