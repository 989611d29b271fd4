"""Work on the event loop in pieces, so that others have their turn."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PIECE_SECONDS: Final = 0.005
"""After so long others have a turn."""


async def mapped(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function with each item in the event loop, but let others run every few milliseconds."""
    results = []
    until = time.perf_counter() + PIECE_SECONDS
    for item in items:
        results.append(function(item))
        if time.perf_counter() > until:
            await asyncio.sleep(0)
            until = time.perf_counter() + PIECE_SECONDS
    return results
