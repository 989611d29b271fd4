"""Why a hook runs because of a ``schedule`` or ``kubernetes`` binding, and the contexts that follow from it.

Triggers wait in queues; contexts are made of them when a try begins, so that each try sees the snapshots of
its own time and still all events that made the task.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias

import msgspec

from addon_operator.engine import state
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import errors
from addon_operator.kube.informers import informers


class Seen(msgspec.Struct, frozen=True):
    """What a run for a binding sees of the cluster."""

    snapshots: binding_contexts.Snapshots | None = None
    """Those that it asks for; ``None`` if it asks for none."""
    objects: binding_contexts.Entries = ()
    """Its own, for a Synchronization."""


class Tick(msgspec.Struct, frozen=True):
    """The time of a schedule binding came."""

    activation: ClassVar[str] = "Schedule"
    reacts: ClassVar[bool] = True
    binding: bindings.ScheduleBinding

    def context(self, seen: Seen) -> binding_contexts.Context:
        """Return what the hook is told."""
        return binding_contexts.schedule(self.binding.name, seen.snapshots)

    def legacy_context(self) -> binding_contexts.Context:
        """Return what a hook without ``configVersion`` is told."""
        return binding_contexts.legacy_schedule(self.binding.name)


class Event(msgspec.Struct, frozen=True):
    """An object of a kubernetes binding changed."""

    activation: ClassVar[str] = "Kubernetes"
    reacts: ClassVar[bool] = True
    binding: bindings.KubernetesBinding
    change: bindings.WatchEvent
    entry: binding_contexts.PackedEntry
    before: binding_contexts.PackedEntry | None = None
    """The entry before a Modified, if the binding wants it."""

    def context(self, seen: Seen) -> binding_contexts.Context:
        """Return what the hook is told."""
        return binding_contexts.event(self.binding.name, self.change, self.entry, seen.snapshots, self.before)

    def legacy_context(self) -> binding_contexts.Context:
        """Return what a hook without ``configVersion`` is told."""
        return binding_contexts.legacy_event(self.change, self.binding.name, self.entry)


class SynchronizedBinding(Protocol):
    """Follows how its Synchronization run goes: :class:`.FollowedBinding`."""

    binding: bindings.KubernetesBinding

    def synchronization_begins(self) -> None:
        """Note that the snapshot of the run is taken at this moment."""
        ...

    def synchronization_ended(self) -> None:
        """Note that the hook has seen the snapshot."""
        ...

    def synchronization_failed(self, error: str) -> None:
        """Note that the run failed; it begins anew later."""
        ...


class Synchronization(msgspec.Struct, frozen=True):
    """A kubernetes binding starts, or its ``resynchronizationPeriod`` is over."""

    activation: ClassVar[str] = "Synchronization"
    followed: SynchronizedBinding
    is_awaited: bool = False
    """Whether the start of its module waits for it."""
    reacts: bool = False
    """Whether values that it changes make the module run: no lifecycle step follows that would use them."""

    @property
    def binding(self) -> bindings.KubernetesBinding:
        """The binding itself."""
        return self.followed.binding

    def context(self, seen: Seen) -> binding_contexts.Context:
        """Return what the hook is told."""
        return binding_contexts.synchronization(self.binding.name, seen.objects, seen.snapshots)

    def legacy_context(self) -> binding_contexts.Context:
        """Fail: a configuration without ``configVersion`` has no Synchronization."""
        raise AssertionError("a configuration without configVersion has no Synchronization")


Trigger: TypeAlias = Tick | Event | Synchronization


class IncompleteError(errors.AddonOperatorError):
    """Snapshots are wanted that are not there, or not any more."""


class FollowedObjects:
    """The objects of all kubernetes bindings that are followed now."""

    def __init__(self) -> None:
        self._by_hook: dict[tuple[str, str], dict[bindings.KubernetesBinding, informers.Subscription]] = {}

    def add(
        self, hook: state.Hook, binding: bindings.KubernetesBinding, subscription: informers.Subscription
    ) -> None:
        """Follow the objects of a binding from now on."""
        self._by_hook.setdefault((hook.module or "", hook.name), {})[binding] = subscription

    def remove(self, hook: state.Hook) -> None:
        """Stop following the objects of a hook's bindings."""
        self._by_hook.pop((hook.module or "", hook.name), None)

    def entries(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:
        """Return the objects of a binding now; none as long as it does not follow them."""
        subscription = self._by_hook.get((hook.module or "", hook.name), {}).get(binding)
        return () if subscription is None else subscription.lazy_snapshot()

    def named(self, hook: state.Hook, names: Iterable[str]) -> binding_contexts.Snapshots:
        """Return the snapshots of the kubernetes bindings of a hook that have these names.

        Raises :class:`IncompleteError`: what is not known would look like what is not there.
        """
        wanted = tuple(names)
        if not self.are_listed(hook, wanted):
            raise IncompleteError("its snapshots are not complete")
        return _Snapshots(hook, self).named(wanted)

    def are_listed(self, hook: state.Hook, names: Iterable[str]) -> bool:
        """Say whether the snapshots of these kubernetes bindings of a hook are complete."""
        followed, wanted = self._by_hook.get((hook.module or "", hook.name), {}), set(names)
        subscriptions = (
            followed.get(binding) for binding in hook.config.kubernetes if binding.name in wanted
        )
        return all(subscription is not None and subscription.synced for subscription in subscriptions)

    def snapshots(self, hook: state.Hook) -> binding_contexts.Snapshots:
        """Return the snapshots of all kubernetes bindings of a hook."""
        return _Snapshots(hook, self).named(binding.name for binding in hook.config.kubernetes)


class RunContexts:
    """The contexts of one run; all of them see the same snapshots, which are taken when this is made.

    The contexts themselves are made whenever they are iterated over: there may be many, and that is done
    where it does not hold up the event loop.
    """

    def __init__(self, hook: state.Hook, run_for: Iterable[Trigger], objects: FollowedObjects) -> None:
        self._triggers = tuple(run_for)
        self._make: Callable[[Trigger], binding_contexts.Context] = lambda trigger: trigger.legacy_context()
        if hook.config.version != hook_config.LEGACY_VERSION:
            contexts = _TriggerContexts(_Snapshots(hook, objects))
            # Many triggers have few bindings, and an identity is looked up faster than an equal one.
            for trigger in {id(trigger.binding): trigger for trigger in self._triggers}.values():
                contexts.look_at(trigger)
            self._make = contexts.context

    def __iter__(self) -> Iterator[binding_contexts.Context]:
        return iter(binding_contexts.collapse_groups(map(self._make, self._triggers)))


def may_join(triggers: Sequence[Trigger], other: Trigger) -> bool:
    """Say whether one run can have both: Synchronizations run only with their like."""
    return _company(triggers[0]) == _company(other)


def joined(triggers: list[Trigger], other: Trigger) -> None:
    """Add ``other`` to the triggers of a run that waits.

    A tick that waits already is not added twice. Of one group only the last trigger counts.
    """
    if isinstance(other, Tick) and other in triggers:
        return
    last, group = triggers[-1], other.binding.group
    is_plain = not isinstance(last, Synchronization) and not isinstance(other, Synchronization)
    if is_plain and group is not None and last.binding.group == group:
        triggers.pop()
    triggers.append(other)


def _company(trigger: Trigger) -> tuple[bool, bool, bool]:
    if isinstance(trigger, Synchronization):
        return (True, trigger.is_awaited, trigger.reacts)
    return (False, False, True)


class _Snapshots:
    """Takes each snapshot once."""

    def __init__(self, hook: state.Hook, objects: FollowedObjects) -> None:
        self._hook = hook
        self._objects = objects
        self._taken: dict[bindings.KubernetesBinding, binding_contexts.Entries] = {}

    def named(self, names: Iterable[str]) -> binding_contexts.Snapshots:
        by_name: Mapping[str, list[binding_contexts.Entries]] = {name: [] for name in dict.fromkeys(names)}
        for binding in self._hook.config.kubernetes:
            if binding.name in by_name:
                by_name[binding.name].append(self.of(binding))
        return {name: _together(lists) for name, lists in by_name.items()}

    def of(self, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:
        if binding not in self._taken:
            self._taken[binding] = self._objects.entries(self._hook, binding)
        return self._taken[binding]


class _TriggerContexts:
    """What the contexts of each binding show of the cluster."""

    def __init__(self, snapshots: _Snapshots) -> None:
        self._taken = snapshots
        self._seen: dict[int, Seen] = {}

    def look_at(self, trigger: Trigger) -> None:
        binding = trigger.binding
        names = binding.include_snapshots_from
        own = self._taken.of(trigger.binding) if isinstance(trigger, Synchronization) else ()
        self._seen[id(binding)] = Seen(self._taken.named(names) if names else None, own)

    def context(self, trigger: Trigger) -> binding_contexts.Context:
        binding = trigger.binding
        seen = self._seen[id(binding)]
        if binding.group is not None:
            return binding_contexts.group(binding.name, binding.group, seen.snapshots)
        return trigger.context(seen)


def _together(lists: Sequence[binding_contexts.Entries]) -> binding_contexts.Entries:
    """Return the objects of bindings that share a name."""
    if len(lists) == 1:
        return lists[0]
    return [entry for entries in lists for entry in entries]
