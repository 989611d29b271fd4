"""Delays between the tries of a failing task."""

import random
from typing import Final

FIRST: Final = 5.0
CAP: Final = 30.0
_GROWTH: Final = 1.5
_JITTER: Final = 0.1


def delay(attempt: int, rng: random.Random) -> float:
    """Seconds to wait after failed try number ``attempt`` (1, 2, …): 5 growing to 30, with jitter.

    Source: "Task queues" of the addon-operator documentation.
    """
    base = min(CAP, FIRST * _GROWTH ** min(attempt - 1, 10))
    return min(CAP, base * (1 + rng.random() * _JITTER))
