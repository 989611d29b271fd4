"""Reading what a child writes, while it writes."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from addon_operator.process import output

_PIECE_BYTES: Final = 64 * 1024


class DrainedPipe:
    """A pipe that the event loop empties into sinks, from when it is made until it is closed.

    ``write_end`` is for the child; close it with :meth:`close_write_end` as soon as the child has it, or the
    end of the stream never comes.
    """

    def __init__(self, sinks: Sequence[output.Sink]) -> None:
        self._sinks = sinks
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._read_end, self.write_end = os.pipe2(os.O_CLOEXEC)
        self._write_end_is_open = True
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def ended(self) -> None:
        """Wait until nobody holds the writing end any more and everything is read."""
        await self._ended.wait()

    def close_write_end(self) -> None:
        """Give up our own copy of the writing end."""
        if self._write_end_is_open:
            self._write_end_is_open = False
            os.close(self.write_end)

    def close(self) -> None:
        """Stop reading, after taking what is already in the pipe."""
        self.close_write_end()
        # What is in the pipe now fits into its buffer; a writer that is faster than us must not keep us here.
        for _ in range(_READS_AT_CLOSE):
            if self._ended.is_set():
                return
            if not self._read():
                break
        self._end()

    def _read(self) -> bool:
        """Take one piece; False when there is nothing to take right now."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._read_end, _PIECE_BYTES)
            if not data:
                self._end()
                return False
            for sink in self._sinks:
                sink.feed(data)
            return True
        return False

    def _end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            for sink in self._sinks:
                sink.close()


_READS_AT_CLOSE: Final = 16
