"""Makes the plan that ``addon-operator plan`` shows: what the operator would do if it started now.

It is the plan of the engine (:mod:`.plan`) with the decisions of the release manager,
over the same observations; hooks are not run, and nothing is changed.
"""

import asyncio
import contextlib
import datetime as dt
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from addon_operator.aio import waiting
from addon_operator.commands.plan import (
    cluster_lookup,
    dry_run,
    given_values,
    merge_check,
    plan_base,
    plan_causes,
    plan_report,
    plan_sources,
    plan_unknown,
    plan_windows,
    proposal,
)
from addon_operator.commands.plan_state import plan_state
from addon_operator.engine import module_states
from addon_operator.engine.converge import cluster_requirements, module_discovery
from addon_operator.engine.definitions import crd_index
from addon_operator.engine.modules import module_releases, module_slips
from addon_operator.helm import helm_errors, release_types
from addon_operator.helm.charts import chart
from addon_operator.kernel import errors, names
from addon_operator.kube import cluster
from addon_operator.loading import hook_files
from addon_operator.modules import manifests, model, plan, release, requirements, windows
from addon_operator.settings import settings as settings_module
from addon_operator.values import checks
from addon_operator.values.schema import schema_violations

_STEPS: Final = {
    release_types.PlannedAction.INSTALL: plan_report.PlanStep.INSTALL,
    release_types.PlannedAction.UPGRADE: plan_report.PlanStep.UPGRADE,
    release_types.PlannedAction.NOTHING: plan_report.PlanStep.NOTHING,
}


async def make(
    settings: settings_module.Settings,
    environ: Mapping[str, str],
    only: Collection[str],
    pod: str | None = None,
    recorded: plan_state.PlanState | None = None,
    proposed: proposal.Proposal = proposal.NOTHING,
) -> plan_report.PlanReport:
    """Look at files and cluster, and plan; ``only``: names of the modules to look at, all if there are none.

    ``pod``: which operator tells what hooks gave, see :func:`.running_operator.in_pod`; by default the one on
    the debug socket. ``recorded`` stands in for the cluster; without it, ``proposed`` is an edit that counts
    as made. Raises what keeps the operator from starting, and an :class:`.AddonOperatorError` when the
    discovery fails.
    """
    async with contextlib.AsyncExitStack() as stack:
        if recorded is None:
            sources = await plan_sources.live(settings, environ, stack, pod, proposed)
        else:
            sources = await plan_sources.of_state(recorded, settings, environ, stack)
        chosen = _chosen(only, [files.module.name for files in sources.loaded.modules])
        report = await _Planner(sources).make(chosen)
    return structs.replace(report, recorded_at=None if recorded is None else recorded.recorded_at)


async def make_compared(
    settings: settings_module.Settings,
    environ: Mapping[str, str],
    only: Collection[str],
    base: str,
    recorded: plan_state.PlanState,
) -> plan_report.PlanReport:
    """Plan as :func:`make`, and say what of it comes from the change since ``base``.

    See :func:`.plan_base.settings_of`. Of the modules in ``only``, those count that there are.
    """
    head = await make(settings, environ, only, None, recorded)
    async with plan_base.settings_of(base, settings, environ) as before:
        try:
            there = await make(before, environ, (), None, recorded)
        except errors.AddonOperatorError as error:
            note = f"what would happen without the change is not known: the base cannot be planned: {error}"
            return structs.replace(head, notes=(*head.notes, note))
    return plan_base.compared(head, there, only)


def _chosen(only: Collection[str], modules: Sequence[names.ModuleName]) -> frozenset[names.ModuleName]:
    for name in only:
        if name not in modules:
            raise errors.ConfigurationError(names.unknown(name, modules))
    return frozenset(names.ModuleName(name) for name in only) or frozenset(modules)


def _ignore(_event: object) -> None:
    """Ignore it: nothing runs."""


def _no_watch(_what: str, _reason: str) -> None:
    """Ignore it: nothing is watched."""


def _placed(resource: manifests.ManifestResource, namespace: str) -> manifests.ManifestResource:
    """Return what an object is called in all releases; ``namespace`` is that of its own."""
    return structs.replace(resource, namespace=resource.namespace or namespace)


