"""Logs as text, json or color, one line for each record.

Our own records (structlog) and those of Kopf, aiohttp and others (standard library) take the same path.
Fields may have any name: they live beside the record, not in its attributes, so that ``module`` or ``args``
of a hook's log line clash with nothing. A field called like one of the line's own (``time``, ``level``,
``msg``) gets an underscore at its end.
"""

import logging
import sys
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from addon_operator.telemetry import log_lines

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

_LEVEL_NAMES: Final = {"warning": "warn", "critical": "fatal", "exception": "error"}
# Attributes with which Kopf steers its own handlers.
_KOPF_ATTRIBUTES: Final = frozenset({"k8s_skip", "k8s_ref", "settings"})


def configure(level: str, type_: str, *, no_time: bool = False, stream: TextIO | None = None) -> None:
    """Send all logs of the process to ``stream`` (the error output) in this form.

    Levels and types are those of ``LOG_LEVEL`` and ``LOG_TYPE``. May be called again; the last call holds,
    for loggers that were made before as well.
    """
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            _spare_own_fields,
            _add_level,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(type_, no_time=no_time))
    logging.getLogger().handlers = [handler]
    logging.captureWarnings(capture=True)
    set_level(level)


def set_level(level: str) -> None:
    """Change the level of all logs while the program runs."""
    number = LEVELS[level]
    logging.getLogger().setLevel(number)
    # What the event loop has to say about itself at level debug helps nobody.
    logging.getLogger("asyncio").setLevel(max(number, logging.INFO))
    quiet = number > logging.DEBUG
    logging.getLogger("kopf").setLevel(logging.WARNING if quiet else number)
    # Each try of a request that fails, which what watches Kopf and our own client report in our words.
    logging.getLogger("kopf._cogs.clients.api").setLevel(logging.CRITICAL if quiet else number)
    # It warns that it does not handle signals in a thread, which is what is wanted.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


def _formatter(type_: str, *, no_time: bool) -> logging.Formatter:
    time: list[Processor] = [structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_take_attributes, _spare_own_fields, _add_level],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *([] if no_time else time),
            _own_fields_first,
            *log_lines.renderers(type_),
        ],
    )


def _spare_own_fields(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    for name in log_lines.OWN_FIELDS:
        if name in fields:
            fields[name + "_"] = fields.pop(name)
    return fields


def _add_level(_: WrappedLogger, method: str, fields: EventDict) -> EventDict:
    fields["level"] = _LEVEL_NAMES.get(method, method)
    return fields


def _take_attributes(logger: WrappedLogger, method: str, fields: EventDict) -> EventDict:
    """Take what a record of the standard library was given by ``extra``, and the object Kopf speaks of."""
    record: logging.LogRecord = fields["_record"]
    taken: dict[str, object] = {}
    structlog.stdlib.ExtraAdder()(logger, method, extras := {"_record": record})
    taken.update((name, value) for name, value in extras.items() if not name.startswith("_"))
    reference = getattr(record, "k8s_ref", None)
    if isinstance(reference, dict):
        place = [str(reference[key]) for key in ("namespace", "name") if reference.get(key)]
        taken |= {"kind": reference.get("kind"), "object": "/".join(place)}
    fields["logger"] = record.name
    for name, value in taken.items():
        if name not in _KOPF_ATTRIBUTES:
            fields.setdefault(name, value)
    return fields


def _own_fields_first(_: WrappedLogger, __: str, fields: EventDict) -> EventDict:
    fields["msg"] = fields.pop("event", "")
    own = {name: fields.pop(name) for name in log_lines.OWN_FIELDS if name in fields}
    return own | dict(fields)
