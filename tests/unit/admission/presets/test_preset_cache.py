"""Presets in memory, followed by an informer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from addon_operator.admission.presets import preset_cache
from addon_operator.podpreset import model
from tests.support import api_server, watches
from tests.unit.admission.objects import LABELS, Object, Seen, preset
from tests.unit.kube import informing


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def cache(seen: Seen) -> preset_cache.PresetCache:
    return preset_cache.PresetCache(seen)


@pytest.fixture
def server() -> api_server.ApiServer:
    return api_server.ApiServer()


def stored(name: str = "p", **fields: object) -> Object:
    return {"apiVersion": model.API_VERSION, "kind": model.KIND, **preset(name, **fields)}  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def followed(server: api_server.ApiServer, cache: preset_cache.PresetCache) -> AsyncIterator[None]:
    """Follow the presets of the server until the block ends."""
    pauses = informing.Yielding()
    async with api_server.client_of(server, pauses) as kube:
        followed_by = watches.shared(kube, pauses)
        following = asyncio.create_task(cache.follow(followed_by))
        yield
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await followed_by.ended()


async def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens in the same loop."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - the code under test has nothing to wait for
            await asyncio.sleep(0.001)


def reason(cache: preset_cache.PresetCache) -> str:
    return cache.unready_reason or ""


def found(cache: preset_cache.PresetCache, namespace: str = "shop") -> list[str]:
    return [each.name for each in cache.match(namespace, LABELS)]


async def test_presets_are_listed_before_pods_are_admitted_and_followed_then(
    server: api_server.ApiServer, cache: preset_cache.PresetCache, seen: Seen
) -> None:
    assert reason(cache) == "the watch of PodPresets has not come up yet"
    server.put(stored("a"))
    async with followed(server, cache):
        await cache.wait_filled()
        assert (found(cache), reason(cache)) == (["a"], "")
        server.put(stored("b"))
        server.delete(model.KIND, "a", "shop")
        await until(lambda: found(cache) == ["b"])
    assert seen.gone == ["shop/a"]
    assert cache.health.is_up


async def test_a_deletion_that_no_watch_reported_is_seen_all_the_same(
    server: api_server.ApiServer, cache: preset_cache.PresetCache, seen: Seen
) -> None:
    server.put(stored("a"))
    server.put(stored("b"))
    async with followed(server, cache):
        await cache.wait_filled()
        await until(lambda: bool(server.streams))
        server.pause()
        server.delete(model.KIND, "a", "shop")
        server.compact()
        server.resume()
        server.cut()
        await until(lambda: found(cache) == ["b"])
    assert seen.gone == ["shop/a"]


@pytest.mark.parametrize("watch_only", [True, False], ids=["watch", "list"])
async def test_without_the_right_to_follow_presets_pods_are_not_admitted_and_it_is_said_why(
    server: api_server.ApiServer,
    cache: preset_cache.PresetCache,
    caplog: pytest.LogCaptureFixture,
    watch_only: bool,
) -> None:
    server.refuse(403, lambda asked: "podpresets" in asked.path and (asked.is_watch or not watch_only), 9999)
    async with followed(server, cache):
        await until(lambda: "ClusterRole" in reason(cache))
        await until(lambda: cache.filled or not watch_only)
        assert "ClusterRole" in reason(cache)
        server.accept()
        await until(lambda: reason(cache) == "")
        assert cache.health.is_up
    assert "podpresets" in caplog.text


async def test_a_kind_that_is_not_served_yet_is_waited_for_in_silence(
    server: api_server.ApiServer, cache: preset_cache.PresetCache, caplog: pytest.LogCaptureFixture
) -> None:
    server.stop_serving(model.KIND)
    async with followed(server, cache):
        await until(lambda: "no kind 'PodPreset'" in reason(cache))
        server.serve(model.KIND, model.API_VERSION, plural=model.PLURAL)
        await cache.wait_filled()
    assert caplog.text == ""


async def test_many_presets_are_read_while_others_have_their_turns(
    server: api_server.ApiServer, cache: preset_cache.PresetCache, seen: Seen
) -> None:
    number = 10 * preset_cache.AT_ONCE
    for each in range(number):
        server.put(stored(f"p{each}"))
    turns: set[int] = set()

    async def others() -> None:
        while not cache.filled:
            turns.add(len(seen.stored))
            await asyncio.sleep(0)

    async with followed(server, cache):
        await others()
    assert len(turns) >= number / preset_cache.AT_ONCE
    assert len(found(cache)) == number


def test_presets_are_found_in_their_namespace_alone(cache: preset_cache.PresetCache) -> None:
    cache.put(preset("a"))
    cache.put(preset("b", namespace="other"))
    assert found(cache) == ["a"]


def test_an_invalid_preset_is_ignored_and_reported(cache: preset_cache.PresetCache, seen: Seen) -> None:
    cache.put(preset(version=1))
    cache.put(preset(version=2, selector={}))
    assert found(cache) == []
    assert seen.stored == [("p", model.Preset), ("p", model.InvalidPreset)]


def test_a_known_preset_is_not_reported_again(cache: preset_cache.PresetCache, seen: Seen) -> None:
    cache.put(preset(version=4))
    cache.put(preset(version=4))
    assert len(seen.stored) == 1


def test_a_preset_being_deleted_is_no_longer_held(cache: preset_cache.PresetCache) -> None:
    cache.put(preset(version=1))
    assert cache.holds("p")
    cache.put(preset(version=2, metadata={"deletionTimestamp": "2026-01-02T00:00:00Z"}))
    assert not cache.holds("p")
    assert found(cache) == []


def test_only_the_uid_of_today_is_held(cache: preset_cache.PresetCache) -> None:
    for version, uid in enumerate(("first", "second"), 1):
        cache.put(preset(version=version, uid=uid))
    assert [cache.holds(uid) for uid in ("first", "second")] == [False, True]


def test_a_preset_with_a_type_of_volume_that_is_not_allowed_is_invalid(seen: Seen) -> None:
    cache = preset_cache.PresetCache(seen, ["emptyDir"])
    mount = {"name": "v", "mountPath": "/v"}
    cache.put(preset("host", volumes=[{"name": "v", "hostPath": {"path": "/"}}], volumeMounts=[mount]))
    cache.put(preset("empty", volumes=[{"name": "v"}], volumeMounts=[mount]))
    assert found(cache) == ["empty"]
    assert seen.stored == [("host", model.InvalidPreset), ("empty", model.Preset)]
