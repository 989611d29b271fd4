"""A loopback API server that keeps objects, lists and watches them, and fails as it is told to.

It is for faults that a real one does not have on demand: watches that are cut, fall silent, or end with an
ERROR event; places that are too old; lists that are refused. It knows equality in label selectors, and the
field selector of names.
"""

import asyncio
import collections
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
from aiohttp import web
from typing_extensions import override

from addon_operator.kernel import clock
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import connection
from tests.fakes import api_server

Object = dict[str, Any]
CONFIG_MAPS = "configmaps"
KINDS = {CONFIG_MAPS: ("ConfigMap", True), "namespaces": ("Namespace", False)}


@dataclasses.dataclass(frozen=True, slots=True)
class Happened:
    version: int
    type: str
    plural: str
    object: Object
    before: Object | None = None


@dataclasses.dataclass(eq=False, slots=True)
class Stream:
    """A watch that is open."""

    plural: str
    query: dict[str, str]
    accept: str
    queue: asyncio.Queue[bytes | None] = dataclasses.field(default_factory=asyncio.Queue)


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def resource_version(self) -> str | None:
        return self.query.get("resourceVersion")


class ObjectServer:
    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.streams: list[Stream] = []
        self.streams_lists = True
        self.paused = False
        self.kinds = dict(KINDS)
        self.served_in: dict[str, str] = {}
        """Versions of kinds, by plural; ``v1`` for others."""
        self.refusals: collections.deque[tuple[Callable[[Asked], bool], int]] = collections.deque()
        self.changed = asyncio.Event()
        self._version = 100
        self._floor = 0
        self._uids = itertools.count(1)
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._history: list[Happened] = []
        self._paged: dict[int, list[Object]] = {}

    # What a test does with the objects.

    def put(self, name: str, namespace: str = "a", plural: str = CONFIG_MAPS, **fields: object) -> Object:
        """Create or replace; ``labels`` and ``managedFields`` go into the metadata."""
        key = (plural, namespace if self.kinds[plural][1] else "", name)
        before = self._objects.get(key)
        uid = before["metadata"]["uid"] if before else f"uid-{next(self._uids)}"
        return self._store(key, before, uid, fields)

    def delete(self, name: str, namespace: str = "a", plural: str = CONFIG_MAPS) -> None:
        key = (plural, namespace if self.kinds[plural][1] else "", name)
        gone = self._objects.pop(key)
        self._version += 1
        last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self._version)}}
        self._happen(Happened(self._version, "DELETED", plural, last, gone))

    def compact(self) -> None:
        """Forget everything that has happened: places before now are too old."""
        self._version += 1
        self._floor = self._version

    def state(self, plural: str = CONFIG_MAPS) -> dict[tuple[str, str], Object]:
        return {key[1:]: body for key, body in self._objects.items() if key[0] == plural}

    @property
    def history(self) -> list[Happened]:
        return list(self._history)

    @property
    def version(self) -> int:
        return self._version

    # What a test does with the connections.

    def refuse(self, status: int, matches: Callable[[Asked], bool] = lambda _: True, times: int = 1) -> None:
        self.refusals.extend([(matches, status)] * times)

    def send(self, line: bytes) -> None:
        """Send bytes on all watches, whole lines or not."""
        for stream in self.streams:
            stream.queue.put_nowait(line)

    def send_event(self, type_: str, body: Object) -> None:
        self.send(_line(type_, body))

    def pause(self) -> None:
        """Tell nothing on the watches that are open."""
        self.paused = True

    def resume(self) -> None:
        """Go on telling, with new watches: those that are open would have a gap."""
        self.cut()
        self.paused = False

    def bookmark(self) -> None:
        if self.paused:
            return
        self._version += 1
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": str(self._version)}}
        self.send_event("BOOKMARK", body)

    def cut(self) -> None:
        """Break all watches off, after what was sent."""
        for stream in self.streams:
            stream.queue.put_nowait(None)

    def lists(self) -> list[Asked]:
        return [
            asked
            for asked in self.asked
            if asked.path.endswith(CONFIG_MAPS) and (not asked.is_watch or asked.resource_version is None)
        ]

    async def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    # The server.

    def _store(self, key: tuple[str, str, str], before: Object | None, uid: str, fields: Object) -> Object:
        self._version += 1
        plural, namespace, name = key
        in_metadata = {field: fields.pop(field) for field in ("labels", "managedFields") if field in fields}
        metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self._version)}
        if not namespace:
            del metadata["namespace"]
        body = {
            "kind": self.kinds[plural][0],
            "apiVersion": "v1",
            "metadata": metadata | in_metadata,
            **fields,
        }
        self._objects[key] = body
        type_ = "MODIFIED" if before else "ADDED"
        self._happen(Happened(self._version, type_, plural, body, before))
        return body

    def _happen(self, event: Happened) -> None:
        self._history.append(event)
        if self.paused:
            return
        for stream in self.streams:
            self._tell(stream, event)

    def _tell(self, stream: Stream, event: Happened) -> None:
        if event.plural == stream.plural and (told := _as_seen(stream, event)):
            stream.queue.put_nowait(_line(told, event.object))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(
            request.path, dict(request.query), {key.lower(): value for key, value in request.headers.items()}
        )
        opened = self.answer(asked)
        return opened if isinstance(opened, web.Response) else await self._watch(request, *opened)

    def answer(self, asked: Asked) -> web.Response | tuple[Stream, str | None]:
        """A whole answer, or what to watch and since when."""
        self.asked.append(asked)
        self.changed.set()
        for refusal in self.refusals:
            if refusal[0](asked):
                self.refusals.remove(refusal)
                return _status(refusal[1])
        if (document := self._discovery(asked.path)) is not None:
            return _json(document)
        return self._collection(asked)

    def _discovery(self, path: str) -> Object | None:
        by_version: dict[str, list[Object]] = collections.defaultdict(list)
        for plural, (kind, namespaced) in self.kinds.items():
            by_version[self.served_in.get(plural, "v1")].append(
                {
                    "resource": plural,
                    "responseKind": {"kind": kind},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "singularResource": kind.lower(),
                    "shortNames": ["cm"] if kind == "ConfigMap" else [],
                    "verbs": ["list", "watch"],
                }
            )
        core = {"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": by_version.pop("v1")}]}
        named = [
            {
                "metadata": {"name": api_version.partition("/")[0]},
                "versions": [{"version": api_version.partition("/")[2], "resources": resources}],
            }
            for api_version, resources in by_version.items()
        ]
        documents: dict[str, Object] = {
            "/version": {"gitVersion": "v1.36.0"},
            "/api": {"kind": "APIGroupDiscoveryList", "items": [core]},
            "/apis": {"kind": "APIGroupDiscoveryList", "items": named},
        }
        return documents.get(path)

    def _collection(self, asked: Asked) -> web.Response | tuple[Stream, str | None]:
        parts = asked.path.strip("/").split("/")
        plural = parts[-1]
        api_version = self.served_in.get(plural)
        is_elsewhere = api_version is not None and not asked.path.startswith(f"/apis/{api_version}/")
        if plural not in self.kinds or is_elsewhere:
            return _status(404)
        namespace = parts[-2] if "namespaces" in parts[:-1] else ""
        query = asked.query | {"namespace": namespace}
        if not asked.is_watch:
            return self._list(plural, query)
        since = asked.resource_version
        if since is None and not self.streams_lists:
            return _status(422)
        if since is not None and int(since) < self._floor:
            return _status(410)
        return Stream(plural, query, asked.headers.get("accept", "")), since

    def _selected(self, plural: str, query: dict[str, str]) -> list[Object]:
        found = sorted((key, body) for key, body in self._objects.items() if key[0] == plural)
        return [body for _, body in found if _matches(query, body)]

    def _list(self, plural: str, query: dict[str, str]) -> web.Response:
        start, version = map(int, query.get("continue", f"0/{self._version}").split("/"))
        if version < self._floor:
            return _status(410)
        objects = self._selected(plural, query) if start == 0 else self._paged[version]
        self._paged[version] = objects
        end = start + int(query.get("limit") or len(objects) or 1)
        metadata = {"resourceVersion": str(version)}
        if end < len(objects):
            metadata["continue"] = f"{end}/{version}"
        # As the real one does: items of its own kinds do not say what they are.
        items = [
            {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}
            for body in objects[start:end]
        ]
        kind = self.kinds[plural][0]
        return _json({"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request, stream: Stream, since: str | None) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        if since is None:
            for body in self._selected(stream.plural, stream.query):
                stream.queue.put_nowait(_line("ADDED", body))
            stream.queue.put_nowait(_initial_end(self.kinds[stream.plural][0], self._version))
        else:
            for event in self._history:
                if event.version > int(since):
                    self._tell(stream, event)
        self.streams.append(stream)
        self.changed.set()
        try:
            await response.prepare(request)
            while (line := await stream.queue.get()) is not None:
                await response.write(line)
            assert request.transport is not None
            request.transport.abort()
        except ConnectionResetError:
            pass
        finally:
            self.streams.remove(stream)
            self.changed.set()
        return response


def _as_seen(stream: Stream, event: Happened) -> str | None:
    """The type of the event for a watch with selectors: an object may enter or leave it."""
    now = event.type != "DELETED" and _matches(stream.query, event.object)
    earlier = event.before is not None and _matches(stream.query, event.before)
    if now:
        return "MODIFIED" if earlier else "ADDED"
    return "DELETED" if earlier else None


def _matches(query: dict[str, str], body: Object) -> bool:
    metadata = body["metadata"]
    if query["namespace"] and metadata.get("namespace") != query["namespace"]:
        return False
    labels = dict(item.split("=") for item in query.get("labelSelector", "").split(",") if item)
    fields = dict(item.split("=") for item in query.get("fieldSelector", "").split(",") if item)
    if fields.get("metadata.name", metadata["name"]) != metadata["name"]:
        return False
    return labels.items() <= (metadata.get("labels") or {}).items()


def _line(type_: str, body: Object) -> bytes:
    return orjson.dumps({"type": type_, "object": body}) + b"\n"


def _initial_end(kind: str, version: int) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return _line("BOOKMARK", {"kind": kind, "apiVersion": "v1", "metadata": metadata})


def _json(body: Object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def _status(code: int) -> web.Response:
    message = 'User "me" cannot list resource' if code == 403 else "because"
    return _json({"kind": "Status", "apiVersion": "v1", "message": message, "code": code}, code)


class Connection(connection.Connection):
    """Whole answers come by a call; watches over HTTP, with all that may happen to them."""

    def __init__(self, server: ObjectServer, access: auth.ClusterAccess, time: clock.Clock) -> None:
        super().__init__(access, time)
        self._server = server

    @override
    async def send(self, request: connection.Request, using: credentials.Credentials) -> connection.Response:
        await asyncio.sleep(0)
        headers = api_server.headers_of(request, using)
        answer = self._server.answer(Asked(request.path, dict(request.query), headers))
        assert isinstance(answer, web.Response)
        assert isinstance(answer.body, bytes)
        return connection.Response(answer.status, {}, answer.body)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[ObjectServer]:
    server = ObjectServer()
    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
