"""`conformance submit-check`: the reviewer's checklist for a submitted certificate."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli.certificates import (
    FOLDER,
    specs_option,
    verification_date,
    verifier_knowledge,
    verifier_options,
)
from conformance.cli.printing import line, say
from conformance.model.exit_codes import ExitCode

MARKS = {True: "ok", False: "NO", None: "open"}


@click.command("submit-check")
@click.argument("folder", type=FOLDER, metavar="DIR")
@verifier_options
@specs_option
def submit_check_command(
    folder: Path,
    trust: Path | None,
    revoked: Path | None,
    seen: Path | None,
    on: str | None,
    specs: tuple[Path, ...],
) -> int:
    """Go through the reviewer's checklist for the submission in DIR: certificate, bundle, product.toml, README.md.

    Exit code 0 if every entry is in order, 1 if one is not, 3 if one could not be examined.
    """
    from conformance.certificate.submission import checked

    entries = list(checked(folder, verifier_knowledge(trust, revoked, seen), verification_date(on), specs))
    for entry in entries:
        say(f"{MARKS[entry.holds]:<5} {entry.about:<12} {line(entry.statement)}")
    if any(entry.holds is False for entry in entries):
        return ExitCode.BROKEN
    return ExitCode.INCOMPLETE if any(entry.holds is None for entry in entries) else ExitCode.CONFORMANT
