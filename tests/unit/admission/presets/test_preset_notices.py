"""Presets that were created or deleted a moment ago, before the watch has told of it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from addon_operator.admission.presets import preset_cache, preset_notices
from addon_operator.kube.client import client
from tests.support import clocks
from tests.support.api_server import Answer, ApiServer, Asked, status
from tests.unit.admission.objects import IN_SHOP, LABELS, Gate, Object, Seen, listing, preset, review


@pytest.fixture
def cache() -> preset_cache.PresetCache:
    return preset_cache.PresetCache(Seen())


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def lists(kube: client.KubeClient, cache: preset_cache.PresetCache) -> preset_notices.FreshLists:
    return preset_notices.FreshLists(kube, cache)


@pytest.fixture
async def notices(
    cache: preset_cache.PresetCache, lists: preset_notices.FreshLists, gate: Gate
) -> AsyncIterator[preset_notices.PresetNotices]:
    made = preset_notices.PresetNotices(cache, lists, gate.sleep)
    yield made
    await made.close()


async def names(notices: preset_notices.PresetNotices) -> list[str]:
    return [each.name for each in await notices.match("shop", LABELS)]


async def test_a_pod_is_served_from_memory_when_nothing_is_under_way(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer
) -> None:
    cache.put(preset())
    assert await names(notices) == ["p"]
    assert server.asked == []


async def test_a_preset_is_seen_before_the_watch_tells_of_it(
    notices: preset_notices.PresetNotices, server: ApiServer
) -> None:
    server.on("GET", IN_SHOP, listing(preset()))
    assert (await notices.decide(review(preset()))).allowed
    assert await names(notices) == ["p"]


async def test_once_the_watch_has_reported_it_memory_suffices(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer
) -> None:
    await notices.decide(review(preset()))
    cache.put(preset())
    assert await names(notices) == ["p"]
    assert server.asked == []


async def test_another_preset_of_the_same_name_does_not_count(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer
) -> None:
    server.on("GET", IN_SHOP, listing(preset(version=7, uid="second", env=[{"name": "B", "value": "2"}])))
    cache.put(preset(version=1, uid="first"))
    await notices.decide(review(preset(uid="second")))
    (found,) = await notices.match("shop", LABELS)
    assert found.resource_version == "7"


async def test_a_deleted_preset_is_not_applied_before_the_watch_tells_of_it(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer
) -> None:
    server.on("GET", IN_SHOP, listing())
    cache.put(preset())
    await notices.decide(review(None, operation="DELETE", old=preset()))
    assert await names(notices) == []


@pytest.mark.parametrize(
    ("object_", "operation", "dry_run"),
    [(preset(), "CREATE", True), (preset(), "UPDATE", False), (None, "CREATE", False), ({}, "CREATE", False)],
    ids=["dry run", "update", "nothing", "no uid"],
)
async def test_what_changes_no_preset_is_not_a_notice(
    notices: preset_notices.PresetNotices,
    server: ApiServer,
    object_: Object | None,
    operation: str,
    dry_run: bool,
) -> None:
    assert (await notices.decide(review(object_, operation=operation, dry_run=dry_run))).allowed
    await names(notices)
    assert server.asked == []


async def test_a_notice_is_settled_with_a_list_after_its_time(
    notices: preset_notices.PresetNotices,
    cache: preset_cache.PresetCache,
    server: ApiServer,
    gate: Gate,
    lists: preset_notices.FreshLists,
) -> None:
    refused = preset("refused")
    cache.put(preset("other"))
    server.on("GET", IN_SHOP, listing(preset("other")))
    await notices.decide(review(refused))
    await clocks.settle()
    assert gate.asked == [preset_notices.SECONDS]
    gate.open()
    await lists.of("shop")
    await clocks.settle()
    count = len(server.asked)
    assert await names(notices) == ["other"]
    assert len(server.asked) == count


async def test_a_pod_is_served_from_memory_when_the_list_fails(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer
) -> None:
    server.on("GET", IN_SHOP, status(403, "Forbidden"))
    cache.put(preset("known"))
    await notices.decide(review(preset("new")))
    assert await names(notices) == ["known"]


async def test_pods_that_wait_together_share_a_list_that_began_after_they_came(
    lists: preset_notices.FreshLists, server: ApiServer
) -> None:
    late: list[asyncio.Future[object]] = []

    def first(_: Asked) -> Answer:
        # The answer to the first list is made here: those who come now need another one.
        late.extend(asyncio.ensure_future(lists.of("shop")) for _ in range(5))
        return Answer(listing())

    server.on("GET", IN_SHOP, first, listing())
    await asyncio.gather(lists.of("shop"), lists.of("shop"))
    await asyncio.gather(*late)
    assert server.requests == [f"GET {IN_SHOP}"] * 2


async def test_a_list_that_failed_does_not_spoil_the_next(
    lists: preset_notices.FreshLists, server: ApiServer
) -> None:
    server.on("GET", IN_SHOP, status(403, "Forbidden"), listing(preset()))
    server.on("GET", IN_SHOP.replace("/shop/", "/other/"), status(403, "Forbidden"))
    first, second = await asyncio.gather(lists.of("shop"), lists.of("other"), return_exceptions=True)
    assert isinstance(first, Exception)
    assert isinstance(second, Exception)
    assert (await lists.of("shop")).uids == {"p"}


async def test_until_the_watch_has_reported_a_stored_preset_pods_get_a_fresh_list(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer, gate: Gate
) -> None:
    server.on("GET", IN_SHOP, listing(preset()))
    await notices.decide(review(preset()))
    await clocks.settle()
    assert [await names(notices), await names(notices)] == [["p"], ["p"]]
    asked = len(server.asked)
    assert asked == 2
    cache.put(preset())
    gate.open()
    assert await names(notices) == ["p"]
    assert len(server.asked) == asked


async def test_a_namespace_that_cannot_be_one_leaves_nothing_behind(
    notices: preset_notices.PresetNotices, cache: preset_cache.PresetCache, server: ApiServer, gate: Gate
) -> None:
    await notices.decide(review(preset(namespace="."), namespace="."))
    gate.open()
    await clocks.settle()
    asked = len(server.asked)
    await notices.match(".", {})
    assert len(server.asked) == asked


async def test_more_changes_than_can_be_waited_for_are_left_to_the_watch(
    notices: preset_notices.PresetNotices, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preset_notices, "PENDING_MAX", 5)
    for number in range(5):
        await notices.decide(review(preset(uid=str(number)), namespace="other"))
    await notices.decide(review(preset()))
    assert await names(notices) == []
    assert server.asked == []
