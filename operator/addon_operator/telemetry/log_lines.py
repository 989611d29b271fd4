"""How the fields of a record become a line: logfmt, JSON, or colors for a terminal."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from addon_operator.kernel import shown_texts

OWN_FIELDS: Final = ("time", "level", "msg")
"""Fields of every line, in the order in which they stand."""

_PLAIN_VALUE: Final = re.compile(r"[^\s\"=\\\x00-\x1f\x7f-\x9f]+")
_NOT_IN_KEY: Final = re.compile(r"[^A-Za-z0-9_.\-/]")
_CONTROL: Final = re.compile(f"[{re.escape(shown_texts.OBEYED)}]")


def renderers(type_: str) -> list[Processor]:
    """Return the last processors for a ``LOG_TYPE``; raises ``KeyError`` for one that is not there."""
    if type_ == "color":
        console = structlog.dev.ConsoleRenderer(
            colors=True,
            force_colors=True,
            sort_keys=False,
            event_key="msg",
            timestamp_key="time",
            pad_event_to=0,
            exception_formatter=structlog.dev.plain_traceback,
        )
        return [_without_controls, console, _encodable]
    written: Mapping[str, Processor] = {
        "text": _logfmt,
        "json": lambda _logger, _name, fields: _as_json(fields),
    }
    return [structlog.processors.format_exc_info, written[type_]]


def _as_json(value: object) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        return _as_json_slowly(value)


def _as_json_slowly(value: object) -> str:
    # Integers beyond 64 bits and lone surrogates are nothing for orjson; a hook may write both.
    try:
        return json.dumps(value, default=str, skipkeys=True)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(repr(value)[:1000])


def _logfmt(_: WrappedLogger, __: str, fields: EventDict) -> str:
    line = " ".join(f"{_NOT_IN_KEY.sub('_', str(key))}={_word(value)}" for key, value in fields.items())
    return _encodable(None, "", line)


def _word(value: Any) -> str:  # noqa: ANN401 - a field may be anything
    text = value if isinstance(value, str) else _as_json(value).removeprefix('"').removesuffix('"')
    if _PLAIN_VALUE.fullmatch(text) and not _CONTROL.search(text):
        return text
    return json.dumps(text, ensure_ascii=_CONTROL.search(text) is not None)


def _without_controls(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    """Escape what a hook's output could do to a terminal; lines and tabs stay."""

    def visible(text: str) -> str:
        return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)

    return {key: visible(value) if isinstance(value, str) else value for key, value in fields.items()}


def _encodable(_: WrappedLogger, __: str, line: Any) -> str:  # noqa: ANN401 - what the processor before gave
    return str(line).encode("utf-8", "backslashreplace").decode()
