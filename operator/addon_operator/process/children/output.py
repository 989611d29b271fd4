"""What is done with the bytes a child writes: cut into lines, kept up to a limit, or only the end kept.

Everything here holds a bounded amount of memory, however much a child writes.
"""

import codecs
import collections
from collections.abc import Callable
from typing import Final, Protocol

MAX_LINE_CHARS: Final = 10_000
"""Characters of a line that are passed on; the rest of the line is dropped."""
CUT_MARK: Final = " … (line cut)"
"""What stands at the end of a line that was cut."""
TAIL_LINES: Final = 20
TAIL_CHARS: Final = 4_000

LineHandler = Callable[[str], None]


class Sink(Protocol):
    """Takes the bytes of one stream as they come."""

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream; pieces end anywhere, even inside a character."""
        ...

    def close(self) -> None:
        """The stream has ended."""
        ...


class Lines:
    """Cuts a stream into lines of text, without their ends, and hands each to ``handler``.

    Bytes that are no UTF-8 become U+FFFD. A last line without an end is a line, too.
    """

    def __init__(self, handler: LineHandler, max_chars: int = MAX_LINE_CHARS) -> None:
        self._handler = handler
        self._max_chars = max_chars
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun = ""
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """Hand on every line that ``data`` completes."""
        *ends, rest = self._decoder.decode(data).split("\n")
        for end in ends:
            self._keep(end)
            self._emit()
        self._keep(rest)

    def close(self) -> None:
        """Hand on a last line that has no end."""
        self._keep(self._decoder.decode(b"", final=True))
        if self._begun:
            self._emit()

    def _keep(self, text: str) -> None:
        room = self._max_chars - len(self._begun)
        self._is_cut = self._is_cut or len(text) > room
        self._begun += text[:room]

    def _emit(self) -> None:
        line = self._begun + CUT_MARK if self._is_cut else self._begun.removesuffix("\r")
        self._begun, self._is_cut = "", False
        self._handler(line)


class Tail:
    """Keeps the last lines of a stream; its :meth:`add` is a line handler."""

    def __init__(self, lines: int = TAIL_LINES, chars: int = TAIL_CHARS) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=lines)
        self._chars = chars

    def add(self, line: str) -> None:
        """Remember a line, and forget the oldest one if there are too many; blank ones are not kept."""
        if line.strip():
            self._lines.append(line[-self._chars :])

    @property
    def text(self) -> str:
        """The last lines, joined by line ends, at most ``chars`` characters."""
        return "\n".join(self._lines)[-self._chars :]


class Capture:
    """Keeps the first ``limit`` bytes of a stream and knows whether there were more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.is_cut = False
        """Whether the stream was longer than the limit."""

    def feed(self, data: bytes) -> None:
        """Keep what fits below the limit."""
        room = self._limit - len(self._kept)
        self.is_cut = self.is_cut or len(data) > room
        self._kept += data[:room]

    def close(self) -> None:
        """Nothing is left to do."""

    @property
    def data(self) -> bytes:
        """What was kept."""
        return bytes(self._kept)
