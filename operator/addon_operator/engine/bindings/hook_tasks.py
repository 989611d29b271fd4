"""Runs of hooks for ``schedule`` and ``kubernetes`` bindings: how triggers become tasks, and tasks runs.

``executionMinInterval`` and ``executionBurst`` of a hook limit how often it runs: a token bucket as in the Go
operator. It begins with ``executionBurst`` tokens (1 unless given) and gets one more every
``executionMinInterval``. Runs for schedules and events wait for a token, while more events join them. A
Synchronization takes a token if there is one and does not wait, and lifecycle steps know of no limit, so that
one hook's interval does not hold up its module.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from addon_operator.engine import events, intents, state, tasks
from addon_operator.engine.bindings import hook_rates, triggers
from addon_operator.engine.hooks import hook_outputs, hook_run
from addon_operator.engine.queues import queue_set
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import errors

CROWDED: Final = 100
"""Waiting tasks of one queue beyond which triggers join a run that waits further ahead, past other hooks."""


class AllowedFailure(msgspec.Struct, frozen=True):
    """That a hook failed, as its binding allows, the last time that it ran for it: it is not tried again."""

    hook: state.Hook
    binding: str
    queue: str
    times: int
    """How often in a row."""
    error: str
    error_without_values: str


class HookTasks:
    """Puts triggers into queues, merged with what waits there, and runs hooks for them."""

    def __init__(
        self,
        queues: queue_set.QueueSet,
        executor: hook_run.HookExecutor,
        objects: triggers.FollowedObjects,
        inbox: intents.Inbox,
        clock: clocks.Clock,
    ) -> None:
        self._queues = queues
        self._executor = executor
        self._rates = hook_rates.HookRates(clock)
        self.objects: Final = objects
        """What runs see of the cluster."""
        self._inbox = inbox
        self._allowed: dict[tuple[str | None, str, str], AllowedFailure] = {}

    @property
    def allowed_failures(self) -> tuple[AllowedFailure, ...]:
        """All of hooks that are there."""
        return tuple(self._allowed.values())

    def add(self, hook: state.Hook, trigger: triggers.Trigger, activation: str = "") -> "HookTask":
        """Queue a run, or let the trigger join one that waits; the task that will run for it."""
        queue = self._queues[trigger.binding.queue]
        waiting = [task for task in queue.pending if isinstance(task, HookTask) and task.subject is hook]
        if waiting and self._may_join(waiting[-1], trigger, queue.pending):
            waiting[-1].join(trigger)
            return waiting[-1]
        if isinstance(trigger, triggers.Tick) and (same_tick := _waiting_with(waiting, trigger)):
            return same_tick
        task = HookTask(self, hook, trigger, activation)
        queue.add(task)
        return task

    def attach(self, hook: state.Hook) -> None:
        """Begin to use the queues of the hook's bindings."""
        for binding in hook.config.queued:
            self._queues.use(binding.queue)

    def forget(self, hook: state.Hook) -> None:
        """Forget a hook that is gone, and the queues that only it used."""
        self._rates.forget(hook)
        self._allowed = {key: each for key, each in self._allowed.items() if each.hook != hook}
        self.objects.remove(hook)
        for binding in hook.config.queued:
            self._queues.leave(binding.queue)

    def drop(self, owner: str) -> None:
        """Forget all runs of a module's hooks that wait."""
        self._queues.drop(lambda task: isinstance(task, HookTask) and task.owner == owner)
        self._allowed = {key: each for key, each in self._allowed.items() if (key[0] or "") != owner}

    async def run_task(self, task: "HookTask") -> None:
        """Run a hook for its turn in a queue; values that it changes make the engine react."""
        hook, run_for = task.subject, tuple(task.run_for)
        if not isinstance(run_for[0], triggers.Synchronization) and (
            wait := self._rates.seconds_to_wait(hook)
        ):
            raise tasks.PostponedError(wait)
        queue = run_for[0].binding.queue
        effects = await self.run(task, hook, run_for, queue=queue, allow_failure=task.allow_failure)
        if any(each.reacts for each in run_for) and effects != hook_outputs.HookEffects():
            self._inbox.put_nowait(intents.ValuesChanged(hook))

    async def run(
        self,
        task: tasks.Task,
        hook: state.Hook,
        run_for: Sequence[triggers.Trigger],
        *,
        queue: str = bindings.MAIN_QUEUE,
        allow_failure: bool = False,
    ) -> hook_outputs.HookEffects:
        """Run a hook now, in ``task``; bindings follow how their Synchronization goes.

        Raises what :meth:`.HookExecutor.run` raises.
        """
        self._rates.ran(hook)
        labels = events.HookLabels(hook.name, run_for[0].binding.name, queue, task.activation, hook.module)
        starting = [trigger.followed for trigger in run_for if isinstance(trigger, triggers.Synchronization)]
        for followed in starting:
            followed.synchronization_begins()
        contexts = triggers.RunContexts(hook, run_for, self.objects)
        try:
            effects = await self._executor.run(hook, contexts, labels, task, allow_failure=allow_failure)
        except BaseException as error:
            for followed in starting:
                _end(followed, error, is_fine=allow_failure and isinstance(error, errors.AddonOperatorError))
            if allow_failure:
                self._note_allowed(labels, hook, error)
            raise
        for trigger in run_for:
            self._allowed.pop((hook.module, hook.name, trigger.binding.name), None)
        for followed in starting:
            followed.synchronization_ended()
        return effects

    def _note_allowed(self, labels: events.HookLabels, hook: state.Hook, error: BaseException) -> None:
        if isinstance(error, tasks.SupersededError) or not isinstance(error, Exception):
            return
        key = (hook.module, hook.name, labels.binding)
        times = self._allowed[key].times + 1 if key in self._allowed else 1
        texts = (
            errors.of_module(text, hook.module or "") for text in (str(error), errors.without_values(error))
        )
        self._allowed[key] = AllowedFailure(hook, labels.binding, labels.queue, times, *texts)

    def _may_join(self, task: "HookTask", trigger: triggers.Trigger, pending: Sequence[tasks.Task]) -> bool:
        is_near = task is pending[-1] or len(pending) > CROWDED
        return is_near and triggers.may_join(task.run_for, trigger)


