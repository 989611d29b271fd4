"""A listener's hold on a selection: the watches that make it up, and what the listener knows of them."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from addon_operator.documents import packed_entries
from addon_operator.kube.client import api_errors
from addon_operator.kube.discovery import api_resources, discovery
from addon_operator.kube.informers import (
    feed_paths,
    informer_cache,
    object_changes,
    object_selections,
    projections,
    reflector,
)

NAMESPACES: Final = object_selections.ObjectSelection("Namespace", "v1", metadata_only=True)

_log = logging.getLogger(__name__)

Place = tuple[str | None, str | None]
"""Namespace and name that one watch is limited to."""


class Feeds(Protocol):
    """The watches of all subscriptions; see :class:`.Informers`."""

    def known(self, kind: str, api_version: str | None) -> api_resources.Resource | None:
        """The resource, if it was found before."""
        ...

    async def find(self, kind: str, api_version: str | None) -> api_resources.Resource:
        """Ask for the resource; raises what discovery raises."""
        ...

    def forget(self, resource: api_resources.Resource) -> None:
        """The API server does not have it any more."""
        ...

    def attach(
        self, path: feed_paths.FeedPath, projection: projections.Projection, member: informer_cache.Member
    ) -> informer_cache.View:
        """The view of that projection on that path, shared with everyone who asks for the same."""
        ...

    def detach(self, view: informer_cache.View, member: informer_cache.Member) -> None:
        """The member does not need the view any more."""
        ...

    def subscribe(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.Listener,
    ) -> object_changes.Subscription:
        """A further subscription, to namespaces."""
        ...


class ObjectSubscription:
    """Implements :class:`.Subscription` and that of a view's member."""

    def __init__(
        self,
        selection: object_selections.ObjectSelection,
        projection: projections.Projection,
        listener: object_changes.Listener,
        feeds: Feeds,
        around: reflector.Surroundings,
        on_close: Callable[["ObjectSubscription"], None],
    ) -> None:
        self._selection = selection.canonical
        self._projection = projection
        self._listener = listener
        self._feeds = feeds
        self._around = around
        self._on_close = on_close
        self._resource: api_resources.Resource | None = None
        self._lookup: asyncio.Task[None] | None = None
        self._lookup_trouble: str | None = None
        self._namespaces = _NamespaceListener(self)
        self._parts: dict[Place, informer_cache.View] = {}
        self._joined: set[informer_cache.View] = set()
        self._told_reason: str | None = None
        self._closed = False
        self.synced = False
        """Whether the listener was told that the snapshot is complete."""

    def start(self) -> None:
        """Look the kind up and begin to watch."""
        if self._closed:
            return
        known = self._feeds.known(self._selection.kind, self._selection.api_version)
        if known is not None and self._problem(known) is None:
            self._open(known)
        else:
            self._lookup = asyncio.create_task(self._look_up(), name=f"look up {self._selection.kind}")

    @property
    def reason(self) -> str | None:
        """Why objects cannot be followed just now, as a sentence; ``None`` when all is well."""
        reasons = (view.reason for view in self._parts.values())
        return self._lookup_trouble or self._namespaces.reason or next(filter(None, reasons), None)

    @property
    def is_kind_known(self) -> bool:
        """Whether the API server has the kind, as far as is known."""
        return self._resource is not None

    def snapshot(self) -> list[bytes]:
        """Entries of all objects, sorted by namespace and name."""
        return [packed_entries.unpack(entry) for _, entry in self._rows()]

    def lazy_snapshot(self) -> Sequence[bytes]:
        """The same as an immutable sequence that unpacks an entry when it is read; safe in a thread."""
        return packed_entries.LazyEntries([entry for _, entry in self._rows()])

    @property
    def size(self) -> int:
        """Bytes of all entries as JSON."""
        return sum(view.size for view in self._shown())

    def keys(self) -> list[object_changes.ObjectKey]:
        """The objects that are there, sorted by namespace and name."""
        return [object_changes.ObjectKey(*key) for key, _ in self._rows()]

    def close(self) -> None:
        """Let go of the objects: nothing is told any more."""
        if self._closed:
            return
        self._closed = True
        if self._lookup is not None:
            self._lookup.cancel()
        self._namespaces.close()
        for place in tuple(self._parts):
            self._feeds.detach(self._parts.pop(place), self)
        self._on_close(self)

    def view_synced(self, view: informer_cache.View) -> None:
        """See :class:`.Member`."""
        if self.synced:
            self._join(view)
        else:
            self.check_complete()

    def view_changed(self, view: informer_cache.View, changes: Sequence[object_changes.Change]) -> None:
        """See :class:`.Member`."""
        if view in self._joined:
            self._tell(changes)

    def view_trouble(self, view: informer_cache.View) -> None:  # noqa: ARG002 - the reason is that of all parts
        """See :class:`.Member`."""
        self.check_trouble()

    def view_gone(self, view: informer_cache.View) -> None:
        """See :class:`.Member`: begin with looking the kind up."""
        if self._resource is None or view not in self._parts.values():
            return
        self._feeds.forget(self._resource)
        self._resource = None
        for place in tuple(self._parts):
            self._leave(place)
        self._lookup = asyncio.create_task(self._look_up(), name=f"look up {self._selection.kind}")

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
        """Tell the listener, a turn of the event loop later, when the first snapshot is complete."""
        if not self.synced and self._is_complete():
            asyncio.get_running_loop().call_soon(self._tell_synced)

    def check_trouble(self) -> None:
        """Tell the listener when the trouble has changed."""
        reason = self.reason
        if reason != self._told_reason and not self._closed:
            self._told_reason = reason
            self._call(lambda: self._listener.trouble(reason))

    async def _look_up(self) -> None:
        failures = 0
        while True:
            failures += 1
            tuning = self._around.tuning
            try:
                resource = await self._feeds.find(self._selection.kind, self._selection.api_version)
            except discovery.NoSuchKind as error:
                problem, pause = str(error), tuning.kind_poll
            except api_errors.KubernetesError as error:
                problem = str(error)
                pause = tuning.backoff.after(failures, self._around.jitter() / 2)
            else:
                found = self._problem(resource)
                if found is None:
                    self._open(resource)
                    return
                problem, pause = found, tuning.backoff.longest
            self._fail_lookup(problem)
            await self._around.sleep(pause)

    def _problem(self, resource: api_resources.Resource) -> str | None:
        """Why the selection cannot be followed although the kind is there."""
        if resource.verbs and not {"list", "watch"} <= resource.verbs:
            return f"objects of kind {resource.kind} of {resource.api_version} cannot be watched"
        wants_namespaces = self._selection.namespaces or self._selection.namespace_labels is not None
        if wants_namespaces and not resource.namespaced:
            return f"a {resource.kind} is in no namespace; remove the selection of namespaces"
        return None

    def _fail_lookup(self, problem: str) -> None:
        if problem != self._lookup_trouble:
            self._around.observer.watch_failed(self._selection.kind, "no_such_kind")
        self._lookup_trouble = problem
        self.check_trouble()

    def _open(self, resource: api_resources.Resource) -> None:
        self._resource = resource
        self._lookup_trouble = None
        if self._selection.namespace_labels is not None:
            self._namespaces.open(self._feeds, self._selection.namespace_labels)
        self.follow_namespaces()

    def _places(self) -> set[Place]:
        named = self._selection.namespaces
        if self._selection.namespace_labels is not None:
            spaces: set[str | None] = {*(named or ()), *self._namespaces.names}
        else:
            spaces = {None} if named is None else {*named}
        return set(itertools.product(spaces, self._selection.names or (None,)))

    def _enter(self, resource: api_resources.Resource, place: Place) -> None:
        path = feed_paths.FeedPath(
            resource,
            *place,
            self._selection.label_selector,
            self._selection.field_selector,
            self._selection.metadata_only,
        )
        view = self._parts[place] = self._feeds.attach(path, self._projection, self)
        if self.synced and view.synced:
            self._join(view)

    def _leave(self, place: Place) -> None:
        view = self._parts.pop(place)
        known = view in self._joined
        self._joined.discard(view)
        changes = view.deletions() if known else []
        self._feeds.detach(view, self)
        self._tell(changes)

    def _join(self, view: informer_cache.View) -> None:
        if view not in self._joined:
            self._joined.add(view)
            self._tell(view.additions())

    def _is_complete(self) -> bool:
        parts = self._parts.values()
        return (
            self._resource is not None and self._namespaces.is_complete and all(part.synced for part in parts)
        )

    def _tell_synced(self) -> None:
        if self.synced or self._closed or not self._is_complete():
            return
        self.synced = True
        self._joined = set(self._parts.values())
        self._call(self._listener.synced)

    def _tell(self, changes: Sequence[object_changes.Change]) -> None:
        if changes and not self._closed:
            self._call(lambda: self._listener.changed(changes))

    @staticmethod
    def _call(tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception:  # noqa: BLE001 - a mistake of one listener must not keep news from the others
            _log.exception("a listener failed")

    def _shown(self) -> list[informer_cache.View]:
        return [view for view in self._parts.values() if not self.synced or view in self._joined]

    def _rows(self) -> Iterator[tuple[informer_cache.Key, bytes]]:
        shown = self._shown()
        if len(shown) == 1:
            return shown[0].rows()
        return iter(sorted(itertools.chain.from_iterable(view.rows() for view in shown)))


class _NamespaceListener:
    """Follows the namespaces with certain labels for a subscription."""

    def __init__(self, owner: ObjectSubscription) -> None:
        self._owner = owner
        self._subscription: object_changes.Subscription | None = None
        self.names: set[str] = set()

    @property
    def is_complete(self) -> bool:
        return self._subscription is None or self._subscription.synced

    @property
    def reason(self) -> str | None:
        return None if self._subscription is None else self._subscription.reason

    def open(self, feeds: Feeds, labels: str) -> None:
        if self._subscription is None:
            selection = object_selections.ObjectSelection(
                NAMESPACES.kind, NAMESPACES.api_version, label_selector=labels, metadata_only=True
            )
            self._subscription = feeds.subscribe(selection, projections.Presence(), self)

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
