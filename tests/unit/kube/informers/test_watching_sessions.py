"""What a session tells of the watches of a client that is not ours."""

import asyncio
import contextlib
import dataclasses
import pathlib
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from addon_operator.kube.access import credentials
from addon_operator.kube.informers import watch_health, watching_sessions
from tests.unit.kube import certifying

PATH = "/apis/settings.k8s.io/v1alpha1/podpresets"
FORBIDDEN = {
    "kind": "Status",
    "reason": "Forbidden",
    "message": 'podpresets.settings.k8s.io is forbidden: User "system:serviceaccount:a:b" cannot watch '
    'resource "podpresets" in API group "settings.k8s.io" at the cluster scope',
}


class Server:
    """Answers lists, and watches as :attr:`refuses` says; a watch stands until :attr:`ends`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.refuses = False
        self.ends = asyncio.Event()
        self.authorization = ""
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get(PATH, self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self.ends.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.authorization = request.headers.get("Authorization", "")
        if "watch" not in request.query:
            return web.json_response({"items": []})
        if self.refuses:
            return web.json_response(FORBIDDEN, status=403)
        answer = web.StreamResponse()
        await answer.prepare(request)
        await self.ends.wait()
        return answer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    await made.start()
    yield made
    await made.stop()


def health() -> watch_health.WatchHealth:
    return watch_health.WatchHealth("the watch of PodPresets", grace=0)


@dataclasses.dataclass
class Client:
    session: aiohttp.ClientSession
    url: str
    health: watch_health.WatchHealth

    async def ask(self, **query: str) -> int:
        async with self.session.get(self.url + PATH, params=query) as answer:
            await answer.read()
            return answer.status


@contextlib.asynccontextmanager
async def client_of(url: str, **given: object) -> AsyncIterator[Client]:
    using = credentials.Credentials(server=url, authorization="Bearer t0ken", **given)  # type: ignore[arg-type]
    told = health()
    async with await watching_sessions.open_session(using, lambda _path: told) as session:
        yield Client(session, url, told)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with client_of(f"http://127.0.0.1:{server.port}") as made:
        yield made


async def test_a_watch_stands_when_it_is_answered_and_not_when_its_list_is(
    server: Server, client: Client
) -> None:
    await client.ask()
    after_list = client.health.is_up
    async with client.session.get(client.url + PATH, params={"watch": "true"}):
        assert (after_list, client.health.is_up) == (False, True)
    assert server.authorization == "Bearer t0ken"


async def test_a_refused_watch_is_reported_with_the_rule_to_add(server: Server, client: Client) -> None:
    server.refuses = True
    assert await client.ask(watch="true") == 403
    told = client.health.trouble or ""
    assert told.startswith("the watch of PodPresets has not come up: system:serviceaccount:a:b may not watch")
    assert 'apiGroups: ["settings.k8s.io"], resources: ["podpresets"], verbs: ["watch"]' in told


async def test_a_watch_that_cannot_be_opened_again_is_down(server: Server, client: Client) -> None:
    server.ends.set()
    await client.ask(watch="true")
    assert client.health.is_up, "nobody knows yet that it has ended"
    await server.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.ask(watch="true")
    assert "cannot be reached" in (client.health.trouble or "")


def certified(directory: pathlib.Path, host: str) -> tuple[pathlib.Path, ssl.SSLContext]:
    certificate, key = certifying.certify(directory, host)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return certificate, context


async def test_the_name_of_the_server_in_its_certificate_is_the_one_of_the_kubeconfig(
    tmp_path: pathlib.Path,
) -> None:
    certificate, context = certified(tmp_path, "kubernetes")
    server = Server(context)
    await server.start()
    given = {"ca_file": certificate, "tls_server_name": "kubernetes"}
    async with client_of(f"https://127.0.0.1:{server.port}", **given) as client:
        assert await client.ask() == 200
    await server.stop()


async def test_a_session_whose_authorities_were_rotated_ends_so_that_its_client_logs_in_anew(
    tmp_path: pathlib.Path,
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(certifying.certify(tmp_path, "localhost")[0].read_bytes())
    server = Server(certified(tmp_path, "localhost")[1])
    await server.start()
    async with client_of(f"https://localhost:{server.port}", ca_file=authority) as client:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.ask()
        early = client.session.closed
        authority.write_bytes((tmp_path / "localhost.crt").read_bytes())
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.ask()
        assert (early, client.session.closed) == (False, True), (
            "a new session is no better with the same file"
        )
    await server.stop()
