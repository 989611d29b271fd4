"""The ``schedule`` and ``kubernetes`` bindings of all hooks: begun with their module, ended with it."""

import asyncio
import functools
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypedDict

import msgspec

from addon_operator.engine import events, state, tasks
from addon_operator.engine.bindings import (
    hook_tasks,
    kubernetes_binding,
    schedules,
    triggers,
    webhooks,
)
from addon_operator.engine.hooks import hook_failures
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kernel import errors, names
from addon_operator.kube.informers import informer_cache, informers, projections

_LOOK_SECONDS: Final = 1.0
"""Between two looks at what is registered."""
_SHOWN: Final = 3


class BindingError(errors.AddonOperatorError):
    """A Synchronization run for which a start has to wait has failed."""

    def __init__(self, followed: kubernetes_binding.FollowedBinding) -> None:
        self._what = (
            f"hook {followed.hook.name}: the Synchronization run of binding {followed.binding.name} "
            f"in queue {followed.binding.queue} has failed"
        )
        self._command = hook_failures.command_that_shows(followed.hook.module)
        super().__init__(f"{self._what}: {followed.error}")

    @property
    def without_values(self) -> str:
        """Which run, without what its hook wrote."""
        return f"{self._what}; '{self._command}' and the operator's log say why"


class SynchronizationRun(msgspec.Struct, frozen=True):
    """Bindings of one hook whose Synchronization is one run in ``main``."""

    hook: state.Hook
    followed: tuple[kubernetes_binding.FollowedBinding, ...]

    @property
    def run_for(self) -> list[triggers.Trigger]:
        """What the hook runs for."""
        return [triggers.Synchronization(followed, is_awaited=True) for followed in self.followed]

    @property
    def allow_failure(self) -> bool:
        """Whether the run may fail."""
        return all(followed.binding.allow_failure for followed in self.followed)


class WaitingBinding(TypedDict):
    """A ``kubernetes`` binding of which objects cannot be followed just now."""

    hook: str
    binding: str
    kind: str
    reason: str


def waiting_row(hook: state.Hook, binding: bindings.KubernetesBinding, reason: str) -> WaitingBinding:
    """Return a binding as a row."""
    return WaitingBinding(hook=hook.name, binding=binding.name, kind=binding.kind, reason=reason)


def waiting_text(binding: WaitingBinding) -> str:
    """Say which binding does not follow all of its objects, and why."""
    named = f"binding {binding['binding']} ({binding['kind']}) of hook {binding['hook']}"
    reason = binding["reason"]
    if not reason.startswith(informer_cache.SKIPS):
        return f"{named} waits: {reason}"
    return f"{named} {reason}; until that is corrected, the hook sees it as it was before, if at all"


