"""The hooks of modules: found in their directories, asked for their configuration, and run at each step."""

from addon_operator.aio import threads
from addon_operator.engine import events, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.hooks import hook_processes, hook_run
from addon_operator.engine.modules import readiness_checks
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import errors, names
from addon_operator.loading import hook_files
from addon_operator.modules import findings, model
from addon_operator.values import checks, store


class ModuleHooks:
    """Asks the hooks of modules for their configuration, runs them, and forgets what they set."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        values: store.ValuesStore,
        executor: hook_run.HookExecutor,
        bound: hook_bindings.HookBindings,
        tell: events.Listener,
        readiness: readiness_checks.ReadinessChecks,
    ) -> None:
        self._states = states
        self._values = values
        self._executor = executor
        self._bindings = bound
        self._tell = tell
        self._readiness = readiness

    async def load(self, module: state.ModuleState) -> None:
        """Ask the module's hooks, unless that is done; raises what a wrong configuration raises."""
        if module.hooks is not None:
            return
        try:
            loaded = await self._ask(module.module)
        except errors.AddonOperatorError:
            self._tell(events.DiscoveryFailed())
            raise
        module.hooks = loaded.hooks
        self._take_readiness(module, loaded)
        self._tell(events.HooksRegistered(module.module.name, module.hooks))

    async def run(
        self, task: tasks.Task, module: state.ModuleState, binding: hook_config.LifecycleBinding
    ) -> None:
        """Run the module's hooks with that binding, but for those that ran in an earlier try of the task.

        Raises what :meth:`.HookExecutor.run` raises, or :class:`.SupersededError` between two hooks.
        """
        progress = module.progress
        for hook in state.bound(module.hooks or (), binding):
            if (binding, hook.name) in progress.hooks:
                continue
            task.checkpoint()
            labels = events.HookLabels(
                hook.name, binding, bindings.MAIN_QUEUE, task.activation, module.module.name
            )
            context = binding_contexts.lifecycle(binding, self._bindings.snapshots(hook))
            effects = await self._executor.run(hook, [context], labels, task)
            progress.hooks.add((binding, hook.name))
            if binding is hook_config.LifecycleBinding.AFTER_HELM:
                progress.values_changed |= effects.values_changed

    async def check_values(self, name: names.ModuleName) -> None:
        """Raise :class:`.InvalidValuesError` for values that are set and wrong: no hook begins with them."""
        await threads.run(threads.EDITS, checks.Checks(self._values).checking_set_values(name))

    async def renew(self, name: names.ModuleName) -> None:
        """Ask the hooks of a started module anew, whose files changed; after an error those before stay.

        When their configurations are not what they were, the next run starts the module up again.
        Raises what a hook without a valid configuration raises.
        """
        module = self._states[name]
        if module.hooks is None:
            return
        loaded = await self._ask(module.module)
        self._take_readiness(module, loaded)
        if loaded.hooks != module.hooks:
            module.hooks, module.started = loaded.hooks, False
            self._tell(events.HooksRegistered(name, loaded.hooks))

    def forget(self, name: names.ModuleName) -> None:
        """Drop the values that the hooks of the module set: it is deleted."""
        self._values.drop_patches(name)

    def _take_readiness(self, module: state.ModuleState, loaded: hook_processes.LoadedHooks) -> None:
        module.readiness = loaded.readiness
        self._readiness.loaded(module.module.name, loaded.readiness)

    async def _ask(self, module: model.Module) -> hook_processes.LoadedHooks:
        files = hook_files.discover(module.path / "hooks")
        self._states.note(module.name, findings.HOOK_LEFT_OUT, *files.go_hooks)
        return await self._executor.runner.load(files, self._tell, module.name)
