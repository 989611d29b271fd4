"""Starting children through the launcher, a small process of its own, so that their peak memory is their own.

See :mod:`.launcher_main` for the reason and for what the launcher does.
"""

import asyncio
import collections
import contextlib
import errno
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import msgspec

from addon_operator.aio import waiting
from addon_operator.process.children import launcher_main

_ANSWER_TIMEOUT: Final = 30.0
_CLOSE_TIMEOUT: Final = 10.0
_BYTES_PER_RSS_UNIT: Final = 1024


class Exit(msgspec.Struct, frozen=True):
    """How a process ended and what it and those it waited for have used."""

    code: int
    """Exit code; the negative number of the signal if one ended it."""
    user_cpu_seconds: float
    system_cpu_seconds: float
    max_rss_bytes: int


LOST: Final = Exit(-signal.SIGKILL, 0.0, 0.0, 0)
"""What is known of a child that somebody else reaped: nothing, so it counts as killed."""


class _ClosedError(OSError):
    """The launcher was closed while it was asked."""


class Launcher:
    """The operator's side of the launcher. A process id stays its own until it is reaped.

    The process is started when it is first needed, and once more if it was killed or hangs: its children go
    on as this process's own. It answers in the order in which it was asked, and the loop does not wait for
    that. Belongs to one thread.
    """

    def __init__(self, on_start: Callable[[int], None] = lambda _: None) -> None:
        """``on_start`` gets the process id of each child."""
        self._on_start = on_start
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._limit = b""
        self._children: dict[int, dict[str, Any]] = {}
        """Those that are not reaped, as another launcher would have to know them."""
        self._asked: collections.deque[_Asked] = collections.deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: pathlib.Path | None,
        stdout: int,
        stderr: int,
        limits: Mapping[int, int],
        is_limited: bool = True,
    ) -> int:
        """Start a program in a session of its own with an empty standard input; its process id.

        Without ``is_limited`` the program may run, and be started, after :meth:`limit`, too.
        ``limits`` bound what the program, and each process that it starts, takes: ``resource.RLIMIT_…``.
        ``stdout`` and ``stderr`` are file descriptors; they stay the caller's to close. Raises
        :class:`OSError` or :class:`ValueError` when the program cannot be started. A cancellation changes
        nothing here: it goes on when the caller next waits, who has the process then.
        """
        if "\0" in "".join((*argv, *env, *env.values())):
            raise ValueError("embedded null byte")
        asked = {
            "argv": [*argv],
            "env": {**env},
            "cwd": _directory(cwd),
            "limits": [*limits.items()],
            "is_limited": is_limited,
        }
        with _in_memory(json.dumps(asked).encode()) as document:
            answer = await self._ask_again(launcher_main.START, [stdout, stderr, document])
        if "pid" in answer:
            pid = int(answer["pid"])
            self._children[pid] = {"pid": pid, "is_limited": is_limited}
            self._on_start(pid)
            return pid
        number = int(answer["errno"])
        raise OSError(number, os.strerror(number))

    async def reap(self, pid: int) -> Exit:
        """Take the exit of a child that has ended; once. A cancellation waits for that."""
        answer: dict[str, Any] = {}
        try:
            # One that is lost meanwhile has a successor, unless it was closed.
            for _ in range(2):
                if self._socket is None:
                    break
                with contextlib.suppress(OSError):
                    answer = await self._ask(b"%d" % pid)
                    break
        finally:
            self._children.pop(pid, None)
            # Also after a cancellation: nobody else reaps what a launcher has lost.
            ended = _exit(answer) if answer else _exit_of_own(pid)
        return ended

    def limit(self, term_at: float, kill_at: float) -> None:
        """Set until when children that it holds for may run: SIGTERM then, and SIGKILL later.

        Times are seconds of ``CLOCK_BOOTTIME``. The launcher sees to it even if this process is stopped
        meanwhile. The limit can be moved on until it has passed; after that no such child can be started.
        """
        self._limit = b"%s %r %r" % (launcher_main.LIMIT, term_at, kill_at)
        if self._socket is not None:
            # One that is killed has a successor then, which has the limit.
            with contextlib.suppress(OSError):
                self._send(self._limit)

    def close(self) -> None:
        """End the launcher and, first, all of its children that still run."""
        self._end(_ClosedError(errno.ECANCELED, os.strerror(errno.ECANCELED)))

    async def _ask_again(self, message: bytes, fds: Sequence[int]) -> dict[str, Any]:
        """Ask; and, if the launcher is gone, a new one."""
        try:
            return await _put_off(self._ask(message, fds))
        except _ClosedError:
            raise
        except OSError:
            return await _put_off(self._ask(message, fds))

    def _ask(self, message: bytes, fds: Sequence[int] = ()) -> "waiting.Lasting[dict[str, Any]]":
        """Ask, and return what will be the answer; raises :class:`OSError`, as that may, too."""
        loop = asyncio.get_running_loop()
        connection = self._send(message, fds)
        if not self._asked:
            # By its number: of the socket itself, the selector would write out the addresses.
            loop.add_reader(connection.fileno(), self._take_answer)
        timed_out = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        late = loop.call_later(_ANSWER_TIMEOUT, self._drop, timed_out)
        asked = _Asked(waiting.Lasting(loop=loop), late)
        self._asked.append(asked)
        return asked.answer

    def _send(self, message: bytes, fds: Sequence[int] = ()) -> socket.socket:
        connection = self._connection()
        try:
            try:
                socket.send_fds(connection, [message], fds)
            except BlockingIOError:
                _wait_for_room(connection)
                socket.send_fds(connection, [message], fds)
        except OSError as error:
            self._drop(error)
            raise
        return connection

    def _take_answer(self) -> None:
        try:
            answer = self._connection().recv(launcher_main.MAX_MESSAGE)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(error)
            return
        if not answer:
            self._drop(ConnectionResetError("the launcher is gone"))
            return
        asked = self._asked.popleft()
        if not self._asked:
            asked.loop.remove_reader(self._connection().fileno())
        asked.end(json.loads(answer))

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
            self._socket = ours
            launcher_main.inherit()
            # The limit is the last: it may have passed for them.
            for child in self._children.values():
                socket.send_fds(ours, [launcher_main.ADOPT + json.dumps(child).encode()], [])
            if self._limit:
                socket.send_fds(ours, [self._limit], [])
            ours.setblocking(False)
        return self._socket

    def _drop(self, error: OSError) -> None:
        if self._process is not None:
            self._process.kill()
        self._end(error)
        if self._children:
            # Without one, nothing would hold them to the limit if this process hung.
            with contextlib.suppress(OSError):
                self._connection()

    def _end(self, error: OSError) -> None:
        process, self._process = self._process, None
        asked, self._asked = self._asked, collections.deque()
        if self._socket is not None:
            if asked and not asked[0].loop.is_closed():
                asked[0].loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
        for each in asked:
            each.end(error)
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSE_TIMEOUT)


