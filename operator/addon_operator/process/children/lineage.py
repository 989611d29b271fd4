"""Which processes this one has started, or those have started in turn."""

import collections
import os
import pathlib
from typing import Final

from addon_operator.process.children import groups

_REMEMBERED: Final = 4096
"""Children; a process that outlives so many later ones and has left its family is not recognised."""
_GENERATIONS: Final = 1000


class Lineage:
    """Knows the descendants of this process: by their parents, and by the session that each child begins.

    One that began a session of its own, and whose parent has ended, is nobody's descendant any more.
    """

    def __init__(self, proc: pathlib.Path = groups.PROC) -> None:
        self._proc = proc
        self._children: collections.deque[int] = collections.deque(maxlen=_REMEMBERED)

    def started(self, pid: int) -> None:
        """A child begins, as leader of its own session."""
        self._children.append(pid)

    def includes(self, pid: int) -> bool:
        """Whether a process is a descendant; one that has ended meanwhile counts as one.

        A process that is not seen from here, whose number is 0, is none.
        """
        sessions = frozenset(self._children)
        for _ in range(_GENERATIONS):
            if pid <= 1 or pid == os.getpid():
                return False
            try:
                parent, session = groups.parent_and_session(pid, self._proc)
            except (OSError, ValueError, IndexError):
                return True
            if parent == os.getpid() or session in sessions:
                return True
            pid = parent
        return True
