"""What the certificate commands share: options, what a verifier knows, and how results are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from conformance.cli.printing import say
from conformance.config.settings import SettingsError

if TYPE_CHECKING:
    from conformance.certificate.reasons import Rejection
    from conformance.certificate.verify import VerifierKnowledge

MAX_LINES_PER_CODE: Final = 12
FOLDER: Final = click.Path(path_type=Path, exists=True, file_okay=False)
FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
Command = TypeVar("Command", bound=Callable[..., Any])


def specs_option(command: Command) -> Command:
    """Add `--specs`."""
    return click.option("--specs", multiple=True, type=FOLDER, metavar="DIR", help="A folder of further providers.")(
        command
    )


def verifier_options(command: Command) -> Command:
    """Add what a verifier knows: trusted keys, revocations, certificates seen before, and the date."""
    for option in (
        click.option("--on", metavar="DATE", help="Verify as of this date. [today]"),
        click.option(
            "--seen", type=click.Path(path_type=Path, exists=True), metavar="PATH",
            help="Certificates seen before: a folder of them, or a file with a nonce and an id on each line.",
        ),
        click.option("--revoked", type=FILE, metavar="LIST", help="Revoked ids, keys and nonces, one on each line."),
        click.option("--trust", type=FILE, metavar="KEYS", help="Trusted public keys, one on each line."),
    ):  # fmt: skip
        command = option(command)
    return command


def verifier_knowledge(trust: Path | None, revoked: Path | None, seen: Path | None) -> VerifierKnowledge:
    """The trusted keys, revocations and known certificates in these files."""
    from conformance.certificate import trust as lists
    from conformance.certificate.keys import KeyFileError
    from conformance.certificate.verify import VerifierKnowledge

    try:
        trusted = lists.trusted(trust) if trust else None
        return VerifierKnowledge(
            trusted,
            lists.revoked(revoked) if revoked else {},
            lists.seen(seen, trusted) if seen else {},
        )
    except KeyFileError as error:
        raise SettingsError(str(error)) from None


def verification_date(text: str | None) -> date:
    """The date of `--on`; today without it."""
    from conformance.model.clock import today

    try:
        return date.fromisoformat(text) if text else today()
    except ValueError:
        raise SettingsError(f"--on is {text!r}; expected a date such as 2026-11-20") from None


def print_rejections(rejections: Iterable[Rejection], prefix: str = "") -> None:
    """Print each reason on a line, at most MAX_LINES_PER_CODE for one code."""
    from conformance.report.text import visible

    counts: Counter[str] = Counter()
    for rejection in rejections:
        counts[rejection.code] += 1
        if counts[rejection.code] <= MAX_LINES_PER_CODE:
            say(visible(f"{prefix}{rejection}"), err=True)
    for code, count in counts.items():
        if count > MAX_LINES_PER_CODE:
            say(f"{prefix}{code}: {count - MAX_LINES_PER_CODE} more", err=True)


def print_statement(statement: Mapping[str, Any], *, examined: bool = True) -> None:
    """Print level, MUSTs verified and passed, and areas of a certificate; of one not examined, only what it claims."""
    from conformance.certificate.levels import names
    from conformance.certificate.statement import CERTIFIED
    from conformance.report.tally import verified_and_passed
    from conformance.report.text import visible

    certified = statement["predicate"][CERTIFIED]
    target = visible(certified["target"]["name"])
    if "kind" in certified["target"]:
        target += f" ({visible(certified['target']['kind'])})"
    claimed = "" if examined else "claimed, not examined: "
    say(f"{target}: {claimed}{certified['level']}, {certified['assurance']}, until {certified['expires_on']}")
    if not examined:
        return
    say(f"  {verified_and_passed(certified)}")
    for name in names():
        area = certified["areas"][name]
        lacks = f", lacks {visible(', '.join(area['lacking']))}" if area["lacking"] else ""
        say(f"  {name:<10} {area['level']:<7} {area['passed']}/{area['of']}{lacks}")
    if certified["claims"]:
        say(visible(f"  claimed: {', '.join(certified['claims'])}"))
    for omission in certified["left_out"]:
        say(visible(f"  left out: {omission}"))
