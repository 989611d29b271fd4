"""Warnings about things that are tried again and again: logged once, and once more when they are over."""

from typing import Any, Protocol


class Log(Protocol):
    """Takes sentences for the administrator: a seam, since loggers of structlog have no class in common."""

    def info(self, event: str, *args: Any, **kw: Any) -> Any:  # noqa: ANN401 - the signature of structlog
        """Log something good or expected."""
        ...

    def warning(self, event: str, *args: Any, **kw: Any) -> Any:  # noqa: ANN401 - the signature of structlog
        """Log something that should be looked at."""
        ...


class WarnOnce:
    """Warns of one thing that may fail for a long time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._said: str | None = None

    def warn(self, text: str) -> None:
        """Warn, unless that was the last thing that was said."""
        if text != self._said:
            self._said = text
            self._log.warning(text)

    def over(self, text: str) -> None:
        """Say that it works; only if there was a warning."""
        if self._said is not None:
            self._said = None
            self._log.info(text)
