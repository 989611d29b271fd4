"""How this process gives memory back that it does not use any more."""

import ctypes
import os
from typing import Final

_MMAP_THRESHOLD: Final = (-3, 512 * 1024, "MALLOC_MMAP_THRESHOLD_")
"""Larger blocks are given back when they are freed. Left alone, the C library raises the limit as soon as one
is freed, and keeps for ever what once held a chart or a list of objects. Whatever is read from a socket or a
TLS connection is read into 256 KiB first: with a lower limit, the system clears new pages for each read."""
_TRIM_THRESHOLD: Final = (-1, 1024 * 1024, "MALLOC_TRIM_THRESHOLD_")
"""Free memory at the end of the heap, from which on it is given back: more than those reads take."""
_ARENA_MAX: Final = (-8, 2, "MALLOC_ARENA_MAX")
"""Else each thread has a heap of its own, and what is freed in one is no use to the others."""


def give_back_early() -> bool:
    """Have the C library give memory back early; ``False`` if it is not glibc, which alone can be told.

    What the environment says of it counts. Source: mallopt(3).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    return all(
        mallopt(option, value)
        for option, value, variable in (_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX)
        if variable not in os.environ
    )