class HookTask(tasks.Task):
    """A run that waits, and all that triggered it until it begins."""

    is_distinct = True

    def __init__(
        self, hook_tasks: HookTasks, hook: state.Hook, trigger: triggers.Trigger, activation: str = ""
    ) -> None:
        super().__init__(
            owner=hook.module or tasks.GLOBAL_OWNER,
            hook=hook.name,
            binding=trigger.binding.name,
            activation=activation or trigger.activation,
        )
        is_global = hook.module is None
        self.kind = tasks.TaskKind.GLOBAL_HOOK_RUN if is_global else tasks.TaskKind.MODULE_HOOK_RUN
        self.allow_failure = trigger.binding.allow_failure
        self.subject: Final = hook
        self.run_for = [trigger]
        """The triggers, in their order."""
        self._hook_tasks = hook_tasks

    def join(self, trigger: triggers.Trigger) -> None:
        """Run for this trigger, too."""
        triggers.joined(self.run_for, trigger)
        self.allow_failure &= trigger.binding.allow_failure

    async def run(self) -> None:
        """Run the hook once; raises :class:`.PostponedError` while the hook has no token for an event."""
        await self._hook_tasks.run_task(self)


def _waiting_with(waiting: Sequence[HookTask], tick: triggers.Tick) -> HookTask | None:
    return next((task for task in waiting if tick in task.run_for), None)


def _end(followed: triggers.SynchronizedBinding, error: BaseException, *, is_fine: bool) -> None:
    if is_fine:
        followed.synchronization_ended()
    else:
        followed.synchronization_failed(str(error))
