"""Why a hook runs because of a ``schedule`` or ``kubernetes`` binding, and the contexts that follow from it.

Causes wait in queues; contexts are made of them when a try begins, so that each try sees the snapshots of its
own time and still all events that made the task.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from addon_operator.engine import state
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config


@dataclasses.dataclass(frozen=True, slots=True)
class Tick:
    """The time of a schedule binding came."""

    binding: bindings.ScheduleBinding


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An object of a kubernetes binding changed."""

    binding: bindings.KubernetesBinding
    change: bindings.WatchEvent
    entry: binding_contexts.PackedEntry


class SynchronizedBinding(Protocol):
    """A kubernetes binding that is told how its Synchronization run goes."""

    @property
    def binding(self) -> bindings.KubernetesBinding:
        """The binding itself."""
        ...

    def synchronization_begins(self) -> None:
        """The snapshot of the run is taken in this very moment."""
        ...

    def synchronization_ended(self) -> None:
        """The hook has seen the snapshot."""
        ...

    def synchronization_failed(self, error: str) -> None:
        """The run failed; it begins anew later."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Synchronization:
    """A kubernetes binding starts, or its ``resynchronizationPeriod`` is over."""

    bound: SynchronizedBinding
    is_awaited: bool = False
    """Whether the next step of life waits for it."""
    reacts: bool = False
    """Whether values that it changes make the module run: no step of life follows that would use them."""

    @property
    def binding(self) -> bindings.KubernetesBinding:
        """The binding itself."""
        return self.bound.binding


Cause: TypeAlias = Tick | Event | Synchronization


class Objects(Protocol):
    """Where the objects of kubernetes bindings are."""

    def entries(self, hook: state.Hook, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:
        """The objects of a binding now; none as long as it does not follow them."""
        ...


def lifecycle_snapshots(hook: state.Hook, objects: Objects) -> binding_contexts.Snapshots:
    """The snapshots of all kubernetes bindings of a hook."""
    return _Snapshots(hook, objects).named(binding.name for binding in hook.config.kubernetes)


class RunContexts:
    """The contexts of one run; all of them see the same snapshots, which are taken when this is made.

    The contexts themselves are made whenever they are iterated over: there may be many, and that is done
    where it does not hold up the event loop.
    """

    def __init__(self, hook: state.Hook, caused_by: Iterable[Cause], objects: Objects) -> None:
        self._causes = tuple(caused_by)
        self._make = _legacy
        if hook.config.version != hook_config.LEGACY_VERSION:
            seen = _Seen(_Snapshots(hook, objects))
            # Many causes have few bindings, and an identity is looked up faster than an equal one.
            for cause in {id(cause.binding): cause for cause in self._causes}.values():
                seen.look_at(cause)
            self._make = seen.context

    def __iter__(self) -> Iterator[binding_contexts.Context]:
        return iter(binding_contexts.collapse_groups(map(self._make, self._causes)))


def may_join(causes: Sequence[Cause], other: Cause) -> bool:
    """Whether ``other`` can be told in the same run: Synchronizations only with their like."""
    return _company(causes[0]) == _company(other)


def joined(causes: list[Cause], other: Cause) -> None:
    """Add ``other`` to the causes of a run that waits.

    A tick that is told already is not told twice. Of one group only the last cause counts.
    """
    if isinstance(other, Tick) and other in causes:
        return
    last, group = causes[-1], other.binding.group
    is_plain = not isinstance(last, Synchronization) and not isinstance(other, Synchronization)
    if is_plain and group is not None and last.binding.group == group:
        causes.pop()
    causes.append(other)


def _company(cause: Cause) -> tuple[bool, bool, bool]:
    if isinstance(cause, Synchronization):
        return (True, cause.is_awaited, cause.reacts)
    return (False, False, True)


class _Snapshots:
    """Takes each snapshot once."""

    def __init__(self, hook: state.Hook, objects: Objects) -> None:
        self._hook = hook
        self._objects = objects
        self._taken: dict[bindings.KubernetesBinding, binding_contexts.Entries] = {}

    def named(self, names: Iterable[str]) -> binding_contexts.Snapshots:
        found: Mapping[str, list[binding_contexts.Entries]] = {name: [] for name in dict.fromkeys(names)}
        for binding in self._hook.config.kubernetes:
            if binding.name in found:
                found[binding.name].append(self.of(binding))
        return {name: _together(lists) for name, lists in found.items()}

    def of(self, binding: bindings.KubernetesBinding) -> binding_contexts.Entries:
        if binding not in self._taken:
            self._taken[binding] = self._objects.entries(self._hook, binding)
        return self._taken[binding]


class _Seen:
    """What the contexts of each binding show of the cluster."""

    def __init__(self, taken: _Snapshots) -> None:
        self._taken = taken
        self._snapshots: dict[int, binding_contexts.Snapshots | None] = {}
        self._objects: dict[int, binding_contexts.Entries] = {}

    def look_at(self, cause: Cause) -> None:
        binding = cause.binding
        names = binding.include_snapshots_from
        self._snapshots[id(binding)] = self._taken.named(names) if names else None
        if isinstance(cause, Synchronization):
            self._objects[id(binding)] = self._taken.of(cause.binding)

    def context(self, cause: Cause) -> binding_contexts.Context:
        binding, key = cause.binding, id(cause.binding)
        snapshots = self._snapshots[key]
        if binding.group is not None:
            return binding_contexts.group(binding.name, binding.group, snapshots)
        match cause:
            case Tick():
                return binding_contexts.schedule(binding.name, snapshots)
            case Event(change=change, entry=entry):
                return binding_contexts.event(binding.name, change, entry, snapshots)
            case Synchronization():
                return binding_contexts.synchronization(binding.name, self._objects[key], snapshots)


def _together(lists: Sequence[binding_contexts.Entries]) -> binding_contexts.Entries:
    """The objects of bindings that share a name."""
    if len(lists) == 1:
        return lists[0]
    return [entry for entries in lists for entry in entries]


def _legacy(cause: Cause) -> binding_contexts.Context:
    match cause:
        case Event(binding=binding, change=change, entry=entry):
            return binding_contexts.legacy_event(change, binding.name, entry)
        case Tick(binding=tick):
            return binding_contexts.legacy_schedule(tick.name)
        case Synchronization():
            raise AssertionError("a configuration without configVersion has no Synchronization")


Enqueue: TypeAlias = Callable[[state.Hook, Cause], object]
"""Puts a cause into the queue of its binding."""
