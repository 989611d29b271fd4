"""The engine as people look at it: rows of modules and queues. Nothing here changes anything.

The names of the fields are those of the Go operator's debug endpoint where it has them.
"""

from collections.abc import Callable, Container, Sequence
from typing import Final, TypedDict, cast

from addon_operator.aio import turns
from addon_operator.engine import module_looks, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings, webhooks
from addon_operator.engine.hooks import running_hooks
from addon_operator.engine.queues import queue_set, task_queue
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.modules import findings, requirements, windows

RUNNING: Final = "running"
WAITING: Final = "waiting"
"""Behind another task."""
BACKOFF: Final = "backoff"
"""It failed, and the time of its next try has not come."""
POSTPONED: Final = "postponed"
"""It runs too often, and waits until it may run again."""


class ModuleRow(TypedDict):
    """One module; those of a running operator have what :func:`.findings.by_key` gives, too."""

    name: str
    description: str
    """What ``module.yaml`` says the module is for."""
    release: str
    """What its Helm release is called, with the namespace if ``module.yaml`` says one."""
    order: int
    enabled: bool
    state: str
    """A value of :class:`.ModuleStatus`."""
    health: str
    """How its resources are: a value of :class:`.HealthState`; empty if that is not known."""
    healthMessage: str
    """Which resources are not healthy, and why."""
    findings: list[findings.FindingRow]
    """What else there is to know, the worst first."""
    reason: str
    """Why it is enabled or disabled, and for which modules it waits."""
    suspended: str
    """By whom, since when, until when and why somebody has it left alone; empty if nobody has."""
    requires: list[str]
    """What must be there: a range of versions of Kubernetes, APIs, modules."""
    hooks: int | None
    """``None`` until they printed their configuration."""
    lastRun: str | None
    """When the last run ended; RFC 3339, UTC."""
    lastError: str
    tries: int
    """How often in a row it failed."""
    nextTry: str | None
    """When a failed run or removal is tried again; RFC 3339, UTC."""
    cure: list[str]
    """What it is tried again for sooner."""
    waitingBindings: list[hook_bindings.WaitingBinding]
    answering: list[webhooks.AnsweringRow]
    """What its hooks are to answer the API server, and whether it asks."""
    heldBack: "HeldBackRow | None"
    atHook: str
    """For which hook its run waits, of Helm or of ours, once that takes a while."""
    runningHooks: list[running_hooks.RunningHook]
    """Its hooks that run, the one that runs longest first."""


class HeldBackRow(TypedDict):
    """What waits for a window, or for somebody's confirmation; times are RFC 3339, UTC."""

    what: str
    until: str
    """Empty if no window will do."""
    since: str
    confirm: str
    """Whose removal somebody has to confirm; empty if a window will do."""


class TaskRow(TypedDict):
    """One task of a queue; times are seconds."""

    index: int
    """Its place; 1 is the head."""
    description: str
    """All that says what it is, in one word without spaces, as the Go operator writes it."""
    kind: str
    module: str
    hook: str
    binding: str
    activation: str
    state: str
    age: float
    tries: int
    """Failed ones."""
    nextTryIn: float
    """0 if it may run now."""
    lastError: str


class QueuePlace(TypedDict):
    """Where the first task of a module stands in ``main``."""

    index: int
    """1 is the head."""
    doing: str
    """What the task does."""
    state: str


class QueueHead(TypedDict):
    """One queue, by its head."""

    name: str
    tasksCount: int
    status: str
    headAge: float
    """Seconds since the head was queued."""
    headTries: int


class QueueRow(QueueHead):
    """One queue."""

    tasks: list[TaskRow]


class OtherQueues(TypedDict):
    """Queues that are not ``main``, and how many tasks they hold."""

    active: int
    empty: int
    tasks: int


class Summary(TypedDict):
    """All queues in numbers."""

    mainQueueTasks: int
    otherQueues: OtherQueues
    totalTasks: int


