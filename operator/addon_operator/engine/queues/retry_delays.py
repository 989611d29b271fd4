"""Delays between the tries of a failing task."""

import random
from typing import Final

from addon_operator.aio import waiting

BACKOFF: Final = waiting.Backoff(5.0, 30.0, growth=1.5)
_JITTER: Final = 0.1


def delay(attempt: int, rng: random.Random) -> float:
    """Seconds to wait after failed try number ``attempt`` (1, 2, …): 5 growing to 30, with jitter.

    Source: "Task queues" of the addon-operator documentation.
    """
    return min(BACKOFF.longest, BACKOFF.after(attempt) * (1 + rng.random() * _JITTER))
