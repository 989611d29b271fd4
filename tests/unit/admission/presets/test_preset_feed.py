"""Keeping the cache of presets filled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from addon_operator.admission.presets import preset_cache, preset_feed
from addon_operator.kube.client import client
from tests.fakes.api_server import Answer, ApiServer, Asked, Pauses, status
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
        self.cache = preset_cache.PresetCache(Seen())
        self.watch = Watch()
        self.listed = asyncio.Event()
        self.feed = preset_feed.PresetFeed(kube, self.cache, self.watch, pauses.sleep)

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
    world.answer(status(404, "NotFound"), status(404, "NotFound"), Answer(listing()))
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


async def test_without_the_definition_there_are_no_presets_until_it_is_back(world: World) -> None:
    world.answer(Answer(listing(preset())), status(404, "NotFound"), Answer(listing(preset("again"))))
    async with world.running():
        await world.until(lambda: bool(world.watch.calls))
        world.feed.interrupted(1000.0)
        await world.until(lambda: world.names == ["again"])
        await world.until(lambda: world.watch.calls == ["start", "stop", "start"])
