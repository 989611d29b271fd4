"""How a hook's process failed, in a sentence: what it wrote, where it is wrong, and what mends it."""

import pathlib
import re
import shlex
import signal
from typing import Final

from addon_operator.hook_contract import hook_log_lines
from addon_operator.kernel import clock, names
from addon_operator.loading import hook_names
from addon_operator.process import start_errors
from addon_operator.process.children import children

_QUOTED_LINES: Final = 3
_FRAME: Final = re.compile(r'\s+File "(?P<path>[^"]+)", line (?P<line>\d+)')
_OF_A_SHELL: Final = re.compile(r"[^\s:][^:]*: line \d+: ")
"""What bash says before a library of hooks shows the functions that were called, as Python does."""
_MISSING_PACKAGE: Final = re.compile(r"(?:ModuleNotFound|Import)Error: No module named '")
_INSTALL: Final = "; install it into the image, or into the virtual environment hooks/venv of the module"


def command_that_shows(module: names.ModuleName | None) -> str:
    """Return the command that shows, in the operator's pod, what hooks of a module, or global ones, wrote."""
    return f"addon-operator module describe {module}" if module else "addon-operator queue list"


def where_it_stands(module: names.ModuleName | None) -> str:
    """Say where what a hook wrote is shown."""
    return f"'{command_that_shows(module)}' shows the end of what it wrote, and the operator's log more of it"


def describe(result: children.ChildResult, program: pathlib.Path, timeout: float | None = None) -> str:
    """Say how a process failed, with the end of its standard error: the sentence after its name.

    ``program`` is what was started; ``timeout`` is in seconds.
    """
    is_for_windows = start_errors.has_windows_lines(program)
    said = start_errors.WINDOWS_LINES if is_for_windows else said_of(result, program)
    return ending(result, timeout) + (f": {said}" if said else "")


def has_failed(result: children.ChildResult) -> bool:
    """Say whether a process ended otherwise than by exit code 0."""
    return result.timed_out or result.exit_code != 0


def ending(result: children.ChildResult, timeout: float | None) -> str:
    """Say how a process ended, without what it wrote."""
    if result.timed_out:
        limit = f" of {clock.duration_text(timeout)}" if timeout is not None else ""
        return f"was stopped because it ran longer than its timeout{limit}"
    if result.exit_code < 0:
        memory = "; did it run out of memory?" if -result.exit_code == signal.SIGKILL else ""
        return f"was killed by {_signal_name(-result.exit_code)}{memory}"
    return f"failed with exit code {result.exit_code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def said_of(result: children.ChildResult, program: pathlib.Path) -> str:
    """Return the end of its standard error on one line.

    Of a traceback of Python that is place and error, of lines in JSON what they say.
    """
    lines = [hook_log_lines.message(line) for line in result.stderr_tail.splitlines()]
    frames = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    if frames:
        error = [line for line in lines[frames[-1] :] if line.strip() and not line[0].isspace()]
        error = [line for line in lines[: frames[-1]] if _OF_A_SHELL.match(line)][-1:] + error
        if error:
            return f"{_place(lines, frames, program)}: {_quoted(error)}{_of_package(error[0], program)}"
    return _quoted(lines)


def _quoted(lines: list[str]) -> str:
    return " | ".join(list(dict.fromkeys(lines))[-_QUOTED_LINES:])


def _place(lines: list[str], frames: list[int], program: pathlib.Path) -> str:
    """Return where it went wrong: the last line of the hook's own files, if there is one."""
    places = [match for number in frames if (match := _FRAME.match(lines[number])) is not None]
    directory = program.absolute().parent
    own = [match for match in places if pathlib.Path(match["path"]).is_relative_to(directory)]
    last = (own or places)[-1]
    path = pathlib.Path(last["path"])
    shown = path.relative_to(directory) if own else path
    return f"{shown}, line {last['line']}"


def _of_package(error: str, program: pathlib.Path) -> str:
    if _MISSING_PACKAGE.match(error) is None:
        return ""
    if hook_names.is_library(program.name):
        return f"; if it is a library and no hook, run 'chmod -x {shlex.quote(str(program))}'"
    return _INSTALL
