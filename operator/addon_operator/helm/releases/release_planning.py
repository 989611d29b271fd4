"""What is to be done for one module's release, observed and decided: a run does it, ``plan`` shows it."""

import asyncio
import collections
import contextlib
import functools
import itertools
import pathlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.documents import json_pointers, manifest_diff, varying_parts
from addon_operator.helm import command, helm_errors, messages, release_types, verbs
from addon_operator.helm.releases import (
    adopting,
    failed_tries,
    keeper,
    left_objects,
    left_over,
    live_objects,
    live_values,
    record_format,
    release_calls,
    release_records,
    render_inputs,
    rendering,
)
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.modules import keeping, manifests, release

_SHOWN: Final = 10
_MOST_LEFT: Final = 100
"""Fields of a release's objects that are remembered as left over."""
_NO_FILES: Final = verbs.Files(pathlib.Path(), pathlib.Path())


class ReleasePlan(msgspec.Struct, frozen=True):
    """What is to be done for a release, with all that it was decided on."""

    decision: release.Recover | release.Skip | release.Install | release.Upgrade
    record: release_records.Record | None
    """The last revision; ``None`` if there is no release."""
    inputs: render_inputs.RenderInputs
    files: verbs.Files = _NO_FILES
    """What Helm installs or upgrades to; they are there as long as the plan is worked on."""
    manifest: str = ""
    """What the chart renders to, if it was rendered."""
    rendered: release.Rendered | None = None
    """What is saved with the revision then."""


