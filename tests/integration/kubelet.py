"""A kubelet in whose pods commands run on this machine: for what goes through the API server's ``exec``."""

import asyncio
import contextlib
import datetime as dt
import pathlib
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from aiohttp import web

from addon_operator.admission.certificates import certificates
from tests.integration import operator_site
from tests.support import pod_server

Run = Callable[[list[str]], pod_server.Ran]
"""What a command does in the pod."""

_DAY: Final = dt.timedelta(days=1)


@contextlib.contextmanager
def serving(directory: pathlib.Path, run: Run) -> Iterator[int]:
    """Serve on a port of this machine, as the kubelet of one node."""
    loop, started, ended = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    ports: list[int] = []

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/exec/{namespace}/{pod}/{container}", _exec(run))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_tls(directory)).start()
        ports.append(runner.addresses[0][1])
        started.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()


def _exec(run: Run) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await stream.prepare(request)
        ran = await asyncio.to_thread(run, request.query.getall("command"))
        await stream.send_bytes(pod_server.OUTPUT + ran.output.encode())
        await stream.send_bytes(pod_server.ERRORS + ran.errors.encode())
        await stream.send_bytes(pod_server.STATUS + ran.ended)
        await stream.close()
        return stream

    return answer


def _tls(directory: pathlib.Path) -> ssl.SSLContext:
    now = dt.datetime.now(dt.UTC)
    pair = certificates.make_server(certificates.make_authority(now, _DAY), ["localhost"], now, _DAY)
    file = directory / "kubelet.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


def add_pod(site: operator_site.Site, name: str, port: int, **labels: str) -> None:
    """Add a running pod, on a node whose kubelet listens on that port, and which takes no other pods."""
    node = f"{site.namespace}-node"
    alone = {"taints": [{"key": "tests/alone", "effect": "NoSchedule"}]}
    _create(site, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": alone})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "addon-operator", "image": "none"}]},
    }
    _create(site, pod)
    _status(site, "node", node, {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    })  # fmt: skip
    _status(site, "pod", name, {"phase": "Running"})


def _create(site: operator_site.Site, document: dict[str, Any]) -> None:
    site.apply(document)


def _status(site: operator_site.Site, kind: str, name: str, status: dict[str, Any]) -> None:
    site.patch(kind, name, {"status": status}, subresource="status")
