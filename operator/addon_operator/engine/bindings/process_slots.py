"""Places for processes of hooks that answer the API server: few, and shared fairly between bindings."""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from addon_operator.kernel import errors

MOST_WAITING: Final = 256
"""Questions of one binding that may wait: more than one API server changes at a time (200), and fewer than
the site of admission takes for all bindings together."""


class TooManyWaitingError(errors.AddonOperatorError):
    """Too many questions of one binding wait already."""


class ProcessSlots:
    """Lets questions of a binding run in the order in which they came, some of all bindings side by side.

    A binding gets another place only while it has fewer than are free. So a storm for one of them takes half
    of the places at the most, and leaves some even to a third and a fourth.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._running: collections.Counter[object] = collections.Counter()
        self._served = 0
        self._last: dict[object, int] = {}
        self._waiting: dict[object, collections.deque[asyncio.Future[None]]] = {}

    @contextlib.asynccontextmanager
    async def taken(self, binding: object) -> AsyncIterator[None]:
        """Hold a place for a question of a binding; raises :class:`TooManyWaitingError`."""
        await self._take(binding)
        try:
            yield
        finally:
            self._give(binding)

    def waiting(self, binding: object) -> int:
        """Return how many questions of a binding wait."""
        return len(self._waiting.get(binding, ()))

    async def _take(self, binding: object) -> None:
        queue = self._waiting.setdefault(binding, collections.deque())
        if len(queue) >= MOST_WAITING:
            raise TooManyWaitingError(f"{len(queue)} requests wait for it already")
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(binding)
            else:
                self._leave(binding, turn)
            raise

    def _leave(self, binding: object, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(binding)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[binding]

    def _give(self, binding: object) -> None:
        self._free += 1
        self._running[binding] -= 1
        if not self._running[binding]:
            del self._running[binding]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (binding := self._next()) is not None:
            queue = self._waiting[binding]
            turn = queue.popleft()
            if not queue:
                del self._waiting[binding]
            if turn.cancelled():
                continue
            turn.set_result(None)
            self._free -= 1
            self._running[binding] += 1
            self._served += 1
            self._last[binding] = self._served

    def _next(self) -> object | None:
        """Return whose turn it is: of the bindings with the fewest places, the one not served for longest."""
        may = [binding for binding in self._waiting if self._running[binding] < self._free]
        return min(
            may, key=lambda binding: (self._running[binding], self._last.get(binding, 0)), default=None
        )
