"""Uninstalls a release: one that is to go, one whose first install failed, one whose removal was cut off.

What stays is known before: it keeps Helm's own policy in the record, and what other releases have is taken
out of it. A removal that was begun can be taken back as long as Helm has not returned: the record says again
what it said before. By a record that others made or changed Helm does nothing: of what it lists only goes
what bears the marks of the release in the cluster, and no hook of the chart runs.
"""

import asyncio
import contextlib
import pathlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from addon_operator.helm import command, helm_errors, release_types, verbs
from addon_operator.helm.releases import (
    failed_tries,
    hook_objects,
    keeper,
    record_format,
    release_calls,
    release_planning,
    release_records,
)
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.modules import keeping, manifests, release

_NAMED: Final = 3
_NAMED_OF_HOOKS: Final = 10
_DELETES: Final = re.compile(r"\b(?:pre|post)-delete\b")
"""In manifests of hooks that run only when a release is deleted."""
_NOT_DELETED: Final = "failed to delete release"
_BEGUN: Final[Mapping[str, str]] = {release.REMOVAL_LABEL: release.REMOVAL_BEGUN}


class Uninstallation:
    """Uninstalls one release; used once."""

    def __init__(
        self,
        planner: release_planning.ReleasePlanner,
        call: command.Call,
        others: release_types.Others,
        directory: pathlib.Path | None = None,
    ) -> None:
        """``directory``: that of the module's chart, if it is there."""
        self._planner = planner
        self._records = planner.records
        self._call = call
        self._others = others
        self._keeper = planner.keeper_of(call.module, others, directory)

    async def run(
        self, record: release_records.Record, *, keep_record: bool = False, data_goes: bool = False
    ) -> None:
        """Do it; ``data_goes``: with the data that the deployed revision has.

        With ``keep_record`` the record says that something is left to be done, until it is removed once more
        without. Raises :class:`.HelmError` with Helm's own message, and the errors of the API client.
        """
        calls = self._planner.calls
        is_left = record.revision.exists and await calls.left_by_call(record)
        if is_left and (before := await calls.before(record)) is not None:
            await self._delete_own(record, before)
            await self._records.drop(record)
            record = before
        try:
            await self._records.content(record)
        except helm_errors.ForeignRecordError:
            await self._remove_without_helm(record, keep_record=keep_record)
            return
        except helm_errors.ReleaseRecordError as error:
            before = await self._without_failed(record, str(error))
            await self.run(before, keep_record=keep_record, data_goes=data_goes)
            return
        await self._planner.calls.begin(self._call.module, release_calls.UNINSTALL, record.revision.number)
        going: tuple[manifests.ManifestResource, ...] = ()
        of_hooks: tuple[manifests.ManifestResource, ...] = ()
        first = self._planner.calls.first(self._call.module)
        if record.revision.exists:
            record, going = await self._prepare(record, data_goes=data_goes)
            of_hooks = await self._made_by_hooks(record, first)
        is_kept = keep_record and await self._begin(record)
        number = record.revision.number
        await self._planner.calls.check_again(self._call.module, number, number)
        try:
            await verbs.uninstall(
                self._planner.helm, self._call, self._planner.options.timeout, keep_history=is_kept
            )
        except helm_errors.HelmError as error:
            if _NOT_DELETED in error.message:
                await self._delete_again(going)
            raise await failed_tries.blamed(self._records, error) from error.__cause__
        self._planner.settled(self._call.module)
        await self._planner.calls.end_removal(self._call.module)
        if of_hooks:
            await self._clear(of_hooks, first)
        if going:
            left = await self._planner.live.leaving(self._call.module, going)
            self._planner.left.note_leaving(self._call.module, left)

    async def _delete_again(self, going: Sequence[manifests.ManifestResource]) -> None:
        """Raise why an object that Helm has tried to delete cannot be deleted: Helm does not say it."""
        module = self._call.module
        for resource in going:
            try:
                await self._planner.live.delete(module, resource)
            except api_errors.ApiError as error:
                text = f"{resource} cannot be deleted: "
                raise helm_errors.HelmError(
                    module, f"{text}{error}", f"{text}{error.without_values}"
                ) from error

    async def _made_by_hooks(
        self, record: release_records.Record, first: float
    ) -> tuple[manifests.ManifestResource, ...]:
        """Say what hooks of the chart make; what those of an earlier try to delete left goes."""
        with contextlib.suppress(helm_errors.ReleaseRecordError):
            hooks = (await self._records.content(record)).hooks
            of_deletes = filter(_DELETES.search, hooks)
            await hook_objects.clear(self._planner.live, self._call.module, of_deletes, first)
            return await asyncio.to_thread(manifests.hooks, "\n---\n".join(hooks)) if hooks else ()
        return ()

    async def _clear(self, of_hooks: Sequence[manifests.ManifestResource], first: float) -> None:
        """Delete what of Helm's hooks stands in everybody's way, and name what else they left."""
        module, live_objects = self._call.module, self._planner.live
        others = await self._others.give_up(of_hooks)
        found = await live_objects.metadata(module, of_hooks)
        in_the_way = {
            each
            for each, live in found.items()
            if live and each not in others and keeping.goes_with_hooks(each, live, first)
        }
        going = in_the_way - await self._made_by_others(in_the_way) if in_the_way else in_the_way
        left: list[str] = []
        for resource, live in found.items():
            if not live or live["metadata"].get("deletionTimestamp"):
                continue
            try:
                if resource in going:
                    await live_objects.remove(module, resource, live)
                    continue
            except api_errors.ApiError as error:
                self._planner.helm.warn(module, f"{resource}, which a hook of the chart made, stays: {error}")
            left.append(str(resource))
        if left:
            text = f"hooks of the chart made objects that Helm leaves: {names.listed(left, _NAMED_OF_HOOKS)}"
            self._planner.helm.warn(module, text)

    async def _made_by_others(
        self, of_hooks: Collection[manifests.ManifestResource]
    ) -> frozenset[manifests.ManifestResource]:
        """Return which of these objects, that are in no namespace, hooks of other releases make, too.

        So does the release of a renamed module. Of a record that cannot be read, all of them may be.
        """
        theirs = set[tuple[str, str, str]]()
        for name, record in self._records.known.items():
            if name == self._call.module or not record.revision.exists:
                continue
            try:
                hooks = (await self._records.content(record, whoever=True)).hooks
            except api_errors.NotFound:
                continue
            except helm_errors.ReleaseRecordError:
                return frozenset(of_hooks)
            made = await asyncio.to_thread(manifests.hooks, "\n---\n".join(hooks)) if hooks else ()
            theirs.update((each.group, each.kind, each.name) for each in made)
        return frozenset(each for each in of_hooks if (each.group, each.kind, each.name) in theirs)

    async def take_back(self, record: release_records.Record) -> release_records.Record | None:
        """Take back what :meth:`run` began, and give the record as it is then.

        Raises :class:`.LeavingError` as long as objects of the release are being deleted or moved,
        :class:`.ReleaseRecordError` when the record cannot be decoded, and what the client raises.
        """
        module = self._call.module
        content = await self._records.content(record)
        resources = await asyncio.to_thread(manifests.resources, content.manifest)
        self._planner.left.moves.begin(module, resources, ())
        leaving = await self._planner.live.leaving(module, resources)
        self._planner.left.note_leaving(module, leaving)
        if leaving:
            text = helm_errors.leaving_text(", ".join(map(str, leaving)))
            raise helm_errors.LeavingError(module, text)
        live = await self._planner.live.metadata(
            module, list(filter(self._keeper.may_be_marked(), resources))
        )
        kept = [each for each, found in live.items() if found and keeping.is_marked(found)]
        status = self._planner.calls.before_removal(record)
        found = await self._records.put_back(record, status, kept)
        await self._keeper.take_back(content.manifest, resources)
        if content.began_before_removal:
            hooks = names.listed(content.began_before_removal, _NAMED)
            text = f"the removal is taken back, and what hooks of the chart did is not: {hooks}"
            self._planner.helm.warn(module, text)
        await self._planner.calls.end(module)
        return found

    async def _without_failed(self, record: release_records.Record, problem: str) -> release_records.Record:
        """Drop a failed revision that cannot be decoded, and give the one before it.

        Raises :class:`.HelmError` for any other one: Helm must not read what we cannot.
        """
        if record.revision.status == release.FAILED:
            before = await self._records.drop(record)
            if before is not None and before.revision.number < record.revision.number:
                self._planner.helm.warn(self._call.module, f"{problem}; it failed, and is left out")
                return before
        raise helm_errors.HelmError(self._call.module, problem)

    async def _remove_without_helm(self, record: release_records.Record, *, keep_record: bool) -> None:
        title = self._planner.helm.places.title(self._call.module)
        self._planner.helm.warn(
            self._call.module,
            f"release {title} is removed without the hooks of its chart: others made or changed revision "
            f"{record.revision.number}; only what bears the marks of the release goes",
        )
        await self._planner.calls.begin(self._call.module, release_calls.UNINSTALL, record.revision.number)
        history = await self._records.history(self._call.module)
        if record.revision.exists:
            for each in reversed(history):
                await self._delete_own(each)
        for each in history:
            if keep_record and each.revision.number == record.revision.number:
                await self._records.mark_uninstalled(each, _BEGUN)
            else:
                await self._records.drop(each)
        self._planner.settled(self._call.module)
        await self._planner.calls.end_removal(self._call.module)

    async def _delete_own(
        self, record: release_records.Record, before: release_records.Record | None = None
    ) -> None:
        """Delete what a revision lists, ``before`` does not, and the cluster says is of the release."""
        try:
            content = await self._records.content(record, whoever=True)
            had = "" if before is None else await self._records.manifest(before)
        except (helm_errors.ReleaseRecordError, api_errors.NotFound):
            return
        namespace = self._planner.helm.places.of(self._call.module).namespace
        going = await asyncio.to_thread(manifests.dropped, content.manifest, had, namespace)
        source = keeper.Source(record.revision, content, going, is_foreign=True)
        self._planner.left.moves.begin_removal(self._call.module, going)
        staying = await self._keeper.look(source, only_own=True)
        await self._keeper.hold(staying)
        self._planner.tell_kept(self._call.module, staying.kept.values())
        for resource in reversed(going):
            if resource not in staying:
                await self._planner.live.delete(self._call.module, resource)

    async def look(self, record: release_records.Record, *, data_goes: bool = False) -> keeper.Staying:
        """Say what would stay; nothing is changed."""
        content = await self._records.content(record)
        going = await asyncio.to_thread(manifests.resources, content.manifest)
        return await self._look(record, content, going, data_goes=data_goes)

    async def _look(
        self,
        record: release_records.Record,
        content: record_format.Content,
        going: Sequence[manifests.ManifestResource],
        *,
        data_goes: bool,
    ) -> keeper.Staying:
        goes = await self._deployed() if data_goes else frozenset()
        source = keeper.Source(record.revision, content, tuple(going))
        return await self._keeper.look(source, data_goes=[each for each in going if each in goes])

    async def _prepare(
        self, record: release_records.Record, *, data_goes: bool
    ) -> tuple[release_records.Record, tuple[manifests.ManifestResource, ...]]:
        """Let Helm see in the record what goes and what stays; gives it as it is then, and what goes."""
        if record.revision.status == release.FAILED:
            record = await self._complete(record)
        moves = self._planner.left.moves
        try:
            record, content, _ = await self._planner.serve(record, "delete")
            all_of_it = await asyncio.to_thread(manifests.resources, content.manifest)
            moves.begin_removal(self._call.module, all_of_it)
            staying = await self._look(record, content, all_of_it, data_goes=data_goes)
        except helm_errors.ReleaseRecordError as error:
            # Helm cannot read it either, and removes nothing.
            text = f"what the removal of the release has to leave is not known: {error}"
            self._planner.helm.warn(self._call.module, text)
            return record, ()
        await self._keeper.hold(staying)
        self._planner.tell_kept(self._call.module, staying.kept.values())
        if staying.with_data:
            lost = names.listed(
                [keeping.counted(str(each), count) for each, count in staying.with_data.items()],
                _NAMED_OF_HOOKS,
            )
            self._planner.helm.warn(self._call.module, f"removed with the data, as removal.data says: {lost}")
        left = {**staying.kept, **staying.moving}
        if staying.others or left:
            record = await self._records.leave(record, staying.others, left.keys()) or record
        # Who gains what stays need not wait until Helm has returned: it looks at the record.
        moves.begin_removal(self._call.module, staying.going)
        return record, staying.going

    async def _complete(self, record: release_records.Record) -> release_records.Record:
        """Have Helm remove what a failed upgrade was to remove, too."""
        try:
            return await self._records.complete(record) or record
        except helm_errors.ReleaseRecordError as error:
            text = f"objects that the last upgrade was to remove and could not are left: {error}"
            self._planner.helm.warn(self._call.module, text)
        return record

    async def _deployed(self) -> frozenset[manifests.ManifestResource]:
        deployed = await self._records.deployed(self._call.module)
        return frozenset(manifests.resources(deployed.manifest)) if deployed else frozenset()

    async def _begin(self, record: release_records.Record) -> bool:
        """Let the record say that the removal is unfinished; whether it does."""
        try:
            return await self._records.add_labels(record, _BEGUN) is not None
        except api_errors.KubernetesError as error:
            self._planner.helm.warn(
                self._call.module,
                "if the operator restarts during the removal, it is not continued: "
                f"the record cannot be marked: {error}",
            )
        return False
