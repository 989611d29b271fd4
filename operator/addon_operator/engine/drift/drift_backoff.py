"""How soon a resource is restored or corrected: at once, unless somebody changes it again and again."""

import collections
from collections.abc import Iterable
from typing import Final

import msgspec

from addon_operator.aio import waiting

FREE: Final = 10
"""So many times in a row without a pause."""
FIRST_PAUSE: Final = 5.0
MAX_PAUSE: Final = 300.0
_BACKOFF: Final = waiting.Backoff(FIRST_PAUSE, MAX_PAUSE)
CALM: Final = 60.0
"""Seconds without a restoration after which the count begins anew; with pauses it takes some of them."""
_CALM_PAUSES: Final = 3

MOST_CORRECTIONS: Final = 5
"""So often something is corrected in :data:`CORRECTION_SECONDS`; then it is left."""
CORRECTION_SECONDS: Final = 600.0


class Corrections:
    """The corrections of one thing; times are monotonic seconds."""

    def __init__(self) -> None:
        self._times = collections.deque[float](maxlen=MOST_CORRECTIONS)

    def wait(self, now: float) -> float:
        """Return the seconds to wait from ``now`` on; 0 when it may be corrected at once."""
        if len(self._times) < MOST_CORRECTIONS:
            return 0.0
        return max(0.0, self._times[0] + CORRECTION_SECONDS - now)

    def made(self, now: float) -> None:
        """Note that it was corrected."""
        self._times.append(now)


class DriftBackoff(msgspec.Struct):
    """The restorations of one resource; times are monotonic seconds."""

    count: int = 0
    """Restorations in a row."""
    last: float = float("-inf")

    @property
    def pause(self) -> float:
        """Seconds between the last restoration and the next."""
        if self.count < FREE:
            return 0.0
        return _BACKOFF.after(self.count - FREE + 1)

    def wait(self, now: float) -> float:
        """Return the seconds to wait from ``now`` on; 0 when it may be restored at once."""
        if self.is_calm(now):
            self.count = 0
        return max(0.0, self.last + self.pause - now)

    def is_calm(self, now: float) -> bool:
        """Say whether nothing is left of what happened before."""
        return now - self.last > max(CALM, _CALM_PAUSES * self.pause)

    def restored(self, now: float) -> None:
        """Note that the resource was brought back."""
        self.count += 1
        self.last = now


class DriftBackoffs:
    """The restorations of a module's resources, by their names."""

    def __init__(self) -> None:
        self._known: dict[str, DriftBackoff] = {}

    def wait(self, resource: str, now: float) -> float:
        """Return the seconds to wait from ``now`` on; 0 when the resource may be brought back at once."""
        backoff = self._known.get(resource)
        return 0.0 if backoff is None else backoff.wait(now)

    def recent(self, now: float) -> dict[str, int]:
        """Return what was brought back lately, and how often in a row."""
        return {name: backoff.count for name, backoff in self._known.items() if not backoff.is_calm(now)}

    def restored(self, resources: Iterable[str], now: float) -> None:
        """Note that these were brought back."""
        self._known = {name: backoff for name, backoff in self._known.items() if not backoff.is_calm(now)}
        for resource in resources:
            self._known.setdefault(resource, DriftBackoff()).restored(now)
