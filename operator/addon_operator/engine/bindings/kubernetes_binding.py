"""One kubernetes binding at run time: from the first list to events, with nothing lost in between.

A binding waits for its objects, then for its Synchronization run, and only then makes events. The run's
snapshot is taken when it begins; what changes from then on is kept until the run has succeeded and becomes
events after it. If the run fails, its next try takes a new snapshot, in which those changes are.
"""

import asyncio
import enum
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from addon_operator.engine import events, state
from addon_operator.engine.bindings import triggers
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings
from addon_operator.kube.informers import informers, object_changes

_GROWTH: Final = {
    object_changes.ChangeType.ADDED: 1,
    object_changes.ChangeType.MODIFIED: 0,
    object_changes.ChangeType.DELETED: -1,
}


class BindingListener(object_changes.Listener, Protocol):
    """Who is told of the objects of a binding, and of the work that its filter makes."""

    def filtered(self, count: int, seconds: float) -> None:
        """The jqFilter was applied to so many objects in so much time."""
        ...


class Subscribe(Protocol):
    """Follows the objects of a binding; see :class:`.Informers`."""

    def __call__(
        self, binding: bindings.KubernetesBinding, listener: BindingListener
    ) -> informers.Subscription:
        """Begin to follow."""
        ...


class Phase(enum.Enum):
    """How far a binding is."""

    WAITING = "waiting"
    """Its Synchronization run has not begun."""
    SYNCHRONIZING = "synchronizing"
    """That run is under way."""
    LIVE = "live"
    """Changes make events."""
    MUTED = "muted"
    """Its module is being disabled: nothing makes a run, but the snapshot is kept."""


class BoundKubernetes:
    """A binding that follows its objects from :meth:`start` to :meth:`close`.

    Implements :class:`BindingListener` and :class:`.SynchronizedBinding`.
    """

    def __init__(
        self,
        hook: state.Hook,
        binding: bindings.KubernetesBinding,
        enqueue: triggers.Enqueue,
        went_live: Callable[["BoundKubernetes"], None],
        tell: events.Listener,
    ) -> None:
        self.hook = hook
        self.binding = binding
        self.phase = Phase.WAITING
        self.news = asyncio.Event()
        """Set whenever somebody who waits for this binding should look at it again."""
        self.is_awaited = binding.wait_for_synchronization
        """Whether its Synchronization run belongs to the start of its module."""
        self.is_queued = False
        """Whether a Synchronization run waits in a queue."""
        self.error = ""
        """Why the last try of its Synchronization run failed."""
        self._enqueue = enqueue
        self._went_live = went_live
        self._tell = tell
        self._subscription: informers.Subscription | None = None
        self._kept: list[triggers.Cause] = []
        self._count = 0
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        """Why its objects cannot be followed just now."""
        return self._reason

    @property
    def is_listed(self) -> bool:
        """Whether its snapshot is complete."""
        return self._subscription is not None and self._subscription.synced

    @property
    def entries(self) -> binding_contexts.Entries:
        """The snapshot."""
        return self._subscription.lazy_snapshot() if self._subscription is not None else ()

    def start(self, subscribe: Subscribe) -> None:
        """Follow the objects."""
        self._subscription = subscribe(self.binding, self)
        if self._subscription.synced:
            self.synced()
        elif self._subscription.reason is not None:
            self.trouble(self._subscription.reason)

    def close(self) -> None:
        """Follow them no more."""
        self.mute()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
            self._tell(events.BindingGone(self.hook, self.binding))

    def mute(self) -> None:
        """Make no runs any more."""
        self.phase = Phase.MUTED
        self.is_queued = False
        self._kept.clear()
        self.news.set()

    def begin_again(self) -> None:
        """Start over with a Synchronization run."""
        self.phase = Phase.WAITING
        self.is_awaited = self.binding.wait_for_synchronization
        self.error = ""
        self._settle()

    def request_synchronization(self, *, reacts: bool = False) -> None:
        """Queue a Synchronization run, unless one waits."""
        if self.phase is not Phase.MUTED and not self.is_queued:
            self.is_queued = True
            self._enqueue(self.hook, triggers.Synchronization(self, self.is_awaited, reacts))

    def resynchronize(self) -> None:
        """Queue a further Synchronization run."""
        if self.phase is Phase.LIVE:
            self.is_awaited = False
            self.request_synchronization(reacts=True)

    def go_late(self) -> None:
        """Nobody waits for its Synchronization run: it is queued when the objects are there."""
        self.is_awaited = False
        self._settle()

    def synced(self) -> None:
        """The snapshot is complete."""
        if self._subscription is not None:
            self._counted(len(self._subscription.keys()))
        self._settle()
        self.news.set()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """Make events of what the hook wants to know."""
        self._counted(self._count + sum(_GROWTH[change.type] for change in changes))
        if self.phase in (Phase.WAITING, Phase.MUTED):
            # The snapshot of the Synchronization run will show it.
            return
        began = time.perf_counter()
        for change in changes:
            what = bindings.WatchEvent(change.type.value)
            if what in self.binding.execute_on_event:
                self._take(triggers.Event(self.binding, what, binding_contexts.PackedEntry(change.kept)))
        seconds = time.perf_counter() - began
        self._tell(events.ChangesHandled(self.hook, self.binding, len(changes), seconds))

    def filtered(self, count: int, seconds: float) -> None:
        """Tell of it, unless the binding has ended and only those that share its filter go on."""
        if self._subscription is not None:
            self._tell(events.ObjectsFiltered(self.hook, self.binding, count, seconds))

    def trouble(self, reason: str | None) -> None:
        """Tell of it once."""
        if reason == self._reason:
            return
        self._reason = reason
        if reason is None:
            self._tell(events.BindingFollows(self.hook, self.binding))
        else:
            self._tell(events.BindingWaits(self.hook, self.binding, reason))
        self.news.set()

    def synchronization_begins(self) -> None:
        """The snapshot is taken now."""
        if self.phase is Phase.WAITING:
            self.phase = Phase.SYNCHRONIZING
            self._kept.clear()

    def synchronization_ended(self) -> None:
        """The hook has seen the snapshot: what changed since then becomes events."""
        self.is_queued, self.error = False, ""
        if self.phase is Phase.SYNCHRONIZING:
            self._go_live()
        self.news.set()

    def synchronization_failed(self, error: str) -> None:
        """The next try takes a new snapshot."""
        self.error = error
        if self.phase is Phase.SYNCHRONIZING:
            self.phase = Phase.WAITING
            self._kept.clear()
        self.news.set()

    def _settle(self) -> None:
        if self.phase is not Phase.WAITING or not self.is_listed:
            return
        if not self.binding.execute_on_synchronization:
            self._go_live()
        elif not self.is_awaited:
            self.request_synchronization(reacts=self.binding.wait_for_synchronization)

    def _go_live(self) -> None:
        self.phase = Phase.LIVE
        kept, self._kept = self._kept, []
        for event in kept:
            self._enqueue(self.hook, event)
        self._went_live(self)

    def _take(self, event: triggers.Event) -> None:
        if self.phase is Phase.LIVE:
            self._enqueue(self.hook, event)
        elif self._kept:
            triggers.joined(self._kept, event)
        else:
            self._kept.append(event)

    def _counted(self, count: int) -> None:
        self._count = count
        size = None if self._subscription is None else self._subscription.size
        self._tell(events.SnapshotChanged(self.hook, self.binding, count, size))
