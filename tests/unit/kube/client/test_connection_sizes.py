"""Answers that may have only so many bytes."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import test_utils, web

from addon_operator.kernel import clock
from addon_operator.kube import api_errors
from addon_operator.kube.access import credentials
from addon_operator.kube.client import connection
from tests.support import api_server

CHUNK = b"x" * 65536


class Endless:
    """Answers with 1 GiB, in pieces."""

    def __init__(self) -> None:
        self.sent = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range((1 << 30) // len(CHUNK)):
            await response.write(CHUNK)
            self.sent += len(CHUNK)
        return response


@pytest.fixture
async def endless() -> AsyncIterator[tuple[Endless, str]]:
    handler, app = Endless(), web.Application()
    app.router.add_get("/{path:.*}", handler.answer)
    async with test_utils.TestServer(app, host="127.0.0.1") as server:
        yield handler, str(server.make_url("")).rstrip("/")


async def test_an_answer_beyond_its_bound_is_left(endless: tuple[Endless, str]) -> None:
    handler, url = endless
    opened = connection.Connection(api_server.access_to(url), clock.SystemClock())
    try:
        await opened.current()
        asked = connection.Request("GET", "/api/v1/events", most_bytes=1 << 20)
        with pytest.raises(api_errors.BrokenAnswer, match="GET /api/v1/events is larger than 1 MiB"):
            await opened.send(asked, credentials.Credentials(url))
    finally:
        await opened.close()
    assert handler.sent < 64 << 20
