"""Places for processes of hooks that answer the API server: few, and shared fairly.

First between bindings, within one between namespaces, and within one of these between users: one who floods
waits behind himself.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple

from addon_operator.kernel import errors

MOST_WAITING: Final = 256
"""Questions of one binding that may wait: more than one API server changes at a time (200), and fewer than
the site of admission takes for all bindings together."""
_REMEMBERED: Final = 1000
"""Who was served last, of namespaces and users, so many."""


class TooManyWaitingError(errors.AddonOperatorError):
    """Too many questions of one binding wait already."""


class Asker(NamedTuple):
    """Who waits; a place goes to who was served longest ago, level by level."""

    binding: object
    namespace: str = ""
    """Of the object that is asked about."""
    user: str = ""


_Turns = collections.deque[asyncio.Future[None]]


class ProcessSlots:
    """Lets questions of a user run in the order in which they came, some of all bindings side by side.

    A binding gets another place only while it has fewer than are free. So a storm for one of them takes half
    of the places at the most, and leaves some even to a third and a fourth.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._running: collections.Counter[object] = collections.Counter()
        self._served = 0
        self._last_of_bindings: dict[object, int] = {}
        self._last: dict[tuple[object, ...], int] = {}
        self._waiting: dict[object, dict[Asker, _Turns]] = {}

    @contextlib.asynccontextmanager
    async def taken(self, asker: Asker) -> AsyncIterator[None]:
        """Hold a place for a question; raises :class:`TooManyWaitingError`."""
        await self._take(asker)
        try:
            yield
        finally:
            self._give(asker.binding)

    def waiting(self, binding: object) -> int:
        """Return how many questions of a binding wait."""
        return sum(map(len, self._waiting.get(binding, {}).values()))

    async def _take(self, asker: Asker) -> None:
        if self.waiting(asker.binding) >= MOST_WAITING:
            self._make_room(asker)
        turn = asyncio.get_running_loop().create_future()
        lanes = self._waiting.setdefault(asker.binding, {})
        lanes.setdefault(asker, collections.deque()).append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give(asker.binding)
            else:
                self._leave(asker, turn)
            raise

    def _make_room(self, asker: Asker) -> None:
        """Send away the last one of who waits most; raises the error if that is the asker."""
        lanes = self._waiting[asker.binding]
        of_namespaces: collections.Counter[str] = collections.Counter()
        for each, turns in lanes.items():
            of_namespaces[each.namespace] += len(turns)
        most = max(of_namespaces, key=lambda name: (of_namespaces[name], name == asker.namespace))
        floods = max(
            (each for each in lanes if each.namespace == most),
            key=lambda each: (len(lanes[each]), each == asker),
        )
        error = TooManyWaitingError(f"{MOST_WAITING} requests wait for it already")
        if floods == asker:
            raise error
        turn = lanes[floods][-1]
        self._leave(floods, turn)
        turn.set_exception(error)

    def _leave(self, asker: Asker, turn: asyncio.Future[None]) -> None:
        lanes = self._waiting.get(asker.binding, {})
        if turn in lanes.get(asker, ()):
            lanes[asker].remove(turn)
            self._tidy(asker)

    def _tidy(self, asker: Asker) -> None:
        lanes = self._waiting[asker.binding]
        if not lanes[asker]:
            del lanes[asker]
        if not lanes:
            del self._waiting[asker.binding]

    def _give(self, binding: object) -> None:
        self._free += 1
        self._running[binding] -= 1
        if not self._running[binding]:
            del self._running[binding]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (asker := self._next()) is not None:
            turn = self._waiting[asker.binding][asker].popleft()
            self._tidy(asker)
            if turn.cancelled():
                continue
            turn.set_result(None)
            self._free -= 1
            self._running[asker.binding] += 1
            self._note(asker)

    def _note(self, asker: Asker) -> None:
        self._served += 1
        self._last_of_bindings[asker.binding] = self._served
        for who in (asker[:2], asker):
            self._last.pop(who, None)
            self._last[who] = self._served
        while len(self._last) > 2 * _REMEMBERED:
            del self._last[next(iter(self._last))]

    def _next(self) -> Asker | None:
        """Return whose turn it is: of the bindings with the fewest places, the one not served for longest."""
        may = [binding for binding in self._waiting if self._running[binding] < self._free]
        binding = min(
            may, key=lambda each: (self._running[each], self._last_of_bindings.get(each, 0)), default=None
        )
        return None if binding is None else min(self._waiting[binding], key=self._order)

    def _order(self, asker: Asker) -> tuple[int, int]:
        last: Mapping[tuple[object, ...], int] = self._last
        return last.get(asker[:2], 0), last.get(asker, 0)
