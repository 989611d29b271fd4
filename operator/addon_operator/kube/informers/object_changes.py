"""What happens to followed objects, and who wants to be told."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from addon_operator.documents import packed_entries


class ObjectKey(NamedTuple):
    """Names an object among those of its kind."""

    namespace: str
    """Empty for objects of the cluster."""
    name: str


class ChangeType(enum.StrEnum):
    """What happened; the values are those of binding contexts."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to one object."""

    type: ChangeType
    key: ObjectKey
    kept: bytes = dataclasses.field(repr=False)
    """The entry as :mod:`.packed_entries` keeps it."""
    resource_version: str
    """Of the object in that state."""

    @property
    def entry(self) -> bytes:
        """What the subscriber's projection made of the object, a JSON document.

        Of a deleted one the last that is known.
        """
        return packed_entries.unpack(self.kept)


class Listener(Protocol):
    """Who subscribes to objects. Called in the event loop; must return at once and not raise."""

    def synced(self) -> None:
        """The first complete list is in the snapshot; called once, and never from within ``subscribe``."""
        ...

    def changed(self, changes: Sequence[Change]) -> None:
        """Objects changed since ``synced``: in order, each once, and in the snapshot already.

        A Modified that changes nothing in the digest of the projection is left out.
        """
        ...

    def trouble(self, reason: str | None) -> None:
        """Objects cannot be followed just now, with a sentence that says why; ``None``: all is well again."""
        ...


class Subscription(Protocol):
    """A listener's hold on the objects; what it gives back is the state of this moment."""

    @property
    def synced(self) -> bool:
        """Whether the snapshot is complete."""
        ...

    @property
    def reason(self) -> str | None:
        """Why objects cannot be followed just now, as a sentence; ``None`` when all is well."""
        ...

    @property
    def is_kind_known(self) -> bool:
        """Whether the API server has the kind, as far as is known."""
        ...

    def snapshot(self) -> list[bytes]:
        """Entries of all objects, sorted by namespace and name.

        Entries that are kept compressed are unpacked here, 25 microseconds each for a Pod: with thousands of
        whole objects :meth:`lazy_snapshot` leaves that to when each is read.
        """
        ...

    def lazy_snapshot(self) -> Sequence[bytes]:
        """The same as an immutable sequence that unpacks an entry when it is read; safe in a thread."""
        ...

    @property
    def size(self) -> int:
        """Bytes of all entries as JSON."""
        ...

    def keys(self) -> list[ObjectKey]:
        """The objects that are there, sorted by namespace and name."""
        ...

    def close(self) -> None:
        """Let go of the objects: nothing is told any more, and the watch ends if nobody else needs it."""
        ...
