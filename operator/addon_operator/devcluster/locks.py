"""Keeps two processes from doing the same work at once.

The kernel drops these locks when their holder ends, however it ends: none can be left behind.
"""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Callable, Iterator

OnWait = Callable[[int | None], None]
"""Called before waiting, with the pid of the holder if it is known."""


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive(path: pathlib.Path, on_wait: OnWait) -> Iterator[None]:
    """Hold the lock file ``path``, waiting for another holder first."""
    with _opened(path) as descriptor:
        _acquire(descriptor, lambda: on_wait(_holder(path)))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield


@contextlib.contextmanager
def shared(path: pathlib.Path) -> Iterator[None]:
    """Hold the lock file ``path`` together with others who share it."""
    with _opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def alone(path: pathlib.Path) -> Iterator[bool]:
    """Hold the lock file ``path`` if nobody else does, and give whether that is so; never wait."""
    with _opened(path) as descriptor:
        yield _try(descriptor)


@contextlib.contextmanager
def directory(path: pathlib.Path, on_wait: OnWait) -> Iterator[None]:
    """Hold a directory (made if need be, mode 0700), so that the lock goes when the directory is removed."""
    descriptor = _hold_directory(path, on_wait)
    try:
        yield
    finally:
        os.close(descriptor)


def is_held(path: pathlib.Path) -> bool:
    """Return whether some process holds this directory now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look do not take each other for a holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _hold_directory(path: pathlib.Path, on_wait: OnWait) -> int:
    while True:
        # Not mkdir(exist_ok=True): it fails where another process removes the directory a moment later.
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            _acquire(descriptor, lambda: on_wait(None))
            if _is_still(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # The holder before us removed the directory: what we hold has no name any more.
        os.close(descriptor)


def _is_still(path: pathlib.Path, descriptor: int) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))


def _acquire(descriptor: int, on_wait: Callable[[], None]) -> None:
    if not _try(descriptor):
        on_wait()
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: pathlib.Path) -> int | None:
    text = path.read_text(encoding="ascii", errors="replace")
    return int(text) if text.isdigit() else None
