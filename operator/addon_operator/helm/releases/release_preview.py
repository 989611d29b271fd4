"""What a run would do to one module's release, for a person: its plan, and what that would change."""

import asyncio
import dataclasses

from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors
from addon_operator.helm.releases import release_planning, release_records, release_types
from addon_operator.modules import manifests, release


async def preview(
    tools: release_planning.Tools, request: release_types.ReleaseRequest
) -> release_types.ReleasePreview:
    """Plan a release and show the plan; nothing is changed. Raises what :meth:`.ReleaseRun.run` raises."""
    planner = release_planning.ReleasePlanner(tools, request)
    given, record = await planner.observe()
    recoveries: list[str] = []
    while True:
        async with planner.plan(given, record) as plan:
            if not isinstance(plan.decision, release.Recover):
                shown = await _shown(tools, request, plan, plan.decision)
                return dataclasses.replace(shown, recoveries=tuple(recoveries))
        recoveries.append(plan.decision.reason)
        record = await _after_recovery(tools, plan.decision, record)


async def _after_recovery(
    tools: release_planning.Tools, decision: release.Recover, record: release_records.Record | None
) -> release_records.Record | None:
    """What would be the last revision then."""
    if record is None or decision.action is release.RecoveryAction.FINISH_UNINSTALL:
        return None
    return await tools.records.before(record)


async def _shown(
    tools: release_planning.Tools,
    request: release_types.ReleaseRequest,
    plan: release_planning.ReleasePlan,
    decision: release.Skip | release.Install | release.Upgrade,
) -> release_types.ReleasePreview:
    revision = plan.record.revision.number if plan.record else None
    if isinstance(decision, release.Skip):
        return release_types.ReleasePreview(release_types.PlannedAction.NOTHING, decision.reason, revision)
    if isinstance(decision, release.Install):
        action, revision, before = release_types.PlannedAction.INSTALL, None, ""
        manifest = await tools.renderer.render(request, plan.given, plan.files, is_upgrade=False)
    else:
        action, manifest = release_types.PlannedAction.UPGRADE, plan.manifest
        before = await _applied(tools, request, plan.record)
    changes = await asyncio.to_thread(_changes, request, before, manifest)
    foreign = await tools.live.foreign(request.module, manifest, before)
    return release_types.ReleasePreview(
        action,
        decision.reason,
        revision,
        changes=changes,
        adopted=tuple(each.name for each in foreign),
        resources=manifests.resources(manifest),
    )


async def _applied(
    tools: release_planning.Tools,
    request: release_types.ReleaseRequest,
    record: release_records.Record | None,
) -> str:
    if record is None:
        return ""
    try:
        return await tools.records.manifest(record, with_hooks=True)
    except helm_errors.ReleaseRecordError as error:
        tools.helm.warn(request.module, f"everything is shown as added: {error}")
        return ""


def _changes(
    request: release_types.ReleaseRequest, before: str, after: str
) -> tuple[manifest_diff.ManifestChange, ...]:
    return manifest_diff.diff(
        manifest_diff.without_tests(manifest_diff.parse(before)),
        manifest_diff.without_tests(manifest_diff.parse(after)),
        request.redact,
    )
