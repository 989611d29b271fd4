"""The last lines that each hook wrote, for people who look at a module."""

import collections
from collections.abc import Callable
from typing import Final

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


def both(keep: Callable[[str], None], write: Callable[[str], None]) -> Callable[[str], None]:
    """Return what keeps a line, and writes it to the log."""

    def take(line: str) -> None:
        keep(line)
        write(line)

    return take
