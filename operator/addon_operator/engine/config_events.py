"""What happens to the values ConfigMap and the values Secret; see :mod:`.events` for all else."""

from collections.abc import Sequence
from typing import Final

import msgspec

from addon_operator.engine import events
from addon_operator.kernel import clock, errors, names
from addon_operator.values import sources


class WrongKey(msgspec.Struct, frozen=True):
    """What is wrong with a key of the values ConfigMap or the values Secret."""

    key: str
    """``global``, a section or a switch of a module."""
    text: str
    """Where and what, without values."""


WRONG_SHOWN: Final = 10
"""How many wrong places are named where people look."""


_WRONG_LENGTH: Final = 500
"""Characters of each."""


def listed_wrong(wrong: Sequence[WrongKey]) -> str:
    """Return what is wrong, as a part of a sentence."""
    more = len(wrong) - WRONG_SHOWN
    texts = [
        each.text if len(each.text) <= _WRONG_LENGTH else f"{each.text[:_WRONG_LENGTH]}…"
        for each in wrong[:WRONG_SHOWN]
    ]
    return "; ".join([*texts, *([f"and {more} more"] if more > 0 else [])])


class WrongValuesError(errors.ModuleError):
    """What ConfigMap or Secret have for a module is wrong, and nothing older is known that was right."""

    reason: Final = "WrongValues"


class ConfigEvent(events.Event, frozen=True):
    """What became of the values ConfigMap or the values Secret."""


class ConfigRefused(ConfigEvent, frozen=True):
    """The values ConfigMap or the values Secret is wrong; reported once for each edit."""

    error: sources.ConfigMapError
    uid: str
    wrong: tuple[WrongKey, ...] = ()
    at_start: bool = False
    """Nothing has begun yet; otherwise the last good values stay in force."""
    kind: str = "ConfigMap"
    withheld: tuple[names.ModuleName, ...] = ()
    """Modules that are wrong and have no older values, so that nothing is done with them."""

    @property
    def source(self) -> str:
        """The names of the objects that are wrong."""
        return self.error.source

    @property
    def follows(self) -> str:
        """What that means, as a part of a sentence."""
        if self.at_start:
            return "nothing runs until it is fixed"
        if self.withheld:
            listed = names.listed(self.withheld, WRONG_SHOWN)
            return f"what is right is in force, and nothing is done with {listed}"
        return "the last good values stay in force"


class ConfigRight(ConfigEvent, frozen=True):
    """The values ConfigMap or the values Secret, which was wrong or was not read, is in force again."""

    kind: str


class ConfigMissing(ConfigEvent, frozen=True):
    """The values ConfigMap or the values Secret was there, and is missing; reported once."""

    kind: str
    source: str
    """The object's name in messages."""
    uid: str
    """That it had."""
    counts_as_empty_in: float | None = None
    """Seconds after which it counts as empty if it is still missing; ``None``: it never does."""
    at_start: bool = False
    """Whether it was there before this start, so that nobody knows what it said."""

    @property
    def follows(self) -> str:
        """What that means, as a part of a sentence."""
        if self.counts_as_empty_in is not None:
            until = clock.duration_text(self.counts_as_empty_in)
            if self.at_start:
                return f"nothing is removed or run for {until}; then it counts as empty (CONFIG_MAP_MISSING)"
            return f"its last values stay in force for {until}; then it counts as empty (CONFIG_MAP_MISSING)"
        if self.at_start:
            return "it was there before; nothing is removed or run until it is back, if only as an empty one"
        return "its last values stay in force; put it back, or empty it to say that it is to be empty"


class ConfigFound(ConfigEvent, frozen=True):
    """The values ConfigMap or the values Secret, which was missing, is there again."""

    kind: str
    source: str
    uid: str
    lost: tuple[str, ...] = ()
    """What hooks had written, and it does not have any more."""

    @property
    def loss(self) -> str:
        """What is lost, as a sentence; empty if nothing is."""
        if not self.lost:
            return ""
        return f"{self.source} is there again without what hooks had written: {names.listed(self.lost, 10)}"


class ConfigNotRead(events.Event, frozen=True):
    """A defect keeps an edit of the values ConfigMap or Secret from being read; it is tried again."""

    kind: str
    source: str
    """The object's name in messages."""
    error: Exception
    delay: float
    """Seconds until the next try."""
