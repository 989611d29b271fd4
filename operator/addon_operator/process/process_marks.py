"""Marks of processes: by its mark, another process of the same machine finds out that one has ended."""

import os
import pathlib
from typing import Final

_BOOT_ID: Final = pathlib.Path("/proc/sys/kernel/random/boot_id")
_SHOWN: Final = 8
_START_FIELD: Final = 19
"""When a process began, among the fields of ``/proc/PID/stat`` that follow its name."""


def own() -> str:
    """Return this process's mark; empty where the system does not tell what belongs into it."""
    try:
        return f"{_place()}-{os.getpid()}-{_start_of(os.getpid())}"
    except OSError:
        return ""


def has_ended(mark: str) -> bool:
    """Say whether the process that had the mark is gone for sure: others of another machine never are."""
    _, pid, start = _parts(mark)
    try:
        return is_seen(mark) and _start_of(int(pid)) != start
    except FileNotFoundError:
        return True
    except OSError:
        return False


def is_seen(mark: str) -> bool:
    """Say whether the mark is of a process that this one would see if it ran."""
    place, pid, _ = _parts(mark)
    try:
        return place == _place() and pid.isdigit()
    except OSError:
        return False


def _parts(mark: str) -> tuple[str, str, str]:
    place, _, process = mark.partition("-")
    pid, _, start = process.partition("-")
    return place, pid, start


def _place() -> str:
    """Return what is the same for processes that see each other: one boot of a machine, one PID namespace."""
    boot = _BOOT_ID.read_text(encoding="ascii").replace("-", "")[:_SHOWN]
    return f"{boot}{pathlib.Path('/proc/self/ns/pid').stat().st_ino:x}"


def _start_of(pid: int) -> str:
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = stat.rpartition(")")[2].split()
    # One that ended and was not waited for is still there.
    return "" if fields[0] == "Z" else fields[_START_FIELD]
