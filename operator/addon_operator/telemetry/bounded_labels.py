"""Values of a label that come from requests: not more than so many, and none that nobody uses any more."""

import collections
from collections.abc import Callable
from typing import Final

OTHERS: Final = "(others)"
"""What stands for all values for which there is no room; no name of Kubernetes is written so."""


class BoundedLabels:
    """Says which values may be labels now; to be used in one thread."""

    def __init__(
        self, most: int, seconds: float, forget: Callable[[str], None], now: Callable[[], float]
    ) -> None:
        """At most ``most`` values at a time; one not seen for so many seconds is given to ``forget``."""
        self._most = most
        self._seconds = seconds
        self._forget = forget
        self._now = now
        self._seen: collections.OrderedDict[str, float] = collections.OrderedDict()

    def label(self, value: str) -> str:
        """The value itself, or :data:`OTHERS` while there are too many."""
        self.expire()
        if value not in self._seen and len(self._seen) >= self._most:
            return OTHERS
        self._seen[value] = self._now()
        self._seen.move_to_end(value)
        return value

    def expire(self) -> None:
        """Forget what was not seen for long."""
        oldest = self._now() - self._seconds
        while self._seen and next(iter(self._seen.values())) < oldest:
            value, _ = self._seen.popitem(last=False)
            self._forget(value)
