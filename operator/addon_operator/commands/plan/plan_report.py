"""What a converge would do, for people: the plan that the engine executes, with the reason of each step.

It is made of :class:`.ConvergePlan` and of what would become of each release.
"""

import collections
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.commands.plan import given_values
from addon_operator.documents import manifest_diff
from addon_operator.helm import fixed_fields
from addon_operator.helm.releases import keeper
from addon_operator.kernel import errors, names
from addon_operator.modules import keeping, manifests, model, plan


class PlanStep(enum.StrEnum):
    """What would be done for a module."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    WAIT = "wait"
    """The release would be upgraded or removed, and waits for a window."""
    RESTORE = "restore"
    """Objects of it are created again, without a revision."""
    DELETE = "delete"
    HOOKS = "hooks"
    """Only its hooks run: it has no chart."""
    NOTHING = "nothing"
    UNKNOWN = "unknown"
    """It is not known because of an error."""


_ADDED: Final = manifest_diff.ChangeKind.ADDED
_REMOVED: Final = manifest_diff.ChangeKind.REMOVED
_POLICY: Final = "helm.sh/resource-policy"
_AT_RANDOM: Final = " (with new random content)"
NAMED: Final = 3
"""So many objects are named, and the others counted."""
CHANGING = frozenset({PlanStep.INSTALL, PlanStep.UPGRADE, PlanStep.WAIT, PlanStep.RESTORE, PlanStep.DELETE})
"""Steps that change something in the cluster."""


class ReleaseReport(msgspec.Struct, frozen=True):
    """What would become of a module's release."""

    step: PlanStep
    reason: str
    revision: int | None = None
    """The last one that there is."""
    recoveries: tuple[str, ...] = ()
    """What would have to be repaired first."""
    changes: tuple[manifest_diff.ManifestChange, ...] = ()
    by_chance: frozenset[manifest_diff.ManifestKey] = frozenset()
    """Objects that the chart fills with something else at each render."""


class ModuleReport(msgspec.Struct, frozen=True):
    """What would become of a module."""

    name: names.ModuleName
    order: int
    enabled: bool
    verdict: str
    """Why it is enabled or disabled."""
    release: ReleaseReport
    title: str = ""
    """How people call its release, if not like the module."""
    waits_for: tuple[names.ModuleName, ...] = ()
    """Modules that it requires: it would begin when they are ready."""
    unknown: tuple[str, ...] = ()
    """What may make it otherwise, and only the cluster would show."""
    is_pending: bool = False
    """Whether the same would happen without the change of files that is looked at."""

    @property
    def is_change(self) -> bool:
        """Whether something of a release would change."""
        return self.release.step in CHANGING


class Purge(msgspec.Struct, frozen=True):
    """A release that would be uninstalled although no module directory explains it."""

    release: str
    reason: str
    is_pending: bool = False
    """Whether the same would happen without the change of files that is looked at."""


class PlanReport(msgspec.Struct, frozen=True):
    """What a converge would do, and what has to be said about it."""

    namespace: str
    """That of the releases."""
    modules: tuple[ModuleReport, ...]
    """Put deletes first, as they come, then modules in run order."""
    purges: tuple[Purge, ...]
    losses: tuple[str, ...] = ()
    """What is deleted, with the number of objects, what of it stays, and what only a deletion can change."""
    notes: tuple[str, ...] = ()
    given: given_values.HookValuesOrigin = msgspec.field(default_factory=given_values.HookValuesOrigin)
    """Where the values that hooks give were taken from."""
    recorded_at: float | None = None
    """When the state was recorded that stands in for the cluster, in seconds since the epoch."""

    @property
    def is_change(self) -> bool:
        """Whether something in the cluster would change."""
        return bool(self.purges) or any(module.is_change for module in self.modules)

    @property
    def is_failed(self) -> bool:
        """Whether something could not be found out."""
        return any(module.release.step is PlanStep.UNKNOWN for module in self.modules)


def without_release(
    module: model.Module, decided: plan.ConvergePlan, maintenance: str, *, switch_is_unread: bool = False
) -> ReleaseReport | None:
    """Return the report on a module whose release need not be looked at; ``None`` if it has to be.

    ``switch_is_unread``: whether no source switches it, and its ``values.yaml`` cannot be read.
    """
    if (error := decided.verdicts[module.name].error) is not None:
        why = errors.of_module(str(error), module.name)
        return ReleaseReport(PlanStep.UNKNOWN, f"{why}; it stays as it is")
    if module.name not in decided.enabled:
        return _disabled(module, decided, switch_is_unread=switch_is_unread)
    if module.stopped_by:
        return ReleaseReport(PlanStep.UNKNOWN, module.stopped_by)
    if not module.has_chart:
        return ReleaseReport(PlanStep.HOOKS, "the module has no chart")
    if maintenance:
        return ReleaseReport(PlanStep.NOTHING, f"the module is in maintenance: {maintenance}")
    return None


