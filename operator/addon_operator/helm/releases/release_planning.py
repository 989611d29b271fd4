"""What a run would do to one module's release: the same decisions, and nothing is changed."""

import asyncio
import dataclasses

from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import rendering
from addon_operator.helm.releases import release_records, release_types
from addon_operator.modules import manifests, release


class ReleasePlanner:
    """Looks at one release; used once."""

    def __init__(self, tools: rendering.Tools, request: release_types.ReleaseRequest) -> None:
        self._tools = tools
        self._request = request
        self._rendering = rendering.Rendering(tools, request)
        self._recoveries: list[str] = []

    async def plan(self) -> release_types.ReleasePlan:
        """Decide; see :meth:`.ReleaseManager.plan`."""
        given = await self._rendering.inputs()
        found = await self._tools.observed.get(self._request.module, fresh=self._request.fresh)
        record, decision = await self._decide_before_render(given, found)
        if isinstance(decision, release.Skip):
            return self._made(release_types.PlannedAction.NOTHING, decision.reason, record)
        async with self._rendering.files(given) as files:
            if isinstance(decision, release.Install):
                manifest = await self._rendering.render(given, files, is_upgrade=False)
                return await self._plan_change(
                    release_types.PlannedAction.INSTALL, decision.reason, None, manifest
                )
            manifest = await self._rendering.render(given, files)
            checksum = await self._rendering.checksum(given, files, manifest)
        return await self._plan_rendered(given, record, manifest, checksum)

    async def _decide_before_render(
        self, given: rendering.Inputs, record: release_records.Record | None
    ) -> tuple[release_records.Record | None, release.Skip | release.Install | release.Render]:
        while True:
            decision = release.decide_before_render(self._rendering.state(given, record))
            if not isinstance(decision, release.Recover):
                return record, decision
            self._recoveries.append(decision.reason)
            record = await self._after_recovery(decision, record)

    async def _after_recovery(
        self, decision: release.Recover, record: release_records.Record | None
    ) -> release_records.Record | None:
        """What would be the last revision then."""
        if record is None or decision.action is release.RecoveryAction.FINISH_UNINSTALL:
            return None
        return await self._tools.observed.before(record)

    async def _plan_rendered(
        self,
        given: rendering.Inputs,
        record: release_records.Record | None,
        manifest: str,
        checksum: release.Checksum,
    ) -> release_types.ReleasePlan:
        applied = await self._rendering.is_applied(record, manifest)
        state = self._rendering.state(given, record, applied=applied)
        decision = release.decide_after_render(state, checksum)
        if isinstance(decision, release.Skip):
            return self._made(release_types.PlannedAction.NOTHING, decision.reason, record)
        return await self._plan_change(release_types.PlannedAction.UPGRADE, decision.reason, record, manifest)

    async def _plan_change(
        self,
        action: release_types.PlannedAction,
        reason: str,
        record: release_records.Record | None,
        manifest: str,
    ) -> release_types.ReleasePlan:
        before = "" if record is None else await self._applied(record)
        changes = await asyncio.to_thread(self._changes, before, manifest)
        foreign = await self._tools.live.foreign(self._request.module, manifest, before)
        made = self._made(action, reason, record, changes)
        return dataclasses.replace(
            made, adopted=tuple(each.name for each in foreign), resources=manifests.resources(manifest)
        )

    async def _applied(self, record: release_records.Record) -> str:
        try:
            return await self._tools.observed.manifest(record, with_hooks=True)
        except helm_errors.ReleaseRecordError as error:
            self._tools.on_warning(self._request.module, f"everything is shown as added: {error}")
            return ""

    def _changes(self, before: str, after: str) -> tuple[manifest_diff.Change, ...]:
        return manifest_diff.diff(
            manifest_diff.without_tests(manifest_diff.parse(before)),
            manifest_diff.without_tests(manifest_diff.parse(after)),
            self._request.redact,
        )

    def _made(
        self,
        action: release_types.PlannedAction,
        reason: str,
        record: release_records.Record | None,
        changes: tuple[manifest_diff.Change, ...] = (),
    ) -> release_types.ReleasePlan:
        return release_types.ReleasePlan(
            action=action,
            reason=reason,
            revision=record.revision.number if record else None,
            recoveries=tuple(self._recoveries),
            changes=changes,
        )
