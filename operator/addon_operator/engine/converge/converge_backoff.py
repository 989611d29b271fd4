"""How often converges are begun anew for what hooks change all the time.

The documents converge again whenever an ``afterAll`` hook changed global values. Hooks that never agree would
keep every module running and could upgrade every release again and again; so only some rounds follow at once,
and later ones with the delays of a failing task.
"""

import random
from typing import Final

from addon_operator.engine.queues import retry_delays

AT_ONCE: Final = 5
"""Rounds in a row that follow without a delay."""
GIVE_WAY: Final = 3
"""Converges in a row that give way to what hooks change on events and ticks."""
LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at whether a converge that does not give way is stalled."""


class Settling:
    """Counts the rounds since global values were last left alone, or something else asked for a converge."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()  # noqa: S311 # jitter
        self.rounds = 0
        """Converges in a row whose ``afterAll`` hooks changed global values."""

    def reset(self) -> None:
        """Begin to count anew."""
        self.rounds = 0

    def changed(self) -> float:
        """Count a round; seconds until the next one may begin, 0 for at once."""
        self.rounds += 1
        late = self.rounds - AT_ONCE
        return retry_delays.delay(late, self._rng) if late > 0 else 0.0
