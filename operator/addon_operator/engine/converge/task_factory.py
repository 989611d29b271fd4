"""The tasks that a converge is made of, and those that events make."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from addon_operator.engine import events, state, tasks
from addon_operator.engine.converge import module_discovery
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.modules import module_crds, module_run
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import errors, names
from addon_operator.modules import plan, requirements
from addon_operator.values import store

_CRDS_LANE: Final = -1
"""Modules' definitions are applied side by side, whatever the modules' orders."""
DISCOVERY_RETRY = 5.0
"""Seconds between tries of a failing discovery."""


class GlobalHooks:
    """Makes tasks of global hooks."""

    def __init__(
        self,
        hooks: Sequence[state.Hook],
        executor: hook_run.HookExecutor,
        snapshots: Callable[[state.Hook], binding_contexts.Snapshots],
    ) -> None:
        self.hooks = tuple(hooks)
        self._executor = executor
        self._snapshots = snapshots

    def bound(self, binding: hook_config.LifecycleBinding, activation: str) -> Sequence[tasks.Task]:
        """Make one task per hook with that binding, in order."""
        return [self._task(hook, binding, activation) for hook in state.bound(self.hooks, binding)]

    def _task(self, hook: state.Hook, binding: hook_config.LifecycleBinding, activation: str) -> tasks.Task:
        async def run(_task: tasks.Task) -> None:
            labels = events.HookLabels(hook.name, binding, bindings.MAIN_QUEUE, activation)
            context = binding_contexts.lifecycle(binding, self._snapshots(hook))
            await self._executor.run(hook, [context], labels)

        return tasks.Task(
            tasks.TaskKind.GLOBAL_HOOK_RUN, run, hook=hook.name, binding=binding, activation=activation
        )


class TaskFactory:
    """Makes tasks that are not queued yet."""

    def __init__(
        self,
        values: store.ValuesStore,
        hooks: GlobalHooks,
        discover: module_discovery.Discovery,
        runner: module_run.ModuleRunner,
        definitions: module_crds.ModuleCrds,
        tell: events.Listener,
    ) -> None:
        self._states = runner.states
        self._values = values
        self._hooks = hooks
        self._discovery = discover
        self._runner = runner
        self._releases = runner.releases
        self._definitions = definitions
        self._tell = tell
        self._removals: frozenset[events.Event] = frozenset()

    @property
    def global_hooks(self) -> Sequence[state.Hook]:
        """All global hooks."""
        return self._hooks.hooks

    def on_startup(self) -> Sequence[tasks.Task]:
        """Make one task per global hook with ``onStartup``, in order."""
        return self._hooks.bound(hook_config.LifecycleBinding.ON_STARTUP, "OperatorStartup")

    def before_all(self, activation: str) -> Sequence[tasks.Task]:
        """Make one task per global hook with ``beforeAll``, in order."""
        return self._hooks.bound(hook_config.LifecycleBinding.BEFORE_ALL, activation)

    def after_all(self, activation: str) -> Sequence[tasks.Task]:
        """Make one task per global hook with ``afterAll``, in order."""
        return self._hooks.bound(hook_config.LifecycleBinding.AFTER_ALL, activation)

    def discover(self, activation: str, found: Callable[[plan.ConvergePlan], None]) -> tasks.Task:
        """Make the task that discovers modules; ``found`` gets the plan."""

        async def run(task: tasks.Task) -> None:
            try:
                found_releases = await self._releases.observe_all(self._states.modules)
                observed = await self._discovery.observe(
                    found_releases, self._releases.ignored, self._releases.moved(found_releases)
                )
                made = plan.plan_converge(observed)
            except Exception as error:
                self._tell(events.DiscoveryFailed())
                if isinstance(error, errors.ModuleError):
                    self._states.undecided(names.ModuleName(error.module), error)
                raise
            task.checkpoint()
            self._states.discovered(made.verdicts, made.enabled)
            self._values.enabled = made.enabled
            self._tell(events.ModulesDiscovered(len(made.enabled), len(observed.modules)))
            self._tell_of_removals(observed, made)
            self._mute(set(self._states.started) - set(made.enabled))
            self._releases.follow(made.enabled)
            found(made)

        return tasks.Task(
            tasks.TaskKind.DISCOVER_MODULES,
            run,
            activation=activation,
            fixed_delay=DISCOVERY_RETRY,
            holds_queue=True,
        )

    def _tell_of_removals(self, observed: plan.Observed, made: plan.ConvergePlan) -> None:
        """Report each removal, and each that is put off, once as long as it is due."""
        deletes = (f"module {name} is deleted: {made.verdicts[name].reason}" for name in made.deletes)
        purges = (f"release {name} is purged: {plan.purge_reason(observed, name)}" for name in made.purges)
        due: list[events.Event] = [events.RemovalDue(text) for text in (*deletes, *purges)]
        stays = [events.Warned(text) for text in plan.stays(observed)]
        for event in (*due, *stays):
            if event not in self._removals:
                self._tell(event)
        self._removals = frozenset((*due, *stays))
        self._states.withholds = bool(stays)

    async def ensure_crds(self, enabled: Sequence[names.ModuleName], activation: str) -> Sequence[tasks.Task]:
        """Make one task per enabled module whose CustomResourceDefinitions are to be applied."""
        due = await self._definitions.due([self._states[name].module for name in enabled])
        return [self._ensure_crds(name, activation) for name in due]

    def _ensure_crds(self, module: names.ModuleName, activation: str) -> tasks.Task:
        async def run(_task: tasks.Task) -> None:
            await self._define(module)

        kind = tasks.TaskKind.MODULE_ENSURE_CRDS
        return tasks.Task(kind, run, owner=module, activation=activation, lane=_CRDS_LANE)

    async def _define(self, module: names.ModuleName) -> None:
        """Apply the module's definitions if that is due; a failure is the module's."""
        try:
            await self._definitions.ensure(self._states[module].module)
        except Exception as error:
            told = errors.told(error, f"applying the definitions of module {module}")
            self._states.mark(module, state.ModuleStatus.FAILED, told)
            self._tell(events.ModuleFailed(module))
            raise

    def run(self, module: names.ModuleName, activation: str) -> tasks.Task:
        """Make the task of a module run, which comes after those of modules that it requires.

        Before it, changed definitions of the module are applied.
        """

        async def run(task: tasks.Task) -> None:
            try:
                await self._define(module)
            except Exception:
                task.step_aside()
                raise
            task.checkpoint()
            await self._runner.run(task)

        known = self._states[module].module
        return tasks.Task(
            tasks.TaskKind.MODULE_RUN,
            run,
            owner=module,
            activation=activation,
            lane=known.order,
            after=frozenset(requirements.required(known)),
        )

    def delete(self, module: names.ModuleName, activation: str) -> tasks.Task:
        """Make the task that removes a disabled module, after those that require it."""
        after = requirements.dependants(self._states.modules).get(module, ())
        return tasks.Task(
            tasks.TaskKind.MODULE_DELETE,
            self._runner.delete,
            owner=module,
            activation=activation,
            after=frozenset(after),
        )

    def purge(self, release: str, activation: str) -> tasks.Task:
        """Make the task that removes a release without a module."""

        async def run(task: tasks.Task) -> None:
            self._check_moved(task.owner)
            await self._releases.remove(task.owner)

        return tasks.Task(tasks.TaskKind.MODULE_PURGE, run, owner=release, activation=activation)

    def _check_moved(self, release: str) -> None:
        """Keep a release until the module that it was of has its new one."""
        module = self._releases.successor(release)
        if module is None or module not in self._states.enabled:
            return
        found = self._states[module]
        is_there = self._releases.revision(module) is not None
        if found.module.has_chart and not (is_there and found.status is not state.ModuleStatus.FAILED):
            title = found.module.release_title
            raise errors.ModuleError(
                module, f"its release was {release} and stays until the new one, {title}, is there"
            )

    def end_unwanted(self) -> None:
        """End Helm calls and runs for events of modules that are disabled meanwhile."""
        self._mute(name for name in self._states.started if not self._values.flag(name).enabled)
        for found in self._states:
            name = found.module.name
            if found.status is state.ModuleStatus.RUNNING and not self._values.flag(name).enabled:
                self._releases.stop(name)

    def _mute(self, modules: Iterable[names.ModuleName]) -> None:
        for name in modules:
            self._runner.bindings.mute(name)

    async def global_values(self) -> object:
        """Return what is equal as long as global values and Enabled flags are the same."""
        flags = tuple(self._values.flag(module).enabled for module in self._values.modules)
        return (await asyncio.to_thread(self._values.snapshot().values_json, None), flags)
