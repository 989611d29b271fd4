"""What hooks print: records of the log, and the last lines of each, for people who look at a module."""

import collections
import functools
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from addon_operator.hook_contract import hook_log_lines

OUTPUT_FIELD: Final = "output"
"""Field of log records that says to which stream a hook wrote."""
LINES: Final = 20
"""How many lines are kept of a hook, from both of its outputs."""
LINE_CHARS: Final = 500
HOOKS: Final = 2000
"""How many hooks have their lines kept; the ones that ran longest ago are forgotten."""

Key = tuple[str, str]
"""A module, empty for the global hooks, and the name of one of its hooks."""


class LastOutputs:
    """Bounded in memory, whatever hooks write."""

    def __init__(self) -> None:
        self._lines: collections.OrderedDict[Key, collections.deque[str]] = collections.OrderedDict()

    def begin(self, module: str, hook: str) -> Callable[[str], None]:
        """Forget what the hook wrote before, and return what takes the lines of its new run."""
        lines: collections.deque[str] = collections.deque(maxlen=LINES)
        self._lines[module, hook] = lines
        self._lines.move_to_end((module, hook))
        if len(self._lines) > HOOKS:
            self._lines.popitem(last=False)
        return lambda line: lines.append(line[:LINE_CHARS])

    def of(self, module: str) -> dict[str, list[str]]:
        """Return the last lines of the hooks of a module that ran, by hook; the global ones for ``""``."""
        return {hook: list(lines) for (owner, hook), lines in self._lines.items() if owner == module}


class HookLog:
    """Writes each line of a hook's output as a record; JSON lines as records of their own if asked."""

    def __init__(self, logger: structlog.typing.FilteringBoundLogger, *, merge_json: bool = False) -> None:
        self._logger = logger
        self._merge_json = merge_json

    def handler(
        self, fields: Mapping[str, str], stream: str, *, is_json: bool = False
    ) -> Callable[[str], None]:
        """Return what takes the lines of ``stream`` (``stdout`` or ``stderr``) of a run with these fields.

        ``is_json``: whether lines that are JSON are records of their own in any case.
        """
        own = {**fields, OUTPUT_FIELD: stream}
        # Most runs write nothing.
        bound = functools.cache(lambda: self._logger.bind(**own))

        def write(text: str) -> None:
            if not text.strip():
                return
            logger = bound()
            if self._merge_json or is_json:
                line = hook_log_lines.structured(text, own)
                getattr(logger, line.level)(line.message, **line.fields)
            else:
                logger.info(text)

        return write


def both(keep: Callable[[str], None], write: Callable[[str], None]) -> Callable[[str], None]:
    """Return what keeps a line, and writes it to the log."""

    def take(line: str) -> None:
        keep(line)
        write(line)

    return take
