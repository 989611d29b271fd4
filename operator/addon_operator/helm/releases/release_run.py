"""One look at one module's release: observe, decide, act."""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

from addon_operator.helm import (
    helm_errors,
    messages,
    template,
    uninstall,
    upgrade,
)
from addon_operator.helm.charts import rendering
from addon_operator.helm.releases import release_records, release_types
from addon_operator.kube.client import api_errors
from addon_operator.modules import manifests, release

_RECOVERIES: Final = 3


class ReleaseRun:
    """Brings one release to what is asked for; used once."""

    def __init__(self, tools: rendering.Tools, request: release_types.ReleaseRequest) -> None:
        self._tools = tools
        self._request = request
        self._rendering = rendering.Rendering(tools, request)
        self._record: release_records.Record | None = None
        self._recovered: list[str] = []
        self._adopted: tuple[str, ...] = ()
        self._seconds: dict[release_types.Operation, float] = collections.defaultdict(float)

    async def run(self) -> release_types.ReleaseOutcome:
        """Do it; see :meth:`.ReleaseManager.ensure`."""
        with self._measured(release_types.Operation.CHECK):
            given = await self._rendering.inputs()
            decision = await self._decide_before_render(given)
        if isinstance(decision, release.Skip):
            return self._skipped(decision)
        async with self._rendering.files(given) as files:
            if isinstance(decision, release.Install):
                await self._install(given, files)
                return self._outcome(release_types.Action.INSTALLED, decision.reason)
            await self._request.before_change()
            return await self._render_and_act(given, files)

    async def _decide_before_render(
        self, given: rendering.Inputs
    ) -> release.Skip | release.Install | release.Render:
        name = self._request.module
        self._record = await self._tools.observed.get(name, fresh=self._request.fresh)
        for _ in range(_RECOVERIES):
            decision = release.decide_before_render(self._rendering.state(given, self._record))
            if not isinstance(decision, release.Recover):
                return decision
            await self._recover(decision)
        raise helm_errors.HelmError(
            name,
            f"the release does not leave its state ({self._recovered[-1]}); is somebody else at work on it?",
        )

    async def _recover(self, decision: release.Recover) -> None:
        self._recovered.append(decision.reason)
        observed = self._tools.observed
        if decision.action is release.RecoveryAction.FINISH_UNINSTALL:
            await uninstall.uninstall(self._tools.helm, self._rendering.call, self._tools.options.timeout)
            self._record = await observed.refresh(self._request.module)
        elif self._record is not None:
            self._record = await observed.drop(self._record)

    async def _install(self, given: rendering.Inputs, files: rendering.Files) -> None:
        await self._call(given, files, {release.MANAGED_LABEL: "true"}, validate=True)
        await self._save(await self._rendered_after(given, files))

    async def _render_and_act(
        self, given: rendering.Inputs, files: rendering.Files
    ) -> release_types.ReleaseOutcome:
        with self._measured(release_types.Operation.TEMPLATE):
            manifest = await self._rendering.render(given, files)
            rendered = given.rendered_to(await self._rendering.checksum(given, files, manifest))
            applied = await self._rendering.is_applied(self._record, manifest)
        state = self._rendering.state(given, self._record, applied=applied)
        decision = release.decide_after_render(state, rendered.manifest)
        if isinstance(decision, release.Skip):
            await self._save(rendered)
            return self._skipped(decision)
        await self._check_refusal(manifest)
        await self._give_up(manifest)
        expected = self._last_record().revision.number + 1
        await self._call(given, files, rendered.labels(expected), validate=decision.validate)
        # What looks at the cluster may find something else there from now on.
        is_final = not self._rendering.varies(given)
        await self._save(rendered if is_final else await self._rendered_after(given, files))
        return self._outcome(release_types.Action.UPGRADED, decision.reason)

    async def _check_refusal(self, manifest: str) -> None:
        """Make no revision for what the API server refused last time and refuses still."""
        record = self._last_record()
        if record.revision.status != release.FAILED:
            return
        with (
            contextlib.suppress(helm_errors.ReleaseRecordError),
            self._measured(release_types.Operation.CHECK),
        ):
            failed = await self._tools.observed.content(record)
            refusal = await self._tools.live.standing_refusal(failed, manifest)
            if refusal is not None:
                made = f"(revision {record.revision.number} failed for that, and no other is made)"
                raise helm_errors.HelmError(
                    self._request.module,
                    f"{self._request.redact(str(refusal))} {made}",
                    f"{self._request.redact(refusal.without_values)} {made}",
                )

    async def _give_up(self, manifest: str) -> None:
        """Let Helm not delete what the chart has no more, but other releases have: they would miss it."""
        observed = self._tools.observed
        before = await observed.upgraded_from(self._last_record())
        with (
            contextlib.suppress(helm_errors.ReleaseRecordError),
            self._measured(release_types.Operation.CHECK),
        ):
            had = await observed.manifest(before)
            dropped = await asyncio.to_thread(manifests.dropped, had, manifest, self._tools.helm.namespace)
            if dropped and (given_up := await self._request.give_up(dropped)):
                self._record = await observed.spare(before, frozenset(given_up).__contains__)

    async def _call(
        self, given: rendering.Inputs, files: rendering.Files, labels: Mapping[str, str], *, validate: bool
    ) -> None:
        request = upgrade.UpgradeRequest(
            chart=files.chart,
            values=files.values,
            labels=labels,
            validate=validate,
            history_max=self._tools.options.history_max,
            timeout=self._tools.options.timeout,
        )
        with self._measured(release_types.Operation.UPGRADE):
            try:
                await upgrade.upgrade(self._tools.helm, self._rendering.call, request)
            except helm_errors.HelmError as error:
                if not messages.is_foreign(error.message):
                    raise
                self._adopted = await self._adoption(given, files, error)
                request = dataclasses.replace(request, take_ownership=True)
                await upgrade.upgrade(self._tools.helm, self._rendering.call, request)
            self._record = await self._tools.observed.refresh(self._request.module)

    async def _adoption(
        self, given: rendering.Inputs, files: rendering.Files, refused: helm_errors.HelmError
    ) -> tuple[str, ...]:
        """The objects that become the release's now; raises what Helm said if they must not."""
        policy = self._tools.options.take_ownership
        manifest = await self._rendering.render(given, files, is_upgrade=self._is_there)
        before = await self._tools.observed.deployed(self._request.module)
        foreign = await self._tools.live.foreign(
            self._request.module, manifest, before.manifest if before else ""
        )
        is_labelled = policy is release_types.TakeOwnership.LABELLED
        kept = [each.name for each in foreign if not (is_labelled and each.is_labelled)]
        if policy is not release_types.TakeOwnership.ALWAYS and (kept or not foreign):
            raise helm_errors.HelmError(
                self._request.module,
                f"{refused.message}; TAKE_OWNERSHIP={policy} forbids to take over {', '.join(kept) or 'it'}: "
                "let its owner go, or remove it",
            ) from refused
        return tuple(each.name for each in foreign)

    @property
    def _is_there(self) -> bool:
        return self._record is not None and self._record.revision.exists

    async def _rendered_after(self, given: rendering.Inputs, files: rendering.Files) -> release.Rendered:
        """What the next upgrade with the same inputs renders to.

        For most charts that is what Helm has just applied. Those whose render differs from call to call are
        rendered once more.
        """
        if not self._rendering.varies(given):
            with contextlib.suppress(helm_errors.ReleaseRecordError):
                return given.rendered_to(await self._checksum_of_record())
        try:
            with self._measured(release_types.Operation.TEMPLATE):
                manifest = await self._rendering.render(given, files)
                return given.rendered_to(await self._rendering.checksum(given, files, manifest))
        except helm_errors.HelmError as error:
            text = f"the release is made, but an upgrade of it would fail: {error.message}"
            self._tools.on_warning(self._request.module, text)
            return given.rendered_to(await self._checksum_of_record())

    async def _checksum_of_record(self) -> release.Checksum:
        with self._measured(release_types.Operation.CHECK):
            manifest = await self._tools.observed.manifest(self._last_record(), with_hooks=True)
            return await asyncio.to_thread(template.checksum, manifest)

    async def _save(self, rendered: release.Rendered) -> None:
        """Save what was rendered with the revision it belongs to, here and in the cluster."""
        if self._record is None:
            raise helm_errors.HelmError(
                self._request.module,
                "the release vanished while it was worked on; is somebody else removing it?",
            )
        self._tools.observed.remember(self._record.revision, rendered)
        try:
            await self._tools.observed.add_labels(self._record, rendered)
        except api_errors.KubernetesError as error:
            self._tools.on_warning(
                self._request.module,
                f"checksums could not be saved with the release, so the next start will render it: {error}",
            )

    def _last_record(self) -> release_records.Record:
        if self._record is None:
            raise helm_errors.HelmError(
                self._request.module, "the release vanished meanwhile; is somebody else removing it?"
            )
        return self._record

    def _skipped(self, decision: release.Skip) -> release_types.ReleaseOutcome:
        return self._outcome(release_types.Action.SKIPPED, decision.reason, decision.by)

    def _outcome(
        self, action: release_types.Action, reason: str, by: release.SkippedBy | None = None
    ) -> release_types.ReleaseOutcome:
        record = self._last_record()
        rendered = self._tools.observed.rendered(record) or record.revision.saved
        return release_types.ReleaseOutcome(
            action=action,
            reason=reason,
            revision=record.revision.number,
            manifest_checksum=rendered.manifest if rendered else release.Checksum(""),
            by=by,
            recovered=tuple(self._recovered),
            adopted=self._adopted,
            seconds=dict(self._seconds),
        )

    @contextlib.contextmanager
    def _measured(self, operation: release_types.Operation) -> Iterator[None]:
        started = self._tools.clock.monotonic()
        try:
            yield
        finally:
            self._seconds[operation] += self._tools.clock.monotonic() - started
