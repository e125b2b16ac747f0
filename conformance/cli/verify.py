"""`conformance verify`: verify a certificate offline."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli.certificates import (
    FILE,
    FOLDER,
    print_rejections,
    print_statement,
    specs_option,
    verification_date,
    verifier_knowledge,
    verifier_options,
)
from conformance.cli.printing import say
from conformance.model.exit_codes import ExitCode


@click.command("verify")
@click.argument("certificate", type=FILE, metavar="CERT")
@click.option("--bundle", type=FOLDER, metavar="DIR", help="The evidence: derive every verdict again from its bytes.")
@verifier_options
@specs_option
def verify_command(
    certificate: Path,
    bundle: Path | None,
    trust: Path | None,
    revoked: Path | None,
    seen: Path | None,
    on: str | None,
    specs: tuple[Path, ...],
) -> int:
    """Verify CERT offline: signature, dates, revocation and, with --bundle, every statement in it.

    Exit code 0 if it is valid, 1 if it is not, with a line and a code for each reason, 3 if nothing is wrong but
    something was not examined.
    """
    from conformance.certificate.verify import verify
    from conformance.report.text import visible

    result = verify(certificate, bundle, verifier_knowledge(trust, revoked, seen), verification_date(on), specs)
    print_rejections(result.faults)
    if result.statement and not result.faults:
        print_statement(result.statement, examined=result.examined)
        if result.signer:
            say(visible(f"  signed by {result.signer.name}, trusted up to {result.signer.most}"))
    if result.id:
        say(f"  certificate {result.id}")
    for omission in result.unexamined:
        say(f"not examined: {visible(omission)}", err=True)
    if result.faults:
        say("INVALID")
        return ExitCode.BROKEN
    say("valid as far as it was examined" if result.unexamined else "VALID")
    return ExitCode.INCOMPLETE if result.unexamined else ExitCode.CONFORMANT
