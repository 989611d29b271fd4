"""What hooks print: records of the log, and the last lines of each, for people who look at a module."""

import collections
import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
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
LOGGED_FIRST: Final = 400
"""How many lines of a run are logged as they come, from both of its outputs."""
LOGGED_LAST: Final = 100
"""How many of the further ones are logged when it has ended."""
LOGGED_CHARS: Final = 256 * 1024
"""How many characters the first lines of a run have at most, and how many the last ones."""

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

    @contextlib.contextmanager
    def run(self, fields: Mapping[str, str], *, is_json: bool = False) -> Iterator["RunLog"]:
        """Give what logs the lines of one run with these fields, and what was held back when it has ended.

        ``is_json``: whether lines that are JSON are records of their own in any case.
        """
        log = RunLog(self._logger, fields, merge_json=self._merge_json or is_json)
        try:
            yield log
        finally:
            log.end()


class RunLog:
    """Logs the first lines of one run as they come, and of the others the last ones when it has ended.

    Whatever a hook writes, a request after the other, it cannot fill the log.
    """

    def __init__(
        self,
        logger: structlog.typing.FilteringBoundLogger,
        fields: Mapping[str, str],
        *,
        merge_json: bool,
    ) -> None:
        self._fields = own = {**fields}
        self._merge_json = merge_json
        # Most runs write nothing. Without self, which would be held in a circle.
        self._bound = functools.cache(lambda stream: logger.bind(**own, **_output(stream)))
        self._first_lines, self._first_chars = LOGGED_FIRST, LOGGED_CHARS
        self._is_full = False
        self._held: collections.deque[tuple[str, str]] = collections.deque()
        self._held_chars = 0
        self._left_out = 0

    def handler(self, stream: str) -> Callable[[str], None]:
        """Return what takes the lines of ``stream``: ``stdout`` or ``stderr``."""
        return functools.partial(self._take, stream)

    def end(self) -> None:
        """Log how many lines are left out, and the last ones."""
        if self._left_out:
            lines = "line" if self._left_out == 1 else "lines"
            self._bound("").info(
                f"and {self._left_out} more {lines} of the hook, left out; the last ones follow"
            )
        for stream, text in self._held:
            self._write(stream, text)
        self._held.clear()

    def _take(self, stream: str, text: str) -> None:
        if not text.strip():
            return
        self._first_lines -= 1
        self._first_chars -= len(text)
        if not self._is_full and self._first_lines >= 0 and self._first_chars >= 0:
            self._write(stream, text)
            return
        if not self._is_full:
            # From then on all of them, or a short line would overtake a long one.
            self._is_full = True
            self._bound("").info(
                "the hook writes much: of its further lines, the operator logs only the last "
                f"{LOGGED_LAST}, when it has ended"
            )
        self._held.append((stream, text))
        self._held_chars += len(text)
        while len(self._held) > LOGGED_LAST or self._held_chars > LOGGED_CHARS:
            self._held_chars -= len(self._held.popleft()[1])
            self._left_out += 1

    def _write(self, stream: str, text: str) -> None:
        logger = self._bound(stream)
        if self._merge_json:
            line = hook_log_lines.structured(text, {**self._fields, **_output(stream)})
            getattr(logger, line.level)(line.message, **line.fields)
        else:
            logger.info(text)


def _output(stream: str) -> dict[str, str]:
    return {OUTPUT_FIELD: stream} if stream else {}


def both(keep: Callable[[str], None], write: Callable[[str], None]) -> Callable[[str], None]:
    """Return what keeps a line, and writes it to the log."""

    def take(line: str) -> None:
        keep(line)
        write(line)

    return take
