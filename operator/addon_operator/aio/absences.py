"""Decides when what is not there counts as gone: one rule for kinds, APIs, directories and objects.

What one look does not find may be on its way back: a definition or a ConfigMap that is replaced, a directory
that is written anew. It counts as gone when a second look, some time after the first, does not find it
either, and none in between did. A look that fails says nothing, and is no look.
"""

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from addon_operator.kernel import clock

T = TypeVar("T", bound=Hashable)

SECONDS: Final = 10.0
"""Between the two looks, unless the setting ``ABSENCE`` says otherwise."""


class Absences(Generic[T]):
    """Remembers since when looks have not found something."""

    def __init__(self, time: clock.Clock, seconds: float = SECONDS) -> None:
        self._clock = time
        self._seconds = seconds
        self._since: dict[T, float] = {}

    def look(self, missing: Iterable[T]) -> frozenset[T]:
        """Take in all that a look has not found, and return what of it is gone."""
        now = self._clock.monotonic()
        self._since = {each: self._since.get(each, now) for each in missing}
        return frozenset(each for each, since in self._since.items() if now - since >= self._seconds)

    @property
    def due(self) -> float | None:
        """Seconds until a further look would find something gone; ``None`` if nothing is in doubt."""
        now = self._clock.monotonic()
        waits = [since + self._seconds - now for since in self._since.values()]
        return max(0.0, min(waits)) if waits else None
