"""A touched configuration is noticed at once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from typing_extensions import override

from addon_operator.admission.registration import registration_specs as specs
from addon_operator.admission.registration import upkeep
from addon_operator.kube.client import client
from tests.support import api_server

CONFIGURATION = specs.WebhookConfiguration(specs.ConfigurationKind.VALIDATING, "addon-operator", ())


class EndOfTestError(Exception):
    """Ends the watch."""


class Server:
    """Answers watches one after the other: a status, or lines."""

    def __init__(self) -> None:
        self.answers: list[int | list[bytes]] = []
        self.asked: list[str] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            return web.Response(status=answer)
        response = web.StreamResponse()
        await response.prepare(request)
        for line in answer:
            await response.write(line)
        return response


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


class Run:
    def __init__(self) -> None:
        self.changes = 0
        self.tokens = 0
        self.pauses: list[float] = []


class Changes(asyncio.Event):
    """Counts how often it is set."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    @override
    def set(self) -> None:
        self._run.changes += 1


class Pausing(api_server.Pauses):
    """Ends the test when the server has no answers left."""

    def __init__(self, run: Run, server: Server) -> None:
        super().__init__()
        self._run = run
        self._server = server

    @override
    async def sleep(self, seconds: float) -> None:
        self._run.pauses.append(seconds)
        await asyncio.sleep(0)
        if not self._server.answers:
            raise EndOfTestError


async def watch(server: Server, *answers: int | list[bytes]) -> Run:
    run = Run()
    server.answers = list(answers)
    tokens = api_server.Tokens(server.url)

    async with client.KubeClient(api_server.access_to(server.url, tokens)) as kube:
        with pytest.raises(EndOfTestError):
            await upkeep.watch(
                kube, CONFIGURATION.collection, CONFIGURATION.name, Changes(run), Pausing(run, server)
            )
    run.tokens = tokens.loaded
    return run


async def test_each_state_of_the_watch_is_reported_and_its_beginning(server: Server) -> None:
    run = await watch(server, [b'{"type": "ADDED"}\n'], [b'{"type": "MODIFIED"}\n'])
    assert run.changes == 2 + 2
    assert server.asked[0] == (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        "?watch=1&fieldSelector=metadata.name%3Daddon-operator&timeoutSeconds=270"
    )


async def test_a_removal_between_two_watches_is_looked_for(server: Server) -> None:
    assert (await watch(server, [], [])).changes == 2


async def test_a_watch_that_ends_is_begun_again_soon(server: Server) -> None:
    assert (await watch(server, [], [], [])).pauses == [1.0, 1.0, 1.0]


async def test_failures_make_the_pauses_longer(server: Server) -> None:
    run = await watch(server, 500, 500, 429, [], 500)
    assert run.pauses == [2.0, 4.0, 8.0, 1.0, 2.0]
    assert run.changes == 1


async def test_without_the_right_it_asks_seldom(server: Server) -> None:
    assert (await watch(server, 403)).pauses == [300.0]


async def test_refused_credentials_are_read_anew(server: Server) -> None:
    assert (await watch(server, 401, [])).tokens == 2
