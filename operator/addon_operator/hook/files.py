"""The files through which a hook and the operator talk."""

from __future__ import annotations

import json
import os
import stat
import sys

from addon_operator.hook import failures

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

_STDOUT: Final = "/dev/stdout"
_DEVICES: Final = ("/dev/", "/proc/")
_MEMORY: Final = "/dev/shm/"  # noqa: S108 - a place of files like any other, which TMP_DIR may name


def read_json(variable: str, environ: Mapping[str, str]) -> Any:  # noqa: ANN401 - the caller knows the shape
    """Return what the file that ``variable`` names holds.

    Raises :class:`.HookError` when there is none, or it cannot be read.
    """
    path = _path(variable, environ)
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to import
            return json.load(file)
    except OSError as error:
        raise failures.HookError(f"{variable}: {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise failures.HookError(f"{variable}: {path} is not JSON: {error}") from None


class _Output:
    """A text on its way into a file."""

    __slots__ = ("path", "temporary", "text")

    def __init__(self, path: str, text: str, temporary: str) -> None:
        self.path = path
        self.text = text
        self.temporary = temporary
        """Where it waits; empty for a pipe or ``/dev/stdout``, with which somebody tries the hook."""


def write_texts(texts: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Write texts to the files of variables, below what is there: whole, or not at all.

    No file is touched before all texts are on the disk. Empty texts are not written.
    Raises :class:`.HookError` when that cannot be done.
    """
    outputs = [_output(_path(variable, environ), text) for variable, text in texts.items() if text]
    try:
        for output in outputs:
            _stage(output)
        for output in outputs:
            _finish(output)
    except OSError as error:
        raise failures.HookError(f"{error.filename} cannot be written: {error.strerror}") from None
    finally:
        for output in outputs:
            if output.temporary and os.path.exists(output.temporary):  # noqa: PTH110 - as above
                os.unlink(output.temporary)  # noqa: PTH108 - as above


def _path(variable: str, environ: Mapping[str, str]) -> str:
    path = environ.get(variable)
    if not path:
        raise failures.HookError(
            f"{variable} is not set; the operator sets it when it starts a hook, and so must you to try one"
        )
    return path


def _output(path: str, text: str) -> _Output:
    target = os.path.realpath(path)
    absolute = os.path.abspath(path)  # noqa: PTH100 - as above
    # What stands there leads to files that somebody else holds open; they must not be replaced.
    is_own = absolute.startswith(_DEVICES) and not absolute.startswith(_MEMORY)
    try:
        is_file = stat.S_ISREG(os.stat(target).st_mode)  # noqa: PTH116 - as above
    except OSError:
        is_file = True
    return (
        _Output(path, text, "") if is_own or not is_file else _Output(target, text, f"{target}.{os.getpid()}")
    )


def _stage(output: _Output) -> None:
    if not output.temporary:
        return
    before = _text(output.path)
    descriptor = os.open(output.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
        file.write(f"{before}\n{output.text}" if before else output.text)


def _finish(output: _Output) -> None:
    if output.temporary:
        os.replace(output.temporary, output.path)  # noqa: PTH105 - as above
        return
    if output.path == _STDOUT:
        # Opened once more it would be written from its beginning, if it is a file.
        sys.stdout.write(output.text)
        return
    with open(output.path, "a", encoding="utf-8") as file:  # noqa: PTH123 - as above
        file.write(output.text)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
            return file.read()
    except FileNotFoundError:
        return ""
