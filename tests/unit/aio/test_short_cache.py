"""The short memory of what was read."""

import asyncio

import pytest

from addon_operator.aio import short_cache
from tests.support import clocks
from tests.support.api_server import Pauses


class Loader:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def load(self, key: str) -> str:
        self.asked.append(key)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return f"{key}{len(self.asked)}"


@pytest.fixture
def loader() -> Loader:
    return Loader()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def cache(loader: Loader, pauses: Pauses) -> short_cache.ShortCache[str, str]:
    return short_cache.ShortCache(loader.load, pauses, 2.0, keep=lambda value: not value.startswith("no"))


async def test_those_who_ask_at_the_same_time_share_one_answer(
    cache: short_cache.ShortCache[str, str], loader: Loader
) -> None:
    asking = [asyncio.create_task(cache.get("a")) for _ in range(3)]
    loader.gate.set()
    assert await asyncio.gather(*asking) == ["a1"] * 3


@pytest.mark.parametrize(("later", "reads"), [(1.9, 1), (2.0, 2)])
async def test_an_answer_holds_for_its_time(
    cache: short_cache.ShortCache[str, str], loader: Loader, pauses: Pauses, later: float, reads: int
) -> None:
    loader.gate.set()
    await cache.get("a")
    pauses.now += later
    await cache.get("a")
    assert loader.asked == ["a"] * reads


async def test_an_answer_that_is_not_to_be_kept_is_asked_for_again(
    cache: short_cache.ShortCache[str, str], loader: Loader
) -> None:
    loader.gate.set()
    assert [await cache.get("no"), await cache.get("no")] == ["no1", "no2"]


async def test_whoever_gives_up_does_not_take_the_answer_from_the_others(
    cache: short_cache.ShortCache[str, str], loader: Loader
) -> None:
    impatient, patient = asyncio.create_task(cache.get("a")), asyncio.create_task(cache.get("a"))
    await clocks.settle()
    impatient.cancel()
    loader.gate.set()
    assert await patient == "a1"
    assert impatient.cancelled()


async def test_an_error_reaches_all_who_wait_and_is_not_kept(
    cache: short_cache.ShortCache[str, str], loader: Loader
) -> None:
    loader.error = ValueError("broken")
    loader.gate.set()
    results = await asyncio.gather(cache.get("a"), cache.get("a"), return_exceptions=True)
    assert [str(result) for result in results] == ["broken", "broken"]
    loader.error = None
    assert await cache.get("a") == "a2"


async def test_no_more_than_so_many_answers_are_kept(
    cache: short_cache.ShortCache[str, str], loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_cache, "ENTRIES_MAX", 5)
    loader.gate.set()
    for number in range(short_cache.ENTRIES_MAX + 1):
        await cache.get(f"k{number}")
    count = len(loader.asked)
    await cache.get("k1")
    assert len(loader.asked) == count
    await cache.get("k0")
    assert len(loader.asked) == count + 1


async def test_answers_weigh_no_more_together_than_they_may(
    loader: Loader, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_cache, "WEIGHT_MAX", 6)
    cache: short_cache.ShortCache[str, str] = short_cache.ShortCache(loader.load, pauses, 2.0, weight=len)
    loader.gate.set()
    for key in ("a", "b", "c", "d", "long key", "d"):
        await cache.get(key)
    assert loader.asked == ["a", "b", "c", "d", "long key", "d"]
    await cache.get("d")
    assert len(loader.asked) == 6


async def test_an_answer_that_nobody_waits_for_any_more_is_given_up(
    cache: short_cache.ShortCache[str, str], loader: Loader
) -> None:
    asking = [asyncio.create_task(cache.get("a")) for _ in range(2)]
    await clocks.settle()
    for each in asking:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert cache.running == 0
    loader.gate.set()
    assert await cache.get("a") == "a2"
