"""Calls of Helm, and what they leave of releases, as the memory has it.

That a call begins is remembered before it begins: a record that nothing else explains is then known to be
what is left of it. What Helm says it made counts as the operator's own, and not what is found afterwards.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from addon_operator.helm import helm_errors, places, remembered
from addon_operator.helm.releases import record_format, release_records
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.modules import release

UNINSTALL: Final = "uninstall"
_FAILED: Final = 20
_AT_ONCE: Final = 8
_SHOWN: Final = 10

Warn = Callable[[names.ModuleName, str], None]


class ReleaseCalls:
    """Keeps the memory of releases in step with their records."""

    def __init__(self, records: release_records.ReleaseRecords, warn: Warn) -> None:
        self._records = records
        self._places = records.places
        self._memory = records.memory
        self._warn = warn
        self.taken_over: frozenset[str] = frozenset()
        """Releases that nothing was remembered of when this process began, and that it has taken over."""

    async def begin(self, name: str, verb: str, number: int) -> None:
        """Remember that a call begins, which makes or works on this revision of a release.

        Raises what :meth:`.Memory.write` and :meth:`.RecordLists.check_labels` raise; then the call must
        not begin.
        """
        await self._records.lists.check_labels(name)
        self._records.proofs.begin(name)
        call = remembered.CallUnderWay(verb=verb, number=number, began=time.time())
        place = self._places.of(name)
        first = self._memory.of(place).first or (call.began if number == 1 else 0.0)
        self._memory.change(place, call=call, first=first)
        await self._memory.write()

    async def check_again(self, name: str, last: int, *used: int) -> None:
        """Raise :class:`.NotCalledError` if others changed, since it was judged, what Helm is about to go by.

        ``last``: the number of the last revision, 0 if there is no release; ``used``: those by which Helm
        deletes, applies or runs something. To be called directly before Helm. Raises what
        :meth:`.RecordLists.check_labels` raises.
        """
        if self._records.lists.is_private(name):
            return
        try:
            await self._records.lists.check_labels(name)
            for each in await self._records.history(name):
                is_used = each.revision.number in used
                if each.revision.number > last or (is_used and not await self._records.may_be_used(each)):
                    raise helm_errors.NotCalledError(
                        name,
                        f"others changed the record {self._records.title(each)} when Helm was about to go by "
                        "it; Helm was not called, and the next try begins anew",
                    )
        except helm_errors.NotCalledError:
            if not self.is_removing(name):
                # No record is what a call has left that was not made.
                self._memory.change(self._places.of(name), call=None)
            raise

    def is_removal(self, record: release_records.Record | None) -> bool:
        """Say whether a removal of the release has begun, of which this record is left."""
        if record is None or not record.revision.exists:
            return False
        name = record.revision.release
        return self.is_removing(name) or record.revision.status == release.UNINSTALLING

    def is_removing(self, name: str) -> bool:
        """Say whether the call under way, or the one that was cut off, is the removal of the release."""
        call = self._memory.of(self._places.of(name)).call
        return call is not None and call.verb == UNINSTALL

    def before_removal(self, record: release_records.Record) -> str:
        """Return the status that a revision had before its removal began."""
        known = self._memory.of(self._places.of(record.revision.release)).deployed
        # Checksums are saved when a revision has worked.
        was_deployed = known == record.revision.number or (not known and record.revision.saved is not None)
        return release.DEPLOYED if was_deployed else release.FAILED

    def deployed(self, name: str) -> int:
        """Return the number of the revision that was deployed last; 0 if none is remembered."""
        return self._memory.of(self._places.of(name)).deployed

    def first(self, name: str) -> float:
        """Return when the first revision of a release was made; 0 if that is not known."""
        return self._memory.of(self._places.of(name)).first

    async def end(
        self, name: str, made: record_format.Release | None = None
    ) -> release_records.Record | None:
        """Read what a call that has ended left of a release, and remember it; ``None`` if nothing is left.

        ``made`` is the revision that Helm made if it succeeded: its record is put right if it says something
        else. Raises what the client raises.
        """
        record = await self._records.read(name)
        place = self._places.of(name)
        if record is None:
            self._forget(place)
            return None
        if record.revision.number == 1 and record.made and not self._memory.of(place).deployed:
            # The clock of the API server counts: objects are compared with it.
            self._memory.change(place, first=record.made)
        if made is not None and made.get("version") == record.revision.number:
            record = await self._records.confirm(record, made)
        known = self._memory.of(place)
        number, call = record.revision.number, known.call
        self._memory.change(place, last=max(number, known.last))
        if record.revision.status == release.FAILED and call is not None and call.number == number:
            self._memory.change(place, failed=(*known.failed, number)[-_FAILED:])
        if not record.revision.is_busy:
            self._memory.change(place, call=None)
        return record

    async def end_removal(self, name: str) -> None:
        """Do the same for a removal that has succeeded: nothing is deployed, also if its record stays.

        Raises what the client raises.
        """
        await self.end(name)
        self._memory.change(self._places.of(name), deployed=0, healthy=0, digests=(), failed=())

    async def left_by_call(self, record: release_records.Record) -> bool:
        """Say whether a call that was cut off left a record: nobody knows who wrote what it holds."""
        call = self._memory.of(self._places.of(record.revision.release)).call
        if call is None or call.verb == UNINSTALL or call.number != record.revision.number:
            return False
        if await self._records.is_own(record):
            self._memory.change(self._places.of(record.revision.release), call=None)
            return False
        return True

    async def explains(self, record: release_records.Record) -> bool:
        """Say whether a call of ours made a record, or left it, whoever wrote what it holds."""
        known = self._memory.of(self._places.of(record.revision.release))
        return record.revision.number in known.failed or await self.left_by_call(record)

    async def before(self, record: release_records.Record) -> release_records.Record | None:
        """Return the revision from which Helm would go on without one that a call left, if it is our own."""
        earlier = (await self._records.history(record.revision.release))[:-1]
        deployed = [each for each in earlier if each.revision.status == release.DEPLOYED]
        found = (deployed or earlier)[-1:]
        return found[0] if found and await self.is_trusted(found[0]) else None

    async def is_trusted(self, record: release_records.Record) -> bool:
        """Say whether Helm may go on from a revision: it is our own, and the one that was deployed last."""
        known = self._memory.of(self._places.of(record.revision.release))
        return await self._records.is_own(record) and record.revision.number >= known.deployed

    async def observed(self) -> None:
        """Bring the memory in step with the list of all records; the first time, take releases over.

        Raises what the client and :meth:`.Memory.write` raise.
        """
        there = {self._places.of(name) for name in self._records.known}
        for place in self._memory.locations:
            is_gone = place not in there and place.namespace not in self._records.unreadable
            if is_gone and not self._places.is_of_module(self._places.key(place)):
                self._forget(place)
        for record in self._records.known.values():
            if self._memory.taken_over and await self._is_by_go_operator(record):
                await self.take(record.revision.release)
        if not self._memory.taken_over:
            await self._take_over()
            self._memory.has_taken_over()
            await self._memory.write()
            await self._records.forget_namespaces()

    async def _take_over(self) -> None:
        """Count releases with our label as our own, where nobody else can have written them.

        Elsewhere a label is enough to remove nothing yet, and no more: the next run makes a revision.
        """
        known = self._records.known.items()
        found = [
            name
            for name, record in known
            if record.revision.ours and not self._records.is_of_another(record.revision)
        ]
        turns = asyncio.Semaphore(_AT_ONCE)

        async def take(name: str) -> None:
            async with turns:
                await self.take(name)

        await asyncio.gather(*map(take, filter(self._records.lists.is_private, found)))
        self.taken_over = frozenset(found)
        if not found:
            return
        text = (
            "nothing was remembered of releases, so these are taken over, and none is "
            f"removed yet: {names.listed(sorted(map(self._places.title, found)), _SHOWN)}"
        )
        strays = [
            self._places.title(name)
            for name in found
            if not self._places.is_of_module(name) and not self._records.lists.is_private(name)
        ]
        if strays:
            text += (
                f"; of these no module has {names.listed(sorted(strays), _SHOWN)}, and others may have "
                "written that: remove what is not needed with 'helm uninstall'"
            )
        self._warn(names.ModuleName(""), text)

    async def _is_by_go_operator(self, record: release_records.Record) -> bool:
        """Say whether the Go operator made a revision since, after a move back to it.

        A label proves nothing in a namespace that others write to. Helm copies it to revisions by hand.
        """
        revision = record.revision
        checksum = revision.labels.get(release.GO_OPERATOR_LABEL)
        is_by_us = revision.labels.get(release.REVISION_LABEL) == str(revision.number)
        if checksum is None or is_by_us or not self._records.lists.is_private(revision.release):
            return False
        if await self._records.is_own(record):
            return False
        known = self._memory.of(self._places.of(revision.release)).deployed
        history = await self._records.history(revision.release)
        before = [each.revision.labels for each in history if each.revision.number == known]
        return not before or before[0].get(release.GO_OPERATOR_LABEL) != checksum

    async def take(self, name: str) -> None:
        """Count the last and the deployed revision of a release as our own."""
        history = await self._records.history(name)
        deployed = [each for each in history if each.revision.status == release.DEPLOYED]
        for record in {each.object_name: each for each in (*deployed[-1:], *history[-1:])}.values():
            try:
                signed = await self._records.sign(record)
            except (helm_errors.ReleaseRecordError, api_errors.NotFound):
                continue
            if signed is not None:
                self._learn(signed)

    def _learn(self, record: release_records.Record) -> None:
        revision = record.revision
        place = self._places.of(revision.release)
        known = self._memory.of(place)
        self._memory.change(place, last=max(known.last, revision.number))
        if revision.status == release.DEPLOYED:
            digest = revision.labels[release.DIGEST_LABEL]
            self._memory.change(place, deployed=revision.number, digests=(digest,))

    def _forget(self, place: places.ReleaseLocation) -> None:
        """Forget a release that has no record any more, but not what outlives it."""
        known = self._memory.of(place)
        outlives = remembered.RememberedRelease(
            adopted=known.adopted,
            rejected=known.rejected,
            kept=known.kept,
            leaving=known.leaving,
            moving=known.moving,
        )
        self._memory.put(place, outlives)
