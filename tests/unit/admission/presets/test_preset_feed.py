"""Keeping the cache of presets filled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from addon_operator.admission.presets import preset_cache, preset_feed
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from tests.support.api_server import NOT_SERVED, Answer, ApiServer, Asked, Pauses, status
from tests.unit.admission.objects import LABELS, PRESETS, Seen, listing, preset


class Watch:
    """Notes when it begins and ends."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        self.calls.append("start")
        try:
            yield
        finally:
            self.calls.append("stop")


class World:
    def __init__(self, kube: client.KubeClient, server: ApiServer, pauses: Pauses) -> None:
        self.server = server
        self.pauses = pauses
        self.serve(is_served=True)
        self.cache = preset_cache.PresetCache(Seen())
        self.watch = Watch()
        self.listed = asyncio.Event()
        kinds = discovery.Catalog(kube, pauses)
        self.feed = preset_feed.PresetFeed(kube, kinds, self.cache, self.watch, pauses.sleep)

    def serve(self, *, is_served: bool) -> None:
        """Have discovery list the kind, or not."""
        resource = {"resource": "podpresets", "responseKind": {"kind": "PodPreset"}, "scope": "Namespaced"}
        group = {
            "metadata": {"name": "settings.k8s.io"},
            "versions": [{"version": "v1alpha1", "resources": [resource]}],
        }
        self.server.on("GET", "/version", {"gitVersion": "v1.36.3"})
        self.server.on("GET", "/api", {"kind": "APIGroupDiscoveryList", "items": []})
        listed = {"kind": "APIGroupDiscoveryList", "items": [group] if is_served else []}
        self.server.on("GET", "/apis", listed)

    def answer(self, *answers: Answer) -> None:
        """Answers to lists; the last one sets :attr:`listed`."""

        def last(_: Asked) -> Answer:
            self.listed.set()
            return answers[-1]

        self.server.on("GET", PRESETS, *answers[:-1], last)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.feed.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def look(self) -> None:
        """Have the feed list, and wait until it has looked for the kind because of what it was answered."""
        asked = self.server.requests.count("GET /apis")
        self.feed.interrupted(1000.0)
        await self.until(lambda: self.server.requests.count("GET /apis") > asked)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.cache.match("shop", LABELS)]

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something that happens in the same loop."""

        async def poll() -> None:
            while not true():  # noqa: ASYNC110 - the code under test has nothing to wait for
                await asyncio.sleep(0.001)

        await asyncio.wait_for(poll(), 60)


@pytest.fixture
async def world(kube: client.KubeClient, server: ApiServer, pauses: Pauses) -> World:
    return World(kube, server, pauses)


async def test_a_list_fills_the_cache_before_the_watch_begins(world: World) -> None:
    world.answer(Answer(listing(preset())))
    at_first = world.feed.unready_reason
    assert at_first == "the PodPresets have not been listed yet"
    async with world.running():
        await world.cache.wait_filled()
        assert world.feed.unready_reason is None
        assert world.names == ["p"]
        await world.until(lambda: world.watch.calls == ["start"])
    assert world.watch.calls == ["start", "stop"]


async def test_a_definition_that_is_not_served_yet_is_waited_for_in_silence(
    world: World, pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    world.answer(NOT_SERVED, NOT_SERVED, Answer(listing()))
    async with world.running():
        await world.cache.wait_filled()
    assert pauses.seconds == [0.5, 1.0]
    assert caplog.text == ""


async def test_what_keeps_presets_from_being_listed_is_reported_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.answer(*[status(403, "Forbidden")] * 9, Answer(listing()))
    async with world.running():
        await world.cache.wait_filled()
    assert caplog.text.count("podpresets") == 1


async def test_a_missing_right_keeps_pods_from_being_admitted_and_is_the_reason(world: World) -> None:
    world.answer(status(403, "Forbidden", "no right"))
    async with world.running():
        await world.until(lambda: "no right" in (world.feed.unready_reason or ""))
        world.answer(Answer(listing()))
        await world.until(lambda: world.feed.unready_reason is None)


async def test_presets_are_listed_anew_when_the_watch_was_interrupted(world: World) -> None:
    world.answer(Answer(listing(preset("a"))), Answer(listing(preset("b"))))
    async with world.running():
        await world.until(lambda: bool(world.watch.calls))
        assert world.names == ["a"]
        world.feed.interrupted(1000.0)
        await world.until(lambda: world.names == ["b"])


async def test_a_list_that_fails_leaves_what_is_known(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.answer(Answer(listing(preset())), status(403, "Forbidden"))
    async with world.running():
        await world.until(lambda: bool(world.watch.calls))
        world.feed.interrupted(1000.0)
        await world.until(lambda: "served from memory" in caplog.text)
    assert world.names == ["p"]


async def test_a_path_that_is_not_served_leaves_what_is_known_until_the_kind_is_gone(world: World) -> None:
    world.answer(Answer(listing(preset())), NOT_SERVED)
    async with world.running():
        await world.until(lambda: world.server.requests.count("GET /apis") == 1)
        for is_served in (True, False):
            world.serve(is_served=is_served)
            for _ in range(2):
                await world.look()
            assert world.names == ["p"]
        world.pauses.now += 10
        world.answer(NOT_SERVED, Answer(listing(preset("again"))))
        world.feed.interrupted(1000.0)
        await world.until(lambda: world.names == ["again"])
        await world.until(lambda: world.watch.calls == ["start", "stop", "start"])
