"""What work costs: how much longer it takes when what it is given grows.

No test says how long something may take: that is what a machine and its other users decide.
"""

import gc
import time
from collections.abc import Callable
from typing import Final, TypeVar

_T = TypeVar("_T")
_TIMES: Final = 4
_TRIES: Final = 3


def is_linear(make: Callable[[int], _T], work: Callable[[_T], object], size: int) -> bool:
    """Say whether four times as much takes about four times as long, and not sixteen times.

    ``make`` returns something of a size; ``work`` is what takes long: some milliseconds for ``size``.
    """
    few, many = make(size), make(_TIMES * size)
    # Others may have the caches of the processor meanwhile; what is quadratic is so each time.
    return any(_once(work, many) < 3 * _TIMES * seconds(work, few) for _ in range(_TRIES))


def seconds(work: Callable[[_T], object], given: _T) -> float:
    """Return the processor time of this thread for the fastest of three times."""
    return min(_once(work, given) for _ in range(_TRIES))


def _once(work: Callable[[_T], object], given: _T) -> float:
    # Collecting garbage would cost what all other tests have left in memory.
    gc.disable()
    try:
        began = time.thread_time()
        work(given)
        return time.thread_time() - began
    finally:
        gc.enable()
