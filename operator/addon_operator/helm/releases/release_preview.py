"""What a run would do to one module's release, for a person: its plan, and what that would change."""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Final

from addon_operator.documents import manifest_diff
from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.releases import release_planning, release_records
from addon_operator.kernel import names
from addon_operator.modules import manifests, release

_NAMED: Final = 3
"""So many changed resources are named, and the others counted."""


async def preview(
    planner: release_planning.ReleasePlanner, request: release_types.ReleaseRequest
) -> release_types.ReleasePreview:
    """Plan a release and show the plan; nothing is changed. Raises what :meth:`.ReleaseRun.run` raises."""
    watch = release_planning.Stopwatch(planner.clock)
    inputs, record = await planner.observe(request, watch)
    recoveries: list[str] = []
    if record is not None and planner.calls.is_removal(record):
        recoveries.append(release.removal_taken_back(record.revision))
        record = record.as_it_was(planner.calls.before_removal(record))
    while True:
        async with planner.plan(request, inputs, record, watch) as plan:
            if not isinstance(plan.decision, release.Recover):
                shown = await _shown(planner, request, plan, plan.decision)
                return dataclasses.replace(shown, recoveries=tuple(recoveries))
        recoveries.append(plan.decision.reason)
        # What would be the last revision then.
        if record is not None:
            record = record.as_it_was(release.FAILED)


async def _shown(
    planner: release_planning.ReleasePlanner,
    request: release_types.ReleaseRequest,
    plan: release_planning.ReleasePlan,
    decision: release.Skip | release.Install | release.Upgrade,
) -> release_types.ReleasePreview:
    revision = plan.record.revision.number if plan.record else None
    if isinstance(decision, release.Skip):
        return release_types.ReleasePreview(release_types.PlannedAction.NOTHING, decision.reason, revision)
    if isinstance(decision, release.Install) and decision.is_again:
        action, manifest = release_types.PlannedAction.INSTALL, plan.manifest
        before = await _applied(planner, request, plan.record)
    elif isinstance(decision, release.Install):
        action, revision, before = release_types.PlannedAction.INSTALL, None, ""
        manifest = await planner.renderer.render(request, plan.inputs, plan.files, is_upgrade=False)
    else:
        if plan.record is not None and plan.record.revision.status == release.FAILED:
            await planner.tries_of(request).check_refusal(plan.record, plan.manifest)
        action, manifest = release_types.PlannedAction.UPGRADE, plan.manifest
        before = await _applied(planner, request, plan.record)
        before, manifest = await _as_live(planner, request, before, manifest)
    changes = await asyncio.to_thread(_difference, request, before, manifest)
    known = before
    if plan.record is not None and plan.record.revision.status == release.FAILED:
        known += (
            f"\n---\n{await _applied(planner, request, await planner.records.upgraded_from(plan.record))}"
        )
    foreign = await planner.live.foreign(request.module, manifest, known)
    # Of a release whose revision cannot be read, its marks say what it has.
    is_known = bool(known) or isinstance(decision, release.Install)
    return release_types.ReleasePreview(
        action,
        decision.reason,
        revision,
        changes=changes,
        adopted=(
            *filter(None, [planner.foreign(request, plan.record)]),
            *(each.name for each in foreign if not (each.is_kept or (each.is_own and not is_known))),
        ),
        by_chance=await _by_chance(planner, request, plan, manifest),
        may_wait=await planner.may_wait(plan),
        before=before,
        manifest=manifest,
    )


async def _by_chance(
    planner: release_planning.ReleasePlanner,
    request: release_types.ReleaseRequest,
    plan: release_planning.ReleasePlan,
    manifest: str,
) -> frozenset[manifest_diff.ManifestKey]:
    if not plan.inputs.is_by_chance:
        return frozenset()
    is_upgrade = isinstance(plan.decision, release.Upgrade)
    again = await planner.renderer.render(request, plan.inputs, plan.files, is_upgrade=is_upgrade)
    return frozenset(each.key for each in await asyncio.to_thread(_difference, request, manifest, again))


async def changes(
    planner: release_planning.ReleasePlanner,
    request: release_types.ReleaseRequest,
    plan: release_planning.ReleasePlan,
) -> tuple[manifest_diff.ManifestChange, ...]:
    """Return what an upgrade would change."""
    before = await _applied(planner, request, plan.record)
    before, manifest = await _as_live(planner, request, before, plan.manifest)
    return await asyncio.to_thread(_difference, request, before, manifest)


async def _as_live(
    planner: release_planning.ReleasePlanner, request: release_types.ReleaseRequest, before: str, after: str
) -> tuple[str, ...]:
    """Return both manifests with what others made of the objects that differ: an upgrade keeps that."""
    namespace = planner.helm.places.of(request.module).namespace
    changed = [each.key for each in await asyncio.to_thread(_difference, request, before, after)]
    written = [
        manifests.ManifestResource(key.api_version, key.kind, key.namespace or None, key.name).identity(
            namespace
        )
        for key in changed
    ]
    return await planner.as_live(request, before, after, written=written) if written else (before, after)


def summary(
    request: release_types.ReleaseRequest,
    revision: int,
    reason: str,
    changes: Sequence[manifest_diff.ManifestChange],
) -> str:
    """Say in a phrase which revision is due, and what it changes."""
    listed = names.listed([str(each.key) for each in changes], _NAMED)
    count = f"{len(changes)} resource{' changes' if len(changes) == 1 else 's change'}"
    what = f"{count}: {listed}" if changes else reason
    return request.redact(f"upgrade to revision {revision}: {what}")


async def _applied(
    planner: release_planning.ReleasePlanner,
    request: release_types.ReleaseRequest,
    record: release_records.Record | None,
) -> str:
    if record is None:
        return ""
    try:
        return await planner.records.manifest(record, with_hooks=True)
    except helm_errors.ReleaseRecordError as error:
        planner.helm.warn(request.module, f"everything is shown as added: {error}")
        return ""


def _difference(
    request: release_types.ReleaseRequest, before: str, after: str
) -> tuple[manifest_diff.ManifestChange, ...]:
    return manifest_diff.diff(
        manifest_diff.without_tests(manifest_diff.parse(before)),
        manifest_diff.without_tests(manifest_diff.parse(after)),
        request.redact,
    )
