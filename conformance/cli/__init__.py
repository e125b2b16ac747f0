"""The command line: thin, and quick to say what it can do. Commands are imported when they are called."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from conformance import __version__
from conformance.config.settings import SettingsError

CONFORMANT: Final = 0
BROKEN: Final = 1
MISUSED: Final = 2
INCOMPLETE: Final = 3
SUITE_FAULT: Final = 4

ABOUT: Final = """Judge POST /completions endpoints against the provider's own documents.

Exit codes: 0 conformant, 1 a promise is broken, 2 wrong usage, 3 incomplete, 4 fault of the suite itself."""
COMMANDS: Final = {
    "run": ("run", "Judge an endpoint against a provider's contract, or the targets of conformance.toml."),
    "plan": ("plan", "What a run would send, and what it would cost."),
    "list": ("list", "The requirements of a provider."),
    "explain": ("list", "One requirement: promise, source, why it matters, how to mend a server."),
    "send": ("send", "Send one case again and show all of it."),
    "serve": ("serve", "Serve a provider that keeps its contract, or breaks it on request."),
    "audit": ("audit", "Judge recorded traffic: our own, HAR, or raw transcripts."),
    "doctor": ("doctor", "What stands between this machine and a run."),
    "report": ("report", "Rebuild every page and file from results.json and the recording."),
    "diff": ("diff", "What changed from one run to another."),
    "history": ("diff", "The trend of each target, drawn from a folder of results."),
    "init": ("init", "Write a commented file of targets."),
    "config": ("init", "What holds for a run, and where each value comes from."),
    "waivers": ("waivers", "Draft waivers for the failures of a run."),
    "freeze": ("freeze", "Keep the requirements that are in force now, for `run --requirements DATE`."),
    "frozen": ("freeze", "What changed from one set of requirements to another, or to now."),
    "keygen": ("certify", "Make a pair of keys for certificates."),
    "certify": ("certify", "Sign what a run under a fixed plan shows."),
    "verify": ("certify", "Whether a certificate holds, offline, every verdict made again from the recorded bytes."),
    "submit-check": ("certify", "The reviewer's checklist for a submitted certificate."),
    "drift": ("list", "Compare a contract with a newer document of its provider."),
}


def commands(called: str | None) -> click.Group:
    """All commands. Only the one that is called is imported; the others are there by name."""
    group = click.Group(
        "conformance",
        help=ABOUT,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        params=[click.Option(["--debug"], is_flag=True, help="Show the traceback of an unexpected error.")],
        no_args_is_help=True,
    )
    for name, (module, says) in COMMANDS.items():
        if name == called:
            group.add_command(_command(module, name))
        else:
            group.add_command(click.Command(name, short_help=says))
    return click.version_option(__version__, prog_name="conformance")(group)


def _command(module: str, name: str) -> click.Command:
    found: click.Command = getattr(importlib.import_module(f"{__name__}.{module}"), f"{name.replace('-', '_')}_command")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code; whatever goes wrong is told in one line."""
    atexit.register(gc.freeze)  # at the end all goes with the process: nobody need look for cycles in it
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    sys.exit(_guarded([one for one in given if one != "--debug"], debug=debug))


def _guarded(arguments: list[str], *, debug: bool) -> int:
    try:
        called = next((one for one in arguments if not one.startswith("-")), None)
        code: Any = commands(called).main(arguments, prog_name="conformance", standalone_mode=False, obj=debug)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return MISUSED
    except click.ClickException as error:
        return _told(error.format_message(), MISUSED)
    except SettingsError as error:
        return _told(str(error), MISUSED)
    except (click.Abort, KeyboardInterrupt):
        return _told("interrupted", INCOMPLETE)
    except (BrokenPipeError, SystemExit):
        # whoever read the output has left (click leaves by itself then): nobody was told, so nothing may look green
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INCOMPLETE
    except OSError as error:
        if debug:
            raise
        return _told(f"{error.filename or 'the system'}: {error.strerror or error}", MISUSED)
    except Exception as error:
        if debug:
            raise
        return _told(f"{_first_line(error)}; this is a fault of the suite: --debug shows where", SUITE_FAULT)
    return code if isinstance(code, int) else CONFORMANT


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__


def _told(line: str, code: int) -> int:
    click.echo(f"conformance: {' '.join(line.split())}", err=True)
    return code
