"""How much the admission site takes at a time, so that a flood costs answers and not memory.

Bodies that are being read, reviews that are being answered and pods that are kept for Events are on one
account. What they take is estimated from above before it is taken: the same number of bytes can become
many times as much memory, depending on what is written in them.
"""

import collections
import contextlib
from collections.abc import Hashable, Iterator
from typing import Final

import msgspec

_NODE_BYTES: Final = 90
"""The most that a value of JSON takes beside its text: a list with one place, and its place in another."""
_MARKS: Final = (b",", b":", b"[", b"{")
_ESCAPE: Final = b"\\u"
_WIDEST: Final = 4
"""Bytes for each letter of a text with one letter that needs so many."""


class OverloadedError(Exception):
    """There is no room for this now."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of what is in work at one moment."""

    requests: int = 2000
    memory_bytes: int = 256 << 20
    """Estimated memory of all of it."""


class Estimate:
    """Bytes that a body takes at the most, from its arrival to the end of its answer, as it comes bit by bit.

    That is the body, twice while its parts are put together, and what is made of it.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._letters = 0
        self._nodes = 1
        self._is_wide = False
        self._last = b""

    def add(self, part: bytes) -> int:
        """Take a part into account, and give the estimate for all so far."""
        escapes = (self._last + part[:1]).count(_ESCAPE) + part.count(_ESCAPE)
        self._last = part[-1:]
        self._bytes += len(part)
        # An escape is six bytes for one letter.
        self._letters += len(part) - 5 * escapes
        # One wide letter makes the whole of its text wide, which may have begun long before.
        self._is_wide |= escapes > 0 or not part.isascii()
        self._nodes += sum(part.count(mark) for mark in _MARKS)
        width = _WIDEST if self._is_wide else 1
        return 2 * self._bytes + width * max(self._letters, 0) + self._nodes * _NODE_BYTES


class Reservation:
    """A part of the account, until it is given back."""

    def __init__(self, account: "MemoryBudget") -> None:
        self._account = account
        self.amount = 0

    def grow(self, amount: int) -> None:
        """Hold so much in all; raises :class:`OverloadedError` if there is no room for it."""
        self._account.take(amount - self.amount)
        self.amount = amount

    def release(self) -> None:
        """Give everything back; once more does no harm."""
        self._account.give(self.amount)
        self.amount = 0


class MemoryBudget:
    """What is in work."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._requests = 0
        self._shares = collections.Counter[Hashable](), collections.Counter[Hashable]()
        self.memory = 0
        """Bytes that are held."""

    @contextlib.contextmanager
    def request(self) -> Iterator[Reservation]:
        """Hold room for one request; raises :class:`OverloadedError` if there are too many."""
        if self._requests >= self._limits.requests:
            raise OverloadedError
        self._requests += 1
        held = Reservation(self)
        try:
            yield held
        finally:
            self._requests -= 1
            held.release()

    @contextlib.contextmanager
    def share(self, owner: Hashable, held: Reservation) -> Iterator[None]:
        """Count a request that may wait for long as its owner's, who may have as much as is left free.

        So one who floods has half, two have a third each, and something is left however many they are.
        Raises :class:`OverloadedError` for more; for a first one there is room, whatever it takes.
        """
        free = self._limits.requests - self._requests, self._limits.memory_bytes - self.memory
        added = 1, held.amount
        has = [of_owner[owner] for of_owner in self._shares]
        if has[0] and any(one + more > left for one, more, left in zip(has, added, free, strict=True)):
            raise OverloadedError
        for of_owner, more in zip(self._shares, added, strict=True):
            of_owner[owner] += more
        try:
            yield
        finally:
            for of_owner, more in zip(self._shares, added, strict=True):
                of_owner[owner] -= more
            if not self._shares[0][owner]:
                for of_owner in self._shares:
                    del of_owner[owner]

    def hold(self, amount: int) -> Reservation:
        """Hold that many bytes; raises :class:`OverloadedError` if there is no room."""
        held = Reservation(self)
        held.grow(amount)
        return held

    def take(self, amount: int) -> None:
        """See :meth:`Reservation.grow`."""
        if self.memory + amount > self._limits.memory_bytes:
            raise OverloadedError
        self.memory += amount

    def give(self, amount: int) -> None:
        """See :meth:`Reservation.release`."""
        self.memory -= amount
