"""`conformance keygen`: a key pair that signs certificates."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli.printing import say
from conformance.config.settings import SettingsError
from conformance.model.exit_codes import ExitCode


@click.command("keygen")
@click.argument("path", metavar="KEY", type=click.Path(path_type=Path))
@click.option("--name", default="", help="The owner's name, written into the public key file.")
def keygen_command(path: Path, name: str) -> int:
    """Create a key pair: KEY, the private key, readable by you only and never printed, and KEY.pub, the public key."""
    from conformance.certificate.keys import KeyFileError, generate

    try:
        public = generate(path, name)
    except KeyFileError as error:
        raise SettingsError(str(error)) from None
    say(f"{path}: the private key; keep it secret, and keep a backup")
    say(f"{path}.pub: {public}")
    say(f"key id {public.id}")
    return ExitCode.CONFORMANT
