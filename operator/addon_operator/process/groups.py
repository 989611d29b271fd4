"""The members of a process group, as the kernel lists them."""

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Final

PROC: Final = pathlib.Path("/proc")
_DEAD_STATES: Final = frozenset({"Z", "X", "x"})


def has_living_member(group: int, proc: pathlib.Path = PROC) -> bool:
    """Whether a process of that group still runs; one that only waits to be reaped does not count."""
    return any(
        member_group == group and state not in _DEAD_STATES for state, member_group in _processes(proc)
    )


def send(group: int, number: signal.Signals) -> None:
    """Send a signal to all members; a group that is gone is fine.

    The caller has to know that the number still belongs to its group: the group's leader is not reaped yet.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _processes(proc: pathlib.Path) -> Iterator[tuple[str, int]]:
    for name in os.listdir(proc):  # noqa: PTH208 - pathlib would build a path object for every process
        if name.isdigit():
            # A process may end between the listing and the reading.
            with contextlib.suppress(OSError, ValueError, IndexError):
                yield _state_and_group((proc / name / "stat").read_text(errors="replace"))


def _state_and_group(stat: str) -> tuple[str, int]:
    # The command's name stands in parentheses and may hold both spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[2])
