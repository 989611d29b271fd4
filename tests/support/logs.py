"""A log that remembers its lines."""

import logging

import structlog
from typing_extensions import override

from addon_operator.aio import warn_once


class Lines(warn_once.Log):
    """Takes the place of a structlog logger where only lines are written."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    @override
    def info(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(("info", event))

    @override
    def warning(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(("warning", event))

    def error(self, event: str, *args: object, **kw: object) -> None:
        self.lines.append(("error", event))

    @property
    def warnings(self) -> list[str]:
        return [text for level, text in self.lines if level == "warning"]


class Records(list[structlog.typing.EventDict]):
    """What a logger of structlog wrote: the fields of each record, with ``event`` and ``level``."""

    @property
    def logger(self) -> structlog.typing.FilteringBoundLogger:
        """One that writes here, from the level ``info`` on."""
        logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            None,
            processors=[structlog.processors.add_log_level, self._keep],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        )
        return logger

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Level and text of each."""
        return [(record["level"], record["event"]) for record in self]

    def _keep(
        self, _logger: object, _method: str, record: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        self.append(record)
        raise structlog.DropEvent
