"""The revisions of a release that a plan may look at, with what Helm keeps of them."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from addon_operator.helm import helm_errors
from addon_operator.helm.releases import record_format, release_records
from addon_operator.modules import release


@dataclasses.dataclass(frozen=True, slots=True)
class KeptRevision:
    """One revision, as its record tells."""

    path: str
    """Of the record, in the API."""
    name: str
    """Of the release, for Helm."""
    revision: release.Revision
    content: record_format.Content | None = dataclasses.field(repr=False)
    """``None`` if it cannot be decoded."""
    is_foreign: bool
    """Whether others made or changed it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """All labels of the record."""
        return self.revision.labels


async def of_release(records: release_records.ReleaseRecords, name: str) -> list[KeptRevision]:
    """Read the deployed revision of a release, the last one, and the one before that, in their order.

    Raises the errors of the API client.
    """
    kept = []
    for record in _looked_at(await records.history(name)):
        content = None
        with contextlib.suppress(helm_errors.ReleaseRecordError):
            content = await records.content(record)
        release_name = record.revision.labels.get("name", name)
        is_foreign = records.proofs.is_foreign(record.revision)
        kept.append(KeptRevision(records.path_of(record), release_name, record.revision, content, is_foreign))
    return kept


def _looked_at(history: Sequence[release_records.Record]) -> Iterator[release_records.Record]:
    last = history[-2:]
    deployed = [each for each in history if each.revision.status == release.DEPLOYED]
    yield from (each for each in deployed[-1:] if each not in last)
    yield from last
