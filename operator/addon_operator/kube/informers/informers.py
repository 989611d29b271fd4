"""Informers: follow objects of the API, each subscription with the watches that its selection needs."""

import asyncio
import itertools
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from addon_operator.aio import waiting
from addon_operator.documents import json_documents
from addon_operator.kube import api_errors
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, discovery, served_apis
from addon_operator.kube.informers import (
    informer_cache,
    object_changes,
    object_selections,
    projections,
    reflector,
    shared_watches,
)

NAMESPACES: Final = object_selections.ObjectSelection("Namespace", "v1", metadata_only=True)
_API_SERVICES: Final = object_selections.ObjectSelection(
    served_apis.API_SERVICE.kind, served_apis.API_SERVICE.api_version, metadata_only=True
)

_log = logging.getLogger(__name__)

Place = tuple[str | None, str | None]
"""Namespace and name that one watch is limited to."""
_OWN_GROUP: Final = "addon-operator"
"""The first word of the group whose versions only the operator's own upgrade changes."""


class Informers(shared_watches.SharedWatches):
    """Follows objects of the API for many subscribers with as few watches as possible."""

    def __init__(
        self,
        kube: client.KubeClient,
        catalog: discovery.Catalog,
        time: waiting.Time,
        failed: reflector.OnFailure,
        tuning: reflector.Tuning | None = None,
    ) -> None:
        """``failed`` is called for each list or watch that fails."""
        super().__init__(kube, catalog, time, failed, tuning or reflector.Tuning())
        self._subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()
        self._versions: Subscription | None = None

    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.ObjectListener,
    ) -> "Subscription":
        """Follow the objects; the listener is called from now on, but never before this returns.

        A kind that the API server does not have is not an error: its objects are followed once it is there.
        """
        subscription = Subscription(selection, projection, listener, self)
        self._subscriptions.add(subscription)
        return subscription

    def attach(
        self,
        path: object_selections.WatchPath,
        projection: projections.Projection,
        listener: informer_cache.CacheListener,
    ) -> informer_cache.InformerCache:
        """See :class:`.SharedWatches`."""
        group, dot, _ = path.resource.api_version.partition(".")
        if self._versions is None and dot and group != _OWN_GROUP:
            self._versions = self.subscribe(_API_SERVICES, projections.Presence(), _ServedVersions(self))
        return super().attach(path, projection, listener)

    async def close(self) -> None:
        """End all subscriptions and watches; no listener is called any more."""
        for subscription in tuple(self._subscriptions):
            subscription.close()
        await self.ended()


