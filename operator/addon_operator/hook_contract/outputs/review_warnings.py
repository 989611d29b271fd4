"""Warnings of a hook's answer, as the API server passes them on to who asked.

It shows each text once and drops one with control characters, such as a line break. When the texts of an
answer have more than 4096 characters together, it cuts each after 256, and drops what comes after 4096.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from addon_operator.kernel import shown_texts

TOTAL_CHARS: Final = 4096
"""Of all warnings of one request."""
CUT_CHARS: Final = 256
"""Of each, if all together are too long."""
_ROOM: Final = 40
"""For the text that says how many are left out."""
_ELLIPSIS: Final = "…"


def shown(texts: Iterable[str]) -> tuple[str, ...]:
    """Return what of these the API server shows, each on one line; the last says how many are left out."""
    lines = [*dict.fromkeys(filter(None, map(shown_texts.shown_line, texts)))]
    if sum(map(len, lines)) <= TOTAL_CHARS:
        return tuple(lines)
    fitting = [*_fitting(map(_cut, lines))]
    left_out = len(lines) - len(fitting)
    return (*fitting, f"{left_out} more warnings are left out") if left_out else tuple(fitting)


def _fitting(lines: Iterable[str]) -> Iterator[str]:
    room = TOTAL_CHARS - _ROOM
    for line in lines:
        room -= len(line)
        if room < 0:
            return
        yield line


def _cut(line: str) -> str:
    return line if len(line) <= CUT_CHARS else line[: CUT_CHARS - len(_ELLIPSIS)] + _ELLIPSIS
