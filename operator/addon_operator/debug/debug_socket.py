"""The unix socket of the debug endpoint: one owner at a time, open to one user."""

import contextlib
import errno
import os
import pathlib
import socket
import stat
from collections.abc import Iterator
from typing import Final

from addon_operator.kernel import errors

MODE: Final = 0o600
"""Permissions of the socket: its answers are for those who may see the operator's files."""
_DIRECTORY_MODE: Final = 0o755
_MAX_PATH_BYTES: Final = 107
"""``sun_path`` of Linux without the closing zero."""
_BACKLOG: Final = 16
_PROBE_SECONDS: Final = 1.0
_HOW_TO_MOVE: Final = "name another path with DEBUG_UNIX_SOCKET or --debug-unix-socket"


class DebugSocketError(errors.ConfigurationError):
    """The path of the settings cannot be the debug socket."""


@contextlib.contextmanager
def listening(path: pathlib.Path) -> Iterator[socket.socket]:
    """Listen on a socket at ``path`` until the context ends; its directory is made, a stale file replaced.

    Raises :class:`DebugSocketError` when another process answers there, or the path cannot be used.
    """
    path = path.absolute()
    check_length(path)
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        mark = _bind(listener, path)
        try:
            yield listener
        finally:
            _remove(path, mark)


def check_length(path: pathlib.Path) -> None:
    """Raise :class:`DebugSocketError` for a path that is too long for a socket."""
    length = len(os.fsencode(path))
    if length > _MAX_PATH_BYTES:
        raise DebugSocketError(
            f"the path of the debug socket has {length} bytes, and a socket's may have {_MAX_PATH_BYTES}: "
            f"{path}; {_HOW_TO_MOVE}"
        )


def _bind(listener: socket.socket, path: pathlib.Path) -> tuple[int, int]:
    try:
        path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        _make_room(path)
        listener.bind(os.fspath(path))
        # Nobody can connect before the socket listens, so it is never open to more than its owner.
        path.chmod(MODE)
        listener.listen(_BACKLOG)
        return _mark(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DebugSocketError(
            f"the debug socket {path} cannot be made: {reason.lower()}; {_HOW_TO_MOVE}"
        ) from error


def _make_room(path: pathlib.Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise DebugSocketError(f"{path} exists and is not a socket: remove it, or {_HOW_TO_MOVE}")
    if _answers(path):
        raise DebugSocketError(
            f"another operator answers on the debug socket {path}: end it, or {_HOW_TO_MOVE} for this one"
        )
    path.unlink()


def _answers(path: pathlib.Path) -> bool:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(os.fspath(path))
        except OSError as error:
            # A listener whose backlog is full, or that belongs to another user, is one as well.
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True


def _mark(path: pathlib.Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _remove(path: pathlib.Path, mark: tuple[int, int]) -> None:
    # Somebody may have replaced it meanwhile: what is theirs stays.
    with contextlib.suppress(OSError):
        if _mark(path) == mark:
            path.unlink()
