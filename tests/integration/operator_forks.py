"""Operators that need not import what they are made of: copies of a process that has done so.

Those imports are most of the processor time of an operator with a module or two, and the tests start
hundreds. A copy takes on everything that a started process is given: arguments, environment, directory,
outputs, a session of its own. It runs the same command line.
"""

import atexit
import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import pytest

import addon_operator
from addon_operator.aio import waiting
from addon_operator.cli import main
from addon_operator.engine.drift import health_watch
from addon_operator.engine.queues import task_queue
from addon_operator.status import module_status_writer
from tests.integration import loop_holds, worker_copies

_SOURCES: Final = (pathlib.Path(addon_operator.__file__).parents[1], pathlib.Path(__file__).parents[2])
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_PATIENCE: Final = 300.0
_CONTEXT.set_forkserver_preload(["tests.integration.operator_imports"])


class Process(Protocol):
    """What is needed of a running operator, whichever way it was started; as :class:`subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code, negative for a signal, or ``None`` while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises :class:`subprocess.TimeoutExpired`."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""


def serves(environment: Mapping[str, str]) -> bool:
    """Whether a copy is like a process with that environment: with settings of Python's own it is not."""
    asked = {key: value for key, value in environment.items() if key.startswith("PYTHON")}
    return asked == {"PYTHONPATH": str(_SOURCES[0])}


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process is given besides its arguments."""

    environment: Mapping[str, str]
    cwd: pathlib.Path
    output: pathlib.Path
    """Where it writes to; added to what is there."""
    error: pathlib.Path
    """The same, for its other output."""
    input: pathlib.Path = pathlib.Path(os.devnull)
    first_retry: float | None = None
    """Seconds after which a failed task is tried again, instead of the operator's own."""
    status_pause: float | None = None
    """Seconds between two writes of Module objects, instead of the operator's own."""
    holds: pathlib.Path | None = None
    """Where it writes down what held its loop; nowhere if there is none."""
    follows_health: bool = True
    """Whether it watches how resources are; benchmarks compare both."""


class Fork:
    """One copy that runs ``addon-operator`` with these arguments."""

    def __init__(self, arguments: Sequence[str], given: Surroundings) -> None:
        self._process = _CONTEXT.Process(target=_run, args=(arguments, given))
        # The process that is copied is started with the first copy, and looks for modules where it is told.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", os.pathsep.join(map(str, _SOURCES)))
            self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        pid = self._process.pid
        assert pid is not None, "a started process has an id"
        return pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal, or ``None`` while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises :class:`subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("addon-operator", timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def run(
    arguments: Sequence[str], environment: Mapping[str, str], root: pathlib.Path, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run a command of ``addon-operator`` to its end, whatever that is, in the directory ``root``.

    Raises :class:`subprocess.TimeoutExpired` after five minutes.
    """
    with tempfile.TemporaryDirectory(prefix="run-", dir=root) as made:
        output, error, given = (pathlib.Path(made, name) for name in ("output", "error", "input"))
        given.write_text(stdin)
        fork = Fork(arguments, Surroundings(environment, root, output, error, given))
        try:
            code = fork.wait(_PATIENCE)
        finally:
            fork.send_signal(signal.SIGKILL)
        return subprocess.CompletedProcess(arguments, code, output.read_text(), error.read_text())


def _run(arguments: Sequence[str], given: Surroundings) -> None:
    _become(given)
    worker_copies.take_over()
    try:
        if given.first_retry is not None:
            _retry_after(given.first_retry)
        if given.status_pause is not None:
            vars(module_status_writer)["PAUSE_SECONDS"] = given.status_pause
        if not given.follows_health:
            _follow_no_health()
        with loop_holds.Watch(given.holds).watching() if given.holds else contextlib.nullcontext():
            main.main(arguments)
    finally:
        # Copies made by multiprocessing leave these out.
        atexit._run_exitfuncs()


def _retry_after(seconds: float) -> None:
    """Let this process try failed tasks again much sooner than an operator does."""
    vars(task_queue)["RETRIES"] = waiting.Backoff(seconds, task_queue.RETRIES.longest, growth=1.5)


def _follow_no_health() -> None:
    """Let this process watch the health of nothing."""
    vars(health_watch)["is_watched"] = lambda _: False


def _become(given: Surroundings) -> None:
    """Make this process what it would be if it had been started with all that."""
    os.setsid()
    os.chdir(given.cwd)
    os.environ.clear()
    os.environ.update(given.environment)
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, (file, mode) in enumerate(((given.input, "rb"), (given.output, "ab"), (given.error, "ab"))):
        with file.open(mode) as opened:
            os.dup2(opened.fileno(), number)
    # multiprocessing has put the null device in its place, on another descriptor.
    sys.stdin = os.fdopen(0, closefd=False)
