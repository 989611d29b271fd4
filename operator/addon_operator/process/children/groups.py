"""Process groups and descendants of this process, as the kernel lists them."""

import collections
import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Final

PROC: Final = pathlib.Path("/proc")
_DEAD_STATES: Final = frozenset({"Z", "X", "x"})
_REMEMBERED: Final = 4096
"""Children; a process that outlives so many later ones and has left its family is not recognised."""
_GENERATIONS: Final = 1000


def living_member(group: int, likely: int | None = None, proc: pathlib.Path = PROC) -> int | None:
    """Return a process of that group that still runs; one that only waits to be reaped does not count.

    Going through all processes takes milliseconds on a busy machine: if ``likely`` is one, it is the answer.
    """
    for name in _names(likely, proc):
        # A process may end between the listing and the reading.
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = stat_of(name, proc)
            if int(fields[2]) == group and fields[0] not in _DEAD_STATES:
                return int(name)
    return None


def send(group: int, number: signal.Signals) -> None:
    """Send a signal to all members; a group that is gone is fine.

    The caller has to know that the number still belongs to its group: the group's leader is not reaped yet.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def stat_of(pid: object, proc: pathlib.Path = PROC) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the state on; raise :class:`OSError` if it has ended."""
    # The command's name stands in parentheses and may hold both spaces and parentheses.
    return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()


class Lineage:
    """Knows the descendants of this process: by their parents, and by the session that each child begins.

    One that began a session of its own, and whose parent has ended, is the launcher's child; where the kernel
    does not let the launcher inherit it, it is nobody's descendant any more.
    """

    def __init__(self, proc: pathlib.Path = PROC) -> None:
        self._proc = proc
        self._children: collections.deque[int] = collections.deque(maxlen=_REMEMBERED)

    def started(self, pid: int) -> None:
        """Note that a child begins, as leader of its own session."""
        self._children.append(pid)

    def includes(self, pid: int) -> bool:
        """Say whether a process is a descendant; one that has ended meanwhile counts as one.

        A process that is not seen from here, whose number is 0, is not a descendant.
        """
        sessions = frozenset(self._children)
        for _ in range(_GENERATIONS):
            if pid <= 1 or pid == os.getpid():
                return False
            try:
                fields = stat_of(pid, self._proc)
                parent, session = int(fields[1]), int(fields[3])
            except (OSError, ValueError, IndexError):
                return True
            if parent == os.getpid() or session in sessions:
                return True
            pid = parent
        return True


def _names(likely: int | None, proc: pathlib.Path) -> Iterator[str]:
    if likely is not None:
        yield str(likely)
    yield from filter(str.isdigit, os.listdir(proc))  # noqa: PTH208 - pathlib would build paths for them all
