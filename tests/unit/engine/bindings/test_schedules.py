"""Ticks at the time of a clock that is moved by hand."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from addon_operator.engine.bindings import schedules
from addon_operator.hook_contract import crontab
from tests.support import clocks

TEN = crontab.every(10.0)


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.schedules = schedules.Schedules(self.clock)
        self.called: list[str] = []

    def add(self, name: str, rhythm: crontab.Crontab = TEN) -> None:
        self.schedules.add(name, rhythm, lambda: self.called.append(name))

    def at(self, seconds: float) -> list[str]:
        """Who ticks so many seconds after the begin."""
        self.clock.now = 100.0 + seconds
        self.schedules.tick()
        found, self.called = self.called, []
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_nothing_ticks_before_the_schedules_are_opened_and_nothing_is_made_up_for(bench: Bench) -> None:
    bench.add("a")
    assert bench.at(25) == []
    bench.schedules.open()
    assert bench.at(34) == []
    assert bench.at(35) == ["a"]


def test_what_is_added_later_begins_then(bench: Bench) -> None:
    bench.schedules.open()
    bench.clock.now = 104.0
    bench.add("a")
    assert bench.at(10) == []
    assert bench.at(14) == ["a"]


def test_a_second_opening_changes_nothing(bench: Bench) -> None:
    bench.schedules.open()
    bench.add("a")
    bench.clock.now = 109.0
    bench.schedules.open()
    assert bench.at(10) == ["a"]


def test_what_was_removed_ticks_no_more(bench: Bench) -> None:
    bench.schedules.open()
    bench.add("a")
    bench.add("b")
    bench.schedules.remove("a")
    assert bench.at(10) == ["b"]


def test_a_clock_that_is_set_back_makes_nothing_tick_twice(bench: Bench) -> None:
    bench.schedules.open()
    bench.add("a")
    assert bench.at(10) == ["a"]
    assert bench.at(5) == []
    assert bench.at(10) == []
    assert bench.at(20) == ["a"]


@pytest.fixture
async def working(bench: Bench) -> AsyncIterator[Bench]:
    task = asyncio.create_task(bench.schedules.work())
    await clocks.settle()
    yield bench
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_work_wakes_for_what_is_added_while_it_sleeps(working: Bench) -> None:
    working.schedules.open()
    await clocks.settle()
    working.add("a")
    await working.clock.advance(10)
    assert working.called == ["a"]


async def test_the_work_sleeps_while_nothing_is_due(working: Bench) -> None:
    working.schedules.open()
    working.add("a")
    await clocks.settle()
    assert working.called == []


@pytest.mark.parametrize("turns", range(4))
async def test_news_at_the_moment_of_the_end_do_not_keep_the_work_going(bench: Bench, turns: int) -> None:
    bench.schedules.open()
    bench.add("a")
    work = asyncio.create_task(bench.schedules.work())
    await clocks.settle()
    bench.add("b")
    for _ in range(turns):
        await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait({work}, timeout=60)
    assert work.cancelled()
