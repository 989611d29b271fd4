"""One kubernetes binding at run time: from the first list to events, with nothing lost in between.

A binding waits for its objects, then for its Synchronization run, and only then makes events. The run's
snapshot is taken when it begins; what changes from then on is kept until the run has succeeded and becomes
events after it. If the run fails, its next try takes a new snapshot, in which those changes are.
"""

import asyncio
import enum
import time
from collections.abc import Callable, Sequence
from typing import Final

from addon_operator.engine import events, state
from addon_operator.engine.bindings import binding_events, hook_tasks, schedules, triggers
from addon_operator.hook_contract import binding_contexts, crontab
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kube.informers import informers, object_changes, object_selections, projections

_GROWTH: Final = {
    object_changes.ChangeType.ADDED: 1,
    object_changes.ChangeType.MODIFIED: 0,
    object_changes.ChangeType.DELETED: -1,
}


class BindingPhase(enum.Enum):
    """How far a binding is."""

    WAITING = "waiting"
    """Its Synchronization run has not begun."""
    SYNCHRONIZING = "synchronizing"
    """That run is under way."""
    LIVE = "live"
    """Changes make events."""
    MUTED = "muted"
    """Its module is being disabled: nothing makes a run, but the snapshot is kept."""


class FollowedBinding(object_changes.ObjectListener, triggers.SynchronizedBinding):
    """Follows the objects of a kubernetes binding from :meth:`start` to :meth:`close`."""

    def __init__(
        self,
        hook: state.Hook,
        binding: bindings.KubernetesBinding,
        tasks: hook_tasks.HookTasks,
        ticks: schedules.Schedules,
        tell: events.Listener,
    ) -> None:
        self.hook = hook
        self.binding = binding
        self.phase = BindingPhase.WAITING
        self.news = asyncio.Event()
        """Set whenever somebody who waits for this binding should look at it again."""
        self.is_awaited = binding.wait_for_synchronization
        """Whether its Synchronization run belongs to the start of its module."""
        self.is_queued = False
        """Whether a Synchronization run waits in a queue."""
        self.error = ""
        """Why the last try of its Synchronization run failed."""
        self._tasks = tasks
        self._ticks = ticks
        self._tell = tell
        self._subscription: informers.Subscription | None = None
        self._kept: list[triggers.Trigger] = []
        self._count = 0
        self.reason: str | None = None
        """Why its objects cannot be followed just now."""

    @property
    def is_listed(self) -> bool:
        """Whether its snapshot is complete."""
        return self._subscription is not None and self._subscription.synced

    def start(self, watches: informers.Informers, jq: projections.JqRunner) -> None:
        """Follow the objects; where several bindings share a filter, the first reports its work."""
        projection = projection_of(self.binding, jq, self._filtered)
        self._subscription = watches.subscribe(selection_of(self.binding), projection, self)
        self._tasks.objects.add(self.hook, self.binding, self._subscription)
        if self._subscription.synced:
            self.synced()
        elif self._subscription.reason is not None:
            self.trouble(self._subscription.reason)

    def close(self) -> None:
        """Stop to follow them."""
        self.mute()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
            self._tell(binding_events.BindingGone(self.hook, self.binding))

    def mute(self) -> None:
        """Make no runs any more."""
        self._ticks.remove(self)
        self.phase = BindingPhase.MUTED
        self.is_queued = False
        self._kept.clear()
        self.news.set()

    def begin_again(self) -> None:
        """Start over with a Synchronization run."""
        self.phase = BindingPhase.WAITING
        self.is_awaited = self.binding.wait_for_synchronization
        self.error = ""
        self._settle()

    def request_synchronization(self, *, reacts: bool = False) -> None:
        """Queue a Synchronization run, unless one waits."""
        if self.phase is not BindingPhase.MUTED and not self.is_queued:
            self.is_queued = True
            self._tasks.add(self.hook, triggers.Synchronization(self, self.is_awaited, reacts))

    def resynchronize(self) -> None:
        """Queue a further Synchronization run."""
        if self.phase is BindingPhase.LIVE:
            self.is_awaited = False
            self.request_synchronization(reacts=True)

    def go_late(self) -> None:
        """Stop being awaited: the Synchronization run is queued when the objects are there."""
        self.is_awaited = False
        self._settle()

    def synced(self) -> None:
        """Go on with what waited for the snapshot, which is complete."""
        if self._subscription is not None:
            self._counted(self._subscription.count)
        self._settle()
        self.news.set()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Make events of what the hook wants to know."""
        self._counted(self._count + sum(_GROWTH[change.type] for change in changes))
        if self.phase in (BindingPhase.WAITING, BindingPhase.MUTED):
            # The snapshot of the Synchronization run will show it.
            return
        began = time.perf_counter()
        for change in changes:
            what = bindings.WatchEvent(change.type.value)
            if what in self.binding.execute_on_event:
                entry, before = binding_contexts.PackedEntry(change.kept), None
                if self.binding.keep_old_object and change.before is not None:
                    before = binding_contexts.PackedEntry(change.before)
                self._take(triggers.Event(self.binding, what, entry, before))
        seconds = time.perf_counter() - began
        self._tell(binding_events.ChangesHandled(self.hook, self.binding, len(changes), seconds))

    def _filtered(self, count: int, seconds: float) -> None:
        """Report it, unless the binding has ended and only those that share its filter go on."""
        if self._subscription is not None:
            self._tell(binding_events.ObjectsFiltered(self.hook, self.binding, count, seconds))

    def trouble(self, reason: str | None) -> None:
        """Report it once."""
        if reason == self.reason:
            return
        self.reason = reason
        self._tell(binding_events.BindingWaits(self.hook, self.binding, reason))
        self.news.set()

    def synchronization_begins(self) -> None:
        """Note that the snapshot is taken now."""
        if self.phase is BindingPhase.WAITING:
            self.phase = BindingPhase.SYNCHRONIZING
            self._kept.clear()

    def synchronization_ended(self) -> None:
        """Turn what changed since the snapshot into events: the hook has seen it."""
        self.is_queued, self.error = False, ""
        if self.phase is BindingPhase.SYNCHRONIZING:
            self._go_live()
        self.news.set()

    def synchronization_failed(self, error: str) -> None:
        """Let the next try take a new snapshot."""
        self.error = error
        if self.phase is BindingPhase.SYNCHRONIZING:
            self.phase = BindingPhase.WAITING
            self._kept.clear()
        self.news.set()

    def _settle(self) -> None:
        if self.phase is not BindingPhase.WAITING or not self.is_listed:
            return
        if not self.binding.execute_on_synchronization:
            self._go_live()
        elif not self.is_awaited:
            self.request_synchronization(reacts=self.binding.wait_for_synchronization)

    def _go_live(self) -> None:
        self.phase = BindingPhase.LIVE
        postponed, self._kept = self._kept, []
        for event in postponed:
            self._tasks.add(self.hook, event)
        if period := self.binding.resynchronization_period:
            self._ticks.remove(self)
            self._ticks.add(self, crontab.every(period), self.resynchronize)

    def _take(self, event: triggers.Event) -> None:
        if self.phase is BindingPhase.LIVE:
            self._tasks.add(self.hook, event)
        elif self._kept:
            triggers.joined(self._kept, event)
        else:
            self._kept.append(event)

    def _counted(self, count: int) -> None:
        self._count = count
        size = None if self._subscription is None else self._subscription.size
        self._tell(binding_events.SnapshotChanged(self.hook, self.binding, count, size))


def selection_of(binding: bindings.KubernetesBinding) -> object_selections.ObjectSelection:
    """Return the objects of a binding; equal for bindings that can share a watch."""
    chosen = binding.namespaces or bindings.NamespaceSelector()
    names = chosen.names or None
    return object_selections.ObjectSelection(
        kind=binding.kind,
        api_version=binding.api_version,
        names=binding.names,
        label_selector=binding.labels.to_query() if binding.labels else "",
        field_selector=",".join(requirement.to_query() for requirement in binding.fields),
        namespaces=names,
        namespace_labels=chosen.labels.to_query() if chosen.labels else None,
    ).canonical


def projection_of(
    binding: bindings.KubernetesBinding,
    jq: projections.JqRunner,
    measured: Callable[[int, float], None] = lambda _count, _seconds: None,
) -> projections.Projection:
    """Return what is kept of the objects of a binding; equal for bindings that can share it.

    ``measured`` is called with how many objects a jqFilter was applied to, and the seconds.
    """
    if binding.jq_filter is not None:
        return projections.JqFiltered(binding.jq_filter, binding.keep_full_objects, jq, measured=measured)
    return projections.FullObject(keep=binding.keep_full_objects)
