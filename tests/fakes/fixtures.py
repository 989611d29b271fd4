"""Fixtures of all tests: a fake API server, a client of it, a clock and a log.

A plugin, not a conftest.py: the unit tests are collected in many takes, and all of them find these.
"""

import pytest

from addon_operator.kube.client import client
from tests.fakes import api_server, logs


@pytest.fixture
def server() -> api_server.ApiServer:
    """A fake API server."""
    return api_server.ApiServer()


@pytest.fixture
def pauses() -> api_server.Pauses:
    """A clock that only sleeping moves."""
    return api_server.Pauses()


@pytest.fixture
def kube(server: api_server.ApiServer, pauses: api_server.Pauses) -> client.KubeClient:
    """A client of the fake API server."""
    return api_server.client_of(server, pauses)


@pytest.fixture
def log() -> logs.Lines:
    """A log that remembers its lines."""
    return logs.Lines()
