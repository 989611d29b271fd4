"""Runs programs that end by themselves, and waits for them.

For the command line and its helpers only: everything here blocks, so the operator's event loop never
calls it.
"""

import contextlib
import errno
import os
import pathlib
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NoReturn

import msgspec

from addon_operator.kernel import errors
from addon_operator.process import start_errors

_SHOWN_COMMAND: Final = 160
_KILL_AFTER: Final = 5.0


class Completed(msgspec.Struct, frozen=True):
    """What a program left behind."""

    argv: tuple[str, ...]
    """The program and its arguments."""
    exit_code: int
    """Its exit status; negative is the number of the signal that ended it."""
    stdout: str
    """All it wrote to standard output (of :func:`stream`: to both outputs)."""
    stderr: str
    """All it wrote to standard error."""


class CommandError(errors.AddonOperatorError):
    """A program could not be run, or ended with another exit code than 0."""

    def __init__(self, reason: str, completed: Completed) -> None:
        super().__init__(f"{_shown(completed.argv)}: {reason}")
        self.completed = completed
        """What it left behind; its exit code is -1 when it was never started."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: pathlib.Path | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
    check: bool = True,
) -> Completed:
    """Run a program to its end and give back what it wrote.

    ``env`` replaces the whole environment; ``timeout`` is in seconds.

    Raises :class:`CommandError` when it cannot be started, takes longer than ``timeout``, or (with ``check``)
    ends with another exit code than 0.
    """
    started = Completed(tuple(argv), -1, "", "")
    try:
        done = subprocess.run(
            started.argv,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=env,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise _not_started(started, error) from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"did not end within {timeout:g} s", started) from error
    return _checked(Completed(started.argv, done.returncode, done.stdout, done.stderr), check=check)


def stream(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
    cwd: pathlib.Path | None = None,
) -> Completed:
    """Run a program to its end and hand over each line of its two outputs as it is written.

    Both outputs arrive as one, in ``stdout`` of the result. The program does not outlive an exception here.

    Raises :class:`CommandError` when it cannot be started or ends with another exit code than 0.
    """
    lines: list[str] = []
    with _opened(argv, env=env, cwd=cwd) as process:
        try:
            for line in process.stdout or ():
                lines.append(line)
                on_line(line.rstrip("\n"))
        except BaseException:
            _end(process)
            raise
    return _checked(Completed(tuple(argv), process.returncode, "".join(lines), ""), check=True)


class Background:
    """A program that runs beside this one, until its context ends."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def lines(self) -> Iterator[str]:
        """Yield each line of its two outputs, as it is written, until it ends."""
        for line in self._process.stdout or ():
            yield line.rstrip("\n")

    @property
    def exit_code(self) -> int | None:
        """How it ended; ``None`` while it runs."""
        return self._process.poll()


@contextlib.contextmanager
def background(
    argv: Sequence[str], *, env: Mapping[str, str], grace: float = _KILL_AFTER
) -> Iterator[Background]:
    """Run a program beside this one, out of reach of Ctrl-C, and end it with the context.

    ``grace`` is the seconds that it gets to end.

    Raises :class:`CommandError` when it cannot be started.
    """
    process = _opened(argv, env=env, start_new_session=True)
    try:
        yield Background(process)
    finally:
        _end(process, grace)


def replace(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Become another program: this process is that program from now on.

    Raises :class:`CommandError` when it cannot be started.
    """
    try:
        os.execve(argv[0], list(argv), dict(env))  # noqa: S606 - replacing this process is what is wanted
    except OSError as error:
        raise _not_started(Completed(tuple(argv), -1, "", ""), error) from error


def _end(process: "subprocess.Popen[str]", grace: float = _KILL_AFTER) -> None:
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()


def _checked(completed: Completed, *, check: bool) -> Completed:
    if check and completed.exit_code != 0:
        code = completed.exit_code
        ending = f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        written = (completed.stderr.strip() or completed.stdout.strip()).rpartition("\n")[2].strip()
        raise CommandError(f"{ending}: {written}" if written else ending, completed)
    return completed


def _not_started(completed: Completed, error: OSError) -> CommandError:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOEXEC:
        reason = start_errors.not_a_program(pathlib.Path(completed.argv[0]))
    return CommandError(f"cannot be run: {reason}", completed)


def _shown(argv: Sequence[str]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= _SHOWN_COMMAND else text[: _SHOWN_COMMAND - 1] + "…"


def _opened(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: pathlib.Path | None = None,
    start_new_session: bool = False,
) -> "subprocess.Popen[str]":
    """Start a program of which both outputs are read as one, line by line."""
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=env,
            cwd=cwd,
            start_new_session=start_new_session,
        )
    except OSError as error:
        raise _not_started(Completed(tuple(argv), -1, "", ""), error) from error