class HookBindings:
    """Begins and ends bindings; ``owner`` is a module, or ``tasks.GLOBAL_OWNER`` for the global hooks."""

    def __init__(
        self,
        hook_tasks: hook_tasks.HookTasks,
        watches: informers.Informers,
        jq: projections.JqRunner,
        ticks: schedules.Schedules,
        tell: events.Listener,
        answering: Sequence[webhooks.Webhooks[Any, Any, Any]],
    ) -> None:
        self._tasks = hook_tasks
        self._webhooks = answering
        self._watches = watches
        self._jq = jq
        self._ticks = ticks
        self._tell = tell
        self._followed: dict[str, list[kubernetes_binding.FollowedBinding]] = {}
        self._hooks: dict[str, tuple[state.Hook, ...]] = {}
        self._ticking: set[str] = set()

    async def work(self) -> None:
        """Let schedules tick, once they are opened, until cancelled."""
        await self._ticks.work()

    def open(self) -> None:
        """Begin to tick; moments before are not made up for."""
        self._ticks.open()

    async def start(
        self, owner: str, hooks: Sequence[state.Hook], stopping: asyncio.Event
    ) -> Sequence[SynchronizationRun]:
        """Begin all kubernetes bindings; the Synchronization runs in ``main`` that are still to be made.

        Those in named queues are queued here. Waits for the objects, unless they cannot be followed for now:
        such a binding catches up on its own. Returns at once when ``stopping`` is set.
        """
        self._begin(owner, tuple(hooks))
        due = [followed for followed in self._followed.get(owner, ()) if _is_due(followed)]
        for followed in due:
            await _watch(followed, stopping, _is_listed_or_late)
            if not followed.is_listed:
                followed.go_late()
        due = [followed for followed in due if _is_due(followed)]
        for followed in due:
            if followed.binding.queue != bindings.MAIN_QUEUE:
                followed.request_synchronization()
        in_main = [followed for followed in due if followed.binding.queue == bindings.MAIN_QUEUE]
        grouped = itertools.groupby(in_main, key=lambda followed: followed.hook)
        return [SynchronizationRun(hook, tuple(followed)) for hook, followed in grouped]

    async def run(self, task: tasks.Task, due: SynchronizationRun) -> None:
        """Make a Synchronization run now, in ``task``.

        Raises what the run raises, unless it may fail.
        """
        allowed = due.allow_failure
        try:
            await self._tasks.run(task, due.hook, due.run_for, allow_failure=allowed)
        except errors.AddonOperatorError as error:
            if not allowed:
                raise
            self._tell(events.Warned(f"{error}; failure is allowed"))

    def queue(self, due: SynchronizationRun, activation: str) -> tasks.Task:
        """Queue a Synchronization run in ``main``."""
        queued = [self._tasks.add(due.hook, trigger, activation) for trigger in due.run_for]
        for followed in due.followed:
            followed.is_queued = True
        return queued[-1]

    async def wait(self, owner: str, stopping: asyncio.Event, *, patient: bool = False) -> None:
        """Wait for the Synchronization runs in named queues on which the start of the owner depends.

        Raises :class:`BindingError` when one has failed, unless ``patient``: it is tried again in its queue.
        """
        for followed in self._followed.get(owner, ()):
            await _watch(followed, stopping, _is_synchronized if patient else _has_been_tried)
            if followed.error and _is_due(followed) and not stopping.is_set():
                raise BindingError(followed)

    async def answer(self, owner: str, stopping: asyncio.Event) -> None:
        """Have the owner's webhooks and conversions registered; those with late snapshots follow later.

        Raises an :class:`.AddonOperatorError` when that cannot be done. Returns at once when ``stopping`` is
        set.
        """
        hooks = self._hooks.get(owner, ())
        included = {
            (hook.name, name)
            for hook in hooks
            for each in hook.config.answering
            for name in each.include_snapshots_from
        }
        for followed in self._followed.get(owner, ()):
            if (followed.hook.name, followed.binding.name) in included:
                await _watch(followed, stopping, _is_there_or_late)
        if not stopping.is_set():
            for each in self._webhooks:
                await each.open(owner, hooks)

    def answering(self, owner: str) -> list[webhooks.AnsweringRow]:
        """Return what the owner's hooks are to answer the API server, and whether it asks."""
        return [row for each in self._webhooks for row in each.rows(owner)]

    async def watch_registrations(self) -> None:
        """Tell when what hooks are to answer is not registered, and when it is again, until cancelled."""
        told: dict[str, str] = {}
        while True:
            for owner in {*told, *self.owners}:
                rows = self.answering(owner)
                text = not_registered(rows)
                if text != told.get(owner, ""):
                    told[owner] = text
                    is_due = all(row["notRegistered"] in ("", webhooks.DUE) for row in rows)
                    self._tell(events.RegistrationsChanged(owner, text, is_due))
            await asyncio.sleep(_LOOK_SECONDS)

    async def answer_only(self, owners: Collection[str]) -> None:
        """Remove the webhooks and conversions of all other owners.

        Returns when nobody is asked any more. Raises an :class:`.AddonOperatorError`
        when that cannot be done.
        """
        for each in self._webhooks:
            await each.keep_only(owners)

    async def let_go(self, owner: str) -> None:
        """Return when nothing depends on what the owner's hooks answer.

        Raises an :class:`.AddonOperatorError` as long as something does.
        """
        for each in self._webhooks:
            await each.let_go(owner)

    def tick(self, owner: str) -> None:
        """Switch the schedules of the owner's hooks on."""
        if owner in self._ticking:
            return
        self._ticking.add(owner)
        for hook in self._hooks.get(owner, ()):
            for binding in hook.config.schedules:
                due = functools.partial(self._tasks.add, hook, triggers.Tick(binding))
                self._ticks.add(owner, binding.crontab, due)

    def begin_again(self, owner: str) -> None:
        """Forget all Synchronization runs: the next start makes them anew."""
        for followed in self._followed.get(owner, ()):
            followed.begin_again()

    def mute(self, owner: str) -> None:
        """Stop to run the owner's hooks for events and ticks; snapshots are kept up to date.

        A :meth:`start` after that makes all Synchronization runs anew.
        """
        self._ticking.discard(owner)
        self._ticks.remove(owner)
        for followed in self._followed.get(owner, ()):
            followed.mute()
        self._tasks.drop(owner)

    def end(self, owner: str) -> None:
        """End the owner's watches, schedules and waiting runs, and queues that nobody else uses."""
        self.mute(owner)
        for each in self._webhooks:
            each.end(owner)
        for followed in self._followed.get(owner, ()):
            followed.close()
        self._followed.pop(owner, None)
        for hook in self._hooks.pop(owner, ()):
            self._tasks.forget(hook)

    def snapshots(self, hook: state.Hook) -> binding_contexts.Snapshots:
        """Return the snapshots of all kubernetes bindings of a hook, as its lifecycle steps see them."""
        return self._tasks.objects.snapshots(hook)

    @property
    def allowed_failures(self) -> Sequence[hook_tasks.AllowedFailure]:
        """Hooks that failed, as their bindings allow, the last time that they ran for them."""
        return self._tasks.allowed_failures

    @property
    def owners(self) -> set[str]:
        """Whose hooks are to answer something, or follow objects."""
        following = (owner for owner, followed in self._followed.items() if followed)
        return {*following, *(owner for each in self._webhooks for owner in each.owners)}

    def waiting(self, owner: str) -> list[WaitingBinding]:
        """Return the owner's bindings whose objects cannot be followed just now, and why."""
        return [
            waiting_row(followed.hook, followed.binding, followed.reason)
            for followed in self._followed.get(owner, ())
            if followed.reason is not None
        ]

    def _begin(self, owner: str, hooks: tuple[state.Hook, ...]) -> None:
        if self._hooks.get(owner, hooks) != hooks:
            self.end(owner)
        if owner in self._hooks:
            for followed in self._followed.get(owner, ()):
                if followed.phase is kubernetes_binding.BindingPhase.MUTED:
                    followed.begin_again()
            return
        self._hooks[owner] = hooks
        for hook in hooks:
            self._tasks.attach(hook)
        self._followed[owner] = [self._bind(hook, each) for hook in hooks for each in hook.config.kubernetes]
        for followed in self._followed[owner]:
            followed.start(self._watches, self._jq)
        for each in self._webhooks:
            each.begin(owner, hooks)

    def _bind(
        self, hook: state.Hook, binding: bindings.KubernetesBinding
    ) -> kubernetes_binding.FollowedBinding:
        return kubernetes_binding.FollowedBinding(hook, binding, self._tasks, self._ticks, self._tell)


