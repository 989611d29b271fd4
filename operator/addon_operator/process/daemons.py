"""Starts programs that outlive the command that started them, and finds them again.

A pid alone names no process for long: after a while, or a reboot, another one has it. So a daemon is known by
its pid, its start time and the boot it belongs to, all from ``/proc``. A mark in its environment lets it be
found even when whoever started it was killed before writing anything down.
"""

import contextlib
import errno
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors
from addon_operator.process.children import groups

_POLL: Final = 0.01
_KILL_TIMEOUT: Final = 10.0
_STATE_FIELD: Final = 0
_ENDED_STATES: Final = frozenset({"Z", "X"})
_THREADS_FIELD: Final = 17
_START_FIELD: Final = 19
_TAIL_BYTES: Final = 16 * 1024


class DaemonError(errors.AddonOperatorError):
    """A daemon could not be started or does not go away."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    """One process and no other, even when its pid is used again."""

    pid: int
    """Its number, free for others once it has ended."""
    started: int
    """When it started, in clock ticks since the machine's boot (field 22 of ``/proc/PID/stat``)."""
    boot: str
    """Which boot of the machine that was."""


class ProcessTable:
    """The processes of this machine as ``/proc`` shows them."""

    def __init__(
        self,
        root: pathlib.Path = pathlib.Path("/proc"),
        clock: clocks.Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root
        self._clock = clock or clocks.SystemClock()
        self._sleep = sleep

    def identify(self, pid: int) -> ProcessIdentity | None:
        """Say who has that pid now; ``None`` when nobody has, or one that has ended already."""
        return self._identity(pid, lambda fields: not _has_ended(fields))

    def identify_child(self, pid: int) -> ProcessIdentity | None:
        """Say who a child is, even if it has ended: its pid is its own until it is reaped."""
        return self._identity(pid, lambda _: True)

    def is_alive(self, process: ProcessIdentity) -> bool:
        """Say whether that very process still runs."""
        return self.identify(process.pid) == process

    def marked(self, name: str, value: str) -> list[ProcessIdentity]:
        """Return all processes of this user that were started with ``name=value`` in their environment."""
        wanted = f"{name}={value}".encode()
        pids = (int(entry.name) for entry in self._root.iterdir() if entry.name.isdigit())
        environments = {pid: self._environment(pid) for pid in pids}
        if empty := [pid for pid, environment in environments.items() if environment == [b""]]:
            # A process that is becoming another program shows none for a moment.
            self._sleep(_POLL)
            environments |= {pid: self._environment(pid) for pid in empty}
        processes = (self.identify(pid) for pid, environment in environments.items() if wanted in environment)
        return [process for process in processes if process is not None]

    def kill(self, processes: Iterable[ProcessIdentity]) -> None:
        """End processes at once (``SIGKILL``) and wait until they are gone; one that has ended is fine.

        Raises :class:`DaemonError` when one is still there after ten seconds, or belongs to someone else.
        """
        remaining = [process for process in processes if self.is_alive(process)]
        for process in remaining:
            _signal(process)
        deadline = self._clock.monotonic() + _KILL_TIMEOUT
        while remaining := [process for process in remaining if self._lingers(process)]:
            if self._clock.monotonic() > deadline:
                pids = ", ".join(str(process.pid) for process in remaining)
                raise DaemonError(f"process {pids} does not end although it was killed; look at it with ps")
            self._sleep(_POLL)

    def _identity(self, pid: int, counts: Callable[[list[str]], bool]) -> ProcessIdentity | None:
        """Say who has a pid, if its fields count; ``None`` when nobody has."""
        with contextlib.suppress(OSError):
            fields = groups.stat_of(pid, self._root)
            if counts(fields):
                return ProcessIdentity(pid, int(fields[_START_FIELD]), self._boot())
        return None

    def _boot(self) -> str:
        with contextlib.suppress(OSError):
            return (self._root / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return ""

    def _lingers(self, process: ProcessIdentity) -> bool:
        # What another command started is not ours to wait for.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
        return self.is_alive(process)

    def _environment(self, pid: int) -> list[bytes]:
        with contextlib.suppress(OSError):
            return (self._root / str(pid) / "environ").read_bytes().split(b"\0")
        return []


def start(
    argv: Sequence[str],
    cwd: pathlib.Path | None = None,
    *,
    log: pathlib.Path,
    env: Mapping[str, str],
    table: ProcessTable,
) -> ProcessIdentity:
    """Start a program in a session of its own, with both outputs appended to ``log`` (mode 0600).

    It lives on when this process ends. ``cwd`` is its working directory, by default ours; ``env`` is its
    whole environment.

    Raises :class:`DaemonError` when it cannot be started.
    """
    try:
        pid = _spawn(argv, cwd, log, env)
    except OSError as error:
        raise DaemonError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
    process = table.identify_child(pid)
    if process is None:
        raise DaemonError(f"{argv[0]} cannot be found in /proc after its start; mount /proc")
    return process


def _spawn(argv: Sequence[str], cwd: pathlib.Path | None, log: pathlib.Path, env: Mapping[str, str]) -> int:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    process.returncode = 0  # it outlives us: nothing is to warn of that
    return process.pid


def _has_ended(fields: Sequence[str]) -> bool:
    # The first thread can be gone while others still hold the process's files and ports.
    return fields[_STATE_FIELD] in _ENDED_STATES and int(fields[_THREADS_FIELD]) <= 1


def log_tail(log: pathlib.Path, lines: int = 3) -> list[str]:
    """Return the last lines of a log, without empty ones; nothing when there is no such file."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()][-lines:]
    return []


def _signal(process: ProcessIdentity) -> None:
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    except OSError as error:
        if error.errno == errno.EPERM:
            raise DaemonError(f"process {process.pid} belongs to another user and cannot be ended") from error
        raise
