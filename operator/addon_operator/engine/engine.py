"""The engine: the ``main`` queue, the converger, and the reactions to edits."""

import asyncio
from collections.abc import Iterator
from typing import Protocol

from addon_operator.engine import converge, reactions, state, steps, task_queue, tasks
from addon_operator.kernel import names
from addon_operator.values import sources, store

ACTIVATION_STARTUP = "onStartup"
ACTIVATION_CONFIG_MAP = "ConfigMapChanged"


class EditObserver(Protocol):
    """Who is told of edits of the ConfigMap: the log, metrics, Events."""

    def config_taken(self, change: store.ConfigChange, reaction: reactions.Reaction) -> None:
        """An edit was taken in."""
        ...

    def config_refused(self, error: sources.ConfigMapError, uid: str) -> None:
        """An edit of the ConfigMap with that uid was wrong; the last good values stay in force."""
        ...


class Engine:
    """Runs until cancelled; implements :class:`addon_operator.engine.config_state.ConfigObserver`."""

    def __init__(
        self,
        queue: task_queue.TaskQueue,
        converger: converge.Converger,
        made_of: steps.EngineSteps,
        states: state.ModuleStates,
        edits: EditObserver,
    ) -> None:
        self._queue = queue
        self._converger = converger
        self._steps = made_of
        self._states = states
        self._edits = edits

    @property
    def converger(self) -> converge.Converger:
        """The converger, for status pages."""
        return self._converger

    @property
    def queues(self) -> tuple[task_queue.TaskQueue, ...]:
        """All queues."""
        return (self._queue,)

    async def work(self) -> None:
        """Run the global ``onStartup`` hooks, then converge, then react, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.work(), name="queue main")
            group.create_task(self._converger.work(), name="converge")
            group.create_task(self._start(), name="startup")

    async def drain(self, grace: float) -> None:
        """Begin nothing more, and wait up to ``grace`` seconds for what runs."""
        await self._queue.drain(grace)

    def config_changed(self, change: store.ConfigChange) -> None:
        """React to an edit; the store has the new values already."""
        reaction = reactions.to_config_change(
            change,
            state=self._converger.state,
            modules=self._states.modules,
            enabled=self._states.enabled,
        )
        self._edits.config_taken(change, reaction)
        if reaction.converge:
            self._converger.request(ACTIVATION_CONFIG_MAP)
        for module in reaction.runs:
            self._drop_run(module)
            self.run_module(module, ACTIVATION_CONFIG_MAP)

    def config_invalid(self, error: sources.ConfigMapError, uid: str) -> None:
        """Tell of a wrong edit."""
        self._edits.config_refused(error, uid)

    def run_module(self, module: names.ModuleName, activation: str) -> None:
        """Queue a run of the module, unless one that will see the same values is on its way."""
        if not self._converger.will_run(module):
            self._queue.add(self._steps.run(module, activation))

    def _drop_run(self, module: names.ModuleName) -> None:
        """A failing run does not wait for its next try, and one under way stops at its next step."""
        self._queue.drop(lambda task: task.kind is tasks.TaskKind.MODULE_RUN and task.owner == module)

    def waiting_for(self) -> Iterator[str]:
        """One phrase per module or hook that keeps the first converge from being done."""
        for task in self._queue.tasks:
            subject = (
                f"module {task.owner}" if task.owner else f"hook {task.hook}" if task.hook else task.kind
            )
            if task.last_error:
                yield f"{subject} failed {task.attempts} times: {task.last_error}"

    async def _start(self) -> None:
        for task in self._steps.on_startup():
            await self._queue.add(task).done
        self._converger.request(ACTIVATION_STARTUP)
