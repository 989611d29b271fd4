"""Reads what a child writes, while it writes: cut into lines, kept up to a limit, or only the end kept.

Everything here holds a bounded amount of memory, however much a child writes. A child may write faster than
its lines can be logged. Then it has to wait, and not the event loop: lines are taken for a moment at a time,
and everybody else has a turn before the next.
"""

import asyncio
import codecs
import collections
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, Self

MAX_LINE_CHARS: Final = 10_000
"""Characters of a line that are passed on; the rest of the line is dropped."""
CUT_MARK: Final = " … (line cut)"
"""What stands at the end of a line that was cut."""
TAIL_LINES: Final = 20
TAIL_CHARS: Final = 4_000

_READ_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 4 * 1024
_PIECE_LINES: Final = 16
_SLICE_SECONDS: Final = 0.002
_CLOSE_SECONDS: Final = 0.05

LineHandler = Callable[[str], None]


class Sink(Protocol):
    """Takes the bytes of one stream as they come."""

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream; pieces end anywhere, even inside a character."""
        ...

    def close(self) -> None:
        """Flush what is left: the stream has ended."""
        ...


class Lines:
    """Cuts a stream into lines of text, without their ends, and hands each to ``handler``.

    Bytes that are not UTF-8 become U+FFFD. A last line without an end is a line, too.
    """

    def __init__(self, handler: LineHandler, max_chars: int = MAX_LINE_CHARS) -> None:
        self._handler = handler
        self._max_chars = max_chars
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun = ""
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """Hand on every line that ``data`` completes."""
        *ends, rest = self._decoder.decode(data).split("\n")
        for end in ends:
            self._keep(end)
            self._emit()
        self._keep(rest)

    def close(self) -> None:
        """Hand on a last line that has no end."""
        self._keep(self._decoder.decode(b"", final=True))
        if self._begun:
            self._emit()

    def _keep(self, text: str) -> None:
        room = self._max_chars - len(self._begun)
        self._is_cut = self._is_cut or len(text) > room
        self._begun += text[:room]

    def _emit(self) -> None:
        line = self._begun + CUT_MARK if self._is_cut else self._begun.removesuffix("\r")
        self._begun, self._is_cut = "", False
        self._handler(line)


class Tail:
    """Keeps the last lines of a stream; its :meth:`add` is a line handler."""

    def __init__(self, lines: int = TAIL_LINES, chars: int = TAIL_CHARS) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=lines)
        self._chars = chars

    def add(self, line: str) -> None:
        """Remember a line, and forget the oldest one if there are too many; blank ones are not kept."""
        if line.strip():
            self._lines.append(line[-self._chars :])

    @property
    def text(self) -> str:
        """The last lines, joined by line ends, at most ``chars`` characters."""
        return "\n".join(self._lines)[-self._chars :]


class Capture:
    """Keeps the first ``limit`` bytes of a stream and knows whether there were more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.is_cut = False
        """Whether the stream was longer than the limit."""

    def feed(self, data: bytes) -> None:
        """Keep what fits below the limit."""
        room = self._limit - len(self._kept)
        self.is_cut = self.is_cut or len(data) > room
        self._kept += data[:room]

    def close(self) -> None:
        """Do nothing: nothing is left."""

    @property
    def data(self) -> bytes:
        """What was kept."""
        return bytes(self._kept)


class DrainedPipe:
    """A pipe that the event loop empties into sinks, from when it is made until it is closed.

    ``write_end`` is for the child; close it with :meth:`close_write_end` as soon as the child has it, or the
    end of the stream never comes.
    """

    def __init__(self, sinks: Sequence[Sink], seconds: Callable[[], float] = time.perf_counter) -> None:
        """``seconds`` is a clock of any beginning."""
        self._sinks = sinks
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._held = b""
        self._taken = 0
        self._at_end = False
        self._is_listening = False
        self._next: asyncio.Handle | None = None
        self._read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        self._write_end_is_open = True
        os.set_blocking(self._read_end, False)
        self._listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def ended(self) -> None:
        """Wait until nobody holds the writing end any more and everything is read."""
        await self._ended.wait()

    async def finish(self) -> None:
        """Read only what is in the pipe now, and wait until that is taken."""
        if not self._at_end:
            self._held = self._held[self._taken :] + (self._read() or b"")
            self._taken = 0
            self._stop_reading()
            self._work()
        await self._ended.wait()

    def close_write_end(self) -> None:
        """Give up our own copy of the writing end."""
        if self._write_end_is_open:
            self._write_end_is_open = False
            os.close(self.write_end)

    def close(self) -> None:
        """Stop reading, after taking what is already in the pipe as far as that takes no time."""
        self.close_write_end()
        self._take_for(_CLOSE_SECONDS)
        self._end()

    def _work(self) -> None:
        """Take what there is, or some of it now and the rest when others had their turn."""
        self._cancel_next()
        if not self._take_for(_SLICE_SECONDS):
            self._listen(on=False)
            self._next = self._loop.call_soon(self._work)
        elif not self._ended.is_set():
            self._listen()

    def _take_for(self, seconds: float) -> bool:
        """Take pieces for so long; whether nothing is left."""
        give_up = self._seconds() + seconds
        while self._holds_something():
            self._take_piece()
            if self._seconds() >= give_up:
                return False
        return True

    def _holds_something(self) -> bool:
        """Say whether there is something to take; reads more when all that was read is taken."""
        if self._taken < len(self._held):
            return True
        data = b"" if self._at_end else self._read()
        if data == b"":
            self._end()
        self._held, self._taken = data or b"", 0
        return bool(data)

    def _take_piece(self) -> None:
        end = _end_of_piece(self._held, self._taken)
        piece = self._held[self._taken : end]
        self._taken = end
        for sink in self._sinks:
            sink.feed(piece)

    def _read(self) -> bytes | None:
        """Return what is in the pipe; ``None`` if that is nothing right now, and nothing at the end."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self._read_end, _READ_BYTES)
        return None

    def _listen(self, *, on: bool = True) -> None:
        if on and not self._is_listening:
            self._loop.add_reader(self._read_end, self._work)
        elif self._is_listening and not on:
            self._loop.remove_reader(self._read_end)
        self._is_listening = on

    def _stop_reading(self) -> None:
        if not self._at_end:
            self._at_end = True
            self._listen(on=False)
            os.close(self._read_end)

    def _cancel_next(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._stop_reading()
            self._cancel_next()
            for sink in self._sinks:
                sink.close()


def _end_of_piece(data: bytes, start: int) -> int:
    """Say where a piece ends that is neither large nor has many lines."""
    limit = min(start + _PIECE_BYTES, len(data))
    end = start
    for _ in range(_PIECE_LINES):
        end = data.find(b"\n", end, limit) + 1
        if end == 0:
            return limit
    return end
