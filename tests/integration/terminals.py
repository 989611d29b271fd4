"""A terminal for tests, with a program in it, as somebody who looks at it sees it."""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from tests.integration import operator_process

_HOME: Final = b"\x1b[H"
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_LEFT: Final = b"\x1b[?1049l"
"""Gives the screen back that was there before."""


class Terminal:
    """Runs a program on a terminal of its own; Ctrl-C comes from its keyboard."""

    def __init__(
        self, argv: Sequence[str], cwd: pathlib.Path, environ: Mapping[str, str], rows: int = 30
    ) -> None:
        self._argv = argv
        self._cwd = cwd
        # Test runners with side processes may give these on, which count more than the terminal.
        given = {name: value for name, value in environ.items() if name not in ("LINES", "COLUMNS")}
        self._environ = {**given, "TERM": "xterm-256color"}
        self._rows = rows
        self._process: subprocess.Popen[bytes]
        self._side: int
        self.written = b""
        """All that was written to it."""

    def __enter__(self) -> Self:
        self._side, inside = pty.openpty()
        self.resize(self._rows, 100)
        self._process = subprocess.Popen(
            # Without a terminal of its own to control, a program gets no signal from Ctrl-C.
            ["setsid", "--ctty", *self._argv],
            cwd=self._cwd,
            env=self._environ,
            stdin=inside,
            stdout=inside,
            stderr=inside,
        )
        os.close(inside)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.type("\x03")
            self.ended()
        os.close(self._side)

    def _read(self) -> None:
        try:
            while some := os.read(self._side, 65536):
                self.written += some
        except OSError:
            return  # The last one who had it is gone.

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._side, keys.encode())

    def picture(self) -> list[str]:
        """The lines of the last picture that was drawn."""
        return _plain(self.written.rpartition(_HOME)[2]).split("\n")

    def wait_shown(self, *texts: str) -> None:
        def shown() -> bool:
            assert self._process.poll() is None, _plain(self.written)
            folded = " ".join(line.strip("│ ") for line in self.picture())
            return all(text in folded for text in texts)

        operator_process.wait_until(
            shown, f"{texts} on the screen", explain=lambda: "\n".join(self.picture())
        )

    def wait_filled(self, rows: int, columns: int) -> list[str]:
        """Wait for a picture that fills the terminal, as one may be read while it is drawn; its lines."""

        def filled() -> list[str] | None:
            lines = self.picture()
            return lines if (len(lines), max(map(len, lines))) == (rows, columns) else None

        return operator_process.wait_until(filled, f"a picture of {rows} rows and {columns} columns")

    def ended(self) -> int:
        """Wait until the program has ended and all is read; its exit code."""
        code = self._process.wait(180)
        self._reading.join(10)
        return code

    def afterwards(self) -> str:
        """What was written when the screen was given back."""
        return _plain(self.written.rpartition(_LEFT)[2]).strip()


def _plain(written: bytes) -> str:
    return _ESCAPES.sub("", written.decode(errors="replace"))
