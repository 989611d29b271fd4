"""One child process: started as leader of its own session, watched, signalled, reaped once.

asyncio's own child processes are not used because their reaper throws the resource usage away.
"""

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from addon_operator.process import start_errors
from addon_operator.process.children import groups

_BYTES_PER_RSS_UNIT: Final = 1024


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended and what it and those it waited for have used."""

    code: int
    """Exit code; the negative number of the signal if one ended it."""
    user_cpu_seconds: float
    system_cpu_seconds: float
    max_rss_bytes: int


class Spawner(Protocol):
    """Starts and reaps processes. A process id stays its own until it is reaped.

    The operator uses the :class:`.Launcher`; what is over in a moment needs none (:class:`DirectSpawner`).
    """

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None,
        stdout: int,
        stderr: int,
    ) -> int:
        """Start a program in a session of its own with an empty standard input; its process id.

        ``stdout`` and ``stderr`` are file descriptors; they stay the caller's to close. Raises
        :class:`OSError` or :class:`ValueError` when the program cannot be started.
        """
        ...

    def reap(self, pid: int) -> Exit:
        """Take the exit of a process that has ended; once."""
        ...


class DirectSpawner:
    """Starts processes from this one. The peak memory that they report is never below this one's own."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None,
        stdout: int,
        stderr: int,
    ) -> int:
        """Start a program; see :class:`Spawner`."""
        process = subprocess.Popen(
            [*argv],
            env={**env},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        self._processes[process.pid] = process
        return process.pid

    def reap(self, pid: int) -> Exit:
        """Take the exit of a process; see :class:`Spawner`."""
        process = self._processes.pop(pid)
        _, status, usage = os.wait4(pid, 0)
        # Tells subprocess that the child is reaped, so that it never waits for that number again.
        process.returncode = os.waitstatus_to_exitcode(status)
        return Exit(process.returncode, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * _BYTES_PER_RSS_UNIT)


class Spawned:
    """A child that was started and is not reaped yet.

    As long as it is not reaped, its process id and its group's id cannot be given to anybody else: that is
    why the group is signalled only through this object.
    """

    def __init__(self, pid: int, spawner: Spawner) -> None:
        self._pid = pid
        self._spawner = spawner
        self._loop = asyncio.get_running_loop()
        self._exit = asyncio.Event()
        self._survivor: int | None = None
        self.ended_at: float | None = None
        """When the child ended, on the monotonic clock; None as long as it runs."""
        self._pidfd = os.pidfd_open(pid)
        self._loop.add_reader(self._pidfd, self._on_exit)

    async def exited(self) -> None:
        """Wait until the child itself has ended; members of its group may still run."""
        await self._exit.wait()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the child and all that it started and that stayed in its group."""
        groups.send(self._pid, number)

    def group_is_alive(self) -> bool:
        """Whether the child or a process that stayed in its group still runs."""
        self._survivor = groups.living_member(self._pid, self._survivor)
        return self._survivor is not None

    def reap(self) -> Exit:
        """Take the exit of the child, which must have ended; once."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        return self._spawner.reap(self._pid)

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.ended_at = time.monotonic()
        self._exit.set()


def spawn(
    spawner: Spawner,
    argv: Sequence[str | pathlib.Path],
    *,
    env: Mapping[str, str],
    cwd: pathlib.Path | None,
    stdout: int,
    stderr: int,
) -> Spawned:
    """Start a program and watch it.

    Raises :class:`.ChildStartError` when it cannot be started.
    """
    words = [os.fspath(word) for word in argv]
    try:
        pid = spawner.start(words, env=env, cwd=cwd, stdout=stdout, stderr=stderr)
    except OSError as error:
        raise start_errors.explain(error, words[0], cwd) from error
    except ValueError as error:
        raise start_errors.ChildStartError(words[0], f"{error}") from error
    try:
        return Spawned(pid, spawner)
    except OSError as error:
        groups.send(pid, signal.SIGKILL)
        spawner.reap(pid)
        raise start_errors.explain(error, words[0], cwd) from error


def start_python(
    script: pathlib.Path, descriptor: int, *arguments: object, options: Sequence[str] = ("-I",)
) -> "subprocess.Popen[bytes]":
    """Start a file of ours as a worker that talks through the socket ``descriptor``.

    It gets no environment, which what it works out could read, and no output; ``options`` are those of the
    interpreter. Raises :class:`.ChildStartError`.
    """
    argv = [sys.executable, *options, str(script), str(descriptor), *map(str, arguments)]
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            start_new_session=True,
            env={},
        )
    except OSError as error:
        raise start_errors.explain(error, argv[0], None) from error
