"""Calls of Helm, and what they leave of releases, as the memory has it.

That a call begins is remembered before it begins: a record that nothing else explains is then known to be
what is left of it.
"""

import time
from typing import Final

from addon_operator.helm import places, remembered
from addon_operator.helm.releases import release_records
from addon_operator.modules import release

UNINSTALL: Final = "uninstall"


class ReleaseCalls:
    """Keeps the memory of releases in step with their records."""

    def __init__(self, records: release_records.ReleaseRecords) -> None:
        self._records = records
        self._places = records.places
        self._memory = records.memory

    async def begin(self, name: str, verb: str, number: int) -> None:
        """Remember that a call begins, which makes or works on this revision of a release.

        Raises what :meth:`.Memory.write` raises; then the call must not begin.
        """
        call = remembered.CallUnderWay(verb=verb, number=number, began=time.time())
        self._memory.change(self._places.of(name), call=call)
        await self._memory.write()

    def is_removal(self, record: release_records.Record | None) -> bool:
        """Say whether a removal of the release has begun, of which this record is left."""
        if record is None or not record.revision.exists:
            return False
        call = self._memory.of(self._places.of(record.revision.release)).call
        is_begun = call is not None and call.verb == UNINSTALL
        return is_begun or record.revision.status == release.UNINSTALLING

    def before_removal(self, record: release_records.Record) -> str:
        """Return the status that a revision had before its removal began."""
        known = self._memory.of(self._places.of(record.revision.release)).deployed
        # Checksums are saved when a revision has worked.
        was_deployed = known == record.revision.number or (not known and record.revision.saved is not None)
        return release.DEPLOYED if was_deployed else release.FAILED

    async def end(self, name: str) -> release_records.Record | None:
        """Read what a call that has ended left of a release, and remember that; ``None`` if it is gone."""
        record = await self._records.read(name)
        self._memory.change(self._places.of(name), call=None)
        if record is None:
            self._forget(self._places.of(name))
        else:
            self._learn(record)
        return record

    async def observed(self) -> None:
        """Bring the memory in step with the list of all records; the first time, take releases over.

        Raises what :meth:`.Memory.write` raises.
        """
        for name, record in self._records.known.items():
            if record.revision.ours and self._memory.of(self._places.of(name)).call is None:
                self._learn(record)
        there = {self._places.of(name) for name in self._records.known}
        for place in self._memory.locations:
            if place not in there and place.namespace not in self._records.unreadable:
                self._forget(place)
        if not self._memory.taken_over:
            self._memory.has_taken_over()
            await self._memory.write()
            await self._records.forget_namespaces()

    def _learn(self, record: release_records.Record) -> None:
        number = record.revision.number
        place = self._places.of(record.revision.release)
        is_deployed = record.revision.status == release.DEPLOYED
        deployed = number if is_deployed else self._memory.of(place).deployed
        self._memory.change(place, last=number, deployed=deployed)

    def _forget(self, place: places.ReleaseLocation) -> None:
        """Forget a release that has no record any more, but not what outlives it."""
        known = self._memory.of(place)
        left = remembered.RememberedRelease(adopted=known.adopted, kept=known.kept, call=known.call)
        self._memory.put(place, left)
