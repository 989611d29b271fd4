"""The private directory through which one run of a hook exchanges files with the operator."""

import contextlib
import math
import os
import pathlib
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from typing import Final, Self

from addon_operator.kernel import errors
from addon_operator.process import workspaces

MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""The largest file that a hook may give back."""
MAX_CONTEXT_BYTES: Final = 64 * 1024 * 1024
"""The largest file with contexts for a hook that answers the API server: some are written at a time."""
_PRIVATE_DIRECTORY: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_BUFFER_BYTES: Final = 64 * 1024
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_CHARS: Final = 60


class HookFileError(errors.AddonOperatorError):
    """A file of a run could not be written or read."""


class HookDirectory:
    """The files of one run, each known by the environment variable with its path.

    All methods but :meth:`environment` wait for the disk: they are for threads. As a context manager, it
    makes the directory and removes it.
    """

    def __init__(self, parent: pathlib.Path, name: str, *, keep: bool = False) -> None:
        """``name`` is for people who look into ``parent``; ``keep``: :meth:`remove` leaves it there."""
        self.parent = parent
        """Where it is made."""
        self._prefix = f"{_UNSAFE.sub('-', name)[:_NAME_CHARS]}-"
        self._keep = keep
        self._path = ""
        self._files: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.make()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def exists(self) -> bool:
        """Whether it was made and is not removed."""
        return bool(self._path)

    def make(self) -> None:
        """Make a directory that only this user can enter.

        Raises :class:`HookFileError` when it cannot be made.
        """
        try:
            try:
                self._path = tempfile.mkdtemp(prefix=self._prefix, dir=self.parent)
            except FileNotFoundError:
                self.parent.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
                self._path = tempfile.mkdtemp(prefix=self._prefix, dir=self.parent)
        except OSError as error:
            raise _unwritable(self.parent, error) from error

    def write(self, variable: str, pieces: Iterable[bytes] = ()) -> None:
        """Make a file from pieces of its text; without any, for the hook to write to.

        Raises :class:`HookFileError` when the disk does not take it.
        """
        name, is_json, _ = variable.lower().partition("_path")
        path = f"{self._path}/{name}.json" if is_json else f"{self._path}/{name}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
            try:
                for block in _blocks(pieces):
                    _write_all(descriptor, block)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unwritable(path, error) from error
        self._files[variable] = path

    def write_bounded(self, variable: str, pieces: Iterable[bytes]) -> None:
        """Write contexts of at most :data:`MAX_CONTEXT_BYTES`; raises :class:`HookFileError` for more."""
        self.write(variable, _bounded(pieces))

    def call(self, variable: str, other: str) -> None:
        """Let another variable hold the path of the same file."""
        self._files[other] = self._files[variable]

    def environment(self) -> dict[str, str]:
        """Return the variables with the paths."""
        return dict(self._files)

    def read_output(self, variable: str) -> str:
        """Return what the hook wrote; empty if it removed the file.

        Raises :class:`HookFileError` when it is too large, no text, or no file any more.
        """
        path = self._files[variable]
        try:
            if _is_empty(path):
                return ""
            data = _read(path, variable)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise HookFileError(f"cannot read what was written to {variable}: {error.strerror}") from error
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise HookFileError(
                f"what was written to {variable} is not UTF-8 text (byte {error.start}); write JSON"
            ) from error

    def sizes(self) -> dict[str, float]:
        """Return how many bytes each file has, by variable; infinitely many if it is not a file any more."""
        return {variable: _size(path) for variable, path in self._files.items()}

    def remove(self) -> None:
        """Remove it with all that the hook left there; that may be much."""
        self.remove_own()
        path, self._path = self._path, ""
        if path and not self._keep:
            workspaces.remove_tree(pathlib.Path(path))

    def remove_own(self) -> None:
        """Remove it if nothing is in it but its own files; else it is still there."""
        if self._keep or not self._path:
            return
        with contextlib.suppress(OSError):
            for file in dict.fromkeys(self._files.values()):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(file)  # noqa: PTH108 - paths are texts here, as this is done for every answer
            os.rmdir(self._path)  # noqa: PTH106 - see above
            self._path = ""


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    waiting, size = list[bytes](), 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _BUFFER_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _write_all(descriptor: int, block: bytes) -> None:
    # A file object would ask the system three more things for each of these small files.
    while block:
        block = block[os.write(descriptor, block) :]


def _is_empty(path: str) -> bool:
    found = os.lstat(path)
    return found.st_size == 0 and stat.S_ISREG(found.st_mode)


def _size(path: str) -> float:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else math.inf


def _read(path: str, variable: str) -> bytearray:
    # A hook may have put a pipe or a device there: opening must not block, and reading might never end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise HookFileError(f"the file of {variable} is not a regular file any more; write into it")
        data = bytearray()
        while len(data) <= MAX_OUTPUT_BYTES and (more := os.read(descriptor, _BUFFER_BYTES)):
            data += more
    finally:
        os.close(descriptor)
    if len(data) > MAX_OUTPUT_BYTES:
        limit = MAX_OUTPUT_BYTES // (1024 * 1024)
        raise HookFileError(f"more than {limit} MiB were written to {variable}; write less in one run")
    return data


def _bounded(pieces: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_CONTEXT_BYTES:
            raise HookFileError(
                f"its binding context has more than {MAX_CONTEXT_BYTES >> 20} MiB, and the API server waits "
                "for it; let snapshots select fewer objects, or keep less of each: a jqFilter, and "
                "keepFullObjectsInMemory: false"
            )
        yield piece


def _unwritable(path: str | pathlib.Path, error: OSError) -> HookFileError:
    return HookFileError(
        f"cannot write the temporary files of a hook to {path}: {error.strerror}; "
        "make room there, or name another directory with ADDON_OPERATOR_TMP_DIR"
    )
