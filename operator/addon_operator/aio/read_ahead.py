"""Reads a source while what it gave before is still being worked on."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final, Generic, Self, TypeVar

T = TypeVar("T")

DEPTH: Final = 3


class _End:
    pass


_END: Final = _End()


class ReadAhead(Generic[T]):
    """Iterates over a source that runs in a task of its own, a few items ahead.

    An exception of the source arrives after its items. Leaving the context ends the source.
    """

    def __init__(self, source: AsyncGenerator[T, None], depth: int = DEPTH) -> None:
        """``depth`` is how many items may wait."""
        self._source = source
        self._free = asyncio.Semaphore(depth)
        self._items: asyncio.Queue[T | _End] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._fill())
        self._task.add_done_callback(lambda _: self._items.put_nowait(_END))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            # Its exception has been raised by the iteration, or nobody wants to know it any more.
            await asyncio.gather(self._task, return_exceptions=True)

    def stop(self) -> None:
        """End the source; the iteration goes on to what was read already."""
        if self._task is not None:
            self._task.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        item = await self._items.get()
        if isinstance(item, _End):
            if self._task is not None and not self._task.cancelled():
                self._task.result()
            raise StopAsyncIteration
        self._free.release()
        return item

    async def _fill(self) -> None:
        async with contextlib.aclosing(self._source) as source:
            async for item in source:
                await self._free.acquire()
                self._items.put_nowait(item)
