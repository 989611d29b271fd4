"""What work costs: how much longer it takes when what it is given grows, or beside work that is known."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

_T = TypeVar("_T")
_TIMES: Final = 4
_TRIES: Final = 3
_KNOWN_ITEMS: Final = 100_000
_KNOWN_SECONDS: Final = 0.03
"""What work that is known takes on a machine that does nothing else."""


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
def at_most(usual_seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time than that, on a machine that does nothing else.

    It is measured beside work that is known: on a busy machine, memory alone may make all of it far slower.
    """
    before = slowness()
    began = time.thread_time()
    yield
    took = time.thread_time() - began
    times = max(before, slowness())
    assert took < usual_seconds * times, f"{took:.2f} s, on a machine that takes {times:.1f} times as long"


def slowness() -> float:
    """How many times as long work takes here just now that needs much memory; at least 1."""
    return max(1.0, seconds(_known, _KNOWN_ITEMS) / _KNOWN_SECONDS)


def _known(items: int) -> int:
    found = {number: str(number) for number in range(items)}
    return ("".join(found.values()) * 20).encode().find(b"x")


def _once(work: Callable[[_T], object], given: _T) -> float:
    # Collecting garbage would cost what all other tests have left in memory.
    gc.disable()
    try:
        began = time.thread_time()
        work(given)
        return time.thread_time() - began
    finally:
        gc.enable()
