"""Pipes that the event loop empties, whatever is written into them."""

import asyncio
import collections
import os

import pytest

from addon_operator.process.children import output
from tests.support import clocks


class SlowHandler:
    """Takes a millisecond of its own clock for each line, and notes the turn of the event loop."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.turns: list[int] = []
        self.turn = 0
        self.now = 0.0

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.turns.append(self.turn)
        self.now += 0.001

    def seconds(self) -> float:
        return self.now

    async def count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


@pytest.fixture
def handler() -> SlowHandler:
    return SlowHandler()


def pipe_of(handler: SlowHandler) -> output.DrainedPipe:
    return output.DrainedPipe([output.Lines(handler)], handler.seconds)


async def test_many_lines_are_taken_a_few_at_a_time_and_others_get_their_turn(handler: SlowHandler) -> None:
    written = [str(number) for number in range(500)]
    counting = asyncio.create_task(handler.count_turns())
    with pipe_of(handler) as pipe:
        os.write(pipe.write_end, "".join(f"{line}\n" for line in written).encode())
        pipe.close_write_end()
        await pipe.ended()
    counting.cancel()
    assert handler.lines == written
    assert max(collections.Counter(handler.turns).values()) <= 16


async def test_a_long_line_is_one_however_it_is_cut_up(handler: SlowHandler) -> None:
    with pipe_of(handler) as pipe:
        os.write(pipe.write_end, b"x" * 9_000 + b"\n" + b"y" * 9_000)
        pipe.close_write_end()
        await pipe.ended()
    assert handler.lines == ["x" * 9_000, "y" * 9_000]


async def test_what_is_in_the_pipe_is_taken_whole_when_it_is_finished_though_somebody_holds_it_open(
    handler: SlowHandler,
) -> None:
    with pipe_of(handler) as pipe:
        held_open = os.dup(pipe.write_end)
        pipe.close_write_end()
        os.write(held_open, b"1\n" * 100)
        await clocks.settle()
        os.write(held_open, b"2\n" * 100)
        await pipe.finish()
        assert handler.lines == ["1"] * 100 + ["2"] * 100
        with pytest.raises(BrokenPipeError):
            os.write(held_open, b"3")
        os.close(held_open)


async def test_closing_takes_only_what_takes_no_time(handler: SlowHandler) -> None:
    with pipe_of(handler) as pipe:
        os.write(pipe.write_end, b"1\n" * 1000)
    assert 50 <= len(handler.lines) < 100
