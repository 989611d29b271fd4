"""Fixtures of all tests: an API server in memory, a client of it, a clock, a log, and an operator.

A plugin: unit tests and benchmarks use them.
"""

import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from addon_operator.kube.client import client
from tests.support import api_server, clocks, logs

if TYPE_CHECKING:
    from tests.support import engine


@pytest.fixture
def server() -> Iterator[api_server.ApiServer]:
    """An API server in memory; the test fails if it was asked for what it does not know."""
    made = api_server.ApiServer()
    yield made
    assert made.not_known == []


@pytest.fixture
def pauses() -> clocks.Pauses:
    """A clock that only sleeping moves."""
    return clocks.Pauses()


@pytest.fixture
def kube(server: api_server.ApiServer, pauses: clocks.Pauses) -> client.KubeClient:
    """A client of the API server."""
    return api_server.client_of(server, pauses)


@pytest.fixture
def log() -> logs.Lines:
    """A log that remembers its lines."""
    return logs.Lines()


@pytest.fixture
async def op(tmp_path: pathlib.Path) -> AsyncIterator["engine.Operator"]:
    """An operator in memory, to be started by the test; it is ended after it."""
    # Most tests need none of what an operator is made of.
    from tests.support import engine

    made = engine.Operator(tmp_path)
    yield made
    await made.stop()
    assert made.server.not_known == []