def _disabled(module: model.Module, decided: plan.ConvergePlan, *, switch_is_unread: bool) -> ReleaseReport:
    if module.name in decided.deletes:
        return ReleaseReport(PlanStep.DELETE, "the module is disabled and has a release")
    if switch_is_unread:
        return ReleaseReport(PlanStep.UNKNOWN, f"whether it is enabled is not known: {module.problem}")
    return ReleaseReport(PlanStep.NOTHING, "the module is disabled and has no release")


def purges(observed: plan.Observed, decided: plan.ConvergePlan) -> tuple[Purge, ...]:
    """Return the purges of a plan with their reasons."""
    return tuple(Purge(name, plan.purge_reason(observed, name)) for name in decided.purges)


def taken_over(
    purge: Purge, manifest: str, modules: Iterable[ModuleReport], namespace_of: Callable[[str], str]
) -> Iterator[str]:
    """Yield a sentence for each module that takes over objects of a purged release.

    ``manifest`` is that of the release; ``namespace_of`` gives the namespace of a release. The purge comes
    after the modules, and what another release has by then is not deleted with it.
    """
    documents = manifest_diff.objects(manifest_diff.parse(manifest))
    of_purged = namespace_of(purge.release)
    gone = {_placed(document.key, of_purged) for document in documents if not _is_kept(document)}
    for module in modules:
        added = (change.key for change in module.release.changes if change.kind is _ADDED)
        namespace = namespace_of(module.name)
        if common := [str(key) for key in added if _placed(key, namespace) in gone]:
            yield (
                f"module {module.name} takes over {names.listed(common, NAMED)} from release "
                f"{purge.release}: they stay, with their data, when that is purged afterwards"
            )


def moves(modules: Iterable[ModuleReport], namespace_of: Callable[[str], str]) -> Iterator[str]:
    """Yield a sentence for each two modules between which objects move: they keep their uids."""
    reports = list(modules)
    gone = {
        _placed(change.key, namespace_of(report.name)): report
        for report in reports
        for change in report.release.changes
        if change.kind is _REMOVED
    }
    moving: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for report in reports:
        for change in report.release.changes:
            source = gone.get(_placed(change.key, namespace_of(report.name)))
            if change.kind is _ADDED and source is not None and source is not report:
                is_random = change.key in report.release.by_chance
                moving[source.name, report.name].append(f"{change.key}{_AT_RANDOM if is_random else ''}")
    for (source_name, target), keys in moving.items():
        yield (
            f"{names.listed(keys, NAMED)}: moves from module {source_name} to module {target} and is not "
            "deleted; the chart of the latter says what is in it then"
        )


def removed(what: str, staying: keeper.Staying) -> Iterator[str]:
    """Yield sentences about what the removal of a release deletes, and what of it stays."""
    counts = collections.Counter(each.kind for each in staying.going)
    parts = [f"{count} {kind}" for kind, count in sorted(counts.items())]
    total = counts.total()
    deletes = f"{total} object{'s' * (total != 1)}" + (f" ({', '.join(parts)})" if parts else "")
    yield f"the removal of {what} deletes {deletes}"
    lost = staying.with_data.items()
    yield from (f"{keeping.counted(str(each), count)} of {what} goes with its data, as removal.data says"
                for each, count in lost)  # fmt: skip
    kept = staying.kept.values()
    yield from (f"{each} of {what} stays: {each.why}; '{each.command}' removes it" for each in kept)


def replaced(module: ModuleReport) -> Iterator[str]:
    """Yield a sentence if an upgrade needs a deletion first, as it changes a selector, say."""
    if module.release.step is PlanStep.UNKNOWN and fixed_fields.is_told(module.release.reason):
        reason = errors.of_module(module.release.reason, module.name)
        yield f"module {module.name} needs an object deleted first: {reason}"


def data_deleted(module: names.ModuleName, manifest: str) -> list[str]:
    """Return sentences about objects by which a chart has data deleted that nobody asked to delete."""
    objects = manifest_diff.objects(manifest_diff.parse(manifest))
    said = ((each.key, keeping.deleted_by_chart(each.body or {})) for each in objects)
    return [f"{key.kind} {key.name} of module {module} {text}" for key, text in said if text]


def _resource(key: manifest_diff.ManifestKey) -> manifests.ManifestResource:
    return manifests.ManifestResource(key.api_version, key.kind, key.namespace or None, key.name)


def _is_kept(document: manifest_diff.ManifestDocument) -> bool:
    metadata = (document.body or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get(_POLICY) == "keep"


def _placed(key: manifest_diff.ManifestKey, namespace: str) -> manifest_diff.ManifestKey:
    return structs.replace(key, namespace=key.namespace or namespace)


def in_order(
    decided: plan.ConvergePlan, run_order: Iterable[model.Module], modules: Iterable[ModuleReport]
) -> tuple[ModuleReport, ...]:
    """Put deletes first, as they come, then the others in run order."""
    names_in_order = dict.fromkeys([*decided.deletes, *(module.name for module in run_order)])
    position = {name: number for number, name in enumerate(names_in_order)}
    return tuple(sorted(modules, key=lambda each: position[each.name]))