class Subscription(informer_cache.CacheListener):
    """A listener's hold on the objects; what it returns is the state of this moment."""

    def __init__(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.ObjectListener,
        watches: shared_watches.SharedWatches,
    ) -> None:
        self._selection = selection.canonical
        self._projection = projection
        self._listener = listener
        self._watches = watches
        self._resource: api_resources.Resource | None = None
        self._lookup: asyncio.Task[None] | None = None
        self._lookup_trouble: str | None = None
        self._namespaces = _SelectedNamespaces(self, watches)
        self._parts: dict[Place, informer_cache.InformerCache] = {}
        self._joined: set[informer_cache.InformerCache] = set()
        self._successors: dict[Place, informer_cache.InformerCache] = {}
        self._reported_reason: str | None = None
        self._closed = False
        self.synced = False
        """Whether the snapshot is complete, and the listener knows."""
        asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Look the kind up and begin to watch."""
        if self._closed:
            return
        known = self._watches.known(self._selection.kind, self._selection.api_version)
        if known is not None and self._problem(known) is None:
            self._open(known)
        else:
            self._lookup = asyncio.create_task(self._look_up(), name=f"look up {self._selection.kind}")

    @property
    def reason(self) -> str | None:
        """Why objects cannot be followed just now, as a sentence; ``None`` when all is well."""
        reasons = (cache.reason for cache in self._parts.values())
        return self._lookup_trouble or self._namespaces.reason or next(filter(None, reasons), None)

    @property
    def is_kind_known(self) -> bool:
        """Whether the API server has the kind, as far as is known."""
        return self._resource is not None

    def snapshot(self) -> list[bytes]:
        """Return the entries of all objects, sorted by namespace and name.

        Entries that are kept compressed are unpacked here, 25 microseconds each for a Pod: with thousands of
        whole objects :meth:`lazy_snapshot` leaves that to when each is read.
        """
        return [json_documents.unpack(entry) for _, entry in self._rows()]

    def lazy_snapshot(self) -> Sequence[bytes]:
        """Return the same as an immutable sequence that unpacks entries when read; safe in a thread."""
        return json_documents.LazyEntries([entry for _, entry in self._rows()])

    def entry(self, key: object_changes.ObjectKey) -> bytes | None:
        """Return the entry of one object; ``None`` if it is not there, as far as is known."""
        found = (cache.entry(key) for cache in self._shown())
        kept = next((each for each in found if each is not None), None)
        return None if kept is None else json_documents.unpack(kept)

    @property
    def size(self) -> int:
        """Bytes of all entries as JSON."""
        return sum(cache.size for cache in self._shown())

    @property
    def count(self) -> int:
        """How many objects are there."""
        return sum(cache.count for cache in self._shown())

    def keys(self) -> list[object_changes.ObjectKey]:
        """Return the objects that are there, sorted by namespace and name."""
        return [object_changes.ObjectKey(*key) for key, _ in self._rows()]

    def close(self) -> None:
        """Let go of the objects: the listener is not called any more, and unneeded watches end."""
        if self._closed:
            return
        self._closed = True
        # Nothing is known any more, which is something else than that there is nothing.
        self.synced = False
        if self._lookup is not None:
            self._lookup.cancel()
        self._namespaces.close()
        for place in tuple(self._parts):
            self._give_up_successor(place)
            self._watches.detach(self._parts.pop(place), self)

    def cache_synced(self, cache: informer_cache.InformerCache) -> None:
        """See :class:`.CacheListener`."""
        if (place := self._succeeded_by(cache)) is not None:
            self._succeed(place)
        elif self.synced:
            self._join(cache)
        else:
            self.check_complete()

    def cache_changed(
        self, cache: informer_cache.InformerCache, changes: Sequence[object_changes.Change]
    ) -> None:
        """See :class:`.CacheListener`."""
        if cache in self._joined:
            self._report(changes)

    def cache_troubled(self) -> None:
        """See :class:`.CacheListener`."""
        if self._resource is not None and all(cache.reason is None for cache in self._parts.values()):
            self._lookup_trouble = None
        self.check_trouble()

    def path_not_served(self, cache: informer_cache.InformerCache) -> None:
        """See :class:`.CacheListener`: find out whether the kind is gone, or served in another version."""
        is_current = cache in self._parts.values() or self._succeeded_by(cache) is not None
        if self._resource is not None and is_current and (self._lookup is None or self._lookup.done()):
            self._watches.doubt()
            self._lookup = asyncio.create_task(
                self._look_again(self._resource), name=f"look {self._selection.kind} up again"
            )

    async def _look_again(self, known: api_resources.Resource) -> None:
        try:
            resource = await self._find()
        except discovery.NoSuchKind as error:
            if error.of_the_group:
                # The objects are there: nothing is told of them until they can be read again.
                self._fail_lookup(str(error))
                return
            self._watches.forget(known)
            self._resource = None
            for place in tuple(self._parts):
                self._leave(place)
            await self._look_up()
        except api_errors.KubernetesError:
            # An outage, in which everything stays; the watch goes on trying, and has this called again.
            return
        else:
            if _path_of(resource) != _path_of(known):
                self._watches.forget(known)
                self._move(resource)

    async def _find(self) -> api_resources.Resource:
        """Look the kind up; of metadata every version tells the same.

        Raises what the catalog raises.
        """
        try:
            return await self._watches.find(self._selection.kind, self._selection.api_version)
        except discovery.NoSuchKind as error:
            if not (self._selection.metadata_only and error.of_the_group):
                raise
            return await self._watches.find(self._selection.kind, error.of_the_group[0])

    def _move(self, resource: api_resources.Resource) -> None:
        """Follow the same objects at another path; what is known stays until they were listed there."""
        self._resource, self._lookup_trouble = resource, None
        for place in tuple(self._parts):
            self._give_up_successor(place)
            successor = self._watches.attach(self._path(resource, place), self._projection, self)
            self._successors[place] = successor
            if successor.synced or not self._parts[place].synced:
                self._succeed(place)

    def _succeeded_by(self, cache: informer_cache.InformerCache) -> Place | None:
        return next((place for place, each in self._successors.items() if each is cache), None)

    def _give_up_successor(self, place: Place) -> None:
        if (successor := self._successors.pop(place, None)) is not None:
            self._watches.detach(successor, self)

    def _succeed(self, place: Place) -> None:
        before, now = self._parts[place], self._successors.pop(place)
        self._parts[place] = now
        was_joined = before in self._joined
        self._joined.discard(before)
        changes = now.changes_since(before.objects) if was_joined else []
        if was_joined:
            self._joined.add(now)
        self._watches.detach(before, self)
        self._report(changes)
        self.check_complete()
        self.check_trouble()

    def follow_namespaces(self) -> None:
        """Watch exactly the places that the selection now stands for."""
        if self._resource is None or self._closed:
            return
        wanted = self._places()
        for place in sorted(self._parts.keys() - wanted, key=str):
            self._leave(place)
        for place in sorted(wanted - self._parts.keys(), key=str):
            self._enter(self._resource, place)
        self.check_complete()
        self.check_trouble()

    def check_complete(self) -> None:
        """Call the listener, a turn of the event loop later, when the first snapshot is complete."""
        if not self.synced and self._is_complete():
            asyncio.get_running_loop().call_soon(self._report_synced)

    def check_trouble(self) -> None:
        """Call the listener when the trouble has changed."""
        reason = self.reason
        if reason != self._reported_reason and not self._closed:
            self._reported_reason = reason
            self._call(lambda: self._listener.trouble(reason))

    async def _look_up(self) -> None:
        failures = 0
        while True:
            failures += 1
            tuning = self._watches.tuning
            try:
                resource = await self._find()
            except discovery.NoSuchKind as error:
                problem, pause = str(error), tuning.kind_poll
            except api_errors.KubernetesError as error:
                problem = str(error)
                pause = tuning.backoff.after(failures, self._watches.time.jitter() / 2)
            else:
                found = self._problem(resource)
                if found is None:
                    self._open(resource)
                    return
                problem, pause = found, tuning.backoff.longest
            self._fail_lookup(problem)
            await self._watches.time.sleep(pause)

    def _problem(self, resource: api_resources.Resource) -> str | None:
        """Say why the selection cannot be followed although the kind is there."""
        if resource.verbs and not {"list", "watch"} <= resource.verbs:
            return f"objects of kind {resource.kind} of {resource.api_version} cannot be watched"
        wants_namespaces = self._selection.namespaces or self._selection.namespace_labels is not None
        if wants_namespaces and not resource.namespaced:
            return f"a {resource.kind} is in no namespace; remove the selection of namespaces"
        return None

    def _fail_lookup(self, problem: str) -> None:
        if problem != self._lookup_trouble:
            self._watches.failed(self._selection.kind, "no_such_kind")
        self._lookup_trouble = problem
        self.check_trouble()

    def _open(self, resource: api_resources.Resource) -> None:
        self._resource = resource
        self._lookup_trouble = None
        if self._selection.namespace_labels is not None:
            self._namespaces.open(self._selection.namespace_labels)
        self.follow_namespaces()

    def _places(self) -> set[Place]:
        named = self._selection.namespaces
        if self._selection.namespace_labels is not None:
            spaces: set[str | None] = {*(named or ()), *self._namespaces.names}
        else:
            spaces = {None} if named is None else {*named}
        return set(itertools.product(spaces, self._selection.names or (None,)))

    def _enter(self, resource: api_resources.Resource, place: Place) -> None:
        cache = self._parts[place] = self._watches.attach(self._path(resource, place), self._projection, self)
        if self.synced and cache.synced:
            self._join(cache)

    def _path(self, resource: api_resources.Resource, place: Place) -> object_selections.WatchPath:
        return object_selections.WatchPath(
            resource,
            *place,
            self._selection.label_selector,
            self._selection.field_selector,
            self._selection.metadata_only,
        )

    def _leave(self, place: Place) -> None:
        self._give_up_successor(place)
        cache = self._parts.pop(place)
        was_joined = cache in self._joined
        self._joined.discard(cache)
        changes = cache.deletions() if was_joined else []
        self._watches.detach(cache, self)
        self._report(changes)

    def _join(self, cache: informer_cache.InformerCache) -> None:
        if cache not in self._joined:
            self._joined.add(cache)
            self._report(cache.additions())

    def _is_complete(self) -> bool:
        parts = self._parts.values()
        return (
            self._resource is not None and self._namespaces.is_complete and all(part.synced for part in parts)
        )

    def _report_synced(self) -> None:
        if self.synced or self._closed or not self._is_complete():
            return
        self.synced = True
        self._joined = set(self._parts.values())
        self._call(self._listener.synced)

    def _report(self, changes: Sequence[object_changes.Change]) -> None:
        if changes and not self._closed:
            self._call(lambda: self._listener.changed(changes))

    @staticmethod
    def _call(tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception:  # noqa: BLE001 - a mistake of one listener must not keep news from the others
            _log.exception("a listener failed")

    def _shown(self) -> list[informer_cache.InformerCache]:
        return [cache for cache in self._parts.values() if not self.synced or cache in self._joined]

    def _rows(self) -> Iterator[tuple[informer_cache.Key, bytes]]:
        shown = self._shown()
        if len(shown) == 1:
            return shown[0].rows()
        return iter(sorted(itertools.chain.from_iterable(cache.rows() for cache in shown)))


class _ServedVersions(object_changes.ObjectListener):
    """Breaks off watches of versions that are served no longer.

    The API server ends such a stream up to a minute later, and nothing comes on it until then.
    """

    def __init__(self, watches: shared_watches.SharedWatches) -> None:
        self._watches = watches

    def synced(self) -> None:
        """See :class:`.ObjectListener`."""

    def changed(self, changes: Sequence[object_changes.Change]) -> None:
        """See :class:`.ObjectListener`."""
        gone = {each.key.name for each in changes if each.type is object_changes.ChangeType.DELETED}
        self._watches.break_off(lambda version: served_apis.api_service_of(version) in gone)

    def trouble(self, reason: str | None) -> None:
        """See :class:`.ObjectListener`: without it, such a stream ends when the API server ends it."""


def _path_of(resource: api_resources.Resource) -> tuple[str, str, bool]:
    """Return what makes two resources the same, whatever else discovery says of them."""
    return resource.api_version, resource.plural, resource.namespaced


class _SelectedNamespaces(object_changes.ObjectListener):
    """Follows the namespaces with certain labels for a subscription."""

    def __init__(self, owner: Subscription, watches: shared_watches.SharedWatches) -> None:
        self._owner = owner
        self._watches = watches
        self._subscription: Subscription | None = None
        self.names: set[str] = set()

    @property
    def is_complete(self) -> bool:
        return self._subscription is None or self._subscription.synced

    @property
    def reason(self) -> str | None:
        return None if self._subscription is None else self._subscription.reason

    def open(self, labels: str) -> None:
        if self._subscription is None:
            selection = object_selections.ObjectSelection(
                NAMESPACES.kind, NAMESPACES.api_version, label_selector=labels, metadata_only=True
            )
            self._subscription = Subscription(selection, projections.Presence(), self, self._watches)

    def close(self) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def synced(self) -> None:
        self._read_names()

    def changed(self, changes: Sequence[object_changes.Change]) -> None:  # noqa: ARG002 - the keys tell all
        self._read_names()

    def trouble(self, reason: str | None) -> None:  # noqa: ARG002 - the owner asks for it
        self._owner.check_trouble()

    def _read_names(self) -> None:
        if self._subscription is not None:
            keys = self._subscription.keys()
            self.names = {key.name for key in keys}
            self._owner.follow_namespaces()
