"""Global hooks: found and asked for their configuration once, at start."""

import pathlib
from collections.abc import Callable, Sequence

from addon_operator.engine import events, state
from addon_operator.engine.hooks import hook_files, hook_run, hook_runner
from addon_operator.engine.queues import tasks
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import hook_config

MAIN_QUEUE = "main"


async def load(
    directory: pathlib.Path, runner: hook_runner.HookRunner, warn: Callable[[str], None]
) -> tuple[state.Hook, ...]:
    """All global hooks with their configuration.

    Raises :class:`.HookConfigError` for the first one that is invalid: the
    documents make that the end of the start.
    """
    files = hook_files.discover(hook_files.global_hooks_root(directory))
    for warning in files.warnings:
        warn(warning)
    hooks = []
    for file in files.executables:
        read = await runner.config(file.path, hook_config.HookKind.GLOBAL)
        for warning in read.warnings:
            warn(warning)
        hooks.append(state.Hook(file.name, file.path, read))
    return tuple(hooks)


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
        """One task per hook with that binding, in order."""
        return [self._task(hook, binding, activation) for hook in state.bound(self.hooks, binding)]

    def _task(self, hook: state.Hook, binding: hook_config.LifecycleBinding, activation: str) -> tasks.Task:
        async def run(_task: tasks.Task) -> None:
            labels = events.HookLabels(hook.name, binding, MAIN_QUEUE, activation)
            context = binding_contexts.lifecycle(binding, self._snapshots(hook))
            await self._executor.run(hook, [context], labels)

        return tasks.Task(
            tasks.TaskKind.GLOBAL_HOOK_RUN, run, hook=hook.name, binding=binding, activation=activation
        )
