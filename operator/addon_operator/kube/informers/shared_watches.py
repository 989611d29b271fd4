"""The watches behind all subscriptions: one for each distinct path, however many ask for it.

There is one cache for each projection of a path's objects; when its last listener goes, it ends, and with the
last cache of a path its watch.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from addon_operator.aio import waiting
from addon_operator.kube.client import client
from addon_operator.kube.discovery import api_resources, discovery
from addon_operator.kube.informers import informer_cache, object_selections, projections, reflector

_DOUBT_SECONDS: Final = 0.5
"""Between two looks at the kinds, however many watches find that theirs is not there."""

_log = logging.getLogger(__name__)


class _Running(NamedTuple):
    reflector: reflector.Reflector
    task: asyncio.Task[None]


class SharedWatches:
    """All watches of an operator; to be used in one event loop."""

    def __init__(
        self,
        kube: client.KubeClient,
        catalog: discovery.Catalog,
        time: waiting.Time,
        failed: reflector.OnFailure,
        tuning: reflector.Tuning,
    ) -> None:
        self.time = time
        self.failed = failed
        self.tuning = tuning
        self._kube = kube
        self._catalog = catalog
        self._running: dict[tuple[object, ...], _Running] = {}
        self._homes: dict[informer_cache.InformerCache, tuple[object, ...]] = {}
        self._resources: dict[tuple[str, str | None], api_resources.Resource] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._crashed: set[reflector.Reflector] = set()
        self._doubted = float("-inf")

    @property
    def alive(self) -> bool:
        """Whether every watch is being worked on; one whose API server does not answer is."""
        return not self._crashed

    @property
    def watches(self) -> list[str]:
        """What is watched, for people."""
        return sorted(str(running.reflector.path) for running in self._running.values())

    async def ended(self) -> None:
        """Wait until the watches that nobody needs any more have ended."""
        await asyncio.gather(*self._ending, return_exceptions=True)
        # Look-ups that were cancelled get their turn to end.
        await asyncio.sleep(0)

    def known(self, kind: str, api_version: str | None) -> api_resources.Resource | None:
        """Return the resource, if it was found before."""
        return self._resources.get((kind, api_version))

    async def find(self, kind: str, api_version: str | None) -> api_resources.Resource:
        """Return the resource of that kind; raises what the catalog raises."""
        resource = await self._catalog.find(kind, api_version)
        self._resources[kind, api_version] = resource
        return resource

    def forget(self, resource: api_resources.Resource) -> None:
        """Note that the API server does not have that kind any more, or not in that version."""
        self._resources = {asked: cached for asked, cached in self._resources.items() if cached != resource}

    def doubt(self) -> None:
        """Have the API server asked again which kinds it has, unless that was done a moment ago."""
        if (now := self.time.monotonic()) - self._doubted >= _DOUBT_SECONDS:
            self._doubted = now
            self._catalog.forget()

    def break_off(self, api_versions: Callable[[str], bool]) -> None:
        """Have the watches of these versions asked for anew, from where they are."""
        for running in self._running.values():
            if api_versions(running.reflector.path.resource.api_version):
                running.reflector.break_off()

    def attach(
        self,
        path: object_selections.WatchPath,
        projection: projections.Projection,
        listener: informer_cache.CacheListener,
    ) -> informer_cache.InformerCache:
        """Return the cache of that projection of that path, shared by everyone who asks for the same."""
        running = self._running.get(path.key) or self._begin(path)
        caches = running.reflector.caches
        cache = next((cache for cache in caches if cache.projection == projection), None)
        if cache is None:
            cache = informer_cache.InformerCache(projection, path.resource.kind)
            running.reflector.add(cache)
            self._homes[cache] = path.key
        cache.listeners.append(listener)
        return cache

    def detach(self, cache: informer_cache.InformerCache, listener: informer_cache.CacheListener) -> None:
        """Remove the listener from the cache; what nobody needs ends."""
        cache.listeners.remove(listener)
        if cache.listeners:
            return
        running = self._running[self._homes.pop(cache)]
        running.reflector.remove(cache)
        if not running.reflector.caches:
            self._end(running)

    def _begin(self, path: object_selections.WatchPath) -> _Running:
        reflected = reflector.Reflector(path, self._kube, self.time, self.failed, self.tuning)
        task = asyncio.create_task(self._keep(reflected), name=f"watch {path}")
        running = self._running[path.key] = _Running(reflected, task)
        return running

    def _end(self, running: _Running) -> None:
        del self._running[running.reflector.path.key]
        self._crashed.discard(running.reflector)
        self._ending.add(running.task)
        running.task.add_done_callback(self._ending.discard)
        running.task.cancel()

    async def _keep(self, reflected: reflector.Reflector) -> None:
        while True:
            try:
                await reflected.run()
            except Exception:  # noqa: BLE001 - a mistake in one watch must not end the others
                _log.exception("the watch of %s broke down and begins again", reflected.path)
            self._crashed.add(reflected)
            self.failed(reflected.path.resource.kind, "crash")
            await self.time.sleep(self.tuning.backoff.longest)
            self._crashed.discard(reflected)
