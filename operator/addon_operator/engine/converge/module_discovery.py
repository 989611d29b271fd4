"""Discovery of modules: observe flags, ``enabled`` scripts and releases, and plan a converge of them."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from addon_operator.aio import absences
from addon_operator.engine import config_events, events, module_states, state, tasks
from addon_operator.engine.converge import cluster_requirements
from addon_operator.engine.hooks import enabled_scripts, hook_processes
from addon_operator.engine.modules import module_run
from addon_operator.kernel import clock, errors, names
from addon_operator.modules import findings, model, plan, requirements
from addon_operator.process import start_errors
from addon_operator.values import sources, store

_SHOWN: Final = 5
RETRY: Final = 5.0
"""Seconds between tries of a failing discovery."""


class NoModulesError(errors.AddonOperatorError):
    """No module is there that has a release, so that all would be removed: more likely, a mistake."""

    def __init__(self, releases: Sequence[str], modules: Sequence[model.Module]) -> None:
        there = names.listed(releases, _SHOWN)
        super().__init__(
            f"{_other_modules(modules, there) if modules else _no_module(there)}, or set "
            "ALLOW_EMPTY_MODULES=true to have the releases removed"
        )


def _no_module(releases: str) -> str:
    return (
        f"MODULES_DIR holds no module, but there are releases of modules ({releases}), and none is removed: "
        "see that the directory is mounted and that the image has the modules"
    )


def _other_modules(modules: Sequence[model.Module], releases: str) -> str:
    others = names.listed([module.name for module in modules], _SHOWN)
    return (
        f"MODULES_DIR holds other modules ({others}) than those that have releases here ({releases}), and "
        "none of these is removed: see that it is the right directory, and the right namespace"
    )


class SecondLook:
    """Decides that module directories are gone whose releases are left: a second look finds none, either.

    At a start, that comes after the first converge, which is not to wait for it.
    """

    def __init__(
        self, time: clock.Clock, absence: float, unread: Callable[[Collection[str]], Awaitable[str]]
    ) -> None:
        """``unread`` says which directories of modules are there beside those of these names, if any are."""
        self._absences = absences.Absences[str](time, absence)
        self._unread = unread
        self._has_converged = False
        self._doubted: frozenset[str] = frozenset()

    async def take(self, observed: plan.Observed) -> plan.Observed:
        """Say which releases are in doubt; with a directory that nobody has read, all are."""
        left = frozenset(plan.left_over(observed)) - observed.moved
        gone = self._absences.look(left)
        self._doubted = left - gone if self._has_converged else left
        hidden_by = observed.hidden_by
        if left - self._doubted and not hidden_by:
            hidden_by = await self._unread([module.name for module in observed.modules])
        return structs.replace(observed, doubted=self._doubted, hidden_by=hidden_by)

    def converged(self) -> float | None:
        """Note that a converge is through; seconds until the next one is due, ``None`` if none is."""
        self._has_converged = True
        return self._absences.due if self._doubted else None


class Discovery:
    """Gathers what the plan of a converge depends on."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        values: store.ValuesStore,
        runner: hook_processes.HookProcesses,
        removals: plan.RemovalPolicy,
        cluster: cluster_requirements.ClusterRequirements,
        tell: events.Listener,
        second_look: "SecondLook | None" = None,
        patience: float | None = None,
    ) -> None:
        """``second_look``: what decides that module directories are gone; without it, the first one does.

        ``enabled`` scripts that hang for ``patience`` seconds are not waited for.
        """
        self.second_look = second_look
        self.scripts = enabled_scripts.EnabledScripts(runner, values, patience)
        """The scripts that are asked."""
        self._states = states
        self._values = values
        self._removals = removals
        self._cluster = cluster
        self._tell = tell
        self._removals_told: frozenset[events.Event] = frozenset()

    async def observe(
        self, releases: Mapping[str, bool], ignored: frozenset[str], moved: frozenset[str] = frozenset()
    ) -> plan.Observed:
        """Look at everything once; ``releases`` are those that there are, and whether they are ours.

        Those in ``ignored`` are never removed, and those in ``moved`` are of modules that have another one.
        A module whose ``enabled`` script gives no verdict stays as it was, see :attr:`.Verdict.error`.

        Raises :class:`NoModulesError`, and what the API client raises.
        """
        observed = plan.Observed(
            modules=self._states.modules,
            verdicts={},
            releases=releases,
            started=self._states.started,
            moved=moved,
            hidden_by=self._states.refused or ("" if self._removals.allow_empty else self._states.lacks),
            strays=self._states.strays,
            removals=structs.replace(self._removals, ignored=ignored),
        )
        if spared := plan.spared(observed):
            # No script of a module that is not meant runs.
            raise NoModulesError(spared[::-1], observed.modules)
        if self.second_look is not None:
            observed = await self.second_look.take(observed)
        return structs.replace(observed, verdicts=await self._verdicts(releases))

    def take(self, observed: plan.Observed, decided: plan.ConvergePlan) -> None:
        """Make what was decided the state of the modules, and report what it removes."""
        self._states.discovered(decided.verdicts, decided.enabled, decided.deletes)
        self._values.enabled = decided.enabled
        self._tell(events.ModulesDiscovered(len(decided.enabled), len(observed.modules)))
        self._tell_of_removals(observed, decided)

    def failed(self) -> None:
        """Report a failed discovery."""
        self._tell(events.DiscoveryFailed())

    async def ask_again(self, task: tasks.Task) -> None:
        """Ask the ``enabled`` script of a module that gave no verdict; once it does, a converge is due.

        The end of one that hangs is waited for: the converge takes what it said. Raises why it gives none.
        """
        name = names.ModuleName(task.owner)
        module = self._states[name].module
        if await self.scripts.wait(name, task.stopping):
            task.checkpoint()
            return
        verdict = await self._asked(module, list(self._states.enabled), is_ours=False)
        if verdict.error is not None:
            raise verdict.error

    def is_switched_on(self, owner: str) -> bool:
        """Say whether values enable a module; a release without a module is none."""
        name = names.ModuleName(owner)
        return name in self._states and self._values.flag(name).enabled

    def switched_off(self) -> Iterator[names.ModuleName]:
        """Yield the modules at work that are to be no longer, although no discovery has said so yet."""
        for module in self._states:
            is_at_work = module.started or module.status is state.ModuleStatus.RUNNING
            if is_at_work and not self._values.flag(module.module.name).enabled:
                yield module.module.name

    def _tell_of_removals(self, observed: plan.Observed, decided: plan.ConvergePlan) -> None:
        """Report each removal, and each that is put off, once as long as it is due."""
        deletes = (f"module {name} is deleted: {decided.verdicts[name].reason}" for name in decided.deletes)
        purges = (f"release {name} is purged: {plan.purge_reason(observed, name)}" for name in decided.purges)
        due: list[events.Event] = [events.RemovalDue(text) for text in (*deletes, *purges)]
        stays = [events.Warned(text) for text in plan.stays(observed)]
        chartless = plan.chartless(observed)
        self._states.note_each(findings.CHART_LOST, chartless)
        told = (*due, *stays, *map(events.Warned, chartless.values()))
        for event in told:
            if event not in self._removals_told:
                self._tell(event)
        self._removals_told = frozenset(told)
        self._states.withholds = bool(stays)

    async def _verdicts(self, releases: Mapping[str, bool]) -> dict[names.ModuleName, model.Verdict]:
        facts = await self._cluster.look(
            self._states.modules, lambda module: self._values.flag(module.name).enabled
        )
        verdicts: dict[names.ModuleName, model.Verdict] = {}
        enabled: list[names.ModuleName] = []
        for module in self._states.modules:
            is_enabled = module.name in self._states.enabled
            # Another's release of its name would be taken over, which is a first install, too.
            is_there = is_enabled or releases.get(module.name, False)
            unmet = requirements.unmet(module, facts, verdicts, is_there=is_there)
            verdict = await self._verdict(
                module,
                enabled,
                unmet,
                is_there=is_enabled or module.name in releases,
                is_ours=releases.get(module.name, False),
            )
            if verdict.enabled and not module.problem:
                lacks = requirements.lacking(module, facts, verdicts, is_there=True)
                verdict = structs.replace(verdict, lacks=lacks)
            verdicts[module.name] = verdict
            self._tell(events.ModuleDecided(verdict))
            if verdict.enabled:
                enabled.append(module.name)
        self.scripts.keep_only([name for name, verdict in verdicts.items() if verdict.error is not None])
        return verdicts

    async def _verdict(
        self,
        module: model.Module,
        enabled: list[names.ModuleName],
        unmet: model.Verdict | None,
        *,
        is_there: bool,
        is_ours: bool,
    ) -> model.Verdict:
        """``unmet`` is the verdict on a module that is switched on, if it lacks what it requires."""
        flag = self._values.flag(module.name)
        if flag.enabled and unmet is not None:
            return unmet
        if module.problem:
            return verdict_on_wrong(module, flag, is_there=is_there)
        withheld = self._values.withheld.get(module.name, frozenset())
        if not flag.enabled and names.enabled_key(module.name) not in withheld:
            return model.Verdict(module.name, flag.enabled, flag.reason)
        return await self._asked(module, enabled, is_ours=is_ours)

    async def _asked(
        self, module: model.Module, enabled: list[names.ModuleName], *, is_ours: bool
    ) -> model.Verdict:
        """Return the verdict of the script of a module that is switched on, if it has one.

        Without a verdict it stays on or off, as with wrong values; at a start it is on if ``is_ours``, its
        release.
        """
        script, name = module.enabled_script, module.name
        if name in self._values.withheld:
            texts = self._states[name].texts(findings.WRONG_VALUES)
            wrong = config_events.WrongValuesError(name, "".join(texts))
            return self._as_before(name, wrong, "its values are wrong", is_ours=is_ours)
        # A script that nobody may execute stops the module itself.
        if script is None or not start_errors.is_executable(script):
            return model.Verdict(name, enabled=True, reason=self._values.flag(name).reason)
        try:
            return await self.scripts.ask(module, enabled)
        except errors.AddonOperatorError as error:
            told = error if isinstance(error, errors.ModuleError) else errors.ModuleError(name, str(error))
            return self._as_before(name, told, "its enabled script gives no verdict", is_ours=is_ours)

    def _as_before(
        self, name: names.ModuleName, error: errors.ModuleError, why: str, *, is_ours: bool
    ) -> model.Verdict:
        known = self._states[name]
        is_decided = known.discovered and not known.awaits_config
        stays = name in self._states.enabled if is_decided else is_ours
        return model.Verdict(name, stays, f"{why}, and it stays {'on' if stays else 'off'}", error=error)


