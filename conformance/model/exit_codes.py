"""The exit codes of every command, defined once."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command tells the shell. For `verify` and `submit-check`: holds, does not hold, not fully examined."""

    CONFORMANT = 0
    """Every binding requirement was verified and holds; for other commands: success."""
    BROKEN = 1
    """A binding requirement is broken, or a waiver is no longer valid."""
    USAGE_ERROR = 2
    """The command, its options or a configuration file is wrong; nothing was judged."""
    INCOMPLETE = 3
    """No failure was seen, but not everything was verified."""
    SUITE_FAULT = 4
    """The suite itself failed; nothing is said about the target."""