class _Others(release_types.Others):
    """The releases as they would be."""

    def __init__(
        self, owners: Mapping[manifests.ManifestResource, set[str]], release: str, namespace: str
    ) -> None:
        self._owners = owners
        self._release = release
        self._namespace = namespace

    async def give_up(
        self, dropped: Sequence[manifests.ManifestResource]
    ) -> tuple[manifests.ManifestResource, ...]:
        placed = {each: _placed(each, self._namespace) for each in dropped}
        return tuple(each for each in dropped if self._owners.get(placed[each], set()) - {self._release})


class _Planner:
    def __init__(self, sources: plan_sources.PlanSources) -> None:
        parts, loaded, notes = sources.parts, sources.loaded, sources.notes
        settings = parts.settings
        self._given_sources = sources
        self._settings = settings
        self._modules = {files.module.name: files.module for files in loaded.modules}
        self._unread = {files.module.name for files in loaded.modules if files.values.own.is_unread}
        self._lacks, self._strays = loaded.lacks, loaded.strays
        self._values = sources.values
        self._manager = parts.releases
        self._charts = parts.charts
        self._ignored = sources.ignored
        self._runner = parts.hook_processes()
        self._notes = notes
        self._losses: list[str] = []
        self._turns = asyncio.Semaphore(settings.modules_parallelism)
        self._given = given_values.HookValuesOrigin()
        self._releases: Mapping[str, int] = {}
        """The number of the last revision of each."""
        self._seen = cluster.Cluster(
            parts.kube, parts.kinds, settings.namespace, waiting.SystemTime(), _no_watch
        )
        self._sources = parts.crd_sources(sources.values)
        self._windows = plan_windows.PlanWindows(self._modules, settings.windows, dt.datetime.now(dt.UTC))
        self._owners: dict[manifests.ManifestResource, set[str]] = {}
        self._cluster = cluster_lookup.ClusterLookup(parts.kube, self._seen.kinds, notes.append)
        self._unknowns = plan_unknown.Unknowns(self._runner)
        self._dry_run = dry_run.DryRun(parts.kube, self._seen.kinds, parts.helm_major, notes.append)
        self._merge_check = merge_check.MergeCheck(parts.kube, self._seen.kinds, parts.helm_major)

    async def make(self, chosen: Collection[names.ModuleName]) -> plan_report.PlanReport:
        self._manager.places.assign(requirements.in_run_order(self._modules.values()))
        revisions = await self._manager.observe_all()
        self._releases = {name: each.number for name, each in revisions.items() if each.exists}
        if self._has_hooks(self._modules.values()):
            self._given = await self._given_sources.take()
        ours = {name: self._manager.is_ours(revision) for name, revision in revisions.items()}
        observed = await self._observe(ours)
        decided = plan.plan_converge(observed)
        for renamed in plan.may_be_renamed(observed):
            self._manager.keep_data(renamed)
        self._values.enabled = decided.enabled
        looked_at = [module for name, module in self._modules.items() if name in chosen]
        modules = await asyncio.gather(*(self._module(module, decided) for module in looked_at))
        all_purges = plan_report.purges(observed, decided) if len(chosen) == len(self._modules) else ()
        successor = self._manager.places.successor
        purges = tuple(self._windows.purge(each, successor(each.release)) for each in all_purges)
        for purge in purges:
            self._notes += await self._taken_over(purge, modules)
        self._notes += plan_report.moves(modules, self._namespace_of)
        self._notes += requirements.removed_with(self._modules.values(), decided.deletes, plan_report.NAMED)
        for each in modules:
            if each.release.step is plan_report.PlanStep.DELETE:
                self._losses += await self._removed(each.name, f"module {each.name}")
            self._losses += plan_report.replaced(each)
        for purge in purges:
            self._losses += await self._removed(names.ModuleName(purge.release), f"release {purge.release}")
        for place, left in self._manager.left.moving.items():
            left_of = names.listed([*map(str, left)], plan_report.NAMED)
            self._notes.append(
                f"release {place}: {left_of} left it, and go when no module may have them any more"
            )
        self._notes += (*plan.stays(observed), *plan.chartless(observed).values())
        self._notes += [note for module in looked_at for note in _notes_on_go_hooks(module)]
        self._notes += await self._slips(module for module in looked_at if module.name in decided.enabled)
        self._notes += self._shared()
        self._notes += await asyncio.to_thread(self._shared_definitions, decided.enabled, chosen)
        if self._has_hooks(looked_at):
            self._notes.append(f"hooks were not run: {self._given}")
        return plan_report.PlanReport(
            namespace=self._settings.namespace,
            modules=plan_report.in_order(decided, requirements.in_run_order(self._modules.values()), modules),
            purges=purges,
            losses=tuple(dict.fromkeys(self._losses)),
            notes=tuple(dict.fromkeys(self._notes)),
            given=self._given,
        )

    async def _slips(self, modules: Iterable[model.Module]) -> list[str]:
        """Say which keys of values are probably misspelt; what templates read, hooks may set at a run."""
        slips = module_slips.ModuleSlips(self._values)
        stock = [module for module in modules if module.stock is not None]
        return [f"module {module.name}: {text}" for module in stock for text in await slips.of(module)]

    async def _taken_over(
        self, purge: plan_report.Purge, modules: Sequence[plan_report.ModuleReport]
    ) -> tuple[str, ...]:
        try:
            manifest = await self._manager.manifest(names.ModuleName(purge.release))
        except errors.AddonOperatorError as error:
            unknown = f"whether modules take over objects of release {purge.release} is not known: {error}"
            return (unknown,)
        return tuple(plan_report.taken_over(purge, manifest or "", modules, self._namespace_of))

    async def _removed(self, release: names.ModuleName, what: str) -> tuple[str, ...]:
        """Say what a removal deletes, and what stays; without a cluster nobody knows what is there."""
        if self._given_sources.hidden is not None or release not in self._releases:
            return ()
        module = self._modules.get(release)
        others = _Others(self._owners, release, self._namespace_of(release))
        directory = module.chart_directory if module is not None and module.has_chart else None
        try:
            staying = await self._manager.preview_removal(release, others, directory)
        except errors.AddonOperatorError as error:
            return (f"what the removal of {what} deletes is not known: {error}",)
        told = tuple(plan_report.removed(what, staying))
        if self._manager.is_unconfirmed(release, self._releases[release]):
            told += (f"the removal of {what} {windows.waiting('', release)}",)
        return told

    def _namespace_of(self, release: str) -> str:
        return self._manager.places.of(release).namespace

    async def _observe(self, releases: Mapping[str, bool]) -> plan.Observed:
        states = module_states.ModuleStates(list(self._modules.values()), _ignore)
        states.lacks, states.strays = self._lacks, self._strays
        states.blame(self._given_sources.wrong)
        discovery = module_discovery.Discovery(
            states,
            self._values,
            self._runner,
            plan.RemovalPolicy(
                plan.PurgePolicy(self._settings.helm_purge), allow_empty=self._settings.allow_empty_modules
            ),
            cluster_requirements.ClusterRequirements(self._seen.kinds, self._seen.probe, self._sources),
            _ignore,
        )
        places = self._manager.places
        moved = frozenset(each for each in releases if places.successor(each) is not None)
        return await discovery.observe(releases, places.ignored(self._ignored), moved)

    async def _module(self, module: model.Module, decided: plan.ConvergePlan) -> plan_report.ModuleReport:
        verdict = decided.verdicts[module.name]
        report = plan_report.without_release(
            module,
            decided,
            self._values.maintenance(module.name),
            switch_is_unread=module.name in self._unread and self._values.flag(module.name).is_default,
        )
        if report is None:
            async with self._turns:
                report = await self._release(module)
        elif report.step is plan_report.PlanStep.DELETE:
            report = self._windows.removal(module, report, self._releases.__contains__)
        title = "" if module.release_title == module.name else module.release_title
        waits_for = requirements.required(module) if verdict.enabled else ()
        unknown = await self._unknown(module) if verdict.enabled else ()
        return plan_report.ModuleReport(
            module.name, module.order, verdict.enabled, verdict.reason, report, title, waits_for, unknown
        )

    async def _unknown(self, module: model.Module) -> tuple[str, ...]:
        """Say what only a cluster would show; with one, a note says what hooks gave."""
        if self._given_sources.hidden is None:
            return ()
        found: list[str] = []
        if module.has_chart:
            with contextlib.suppress(errors.AddonOperatorError):
                request = module_releases.request_of(self._values, module)
                found += self._unknowns.of_chart(await self._manager.inputs(request))
        return (*found, *await self._unknowns.of_hooks(module))

    async def _release(self, module: model.Module) -> plan_report.ReleaseReport:
        try:
            ignored = self._manager.places.ignored(self._ignored)
            module_releases.check_release_name(module, ignored)
            # The chart's own schema counts, too.
            await self._charts.ensure(module, None)
            checks.Checks(self._values).checking_helm_values(module.name)()
            before = await self._given_before(module)
            request = module_releases.request_of(self._values, module, before)
            request = self._given_sources.adjusted(request, module.key)
            preview = await self._manager.preview(request)
            if preview.action is release_types.PlannedAction.NOTHING and (
                absent := await self._absent(module)
            ):
                return plan_report.ReleaseReport(
                    plan_report.PlanStep.RESTORE, release.absence(absent), preview.revision
                )
        except schema_violations.InvalidValuesError as error:
            return self._without_hooks(module, error)
        except errors.AddonOperatorError as error:
            return plan_report.ReleaseReport(plan_report.PlanStep.UNKNOWN, str(error))
        self._have(module, await asyncio.to_thread(manifests.resources, preview.manifest))
        self._losses += await asyncio.to_thread(plan_report.data_deleted, module.name, preview.manifest)
        if preview.adopted:
            policy = self._settings.take_ownership
            self._notes.append(
                f"module {module.name} takes over objects that exist already (TAKE_OWNERSHIP={policy}): "
                f"{', '.join(preview.adopted)}"
            )
        step, reason = _STEPS[preview.action], await self._cause(preview.reason, request, before)
        if step is plan_report.PlanStep.UPGRADE and (why := self._unrecorded(module)):
            return plan_report.ReleaseReport(plan_report.PlanStep.UNKNOWN, why, preview.revision)
        if refused := await self._refused(module, preview, request.redact):
            step, reason = plan_report.PlanStep.UNKNOWN, f"Helm would fail: {refused}"
        report = plan_report.ReleaseReport(
            step, reason, preview.revision, preview.recoveries, preview.changes, preview.by_chance
        )
        if preview.may_wait and step is plan_report.PlanStep.UPGRADE:
            return self._windows.upgrade(module, report)
        return report

    def _unrecorded(self, module: model.Module) -> str:
        """Say why it is not known whether a changed module gets a revision; empty if that is known."""
        hidden = self._given_sources.hidden
        if hidden is None or module.name not in hidden.unplannable:
            return ""
        error = hidden.unplannable[module.name]
        return (
            "whether its manifest changes is not known: when the state was recorded, the chart did not "
            f"render, or not with stand-ins for sensitive values: {error}; plan with the cluster"
        )

    async def _refused(
        self,
        module: model.Module,
        preview: release_types.ReleasePreview,
        redact: Callable[[str], str],
    ) -> str:
        """Say why Helm would fail with what the chart renders to; empty if nothing speaks against it."""
        definitions = self._definitions()
        if (refused := await self._cluster.refused(preview.changes, definitions)) is not None:
            return refused
        brought = await asyncio.to_thread(self._cluster.defined, definitions)
        namespace = self._manager.places.of(module.name).namespace
        refused = await self._dry_run.refused(module, namespace, preview, brought.__contains__)
        return redact(refused or await self._merge_check.refused(namespace, preview))

    async def _cause(
        self,
        reason: str,
        request: release_types.ReleaseRequest,
        before: release_types.RevisionInputs | None,
    ) -> str:
        """Return the reason of an upgrade with the values that changed; a state file does not tell which."""
        is_hidden = self._given_sources.hidden is not None
        if before is None or is_hidden or not plan_causes.is_of_inputs(reason):
            return reason
        values = plan_causes.with_enabled(request.values, request.enabled_modules, before.values)
        was, now = plan_causes.Given(before.values, {}), plan_causes.Given(values, {})
        if not request.has_own_values:
            try:
                own = await asyncio.to_thread(chart.own_values, request.module, request.directory)
            except errors.AddonOperatorError:
                return reason
            was, now = plan_causes.Given(before.values, before.defaults), plan_causes.Given(values, own)
        return plan_causes.named(reason, was, now)

    async def _given_before(self, module: model.Module) -> release_types.RevisionInputs | None:
        """Return what the last revision was made with; nothing of it is shown if it cannot be read."""
        try:
            return await self._manager.revision_inputs(module.name)
        except helm_errors.ReleaseRecordError:
            return None

    def _without_hooks(
        self, module: model.Module, error: schema_violations.InvalidValuesError
    ) -> plan_report.ReleaseReport:
        """Tell of values that are wrong; those that hooks have yet to give are no mistake."""
        unknown = plan_report.ReleaseReport(plan_report.PlanStep.UNKNOWN, str(error))
        if checks.Checks(self._values).config_violations(self._values.config, [module.name]) or not all(
            violation.is_missing_key and self._have_hooks(violation, module) for violation in error.violations
        ):
            return unknown
        missing = ", ".join(
            dict.fromkeys(f"{violation.path} {violation.rule}" for violation in error.violations)
        )
        reason = f"hooks have to give values first: {missing}; the changes are not known before"
        if module.name not in self._releases:
            return plan_report.ReleaseReport(plan_report.PlanStep.INSTALL, f"there is no release; {reason}")
        if self._given.operator or module.name in self._given.releases:
            upgrade = plan_report.ReleaseReport(plan_report.PlanStep.UPGRADE, reason)
            return self._windows.upgrade(module, upgrade)
        return unknown

    def _have_hooks(self, violation: schema_violations.Violation, module: model.Module) -> bool:
        """Say whether there are hooks that may set what is missing."""
        is_global = violation.keys[:1] == (names.GLOBAL_KEY,)
        directory = self._settings.global_hooks_dir if is_global else module.path
        return (directory / given_values.HOOKS).is_dir()

    def _definitions(self) -> list[pathlib.Path]:
        """Return where modules bring definitions of kinds, in the charts within their charts, too."""
        modules = self._modules.values()
        roots = {place for module in modules for place in (module.path, module.chart_directory)}
        return [root / "crds" for root in roots] + [
            path for root in roots for path in (root / "charts").glob("**/crds")
        ]

    def _have(self, module: model.Module, resources: Iterable[manifests.ManifestResource]) -> None:
        for each in resources:
            placed = _placed(each, self._namespace_of(module.name))
            self._owners.setdefault(placed, set()).add(module.name)

    def _shared(self) -> Iterator[str]:
        for resource, owners in self._owners.items():
            if len(owners) > 1:
                in_order = sorted(owners, key=self._manager.places.turn)
                yield (
                    f"modules {' and '.join(in_order)} both have {resource}, which belongs to "
                    f"{in_order[-1]}; remove it from the other chart"
                )

    def _shared_definitions(
        self, enabled: Collection[names.ModuleName], chosen: Collection[names.ModuleName]
    ) -> list[str]:
        """Say which definitions of enabled modules are not in force, as those of others are."""
        modules = [self._modules[name] for name in enabled if not self._modules[name].problem]
        shared = crd_index.shared(self._sources, modules)
        return [f"module {each.name}: {said}" for each, _, said in shared if each.name in chosen]

    async def _absent(self, module: model.Module) -> tuple[str, ...]:
        """Find what is gone of a release that is as it should be otherwise: healing restores it."""
        deployed = await self._manager.deployed(module.name)
        self._have(module, manifests.resources(deployed.manifest if deployed else ""))
        namespace = self._manager.places.of(module.name).namespace
        return await self._cluster.absent(deployed.manifest if deployed else "", namespace)

    def _has_hooks(self, modules: Collection[model.Module]) -> bool:
        directories = [self._settings.global_hooks_dir, *(module.path for module in modules)]
        return any((directory / given_values.HOOKS).is_dir() for directory in directories)


def _notes_on_go_hooks(module: model.Module) -> Iterator[str]:
    try:
        files = hook_files.discover(module.path / hook_files.HOOKS_DIRECTORY)
    except hook_files.HookFilesError:
        return  # It is what stops the module.
    for name in files.go_hooks:
        yield f"module {module.name}: {name} {hook_files.GO_VERDICT}"
