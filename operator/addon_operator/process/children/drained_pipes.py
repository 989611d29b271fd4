"""Reading what a child writes, while it writes.

A child may write faster than its lines can be logged. Then it has to wait, and not the event loop: lines are
taken for a moment at a time, and everybody else has a turn before the next.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from addon_operator.process.children import output

_READ_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 4 * 1024
_PIECE_LINES: Final = 16
_SLICE_SECONDS: Final = 0.002
_CLOSE_SECONDS: Final = 0.05


class DrainedPipe:
    """A pipe that the event loop empties into sinks, from when it is made until it is closed.

    ``write_end`` is for the child; close it with :meth:`close_write_end` as soon as the child has it, or the
    end of the stream never comes.
    """

    def __init__(
        self, sinks: Sequence[output.Sink], seconds: Callable[[], float] = time.perf_counter
    ) -> None:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """Whether there is something to take; reads more when all that was read is taken."""
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
        """What is in the pipe; ``None`` if that is nothing right now, and nothing at the end."""
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
    """Where a piece ends that is neither large nor has many lines."""
    limit = min(start + _PIECE_BYTES, len(data))
    end = start
    for _ in range(_PIECE_LINES):
        end = data.find(b"\n", end, limit) + 1
        if end == 0:
            return limit
    return end
