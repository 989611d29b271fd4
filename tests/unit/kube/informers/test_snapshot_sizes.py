"""How large snapshots are, told without unpacking them."""

import orjson
import pytest

from addon_operator.documents import packed_entries
from addon_operator.kube.informers import informer_cache, projections, watch_lines
from tests.unit.kube import informing


@pytest.mark.parametrize("size", [2, 1023, 1024, 70_000])
def test_the_size_of_an_entry_is_known_whether_or_not_it_is_compressed(size: int) -> None:
    entry = b'"' + b"x" * (size - 2) + b'"'
    kept = packed_entries.pack(entry)
    assert packed_entries.size_of(kept) == size
    assert packed_entries.unpack(kept) == entry


def event(
    name: str, text: str, version: int, *, uid: str = "", deleted: bool = False
) -> watch_lines.ObjectEvent:
    data = orjson.dumps({"metadata": {"name": name}, "text": text})
    return watch_lines.ObjectEvent(deleted, ("n", name), uid or name, str(version), data)


async def take(view: informer_cache.View, *events: watch_lines.ObjectEvent) -> int:
    view.take(await view.prepare(events))
    return view.size


def size_of(view: informer_cache.View) -> int:
    return sum(len(packed_entries.unpack(kept)) for _, kept in view.rows())


async def test_a_view_knows_the_size_of_its_entries_at_any_time() -> None:
    view = informer_cache.View(projections.FullObject(), "things")
    assert view.size == 0
    await take(view, event("a", "short", 1), event("b", "x" * 5000, 2))
    assert view.size == size_of(view) > 5000
    grown = await take(view, event("a", "much longer", 3))
    assert grown == size_of(view)
    again = await take(view, event("a", "of another object", 4, uid="other"))
    assert again == size_of(view)
    assert await take(view, event("b", "x" * 5000, 5, deleted=True)) == size_of(view) < 100
    view.begin_list()
    await view.end_list()
    assert view.size == 0


async def test_a_subscription_has_the_size_of_what_it_shows() -> None:
    async with informing.world() as world:
        for name in ("a", "b"):
            world.server.put(name)
        subscription, _ = await world.synced(projection=informing.jq(".metadata.name"))
        assert subscription.snapshot() == [b'{"filterResult":"a"}', b'{"filterResult":"b"}']
        assert subscription.size == 40
