"""Warnings of things that are tried again and again: told once, and once when they are over."""

from typing import Any, Protocol


class Log(Protocol):
    """Where sentences for the administrator go; loggers of structlog are such."""

    def info(self, event: str, *args: Any, **kw: Any) -> Any:  # noqa: ANN401 - the signature of structlog
        """Something good or expected."""
        ...

    def warning(self, event: str, *args: Any, **kw: Any) -> Any:  # noqa: ANN401 - the signature of structlog
        """Something that should be looked at."""
        ...


class Trouble:
    """One thing that may fail for a long time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._told: str | None = None

    def report(self, text: str) -> None:
        """Warn, unless that was the last thing that was said."""
        if text != self._told:
            self._told = text
            self._log.warning(text)

    def over(self, text: str) -> None:
        """It works; said only if there was trouble."""
        if self._told is not None:
            self._told = None
            self._log.info(text)
