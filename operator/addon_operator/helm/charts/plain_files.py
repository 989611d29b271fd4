"""Reads files that somebody else wrote: only regular ones, and only as much as such a file may hold.

A pipe would be waited for without end, and a device has no end.
"""

import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Iterator
from typing import Final

from addon_operator.helm import messages

MAX_FILE: Final = 5 * 1024 * 1024
"""How many bytes a file may have: Helm takes no larger one in a chart either."""
MAX_LINKED: Final = 20_000
"""How many files may lie behind the links of a directory."""
_MIB: Final = 1024 * 1024


def read_bytes(path: pathlib.Path | str, most: int = MAX_FILE) -> bytes:
    """Return the content of a file, links followed.

    Raises :class:`OSError` with the file's name and a phrase that says why: also for what is not a file, and
    for one with more than ``most`` bytes.
    """
    size = _size(path)
    if size <= most:
        content = _read(path, size, most)
        if len(content) <= most:
            return content
    raise OSError(errno.EFBIG, f"it has more than {most / _MIB:g} MiB", str(path))


def read_head(path: pathlib.Path, most: int) -> bytes:
    """Return the first bytes of a file, at most so many; raises :class:`OSError` for what is not a file."""
    return _read(path, min(_size(path), most), most)[:most]


def _size(path: pathlib.Path | str) -> int:
    status = os.stat(path)  # noqa: PTH116 - of many files, a Path for each takes long
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory, and not a file", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return status.st_size


def _read(path: pathlib.Path | str, expected: int, most: int) -> bytes:
    """Return the content, and of one with more than ``most`` bytes so much that this is seen."""
    # It may have become a pipe since, or longer.
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        content = os.read(opened, expected + 1)
        while 0 < len(content) <= most and (more := os.read(opened, _MIB)):
            content += more
    finally:
        os.close(opened)
    return content


def read_text(path: pathlib.Path, most: int = MAX_FILE, errors: str = "strict") -> str:
    """Return the text of a UTF-8 file, whose lines may end as on any system.

    Raises what :func:`read_bytes` raises, and :class:`UnicodeDecodeError`, as ``errors`` says.
    """
    text = read_bytes(path, most).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class TooMuchLinkedError(OSError):
    """Links lead to more than :data:`MAX_LINKED` files."""

    def __init__(self, path: str) -> None:
        problem = f"more than {MAX_LINKED} files lie behind links; put copies in the place of some links"
        super().__init__(errno.EMLINK, problem, path)


class Linked:
    """Counts what lies behind links, as often as ways lead to it: each level of links may double it."""

    def __init__(self) -> None:
        self._count = 0

    def take(self, path: str | pathlib.Path) -> None:
        """Count an entry behind a link; raises :class:`TooMuchLinkedError` for one too many."""
        self._count += 1
        if self._count > MAX_LINKED:
            raise TooMuchLinkedError(str(path))


def walk(directory: pathlib.Path) -> Iterator[tuple[pathlib.Path, list[str]]]:
    """Yield a directory and those below it, links followed, each with the names of what is in it and is none.

    Raises :class:`OSError` when links lead to too much; what cannot be read is passed over.
    """
    linked = Linked()
    pending = [(str(directory), directory.is_symlink())]
    while pending:
        path, is_linked = pending.pop()
        files = []
        for entry in _entries(path):
            if is_linked:
                linked.take(entry.path)
            if _is_directory(entry):
                pending.append((entry.path, is_linked or entry.is_symlink()))
            else:
                files.append(entry.name)
        yield pathlib.Path(path), files


def irregular(directory: pathlib.Path) -> str:
    """Say which file below a directory is a pipe, socket or device, or a link to one; empty if none is.

    Raises :class:`OSError` when links lead to too much.
    """
    for path, files in walk(directory):
        for name in files:
            with contextlib.suppress(OSError):
                if not stat.S_ISREG((path / name).stat().st_mode):
                    return f"{path / name} {messages.NOT_REGULAR}"
    return ""


def _entries(path: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
