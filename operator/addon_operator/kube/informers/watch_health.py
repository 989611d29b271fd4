"""Whether a watch stands that the operator's work depends on, and since when it does not."""

import threading
import time
from collections.abc import Callable
from typing import Final

GRACE_SECONDS: Final = 60.0
"""How long a watch that stood may be down before that is reported: an API server restarts now and then."""


class WatchHealth:
    """What is known of one watch. It stands when its list was answered and its stream is open.

    Safe to use from several threads.
    """

    def __init__(
        self, subject: str, *, grace: float | None = None, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        """``subject`` is what has to stand, for people: ``the watch of …``.

        ``grace`` is in seconds, by default :data:`GRACE_SECONDS`.
        """
        self._subject = subject
        self._grace = GRACE_SECONDS if grace is None else grace
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._came_up = False
        self._down_since: float | None = elapsed()
        self._reason = ""

    def stands(self) -> None:
        """Note that the watch stands."""
        with self._lock:
            self._came_up, self._down_since, self._reason = True, None, ""

    def falls(self, reason: str = "") -> None:
        """Note that the watch does not stand; without ``reason`` the last one counts."""
        with self._lock:
            if self._down_since is None:
                self._down_since = self._elapsed()
            self._reason = reason or self._reason

    @property
    def is_up(self) -> bool:
        """Whether it stands, or was interrupted for no longer than the grace."""
        return self.trouble is None

    @property
    def trouble(self) -> str | None:
        """Why what it reports is not known; ``None`` as long as it is up."""
        with self._lock:
            if self._down_since is None:
                return None
            seconds = self._elapsed() - self._down_since
            if self._came_up and seconds < self._grace:
                return None
            why = f": {self._reason}" if self._reason else ""
            if self._came_up:
                return f"{self._subject} has been down for {seconds:.0f} s{why}"
            return f"{self._subject} has not come up{why or ' yet'}"

    @property
    def never_came_up(self) -> str | None:
        """:attr:`trouble` of a watch that has never stood."""
        return None if self._came_up else self.trouble
