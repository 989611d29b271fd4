"""What work costs: how much longer it takes when what it is given grows.

No test says how long something may take: that is what a machine and its other users decide.
"""

import asyncio
import contextlib
import gc
import sys
import time
import types
from collections.abc import Callable, Iterator
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


@contextlib.contextmanager
def pieces_of_the_loop() -> Iterator[list[int]]:
    """Give how many functions each piece of work calls that the event loop does in this block at one go."""
    pieces = [0]

    def called(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is asyncio.Handle._run.__code__:
            pieces.append(0)
        pieces[-1] += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        yield pieces
    finally:
        sys.setprofile(None)


def _once(work: Callable[[_T], object], given: _T) -> float:
    # Collecting garbage would cost what all other tests have left in memory.
    gc.disable()
    try:
        began = time.thread_time()
        work(given)
        return time.thread_time() - began
    finally:
        gc.enable()
