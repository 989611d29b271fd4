"""Values workers as copies, of operators that are copies: their imports take as long as a small converge.

A copy of an operator makes one more of itself before anything runs in it. That one waits, with no threads and
all modules, and makes the workers: with limits, a session and a socket as a started one has them.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import threading
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from addon_operator.inspection import values_worker_main
from addon_operator.process.children import spawning
from addon_operator.values import inspectors

__all__ = ["inspectors", "take_over"]

_MESSAGE_BYTES: Final = 4096


class _Worker:
    """One worker; in place of :class:`subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        # It stays open as long as the operator lives: another thread may still end the worker.
        self._descriptor = os.pidfd_open(pid)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self) -> None:
        ended = select.poll()
        ended.register(self._descriptor, select.POLLIN)
        ended.poll()


def take_over() -> None:
    """Have this process, which has one thread yet, get its values workers that way."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        ours.close()
        _make(theirs)
    theirs.close()
    one_by_one, start = threading.Lock(), spawning.start_python

    def start_python(
        script: pathlib.Path, *arguments: object, options: Sequence[str] = ("-I",)
    ) -> tuple[Any, socket.socket]:
        if script != pathlib.Path(values_worker_main.__file__):
            return start(script, *arguments, options=options)
        near, far = socket.socketpair()
        with far, one_by_one:
            socket.send_fds(ours, [json.dumps(arguments).encode()], [far.fileno()])
            return _Worker(int(ours.recv(_MESSAGE_BYTES))), near

    vars(spawning)["start_python"] = start_python


def _make(asked: socket.socket) -> NoReturn:
    """Make workers until the operator is gone."""
    # A session of its own: what ends the operator's group does not end it first.
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(asked, _MESSAGE_BYTES, 1)
        if not message:
            os._exit(0)
        pid = os.fork()
        if not pid:
            asked.close()
            _be_a_worker(descriptors[0], *json.loads(message))
        os.close(descriptors[0])
        asked.send(b"%d" % pid)


def _be_a_worker(descriptor: int, memory_bytes: int) -> NoReturn:
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        values_worker_main.main(descriptor, memory_bytes)
    finally:
        os._exit(0)
