"""What happens to followed objects, and who is called about it."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from addon_operator.documents import json_documents


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
    """The entry as :mod:`.json_documents` keeps it."""
    resource_version: str
    """Of the object in that state."""
    before: bytes | None = dataclasses.field(default=None, repr=False)
    """The kept entry before a Modified; ``None`` for other changes."""

    @property
    def entry(self) -> bytes:
        """What the subscriber's projection made of the object, a JSON document.

        Of a deleted one the last that is known.
        """
        return json_documents.unpack(self.kept)


class ObjectListener(Protocol):
    """Who subscribes to objects: bindings of hooks, drift, and namespaces of a selection.

    Called in the event loop; must return at once and not raise.
    """

    def synced(self) -> None:
        """Note that the first complete list is in the snapshot; called once, never within ``subscribe``."""
        ...

    def changed(self, changes: Sequence[Change]) -> None:
        """Take objects that changed since ``synced``: in order, each once, and in the snapshot already.

        A Modified that changes nothing in the digest of the projection is left out.
        """
        ...

    def trouble(self, reason: str | None) -> None:
        """Note why objects cannot be followed just now, in a sentence; ``None``: all is well again."""
        ...
