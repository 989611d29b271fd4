"""An API server with pods in which commands run: ``exec`` over a websocket, as Kubernetes speaks it."""

import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from tests.support import api_server

OUTPUT, ERRORS, STATUS = b"\x01", b"\x02", b"\x03"


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """What a command in a pod does."""

    output: str = ""
    errors: str = ""
    message: str = ""
    """Why it failed; empty if it did not."""
    hangs_up: bool = False
    """Whether the connection ends without a status."""
    hangs: bool = False
    """Whether nothing comes of it, and the connection stays."""

    @property
    def ended(self) -> bytes:
        failure = {"status": "Failure", "message": self.message}
        return json.dumps(failure if self.message else {"status": "Success"}).encode()


class PodServer(api_server.ApiServer):
    """Answers as scripted; pods may be added, with what a command does in them."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[tuple[str, str, list[str]]] = []
        """Pod, container and command of each run."""
        self.refusal: int | None = None
        """Status with which runs of commands are refused."""
        self._pods: dict[str, Ran] = {}

    def pod(self, name: str, ran: Ran, *containers: str, phase: str = "Running") -> dict[str, Any]:
        found = {
            "metadata": {"name": name, "namespace": "addons"},
            "spec": {"containers": [{"name": each} for each in containers or ("addon-operator",)]},
            "status": {"phase": phase},
        }
        self._pods[name] = ran
        self.on("GET", f"/api/v1/namespaces/addons/pods/{name}", found)
        return found

    async def run(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return await self.handle(request)
        if self.refusal is not None:
            return web.Response(status=self.refusal)
        name = request.match_info["name"]
        self.commands.append((name, request.query["container"], request.query.getall("command")))
        stream = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await stream.prepare(request)
        ran = self._pods[name]
        for channel, text in ((OUTPUT, ran.output), (ERRORS, ran.errors)):
            half = len(text) // 2
            for part in (text[:half], text[half:]):
                await stream.send_bytes(channel + part.encode())
        if ran.hangs:
            await stream.receive()
        if not ran.hangs_up and not ran.hangs:
            await stream.send_bytes(STATUS + ran.ended)
        await stream.close()
        return stream


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[PodServer]:
    """A server that listens."""
    server = PodServer()
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/addons/pods/{name}/exec", server.run)
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with api_server.listening(app) as server.url:
        yield server
