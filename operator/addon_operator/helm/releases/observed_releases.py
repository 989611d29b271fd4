"""What the operator knows of the releases of its namespace: one list for all, then renewed one by one."""

from collections.abc import Callable, Mapping

from addon_operator.helm import helm_errors, messages
from addon_operator.helm.releases import release_records, release_types
from addon_operator.modules import manifests, release


class ObservedReleases:
    """Records of the last revisions, and what this process rendered for them."""

    def __init__(self, records: release_records.ReleaseRecords) -> None:
        self._source = records
        self._records: dict[str, release_records.Record] = {}
        self._rendered: dict[str, tuple[int, release.Rendered]] = {}
        self._is_complete = False
        self._doubted: set[str] = set()
        self._touched: set[str] = set()

    async def read_all(self) -> dict[str, release_records.Record]:
        """All releases, read anew with one list request."""
        self._touched = touched = set[str]()
        found = await self._source.read_all()
        # What changed while the list was under way is known better than the list tells.
        listed = {name: record for name, record in found.items() if name not in touched}
        newer = {name: record for name, record in self._records.items() if name in touched}
        self._records = listed | newer
        self._doubted &= touched
        self._is_complete = True
        return dict(self._records)

    async def get(self, name: str, *, fresh: bool = False) -> release_records.Record | None:
        """The last revision as it was read last; read now if that is unknown, in doubt or must be fresh."""
        if fresh or not self._is_complete or name in self._doubted:
            return await self.refresh(name)
        return self._records.get(name)

    async def refresh(self, name: str) -> release_records.Record | None:
        """The last revision of one release, read anew."""
        record = await self._source.read(name)
        self._keep(name, record)
        return record

    def doubt(self, name: str) -> None:
        """Read the release anew before it is used again: something was done to it that may have failed."""
        self._touched.add(name)
        self._doubted.add(name)

    def rendered(self, record: release_records.Record | None) -> release.Rendered | None:
        """What this process rendered for exactly this revision."""
        if record is None:
            return None
        number, rendered = self._rendered.get(record.revision.release, (0, None))
        return rendered if number == record.revision.number else None

    def remember(self, revision: release.Revision, rendered: release.Rendered) -> None:
        """Note what a revision was rendered from."""
        self._rendered[revision.release] = (revision.number, rendered)

    async def add_labels(self, record: release_records.Record, rendered: release.Rendered) -> None:
        """Save with a revision what it was rendered from, so that the next start of the operator knows."""
        await self._add_labels(record, rendered.labels(record.revision.number))

    async def begin_removal(self, record: release_records.Record) -> bool:
        """Save with a release that its removal is more than its uninstallation; whether that worked."""
        return await self._add_labels(record, {release.REMOVAL_LABEL: release.REMOVAL_BEGUN})

    async def _add_labels(self, record: release_records.Record, labels: Mapping[str, str]) -> bool:
        if labels.items() <= record.revision.labels.items():
            return True
        name = record.revision.release
        changed = await self._source.add_labels(record, labels)
        if changed is None:
            self.doubt(name)
        else:
            self._keep(name, changed)
        return changed is not None

    async def drop(self, record: release_records.Record) -> release_records.Record | None:
        """Remove the record of a stuck revision, and give the one before it."""
        await self._source.drop(record)
        return await self.refresh(record.revision.release)

    async def before(self, record: release_records.Record) -> release_records.Record | None:
        """The revision before one, read now."""
        return await self._source.read_before(record)

    async def manifest(self, record: release_records.Record, *, with_hooks: bool = False) -> str:
        """What Helm applied with a revision."""
        return await self._source.manifest(record, with_hooks=with_hooks)

    async def content(self, record: release_records.Record) -> release_records.Content:
        """What a record holds."""
        return await self._source.content(record)

    async def spare(
        self, record: release_records.Record, is_spared: Callable[[manifests.ManifestResource], bool]
    ) -> release_records.Record | None:
        """Take objects out of what Helm knows of a revision, and give its record as it is then."""
        await self._source.spare(record, is_spared)
        self._rendered.pop(record.revision.release, None)
        return await self.refresh(record.revision.release)

    async def upgraded_from(self, last: release_records.Record) -> release_records.Record:
        """The revision from which Helm upgrades: what it has and the new one has not is deleted."""
        if last.revision.status == release.DEPLOYED:
            return last
        found = await self._source.read_deployed(last.revision.release)
        return last if found is None else found[0]

    async def deployed(self, name: str) -> release_types.Deployed | None:
        """What the release consists of, read now; ``None`` if no revision of it is deployed."""
        found = await self._source.read_deployed(name)
        if found is None:
            return None
        record, last = found
        content = await self._source.content(record)
        return release_types.Deployed(
            record.revision.number,
            content.manifest,
            content.is_server_side,
            is_busy=last.revision.is_busy,
            unchangeable=await self._unchangeable(last),
        )

    async def _unchangeable(self, last: release_records.Record) -> frozenset[messages.ObjectName]:
        if last.revision.status != release.FAILED:
            return frozenset()
        try:
            return messages.unchangeable((await self._source.content(last)).description)
        except helm_errors.ReleaseRecordError:
            return frozenset()

    def _keep(self, name: str, record: release_records.Record | None) -> None:
        self._touched.add(name)
        self._doubted.discard(name)
        if record is None:
            self._records.pop(name, None)
            self._rendered.pop(name, None)
        else:
            self._records[name] = record
