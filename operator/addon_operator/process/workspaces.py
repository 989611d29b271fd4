"""Private directories for the files of one process, which the next one removes if this one is killed.

In each is a file that its process holds locked: the system lets go of it whatever ends the process.
"""

import contextlib
import fcntl
import itertools
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import Final

from addon_operator.kernel import errors

_LOCK: Final = ".lock"
_UNLOCKED: Final = ".lock.new"
_PRIVATE: Final = 0o600
_OWN_DIRECTORY: Final = 0o700


class UnsafeDirectoryError(errors.ConfigurationError):
    """Somebody else could read or replace what is written into a directory."""


def check_parent(parent: pathlib.Path) -> None:
    """Make sure that nobody else rules over a directory in which workspaces are made.

    Raises :class:`UnsafeDirectoryError`, and :class:`OSError` when it is not there.
    """
    status = parent.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise UnsafeDirectoryError(
            f"{parent} belongs to another user (uid {status.st_uid}), "
            "who could read and replace what is in it"
        )
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise UnsafeDirectoryError(
            f"everybody may remove and replace what is in {parent}: its mode is "
            f"{stat.S_IMODE(status.st_mode):04o}, without a sticky bit"
        )


def is_in_memory(path: pathlib.Path) -> bool:
    """Say whether what is written below a path, which need not exist yet, never waits for a disk."""
    try:
        device = next(each for each in (path, *path.parents) if each.exists()).stat().st_dev
        mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except (OSError, StopIteration):
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    # Of each: two numbers, that of the device, and after a dash the kind of file system.
    return any(
        line.split()[2] == number and line.partition(" - ")[2].startswith("tmpfs ")
        for line in mounts.splitlines()
    )


class Workspace:
    """A directory of mode 0700 that belongs to this process until :meth:`close` or its end."""

    def __init__(self, parent: pathlib.Path, prefix: str) -> None:
        """Make a directory in ``parent``; raises :class:`OSError`."""
        self.path: Final = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._lock: int | None = os.open(self.path / _UNLOCKED, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE)
        with contextlib.suppress(OSError):
            # Where there are no locks, the file gets no name that anybody looks for, and nothing is removed.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It appears under its name only now: nobody may find it there without its lock.
            (self.path / _UNLOCKED).rename(self.path / _LOCK)

    def close(self, *, keep: bool = False) -> None:
        """Remove the directory; with ``keep`` it stays, and no other process removes it."""
        if self._lock is None:
            return
        if keep:
            for name in (_LOCK, _UNLOCKED):
                (self.path / name).unlink(missing_ok=True)
        else:
            remove_tree(self.path)
        os.close(self._lock)
        self._lock = None


def remove_tree(path: pathlib.Path) -> None:
    """Remove a directory with all that is in it, or a link in its place; what cannot be removed stays.

    However deep it is, which a program decides that had it: the standard library goes down with it, and holds
    a file open for each level.
    """
    if path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    _flatten(path)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)


def _flatten(root: pathlib.Path) -> None:
    """Bring all directories below one up into it, one level after the other."""
    name, number = f"{_UNLOCKED}-{os.urandom(8).hex()}", itertools.count()
    left = [root]
    while left:
        directory = left.pop()
        for each in _directories(directory):
            raised = each if directory == root else root / f"{name}-{next(number)}"
            with contextlib.suppress(OSError):
                left.append(each.rename(raised))


def _directories(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return those in a directory, with all rights: who had them may have taken these away."""
    try:
        directory.chmod(_OWN_DIRECTORY)
        with os.scandir(directory) as entries:
            found = [pathlib.Path(each.path) for each in entries if each.is_dir(follow_symlinks=False)]
        for each in found:
            each.chmod(_OWN_DIRECTORY)
    except OSError:
        return []
    return found


def remove_dead(parent: pathlib.Path, prefix: str) -> list[pathlib.Path]:
    """Remove the workspaces whose processes are gone, and give their paths.

    Those of other users stay, and whatever else looks alike.
    """
    removed: list[pathlib.Path] = []
    for path in sorted(parent.glob(f"{prefix}*")):
        with contextlib.suppress(OSError), _taken_over(path):
            remove_tree(path)
            removed.append(path)
    return removed


@contextlib.contextmanager
def _taken_over(path: pathlib.Path) -> Iterator[None]:
    """Hold the lock of a workspace; raises :class:`OSError` for one that lives, or is not ours."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NotADirectoryError(path)
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)
