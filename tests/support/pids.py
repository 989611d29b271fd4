"""Processes that need not be those of a test."""

import os
import select


def ends_within(pid: int, seconds: float) -> bool:
    """Say whether a process is gone by then; one that nobody waited for is."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)
