"""The one table of exit codes, for all verbs; ``docs/reference/cli.md`` lists them."""

import enum
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class ExitCode(enum.IntEnum):
    """How a command ended."""

    NOTHING = 0
    """It worked, and there is nothing to say."""
    FAILED = 1
    """It failed, and its error says why; without ``--exit-code``, also what most checks find."""
    USAGE = 2
    """The command line is wrong; nothing was done."""
    FOUND = 3
    """It worked, and something was found, or differs: always of ``plan`` and ``health explain``, of
    others with ``--exit-code``."""
    INTERRUPTED = 130
    """Somebody pressed Ctrl-C; a command that SIGTERM or SIGHUP ends says so as shells do: 128 and more."""


_OPTION: Final = "--exit-code"


def option(what: str) -> Callable[[Command], Command]:
    """Add the option by which a script tells what was found from a failure; ``what`` is found."""
    return click.option(_OPTION, is_flag=True, help=f"Exit with {ExitCode.FOUND} if {what}.")


def of_check(*, is_found: bool, exit_code: bool) -> ExitCode:
    """Return how a check ends; what it found is a failure unless :func:`option` was given."""
    if not is_found:
        return ExitCode.NOTHING
    return ExitCode.FOUND if exit_code else ExitCode.FAILED
