"""The tasks that a converge is made of, and those that events make."""

from collections.abc import Callable, Sequence

from addon_operator.engine import discovery, global_hooks, module_run, state, tasks
from addon_operator.hooks import config
from addon_operator.kernel import names
from addon_operator.modules import plan
from addon_operator.values import store

DISCOVERY_RETRY = 5.0
"""Seconds between tries of a failing discovery."""


class EngineSteps:
    """Makes tasks; implements :class:`addon_operator.engine.converge.Steps`."""

    def __init__(
        self,
        states: state.ModuleStates,
        values: store.ValuesStore,
        hooks: global_hooks.GlobalHooks,
        discover: discovery.Discovery,
        runner: module_run.ModuleRunner,
        releases: module_run.Releases,
        observer: module_run.RunObserver,
    ) -> None:
        self._states = states
        self._values = values
        self._hooks = hooks
        self._discovery = discover
        self._runner = runner
        self._releases = releases
        self._observer = observer

    def on_startup(self) -> Sequence[tasks.Task]:
        """One task per global hook with ``onStartup``, in order."""
        return self._hooks.bound(config.LifecycleBinding.ON_STARTUP, "OperatorStartup")

    def before_all(self, activation: str) -> Sequence[tasks.Task]:
        """One task per global hook with ``beforeAll``, in order."""
        return self._hooks.bound(config.LifecycleBinding.BEFORE_ALL, activation)

    def after_all(self, activation: str) -> Sequence[tasks.Task]:
        """One task per global hook with ``afterAll``, in order."""
        return self._hooks.bound(config.LifecycleBinding.AFTER_ALL, activation)

    def discover(self, activation: str, found: Callable[[plan.ConvergePlan], None]) -> tasks.Task:
        """Discovery of modules; ``found`` gets the plan."""

        async def run(task: tasks.Task) -> None:
            try:
                made = plan.plan_converge(await self._discovery.observe())
            except Exception:
                self._observer.discovery_failed()
                raise
            task.checkpoint()
            self._states.discovered(made.verdicts, made.enabled)
            found(made)

        return tasks.Task(
            tasks.TaskKind.DISCOVER_MODULES,
            run,
            activation=activation,
            fixed_delay=DISCOVERY_RETRY,
            holds_queue=True,
        )

    def run(self, module: names.ModuleName, activation: str) -> tasks.Task:
        """A module run."""
        order = self._states[module].module.order
        return tasks.Task(
            tasks.TaskKind.MODULE_RUN, self._runner.run, owner=module, activation=activation, lane=order
        )

    def delete(self, module: names.ModuleName, activation: str) -> tasks.Task:
        """Removal of a disabled module."""
        return tasks.Task(
            tasks.TaskKind.MODULE_DELETE, self._runner.delete, owner=module, activation=activation
        )

    def purge(self, release: str, activation: str) -> tasks.Task:
        """Removal of a release without a module."""

        async def run(task: tasks.Task) -> None:
            await self._releases.remove(task.owner)

        return tasks.Task(tasks.TaskKind.MODULE_PURGE, run, owner=release, activation=activation)

    def global_values(self) -> object:
        """Equal as long as global values and Enabled flags are the same."""
        flags = tuple(self._values.flag(module).enabled for module in self._values.modules)
        return (self._values.values_json(None), flags)
