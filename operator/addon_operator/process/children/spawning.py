"""One child process: started as leader of its own session, watched, signalled, reaped once.

asyncio's own child processes are not used because their reaper throws the resource usage away.
"""

import asyncio
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from addon_operator.process import start_errors
from addon_operator.process.children import groups, launcher


class Spawned:
    """A child that was started and is not reaped yet.

    As long as it is not reaped, its process id and its group's id cannot be given to anybody else: that is
    why the group is signalled only through this object.
    """

    def __init__(self, pid: int, starter: launcher.Launcher) -> None:
        self._pid = pid
        self._launcher = starter
        self._loop = asyncio.get_running_loop()
        self._exit = asyncio.Event()
        self._survivor: int | None = None
        self._reaped: launcher.Exit | None = None
        self.ended_at: float | None = None
        """When the child ended, on the monotonic clock; None as long as it runs."""
        self._pidfd = os.pidfd_open(pid)
        self._loop.add_reader(self._pidfd, self._on_exit)

    async def exited(self) -> None:
        """Wait until the child itself has ended; members of its group may still run."""
        await self._exit.wait()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the child and all that it started and that stayed in its group.

        Once it is reaped, nothing is sent: its number may be another's.
        """
        if self._reaped is None:
            groups.send(self._pid, number)

    def group_is_alive(self) -> bool:
        """Say whether the child or a process that stayed in its group still runs; not once it is reaped."""
        if self._reaped is not None:
            return False
        self._survivor = groups.living_member(self._pid, self._survivor)
        return self._survivor is not None

    async def reap(self) -> launcher.Exit:
        """Take the exit of the child, which must have ended. A cancellation waits for that."""
        if self._reaped is None:
            self._reaped = launcher.LOST
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._reaped = await self._launcher.reap(self._pid)
        return self._reaped

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.ended_at = time.monotonic()
        self._exit.set()


async def spawn(
    starter: launcher.Launcher,
    argv: Sequence[str | pathlib.Path],
    *,
    env: Mapping[str, str],
    cwd: pathlib.Path | None,
    stdout: int,
    stderr: int,
    limits: Mapping[int, int],
    is_limited: bool = True,
) -> Spawned:
    """Start a program and watch it; what ``limits`` and the rest mean, :meth:`.Launcher.start` says.

    Raises :class:`.ChildStartError` when it cannot be started. A cancellation goes on when the caller next
    waits, who has the child then.
    """
    words = [os.fspath(word) for word in argv]
    try:
        pid = await starter.start(
            words,
            env=env,
            cwd=cwd,
            stdout=stdout,
            stderr=stderr,
            limits=limits,
            is_limited=is_limited,
        )
    except OSError as error:
        raise start_errors.explain(error, words[0], cwd) from error
    except ValueError as error:
        raise start_errors.ChildStartError(words[0], f"{error}") from error
    try:
        return Spawned(pid, starter)
    except OSError as error:
        groups.send(pid, signal.SIGKILL)
        await starter.reap(pid)
        raise start_errors.explain(error, words[0], cwd) from error


def start_python(
    script: pathlib.Path, *arguments: object, options: Sequence[str] = ("-I",)
) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start a file of ours as a worker, and give our end of the socket through which it talks.

    Its first argument is the number of its own end. It gets no environment, which what it works out could
    read, and no output; ``options`` are those of the interpreter. Raises :class:`.ChildStartError`.
    """
    ours, theirs = socket.socketpair()
    argv = [sys.executable, *options, str(script), str(theirs.fileno()), *map(str, arguments)]
    with theirs:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={},
            )
        except OSError as error:
            ours.close()
            raise start_errors.explain(error, argv[0], None) from error
    return process, ours
