"""Parameters that can be changed while the operator runs: the level of the log.

As in the Go operator, a change may be for a time only, and the level ``debug`` always is.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypedDict

import msgspec

from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.telemetry import logs

LOG_LEVEL: Final = "log.level"
DEBUG_SECONDS: Final = 30 * 60.0
"""How long the level ``debug`` holds if nobody says for how long."""
_DESCRIPTION: Final = (
    "Lowest level that is logged: debug (for 30m unless a duration is given), info, warn, error."
)
_ALIASES: Final = {"warning": "warn"}


class RuntimeConfigError(errors.ConfigurationError):
    """There is no such parameter, or it cannot have that value."""


class ParameterRow(TypedDict):
    """One parameter."""

    name: str
    value: str
    default: str
    """What the settings say, and what it will be again."""
    expiresIn: float | None
    """Seconds until it is the default again; ``None`` if it stays."""
    description: str


Schedule = Callable[[float, Callable[[], None]], asyncio.TimerHandle]
"""Calls a function after so many seconds, as ``call_later`` of an event loop."""


class _Expiry(msgspec.Struct):
    at: float
    timer: asyncio.TimerHandle


class RuntimeConfig:
    """Changes the level of the log, and changes it back in time."""

    def __init__(
        self,
        level: str,
        schedule: Schedule,
        *,
        clock: clocks.Clock,
        set_level: Callable[[str], None] = logs.set_level,
    ) -> None:
        """``level`` is that of the settings."""
        self._default = self._level = level
        self._schedule = schedule
        self._clock = clock
        self._set_level = set_level
        self._expiry: _Expiry | None = None

    def rows(self) -> list[ParameterRow]:
        """Return all parameters."""
        expires = None
        if self._expiry is not None:
            expires = round(max(0.0, self._expiry.at - self._clock.monotonic()), 3)
        return [
            {
                "name": LOG_LEVEL,
                "value": self._level,
                "default": self._default,
                "expiresIn": expires,
                "description": _DESCRIPTION,
            }
        ]

    def set(self, name: str, value: str, seconds: float | None = None) -> ParameterRow:
        """Change a parameter, for ``seconds`` or for good; what it is now.

        Raises :class:`RuntimeConfigError`.
        """
        level = _checked(name, value)
        if seconds is None and level == "debug" and self._default != "debug":
            seconds = DEBUG_SECONDS
        self._apply(level)
        if seconds is not None:
            self._expiry = _Expiry(
                self._clock.monotonic() + seconds, self._schedule(seconds, self._return_to_default)
            )
        return self.rows()[0]

    def _return_to_default(self) -> None:
        self._apply(self._default)

    def _apply(self, level: str) -> None:
        if self._expiry is not None:
            self._expiry.timer.cancel()
            self._expiry = None
        self._level = level
        self._set_level(level)


def _checked(name: str, value: str) -> str:
    if name != LOG_LEVEL:
        hint = names.did_you_mean(name, [LOG_LEVEL], f"there is {LOG_LEVEL!r}")
        raise RuntimeConfigError(f"there is no runtime parameter {name!r}; {hint}")
    level = value.strip().lower()
    level = _ALIASES.get(level, level)
    if level not in logs.LEVELS:
        raise RuntimeConfigError(
            f"{LOG_LEVEL}: {value!r} is not a level; give one of {', '.join(logs.LEVELS)}"
        )
    return level
