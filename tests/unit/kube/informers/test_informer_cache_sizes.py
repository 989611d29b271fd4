"""How large snapshots are, told without unpacking them."""

import orjson

from addon_operator.documents import json_documents
from addon_operator.kube.informers import informer_cache, projections, wire
from tests.support import rows
from tests.unit.kube import informing


@rows.each("size", [2, 1023, 1024, 70_000])
def test_the_size_of_an_entry_is_known_whether_or_not_it_is_compressed(size: int) -> None:
    entry = b'"' + b"x" * (size - 2) + b'"'
    kept = json_documents.pack(entry)
    assert json_documents.size_of(kept) == size
    assert json_documents.unpack(kept) == entry


def event(name: str, text: str, version: int, *, uid: str = "", deleted: bool = False) -> wire.ObjectEvent:
    data = orjson.dumps({"metadata": {"name": name}, "text": text})
    return wire.ObjectEvent(deleted, ("n", name), uid or name, str(version), data)


async def take(cache: informer_cache.InformerCache, *events: wire.ObjectEvent) -> int:
    cache.take(await cache.prepare(events))
    return cache.size


def size_of(cache: informer_cache.InformerCache) -> int:
    return sum(len(json_documents.unpack(kept)) for _, kept in cache.rows())


async def test_a_cache_knows_the_size_of_its_entries_at_any_time() -> None:
    cache = informer_cache.InformerCache(projections.FullObject(), "things")
    assert cache.size == 0
    await take(cache, event("a", "short", 1), event("b", "x" * 5000, 2))
    assert cache.size == size_of(cache) > 5000
    grown = await take(cache, event("a", "much longer", 3))
    assert grown == size_of(cache)
    again = await take(cache, event("a", "of another object", 4, uid="other"))
    assert again == size_of(cache)
    assert await take(cache, event("b", "x" * 5000, 5, deleted=True)) == size_of(cache) < 100
    cache.begin_list()
    await cache.end_list()
    assert cache.size == 0


async def test_a_subscription_has_the_size_of_what_it_shows() -> None:
    async with informing.world() as world:
        for name in ("a", "b"):
            world.put(name)
        subscription, _ = await world.synced(projection=informing.jq(".metadata.name"))
        assert subscription.snapshot() == [b'{"filterResult":"a"}', b'{"filterResult":"b"}']
        assert subscription.size == 40
