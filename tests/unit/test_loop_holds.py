"""What the walk over foreign content finds the longest holds of the loop with."""

import asyncio
import os
import pathlib
import re
import time

import pytest

from tests.integration import loop_holds

BUSY = 4
"""So many processes for each processor keep who looks from looking in time."""


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def search_long(times: int = 1) -> None:
    """Hold the interpreter's lock twice for so many quarters of a second, as no bytecode runs meanwhile.

    Where it is looked at is what follows: after the second time that may be anything.
    """
    for _ in range(2):
        re.fullmatch("(a+)+b", "a" * (22 + times.bit_length()))


async def burns_on_the_loop() -> None:
    burn(0.1)


async def found_in(work: "asyncio.Future[None]", path: pathlib.Path) -> list[loop_holds.Hold]:
    await work
    await asyncio.sleep(0.02)
    return [hold for hold in loop_holds.read(path) if hold.kind != "gc"]


async def test_a_long_piece_on_the_loop_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "holds"
    with loop_holds.Watch(path).watching():
        (hold,) = await found_in(asyncio.ensure_future(burns_on_the_loop()), path)
    assert (hold.kind, "burns_on_the_loop" in hold.who) == ("piece", True)
    assert hold.seconds >= 0.1


async def long_holds(path: pathlib.Path, times: int) -> list[loop_holds.Hold]:
    with loop_holds.Watch(path).watching():
        found = await found_in(asyncio.ensure_future(asyncio.to_thread(search_long, times)), path)
    return [each for each in found if each.seconds > 0.1]


@pytest.mark.slow
async def test_a_thread_that_keeps_the_interpreter_is_named(tmp_path: pathlib.Path) -> None:
    holds: list[loop_holds.Hold] = []
    for times in (1, 2, 4, 8, 16):
        # On a busy machine, who looks waits for a processor as well, and that counts as a pause.
        holds = holds or await long_holds(tmp_path / str(times), times)
    if not holds and os.getloadavg()[0] > BUSY * len(os.sched_getaffinity(0)):
        pytest.skip("who looks got no processor while the lock was held")
    assert {hold.kind for hold in holds} == {"lock"}
    assert any(hold.frames[-1].endswith((" fullmatch", " search_long")) for hold in holds)


def test_what_is_too_long_only_once_may_be_the_machine_unless_it_is_far_too_long() -> None:
    def held(seconds: float, who: str = "task 1", *frames: str) -> loop_holds.Hold:
        return loop_holds.Hold("piece", seconds, who, list(frames))

    once, again, other = held(0.03, "task 1"), held(0.05, "task 2"), held(0.03, "task 3", "a.py:1 f")
    assert loop_holds.too_long([once, other], 1) == []
    assert loop_holds.too_long([once, again, other], 1) == [once, again]
    assert loop_holds.too_long([once, again], 3) == []
    assert loop_holds.too_long([far := held(0.1)], 1) == [far]
