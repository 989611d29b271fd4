"""What of modules does not work, or waits, beside their runs: one answer for all who show modules.

The page and the commands ask when somebody looks. Once a second it is noted in the states of modules, from
which Module objects and notifications are made.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self, TypedDict

import msgspec

from addon_operator.aio import turns
from addon_operator.engine import module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings, hook_tasks, webhooks
from addon_operator.engine.hooks import running_hooks
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import clock, names
from addon_operator.modules import findings

_LOOK_SECONDS: Final = 1.0
_SHOWN: Final = 20
"""Failing hooks, and waiting bindings, of one module."""
_WAITED_FOR: Final = 3
_STEADY: Final = 3
"""Looks in a row that see a module wait for the same before that is noted: with a thousand modules and short
runs, the Module objects of all would be written each second."""
_MATTERS: Final = 3.0
"""Seconds after which an edit that is not applied, or a hook that runs, is a state of its module."""
_UNDER_WAY: Final = (state.ModuleStatus.RUNNING, state.ModuleStatus.DELETING)
KINDS: Final = (findings.EDIT_WAITS, findings.HOOK_FAILS, findings.BINDING_WAITS, findings.WAITS)
"""What is looked for."""
Found = Sequence[findings.Finding]
"""One of each kind; without texts, nothing is so."""
_NOTHING: Final[Found] = [findings.Finding(kind, ()) for kind in KINDS]


class FailingHook(TypedDict):
    """A hook that failed by itself, not as a step of a run."""

    queue: str
    hook: str
    binding: str
    tries: int
    """Failed ones."""
    lastError: str


class ModuleLooks:
    """Looks at queues and bindings; ``owner`` is a module, or ``tasks.GLOBAL_OWNER`` for the global hooks."""

    def __init__(
        self,
        states: module_states.ModuleStates,
        queues: queue_set.QueueSet,
        bindings: hook_bindings.HookBindings,
        running: Callable[[], Sequence[running_hooks.RunningHook]] = tuple,
    ) -> None:
        """Look at these; ``running`` says which hooks run."""
        self._states = states
        self._queues = queues
        self._bindings = bindings
        self._running = running
        self._waiting: dict[names.ModuleName, tuple[Sequence[str], int]] = {}

    def running_of(self, owner: str) -> list[running_hooks.RunningHook]:
        """Return the hooks that run, the one that runs longest first."""
        return [row for row in self._running() if row["hook"] and row["module"] == owner]

    def hooks_of(self, owner: str) -> list[FailingHook]:
        """Return the first failing hooks, with what they wrote."""
        return [each.shown for each in self._failing().get(owner, ())]

    def of_global_hooks(self) -> list[str]:
        """Say what of the global hooks does not work, the worst first; without values."""
        owner = tasks.GLOBAL_OWNER
        found = self._found(owner, self._failing().get(owner, ()), ())
        not_registered = hook_bindings.not_registered(self._bindings.answering(owner))
        return [*filter(None, [not_registered]), *(text for each in found for text in each.texts)]

    def of(self, module: names.ModuleName) -> Found:
        """Return what is beside the runs of one module."""
        earlier = itertools.takewhile(lambda each: each.module.name != module, self._states)
        before = [text for each in earlier for text in each.holds_up]
        return self._look(self._states[module], self._failing(), before, self._awaited)

    async def all(self, *, steady: bool = False) -> dict[str, Found]:
        """Return what is beside the runs of all modules; others have their turn meanwhile.

        ``steady``: what a module waits for is what it has waited for in several of these looks.
        """
        failing, awaited = self._failing(), self._awaited
        before: list[str] = []
        # Of the others there is nothing to see, each second.
        concerned = {*failing, *filter(awaited.get, awaited), *self._bindings.owners}

        def look(module: state.ModuleState) -> tuple[str, Found]:
            name, found = module.module.name, _NOTHING
            is_pending = module.status is state.ModuleStatus.PENDING
            if is_pending or name in concerned or module.edit_since is not None:
                found = self._look(module, failing, before, awaited, steady=steady)
            before.extend(module.holds_up)
            return name, found

        return dict(await turns.mapped(look, self._states))

    @property
    def _awaited(self) -> dict[str, list[str]]:
        return {**self._queues.main.awaited, **self._queues.removals.awaited}

    async def note(self) -> None:
        """Note it in the states of all modules, and at which hook those are that run."""
        at_hooks = {
            row["module"]: f"its hook {_runs([row])}"
            for row in reversed(self._running())
            if row["hook"] and row["seconds"] >= _MATTERS
        }
        for name, found in (await self.all(steady=True)).items():
            module = names.ModuleName(name)
            for each in found:
                self._states.note(module, each.kind, *each.texts, since=each.since)
            is_under_way = self._states[module].status in _UNDER_WAY
            self._states.note_running(module, at_hooks.get(name, "") if is_under_way else "")

    async def work(self) -> None:
        """Note it again and again, until cancelled."""
        while True:
            await self.note()
            await asyncio.sleep(_LOOK_SECONDS)

    def _look(
        self,
        module: state.ModuleState,
        failing: "_Failing",
        before: Sequence[str],
        awaited: Mapping[str, Sequence[str]],
        *,
        steady: bool = False,
    ) -> Found:
        name = module.module.name
        if module.status is not state.ModuleStatus.PENDING:
            before = self._states.held_up(module, awaited.get(name, ()))
        elif name not in self._states.enabled:
            before = ()
        before = before[:_WAITED_FOR]
        if steady:
            before = self._steady(module, before)
        found = self._found(name, failing.get(name, ()), before)
        since = module.edit_since
        if since is None or time.time() - since < _MATTERS:
            return found
        told = f"an edit waits since {clock.rfc3339(since)}: {self._awaited_by_edit(module, before)}"
        return [findings.Finding(findings.EDIT_WAITS, (told,), since), *found[1:]]

    def _steady(self, module: state.ModuleState, before: Sequence[str]) -> Sequence[str]:
        """Return whom it waits for, or as long as that changes with each look what was noted before."""
        name = module.module.name
        last, looks = self._waiting.pop(name, ((), 0))
        if not before:
            return before
        self._waiting[name] = before, looks + 1 if list(before) == list(last) else 1
        return before if self._waiting[name][1] >= _STEADY else module.texts(findings.WAITS)

    def _awaited_by_edit(self, module: state.ModuleState, waits_for: Sequence[str]) -> str:
        """Say what an edit of the module waits for, without values."""
        name, status = module.module.name, module.status
        own, of_all = self.running_of(name), self.running_of(tasks.GLOBAL_OWNER)
        under_way = status in _UNDER_WAY
        failing = [task for task in self._queues.main.tasks if not task.owner and task.last_error]
        return next(
            text
            for holds, text in (
                (own, f"its hook {_runs(own)}"),
                (waits_for, f"for {', '.join(waits_for)}"),
                (module.awaits_health, f"until {module.awaited} healthy"),
                (module.last_error_without_values, "for the next try of what failed"),
                (module.helm_hook, module.at_hook),
                (under_way, "its run is under way"),
                (of_all, f"the global hook {_runs(of_all)}"),
                (failing, f"for the next try of what failed: {_failed(failing)}"),
                (True, "for its turn"),
            )
            if holds
        )

    def _found(self, owner: str, failing: Sequence["_Failure"], before: Sequence[str]) -> Found:
        unanswered = filter(None, map(_unanswered, self._bindings.answering(owner)))
        waiting = itertools.islice(self._bindings.waiting(owner), _SHOWN)
        texts = {
            findings.HOOK_FAILS: (*map(_failing_text, failing), *unanswered),
            findings.BINDING_WAITS: tuple(map(hook_bindings.waiting_text, waiting)),
            findings.WAITS: tuple(before),
        }
        return [findings.Finding(kind, texts.get(kind, ())) for kind in KINDS]

    def _failing(self) -> "_Failing":
        """Return the first that failed of each owner."""
        found: dict[str, list[_Failure]] = {}
        for each in itertools.chain(self._queued(), map(_Failure.allowed, self._bindings.allowed_failures)):
            if len(kept := found.setdefault(each.owner, [])) < _SHOWN:
                kept.append(each)
        return found

    def _queued(self) -> "Iterator[_Failure]":
        return (
            _Failure.queued(queue.name, task)
            for queue in self._queues.all
            for task in queue.tasks
            if task.hook and task.last_error
        )


class _Failure(msgspec.Struct, frozen=True):
    """A hook that failed."""

    owner: str
    shown: FailingHook
    error_without_values: str
    is_allowed: bool = False

    @classmethod
    def queued(cls, queue: str, task: tasks.Task) -> Self:
        shown = FailingHook(
            queue=queue, hook=task.hook, binding=task.binding, tries=task.attempts, lastError=task.last_error
        )
        return cls(task.owner, shown, task.last_error_without_values)

    @classmethod
    def allowed(cls, failure: hook_tasks.AllowedFailure) -> Self:
        hook = failure.hook
        shown = FailingHook(
            queue=failure.queue,
            hook=hook.name,
            binding=failure.binding,
            tries=failure.times,
            lastError=failure.error,
        )
        return cls(hook.module or tasks.GLOBAL_OWNER, shown, failure.error_without_values, is_allowed=True)


_Failing = Mapping[str, Sequence[_Failure]]


def _failing_text(failure: _Failure) -> str:
    """Say which hook fails, and how."""
    hook, error = failure.shown, failure.error_without_values
    named = repr(hook["binding"]) if " " in hook["binding"] else hook["binding"]
    binding = f" on {named}" if named else ""
    often = " once" if hook["tries"] == 1 else f" {hook['tries']} times"
    told = error.removeprefix(f"hook {hook['hook']} ").removeprefix("failed with ")
    if failure.is_allowed:
        # Each event may be another failure: a number would have its Module object written for each of them.
        often = ", which is allowed, so that it is tried again with its next event"
    return f"hook {hook['hook']}{binding} failed{often}{f': {told}' if told else ''}"


def _runs(running: Sequence[running_hooks.RunningHook]) -> str:
    """Say which hook runs, since when, and how to end it; empty if none does."""
    return "".join(
        f"{row['hook']} has been running since {row['since']}; 'addon-operator hooks end {row['id']}' ends it"
        for row in running[:1]
    )


def _failed(failing: Sequence[tasks.Task]) -> str:
    """Say what failed first; empty if nothing did."""
    texts = (f"{task.kind.doing} {task.hook}".rstrip() for task in failing[:1])
    return "".join(f"{text}: {failing[0].last_error_without_values}" for text in texts)


def _unanswered(row: webhooks.AnsweringRow) -> str:
    if not row["unanswered"]:
        return ""
    named = f"{row['binding']} {row['name']} of hook {row['hook']}"
    return f"{named} did not answer the last request: {row['unanswered']}"
