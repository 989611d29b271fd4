"""Which Events are written anew, which only raise a count, and which are too many.

The numbers are those of client-go: more than 10 Events in 10 minutes that differ in the message alone become
one; each object may have 25 Events at once and then one every 5 minutes. What is remembered is bounded.
"""

import collections
import dataclasses
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from addon_operator.kernel import clock

SIMILAR_MAX: Final = 10
SIMILAR_SECONDS: Final = 600.0
BURST: Final = 25
REFILL_SECONDS: Final = 300.0
REMEMBERED: Final = 4096
_COMBINED: Final = "(combined from similar events): "

V = TypeVar("V")


@dataclasses.dataclass(slots=True)
class Written:
    """An Event as it stands in the cluster; ``name`` is empty as long as it does not."""

    name: str = ""
    count: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Allowed:
    """An Event that may be written."""

    written: Written
    """The one to count up, or to fill in once it is there."""
    message: str


@dataclasses.dataclass(slots=True)
class _Similar:
    since: float
    messages: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(slots=True)
class _Bucket:
    tokens: float
    refilled: float


class _Recent(Generic[V]):
    """A mapping that forgets what was not used for the longest time."""

    def __init__(self) -> None:
        self._items: collections.OrderedDict[Hashable, V] = collections.OrderedDict()

    def get_or(self, key: Hashable, new: V) -> V:
        value = self._items.setdefault(key, new)
        self._items.move_to_end(key)
        if len(self._items) > REMEMBERED:
            self._items.popitem(last=False)
        return value


class EventBudget:
    """Decides over Events; keeps what it needs for that in memory."""

    def __init__(self, time: clock.Clock) -> None:
        self._clock = time
        self._similar: _Recent[_Similar] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()
        self._written: _Recent[Written] = _Recent()

    def admit(self, about: Hashable, identity: Hashable, message: str) -> Allowed | None:
        """What to write for an Event, or ``None`` if the object has had too many.

        ``identity`` is everything of the Event but its message.
        """
        combined = self._is_one_of_many(identity, message)
        key = (identity, None if combined else message)
        if not self._take_token(about):
            return None
        return Allowed(self._written.get_or(key, Written()), _COMBINED + message if combined else message)

    def _is_one_of_many(self, identity: Hashable, message: str) -> bool:
        now = self._clock.monotonic()
        similar = self._similar.get_or(identity, _Similar(now))
        if now - similar.since > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.since = now
        if len(similar.messages) < SIMILAR_MAX:
            similar.messages.add(message)
        return message not in similar.messages

    def _take_token(self, about: Hashable) -> bool:
        now = self._clock.monotonic()
        bucket = self._buckets.get_or(about, _Bucket(BURST, now))
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.refilled) / REFILL_SECONDS)
        bucket.refilled = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
