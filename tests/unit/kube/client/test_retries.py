"""When a request is sent again, and when it may go out."""

import asyncio

import pytest
from typing_extensions import override

from addon_operator.kube.client import retries
from tests.support import rows
from tests.support.api_server import Pauses


@rows.each(
    ("method", "status", "again"),
    [
        ("GET", None, True),
        ("GET", 503, True),
        ("GET", 500, True),
        ("GET", 404, False),
        ("GET", 501, False),
        ("POST", None, False),
        ("POST", 503, False),
        ("PATCH", 429, True),
        ("DELETE", 504, False),
        ("GET", 409, False),
    ],
)
def test_only_what_cannot_have_been_carried_out_goes_again(
    method: str, status: int | None, again: bool
) -> None:
    assert (retries.delay(1, method, status, None, 0.5) is not None) is again


def test_pauses_grow_and_tries_are_bounded() -> None:
    delays = [retries.delay(number, "GET", None, None, 0.5) for number in range(1, 6)]
    assert delays == [pytest.approx(0.2), pytest.approx(0.4), pytest.approx(0.8), pytest.approx(1.6), None]


@rows.each(("jitter", "expected"), [(0.0, 0.1), (1.0, 0.3)])
def test_pauses_are_spread(jitter: float, expected: float) -> None:
    assert retries.delay(1, "GET", None, None, jitter) == pytest.approx(expected)


def test_a_server_cannot_make_us_wait_for_ever() -> None:
    assert retries.delay(1, "GET", 429, 3600, 0.0) == 10


@rows.each(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("-1", None),
        ("Wed, 21 Oct 2026", None),
        ("9" * 400, 999999999.0),
    ],
)
def test_the_header_is_read_as_whole_seconds(header: str | None, seconds: float | None) -> None:
    assert retries.parse_retry_after(header) == seconds


class Standing(Pauses):
    """A clock that stands still while requests wait."""

    @override
    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def waits(limiter: retries.RateLimiter, count: int) -> None:
    await asyncio.gather(*(limiter.wait() for _ in range(count)))


async def test_waiting_requests_each_have_their_place() -> None:
    pauses = Standing()
    await waits(retries.RateLimiter(retries.Rate(10, 2), pauses), 5)
    assert pauses.seconds == [pytest.approx(0.1), pytest.approx(0.2), pytest.approx(0.3)]


async def test_unused_time_gives_no_more_than_the_burst() -> None:
    pauses = Pauses()
    limiter = retries.RateLimiter(retries.Rate(10, 2), pauses)
    pauses.now += 1000
    await waits(limiter, 2)
    assert pauses.seconds == []
    await limiter.wait()
    assert pauses.seconds == [pytest.approx(0.1)]