class _Asked(msgspec.Struct, frozen=True):
    """A request that is not answered yet."""

    answer: "waiting.Lasting[dict[str, Any]]"
    timer: asyncio.TimerHandle

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.answer.get_loop()

    def end(self, answer: dict[str, Any] | OSError) -> None:
        self.timer.cancel()
        if self.answer.done() or self.loop.is_closed():
            return
        if isinstance(answer, OSError):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


def _exit(said: Mapping[str, Any]) -> Exit:
    return Exit(said["exit_code"], said["user"], said["system"], said["max_rss"] * _BYTES_PER_RSS_UNIT)


def _exit_of_own(pid: int) -> Exit:
    """Reap a child that this process inherited and that has ended."""
    try:
        return _exit(launcher_main.reaped(pid))
    except ChildProcessError:
        return LOST


async def _put_off(answer: "waiting.Lasting[dict[str, Any]]") -> dict[str, Any]:
    try:
        return await answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - somebody awaits this
        # Counted once, as what is taken back by who cancelled, such as a timeout.
        task.uncancel()
        task.cancel()
        return answer.result()


def _wait_for_room(connection: socket.socket) -> None:
    """Wait until the launcher has taken something of what it was asked."""
    # Unlike select, it takes descriptors of any number.
    room = select.poll()
    room.register(connection, select.POLLOUT)
    if not room.poll(_ANSWER_TIMEOUT * 1000):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


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
        os.write(descriptor, data)
        yield descriptor
    finally:
        os.close(descriptor)