class QueueList(TypedDict):
    """All queues, ``main`` first, the others by name."""

    active: list[QueueRow]
    empty: list[QueueRow]
    summary: Summary


class Introspection:
    """Views of a running engine."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        queues: queue_set.QueueSet,
        bindings: hook_bindings.HookBindings,
        global_hooks: Sequence[state.Hook],
        clock: clocks.Clock,
        refusals: Callable[[], Sequence[str]] = tuple,
        running: Callable[[], Sequence[running_hooks.RunningHook]] = tuple,
    ) -> None:
        """Look at these.

        ``running`` gives the hooks that run, ``refusals`` what is not in force of ConfigMap, Secret and
        files, and why.
        """
        self.refusals: Final = refusals
        self._states = states
        self._queues = queues
        self.global_hooks = tuple(global_hooks)
        """All global hooks."""
        self._clock = clock
        self._bindings = bindings
        self.looks: Final = module_looks.ModuleLooks(states, queues, bindings, running)
        """What of modules does not work, or waits, beside their runs."""

    @property
    def waiting_global_bindings(self) -> list[hook_bindings.WaitingBinding]:
        """Those of global hooks whose objects cannot be followed just now."""
        return list(self._bindings.waiting(tasks.GLOBAL_OWNER))

    @property
    def answering_global_hooks(self) -> list[webhooks.AnsweringRow]:
        """What global hooks are to answer the API server, and whether it asks."""
        return self._bindings.answering(tasks.GLOBAL_OWNER)

    @property
    def enabled(self) -> tuple[names.ModuleName, ...]:
        """Enabled modules in run order."""
        return self._states.enabled

    def hooks_of(self, module: names.ModuleName) -> tuple[state.Hook, ...] | None:
        """Return the hooks of a module; ``None`` until they printed their configuration."""
        return self._states[module].hooks

    async def modules(self) -> list[ModuleRow]:
        """Return all modules in run order; others have their turn meanwhile."""
        enabled, beside = frozenset(self._states.enabled), await self.looks.all()

        def row(module: state.ModuleState) -> ModuleRow:
            return self._module(module, enabled, beside[module.module.name])

        return await turns.mapped(row, self._states)

    def module(self, name: names.ModuleName) -> ModuleRow:
        """Return one module."""
        return self._module(self._states[name], self._states.enabled, self.looks.of(name))

    def errors_without_values(self) -> dict[names.ModuleName, str]:
        """Return the last error of each module that has one, for places where no values may be shown."""
        return {
            module.module.name: module.last_error_without_values
            for module in self._states
            if module.last_error_without_values
        }

    def places(self) -> dict[str, QueuePlace]:
        """Return where the first task of each module stands in ``main``."""
        queue, waiting = self._queues.main, frozenset(self._queues.main.pending)
        places: dict[str, QueuePlace] = {}
        for number, task in enumerate(queue.tasks, 1):
            if task.owner and task.owner not in places:
                row = self._task(queue, number, task, waiting)
                places[task.owner] = QueuePlace(index=number, doing=task.kind.doing, state=row["state"])
        return places

    def queue_heads(self) -> list[QueueHead]:
        """Return all queues without their tasks, those with tasks first."""
        heads = [self._head(queue) for queue in self._queues.all]
        return sorted(heads, key=lambda head: not head["tasksCount"])

    async def main_queue(self) -> QueueRow:
        """Return the ``main`` queue."""
        return await self._queue(self._queues.main)

    async def queues(self) -> QueueList:
        """Return all queues; others have their turn meanwhile."""
        rows = [await self._queue(queue) for queue in self._queues.all]
        counts = [row["tasksCount"] for row in rows]
        active = sum(count > 0 for count in counts[1:])
        others: OtherQueues = {
            "active": active,
            "empty": len(counts) - 1 - active,
            "tasks": sum(counts[1:]),
        }
        return {
            "active": [row for row in rows if row["tasksCount"]],
            "empty": [row for row in rows if not row["tasksCount"]],
            "summary": {"mainQueueTasks": counts[0], "otherQueues": others, "totalTasks": sum(counts)},
        }

    def _module(
        self,
        module: state.ModuleState,
        enabled: Container[names.ModuleName],
        beside: Sequence[findings.Finding],
    ) -> ModuleRow:
        found = module.found(beside)
        row: ModuleRow = {
            "name": module.module.name,
            "description": module.module.config.description,
            "release": module.module.release_title,
            "order": module.module.order,
            "enabled": module.module.name in enabled,
            "state": str(module.status),
            "health": str(module.health_state or ""),
            "healthMessage": "" if module.health is None else module.health.message,
            "findings": [row for each in found for row in each.rows],
            "reason": module.reason,
            "suspended": "" if module.suspended is None else str(module.suspended),
            "requires": list(requirements.summary(module.module)),
            "hooks": None if module.hooks is None else len(module.hooks),
            "lastRun": _rfc3339(module.last_run),
            "lastError": module.last_error,
            "tries": module.tries,
            "nextTry": _rfc3339(module.next_try),
            "cure": list(module.cure),
            "waitingBindings": list(self._bindings.waiting(module.module.name)),
            "answering": self._bindings.answering(module.module.name),
            "heldBack": None if module.held_back is None else held_back_row(module.held_back),
            "atHook": module.at_hook,
            "runningHooks": self.looks.running_of(module.module.name),
        }
        return cast("ModuleRow", row | findings.by_key(found))

    async def _queue(self, queue: task_queue.TaskQueue) -> QueueRow:
        waiting = frozenset(queue.pending)
        head, queued = self._head(queue), queue.tasks

        def row(numbered: tuple[int, tasks.Task]) -> TaskRow:
            return self._task(queue, *numbered, waiting)

        return {**head, "tasks": await turns.mapped(row, enumerate(queued, 1))}

    def _head(self, queue: task_queue.TaskQueue) -> QueueHead:
        queued, head = queue.tasks, None
        if queued:
            waiting = frozenset(queue.pending[:1])
            head = self._task(queue, 1, queued[0], waiting)
        return {
            "name": queue.name,
            "tasksCount": len(queued),
            "status": head["state"] if head else "",
            "headAge": head["age"] if head else 0.0,
            "headTries": head["tries"] if head else 0,
        }

    def _task(
        self, queue: task_queue.TaskQueue, number: int, task: tasks.Task, waiting: frozenset[tasks.Task]
    ) -> TaskRow:
        now = self._clock.monotonic()
        remaining = max(0.0, task.not_before - now) if task in waiting else 0.0
        return {
            "index": number,
            "description": _description(queue.name, task),
            "kind": str(task.kind),
            "module": task.owner,
            "hook": task.hook,
            "binding": task.binding,
            "activation": task.activation,
            "state": _waiting_state(task, remaining) if task in waiting else _running_state(task),
            "age": round(max(0.0, now - task.queued_at), 3),
            "tries": task.attempts,
            "nextTryIn": round(remaining, 3),
            "lastError": task.last_error,
        }


def held_back_row(held: windows.HeldBack) -> HeldBackRow:
    """Return what waits for a window as a row."""
    until = "" if held.confirm else clocks.rfc3339(held.until)
    since = clocks.rfc3339(held.since)
    return {"what": held.what, "until": until, "since": since, "confirm": held.confirm}


def _running_state(task: tasks.Task) -> str:
    return f"waits for {task.waits_for}" if task.waits_for else RUNNING


def _waiting_state(task: tasks.Task, remaining: float) -> str:
    if task.postponed:
        return POSTPONED
    return BACKOFF if remaining > 0 and task.attempts else WAITING


def _description(queue: str, task: tasks.Task) -> str:
    parts = (str(task.kind), queue, task.owner, task.hook, task.binding, task.activation)
    failures = (f"failures {task.attempts}",) if task.attempts else ()
    return ":".join(part for part in (*parts, *failures) if part)


def _rfc3339(seconds: float | None) -> str | None:
    return None if seconds is None else clocks.rfc3339(seconds)
