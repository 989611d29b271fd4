"""Which objects hooks deleted on purpose, so that nobody brings them back by mistake."""

import collections
from typing import Final, NewType

import msgspec

Owner = NewType("Owner", str)
"""The module whose hook it was; empty for a global hook."""

CAPACITY: Final = 10_000
"""How many deletions are remembered; the oldest are forgotten first."""


class DeletedObject(msgspec.Struct, frozen=True):
    """What names an object for good: the version of its API group may change."""

    group: str
    """API group; empty for the core group."""
    kind: str
    namespace: str | None
    """``None`` for an object of the cluster."""
    name: str


class OwnDeletions:
    """Deletions by hooks that were asked for and not undone since.

    An object is noted *before* the request goes out, because the watch may report the end of an object
    earlier than the answer does.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._deleted: collections.OrderedDict[DeletedObject, Owner] = collections.OrderedDict()

    def note(self, owner: Owner, key: DeletedObject) -> None:
        """Note that a hook of ``owner`` is about to delete the object."""
        self._deleted[key] = owner
        self._deleted.move_to_end(key)
        while len(self._deleted) > self._capacity:
            self._deleted.popitem(last=False)

    def forget(self, key: DeletedObject) -> None:
        """Forget the object, which is there (again): its next end is another matter."""
        self._deleted.pop(key, None)

    def deleted_by(self, key: DeletedObject) -> Owner | None:
        """Say whose hook deleted the object; ``None`` if none did, or it was there again since."""
        return self._deleted.get(key)
