"""The command line: one module for each command, named after it.

Only the command that is called is imported, so `--help` stays fast. A command parses options, calls the packages that
do the work, prints, and returns the exit code.
"""

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
from conformance.cli.printing import say
from conformance.config.settings import SettingsError
from conformance.model.exit_codes import ExitCode

ABOUT: Final = """Judge POST /completions endpoints against the provider's own documents.

Exit codes: 0 conformant, 1 a MUST is broken, 2 wrong usage, 3 incomplete, 4 internal error of the suite."""
COMMANDS: Final = {
    "run": "Judge an endpoint against a provider's contract, or all targets of conformance.toml.",
    "plan": "Show what a run would send and what it would cost.",
    "list": "List the requirements of a provider.",
    "explain": "Explain one requirement: promise, source, why it matters, how to fix a server.",
    "send": "Send one request case again and show the whole exchange.",
    "serve": "Serve the reference provider, on request with a fault.",
    "audit": "Judge recorded traffic: HAR, VCR cassettes, JSONL, raw transcripts, our own recordings.",
    "doctor": "Check prerequisites: address, key, model, clock, proxies.",
    "report": "Rebuild every page and file from results.json and the recording.",
    "diff": "Compare two runs.",
    "history": "Draw the trend of each target over many runs.",
    "init": "Write a commented file of targets.",
    "config": "Show the effective settings and where each value comes from.",
    "waivers": "Draft waivers for the failures of a run.",
    "freeze": "Save the current requirements as a set, for `run --requirements DATE`.",
    "frozen": "Compare two requirement sets, or one with the current requirements.",
    "keygen": "Create a key pair for certificates.",
    "certify": "Sign the results of a run that sent a locked plan.",
    "verify": "Verify a certificate offline; with its bundle, derive every verdict again.",
    "submit-check": "Go through the reviewer's checklist for a submitted certificate.",
    "drift": "Compare a contract with a newer document of its provider.",
}
"""Every command with its line of help. Its module is named after it, with `_` for `-`."""


def commands(called: str | None) -> click.Group:
    """The group of all commands: the one that is called is imported, the others are names with a line of help."""
    group = click.Group(
        "conformance",
        help=ABOUT,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        params=[click.Option(["--debug"], is_flag=True, help="Show the traceback of an unexpected error.")],
        no_args_is_help=True,
    )
    for name, summary in COMMANDS.items():
        group.add_command(_command(name) if name == called else click.Command(name, short_help=summary))
    return click.version_option(__version__, prog_name="conformance")(group)


def _command(name: str) -> click.Command:
    module = name.replace("-", "_")
    command: click.Command = getattr(importlib.import_module(f"{__name__}.{module}"), f"{module}_command")
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code; any error is printed on one line."""
    atexit.register(gc.freeze)  # the process ends anyway, so the last garbage collection would only cost time
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    sys.exit(_guarded([word for word in words if word != "--debug"], debug=debug))


def _guarded(arguments: list[str], *, debug: bool) -> int:
    """The exit code of a command; errors become one line on standard error and their exit code."""
    try:
        called = next((word for word in arguments if not word.startswith("-")), None)
        code: Any = commands(called).main(arguments, prog_name="conformance", standalone_mode=False, obj=debug)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return ExitCode.USAGE_ERROR
    except click.ClickException as error:
        return _failed(error.format_message(), ExitCode.USAGE_ERROR)
    except SettingsError as error:
        return _failed(str(error), ExitCode.USAGE_ERROR)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", ExitCode.INCOMPLETE)
    except (BrokenPipeError, SystemExit):
        # The reader has closed the pipe (click then raises SystemExit): the output was not seen, so the code is not 0.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.INCOMPLETE
    except OSError as error:
        if debug:
            raise
        return _failed(f"{error.filename or 'the system'}: {error.strerror or error}", ExitCode.USAGE_ERROR)
    except Exception as error:
        if debug:
            raise
        return _failed(f"{_first_line(error)}; internal error of the suite: --debug shows where", ExitCode.SUITE_FAULT)
    return code if isinstance(code, int) else ExitCode.CONFORMANT


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _failed(message: str, code: int) -> int:
    say(f"conformance: {' '.join(message.split())}", err=True)
    return code
