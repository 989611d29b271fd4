"""Pauses between tries, and waiting that ends in time."""

import asyncio
import itertools

from addon_operator.aio import waiting


def test_each_pause_is_twice_as_long_until_the_longest() -> None:
    pauses = waiting.Backoff(0.5, 3.0).pauses()
    assert list(itertools.islice(pauses, 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_pause_is_spread_around_its_length() -> None:
    backoff = waiting.Backoff(1.0, 10.0)
    assert [backoff.after(2, jitter) for jitter in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def test_thousands_of_failures_give_the_longest_pause() -> None:
    assert waiting.Backoff(1.0, 10.0).after(100_000) == 10.0


async def test_waiting_ends_with_the_event_or_with_the_time() -> None:
    event = asyncio.Event()
    assert not await waiting.wait_within(event, 0)
    event.set()
    assert await waiting.wait_within(event, 0)
    assert await waiting.wait_within(event, None)


def test_a_pause_may_grow_more_slowly() -> None:
    assert list(itertools.islice(waiting.Backoff(4.0, 10.0, growth=1.5).pauses(), 4)) == [4.0, 6.0, 9.0, 10.0]
