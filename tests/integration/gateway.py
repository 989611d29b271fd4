"""A gateway between an operator and the API server, which does not find what it is told to lose."""

import asyncio
import contextlib
import json
import pathlib
import ssl
import threading
from collections.abc import Iterator
from typing import Final

import aiohttp
from aiohttp import web

from addon_operator.devcluster import handle, layout
from addon_operator.devcluster.controlplane import certificates

_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length", "content-encoding"})
_CLOSE_SECONDS: Final = 0.3


class Gateway:
    """Passes everything on as the administrator, but for paths that it does not find."""

    def __init__(self, cluster: handle.DevCluster) -> None:
        self._url = cluster.url
        where = layout.Layout(cluster.kubeconfig.parent)
        self._tls = ssl.create_default_context(cafile=str(where.certificate(certificates.CA)))
        self._bearer = certificates.bearer(where.pki)
        self._lost: str | None = None
        self._streams: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._end = asyncio.Event()
        self._port = 0
        self.refused = 0
        """How many requests it did not pass on since then."""
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def lose(self, lost: str | None) -> None:
        """Find no path with this end from now on, and end all that is open; with ``None``, find all."""
        self._lost, self.refused = lost, 0

        def cut() -> None:
            for stream in self._streams:
                stream.cancel()

        self._loop.call_soon_threadsafe(cut)

    def kubeconfig(self, path: pathlib.Path) -> str:
        """Write one that leads here."""
        named = {"name": "gateway"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "gateway",
            "clusters": [named | {"cluster": {"server": f"http://127.0.0.1:{self._port}"}}],
            "contexts": [named | {"context": {"cluster": "gateway", "user": "gateway"}}],
            "users": [named | {"user": {}}],
        }
        path.write_text(json.dumps(config))
        return str(path)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        async with aiohttp.ClientSession(auto_decompress=False) as self._session:
            app.router.add_route("*", "/{path:.*}", self._pass_on)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self._port = runner.addresses[0][1]
            self._up.set()
            await self._end.wait()
            await runner.cleanup()
        # Connections with TLS take a moment to close.
        await asyncio.sleep(_CLOSE_SECONDS)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if self._lost is not None and request.path.endswith(self._lost):
            self.refused += 1
            return web.Response(status=404, text="404 page not found\n")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        headers |= self._bearer
        url = f"{self._url}{request.rel_url}"
        body = await request.read()
        async with self._session.request(
            request.method, url, headers=headers, data=body or None, ssl=self._tls, timeout=None
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            if encoding := answer.headers.get("Content-Encoding"):
                kept["Content-Encoding"] = encoding
            response = web.StreamResponse(status=answer.status, headers=kept)
            copying = asyncio.create_task(_copy(request, answer, response))
            self._streams.add(copying)
            try:
                await copying
            except asyncio.CancelledError:
                if request.transport is not None:
                    request.transport.abort()
                raise
            finally:
                self._streams.discard(copying)
            return response

    @contextlib.contextmanager
    def running(self) -> Iterator["Gateway"]:
        self._thread.start()
        self._up.wait(30)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(30)
            self._loop.close()


async def _copy(request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    # Whoever asked may have gone.
    with contextlib.suppress(ConnectionResetError):
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
