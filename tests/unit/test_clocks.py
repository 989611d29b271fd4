"""The clock of tests: who wakes when it is moved, and when everything has come to rest."""

import asyncio
import pathlib
import re
import threading
from typing import Final

import pytest

from addon_operator.aio import waiting
from tests.support import clocks


async def test_who_sleeps_wakes_when_the_time_has_come_and_not_before() -> None:
    clock, woken = clocks.Clock(), list[str]()

    async def sleep(seconds: float) -> None:
        await waiting.wait_until(asyncio.Event(), clock.now + seconds, clock)
        woken.append(f"{seconds} s at {clock.now}")

    sleepers = [asyncio.create_task(sleep(seconds)) for seconds in (60.0, 30.0)]
    await clocks.settle()
    await clock.advance(29.0)
    assert woken == []
    await clock.advance(1.0)
    assert woken == ["30.0 s at 130.0"]
    await clock.advance(30.0)
    assert woken[1:] == ["60.0 s at 160.0"]
    await asyncio.gather(*sleepers)


async def test_all_that_follows_from_each_other_is_done_before_it_rests() -> None:
    steps: list[int] = []

    async def go_on() -> None:
        for step in range(200):
            await asyncio.sleep(0)
            steps.append(step)

    walking = asyncio.create_task(go_on())
    await clocks.settle()
    assert (len(steps), walking.done()) == (200, True)


async def test_a_thread_that_works_is_waited_for_with_what_follows_from_it() -> None:
    order: list[str] = []
    goes_on = threading.Event()

    async def work() -> None:
        await asyncio.to_thread(goes_on.wait)
        order.append("worked")

    working = asyncio.create_task(work())
    threading.Timer(0.01, goes_on.set).start()
    await clocks.settle()
    order.append("rests")
    assert order == ["worked", "rests"]
    await working


async def test_what_never_rests_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "_PATIENCE", 0.01)

    async def turn() -> None:
        while True:  # noqa: ASYNC110 - it waits for nothing
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    with pytest.raises(AssertionError, match="it never comes to rest"):
        await clocks.settle()
    turning.cancel()


PATIENCE: Final = 30
"""Seconds that a busy machine may take at least for what has to come."""
WAITS: Final = re.compile(r"\b(?:timeout|wait_for|ends_within|thread\.join)\((?:.*, )?([1-9]\d*)\)")
"""Calls that wait for whole seconds: what is to be late is waited for for a part of one."""


def impatient(file: pathlib.Path) -> list[str]:
    """Return the lines of a file that wait for less."""
    lines = enumerate(file.read_text("utf-8").splitlines(), start=1)
    return [
        f"{file}:{number}"
        for number, line in lines
        if any(int(seconds) < PATIENCE for seconds in WAITS.findall(line))
    ]


def test_what_has_to_come_is_waited_for_on_a_busy_machine_too(tmp_path: pathlib.Path) -> None:
    hasty = tmp_path / "test_hasty.py"
    calls = (
        "asyncio.timeout(0.{})",
        "asyncio.timeout(6{})",
        "asyncio.wait_for(a(b, c), {})",
        "thread.join({})",
    )
    hasty.write_text("\n".join(call.format(5) for call in calls))
    assert impatient(hasty) == [f"{hasty}:3", f"{hasty}:4"]
    tests = pathlib.Path(__file__).parents[1]
    files = [file for room in ("fakes", "unit") for file in (tests / room).rglob("*.py")]
    assert [place for file in files for place in impatient(file)] == [], f"wait for {PATIENCE} s or more"
