"""The global hooks: their runs at start, and before and after all modules of a converge."""

import asyncio
from collections.abc import Sequence

from addon_operator.engine import events, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.hooks import hook_run
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.values import store


class GlobalHookTask(tasks.Task):
    """Runs one global hook for ``onStartup``, ``beforeAll`` or ``afterAll``."""

    kind = tasks.TaskKind.GLOBAL_HOOK_RUN

    def __init__(
        self,
        global_hooks: "GlobalHooks",
        hook: state.Hook,
        binding: hook_config.LifecycleBinding,
        activation: str,
    ) -> None:
        super().__init__(hook=hook.name, binding=binding, activation=activation)
        self._global_hooks = global_hooks
        self._hook = hook
        self._binding = binding

    async def run(self) -> None:
        """Run it once, with its snapshots of this moment; raises what :meth:`.HookExecutor.run` raises."""
        await self._global_hooks.run(self, self._hook, self._binding)


class GlobalHooks:
    """The global hooks, in the order in which they run."""

    def __init__(
        self,
        hooks: Sequence[state.Hook],
        executor: hook_run.HookExecutor,
        bound: hook_bindings.HookBindings,
        values: store.ValuesStore,
    ) -> None:
        self.hooks = tuple(hooks)
        self._executor = executor
        self._bindings = bound
        self._values = values

    def bound(self, binding: hook_config.LifecycleBinding, activation: str) -> Sequence[tasks.Task]:
        """Make one task per hook with that binding, in order."""
        return [GlobalHookTask(self, hook, binding, activation) for hook in state.bound(self.hooks, binding)]

    async def run(self, task: tasks.Task, hook: state.Hook, binding: hook_config.LifecycleBinding) -> None:
        """Run a hook for that binding; raises what :meth:`.HookExecutor.run` raises."""
        labels = events.HookLabels(hook.name, binding, bindings.MAIN_QUEUE, task.activation)
        context = binding_contexts.lifecycle(binding, self._bindings.snapshots(hook))
        await self._executor.run(hook, [context], labels, task)

    async def global_values(self) -> object:
        """Return what is equal as long as global values and Enabled flags are the same.

        Two of these, from before and after ``afterAll``, say whether the hooks made another converge due.
        """
        flags = tuple(self._values.flag(module).enabled for module in self._values.modules)
        # Large values are written in a thread: they may take longer than a turn of the loop.
        return (await asyncio.to_thread(self._values.snapshot().values_json, None), flags)
