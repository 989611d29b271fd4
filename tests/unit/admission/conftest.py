"""A fake API server and a client of it for each test."""

from collections.abc import AsyncIterator

import pytest

from addon_operator.kube import client
from tests.fakes import api_server


@pytest.fixture
async def server() -> AsyncIterator[api_server.ApiServer]:
    async with api_server.running() as running:
        yield running


@pytest.fixture
def pauses() -> api_server.Pauses:
    return api_server.Pauses()


@pytest.fixture
async def kube(server: api_server.ApiServer, pauses: api_server.Pauses) -> AsyncIterator[client.KubeClient]:
    async with api_server.client_of(server.url, pauses) as opened:
        yield opened
