"""How soon a module is healed: at once, unless somebody removes its resources again and again."""

import dataclasses
from typing import Final

FREE: Final = 10
"""So many times in a row without a pause."""
FIRST_PAUSE: Final = 5.0
MAX_PAUSE: Final = 300.0
CALM: Final = 60.0
"""Seconds without healing after which the count begins anew; with pauses it takes some of them."""
_CALM_PAUSES: Final = 3


@dataclasses.dataclass(slots=True)
class HealBackoff:
    """The healings of one module; times are monotonic seconds."""

    count: int = 0
    """Healings in a row."""
    last: float = float("-inf")

    @property
    def pause(self) -> float:
        """Seconds between the last healing and the next."""
        if self.count < FREE:
            return 0.0
        return float(min(MAX_PAUSE, FIRST_PAUSE * 2 ** min(self.count - FREE, 16)))

    def wait(self, now: float) -> float:
        """Seconds to wait from ``now`` on; 0 when the module may be healed at once."""
        if now - self.last > max(CALM, _CALM_PAUSES * self.pause):
            self.count = 0
        return max(0.0, self.last + self.pause - now)

    def healed(self, now: float) -> None:
        """The module was healed."""
        self.count += 1
        self.last = now
