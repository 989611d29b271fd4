"""Places for processes of hooks that answer the API server."""

import asyncio
import contextlib

import pytest

from addon_operator.engine.bindings import process_slots


def asker(name: str) -> process_slots.Asker:
    """Who is called ``binding``, or ``binding/namespace/user``."""
    return process_slots.Asker(*name.split("/"))


class Holder:
    """Holds places until told otherwise."""

    def __init__(self, slots: process_slots.ProcessSlots) -> None:
        self._slots = slots
        self.running: list[str] = []
        self._ends: dict[str, list[asyncio.Event]] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def storm(self, binding: str, count: int) -> None:
        self.tasks += [asyncio.create_task(self._hold(binding)) for _ in range(count)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def end(self, binding: str) -> None:
        self._ends[binding].pop(0).set()
        for _ in range(5):
            await asyncio.sleep(0)

    async def _hold(self, binding: str) -> None:
        async with self._slots.taken(asker(binding)):
            self.running.append(binding)
            end = asyncio.Event()
            self._ends.setdefault(binding, []).append(end)
            await end.wait()
            self.running.remove(binding)


async def test_a_storm_for_one_binding_leaves_places_to_others_and_to_others_again() -> None:
    holder = Holder(process_slots.ProcessSlots(8))
    for binding in ("a", "b", "c", "d"):
        await holder.storm(binding, 100)
    assert sorted(holder.running) == ["a"] * 4 + ["b"] * 2 + ["c", "d"]


async def test_a_place_that_becomes_free_goes_to_who_has_none() -> None:
    holder = Holder(process_slots.ProcessSlots(2))
    await holder.storm("a", 5)
    await holder.storm("b", 5)
    await holder.storm("c", 1)
    assert holder.running == ["a", "b"]
    await holder.end("a")
    assert holder.running == ["b", "c"]


async def test_one_place_is_enough_for_all_one_after_another() -> None:
    holder = Holder(process_slots.ProcessSlots(1))
    await holder.storm("a", 2)
    await holder.storm("b", 1)
    seen = [*holder.running]
    for binding in ("a", "b", "a"):
        await holder.end(binding)
        seen += holder.running
    assert seen == ["a", "b", "a"]


async def test_who_does_not_wait_any_more_takes_no_place() -> None:
    holder = Holder(process_slots.ProcessSlots(1))
    await holder.storm("a", 1)
    await holder.storm("b", 2)
    holder.tasks[1].cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await holder.tasks[1]
    await holder.end("a")
    await holder.end("b")
    await holder.storm("c", 1)
    assert holder.running == ["c"]


async def test_only_so_many_of_one_binding_wait() -> None:
    holder = Holder(process_slots.ProcessSlots(1))
    await holder.storm("a", 1 + process_slots.MOST_WAITING)
    with pytest.raises(process_slots.TooManyWaitingError, match="256 requests wait for it already"):
        async with holder._slots.taken(asker("a")):
            raise AssertionError("nobody comes here")
    await holder.storm("b", 1)
    await holder.end("a")
    assert holder.running == ["b"]


async def test_who_floods_waits_behind_himself() -> None:
    holder = Holder(process_slots.ProcessSlots(1))
    await holder.storm("a/x/floods", 40)
    await holder.storm("a/y/other", 1)
    await holder.storm("a/x/colleague", 2)
    seen = [*holder.running]
    for _ in range(4):
        await holder.end(seen[-1])
        seen += holder.running
    assert seen == ["a/x/floods", "a/y/other", "a/x/colleague", "a/x/floods", "a/x/colleague"]


async def test_where_too_many_wait_the_last_of_who_waits_most_is_sent_away() -> None:
    holder = Holder(process_slots.ProcessSlots(1))
    await holder.storm("a/x/floods", 1 + process_slots.MOST_WAITING)
    await holder.storm("a/y/other", 1)
    assert [str(task.exception()) for task in holder.tasks if task.done()] == [
        "256 requests wait for it already"
    ]
    await holder.storm("a/x/floods", 1)
    assert len([task for task in holder.tasks if task.done()]) == 2
    await holder.end("a/x/floods")
    assert holder.running == ["a/y/other"]
