"""Time as a dependency, so that tests need no sleep, and durations as Go writes them: ``1h30m``, ``250ms``.

Hook configurations and settings take durations over from the Go operator, so the grammar is that of Go's
``time.ParseDuration``. Inside the program a duration is a number of seconds.
"""

import datetime as dt
import decimal
import math
import re
import time
from typing import Final, Protocol

from addon_operator.kernel import errors


class Clock(Protocol):
    """Where the program gets its time from."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back; only differences mean anything."""
        ...

    def time(self) -> float:
        """Return the seconds since the epoch, UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back; only differences mean anything."""
        return time.monotonic()

    def time(self) -> float:
        """Return the seconds since the epoch, UTC."""
        return time.time()


def rfc3339(seconds: float) -> str:
    """Return a time since the epoch as the Kubernetes API writes it: ``2026-11-22T16:53:16Z``."""
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> float:
    """Return the seconds since the epoch of a time as :func:`rfc3339` writes it.

    Raises ``ValueError`` for what is not a time, has no time zone, or cannot be written again, as it is in
    no year from 1 to 9999 of UTC.
    """
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    seconds = moment.timestamp()
    rfc3339(seconds)
    return seconds


def boottime() -> float:
    """Return the seconds since the machine was started, those in which it was suspended included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_UNITS: Final = {
    "ns": decimal.Decimal("1e-9"),
    "us": decimal.Decimal("1e-6"),
    "µs": decimal.Decimal("1e-6"),
    "μs": decimal.Decimal("1e-6"),
    "ms": decimal.Decimal("1e-3"),
    "s": decimal.Decimal(1),
    "m": decimal.Decimal(60),
    "h": decimal.Decimal(3600),
}
_PART: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>[^0-9.\s]*)")
# Go keeps a duration in 64 bits of nanoseconds.
_MAX_SECONDS: Final = decimal.Decimal(2**63 - 1).scaleb(-9)
_MAX_LENGTH: Final = 100
_HELP: Final = "write numbers with units ns, us, ms, s, m or h, such as 30s, 1h30m or 0"


class DurationError(errors.ConfigurationError):
    """A text is not a duration."""


def parse_duration(text: str) -> float:
    """Return the seconds that a Go duration such as ``1h30m`` or ``-1.5s`` stands for.

    Raises :class:`DurationError` when the text is not a duration, lacks a unit or is longer than Go can hold.
    """
    negative, rest = text.startswith("-"), text[1:] if text[:1] in ("-", "+") else text
    if len(text) > _MAX_LENGTH:
        raise DurationError(f"{text[:20]!r}… is too long for a duration; {_HELP}")
    seconds = decimal.Decimal(0) if rest == "0" else _sum_of_parts(text, rest)
    if seconds > _MAX_SECONDS:
        raise DurationError(f"{text!r} is longer than the longest duration, 292 years")
    return float(-seconds if negative else seconds)


def _sum_of_parts(text: str, rest: str) -> decimal.Decimal:
    total, position = decimal.Decimal(0), 0
    while match := _PART.match(rest, position):
        total += decimal.Decimal(match["number"]) * _unit(text, match["unit"])
        position = match.end()
    if position == 0 or position != len(rest):
        raise DurationError(f"invalid duration {text!r}: {_HELP}")
    return total


def _unit(text: str, unit: str) -> decimal.Decimal:
    if not unit:
        raise DurationError(f"invalid duration {text!r}: add a unit; {_HELP}")
    if unit not in _UNITS:
        raise DurationError(f"invalid duration {text!r}: {unit!r} is not a unit; {_HELP}")
    return _UNITS[unit]


def duration_text(seconds: float) -> str:
    """Return the shortest Go duration for finite seconds: 1200 → ``20m``, 5400.5 → ``1h30m0.5s``."""
    if not math.isfinite(seconds):
        raise ValueError(f"{seconds} is not a duration")
    nanoseconds = round(abs(seconds) * 1e9)
    if nanoseconds == 0:
        return "0s"
    sign = "-" if seconds < 0 else ""
    if nanoseconds < 10**9:
        return sign + _below_a_second(nanoseconds)
    return sign + _hours_to_seconds(nanoseconds)


def _below_a_second(nanoseconds: int) -> str:
    for size, unit in ((10**6, "ms"), (10**3, "us")):
        if nanoseconds >= size:
            return _decimal(nanoseconds, size) + unit
    return f"{nanoseconds}ns"


def _hours_to_seconds(nanoseconds: int) -> str:
    hours, rest = divmod(nanoseconds, 3600 * 10**9)
    minutes, rest = divmod(rest, 60 * 10**9)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes or (hours and rest) else ""]
    return "".join(parts) + (_decimal(rest, 10**9) + "s" if rest else "")


def _decimal(nanoseconds: int, size: int) -> str:
    whole, rest = divmod(nanoseconds, size)
    digits = len(str(size)) - 1
    fraction = f"{rest:0{digits}d}".rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)
