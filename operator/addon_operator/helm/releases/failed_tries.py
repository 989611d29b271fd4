"""What earlier tries of a release left behind: refusals that still stand, records, and objects.

A try is a revision that failed after the last one that worked. Helm looks at one revision alone: an upgrade
deletes what the deployed one has and the chart has no more, an installation deletes nothing. So what only
failed tries made is looked after here, before the next try.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from addon_operator.helm import command, helm_errors, messages, release_types
from addon_operator.helm.releases import (
    hook_objects,
    keeper,
    live_objects,
    merge_conflicts,
    record_format,
    release_calls,
    release_records,
)
from addon_operator.kube import api_errors
from addon_operator.modules import keeping, manifests, release

_SERVER_SIDE_SINCE: Final = 4
"""Major version of Helm from which on fields that left the chart leave an object that is adopted."""


async def was_deployed(
    records: release_records.ReleaseRecords, history: Sequence[release_records.Record]
) -> bool:
    """Say whether one of these revisions, in their order, worked since the release was installed last.

    What is remembered counts more than what they say. Raises the errors of the API client.
    """
    known = records.memory.of(records.places.of(history[-1].revision.release)) if history else None
    if known and 0 < known.deployed <= history[-1].revision.number and known.deployed not in known.failed:
        return True
    if history and release.REVISION_LABEL in history[-1].revision.labels:
        # Helm copies labels when it upgrades, and it upgrades what worked; that one may be pruned by now.
        return True
    for record in reversed(history):
        if record.revision.status in (release.DEPLOYED, release.UNINSTALLED):
            return record.revision.status == release.DEPLOYED
        if record.revision.status == release.SUPERSEDED:
            return not await was_uninstalled(records, record)
    return False


async def was_uninstalled(records: release_records.ReleaseRecords, record: release_records.Record) -> bool:
    """Say whether the release was uninstalled with a revision: the installation after that hides it."""
    try:
        return (await records.content(record)).was_uninstalled
    except (helm_errors.ReleaseRecordError, api_errors.NotFound):
        return False


async def blamed(
    records: release_records.ReleaseRecords, error: helm_errors.HelmError
) -> helm_errors.HelmError:
    """Return the error of a call of Helm; one with what to do if it came of a record that Helm cannot use."""
    try:
        record = await records.read(error.module)
        content = None if record is None else await records.content(record, whoever=True)
    except helm_errors.ReleaseRecordError as unreadable:
        return helm_errors.HelmError(error.module, str(unreadable))
    except (helm_errors.HelmError, api_errors.KubernetesError):
        return error
    if record is None or content is None or content.status in ("", record.revision.status):
        return error
    return helm_errors.HelmError(
        error.module,
        f"the record {records.title(record)} of the release says {content.status} inside, and "
        f"{record.revision.status} in its label 'status': somebody has changed one of them; set the label to "
        f"{content.status}",
    )


class FailedTries:
    """The failed tries of one release, looked after before the next one; used once."""

    def __init__(
        self,
        helm: command.Helm,
        records: release_records.ReleaseRecords,
        live: live_objects.LiveObjects,
        request: release_types.ReleaseRequest,
        retaining: keeper.Keeper,
        calls: release_calls.ReleaseCalls,
    ) -> None:
        self._helm = helm
        self._calls = calls
        self._records = records
        self._live = live
        self._request = request
        self._keeper = retaining
        self._namespace = helm.places.of(request.module).namespace
        self._tries: list[release_records.Record] = []
        self._own: list[tuple[release_records.Record, record_format.Content]] = []
        self._all: list[tuple[release_records.Record, record_format.Content]] = []

    async def read(self) -> None:
        """Read what the tries applied, as far as they can be read and are of calls of ours.

        Of some of them others may have made something else. Raises what the client raises.
        """
        history = reversed(await self._records.history(self._request.module))
        failed = itertools.takewhile(lambda each: each.revision.status == release.FAILED, history)
        self._tries = list(failed)[::-1]
        others_write = self._records.others_write(self._request.module)
        for record in self._tries:
            is_tried = await self._calls.explains(record)
            if others_write and not is_tried:
                # It may have worked: others can have it say that it failed.
                continue
            with contextlib.suppress(helm_errors.ReleaseRecordError, api_errors.NotFound):
                try:
                    found = record, await self._records.content(record)
                    self._own.append(found)
                except helm_errors.ForeignRecordError:
                    if not is_tried:
                        continue
                    found = record, await self._records.content(record, whoever=True)
                self._all.append(found)

    @property
    def applied(self) -> list[str]:
        """What the tries applied, the oldest first."""
        return [content.manifest for _, content in self._all]

    @property
    def applied_for_sure(self) -> list[str]:
        """The same without tries of which others may have made something else."""
        return [content.manifest for _, content in self._own]

    async def check_refusal(self, record: release_records.Record, manifest: str) -> None:
        """Make no revision for what the API server refused for this failed one, and refuses still."""
        with contextlib.suppress(helm_errors.ReleaseRecordError):
            failed = await self._records.content(record)
            refusal = await self._live.standing_refusal(self._request.module, failed, manifest)
            if refusal is not None:
                error = self._error(
                    refusal,
                    f"revision {record.revision.number} failed because of this, and no further one is made",
                )
                raise await merge_conflicts.explained(error, self._live, manifest, failed.description)

    async def clear(
        self, manifest: str, before: release_records.Record | None = None
    ) -> Collection[keeping.Kept]:
        """Delete what only failed tries made, and the next manifest does not have; gives what of it stays.

        What the revision ``before``, from which Helm upgrades, has is left to Helm.
        Raises :class:`.HelmError` for what cannot be deleted.
        """
        try:
            had = "" if before is None else await self._records.manifest(before)
        except helm_errors.ReleaseRecordError:
            return ()
        after = f"{manifest}\n---\n{had}"
        sources = []
        for record, content in self._all:
            # Only what bears the marks of the release is deleted.
            dropped = await asyncio.to_thread(manifests.dropped, content.manifest, after, self._namespace)
            is_foreign = all(content is not own for _, own in self._own)
            sources.append(keeper.Source(record.revision, content, dropped, is_foreign=is_foreign))
        staying = await self._keeper.look(*sources, only_own=True)
        await self._keeper.hold(staying)
        gone = {each: source.revision.number for source in sources for each in source.going}
        for resource, number in gone.items():
            if resource not in staying:
                await self._delete(resource, number)
        return staying.kept.values()

    async def clear_hooks(self) -> None:
        """Remove what the hooks of the tries left; raises :class:`.HelmError` for what cannot be deleted."""
        hooks = [text for _, content in self._own for text in content.hooks]
        since = min((record.made for record, _ in self._own), default=0.0)
        try:
            await hook_objects.clear(self._live, self._request.module, hooks, since)
        except api_errors.ApiError as error:
            raise self._error(error, "what hooks of failed revisions left cannot be deleted") from error

    async def adapt(self, manifest: str) -> None:
        """Bring objects that failed tries made to what the next installation wants, for a Helm that does not.

        When Helm 3 adopts an object, it compares the chart with itself: what left the chart stays in the
        object, and custom resources stay as they are. Raises :class:`.HelmError` for what cannot be changed.
        """
        if self._helm.binary.major >= _SERVER_SIDE_SINCE:
            return
        for record, content in self._own:
            changes = await asyncio.to_thread(_changes, content.manifest, manifest, self._namespace)
            for resource, patch in changes:
                try:
                    await self._live.merge(self._request.module, resource, patch)
                except api_errors.ApiError as error:
                    what = f"{resource}, which revision {record.revision.number} made, cannot be changed"
                    raise self._error(error, what) from error

    async def prune(self, kept: int) -> None:
        """Remove the oldest failed revisions, as an installation does not: ``kept`` of them stay."""
        for record in self._tries[: max(0, len(self._tries) - kept)]:
            await self._records.drop(record)

    async def _delete(self, resource: manifests.ManifestResource, number: int) -> None:
        try:
            await self._live.delete(self._request.module, resource)
        except api_errors.ApiError as error:
            what = f"{resource}, which revision {number} made and the chart no longer has,"
            raise self._error(error, f"{what} cannot be deleted") from error

    def _error(self, error: api_errors.ApiError, note: str) -> helm_errors.HelmError:
        advice = messages.advice(str(error), "", self._namespace, creates=self._request.create_namespace)
        told = f"({note}){advice}"
        return helm_errors.HelmError(
            self._request.module,
            f"{self._request.redact(str(error))} {told}",
            f"{self._request.redact(error.without_values)} {told}",
        )


def _changes(
    before: str, after: str, namespace: str
) -> list[tuple[manifests.ManifestResource, dict[str, Any]]]:
    """Return the merge patches that turn objects of a manifest into what the next one says."""
    wanted = _by_identity(after, namespace)
    changes = []
    for identity, (_, had) in _by_identity(before, namespace).items():
        if identity in wanted:
            resource, wants = wanted[identity]
            if patch := _merge_patch(had, wants):
                changes.append((resource, patch))
    return changes


def _by_identity(
    manifest: str, namespace: str
) -> dict[manifests.Identity, tuple[manifests.ManifestResource, manifests.Object]]:
    found = manifests.find_objects(manifest, lambda _: True)
    return {each.identity(namespace): (each, body) for each, body in found}


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) from one object to another."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        had = before.get(key)
        if isinstance(had, Mapping) and isinstance(value, Mapping):
            if inner := _merge_patch(had, value):
                patch[key] = inner
        elif had != value:
            patch[key] = value
    return patch
