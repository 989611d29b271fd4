"""Follows objects of the API for many subscribers with as few watches as possible.

There is one watch for each distinct kind, namespace and selector, and one set of entries for each projection
on it, however many ask for them; when the last one goes, the watch ends.
"""

import asyncio
import dataclasses
import logging
import random
from collections.abc import Callable

from addon_operator.aio import waiting
from addon_operator.kernel import clock
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, discovery
from addon_operator.kube.informers import (
    feed_paths,
    informer_cache,
    projections,
    reflector,
    subscriptions,
)
from addon_operator.kube.informers.object_changes import (
    Change,
    ChangeType,
    Listener,
    ObjectKey,
    Subscription,
)
from addon_operator.kube.informers.object_selections import ObjectSelection
from addon_operator.kube.informers.reflector import Tuning, WatchObserver

__all__ = [
    "Change",
    "ChangeType",
    "Informers",
    "Listener",
    "ObjectKey",
    "ObjectSelection",
    "Subscription",
    "Tuning",
    "WatchObserver",
]

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class _Running:
    feed: reflector.Feed
    task: asyncio.Task[None]


class Informers:
    """All watches of an operator; to be used in one event loop."""

    def __init__(
        self,
        kube: client.KubeClient,
        catalog: discovery.Catalog,
        time: clock.Clock,
        observer: WatchObserver,
        *,
        tuning: Tuning | None = None,
        sleep: waiting.Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._catalog = catalog
        self._around = reflector.Surroundings(kube, time, observer, tuning or Tuning(), sleep, jitter)
        self._running: dict[tuple[object, ...], _Running] = {}
        self._homes: dict[informer_cache.View, tuple[object, ...]] = {}
        self._resources: dict[tuple[str, str | None], api_resources.Resource] = {}
        self._subscriptions: set[subscriptions.ObjectSubscription] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._crashed: set[reflector.Feed] = set()
        self._closed = asyncio.Event()

    @property
    def alive(self) -> bool:
        """Whether every watch is being worked on; one whose API server does not answer is."""
        return not self._crashed

    @property
    def watches(self) -> list[str]:
        """What is watched, for people."""
        return sorted(str(running.feed.path) for running in self._running.values())

    def subscribe(
        self, selection: ObjectSelection, projection: projections.Projection, listener: Listener
    ) -> Subscription:
        """Follow the objects; the listener is called from now on, but never before this returns.

        A kind that the API server does not have is no error: its objects are followed once it is there.
        """
        subscription = subscriptions.ObjectSubscription(
            selection, projection, listener, self, self._around, self._subscriptions.discard
        )
        self._subscriptions.add(subscription)
        asyncio.get_running_loop().call_soon(subscription.start)
        return subscription

    async def work(self) -> None:
        """Return when :meth:`close` was called; watches work from when they are subscribed to."""
        await self._closed.wait()

    async def close(self) -> None:
        """End all subscriptions and watches; no listener is called any more."""
        self._closed.set()
        for subscription in tuple(self._subscriptions):
            subscription.close()
        await asyncio.gather(*self._ending, return_exceptions=True)
        # Look-ups that were cancelled get their turn to end.
        await asyncio.sleep(0)

    def known(self, kind: str, api_version: str | None) -> api_resources.Resource | None:
        """The resource, if it was found before."""
        return self._resources.get((kind, api_version))

    async def find(self, kind: str, api_version: str | None) -> api_resources.Resource:
        """The resource of that kind; raises what the catalog raises."""
        resource = await self._catalog.find(kind, api_version)
        self._resources[kind, api_version] = resource
        return resource

    def forget(self, resource: api_resources.Resource) -> None:
        """The API server does not have that kind any more, or not in that version."""
        self._resources = {asked: found for asked, found in self._resources.items() if found != resource}
        self._catalog.forget()

    def attach(
        self, path: feed_paths.FeedPath, projection: projections.Projection, member: informer_cache.Member
    ) -> informer_cache.View:
        """The view of that projection on that path, shared with everyone who asks for the same."""
        running = self._running.get(path.key) or self._begin(path)
        view = next((view for view in running.feed.views if view.projection == projection), None)
        if view is None:
            view = informer_cache.View(projection, path.resource.kind)
            running.feed.add(view)
            self._homes[view] = path.key
        view.members.append(member)
        return view

    def detach(self, view: informer_cache.View, member: informer_cache.Member) -> None:
        """The member does not need the view any more; what nobody needs ends."""
        view.members.remove(member)
        if view.members:
            return
        running = self._running[self._homes.pop(view)]
        running.feed.remove(view)
        if not running.feed.views:
            self._end(running)

    def _begin(self, path: feed_paths.FeedPath) -> _Running:
        feed = reflector.Feed(path, self._around)
        task = asyncio.create_task(self._keep(feed), name=f"watch {path}")
        running = self._running[path.key] = _Running(feed, task)
        return running

    def _end(self, running: _Running) -> None:
        del self._running[running.feed.path.key]
        self._crashed.discard(running.feed)
        self._ending.add(running.task)
        running.task.add_done_callback(self._ending.discard)
        running.task.cancel()

    async def _keep(self, feed: reflector.Feed) -> None:
        while True:
            try:
                await feed.run()
            except Exception:  # noqa: BLE001 - a mistake in one watch must not end the others
                _log.exception("the watch of %s broke down and begins anew", feed.path)
            self._crashed.add(feed)
            self._around.observer.watch_failed(feed.path.resource.kind, "crash")
            await self._around.sleep(self._around.tuning.backoff.longest)
            self._crashed.discard(feed)
