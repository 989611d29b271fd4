"""Starting children through the launcher, a small process of its own, so that their peak memory is their own.

See :mod:`.launcher_main` for the reason and for what the launcher does.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from addon_operator.process.children import launcher_main

_ANSWER_TIMEOUT: Final = 30.0
_CLOSE_TIMEOUT: Final = 10.0
_BYTES_PER_RSS_UNIT: Final = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended and what it and those it waited for have used."""

    code: int
    """Exit code; the negative number of the signal if one ended it."""
    user_cpu_seconds: float
    system_cpu_seconds: float
    max_rss_bytes: int


_LOST: Final = Exit(-signal.SIGKILL, 0.0, 0.0, 0)
"""What is known of a child whose launcher was killed: nothing, so it counts as killed itself."""


class Launcher:
    """The operator's side of the launcher. A process id stays its own until it is reaped.

    The process is started when it is first needed, and once more if it was killed. Belongs to one thread.
    """

    def __init__(self, on_start: Callable[[int], None] = lambda _: None) -> None:
        """``on_start`` gets the process id of each child."""
        self._on_start = on_start
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._limit = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None,
        stdout: int,
        stderr: int,
        limits: Mapping[int, int],
    ) -> int:
        """Start a program in a session of its own with an empty standard input; its process id.

        ``limits`` bound what the program, and each process that it starts, takes: ``resource.RLIMIT_…``.
        ``stdout`` and ``stderr`` are file descriptors; they stay the caller's to close. Raises
        :class:`OSError` or :class:`ValueError` when the program cannot be started.
        """
        if any("\0" in text for text in (*argv, *env, *env.values())):
            raise ValueError("embedded null byte")
        request = {"argv": [*argv], "env": {**env}, "cwd": _directory(cwd), "limits": [*limits.items()]}
        with _in_memory(json.dumps(request).encode()) as document:
            answer = self._ask_again(b"start", [document, stdout, stderr])
        if "pid" in answer:
            self._on_start(int(answer["pid"]))
            return int(answer["pid"])
        number = int(answer["errno"])
        raise OSError(number, os.strerror(number))

    def reap(self, pid: int) -> Exit:
        """Take the exit of a child that has ended; once."""
        if self._socket is None:
            return _LOST
        try:
            answer = self._ask(str(pid).encode())
        except OSError:
            self._drop()
            return _LOST
        if not answer:
            return _LOST
        return Exit(
            answer["exit_code"], answer["user"], answer["system"], answer["max_rss"] * _BYTES_PER_RSS_UNIT
        )

    def limit(self, term_at: float, kill_at: float) -> None:
        """Set until when children may run, in seconds of ``CLOCK_BOOTTIME``: SIGTERM then, and SIGKILL later.

        The launcher sees to it even if this process is stopped meanwhile. The limit can be moved on until it
        has passed; after that no child can be started.
        """
        self._limit = b"%s %r %r" % (launcher_main.LIMIT, term_at, kill_at)
        if self._socket is not None:
            try:
                self._ask(self._limit)
            except OSError:
                self._drop()

    def close(self) -> None:
        """End the launcher and, first, all of its children that still run."""
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSE_TIMEOUT)

    def _ask_again(self, message: bytes, fds: Sequence[int]) -> dict[str, Any]:
        """Ask; and, if the launcher is gone, a new one."""
        try:
            return self._ask(message, fds)
        except OSError:
            self._drop()
            return self._ask(message, fds)

    def _ask(self, message: bytes, fds: Sequence[int] = ()) -> dict[str, Any]:
        connection = self._connection()
        socket.send_fds(connection, [message], fds)
        answer = connection.recv(launcher_main.MAX_MESSAGE)
        if not answer:
            raise ConnectionResetError("the launcher is gone")
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def _connection(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", launcher_main.__file__, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                    env={},
                )
            ours.settimeout(_ANSWER_TIMEOUT)
            self._socket = ours
            if self._limit:
                self._ask(self._limit)
        return self._socket

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.close()


def _directory(cwd: pathlib.Path | None) -> str:
    """Return where a program starts: by default where this process is, or at the root if that is gone."""
    if cwd is None:
        with contextlib.suppress(FileNotFoundError):
            return str(pathlib.Path.cwd())
        return "/"
    return str(cwd.absolute())


@contextlib.contextmanager
def _in_memory(data: bytes) -> Iterator[int]:
    """Give a file that holds ``data`` and is nowhere on disk."""
    descriptor = os.memfd_create("request")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
