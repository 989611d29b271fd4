"""The API of a cluster in memory: for the operator's own client without HTTP, and for Helm with it."""

import asyncio
import json
import pathlib
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson
from aiohttp import web

from addon_operator.kernel import clock
from addon_operator.kube import paths
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client, connection
from addon_operator.testing.given import given_objects, kinds

_ADDRESS: Final = "http://cluster-in-memory.invalid"
_LOOPBACK: Final = "127.0.0.1"
_AGGREGATED_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED: Final = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_AGGREGATED_KIND}"


class GivenApi(msgspec.Struct):
    """Answers requests over the given objects."""

    given: given_objects.GivenObjects
    version: str
    """Of Kubernetes, such as ``v1.36.0``."""
    served: tuple[str, ...] = ()
    """APIs that are there beside those of the given objects, such as ``monitoring.coreos.com/v1``."""

    def answer(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, media_type: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Return status and document."""
        try:
            return 200, self._document(method, path, query, body, media_type)
        except given_objects.RefusedError as error:
            return error.status, error.document()

    def _document(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, media_type: str
    ) -> dict[str, Any]:
        target = paths.target(method, path)
        if not target.resource:
            return self._about(path)
        if method == "GET":
            if target.name is not None:
                return self.given.get(target)
            return self.given.listed(target, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        return self._written(method, target, orjson.loads(body) if body else {}, media_type)

    def _written(
        self,
        method: str,
        target: paths.Target,
        sent: Any,  # noqa: ANN401 - JSON
        media_type: str,
    ) -> dict[str, Any]:
        match method:
            case "POST":
                return self.given.create(target, sent)
            case "PUT":
                return self.given.replace(target, sent)
            case "PATCH":
                return self.given.patch(target, sent, media_type)
            case "DELETE":
                return self.given.delete(target)
        raise given_objects.RefusedError(405, "MethodNotAllowed", f"{method} is not supported")

    def _about(self, path: str) -> dict[str, Any]:
        match path.strip("/").split("/"):
            case ["version"]:
                major, minor, *_ = self.version.removeprefix("v").split(".")
                return {"gitVersion": self.version, "major": major, "minor": minor}
            case ["api"]:
                return kinds.aggregated(self.given.resources, core=True)
            case ["apis"]:
                return kinds.aggregated(self.given.resources, core=False, served=self.served)
            case ["api" | "apis", *rest]:
                listed = kinds.resource_list(self.given.resources, "/".join(rest))
                if listed is not None:
                    return listed
        raise given_objects.RefusedError(404, "NotFound", "the server could not find the requested resource")


class _InMemory(connection.Connection):
    def __init__(self, api: GivenApi, access: auth.ClusterAccess, time: clock.Clock) -> None:
        super().__init__(access, time)
        self._api = api

    async def send(self, request: connection.Request, using: credentials.Credentials) -> connection.Response:  # noqa: ARG002
        media_type = request.headers.get("Content-Type", "")
        status, document = self._api.answer(
            request.method, request.path, request.query, request.body, media_type
        )
        # Integers may be of any size.
        return connection.Response(status, {}, json.dumps(document).encode())

    async def renew(self, stale: credentials.Credentials | None) -> credentials.Credentials:  # noqa: ARG002
        return credentials.Credentials(_ADDRESS)

    async def current(self) -> credentials.Credentials:
        return credentials.Credentials(_ADDRESS)


def access() -> auth.ClusterAccess:
    """Return the way to a cluster in memory, which leads nowhere outside of this process."""
    return auth.ClusterAccess("a cluster in memory", _ADDRESS, credentials.AnonymousSource(_ADDRESS, {}))


def client_of(api: GivenApi) -> client.KubeClient:
    """Return the operator's own client, for a cluster in memory."""
    return client.KubeClient(access(), connect=lambda way, time: _InMemory(api, way, time))


class LoopbackServer:
    """Serves a cluster in memory to Helm's ``lookup``: reads alone, on loopback, to whoever knows the path.

    Clients of Kubernetes send no token without TLS.
    """

    def __init__(self) -> None:
        self.api = GivenApi(given_objects.GivenObjects(), "v1.0.0")
        """What is served just now."""
        self._root = f"/{secrets.token_hex(16)}"
        self._runner: web.AppRunner | None = None
        self._opening = asyncio.Lock()
        self._port = 0

    async def open(self, kubeconfig: pathlib.Path) -> None:
        """Listen, unless it does, and write the file by which Helm finds it."""
        async with self._opening:
            if self._runner is not None:
                return
            application = web.Application()
            application.router.add_route("GET", self._root + "/{path:.*}", self._handle)
            self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await self._runner.setup()
            await web.TCPSite(self._runner, _LOOPBACK, 0).start()
            port = self._runner.addresses[0][1]
            server = f"http://{_LOOPBACK}:{port}{self._root}"
            await asyncio.to_thread(_write, kubeconfig, json.dumps(_kubeconfig(server)))

    async def close(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path.removeprefix(self._root)
        status, document = self.api.answer("GET", path, dict(request.query), None)
        is_aggregated = document.get("kind") == _AGGREGATED_KIND
        headers = {"Content-Type": _AGGREGATED if is_aggregated else "application/json"}
        return web.Response(body=json.dumps(document).encode(), status=status, headers=headers)


def _write(path: pathlib.Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "given",
        "clusters": [{"name": "given", "cluster": {"server": server}}],
        "contexts": [{"name": "given", "context": {"cluster": "given", "user": ""}}],
    }
