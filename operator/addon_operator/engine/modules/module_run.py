"""Runs and deletes of one module: its hooks and its Helm release, step by step.

Source: steps 5 and 6 of "Steps of addon-operator lifecycle" in the documentation.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from addon_operator.engine import events, state
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.hooks import hook_files, hook_run, hook_runner
from addon_operator.engine.queues import tasks
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors, names
from addon_operator.modules import model

MAX_RERUNS: Final = 10
"""Runs in a row because ``afterHelm`` changed values, after which it counts as a failure."""

MAIN_QUEUE: Final = "main"


class Releases(Protocol):
    """The Helm side of a module."""

    async def observe_all(self) -> Mapping[str, bool]:
        """Name of each release in the operator's namespace, and whether an addon-operator made it."""
        ...

    async def ensure(self, module: model.Module, activation: str, *, fresh: bool) -> None:
        """Install or upgrade the module's release if that is needed.

        ``fresh``: look at the release in the cluster first, instead of trusting the last discovery.
        """
        ...

    async def remove(self, release: str, *, keep_record: bool = False) -> None:
        """Uninstall the release; one that is not there is fine.

        With ``keep_record`` the next start of the operator would know that the removal is unfinished, until
        :meth:`forget`.
        """
        ...

    async def forget(self, release: str) -> None:
        """The removal is finished: remove the record that was kept of it, if there is one."""
        ...

    def stop(self, module: names.ModuleName) -> None:
        """End a running :meth:`ensure` of the module, which then raises :class:`tasks.SupersededError`."""
        ...

    def exists(self, release: str) -> bool:
        """Whether the release was there when it was last looked at."""
        ...

    def follow(self, modules: Iterable[names.ModuleName]) -> None:
        """Watch over the releases that these enabled modules have already."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Hooks:
    """How hooks are asked, run and bound."""

    runner: hook_runner.HookRunner
    executor: hook_run.HookExecutor
    bindings: hook_bindings.HookBindings


class ModuleRunner:
    """Runs and deletes modules; the order among modules is not its concern."""

    def __init__(
        self,
        states: state.ModuleStates,
        hooks: Hooks,
        releases: Releases,
        tell: events.Listener,
        *,
        drop_values: Callable[[names.ModuleName], None],
        warn: Callable[[str], None],
        clock: clocks.Clock,
    ) -> None:
        self._states = states
        self._runner = hooks.runner
        self._executor = hooks.executor
        self._bindings = hooks.bindings
        self._releases = releases
        self._tell = tell
        self._drop_values = drop_values
        self._warn = warn
        self._clock = clock

    async def run(self, task: tasks.Task) -> None:
        """One try of a module run. What had succeeded in an earlier try is not repeated.

        Only ``beforeHelm`` hooks run again when the check before Helm, or Helm itself, failed.

        Raises the error of the step that failed, or :class:`tasks.SupersededError` between two steps.
        """
        name = names.ModuleName(task.owner)
        _take_up(task, self._states[name])
        self._states.mark(name, state.ModuleStatus.RUNNING)
        began = time.monotonic()
        try:
            await self._steps(task, self._states[name])
        except tasks.SupersededError:
            self._states.mark(name, state.ModuleStatus.PENDING)
            raise
        except errors.AddonOperatorError as error:
            self._states.mark(name, state.ModuleStatus.FAILED, error)
            self._tell(events.ModuleFailed(name))
            raise
        finally:
            self._states[name].last_run = self._clock.time()
            self._tell(events.ModuleRan(name, task.activation, time.monotonic() - began))
        self._states.mark(name, state.ModuleStatus.READY, "")

    async def delete(self, task: tasks.Task) -> None:
        """One try of a module's removal: ``beforeDeleteHelm``, uninstall, ``afterDeleteHelm``, forget it."""
        name = names.ModuleName(task.owner)
        module = self._states[name]
        _take_up(task, module)
        # Enabled again before this ends, it starts up again.
        module.started = module.settled = False
        # The error of a run is no reason any more.
        self._states.mark(name, state.ModuleStatus.DELETING, None if task.attempts else "")
        try:
            await self._remove(task, module)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError as error:
            self._states.mark(name, state.ModuleStatus.DELETING, error)
            self._tell(events.ModuleFailed(name, deleting=True))
            raise
        self._bindings.end(name)
        self._drop_values(name)
        module.reset()
        self._states.mark(name, state.ModuleStatus.DISABLED, "")

    async def renew_hooks(self, name: names.ModuleName) -> None:
        """Ask the hooks of a started module anew, whose files changed; after an error those before stay.

        When their configurations are not what they were, the next run starts the module up again.
        Raises what a hook without a valid configuration raises.
        """
        module = self._states[name]
        if module.hooks is None:
            return
        hooks = await self._load_hooks(module.module)
        if hooks != module.hooks:
            module.hooks, module.started = hooks, False
            self._tell(events.HooksRegistered(name, hooks))

    def mute(self, module: names.ModuleName) -> None:
        """Run no hooks of the module for events and ticks any more: it is about to be removed."""
        self._bindings.mute(module)

    async def _steps(self, task: tasks.Task, module: state.ModuleState) -> None:
        await self._start(task, module)
        for _ in range(MAX_RERUNS):
            await self._hooks(task, module, hook_config.LifecycleBinding.BEFORE_HELM)
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
            f"afterHelm hooks changed the values in {MAX_RERUNS} runs in a row; make them come to rest",
        )

    async def _start(self, task: tasks.Task, module: state.ModuleState) -> None:
        try:
            await self._register(module)
        except errors.AddonOperatorError:
            task.step_aside()
            raise
        if not module.started:
            await self._hooks(task, module, hook_config.LifecycleBinding.ON_STARTUP)
            module.started = True
        await self._bind(task, module)

    async def _bind(self, task: tasks.Task, module: state.ModuleState) -> None:
        """Begin the bindings, with the Synchronization runs that have not succeeded yet."""
        name = module.module.name
        for batch in await self._bindings.start(name, module.hooks or (), task.stopping):
            task.checkpoint()
            await self._bindings.run(batch, task.activation)
        task.checkpoint()
        await self._bindings.wait(name, task.stopping)
        task.checkpoint()
        self._bindings.tick(name)

    async def _register(self, module: state.ModuleState) -> None:
        if module.hooks is not None:
            return
        try:
            module.hooks = await self._load_hooks(module.module)
        except errors.AddonOperatorError:
            self._tell(events.DiscoveryFailed())
            raise
        self._tell(events.HooksRegistered(module.module.name, module.hooks))

    async def _load_hooks(self, module: model.Module) -> tuple[state.Hook, ...]:
        files = hook_files.discover(module.path / "hooks")
        self._states[module.name].go_hooks = files.go_hooks
        for warning in files.warnings:
            self._warn(f"module {module.name}: {warning}")
        hooks = []
        for file in files.executables:
            read = await self._runner.config(file.path, hook_config.HookKind.MODULE)
            for warning in read.warnings:
                self._warn(f"module {module.name}: {warning}")
            hooks.append(state.Hook(file.name, file.path, read, module.name))
        return tuple(hooks)

    async def _release(self, task: tasks.Task, module: state.ModuleState) -> None:
        if not module.module.has_chart:
            return
        fresh = task.converge is None or task.attempts > 0
        try:
            await self._releases.ensure(module.module, task.activation, fresh=fresh)
        except errors.AddonOperatorError:
            # What the values or Helm lack may be what these hooks bring the next time.
            module.progress.repeat(hook_config.LifecycleBinding.BEFORE_HELM)
            raise

    async def _after_helm(self, task: tasks.Task, module: state.ModuleState) -> None:
        try:
            await self._hooks(task, module, hook_config.LifecycleBinding.AFTER_HELM)
        except tasks.SupersededError:
            raise
        except errors.AddonOperatorError:
            if not module.settled:
                # The documents: a first run that fails in afterHelm is repeated from onStartup.
                module.started = False
                module.progress = state.RunProgress()
                self._bindings.begin_again(module.module.name)
            raise
        module.settled = True

    async def _remove(self, task: tasks.Task, module: state.ModuleState) -> None:
        await self._register(module)
        name = module.module.name
        if self._releases.exists(name):
            await self._hooks(task, module, hook_config.LifecycleBinding.BEFORE_DELETE_HELM)
            is_more = bool(state.bound(module.hooks or (), hook_config.LifecycleBinding.AFTER_DELETE_HELM))
            await self._releases.remove(name, keep_record=is_more)
        await self._hooks(task, module, hook_config.LifecycleBinding.AFTER_DELETE_HELM)
        await self._releases.forget(name)

    async def _hooks(
        self, task: tasks.Task, module: state.ModuleState, binding: hook_config.LifecycleBinding
    ) -> None:
        progress = module.progress
        for hook in state.bound(module.hooks or (), binding):
            if (binding, hook.name) in progress.hooks:
                continue
            task.checkpoint()
            labels = events.HookLabels(hook.name, binding, MAIN_QUEUE, task.activation, module.module.name)
            context = binding_contexts.lifecycle(binding, self._bindings.snapshots(hook))
            effects = await self._executor.run(hook, [context], labels)
            progress.hooks.add((binding, hook.name))
            if binding is hook_config.LifecycleBinding.AFTER_HELM:
                progress.values_changed |= effects.values_changed


def _take_up(task: tasks.Task, module: state.ModuleState) -> None:
    """A retry goes on with the progress of the tries before it, unless a reason for a new run came."""
    if task.attempts == 0 or task.wanted_again:
        module.progress = state.RunProgress()
    task.wanted_again = False