class DiscoverTask(tasks.Task):
    """Finds out which modules are enabled, and plans the converge."""

    kind = tasks.TaskKind.DISCOVER_MODULES
    fixed_delay = RETRY

    def __init__(self, discovery: Discovery, runner: module_run.ModuleRunner, activation: str) -> None:
        super().__init__(activation=activation)
        self._discovery = discovery
        self._runner = runner
        self.plan: plan.ConvergePlan | None = None
        """What the converge is to do, once this is done."""

    async def run(self) -> None:
        """Try it once; raises what :meth:`Discovery.observe` raises, and when releases cannot be listed."""
        releases = self._runner.releases
        try:
            # Before any script runs: without the releases nobody knows what there is to lose.
            there = await releases.observe_all(self._runner.states.modules)
            staying = releases.ignored | releases.taken_over
            observed = await self._discovery.observe(there, staying, releases.moved(there))
            decided = plan.plan_converge(observed)
        except Exception:
            self._discovery.failed()
            raise
        self.checkpoint()
        releases.windows.keep_only(decided.enabled, {*decided.deletes, *decided.purges})
        releases.keep_data(plan.may_be_renamed(observed))
        releases.warn_of_unremembered(decided.enabled)
        self._discovery.take(observed, decided)
        self._runner.keep_only(decided.enabled)
        # Nothing of a module goes as long as its hooks are asked.
        await self._runner.answer_only(decided.enabled)
        self.plan = decided


def verdict_on_wrong(module: model.Module, flag: sources.Flag, *, is_there: bool) -> model.Verdict:
    """Return the verdict on a module whose files are wrong: if it is enabled, it fails.

    If no source switches it, that may be what cannot be read: what ``is_there`` is not removed for that.
    """
    if flag.enabled:
        return model.Verdict(module.name, enabled=True, reason=flag.reason)
    if flag.is_default and is_there:
        return model.Verdict(module.name, enabled=True, reason="it is there, and its files are wrong")
    return model.Verdict(
        module.name, enabled=False, reason=f"{flag.reason}; its files are wrong, too: {module.problem}"
    )
