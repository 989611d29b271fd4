"""Which hook last wrote to a place of the values, and when."""

from collections.abc import Iterable
from typing import Final

import msgspec

from addon_operator.documents import json_pointers
from addon_operator.values.patches import patches

MOST: Final = 1000
"""Places that are remembered of one section; of more, the oldest are forgotten."""


class Written(msgspec.Struct, frozen=True):
    """One write."""

    by: str
    """What the patch is called, which names the hook."""
    at: float
    """Seconds since the epoch."""


class HookWriters:
    """The last writes to one section."""

    def __init__(self) -> None:
        self._places: dict[json_pointers.Tokens, Written] = {}

    def note(self, patch: patches.ValuesPatch, now: float) -> None:
        """Remember what a patch wrote to."""
        # This runs on the loop, and a patch may have any number of operations.
        for step in map(patches.step, patch.operations[:MOST]):
            if step.kind != "test":
                place = json_pointers.stable_prefix(step.path)
                self._places.pop(place, None)
                self._places[place] = Written(patch.source, now)
        for place in list(self._places)[: max(0, len(self._places) - MOST)]:
            del self._places[place]

    @property
    def places(self) -> Iterable[json_pointers.Tokens]:
        """All places that are remembered; the first token of each is the section's key."""
        return self._places.keys()

    def of(self, place: json_pointers.Tokens) -> Written | None:
        """Return the last write to a place, or to what it lies in; the first token is the section's key."""
        found = (self._places.get(place[:length]) for length in range(1, len(place) + 1))
        return max((each for each in found if each is not None), key=lambda each: each.at, default=None)
