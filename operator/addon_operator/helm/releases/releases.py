"""Releases of modules: made, kept up to date and removed, with as little Helm as possible."""

import asyncio
import collections
import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from typing import Final

from msgspec import structs

from addon_operator.helm import command, helm_errors, places, release_types, remembered
from addon_operator.helm.releases import (
    chart_tests,
    hook_objects,
    keeper,
    kept_revisions,
    release_calls,
    release_planning,
    release_preview,
    release_records,
    release_run,
    render_inputs,
    rollback,
    uninstalling,
)
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors
from addon_operator.modules import keeping, manifests, model, release
from addon_operator.modules.drift import not_ours

_ALONE: Final = release_types.Others()


class ReleaseManager:
    """The releases of modules; each is worked on by one caller at a time."""

    def __init__(self, planner: release_planning.ReleasePlanner) -> None:
        self._planner = planner
        self._records = planner.records
        self.places = planner.helm.places
        """Where the releases of modules are."""
        self._locks: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self.left = planner.left
        """What the releases left in the cluster."""
        self._foreign: dict[names.ModuleName, str] = {}
        self.judged: Callable[[names.ModuleName, str, bool], None] = lambda *_: None
        """Is told that others made or changed the record of a module's release, or, with no text, that nobody
        did any more; and whether that is the first that this process says of it.
        """

    def report_kept(self, listener: Callable[[names.ModuleName, Sequence[keeping.Kept]], None]) -> None:
        """Tell the listener from now on what stays of what releases lose."""
        self._planner.kept = listener

    def assign(self, modules: Iterable[model.Module]) -> frozenset[str]:
        """Say which modules there are; gives those whose release was elsewhere until now."""
        moved = self.places.assign(modules)
        for name in moved:
            self._records.forget(name)
        return moved

    async def observe_all(self) -> dict[str, release.Revision]:
        """Return the last revision of every release that there is or whose removal is unfinished.

        Without :attr:`unremembered`. One list request.
        """
        records = await self._records.read_all()
        return {
            name: record.revision
            for name, record in records.items()
            if (record.revision.exists or record.revision.half_removed) and not self._is_unremembered(name)
        }

    @property
    def unremembered(self) -> frozenset[str]:
        """Modules of whose release others may have written all there is: nothing is remembered of it.

        An installation takes it over; a removal, with its hooks, does not begin because of it.
        """
        return frozenset(filter(self._is_unremembered, self._records.known))

    def _is_unremembered(self, name: str) -> bool:
        is_remembered = bool(self._records.memory.of(self.places.of(name)).life)
        return self._records.others_write(name) and self.places.is_of_module(name) and not is_remembered

    async def remember(self) -> frozenset[str]:
        """Let the memory have all releases of ours, also for when their modules are gone.

        To be called after :meth:`observe_all`; gives namespaces whose releases may not be read.
        """
        try:
            await self._planner.calls.observed()
        except errors.AddonOperatorError as error:
            text = f"which releases there are could not be saved, and is tried again: {error}"
            self._planner.helm.warn(names.ModuleName(""), text)
        return self._records.unreadable

    @property
    def taken_over(self) -> frozenset[str]:
        """Releases of which nothing was remembered, and that are not removed before a converge is through."""
        return self._planner.calls.taken_over

    def converged(self) -> None:
        """Note that a converge is through."""
        self._planner.calls.taken_over = frozenset()

    def is_going(self, module: names.ModuleName) -> bool:
        """Say whether the removal of a module's release is under way."""
        return self._planner.calls.is_removing(module)

    async def gives_way(self, place: places.ReleaseLocation) -> bool:
        """Say whether others get what that release had: it is a module's, or there is none any more.

        Raises what the client raises.
        """
        key = self.places.key(place)
        return self.places.is_of_module(key) or await self._records.read(key) is None

    async def ensure(self, request: release_types.ReleaseRequest) -> release_types.ReleaseOutcome:
        """Install or upgrade the module's release if that is necessary.

        Raises :class:`.HelmError` with Helm's own message,
        :class:`.ChartError` for a chart that cannot be read, and the errors of the
        API client. Cancelling it ends Helm first.
        """
        async with self._alone(request.module):
            outcome = await release_run.ReleaseRun(self._planner, request).run()
            if outcome.action is not release_types.ReleaseAction.HELD_BACK:
                place = self.places.of(request.module)
                self._records.memory.change(place, removal=request.removal, confirmed=0)
        if outcome.action in (release_types.ReleaseAction.INSTALLED, release_types.ReleaseAction.UPGRADED):
            self._note_foreign(request.module, "")
        return outcome

    async def roll_back(
        self, request: release_types.ReleaseRequest, failed: Exception, *, unhealthy: bool
    ) -> helm_errors.HelmError | None:
        """Take back the last revision of the module's release, which failed; see :meth:`.Rollback.run`."""
        async with self._alone(request.module):
            return await rollback.Rollback(self._planner, request).run(failed, unhealthy=unhealthy)

    async def mark(self, module: names.ModuleName, label: str) -> None:
        """Save with the last revision that something is true of it: the label has its number.

        Raises the errors of the API client.
        """
        async with self._alone(module):
            record = await self._records.get(module)
            if record is not None and not record.revision.is_marked(label):
                # Tests change the record, too.
                record = await self._records.read(module) or record
                await self._records.add_labels(record, {label: str(record.revision.number)})
                if label == release.HEALTHY_LABEL:
                    self._records.memory.change(self.places.of(module), healthy=record.revision.number)

    async def is_marked(self, module: names.ModuleName, label: str) -> bool:
        """Say whether :meth:`mark` was called for the last revision, or there is none."""
        record = await self._records.get(module)
        return record is None or record.revision.is_marked(label)

    async def test(self, request: release_types.ReleaseRequest) -> None:
        """Run the tests of the module's chart.

        Raises :class:`.HelmError` with the last lines of the pods that failed.
        """
        async with self._alone(request.module):
            await chart_tests.ChartTests(self._planner, request).run()

    async def render(self, request: release_types.ReleaseRequest) -> str:
        """Return what the module's chart renders to in the next call of Helm, with hooks; touches no release.

        Raises what :meth:`ensure` raises.
        """
        record = await self._records.get(request.module, fresh=request.fresh)
        inputs = await self._planner.renderer.inputs(request)
        async with self._planner.renderer.files(request, inputs) as files:
            is_upgrade = await self._planner.upgrades(record)
            return await self._planner.renderer.render(request, inputs, files, is_upgrade=is_upgrade)

    async def preview(self, request: release_types.ReleaseRequest) -> release_types.ReleasePreview:
        """Return what :meth:`ensure` would do, and why; nothing is changed. Raises what that raises."""
        async with self._alone(request.module):
            return await release_preview.preview(self._planner, request)

    async def scaled(self, namespaces: Collection[str]) -> frozenset[not_ours.Target]:
        """See :meth:`.LiveObjects.scaled`."""
        return await self._planner.live.scaled(namespaces)

    async def take_over(self, module: names.ModuleName, body: manifests.Object) -> None:
        """See :meth:`.LiveObjects.take_over`; ``body`` is what the module's manifest says."""
        if (resource := manifests.resource_of(body)) is not None:
            await self._planner.live.take_over(module, resource, body)

    async def is_due(self, request: release_types.ReleaseRequest) -> bool:
        """Say whether the release may be due for a revision; see :meth:`.ReleasePlanner.is_due`."""
        return await self._planner.is_due(request)

    async def may_gain(self, request: release_types.ReleaseRequest) -> bool:
        """Say whether a release that is due would have what left others; its chart is rendered for that.

        Raises what :meth:`ensure` raises.
        """
        manifest = await self.render(request)
        is_moving = self.left.are_moving(self.places.of(request.module).namespace)
        return any(map(is_moving, await asyncio.to_thread(manifests.resources, manifest)))

    @property
    def has_moving(self) -> bool:
        """Whether objects left releases that other modules may gain."""
        return bool(self._records.memory.moving)

    async def let_go(self, others_of: Callable[[names.ModuleName], release_types.Others]) -> None:
        """Delete what releases lost and no other one has gained; to be called when no module is left to run.

        Raises the first error of the API client, after all releases.
        """
        refused: list[api_errors.ApiError] = []
        for place in self._records.memory.moving:
            module = names.ModuleName(self.places.key(place))
            if not self._locks[module].locked():
                async with self._locks[module]:
                    try:
                        kept, errors_of = await self._planner.keeper_of(module, others_of(module)).let_go()
                    except api_errors.ApiError as error:
                        refused.append(error)
                        continue
                    finally:
                        self.left.moves.end(module)
                    refused += errors_of
                    self._planner.tell_kept(module, kept)
                    self._planner.settled(module)
        if refused:
            raise refused[0]

    async def remove(
        self,
        module: names.ModuleName,
        *,
        keep_record: bool = False,
        others: release_types.Others = _ALONE,
        directory: pathlib.Path | None = None,
    ) -> bool:
        """Uninstall a release; ``False`` if there is none, which is found out without Helm.

        See :class:`.Uninstallation`. Raises :class:`.HelmError` with Helm's own message.
        """
        async with self._alone(module):
            record = await self._records.read(module)
            self._records.check_operator(record)
            if record is None or not (record.revision.exists or record.revision.half_removed):
                return False
            if not self.places.is_of_module(module) and not await self._may_purge(record):
                return False
            removal = uninstalling.Uninstallation(self._planner, command.Call(module), others, directory)
            await removal.run(record, keep_record=keep_record, data_goes=self._data_goes(module))
            self._records.memory.change(self.places.of(module), rejected=remembered.Rejected())
            return record.revision.exists

    async def preview_removal(
        self, module: names.ModuleName, others: release_types.Others, directory: pathlib.Path | None = None
    ) -> keeper.Staying:
        """Return what :meth:`remove` would delete, and what would stay; nothing is changed.

        Raises :class:`.ReleaseRecordError` when the record cannot be decoded, and what the client raises.
        """
        record = await self._records.get(module)
        if record is None or not record.revision.exists:
            return keeper.Staying()
        removal = uninstalling.Uninstallation(self._planner, command.Call(module), others, directory)
        return await removal.look(record, data_goes=self._data_goes(module))

    def is_unconfirmed(self, release: str, revision: int) -> bool:
        """Say whether somebody has to confirm the removal of a release before it begins."""
        known = self._records.memory.of(self.places.of(release))
        is_begun = known.call is not None and known.call.verb == release_calls.UNINSTALL
        return known.removal.confirm and known.confirmed != revision and not is_begun

    def confirm(self, release: str, revision: int) -> bool:
        """Remember that somebody has confirmed the removal of a release with this last revision.

        One without a module may be elsewhere than its name says. Gives whether that is news.
        """
        memory = self._records.memory
        found = [self.places.of(release)]
        if not memory.of(found[0]).removal.confirm:
            found = [
                each for each in memory.locations if each.name == release and not self._is_of_module(each)
            ]
        news = [
            each
            for each in found
            if memory.of(each).removal.confirm and memory.of(each).confirmed != revision
        ]
        for each in news:
            memory.change(each, confirmed=revision)
        return bool(news)

    def _is_of_module(self, place: places.ReleaseLocation) -> bool:
        return self.places.is_of_module(self.places.key(place))

    @property
    def to_confirm(self) -> frozenset[str]:
        """The names of all releases whose removal somebody has to confirm, or has."""
        memory = self._records.memory
        return frozenset(each.name for each in memory.locations if memory.of(each).removal.confirm)

    def keep_data(self, release: str) -> None:
        """Let data stay when a release is removed, whatever its module said: that may be renamed."""
        if not self._data_goes(release):
            return
        memory, place = self._records.memory, self.places.of(release)
        removal = remembered.Removal(data="keep", confirm=memory.of(place).removal.confirm)
        memory.change(place, removal=removal)
        self._planner.helm.warn(
            names.ModuleName(release),
            "its directory is gone while another module is new, which may be its new name: what holds data "
            "stays when the release is removed, although removal.data says delete",
        )

    def _data_goes(self, module: str) -> bool:
        """Say whether data goes with a release that is removed; one that only moved loses none."""
        said = self._records.memory.of(self.places.of(module)).removal.data
        return (said or self._planner.options.removal_data) == "delete" and not self.places.successor(module)

    async def _may_purge(self, record: release_records.Record) -> bool:
        """Say whether a release without a module may go: it is our own, or one that all are purged with."""
        if not (record.revision.ours or self.places.is_elsewhere(record.revision.release)):
            return True
        try:
            await self._records.content(record)
        except helm_errors.ForeignRecordError:
            pass
        except helm_errors.ReleaseRecordError as error:
            raise helm_errors.HelmError(record.revision.release, str(error)) from None
        else:
            return True
        place = self.places.of(record.revision.release)
        self._planner.helm.warn(
            names.ModuleName(record.revision.release),
            f"release {place} stays: others made or changed revision {record.revision.number}, so nobody "
            f"knows whose it is; remove it with 'helm uninstall {place.name} --namespace {place.namespace}'",
        )
        return False

    def is_ours(self, revision: release.Revision) -> bool:
        """Say whether a release is remembered as this operator's; a label alone proves nothing."""
        memory = self._records.memory
        is_remembered = not memory.is_known or bool(memory.of(self.places.of(revision.release)).life)
        return revision.ours and is_remembered

    async def manifest(self, module: names.ModuleName) -> str | None:
        """Return what Helm applied with the last revision, without hooks; ``None`` if there is no release.

        Raises :class:`.ReleaseRecordError` when the record cannot be decoded.
        """
        record = await self._records.get(module)
        return None if record is None else await self._records.manifest(record)

    async def last_revisions(
        self, module: names.ModuleName
    ) -> list[tuple[release_types.RevisionInputs, str]]:
        """Return inputs and manifests of the last two revisions that are kept, the older first.

        Raises :class:`.ReleaseRecordError` when a record cannot be decoded.
        """
        last = (await self._records.history(module))[-2:]
        return [(await self._records.inputs(each), await self._records.manifest(each)) for each in last]

    async def kept(self, module: names.ModuleName) -> list[kept_revisions.KeptRevision]:
        """Read the revisions of a release that a plan may look at, in their order."""
        return await kept_revisions.of_release(self._records, module)

    async def inputs(self, request: release_types.ReleaseRequest) -> render_inputs.RenderInputs:
        """Read what the manifest of a module would be made from; raises as :meth:`.ChartRenderer.inputs`."""
        return await self._planner.renderer.inputs(request)

    async def hook_at_work(self, module: names.ModuleName) -> tuple[str, bool]:
        """Return which hook the call of Helm under way waits for; empty if it does not, or nobody knows.

        See :func:`.hook_objects.at_work`.
        """
        with contextlib.suppress(helm_errors.ReleaseRecordError, api_errors.KubernetesError):
            last = (await self._records.history(module))[-1:]
            if last and last[0].revision.is_busy:
                # It names objects to look at: whoever wrote it, nothing is done to them.
                content = await self._records.content(last[0], whoever=True)
                return await hook_objects.at_work(self._planner.live, module, content.hooks)
        return "", False

    async def revision_inputs(self, module: names.ModuleName) -> release_types.RevisionInputs | None:
        """Return what the last revision was made with, and where hooks wrote to; ``None`` without a release.

        Raises :class:`.ReleaseRecordError` when the record cannot be decoded.
        """
        return await self._records.revision_inputs(module)

    async def deployed(self, module: names.ModuleName) -> release_types.Deployed | None:
        """Return what the module's release consists of, read now; ``None`` if no revision of it is deployed.

        Raises :class:`.ReleaseRecordError` when the record cannot be decoded.
        """
        try:
            deployed = await self._records.deployed(module)
        except helm_errors.ForeignRecordError as error:
            self._note_foreign(module, str(error))
            raise
        self._note_foreign(module, "")
        if deployed is None or not (left := self._records.memory.of(self.places.of(module)).left):
            return deployed
        return structs.replace(deployed, left=left)

    @property
    def record_kind(self) -> str:
        """The kind of the objects that Helm keeps its records in."""
        return self._records.kind

    def knows(self, module: names.ModuleName, number: int, version: str, *, is_last: bool = False) -> bool:
        """Say whether a record was read or written here in this state, or says nothing of what is deployed.

        ``version``: its resourceVersion, empty if it is gone; ``is_last``: the release has no later one.
        """
        record = self._records.known.get(module)
        if record is None:
            return not version
        if number == record.revision.number:
            return version == record.resource_version
        deployed = self._records.memory.of(self.places.of(module)).deployed
        return number < record.revision.number and number != deployed and not is_last

    def last_revision(self, module: names.ModuleName) -> int:
        """Return the number of the last revision as it was last read; 0 without one."""
        record = self._records.known.get(module)
        return 0 if record is None else record.revision.number

    async def look_at_record(self, module: names.ModuleName) -> str:
        """Judge the record of the last revision anew; gives why the release has to be put in order.

        That is not so for a record of others, which is reported. Raises what the client raises.
        """
        async with self._alone(module):
            before, record = self._records.known.get(module), await self._records.read(module)
            number = 0 if record is None else record.revision.number
            if before is not None and before.revision.exists and number < before.revision.number:
                return f"the record {self._records.title(before)} is gone"
            if record is None or record.revision.is_busy:
                return ""
            if not record.revision.exists or record.revision.status == release.SUPERSEDED:
                return f"the record {self._records.title(record)} says {record.revision.status}"
            try:
                await self.deployed(module)
            except helm_errors.ForeignRecordError:
                return ""
            except helm_errors.ReleaseRecordError as error:
                return str(error)
        return ""

    def _note_foreign(self, module: names.ModuleName, text: str) -> None:
        is_first = module not in self._foreign
        if text != self._foreign.get(module, ""):
            self.judged(module, text, is_first)
        self._foreign[module] = text

    @contextlib.asynccontextmanager
    async def _alone(self, module: names.ModuleName) -> AsyncIterator[None]:
        async with self._locks[module]:
            try:
                yield
            except BaseException:
                # Helm may have been stopped half-way: what was known of the release is in doubt.
                self._records.doubt(module)
                raise
            finally:
                self.left.moves.end(module)
