"""Runs of hooks for ``schedule`` and ``kubernetes`` bindings: how causes become tasks, and tasks runs."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from addon_operator.engine import events, intents, state
from addon_operator.engine.bindings import hook_rates, triggers
from addon_operator.engine.hooks import hook_outputs
from addon_operator.engine.queues import queue_set, tasks
from addon_operator.hook_contract import binding_contexts
from addon_operator.kernel import errors

CROWDED: Final = 100
"""Waiting tasks of one queue beyond which causes join a run that waits further ahead, past other hooks."""

_ACTIVATIONS: Final = {triggers.Tick: "Schedule", triggers.Event: "Kubernetes"}
SYNCHRONIZATION: Final = "Synchronization"
"""Activation of Synchronization runs that are no part of a start."""


@dataclasses.dataclass(eq=False, slots=True)
class HookTask(tasks.Task):
    """A run that waits, and all that has happened until it begins."""

    subject: state.Hook | None = None
    told: list[triggers.Cause] = dataclasses.field(default_factory=list)


class Executor(Protocol):
    """Who runs hooks; see :class:`.HookExecutor`."""

    async def run(
        self,
        hook: state.Hook,
        contexts: Iterable[binding_contexts.Context],
        labels: events.HookLabels,
        *,
        allow_failure: bool = False,
    ) -> hook_outputs.HookEffects:
        """Run a hook; raises when it fails or one of its outputs is wrong."""
        ...


class HookTasks:
    """Puts causes into queues, merged with what waits there, and runs them."""

    def __init__(
        self,
        queues: queue_set.QueueSet,
        executor: Executor,
        objects: triggers.Objects,
        rates: hook_rates.HookRates,
        inbox: intents.Inbox,
    ) -> None:
        self._queues = queues
        self._executor = executor
        self._objects = objects
        self._rates = rates
        self._inbox = inbox

    def add(self, hook: state.Hook, cause: triggers.Cause, activation: str = "") -> HookTask:
        """Queue a run, or let the cause join one that waits; the task that will tell it."""
        queue = self._queues[cause.binding.queue]
        waiting = [task for task in queue.pending if isinstance(task, HookTask) and task.subject is hook]
        if waiting and self._may_join(waiting[-1], cause, queue.pending):
            triggers.joined(waiting[-1].told, cause)
            waiting[-1].allow_failure &= cause.binding.allow_failure
            return waiting[-1]
        if isinstance(cause, triggers.Tick) and (told := _telling(waiting, cause)):
            return told
        task = self._task(hook, cause, activation)
        queue.add(task)
        return task

    def drop(self, owner: str) -> None:
        """Forget all runs of a module's hooks that wait."""
        self._queues.drop(lambda task: isinstance(task, HookTask) and task.owner == owner)

    async def run(
        self,
        hook: state.Hook,
        caused_by: Sequence[triggers.Cause],
        activation: str,
        *,
        queue: str = queue_set.MAIN,
        allow_failure: bool = False,
    ) -> hook_outputs.HookEffects:
        """Run a hook now and tell Synchronizations of its end.

        Raises what :meth:`.HookExecutor.run` raises.
        """
        self._rates.ran(hook)
        labels = events.HookLabels(hook.name, caused_by[0].binding.name, queue, activation, hook.module)
        starting = [cause.bound for cause in caused_by if isinstance(cause, triggers.Synchronization)]
        for bound in starting:
            bound.synchronization_begins()
        contexts = triggers.RunContexts(hook, caused_by, self._objects)
        try:
            effects = await self._executor.run(hook, contexts, labels, allow_failure=allow_failure)
        except BaseException as error:
            for bound in starting:
                _end(bound, error, is_fine=allow_failure and isinstance(error, errors.AddonOperatorError))
            raise
        for bound in starting:
            bound.synchronization_ended()
        return effects

    def _may_join(self, task: HookTask, cause: triggers.Cause, pending: Sequence[tasks.Task]) -> bool:
        is_near = task is pending[-1] or len(pending) > CROWDED
        return is_near and triggers.may_join(task.told, cause)

    def _task(self, hook: state.Hook, cause: triggers.Cause, activation: str) -> HookTask:
        kind = tasks.TaskKind.GLOBAL_HOOK_RUN if hook.module is None else tasks.TaskKind.MODULE_HOOK_RUN
        return HookTask(
            kind,
            self._run_task,
            owner=hook.module or tasks.GLOBAL_OWNER,
            hook=hook.name,
            binding=cause.binding.name,
            activation=activation or _ACTIVATIONS.get(type(cause), SYNCHRONIZATION),
            allow_failure=cause.binding.allow_failure,
            is_distinct=True,
            subject=hook,
            told=[cause],
        )

    async def _run_task(self, task: tasks.Task) -> None:
        assert isinstance(task, HookTask) and task.subject is not None  # noqa: PT018, S101 - made above
        hook, told = task.subject, tuple(task.told)
        if not isinstance(told[0], triggers.Synchronization) and (wait := self._rates.wait(hook)):
            raise tasks.PostponedError(wait)
        queue = told[0].binding.queue
        effects = await self.run(hook, told, task.activation, queue=queue, allow_failure=task.allow_failure)
        if _reacts(told) and effects != hook_outputs.HookEffects():
            self._inbox.put_nowait(intents.ValuesChanged(hook))


def _telling(waiting: Sequence[HookTask], tick: triggers.Tick) -> HookTask | None:
    return next((task for task in waiting if tick in task.told), None)


def _reacts(told: Sequence[triggers.Cause]) -> bool:
    return any(cause.reacts if isinstance(cause, triggers.Synchronization) else True for cause in told)


def _end(bound: triggers.SynchronizedBinding, error: BaseException, *, is_fine: bool) -> None:
    if is_fine:
        bound.synchronization_ended()
    else:
        bound.synchronization_failed(str(error))
