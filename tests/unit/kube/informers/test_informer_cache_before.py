"""What a change tells of the object before it: over batches, lists and a lost watch."""

from collections.abc import Sequence

import orjson
from typing_extensions import override

from addon_operator.documents import json_documents
from addon_operator.kube.informers import informer_cache, object_changes, projections, wire


class Listener(informer_cache.CacheListener):
    def __init__(self) -> None:
        self.changes: list[object_changes.Change] = []

    @override
    def cache_synced(self, cache: informer_cache.InformerCache) -> None: ...

    @override
    def cache_changed(
        self, cache: informer_cache.InformerCache, changes: Sequence[object_changes.Change]
    ) -> None:
        self.changes += changes

    @override
    def cache_troubled(self) -> None: ...

    @override
    def path_not_served(self, cache: informer_cache.InformerCache) -> None: ...

    @property
    def told(self) -> list[tuple[str, str | None]]:
        """What happened, and the text of the object before it."""
        return [(change.type.value, text_of(change.before)) for change in self.changes]


def text_of(kept: bytes | None) -> str | None:
    return None if kept is None else orjson.loads(json_documents.unpack(kept))["object"]["text"]


def event(text: str, version: int, *, uid: str = "1", deleted: bool = False) -> wire.ObjectEvent:
    data = orjson.dumps({"metadata": {"name": "a", "resourceVersion": str(version)}, "text": text})
    return wire.ObjectEvent(deleted, ("n", "a"), uid, str(version), data)


async def synced(*events: wire.ObjectEvent) -> tuple[informer_cache.InformerCache, Listener]:
    cache, listener = informer_cache.InformerCache(projections.FullObject(), "things"), Listener()
    cache.listeners.append(listener)
    await relist(cache, *events)
    return cache, listener


async def relist(cache: informer_cache.InformerCache, *events: wire.ObjectEvent) -> None:
    cache.begin_list()
    cache.take(await cache.prepare(events))
    await cache.end_list()


async def test_each_of_several_changes_has_the_one_before_it() -> None:
    cache, listener = await synced(event("one", 1))
    cache.take(await cache.prepare([event("two", 2), event("two", 3), event("three", 4)]))
    cache.take(await cache.prepare([event("three", 5, deleted=True), event("new", 6, uid="2")]))
    assert listener.told == [
        ("Modified", "one"),
        ("Modified", "two"),
        ("Deleted", None),
        ("Added", None),
    ]


async def test_a_list_after_a_lost_watch_tells_the_last_state_that_was_seen() -> None:
    cache, listener = await synced(event("one", 1))
    await relist(cache, event("five", 5))
    await relist(cache, event("five", 5))
    assert listener.told == [("Modified", "one")]


async def test_an_object_that_was_made_anew_meanwhile_has_none_before_it() -> None:
    cache, listener = await synced(event("one", 1))
    await relist(cache, event("two", 5, uid="2"))
    assert listener.told == [("Deleted", None), ("Added", None)]
