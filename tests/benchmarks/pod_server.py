"""An API server in a process of its own that has a hundred thousand pods, and leaves the rest to a real one.

Pods are made as they are sent: the server takes no memory for them and little time. They can be listed as a
stream only. Prints its port; ``/bench`` tells when pods were last asked for.
"""

import asyncio
import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
from aiohttp import web

from addon_operator.devcluster import handle, layout
from tests.benchmarks import pods, surroundings

VERSION: Final = 1_000_000_000
_SHAPES: Final = 64
"""Pods that differ in more than their names; each is 3 to 9 KB."""
_SMALLEST: Final = 3_000
_LARGEST: Final = 9_000
_CHUNK: Final = 1 << 18
_DROPPED: Final = {"host", "content-length", "transfer-encoding", "connection", "content-encoding", "date"}


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """How many pods, and which cluster has the rest."""

    pods: int
    url: str
    kubeconfig: str


def lines(number: int) -> Iterator[bytes]:
    """The stream of an initial list: so many pods, and the bookmark that ends it."""
    shapes = [_shape(index).split(b"NUMBER") for index in range(_SHAPES)]
    for index in range(number):
        yield (b"%d" % index).join(shapes[index % _SHAPES])
    metadata = {"resourceVersion": str(VERSION), "annotations": {"k8s.io/initial-events-end": "true"}}
    yield _line("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": metadata})


def _shape(index: int) -> bytes:
    pod = pods.pod("default")
    pod["metadata"] |= {
        "name": "web-5d59d67564-NUMBER",
        "uid": "00000000-NUMBER",
        "resourceVersion": "1NUMBER",
    }
    pod["status"] = {
        "phase": "Running",
        "podIP": "10.0.0.NUMBER",
        "hostIP": "192.0.2.1",
        "qosClass": "Burstable",
    }
    size = _SMALLEST + (_LARGEST - _SMALLEST) * index // (_SHAPES - 1)
    notes: dict[str, str] = {}
    pod["metadata"]["annotations"] = notes
    while (missing := size - len(json.dumps(pod))) > 0:
        notes[f"example.org/note-{len(notes)}"] = "word " * min(40, 1 + missing // 5)
    return _line("ADDED", pod)


def _line(type_: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": body}, separators=(",", ":")).encode() + b"\n"


class _Server:
    def __init__(self, plan: Plan, session: aiohttp.ClientSession) -> None:
        self._plan = plan
        self._session = session
        self._asked = 0.0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/bench":
            return web.json_response({"asked": self._asked})
        if request.path == "/api/v1/pods":
            return await self._pods(request)
        return await self._forward(request)

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            raise web.HTTPUnprocessableEntity
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if request.query.get("sendInitialEvents") == "true":
            self._asked = time.time()
            for chunk in _chunks(self._plan.pods):
                await response.write(chunk)
        await asyncio.Event().wait()
        return response

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED}
        url = self._plan.url + request.raw_path
        async with self._session.request(
            request.method, url, headers=headers, data=await request.read() or None
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _DROPPED}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
        return response


def _chunks(number: int) -> Iterator[bytes]:
    waiting, size = [], 0
    for line in lines(number):
        waiting.append(line)
        size += len(line)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


async def serve(plan: Plan) -> None:
    """Serve until the process is ended."""
    cluster = handle.DevCluster(
        layout.ClusterName(""), "", plan.url, pathlib.Path(plan.kubeconfig), pathlib.Path()
    )
    tls, headers = surroundings.admin(cluster)
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    no_limit = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, timeout=no_limit, auto_decompress=True
    ) as session:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", _Server(plan, session).handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)  # noqa: T201 - tells the parent
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Plan(**json.loads(sys.argv[1]))))
