"""The private directory through which one run of a hook exchanges files with the operator."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from typing import Final, Self

import orjson

from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject

MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""The largest file that a hook may give back."""
MAX_CONTEXT_BYTES: Final = 64 * 1024 * 1024
"""The largest file with contexts for a hook that answers the API server: some are written at a time."""
_PRIVATE_DIRECTORY: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_CHARS: Final = 60


class HookFileError(errors.AddonOperatorError):
    """A file of a run could not be written or read."""


class HookDirectory:
    """The files of one run, each known by the environment variable with its path."""

    def __init__(self, path: pathlib.Path, *, keep: bool) -> None:
        """``keep``: whether :meth:`remove` leaves it where it is."""
        self.path = path
        self._keep = keep
        self._files: dict[str, pathlib.Path] = {}

    @classmethod
    @contextlib.contextmanager
    def below(cls, tmp_dir: pathlib.Path, name: str, *, keep: bool) -> Iterator[Self]:
        """Make a directory that only this user can enter; it is removed at the end unless ``keep``.

        Raises :class:`HookFileError` when it cannot be made.
        """
        prefix = f"{_UNSAFE.sub('-', name)[:_NAME_CHARS]}-"
        try:
            tmp_dir.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            directory = cls(pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=tmp_dir)), keep=keep)
        except OSError as error:
            raise _unwritable(tmp_dir, error) from error
        try:
            yield directory
        finally:
            directory.remove()

    def write_json(self, variable: str, document: JsonObject) -> None:
        """Write a document that the hook reads; raises what :meth:`write` raises."""
        self.write(variable, (_json(document),))

    def write(self, variable: str, pieces: Iterable[bytes] = ()) -> None:
        """Make a file from pieces of its text; without any, for the hook to write to.

        Raises :class:`HookFileError` when the disk does not take it.
        """
        name, is_json, _ = variable.lower().partition("_path")
        path = self.path / (f"{name}.json" if is_json else name)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
            with open(descriptor, "wb") as file:  # noqa: PTH123 - pathlib opens no descriptors
                file.writelines(pieces)
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
        return {variable: str(path) for variable, path in self._files.items()}

    def read_output(self, variable: str) -> str:
        """Return what the hook wrote; empty if it removed the file.

        Raises :class:`HookFileError` when it is too large, no text, or no file any more.
        """
        path = self._files[variable]
        try:
            data = self._read(path, variable)
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

    def remove(self) -> None:
        """Remove it with all that the hook left there; that may be much."""
        if not self._keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def _read(self, path: pathlib.Path, variable: str) -> bytes:
        # A hook may have put a pipe or a device there: opening must not block, and reading might never end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - pathlib opens no descriptors
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise HookFileError(f"the file of {variable} is not a regular file any more; write into it")
            data = file.read(MAX_OUTPUT_BYTES + 1)
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


def _json(document: JsonObject) -> bytes:
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # Integers beyond 64 bits and lone surrogates are JSON, too.
        return json.dumps(document, separators=(",", ":")).encode()


def _unwritable(path: pathlib.Path, error: OSError) -> HookFileError:
    return HookFileError(
        f"cannot write the temporary files of a hook to {path}: {error.strerror}; "
        "make room there, or name another directory with ADDON_OPERATOR_TMP_DIR"
    )
