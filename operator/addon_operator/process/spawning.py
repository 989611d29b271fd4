"""One child process of our own: started as leader of its own session, watched, signalled, reaped once.

asyncio's own child processes are not used because their reaper throws away the resource usage.
"""

import asyncio
import os
import pathlib
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

from addon_operator.process import groups, start_errors

_BYTES_PER_RSS_UNIT: Final = 1024


class Spawned:
    """A child that was started and is not reaped yet.

    As long as it is not reaped, its process id and its group's id cannot be given to anybody else: that is
    why the group is signalled only through this object.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._exit = asyncio.Event()
        self.ended_at: float | None = None
        """When the child ended, on the monotonic clock; None as long as it runs."""
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)

    async def exited(self) -> None:
        """Wait until the child itself has ended."""
        await self._exit.wait()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the child and all that it started and that stayed in its group."""
        groups.send(self._process.pid, number)

    def group_is_alive(self) -> bool:
        """Whether the child or a process that stayed in its group still runs."""
        return groups.has_living_member(self._process.pid)

    def reap(self) -> tuple[int, resource.struct_rusage]:
        """Exit code (negative: signal) and resource usage of the child, which must have exited. Once only."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _, status, usage = os.wait4(self._process.pid, 0)
        # Tells subprocess that the child is reaped, so that it never waits for that number again.
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return self._process.returncode, usage

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.ended_at = time.monotonic()
        self._exit.set()


def spawn(
    argv: Sequence[str | pathlib.Path],
    *,
    env: Mapping[str, str],
    cwd: pathlib.Path | None,
    stdout: int,
    stderr: int,
) -> Spawned:
    """Start a program in a session of its own with an empty standard input.

    ``stdout`` and ``stderr`` are file descriptors; they stay the caller's to close.

    Raises :class:`~addon_operator.process.start_errors.ChildStartError` when the program cannot be started.
    """
    words = [os.fspath(word) for word in argv]
    try:
        process = subprocess.Popen(
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except OSError as error:
        raise start_errors.explain(error, words[0], cwd) from error
    except ValueError as error:
        raise start_errors.ChildStartError(words[0], f"{error}") from error
    try:
        return Spawned(process)
    except OSError as error:
        process.kill()
        process.wait()
        raise start_errors.explain(error, words[0], cwd) from error


def max_rss_bytes(usage: resource.struct_rusage) -> int:
    """Peak resident memory of a reaped child in bytes."""
    return usage.ru_maxrss * _BYTES_PER_RSS_UNIT