def not_registered(rows: Sequence[webhooks.AnsweringRow]) -> str:
    """Say which webhooks and conversions are not registered, and why; empty if all are."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["notRegistered"]:
            reasons.setdefault(row["notRegistered"], []).append(
                f"{row['binding']} {row['name']} of hook {row['hook']}"
            )
    said = (
        f"{names.listed(who, _SHOWN)} {'are' if len(who) > 1 else 'is'} not registered: {reason}"
        for reason, who in reasons.items()
    )
    return "; ".join(said)


def _is_due(followed: kubernetes_binding.FollowedBinding) -> bool:
    """Say whether a start waits for its Synchronization run, or for its objects alone."""
    return followed.is_awaited and followed.phase in (
        kubernetes_binding.BindingPhase.WAITING,
        kubernetes_binding.BindingPhase.SYNCHRONIZING,
    )


def _is_listed_or_late(followed: kubernetes_binding.FollowedBinding) -> bool:
    return followed.is_listed or followed.reason is not None or not _is_due(followed)


def _is_there_or_late(followed: kubernetes_binding.FollowedBinding) -> bool:
    return followed.is_listed or followed.reason is not None


def _is_synchronized(followed: kubernetes_binding.FollowedBinding) -> bool:
    return not _is_due(followed)


def _has_been_tried(followed: kubernetes_binding.FollowedBinding) -> bool:
    return not _is_due(followed) or bool(followed.error)


async def _watch(
    followed: kubernetes_binding.FollowedBinding,
    stopping: asyncio.Event,
    seen: Callable[[kubernetes_binding.FollowedBinding], bool],
) -> None:
    """Wait until ``seen``, looking whenever there is news, or until ``stopping`` is set."""
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        while not seen(followed) and not stopping.is_set():
            followed.news.clear()
            news = asyncio.ensure_future(followed.news.wait())
            await asyncio.wait({stopped, news}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
    finally:
        stopped.cancel()
