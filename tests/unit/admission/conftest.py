"""A fake API server and a client of it for each test."""

import pytest

from addon_operator.kube.client import client
from tests.fakes import api_server


@pytest.fixture
def server() -> api_server.ApiServer:
    return api_server.ApiServer()


@pytest.fixture
def pauses() -> api_server.Pauses:
    return api_server.Pauses()


@pytest.fixture
def kube(server: api_server.ApiServer, pauses: api_server.Pauses) -> client.KubeClient:
    return api_server.client_of(server, pauses)
