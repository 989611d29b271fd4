"""How workers of ours, such as those for jq and for values, are talked to: frames, alarms and limits.

A request is the length of its body, the seconds after which the worker ends itself, and the body. An answer
is the length of its body, and the body. Numbers are big-endian. Nothing but the standard library is imported:
a worker is there within milliseconds and takes few megabytes.
"""

import contextlib
import resource
import signal
import socket
import struct
from collections.abc import Callable
from typing import Final

_REQUEST: Final = struct.Struct("!Id")
_ANSWER: Final = struct.Struct("!I")
HEAD_BYTES: Final = _ANSWER.size
"""What comes before the body of an answer."""
_BUFFER_BYTES: Final = 1 << 18


def request(body: bytes, alarm_seconds: float) -> bytes:
    """Return a frame; after ``alarm_seconds`` the worker ends itself, should nobody live to end it."""
    return _REQUEST.pack(len(body), alarm_seconds) + body


def answer_size(head: bytes | bytearray) -> int:
    """Return how long the body of an answer is whose first :data:`HEAD_BYTES` are these."""
    size: int = _ANSWER.unpack(head)[0]
    return size


def limit(kind: int, memory_bytes: int) -> None:
    """Limit the memory of this process, counted as ``kind`` of :mod:`resource`; it writes no core."""
    resource.setrlimit(kind, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(descriptor: int, answer: Callable[[bytes], bytes]) -> None:
    """Answer requests on an inherited socket until the other side closes it."""
    with (
        socket.socket(fileno=descriptor) as connection,
        contextlib.suppress(OSError),
        connection.makefile("rb", buffering=_BUFFER_BYTES) as requests,
    ):
        while len(head := requests.read(_REQUEST.size)) == _REQUEST.size:
            length, alarm_seconds = _REQUEST.unpack(head)
            # The default action of the signal ends the process even in the midst of a library.
            signal.setitimer(signal.ITIMER_REAL, alarm_seconds)
            body = answer(requests.read(length))
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.sendall(_ANSWER.pack(len(body)) + body)
