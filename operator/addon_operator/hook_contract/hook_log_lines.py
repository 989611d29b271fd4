"""Lines that a hook writes, as log records."""

import json
from collections.abc import Collection
from typing import Final

import msgspec

from addon_operator.kernel.json_types import JsonObject, JsonValue

PREFIX: Final = "hook_"
"""Stands before a hook's own field that would replace one of the operator's."""

_LEVELS: Final = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "notice": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "err": "error",
    "fatal": "critical",
    "panic": "critical",
    "critical": "critical",
}
_MESSAGE_KEYS: Final = ("msg", "message")
_LEVEL_KEY: Final = "level"
_TIME_KEYS: Final = frozenset({"time", "ts", "timestamp"})
# What the logging of Python and structlog keep for themselves.
_RESERVED: Final = frozenset(
    {
        *("event", "level", "logger", "timestamp", "exc_info", "stack_info", "stacklevel", "extra"),
        *("self", "method_name"),
    }
)
_DEFAULT_MESSAGE: Final = "hook output"


class LogLine(msgspec.Struct, frozen=True):
    """One line of a hook's output."""

    message: str
    level: str = "info"
    """Name of a logger's method."""
    fields: JsonObject = {}
    """The hook's own fields."""


def structured(line: str, taken: Collection[str]) -> LogLine:
    """Turn a line that is a JSON object into a record of its own level, message and fields; keep any other.

    Fields whose names are ``taken`` get the prefix ``hook_``. The hook's own time is dropped: the record has
    the operator's.
    """
    fields = _object(line)
    if fields is None:
        return LogLine(line)
    level = _LEVELS.get(str(fields.pop(_LEVEL_KEY, "info")).lower(), "info")
    message = _pop_message(fields)
    kept = {_free(name, taken): value for name, value in fields.items() if name not in _TIME_KEYS}
    return LogLine(message, level, kept)


def message(line: str) -> str:
    """Return what a line says: of a JSON object its error or message, else the line."""
    fields = _object(line) or {}
    found = (fields.get(key) for key in ("error", *_MESSAGE_KEYS))
    return next((text for text in found if isinstance(text, str) and text), line)


def _object(line: str) -> JsonObject | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        value: JsonValue = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pop_message(fields: JsonObject) -> str:
    for key in _MESSAGE_KEYS:
        if isinstance(message := fields.get(key), str):
            del fields[key]
            return message
    return _DEFAULT_MESSAGE


def _free(name: str, taken: Collection[str]) -> str:
    return PREFIX + name if name in taken or name in _RESERVED or name.startswith("_") else name
