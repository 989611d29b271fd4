"""An API server that gives scripted answers and remembers what it was asked.

A client of it asks it in this process; where HTTP itself matters it listens on loopback.
"""

import asyncio
import contextlib
import dataclasses
import functools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from aiohttp import web
from typing_extensions import override

from addon_operator.kernel import clock
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client, connection, retries


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    text: str | None = None
    """Body that is not JSON."""
    hang_up: bool = False
    """Close the connection without an answer."""


def status(code: int, reason: str, message: str = "because") -> Answer:
    body = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": code}
    if reason == "NotFound":
        # The API names what is not there; only a gateway does not, or a path that is not served.
        body["details"] = {"name": "it"}
    return Answer(body, code)


NOT_SERVED: Final = Answer(text="404 page not found\n", status=404)
"""What the API server answers for a path that it does not have."""


Handler = Callable[[Asked], Answer]
Connect = Callable[[auth.ClusterAccess, clock.Clock], connection.Connection]


class ApiServer:
    """Answers in the order they were scripted for a method and path; the last one stays."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.url = "http://api.example"
        """Where it listens, once it does."""
        self._scripts: dict[tuple[str, str], list[Answer | Handler]] = {}

    def on(self, method: str, path: str, *answers: Answer | Handler | dict[str, Any]) -> None:
        self._scripts[method, path] = [Answer(item) if isinstance(item, dict) else item for item in answers]

    @property
    def requests(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        asked = Asked(
            request.method,
            request.rel_url.raw_path,
            dict(request.query),
            {name.lower(): value for name, value in request.headers.items()},
            json.loads(raw) if raw else None,
        )
        return self._respond(request, self.answer(asked))

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        script = self._scripts.get((asked.method, asked.path))
        if not script:
            return status(404, "NotFound", f"nothing is scripted for {asked.method} {asked.path}")
        step = script.pop(0) if len(script) > 1 else script[0]
        return step(asked) if callable(step) else step

    @staticmethod
    def _respond(request: web.Request, answer: Answer) -> web.StreamResponse:
        if answer.hang_up:
            assert request.transport is not None
            request.transport.abort()
        if answer.text is not None:
            return web.Response(text=answer.text, status=answer.status, headers=answer.headers)
        return web.json_response(answer.body, status=answer.status, headers=answer.headers)


class _Direct(connection.Connection):
    """A connection that calls the server: the way over HTTP has tests of its own."""

    def __init__(self, server: ApiServer, access: auth.ClusterAccess, time: clock.Clock) -> None:
        super().__init__(access, time)
        self._server = server

    @override
    async def _use(self, fresh: credentials.Credentials) -> None:
        """There is no session."""

    @override
    async def send(self, request: connection.Request, using: credentials.Credentials) -> connection.Response:
        await asyncio.sleep(0)
        answer = self._server.answer(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                headers_of(request, using),
                json.loads(request.body) if request.body else None,
            )
        )
        if answer.hang_up:
            raise api_errors.Unreachable(f"the API server {using.server} hung up")
        text = json.dumps(answer.body) if answer.text is None else answer.text
        return connection.Response(answer.status, answer.headers, text.encode())


def headers_of(request: connection.Request, using: credentials.Credentials) -> dict[str, str]:
    """Those that HTTP would bring, as far as anybody looks at them."""
    headers: Mapping[str, str] = {"Accept": "application/json", **request.headers}
    if using.authorization is not None:
        headers = {**headers, "Authorization": using.authorization}
    return {name.lower(): value for name, value in headers.items()}


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[ApiServer]:
    """A server that listens."""
    server = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


class Tokens:
    """A source of credentials that gives another token each time."""

    def __init__(
        self, server: str, *, seconds: float | None = None, now: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.server = server
        self.loaded = 0
        self._seconds = seconds
        self._now = now

    async def load(self) -> credentials.Credentials:
        self.loaded += 1
        expires = None if self._seconds is None else self._now() + self._seconds
        return credentials.Credentials(self.server, f"Bearer token-{self.loaded}", expires=expires)


class Pauses:
    """Instead of sleeping: remembers for how long, and moves the clock on."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.now = 1_000_000.0

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.now += seconds

    def jitter(self) -> float:
        return 0.5

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def access_to(server: str, source: auth.CredentialSource | None = None) -> auth.ClusterAccess:
    return auth.ClusterAccess("the fake server", server, source or credentials.AnonymousSource(server, {}))


def client_of(
    server: ApiServer | str,
    pauses: Pauses,
    *,
    source: auth.CredentialSource | None = None,
    done: client.RequestDone = lambda *_: None,
    rate: retries.Rate = retries.UNLIMITED,
    connect: Connect = connection.Connection,
) -> client.KubeClient:
    """A client that calls the server, or speaks HTTP with what listens at a URL."""
    if isinstance(server, ApiServer):
        connect = functools.partial(_Direct, server)
        server = server.url
    return client.KubeClient(
        access_to(server, source),
        rate=rate,
        done=done,
        time=pauses,
        connect=connect,
    )
