"""Time as a dependency, so that tests need no sleep."""

import datetime as dt
import time
from typing import Protocol


class Clock(Protocol):
    """Where the program gets its time from."""

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back; only differences mean anything."""
        ...

    def time(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back; only differences mean anything."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()


def rfc3339(seconds: float) -> str:
    """A time since the epoch as the Kubernetes API writes it: ``2026-11-22T16:53:16Z``."""
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def boottime() -> float:
    """Seconds since the machine was started, those in which it was suspended included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
