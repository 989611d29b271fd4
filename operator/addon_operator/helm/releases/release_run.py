"""One run of one module's release: what its plan says is done.

1. Observe: the inputs of the render, and the record of the last revision.
2. Plan (:mod:`.release_planning`): :func:`.release.decide` maps what was observed to one action. Equal
   checksums of the inputs mean that nothing is rendered; a render is compared with what is installed.
3. Recover, if the last revision was left half done: a pending one counts as failed, a removal is taken back.
   Then plan again, a few times at most: somebody else may be at work on the release.
4. Skip, and save checksums that are new; or hold a revision back that has to wait; or install, until that
   worked once; or upgrade:
   a. Make no revision for what the API server refused last time and refuses still.
   b. Delete what only failed tries made, and let Helm not delete what holds data or is in other releases.
   c. Let another try of a failed revision take its place in the history.
   d. Call Helm. Objects of others are taken over if ``TAKE_OWNERSHIP`` allows it.
5. Save the checksums with the revision, for what the next run will see: definitions of the chart itself may
   change what it renders to.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import structs

from addon_operator.documents import json_documents
from addon_operator.helm import helm_errors, messages, release_types, remembered, verbs
from addon_operator.helm.releases import (
    failed_tries,
    hook_objects,
    keeper,
    left_over,
    live_objects,
    live_values,
    merge_conflicts,
    record_format,
    release_planning,
    release_preview,
    release_records,
    render_inputs,
    rendering,
    saved_places,
    uninstalling,
    unknown_fields,
)
from addon_operator.kernel import errors
from addon_operator.kube import api_errors
from addon_operator.modules import crd_files, manifests, release

_RECOVERIES: Final = 3


class ReleaseRun:
    """Brings one release to what is asked for; used once."""

    def __init__(
        self, planner: release_planning.ReleasePlanner, request: release_types.ReleaseRequest
    ) -> None:
        self._planner = planner
        self._helm = planner.helm
        self._records = planner.records
        self._renderer = planner.renderer
        self._request = request
        self._stopwatch = release_planning.Stopwatch(planner.clock)
        self._record: release_records.Record | None = None
        self._recovered: list[str] = []
        self._adopted: tuple[str, ...] = ()
        self._left_out: dict[manifests.ManifestResource, manifests.Object] = {}
        """What the chart has, and belongs to a module that runs later."""
        self._said: tuple[remembered.SaidField, ...] = ()
        self._live: manifests.Fields = {}
        """What objects keep of what others made of them; see :mod:`.live_values`."""
        self._keeper = planner.keeper_of(request.module, request.others, request.directory)
        self._had = ""
        self._compared: tuple[int, ...] = ()
        """The revision that Helm compares with what it makes."""
        self._applied = ""
        """What Helm has just applied, with its hooks; empty if that is not known."""
        self._going: tuple[manifests.ManifestResource, ...] = ()
        self._gained: tuple[manifests.ManifestResource, ...] | None = None
        self._exchange = manifests.Exchange()
        self._tries = planner.tries_of(request)

    async def run(self) -> release_types.ReleaseOutcome:
        """Do it; see :meth:`.ReleaseManager.ensure`."""
        inputs, self._record = await self._planner.observe(self._request, self._stopwatch)
        if foreign := self._planner.foreign(self._request, self._record):
            self._adopted = (foreign,)
        await self._take_back()
        for _ in range(_RECOVERIES):
            async with self._planner.plan(self._request, inputs, self._record, self._stopwatch) as plan:
                if isinstance(plan.decision, release.Skip):
                    return await self._skip(plan, plan.decision)
                if isinstance(plan.decision, release.Install):
                    return await self._install(plan, plan.decision)
                if isinstance(plan.decision, release.Upgrade):
                    if self._request.waits and await self._planner.may_wait(plan):
                        return await self._hold_back(plan, plan.decision)
                    return await self._upgrade(plan, plan.decision)
            with self._stopwatch.measured(release_types.Operation.CHECK):
                self._recovered.append(plan.decision.reason)
                if self._record is not None:
                    self._record = await self._records.fail(self._record)
        raise helm_errors.HelmError(
            self._request.module,
            f"the release does not leave its state ({self._recovered[-1]}); is somebody else at work on it?",
        )

    async def _take_back(self) -> None:
        """Take back a removal that has begun: the module is enabled."""
        request, record = self._request, self._record
        if record is None or not self._planner.calls.is_removal(record):
            return
        removal = uninstalling.Uninstallation(self._planner, request.call, request.others, request.directory)
        with contextlib.suppress(helm_errors.ReleaseRecordError):
            self._record = await removal.take_back(record)
            self._recovered.append(release.removal_taken_back(record.revision))
            await request.before_change()

    async def _skip(
        self, plan: release_planning.ReleasePlan, decision: release.Skip
    ) -> release_types.ReleaseOutcome:
        if plan.rendered is not None:
            await self._save(plan.rendered)
        return self._outcome(release_types.ReleaseAction.SKIPPED, decision.reason, decision.by)

    async def _install(
        self, plan: release_planning.ReleasePlan, decision: release.Install
    ) -> release_types.ReleaseOutcome:
        # Helm needs the right to create the namespace also if it is there.
        if self._request.create_namespace and await self._planner.live.has_namespace(self._request.module):
            self._request = structs.replace(self._request, create_namespace=False)
        if decision.is_again:
            await self._read_tries()
            await self._begin(plan.manifest, "")
            plan = await self._keep_live(plan, "")
            await self._look_after_tries(plan)
            await self._leave_out(plan.manifest)
        labels = {release.MANAGED_LABEL: "true"}
        try:
            await self._call(plan, labels, validate=True)
        except helm_errors.HelmError:
            # The chart was not rendered before; now it is known what Helm refuses and Kubernetes does not.
            files = await self._renderer.tolerant(self._request, plan.inputs, plan.files)
            if files is plan.files or decision.is_again:
                raise
            self._record = await self._records.read(self._request.module)
            plan = structs.replace(plan, files=files)
            await self._call(plan, labels, validate=True)
        await self._save(await self._as_seen_now(plan, await self._rendered_after(plan)))
        return self._outcome(release_types.ReleaseAction.INSTALLED, decision.reason)

    async def _upgrade(
        self, plan: release_planning.ReleasePlan, decision: release.Upgrade
    ) -> release_types.ReleaseOutcome:
        before = await self._records.upgraded_from(self._last_record())
        content = await self._content(before)
        had = "" if content is None else content.manifest
        await self._read_tries()
        await self._begin(plan.manifest, had)
        plan = await self._keep_live(plan, had)
        await self._look_after_tries(plan)
        before, content = await self._set_aside(plan.manifest, before, content)
        self._compared = (before.revision.number,)
        await self._leave_out(plan.manifest)
        if content is not None:
            await self._keep(plan.manifest, before, content)
        await self._free_jobs(plan.manifest)
        await self._forget_failed(plan.rendered)
        last = self._last_record().revision
        # Helm copies labels: this is another try, whatever came of the last one.
        stale = {release.REJECTED_LABEL, release.DIGEST_LABEL} & last.labels.keys()
        labels: dict[str, str | None] = dict.fromkeys(stale)
        if plan.rendered:
            places_of_hooks, _ = saved_places.changes(last.labels, self._request.hook_places)
            labels |= {**places_of_hooks, **plan.rendered.labels(last.number + 1)}
        await self._call(plan, labels, validate=decision.validate)
        # What looks at the cluster may find something else there from now on.
        rendered = None if plan.inputs.looks_up else plan.rendered
        await self._save(await self._as_seen_now(plan, rendered or await self._rendered_after(plan)))
        return self._outcome(release_types.ReleaseAction.UPGRADED, decision.reason)

    async def _content(self, record: release_records.Record) -> record_format.Content | None:
        """Return what a revision holds; ``None`` if it cannot be decoded, or is not ours."""
        with contextlib.suppress(helm_errors.ReleaseRecordError):
            return await self._records.content(record)
        return None

    async def _read_tries(self) -> None:
        if self._last_record().revision.status == release.FAILED:
            with self._stopwatch.measured(release_types.Operation.CHECK):
                await self._tries.read()

    async def _begin(self, manifest: str, had: str) -> None:
        """Say what the release gains and loses, before it is decided what of that is deleted.

        Raises :class:`.LeavingError` while another call of Helm moves the same.
        """
        with self._stopwatch.measured(release_types.Operation.CHECK):
            namespace = self._helm.places.of(self._request.module).namespace
            self._exchange = made = await asyncio.to_thread(
                manifests.exchanged, had, manifest, self._tries.applied, namespace
            )
            self._gained = made.gained
            self._planner.left.moves.begin(self._request.module, made.gained, (*made.lost, *made.of_tries))

    async def _keep_live(
        self, plan: release_planning.ReleasePlan, before: str
    ) -> release_planning.ReleasePlan:
        """Let objects keep what is not ours; checksums stay those of what the chart renders to."""
        namespace = self._helm.places.of(self._request.module).namespace
        with self._stopwatch.measured(release_types.Operation.CHECK):
            self._live, self._said, taken = await live_values.of_release(
                self._records,
                self._planner.live,
                self._request.module,
                before,
                plan.manifest,
                self._request.others.written(),
            )
            for text in taken:
                self._helm.warn(self._request.module, text)
            manifest = await asyncio.to_thread(manifests.with_fields, plan.manifest, self._live, namespace)
        return structs.replace(plan, manifest=manifest)

    async def _hold_back(
        self, plan: release_planning.ReleasePlan, decision: release.Upgrade
    ) -> release_types.ReleaseOutcome:
        """Make no revision now, and say which one is due."""
        revision = self._last_record().revision
        with self._stopwatch.measured(release_types.Operation.CHECK):
            changes = await release_preview.changes(self._planner, self._request, plan)
        outcome = self._outcome(release_types.ReleaseAction.HELD_BACK, decision.reason)
        return structs.replace(
            outcome,
            held_back=release_preview.summary(self._request, revision.number + 1, decision.reason, changes),
            is_broken=revision.status != release.DEPLOYED,
        )

    async def _look_after_tries(self, plan: release_planning.ReleasePlan) -> None:
        """Let no failed try stand in the way of the next one, or leave something behind."""
        record = self._last_record()
        if record.revision.status != release.FAILED:
            return
        is_install = isinstance(plan.decision, release.Install)
        with self._stopwatch.measured(release_types.Operation.CHECK):
            await self._tries.clear_hooks()
            await self._tries.check_refusal(record, plan.manifest)
            if not is_install:
                is_left = await self._planner.calls.left_by_call(record)
                left = await self._planner.calls.before(record) if is_left else None
                before = left or await self._records.upgraded_from(record)
                kept = await self._tries.clear(plan.manifest, before)
                self._planner.tell_kept(self._request.module, kept)
                return
            self._planner.tell_kept(self._request.module, await self._tries.clear(plan.manifest))
            await self._tries.adapt(plan.manifest)
            if history_max := self._planner.options.history_max:
                await self._tries.prune(history_max - 1)

    async def _set_aside(
        self, manifest: str, before: release_records.Record, content: record_format.Content | None
    ) -> tuple[release_records.Record, record_format.Content | None]:
        """See :meth:`.ReleasePlanner.set_aside`; gives from what Helm goes on, without what is set aside.

        What a call left that was cut off goes, if the revision before it is our own.
        """
        module, calls = self._request.module, self._planner.calls
        last = self._last_record()
        with self._stopwatch.measured(release_types.Operation.CHECK):
            if await calls.left_by_call(last) and await calls.before(last):
                self._record = await self._records.drop(last)
                before = await self._records.upgraded_from(self._last_record())
                content = await self._content(before)
            if content is None or before.revision.number < calls.deployed(module):
                await self._planner.set_aside(module, before, manifest)
                content = None
            self._record = await self._records.get(module)
        return before, content

    async def _explained(
        self, error: helm_errors.HelmError, manifest: str, description: str
    ) -> helm_errors.HelmError:
        return await merge_conflicts.explained(error, self._planner.live, manifest, description)

    async def _with_last_lines(self, error: helm_errors.HelmError) -> helm_errors.HelmError:
        """Return the error of a hook that failed with what its pods wrote last: they go with the next try."""
        request = self._request
        try:
            record = await self._records.read(request.module)
            hooks = () if record is None else (await self._records.content(record)).hooks
        except (helm_errors.ReleaseRecordError, api_errors.KubernetesError):
            return error
        return await hook_objects.explained(error, self._planner.live, hooks, request.redact)

    async def _free_jobs(self, manifest: str) -> None:
        """See :func:`.hook_objects.free_jobs`."""
        module, before = self._request.module, [self._had, *self._tries.applied]
        namespace = self._helm.places.of(module).namespace
        with self._stopwatch.measured(release_types.Operation.CHECK):
            await hook_objects.free_jobs(self._planner.live, module, namespace, before, manifest)

    async def _forget_failed(self, rendered: release.Rendered | None) -> None:
        """Let another try of what failed take the place of the revision that failed.

        Else tries would push the revisions that worked out of the history. Helm upgrades from the deployed
        one, and needs the record of the failed one for nothing.
        """
        record = self._last_record()
        last_rendered = self._records.rendered(record) or record.revision.saved
        if record.revision.status != release.FAILED or last_rendered is None or rendered is None:
            return
        is_the_same = last_rendered.manifest == rendered.manifest
        if is_the_same and (await self._records.upgraded_from(record)) is not record:
            self._record = await self._records.drop(record)

    async def _keep(
        self, manifest: str, before: release_records.Record, content: record_format.Content
    ) -> None:
        """Let Helm not delete what left the chart, and holds data or is in other releases, too.

        What it cannot read any more of the revision from which it starts must not stop it.
        """
        with (
            contextlib.suppress(helm_errors.ReleaseRecordError),
            self._stopwatch.measured(release_types.Operation.CHECK),
        ):
            had, exchange = content.manifest, self._exchange
            before, content, unserved = await self._planner.serve(before, content=content)
            self._had = content.manifest
            namespace = self._helm.places.of(self._request.module).namespace
            if had != self._had:
                exchange = await asyncio.to_thread(manifests.exchanged, self._had, manifest, (), namespace)
            if self._helm.binary.major < left_over.APPLIES_SINCE:
                less = await asyncio.to_thread(left_over.without_twins, self._had, manifest, namespace)
                if less != self._had:
                    await self._records.rewrite(before, lambda _: less, is_other=False)
            going = tuple(dict.fromkeys((*exchange.lost, *unserved)))
            if going or exchange.hooked:
                losing = keeper.Source(before.revision, content, going)
                self._going = await self._planner.keep(self._request, before, losing, exchange.hooked)
            if self._left_out:
                # Helm would take it for what the chart has no more.
                left_out = self._left_out
                await self._records.rewrite(
                    before, lambda text: manifests.without(text, left_out.__contains__)
                )
            self._record = await self._records.get(self._request.module)

    async def _call(
        self, plan: release_planning.ReleasePlan, labels: Mapping[str, str | None], *, validate: bool
    ) -> None:
        marked = {**labels, **self._records.marks(self._request.module)}
        is_install = isinstance(plan.decision, release.Install)
        await self._check_leaving(plan)
        unknown: list[str] = []
        call = structs.replace(self._request.call, is_install=is_install, on_unknown_field=unknown.append)
        options = self._planner.options
        upgrade: Callable[..., Awaitable[bytes]] = functools.partial(
            verbs.upgrade, self._helm, call, options=options, labels=marked, validate=validate
        )
        if is_install and self._record is not None:
            upgrade = functools.partial(verbs.install_again, self._helm, call, options=options, labels=marked)
        number = 1 if self._record is None else self._record.revision.number + 1
        with self._stopwatch.measured(release_types.Operation.UPGRADE):
            await self._planner.calls.begin(
                self._request.module, "install" if is_install else "upgrade", number
            )
            try:
                made = record_format.made(await self._upgrade_or_adopt(upgrade, plan))
            except helm_errors.NotCalledError:
                await self._planner.calls.end(self._request.module)
                raise
            except helm_errors.HelmError as error:
                await self._sign_failed(plan, number, await self._planner.calls.end(self._request.module))
                await self._warn_of_fields(unknown, plan.manifest)
                error = await self._with_last_lines(error)
                if (blamed := await failed_tries.blamed(self._records, error)) is not error:
                    raise blamed from error
                explained = await self._explained(error, plan.manifest, error.message)
                if is_install:
                    explained = self._held_back(plan, explained)
                raise explained from error.__cause__
            self._record = await self._planner.calls.end(self._request.module, made)
            self._records.memory.change(self._helm.places.of(self._request.module), said=self._said)
        self._applied = await self._applied_by(made)
        await self._tidy_up()
        self._request.others.made(self._last_record().revision.number)
        self._planner.settled(self._request.module)
        if unknown:
            await self._warn_of_fields(unknown, self._applied)

    async def _tidy_up(self) -> None:
        """Bring objects, and the record, to what the revision says that was just made."""
        applied = self._applied
        await self._planner.adoptions.settle(self._request.module)
        await self._planner.clear_left(self._request.module, self._had, self._tries.applied_for_sure, applied)
        if self._helm.binary.major < left_over.APPLIES_SINCE:
            await self._keeper.remember_left([each for each in self._going if each not in self._left_out])
        if (gained := self._gained) is None:
            gained = await asyncio.to_thread(manifests.resources, applied)
        if applied:
            await self._keeper.take_back(applied, [each for each in gained if each not in self._left_out])
        if self._left_out:
            # The record says what the chart has: when the other module drops it, it is applied from there.
            more = "".join(
                f"---\n{json_documents.encode(each).decode()}\n" for each in self._left_out.values()
            )
            record = self._last_record()
            self._record = await self._records.rewrite(record, lambda text: f"{text}\n{more}")
            self._applied = applied and f"{applied}\n{more}"

    async def _check_leaving(self, plan: release_planning.ReleasePlan) -> None:
        """Make nothing that is about to go."""
        if not self._planner.left.leaving:
            return
        await self._planner.left.look()
        manifest = plan.manifest or await self._renderer.render(
            self._request, plan.inputs, plan.files, is_upgrade=False
        )
        self._planner.left.check(self._request.module, manifest)

    async def _upgrade_or_adopt(
        self, upgrade: Callable[..., Awaitable[bytes]], plan: release_planning.ReleasePlan
    ) -> bytes:
        """Install or upgrade, and take over what exists already if that is allowed."""
        manifest = plan.manifest
        if self._record is None and self._planner.calls.deployed(self._request.module):
            # Its record is lost: what it had is there, and bears its marks.
            manifest = await self._renderer.render(self._request, plan.inputs, plan.files, is_upgrade=False)
        # Of a release whose revision cannot be read, its marks say what it has.
        if manifest and (self._had or isinstance(plan.decision, release.Install)):
            await self._adopt_own(manifest)
        last = 0 if self._record is None else self._record.revision.number

        async def call(made: release_planning.ReleasePlan, **options: bool) -> bytes:
            files = await self._files(made)
            await self._planner.calls.check_again(self._request.module, last, *self._compared)
            return await upgrade(files, **options)

        try:
            return await call(plan)
        except helm_errors.HelmError as error:
            if not messages.is_foreign(error.message):
                raise
            found = await self._records.read(self._request.module)
            if found is not None and found.revision.number > last:
                # It came further than to what it does not own: the next run goes on from there.
                raise
            is_upgrade = isinstance(plan.decision, release.Upgrade)
            manifest = plan.manifest or await self._renderer.render(
                self._request, plan.inputs, plan.files, is_upgrade=is_upgrade
            )
            await self._leave_out(manifest)
            if not is_upgrade:
                await self._begin(manifest, "")
                await self._adopt_own(manifest)
                plan = await self._keep_live(structs.replace(plan, manifest=manifest), "")
            self._adopted += await self._adoption(manifest, error)
            return await call(plan, take_ownership=True)

    async def _leave_out(self, manifest: str) -> None:
        """Find what the manifest has and Helm must not make, as it belongs to a module that runs later."""
        resources = await asyncio.to_thread(manifests.resources, manifest)
        later = frozenset(await self._request.others.later(resources))
        found = await asyncio.to_thread(manifests.bodies, manifest, later) if later else {}
        self._left_out = found

    async def _files(self, plan: release_planning.ReleasePlan) -> verbs.Files:
        if not (self._left_out or self._live):
            return plan.files
        namespace = self._helm.places.of(self._request.module).namespace
        return await self._renderer.leaving_out(plan.files, self._left_out, self._live, namespace)

    async def _sign_failed(
        self, plan: release_planning.ReleasePlan, number: int, record: release_records.Record | None
    ) -> None:
        """Count a revision that failed as ours, if it is what the chart renders to."""
        if record is None or record.revision.number != number or record.revision.is_busy:
            return
        namespace = self._helm.places.of(self._request.module).namespace

        async def is_rendered(held: record_format.Release) -> bool:
            is_upgrade = isinstance(plan.decision, release.Upgrade)
            rendered = plan.manifest or await self._renderer.render(
                self._request, plan.inputs, plan.files, is_upgrade=is_upgrade
            )
            again = rendered
            if plan.inputs.is_by_chance:
                again = await self._renderer.again(self._request, plan.inputs, plan.files)
                again = await asyncio.to_thread(manifests.with_fields, again, self._live, namespace)
            if self._left_out:
                rendered, again = (
                    manifests.without(each, self._left_out.__contains__) for each in (rendered, again)
                )

            def compare() -> bool:
                text = record_format.content_of(held).with_hooks
                is_same = self._planner.same(text, rendered, again, namespace)
                return is_same and record_format.runs_as_written(held)

            return await asyncio.to_thread(compare)

        try:
            # Read before anything is rendered: until then, whoever may write it has time to.
            await self._records.sign(record, is_rendered)
        except (helm_errors.HelmError, helm_errors.ReleaseRecordError, api_errors.KubernetesError) as error:
            text = f"what revision {number} made is not known, as its record cannot be marked: {error}"
            self._helm.warn(self._request.module, text)

    async def _applied_by(self, made: record_format.Release | None) -> str:
        """Return what Helm has just applied; nothing if that is not known."""
        if made is not None:
            with contextlib.suppress(*record_format.UNREADABLE):
                return record_format.content_of(made).with_hooks
        try:
            return await self._records.manifest(self._last_record(), with_hooks=True)
        except errors.AddonOperatorError:
            return ""

    async def _warn_of_fields(self, warnings: list[str], manifest: str) -> None:
        """Say which objects of the manifest have the fields that the API server does not know."""
        chart = self._request.directory
        for text in await asyncio.to_thread(unknown_fields.told, manifest, warnings, chart):
            self._helm.doubt(self._request.module, self._request.redact(text))

    def _held_back(
        self, plan: release_planning.ReleasePlan, error: helm_errors.HelmError
    ) -> helm_errors.HelmError:
        """Let a first install that failed wait for its cause if it took over what others may need."""
        module, adoptions = self._request.module, self._planner.adoptions
        # What a release had whose record is lost is others' no more than before.
        is_own = bool(self._planner.calls.deployed(module))
        if is_own or not adoptions.has(module) or messages.is_outage(error.message):
            return error
        adoptions.reject(module, plan.inputs.checksum, error.message)
        return error.followed_by(
            "it took over objects that were there before, so it is not tried again with the same chart and "
            f"values: change them, or run 'addon-operator module retry {module}'"
        )

    async def _adoption(self, manifest: str, refused: helm_errors.HelmError) -> tuple[str, ...]:
        """Return the objects that become the release's now; raises what Helm said if they must not."""
        policy = self._planner.options.take_ownership
        before = await self._records.deployed(self._request.module)
        found = await self._planner.live.foreign(
            self._request.module, manifest, before.manifest if before else ""
        )
        foreign = [each for each in found if not (each.is_own or each.resource in self._left_out)]
        if not foreign and self._left_out:
            return ()
        is_labelled = policy is release_types.TakeOwnership.LABELLED
        namespace = self._helm.places.of(self._request.module).namespace
        of_hooks = {
            each.identity(namespace)
            for hook in (before.hooks if before else ())
            for each in manifests.hooks(hook)
        }
        ours = {*await self._request.others.bodies([each.resource for each in foreign])}
        ours |= {
            each.resource
            for each in foreign
            if (each.is_by_hook and each.resource.identity(namespace) in of_hooks)
            or await self._is_of_gone_module(each)
        }
        unlabelled = [
            each.name
            for each in foreign
            if not (each.is_kept or each.resource in ours or (is_labelled and each.is_labelled))
        ]
        if policy is not release_types.TakeOwnership.ALWAYS and (unlabelled or not foreign):
            raise helm_errors.HelmError(
                self._request.module,
                f"{refused.message}; TAKE_OWNERSHIP={policy} does not allow to take over "
                f"{', '.join(unlabelled) or 'it'}: remove it, or allow it",
            ) from refused
        await self._planner.adoptions.begin(self._request.module, [each.resource for each in foreign])
        return tuple(each.name for each in foreign if not each.is_kept)

    async def _is_of_gone_module(self, found: live_objects.Foreign) -> bool:
        """Say whether an object is of a release of ours that no module explains, such as one renamed."""
        where = self._helm.places
        if found.of is None or where.is_of_module(key := where.key(found.of)):
            return False
        memory = self._records.memory
        if not (memory.is_known and memory.of(found.of).life):
            return False
        try:
            deployed = await self._records.deployed(key)
        except helm_errors.ReleaseRecordError:
            return False
        listed = await asyncio.to_thread(manifests.resources, deployed.manifest if deployed else "")
        wanted = found.resource.identity(where.of(self._request.module).namespace)
        return any(each.identity(found.of.namespace) == wanted for each in listed)

    async def _adopt_own(self, manifest: str) -> None:
        """Adopt what bears the marks of the release and is in no revision: Helm takes that over unasked."""
        before = "\n---\n".join([self._had, *self._tries.applied])
        found = await self._planner.live.foreign(self._request.module, manifest, before)
        # What an earlier installation left for other modules to gain is the release's own.
        is_moving = self._planner.left.are_moving(self._helm.places.of(self._request.module).namespace)
        own = [
            each
            for each in found
            if each.is_own and not (each.resource in self._left_out or is_moving(each.resource))
        ]
        if own:
            await self._planner.adoptions.begin(self._request.module, [each.resource for each in own])

    async def _rendered_after(self, plan: release_planning.ReleasePlan) -> release.Rendered:
        """Return what the next upgrade with the same inputs renders to.

        For most charts that is what Helm has just applied. Those whose render differs from call to call are
        rendered once more.
        """
        inputs = plan.inputs
        try:
            applied = await self._checksum_of_record()
        except helm_errors.ReleaseRecordError:
            applied = None
        if applied and not (inputs.looks_up or inputs.is_by_chance or self._live):
            return inputs.rendered_to(applied)
        try:
            with self._stopwatch.measured(release_types.Operation.TEMPLATE):
                return inputs.rendered_to(await self._checksum(plan, inputs, applied))
        except helm_errors.HelmError as error:
            text = f"the release is installed, but an upgrade of it would fail: {error.message}"
            self._helm.doubt(self._request.module, text)
            return inputs.rendered_to(applied or await self._checksum_of_record())

    async def _as_seen_now(
        self, plan: release_planning.ReleasePlan, rendered: release.Rendered
    ) -> release.Rendered:
        """Return the same for the APIs that the chart's own definitions made, if it may ask for them.

        Without this, the next start would find other inputs, and render. If the chart renders to something
        else by now, it is left to the next run to find that out.
        """
        if plan.inputs.cluster is None or not (groups := await self._defined_groups()):
            return rendered
        try:
            with self._stopwatch.measured(release_types.Operation.TEMPLATE):
                inputs = await self._renderer.seen_now(plan.inputs, groups)
                if inputs.checksum == plan.inputs.checksum:
                    return rendered
                checksum = await self._checksum(plan, inputs, rendered.manifest)
        except (helm_errors.HelmError, api_errors.KubernetesError):
            return rendered
        return inputs.rendered_to(checksum) if checksum == rendered.manifest else rendered

    async def _defined_groups(self) -> frozenset[str]:
        """Return the API groups that the release itself defines."""
        resources = await asyncio.to_thread(manifests.resources, self._applied)
        return frozenset(each.name.partition(".")[2] for each in resources if each.kind == crd_files.KIND)

    async def _checksum(
        self,
        plan: release_planning.ReleasePlan,
        inputs: render_inputs.RenderInputs,
        expected: release.Checksum | None,
    ) -> release.Checksum:
        """Return the checksum of what the chart renders to now, as an upgrade."""
        manifest = await self._renderer.render(self._request, inputs, plan.files)
        checksum = await asyncio.to_thread(rendering.manifest_checksum, manifest)
        if checksum == expected or not inputs.is_by_chance:
            return checksum
        again = await self._renderer.again(self._request, inputs, plan.files)
        return await asyncio.to_thread(rendering.manifest_checksum, manifest, again)

    async def _checksum_of_record(self) -> release.Checksum:
        with self._stopwatch.measured(release_types.Operation.CHECK):
            manifest = self._applied or await self._records.manifest(self._last_record(), with_hooks=True)
            return await asyncio.to_thread(rendering.manifest_checksum, manifest)

    async def _save(self, rendered: release.Rendered) -> None:
        """Save what was rendered with the revision it belongs to, here and in the cluster."""
        try:
            await self._records.save(self._last_record(), rendered, self._request.hook_places)
        except api_errors.KubernetesError as error:
            self._helm.warn(
                self._request.module,
                f"checksums could not be saved with the release, so the next start will render it: {error}",
            )

    def _last_record(self) -> release_records.Record:
        if self._record is None:
            raise helm_errors.HelmError(
                self._request.module,
                "the release disappeared during the operation; is somebody else removing it?",
            )
        return self._record

    def _outcome(
        self, action: release_types.ReleaseAction, reason: str, by: release.SkippedBy | None = None
    ) -> release_types.ReleaseOutcome:
        record = self._last_record()
        rendered = self._records.rendered(record) or record.revision.saved
        return release_types.ReleaseOutcome(
            action=action,
            reason=reason,
            revision=record.revision.number,
            manifest_checksum=rendered.manifest if rendered else release.Checksum(""),
            by=by,
            recovered=tuple(self._recovered),
            adopted=self._adopted,
            seconds=dict(self._stopwatch.seconds),
        )