class Stopwatch:
    """Measures the parts of the work on one release."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self.seconds: dict[release_types.Operation, float] = collections.defaultdict(float)
        """What took place so far, and how long it took."""

    @contextlib.contextmanager
    def measured(self, operation: release_types.Operation) -> Iterator[None]:
        """Count what takes place in the context as time of the operation."""
        started = self._clock.monotonic()
        try:
            yield
        finally:
            self.seconds[operation] += self._clock.monotonic() - started


class ReleasePlanner:
    """Decides what is to be done for releases; its parts are those that do it."""

    def __init__(
        self,
        helm: command.Helm,
        records: release_records.ReleaseRecords,
        renderer: rendering.ChartRenderer,
        live: live_objects.LiveObjects,
        options: release_types.Options,
        clock: clocks.Clock,
    ) -> None:
        self.helm = helm
        self.records = records
        self.calls = release_calls.ReleaseCalls(records, helm.warn)
        self.renderer = renderer
        self.live = live
        self.adoptions = adopting.Adoptions(records, live, helm.warn, clock)
        self.options = options
        self.clock = clock
        self.left = left_objects.LeftObjects(records.memory, live, helm.places, clock)
        """What releases left in the cluster."""
        self.kept: Callable[[names.ModuleName, Sequence[keeping.Kept]], None] = lambda *_: None
        """Is told what stays of what a release is about to lose."""
        self._refused: dict[names.ModuleName, tuple[int, release.Checksum, str]] = {}
        """Of releases that stay as they are: revision, inputs that do not render, and what is told of it."""
        self._told: dict[names.ModuleName, set[str]] = collections.defaultdict(set)

    def keeper_of(
        self,
        module: names.ModuleName,
        others: release_types.Others,
        directory: pathlib.Path | None = None,
    ) -> keeper.Keeper:
        """Make what sees to it that nothing of a release is deleted that must stay."""
        made = keeper.Keeper(
            self.helm,
            self.renderer,
            self.live,
            module,
            others,
            self.adoptions,
            self.left,
            directory,
        )
        if self.records.others_write(module):
            made.proven = self.calls.deployed(module)
        return made

    def tries_of(self, request: release_types.ReleaseRequest) -> failed_tries.FailedTries:
        """Make what looks after the failed tries of a release."""
        retaining = self.keeper_of(request.module, request.others, request.directory)
        return failed_tries.FailedTries(self.helm, self.records, self.live, request, retaining, self.calls)

    async def keep(
        self,
        request: release_types.ReleaseRequest,
        record: release_records.Record,
        losing: keeper.Source,
        hooked: Iterable[manifests.ManifestResource],
    ) -> tuple[manifests.ManifestResource, ...]:
        """Let Helm not delete what must stay of what it is about to drop; gives what it is to delete.

        What others have, what cannot be marked, and what is ``hooked``, as one of Helm's hooks has it from
        now on, is taken out of ``record``, from which Helm starts: a hook makes its object anew, without a
        mark, before Helm deletes what left the manifest.
        """
        retaining = self.keeper_of(request.module, request.others, request.directory)
        staying = await retaining.look(losing)
        spared = staying.others.union(await retaining.hold(staying), hooked)
        self.tell_kept(request.module, staying.kept.values())
        if spared:
            await self.records.rewrite(record, lambda text: manifests.without(text, spared.__contains__))
        return tuple(each for each in staying.going if each not in spared)

    async def serve(
        self,
        record: release_records.Record,
        event: str = "",
        content: record_format.Content | None = None,
    ) -> tuple[release_records.Record, record_format.Content, tuple[manifests.ManifestResource, ...]]:
        """Let a revision name its objects in versions that the cluster serves; Helm reads them all, or none.

        So its hooks of the ``event``, and those go whose kind is gone. ``content``: what was just read of it.
        Gives its record and content as they are then, and objects whose kind is not served in any version.
        Raises what :meth:`.ReleaseRecords.rewrite` raises.
        """
        content = content or await self.records.content(record)
        resources = await asyncio.to_thread(manifests.resources, content.manifest)
        hooks = await asyncio.to_thread(manifests.hooks, "\n---\n".join(content.hooks)) if event else ()
        served = await self.live.versions([*resources, *hooks])
        others = {(api, kind): now for (api, kind), now in served.items() if now != api}
        missing = [each for each in hooks if (each.api_version, each.kind) not in served]
        gone = await self.live.gone(missing) if missing else frozenset()
        if others or gone:
            change = functools.partial(manifests.in_versions, versions=others)
            # Helm names a kind that is away for a moment, and that is waited for.
            as_before = {(each.api_version, each.kind): each.api_version for each in missing}
            left = {key: version for key, version in as_before.items() if key not in gone}
            of_hooks = functools.partial(manifests.hook_in_versions, versions={**left, **served})
            last = await self.records.rewrite(record, change, is_other=False, hooks=(event, of_hooks))
            record = last if last is not None and last.object_name == record.object_name else record
            content = await self.records.content(record)
        unserved = tuple(each for each in resources if (each.api_version, each.kind) not in served)
        return record, content, unserved

    async def as_live(
        self,
        request: release_types.ReleaseRequest,
        before: str,
        *others: str,
        written: Collection[manifests.Identity] = (),
    ) -> tuple[str, ...]:
        """Return manifests with what others made of the objects that the first one has.

        See :mod:`.live_values`; others may have ``written`` these. What cannot be read stays as it is.
        """
        made = []
        namespace = self.helm.places.of(request.module).namespace
        for manifest in (before, *others):
            fields: manifests.Fields = {}
            with contextlib.suppress(api_errors.KubernetesError):
                fields, *_ = await live_values.of_release(
                    self.records,
                    self.live,
                    request.module,
                    before,
                    manifest,
                    written or request.others.written(),
                )
            made.append(await asyncio.to_thread(manifests.with_fields, manifest, fields, namespace))
        return tuple(made)

    async def clear_left(
        self, module: names.ModuleName, before: str, tried: Sequence[str], after: str
    ) -> None:
        """Take away what objects still have of manifests before the one that has just been applied."""
        if not after:
            return
        place = self.helm.places.of(module)
        known = self.records.memory.of(place).left
        try:
            left = await left_over.clear(self.live, module, place, before, tried, after)
            still = await left_over.still(self.live, module, place, known, after) if known else ()
        except api_errors.KubernetesError as error:
            text = f"objects may still have fields that the release no longer has: {error}"
            self.helm.warn(module, text)
            return
        for each, fields in itertools.groupby(left, left_objects.resource_of):
            stays = [*fields]
            paths = names.listed([json_pointers.render(one.path) for one in stays], _SHOWN)
            text = f"{each} still has {paths} of an earlier revision, and nobody may remove that"
            command = keeping.deletion(each.kind, stays[0].namespace, each.name)
            self.helm.warn(module, f"{text}: it is gone after '{command}'")
        self.records.memory.change(place, left=(*dict.fromkeys([*left, *still]),)[:_MOST_LEFT])

    async def set_aside(
        self, module: names.ModuleName, record: release_records.Record, manifest: str
    ) -> None:
        """Let Helm, which goes on from a revision, delete nothing by one that others made or changed."""
        if await self.calls.is_trusted(record):
            return
        await self.records.lists.check_labels(module)
        try:
            held = await self.records.cut(record, manifest)
        except helm_errors.ReleaseRecordError as error:
            raise helm_errors.HelmError(module, str(error)) from None
        namespace = self.helm.places.of(module).namespace
        left = await asyncio.to_thread(manifests.dropped, held.manifest, manifest, namespace)
        text = f"revision {record.revision.number} was made or changed by others: nothing is deleted by it"
        if left:
            named = names.listed([str(each) for each in left], _SHOWN)
            text += f", and these objects stay, as only that revision lists them: {named}"
        self.helm.warn(module, text)

    def tell_kept(self, module: names.ModuleName, kept: Iterable[keeping.Kept]) -> None:
        """Report what stays, once until :meth:`settled`: calls that fail are repeated."""
        told = self._told[module]
        if news := [each for each in kept if each.command not in told]:
            self.helm.warn(module, keeping.told(news))
            self.kept(module, news)
            told.update(each.command for each in news)

    def settled(self, module: names.ModuleName) -> None:
        """Note that the release has lost what it was to lose."""
        self._told.pop(module, None)

    async def observe(
        self, request: release_types.ReleaseRequest, watch: Stopwatch
    ) -> tuple[render_inputs.RenderInputs, release_records.Record | None]:
        """Read what the release is made from, and its last revision; no process is started.

        Raises :class:`.ChartError` for a chart that cannot be read, :class:`.HelmError` for a release that
        must not be taken over, and the errors of the API client.
        """
        with watch.measured(release_types.Operation.CHECK):
            inputs = await self.renderer.inputs(request)
            record = await self.records.get(request.module, fresh=request.fresh)
            self.records.check_operator(record)
        is_allowed = self.options.take_ownership is not release_types.TakeOwnership.NEVER
        if not is_allowed and (foreign := self.foreign(request, record)):
            raise helm_errors.HelmError(
                request.module,
                f"{foreign} exists, and TAKE_OWNERSHIP={self.options.take_ownership} does not allow to take "
                "it over: uninstall it, set another releaseName in module.yaml, or allow it",
            )
        await self._check_rejected(request, inputs, record)
        return inputs, record

    async def _check_rejected(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        record: release_records.Record | None,
    ) -> None:
        """Raise an error for what a retry would only do again: it failed and was taken back, or failed as the
        first install after it had taken objects over.
        """
        if request.insists:
            return
        kind: type[helm_errors.HelmError] = helm_errors.HelmError
        rejected = self.adoptions.rejected(request.module)
        if rejected.inputs == inputs.checksum:
            what, why = (
                "the first install took over objects that were there before, and failed",
                rejected.because,
            )
        elif record is not None and record.revision.labels.get(release.REJECTED_LABEL) == inputs.checksum:
            kind, what = helm_errors.RolledBackError, "the last upgrade failed and was taken back"
            why = await self.records.annotation(record, release.REJECTED_BECAUSE)
        else:
            return
        told = (
            f"{what}, and chart and values are the same: change them, or run 'addon-operator module retry "
            f"{request.module}'"
        )
        error = kind(request.module, request.redact(f"{told}; it failed with: {why}" if why else told), told)
        error.is_old = error.is_final = True
        raise error

    def foreign(self, request: release_types.ReleaseRequest, record: release_records.Record | None) -> str:
        """Name the release for a person if no operator made it and it is to be taken over; else nothing."""
        if record is None or not request.is_stock or record.revision.ours or not record.revision.exists:
            return ""
        title = self.helm.places.title(request.module)
        return f"release {title}, revision {record.revision.number}, which no operator made"

    @contextlib.asynccontextmanager
    async def plan(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        record: release_records.Record | None,
        watch: Stopwatch,
    ) -> AsyncIterator[ReleasePlan]:
        """Decide what is to be done for a release whose last revision is ``record``; nothing is changed.

        For a stuck release the plan is how it recovers; after that it is planned again.
        Raises :class:`.HelmError` when the chart does not render.
        """
        is_deployed = record is not None and record.revision.status == release.DEPLOYED
        if record is not None and is_deployed and await self.calls.left_by_call(record):
            told = f"revision {record.revision.number} was left by a call of Helm that was cut off"
            yield ReleasePlan(release.Recover(f"{told}: it counts as failed"), record, inputs)
            return
        state = await self._state(request, inputs, record)
        decision = self._staying(request, state) or release.decide(state)
        if isinstance(decision, release.Recover | release.Skip):
            yield ReleasePlan(decision, record, inputs)
            return
        async with self.renderer.files(request, inputs) as files:
            if isinstance(decision, release.Install):
                manifest = (
                    await self._rendered_again(request, inputs, files, watch) if decision.is_again else ""
                )
                given = await self.renderer.tolerant(request, inputs, files) if manifest else files
                yield ReleasePlan(decision, record, inputs, given, manifest)
                return
            await request.before_change()
            try:
                with watch.measured(release_types.Operation.TEMPLATE):
                    manifest, checksum, applied = await self._compared(request, inputs, files, record)
            except helm_errors.HelmError as error:
                if not await self._stays(request, inputs, state, record, error):
                    raise
                if (staying := self._staying(request, state)) is None:
                    raise
                yield ReleasePlan(staying, record, inputs)
                return
            decision = release.decide(structs.replace(state, manifest=checksum, applied=applied))
            if isinstance(decision, release.Render):
                raise TypeError("what is rendered is to be rendered")
            is_made = isinstance(decision, release.Upgrade)
            given = await self.renderer.tolerant(request, inputs, files) if is_made else files
            yield ReleasePlan(decision, record, inputs, given, manifest, inputs.rendered_to(checksum))

    def _staying(
        self, request: release_types.ReleaseRequest, state: release.ReleaseState
    ) -> release.Skip | None:
        """Leave a release as it is whose chart did not render with these inputs, which are not ours."""
        number, inputs, told = self._refused.get(request.module, (0, "", ""))
        if state.revision is None or (state.revision.number, state.inputs) != (number, inputs):
            return None
        if release.cause_whatever_the_inputs(state, state.revision) is not None:
            return None
        self.helm.doubt(request.module, told)
        return release.Skip(release.SkippedBy.INPUTS, told)

    async def _stays(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        state: release.ReleaseState,
        record: release_records.Record | None,
        error: helm_errors.HelmError,
    ) -> bool:
        """Remember that a chart does not render, if only what it sees of the cluster, or Helm, is another."""
        if record is None or state.known is None or state.known.chart != state.chart:
            return False
        if messages.is_outage(error.message) or isinstance(error, helm_errors.HelmTimeoutError):
            return False
        try:
            before = await self.records.inputs(record)
        except (helm_errors.ReleaseRecordError, api_errors.KubernetesError):
            return False
        given = await asyncio.to_thread(rendering.given_values, request, inputs)
        if given != await asyncio.to_thread(render_inputs.encode_values, dict(before.values)):
            return False
        number = record.revision.number
        told = (
            f"chart and values are those of revision {number}, which stays, but {release.WILL_FAIL}: "
            f"{error.message}"
        )
        self._refused[request.module] = (number, state.inputs, told)
        return True

    async def _state(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        record: release_records.Record | None,
    ) -> release.ReleaseState:
        return release.ReleaseState(
            revision=record.revision if record else None,
            inputs=inputs.checksum,
            chart=inputs.chart.checksum,
            rendered=self.records.rendered(record),
            absent=request.absent,
            was_deployed=await self.upgrades(record),
            lost=self.calls.deployed(request.module) if record is None else 0,
            is_foreign=record is not None and self.records.proofs.is_foreign(record.revision),
        )

    async def is_due(self, request: release_types.ReleaseRequest) -> bool:
        """Say whether the release may be due for a revision: nothing is rendered for that.

        Raises what :meth:`observe` raises.
        """
        inputs = await self.renderer.inputs(request)
        record = await self.records.get(request.module)
        state = await self._state(request, inputs, record)
        return not isinstance(self._staying(request, state) or release.decide(state), release.Skip)

    async def upgrades(self, record: release_records.Record | None) -> bool:
        """Say whether the next call of Helm after this last revision is an upgrade; else it is an install."""
        if record is None or record.revision.status in (release.UNINSTALLED, release.UNINSTALLING):
            return False
        if record.revision.status in (release.DEPLOYED, release.SUPERSEDED):
            return True
        history = await self.records.history(record.revision.release)
        return await failed_tries.was_deployed(self.records, history)

    async def _rendered_again(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        files: verbs.Files,
        watch: Stopwatch,
    ) -> str:
        """Return what another try of an installation renders to: earlier ones may have made more."""
        with watch.measured(release_types.Operation.TEMPLATE):
            return await self.renderer.render(request, inputs, files, is_upgrade=False)

    async def may_wait(self, plan: ReleasePlan) -> bool:
        """Say whether the plan is a revision that changes what runs.

        Another try while nothing is deployed, and one that only brings back what is absent, are none.
        """
        if not isinstance(plan.decision, release.Upgrade) or plan.decision.heals or plan.record is None:
            return False
        if plan.record.revision.status == release.DEPLOYED:
            return True
        return await self.records.upgraded_from(plan.record) is not plan.record

    async def _compared(
        self,
        request: release_types.ReleaseRequest,
        inputs: render_inputs.RenderInputs,
        files: verbs.Files,
        record: release_records.Record | None,
    ) -> tuple[str, release.Checksum, bool]:
        """Return the manifest, its checksum, and whether the last revision asks for the same by its record.

        A chart may render to something else each time. Only if it does, another render shows what that is.
        """
        manifest = await self.renderer.render(request, inputs, files)
        checksum = await asyncio.to_thread(rendering.manifest_checksum, manifest)
        last_rendered = self._known(record)
        if last_rendered is not None and last_rendered.manifest == checksum:
            return manifest, checksum, False
        applied = None
        if last_rendered is None or inputs.is_by_chance:
            applied = await self._applied_manifest(request, record)
        if await self._is_same(request, applied, manifest, manifest):
            return manifest, checksum, True
        if not inputs.is_by_chance:
            return manifest, checksum, False
        again = await self.renderer.again(request, inputs, files)
        checksum = await asyncio.to_thread(rendering.manifest_checksum, manifest, again)
        if last_rendered is not None and last_rendered.manifest == checksum:
            return manifest, checksum, False
        return manifest, checksum, await self._is_same(request, applied, manifest, again)

    def _known(self, record: release_records.Record | None) -> release.Rendered | None:
        return self.records.rendered(record) or record.revision.saved if record else None

    async def _applied_manifest(
        self, request: release_types.ReleaseRequest, record: release_records.Record | None
    ) -> str | None:
        """Return what the last revision applied, if that worked and the release is an operator's."""
        if record is None or record.revision.status != release.DEPLOYED or self.foreign(request, record):
            return None
        try:
            return await self.records.manifest(record, with_hooks=True)
        except helm_errors.ReleaseRecordError:
            return None

    async def _is_same(
        self, request: release_types.ReleaseRequest, applied: str | None, rendered: str, again: str
    ) -> bool:
        if applied is None:
            return False
        namespace = self.helm.places.of(request.module).namespace
        if await asyncio.to_thread(self.same, applied, rendered, again, namespace):
            return True
        # The record has what others made of the objects.
        applied, rendered, again = await self.as_live(request, applied, rendered, again)
        return await asyncio.to_thread(self.same, applied, rendered, again, namespace)

    def same(self, applied: str, rendered: str, again: str, namespace: str) -> bool:
        """Say whether two manifests are the same but for what differs between renders; takes a moment."""
        labels = self.options.go_operator_labels
        return varying_parts.same(
            *(
                manifest_diff.unlabelled(manifest_diff.parse(each), labels, namespace)
                for each in (applied, rendered, again)
            )
        )
