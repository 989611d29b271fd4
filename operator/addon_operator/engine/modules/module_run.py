"""Runs and deletes of one module: its hooks and its Helm release, step by step.

Source: steps 5 and 6 of "Steps of addon-operator lifecycle" in the documentation.
"""

import time
from typing import Final

from addon_operator.engine import events, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.hooks import hook_run
from addon_operator.engine.modules import module_hooks, module_releases
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import errors, names
from addon_operator.modules import model
from addon_operator.values import store

MAX_RERUNS: Final = 10
"""Runs in a row because ``afterHelm`` changed values, after which it counts as a failure."""


class ModuleRunner:
    """Runs and deletes modules; the order among modules is not its concern."""

    def __init__(
        self,
        states: state.ModuleStates,
        hooks: module_hooks.ModuleHooks,
        executor: hook_run.HookExecutor,
        bound: hook_bindings.HookBindings,
        releases: module_releases.ModuleReleases,
        tell: events.Listener,
    ) -> None:
        self.states = states
        """The states of the modules."""
        self.module_hooks = hooks
        """Reads which hooks the modules have."""
        self.executor = executor
        """Runs the modules' hooks, and the global ones."""
        self.bindings = bound
        """The bindings of the modules' hooks."""
        self.releases = releases
        """The releases of the modules."""
        self._tell = tell

    async def run(self, task: tasks.Task) -> None:
        """Try a module run once. What succeeded in an earlier try is not repeated.

        Only ``beforeHelm`` hooks run again when the check before Helm, or Helm itself, failed.

        Raises the error of the step that failed, or :class:`tasks.SupersededError` between two steps.
        """
        name = names.ModuleName(task.owner)
        _begin_try(task, self.states[name])
        self.states.mark(name, state.ModuleStatus.RUNNING)
        began = time.monotonic()
        try:
            await self._steps(task, self.states[name])
        except tasks.SupersededError:
            self.states.mark(name, state.ModuleStatus.PENDING)
            raise
        except Exception as error:
            told = errors.told(error, f"the run of module {name}")
            self.states.mark(name, state.ModuleStatus.FAILED, told)
            self._tell(events.ModuleFailed(name))
            raise
        finally:
            self.states[name].last_run = time.time()
            self._tell(events.ModuleRan(name, task.activation, time.monotonic() - began))
        self.states.mark(name, state.ModuleStatus.READY, "")

    async def delete(self, task: tasks.Task) -> None:
        """Try a module's removal once: ``beforeDeleteHelm``, uninstall, ``afterDeleteHelm``, forget it."""
        name = names.ModuleName(task.owner)
        module = self.states[name]
        _begin_try(task, module)
        # Enabled again before this ends, it starts up again.
        module.started = module.settled = False
        # The error of a run does not matter any more.
        self.states.mark(name, state.ModuleStatus.DELETING, None if task.attempts else "")
        try:
            await self._remove(task, module)
        except tasks.SupersededError:
            raise
        except Exception as error:
            told = errors.told(error, f"the removal of module {name}")
            self.states.mark(name, state.ModuleStatus.DELETING, told)
            self._tell(events.ModuleFailed(name, deleting=True))
            raise
        self.bindings.end(name)
        self.module_hooks.forget(name)
        module.reset()
        self.states.mark(name, state.ModuleStatus.DISABLED, "")

    async def _steps(self, task: tasks.Task, module: state.ModuleState) -> None:
        _check(task, module.module)
        await self._start(task, module)
        for _ in range(MAX_RERUNS):
            await self._run_hooks(task, module, hook_config.LifecycleBinding.BEFORE_HELM)
            task.checkpoint()
            await self._release(task, module)
            task.checkpoint()
            await self._after_helm(task, module)
            if not module.progress.values_changed:
                return
            module.progress = state.RunProgress()
            task.checkpoint()
        raise errors.ModuleError(
            module.module.name,
            f"afterHelm hooks changed the values in {MAX_RERUNS} runs in a row; "
            "make them stop changing values",
        )

    async def _start(self, task: tasks.Task, module: state.ModuleState) -> None:
        try:
            if not module.started:
                await self.module_hooks.check_values(module.module.name)
            await self.module_hooks.load(module)
        except errors.AddonOperatorError:
            task.step_aside()
            raise
        if not module.started:
            await self._run_hooks(task, module, hook_config.LifecycleBinding.ON_STARTUP)
            module.started = True
        await self._bind(task, module)

    async def _bind(self, task: tasks.Task, module: state.ModuleState) -> None:
        """Begin the bindings, with the Synchronization runs that have not succeeded yet."""
        name = module.module.name
        for batch in await self.bindings.start(name, module.hooks or (), task.stopping):
            task.checkpoint()
            await self.bindings.run(batch, task.activation)
        task.checkpoint()
        await self.bindings.wait(name, task.stopping)
        task.checkpoint()
        self.bindings.tick(name)

    async def _release(self, task: tasks.Task, module: state.ModuleState) -> None:
        if not module.module.has_chart:
            return
        fresh = task.converge is None or task.attempts > 0
        try:
            await self.releases.ensure(module.module, task.activation, fresh=fresh)
        except errors.AddonOperatorError:
            # What the values or Helm lack may be what these hooks bring the next time.
            module.progress.repeat(hook_config.LifecycleBinding.BEFORE_HELM)
            raise

    async def _after_helm(self, task: tasks.Task, module: state.ModuleState) -> None:
        try:
            await self._run_hooks(task, module, hook_config.LifecycleBinding.AFTER_HELM)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError:
            if not module.settled:
                # The documents: a first run that fails in afterHelm is repeated from onStartup.
                module.started = False
                module.progress = state.RunProgress()
                self.bindings.begin_again(module.module.name)
            raise
        module.settled = True

    async def _remove(self, task: tasks.Task, module: state.ModuleState) -> None:
        _check(task, module.module)
        await self.module_hooks.load(module)
        name = module.module.name
        if self.releases.exists(name):
            await self._run_hooks(task, module, hook_config.LifecycleBinding.BEFORE_DELETE_HELM)
            is_more = bool(state.bound(module.hooks or (), hook_config.LifecycleBinding.AFTER_DELETE_HELM))
            await self.releases.remove(name, keep_record=is_more)
        await self._run_hooks(task, module, hook_config.LifecycleBinding.AFTER_DELETE_HELM)
        await self.releases.forget(name)

    async def _run_hooks(
        self, task: tasks.Task, module: state.ModuleState, binding: hook_config.LifecycleBinding
    ) -> None:
        progress = module.progress
        for hook in state.bound(module.hooks or (), binding):
            if (binding, hook.name) in progress.hooks:
                continue
            task.checkpoint()
            labels = events.HookLabels(
                hook.name, binding, bindings.MAIN_QUEUE, task.activation, module.module.name
            )
            context = binding_contexts.lifecycle(binding, self.bindings.snapshots(hook))
            effects = await self.executor.run(hook, [context], labels)
            progress.hooks.add((binding, hook.name))
            if binding is hook_config.LifecycleBinding.AFTER_HELM:
                progress.values_changed |= effects.values_changed


def module_runner(
    states: state.ModuleStates,
    values: store.ValuesStore,
    executor: hook_run.HookExecutor,
    bound: hook_bindings.HookBindings,
    releases: module_releases.ModuleReleases,
    tell: events.Listener,
) -> ModuleRunner:
    """Make it, and what reads the hooks that it runs."""
    hooks = module_hooks.ModuleHooks(states, values, executor.runner, tell)
    return ModuleRunner(states, hooks, executor, bound, releases, tell)


def _check(task: tasks.Task, module: model.Module) -> None:
    if module.stopped_by:
        task.step_aside()
        raise errors.ModuleError(module.name, module.stopped_by)


def _begin_try(task: tasks.Task, module: state.ModuleState) -> None:
    """Keep the progress of the tries before, unless a reason for a new run came."""
    if task.attempts == 0 or task.wanted_again:
        module.progress = state.RunProgress()
    task.wanted_again = False
