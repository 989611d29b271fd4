"""The one API server of the unit tests: it is in memory, keeps objects, and fails as a test says.

A client of it (:func:`client_of`) asks it in this process; :func:`running` is for tests in which HTTP itself
matters. The cluster in memory of ``addon_operator.testing`` says how selectors select and how a
merge patch changes an object. What that cannot know (see :class:`NotKnown`) fails the test.
"""

import asyncio
import collections
import contextlib
import dataclasses
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import aiohttp
import orjson
from aiohttp import base_protocol, web
from msgspec import structs
from typing_extensions import override

from addon_operator.aio import waiting
from addon_operator.documents import own_manifests
from addon_operator.kernel import clock, fencing
from addon_operator.kube import paths
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import client, connection, retries
from addon_operator.kube.discovery import api_resources
from addon_operator.testing.given import api as given_api
from addon_operator.testing.given import given_objects, kinds, object_selectors
from tests.support import clocks

NAMESPACE: Final = "addons"
"""The operator's, and that of objects that say nothing else."""
_STREAMED: Final = 1 << 20
_METADATA: Final = "as=PartialObjectMetadata"

Object = dict[str, Any]
Matches = Callable[["Asked"], bool]


class NotKnown(AssertionError):  # noqa: N818 - it is a failure of the test, not of the product
    """What happens then is known by a real API server alone: test that in ``tests/integration``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """By names in small letters."""
    body: Any

    @override
    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def is_list(self) -> bool:
        """Whether it asks for a whole collection, in one answer or as the beginning of a watch."""
        is_first = not self.is_watch or "resourceVersion" not in self.query
        return self.method == "GET" and paths.target("GET", self.path).name is None and is_first

    @property
    def is_write(self) -> bool:
        return self.method not in retries.READS


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer that a test gives itself."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    text: str | None = None
    """Body that is not JSON."""
    hang_up: bool = False
    """Close the connection without an answer."""

    @property
    def content(self) -> bytes:
        return orjson.dumps(self.body) if self.text is None else self.text.encode()


Handler = Callable[[Asked], Answer]
Connect = Callable[[auth.ClusterAccess, clock.Clock], connection.Connection]
Pauses = clocks.Pauses


def status(code: int, reason: str, message: str = "because") -> Answer:
    """An error as Kubernetes writes it."""
    body = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": code}
    if reason == "NotFound":
        # The API names what is not there; only a gateway does not, or a path that is not served.
        body["details"] = {"name": "it"}
    return Answer(body, code)


NOT_SERVED: Final = Answer(text="404 page not found\n", status=404)
"""What the API server answers for a path that it does not have."""


def an_object(
    kind: str,
    name: str,
    namespace: str | None = NAMESPACE,
    api_version: str = "v1",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,  # noqa: ANN401 - JSON
) -> Object:
    """An object of Kubernetes, with a namespace unless that is ``None``; ``metadata`` has more of that."""
    given = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    own = {key: value for key, value in given.items() if value is not None}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**own, **(metadata or {})}, **fields}


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What happened to an object."""

    version: int
    before: Object | None
    after: Object | None

    @property
    def object(self) -> Object:
        """The object as the event shows it."""
        body = self.after or self.before
        assert body is not None
        return {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}


@dataclasses.dataclass(eq=False, slots=True)
class Stream:
    """A watch that is open; what is put into its queue is sent, and ``None`` breaks it off."""

    asked: Asked
    queue: asyncio.Queue[bytes | None] = dataclasses.field(default_factory=asyncio.Queue)


class ApiServer:
    """Objects by kind, namespace and name, and everything that was asked.

    The kinds of Kubernetes and the operator's own are served, and what :meth:`serve` and
    CustomResourceDefinitions add. What a test scripts (:meth:`on`) and refuses (:meth:`refuse`) goes before
    its own answers.
    """

    def __init__(self, version: str = "v1.36.0") -> None:
        self.given = given_objects.GivenObjects([an_object("Namespace", NAMESPACE, None)], _own_definitions())
        self.given.on_change = self._happen
        self.asked: list[Asked] = []
        self.url = "http://api.example"
        """Where it listens, once it does."""
        self.not_known: list[str] = []
        """For what it failed; a test that uses the fixture ``server`` fails at its end, too."""
        self.history: list[Change] = []
        self.streams: list[Stream] = []
        """Watches that are open."""
        self.streams_lists = True
        """Whether a watch may begin with what is there."""
        self.changed = asyncio.Event()
        """Set when something was asked, and when a watch is opened or ends."""
        self._api = given_api.GivenApi(self.given, version)
        self._scripts: dict[tuple[str, str], list[Answer | Handler]] = {}
        self._held: list[tuple[Matches, asyncio.Event]] = []
        self._refusals: collections.deque[tuple[Matches, Answer]] = collections.deque()
        self.is_paused = False
        """Whether nothing is told on watches that are open."""
        self._floor = 0
        self._pages: dict[str, list[Object]] = {}

    # What a test does with objects.

    def put(self, body: Mapping[str, Any]) -> Object:
        """Create an object, or replace it; return it as it is shown then."""
        self._resource(body["kind"], body["apiVersion"])
        return self.given.put(body)

    def get(self, kind: str, name: str, namespace: str | None = NAMESPACE) -> Object:
        """Return an object; raises :class:`KeyError` if there is none."""
        for body in self.objects(kind):
            metadata = body["metadata"]
            if metadata["name"] == name and metadata.get("namespace") in (namespace, None):
                return body
        raise KeyError(f"{kind} {namespace}/{name}")

    def objects(self, kind: str) -> list[Object]:
        """All objects of a kind."""
        resource = self._resource(kind)
        collection = paths.target("GET", paths.of(resource.api_version, resource.plural))
        items: list[Object] = self.given.listed(collection)["items"]
        return items

    def names(self, kind: str) -> list[str]:
        return [body["metadata"]["name"] for body in self.objects(kind)]

    def delete(self, kind: str, name: str, namespace: str | None = NAMESPACE) -> None:
        """Remove an object, whatever finalizers it has."""
        self.given.remove(self.get(kind, name, namespace))

    @property
    def version(self) -> int:
        """The resourceVersion of the latest change."""
        return self.given.version

    def serve(self, kind: str, api_version: str, *, namespaced: bool = True, plural: str = "") -> None:
        """Serve another kind from now on."""
        body = an_object(kind, "x", "x" if namespaced else None, api_version)
        added = next(
            each for each in kinds.of([body]) if (each.kind, each.api_version) == (kind, api_version)
        )
        self.given.resources += (structs.replace(added, plural=plural or added.plural),)

    def stop_serving(self, kind: str, api_version: str | None = None, *, ends_streams: bool = True) -> None:
        """Serve a kind no more; its objects are there again when it is served again.

        An API server ends the streams of a version some time later.
        """
        resource = self._resource(kind, api_version)
        self.given.resources = tuple(each for each in self.given.resources if each != resource)
        if ends_streams:
            self.cut(lambda stream: _is_of(resource, paths.target("GET", stream.asked.path)))

    # What a test does with requests.

    def on(self, method: str, path: str, *answers: Answer | Handler | Mapping[str, Any]) -> None:
        """Answer so to this method and path: one answer after the other; the last one stays."""
        self._scripts[method, path] = [
            Answer(dict(item)) if isinstance(item, Mapping) else item for item in answers
        ]

    def refuse(
        self, answer: Answer | int, matches: Matches = lambda _: True, times: int = 1, *, first: bool = False
    ) -> None:
        """Answer the next requests that match with an error; with ``first``, before refusals from earlier."""
        refused = answer if isinstance(answer, Answer) else status(answer, "", _reason(answer))
        (self._refusals.extendleft if first else self._refusals.extend)([(matches, refused)] * times)

    def hold(self, matches: Matches) -> asyncio.Event:
        """Let requests that match wait until the event is set."""
        released = asyncio.Event()
        self._held.append((matches, released))
        return released

    async def let_in(self, asked: Asked) -> None:
        """Wait as long as the request is held."""
        for matches, released in self._held:
            if matches(asked):
                await released.wait()

    def accept(self) -> None:
        """Refuse nothing any more."""
        self._refusals.clear()

    @property
    def requests(self) -> list[str]:
        """Method and path of all."""
        return [str(asked) for asked in self.asked]

    @property
    def writes(self) -> list[str]:
        """Method and path of those that change something."""
        return [str(asked) for asked in self.asked if asked.is_write]

    def lists(self, plural: str) -> list[Asked]:
        """Requests for all objects of a kind."""
        return [asked for asked in self.asked if asked.is_list and asked.path.endswith(f"/{plural}")]

    # What a test does with watches.

    def send(self, line: bytes) -> None:
        """Send bytes on all watches, whole lines or not."""
        for stream in self.streams:
            stream.queue.put_nowait(line)

    def send_event(self, type_: str, body: Object) -> None:
        self.send(_line(type_, body))

    def bookmark(self) -> None:
        """Tell all watches where they are."""
        if not self.is_paused:
            self.given.version += 1
            self.send_event("BOOKMARK", _bookmark("ConfigMap", "v1", self.given.version))

    def pause(self) -> None:
        """Tell nothing on the watches that are open."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on telling, with new watches: those that are open would have a gap."""
        self.cut()
        self.is_paused = False

    def cut(self, matches: Callable[[Stream], bool] = lambda _: True) -> None:
        """Break watches off, after what was sent."""
        for stream in self.streams:
            if matches(stream):
                stream.queue.put_nowait(None)

    def compact(self) -> None:
        """Forget everything that has happened: places before now are too old."""
        self.given.version += 1
        self._floor = self.given.version

    async def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait for what follows from requests."""
        async with asyncio.timeout(seconds):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    # The server.

    def answer(self, asked: Asked) -> Answer | Stream:
        """A whole answer, or what is to be watched."""
        self.asked.append(asked)
        self.changed.set()
        for refusal in self._refusals:
            if refusal[0](asked):
                self._refusals.remove(refusal)
                return refusal[1]
        if script := self._scripts.get((asked.method, asked.path)):
            step = script.pop(0) if len(script) > 1 else script[0]
            return step(asked) if callable(step) else step
        target = paths.target(asked.method, asked.path)
        if target.resource and not any(_is_of(each, target) for each in self.given.resources):
            return NOT_SERVED
        try:
            return self._watched(asked) if asked.is_watch else self._answered(asked)
        except given_objects.RefusedError as error:
            details = {"name": target.name, "group": target.group, "kind": target.resource}
            return Answer({**error.document(), "details": details}, error.status)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer over HTTP."""
        raw = await request.read()
        asked = Asked(
            request.method,
            request.rel_url.raw_path,
            dict(request.query),
            {name.lower(): value for name, value in request.headers.items()},
            orjson.loads(raw) if raw else None,
        )
        await self.let_in(asked)
        answer = self.answer(asked)
        if isinstance(answer, Stream):
            return await self._serve(request, answer)
        if answer.hang_up:
            _hang_up(request)
        type_ = "application/json" if answer.text is None else "text/plain"
        return web.Response(
            body=answer.content, status=answer.status, headers={"Content-Type": type_, **answer.headers}
        )

    async def _serve(self, request: web.Request, stream: Stream) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.open(stream)
        try:
            await response.prepare(request)
            while (line := await stream.queue.get()) is not None:
                await response.write(line)
            _hang_up(request)
        except ConnectionResetError:
            pass
        finally:
            self.close(stream)
        return response

    def open(self, stream: Stream) -> None:
        """Begin a watch: with what is there, or with what has happened since."""
        since = stream.asked.query.get("resourceVersion")
        if since is None:
            listed = self._listed(stream.asked)
            for body in listed["items"]:
                stream.queue.put_nowait(_line("ADDED", body))
            kind = listed["kind"].removesuffix("List")
            end = _bookmark(kind, listed["apiVersion"], self.given.version)
            end["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
            stream.queue.put_nowait(_line("BOOKMARK", end))
        else:
            for change in self.history:
                if change.version > int(since):
                    self._tell(stream, change)
        self.streams.append(stream)
        self.changed.set()

    def close(self, stream: Stream) -> None:
        self.streams.remove(stream)
        self.changed.set()

    def _answered(self, asked: Asked) -> Answer:
        self._check_known(asked)
        if asked.is_list and paths.target("GET", asked.path).resource:
            return self._page(asked)
        media_type = asked.headers.get("content-type", "")
        body = orjson.dumps(asked.body) if asked.body is not None else None
        code, document = self._api.answer(asked.method, asked.path, asked.query, body, media_type)
        if code == 200 and asked.method == "POST":
            code = 201
        return Answer(_as_asked(asked, document), code)

    def _check_known(self, asked: Asked) -> None:
        target, media_type = paths.target(asked.method, asked.path), asked.headers.get("content-type", "")
        if "dryRun" in asked.query:
            self._fail(asked, "what a dry run would make of an object")
        if media_type == client.PatchType.STRATEGIC:
            self._fail(asked, "how lists are merged by key")
        if media_type == client.PatchType.APPLY and self._has(target):
            self._fail(asked, "what an apply makes of an object that is there")
        if target.subresource not in (None, "status", "scale"):
            self._fail(asked, f"what the subresource {target.subresource} does")

    def _has(self, target: paths.Target) -> bool:
        try:
            self.given.get(target)
        except given_objects.RefusedError:
            return False
        return True

    def _fail(self, asked: Asked, what: str) -> None:
        self.not_known.append(f"{asked}: {what}")
        raise NotKnown(
            f"{asked}: the API server of tests/support does not know {what}; say the answer with "
            "server.on(method, path, answer), or test this on the real control plane (tests/integration)"
        )

    def _watched(self, asked: Asked) -> Answer | Stream:
        since = asked.query.get("resourceVersion")
        if since is None and not self.streams_lists:
            return status(422, "Invalid")
        if since is not None and int(since) < self._floor:
            return status(410, "Expired")
        return Stream(asked)

    def _listed(self, asked: Asked) -> Object:
        query = asked.query
        target = paths.target("GET", asked.path)
        return self.given.listed(target, query.get("labelSelector", ""), query.get("fieldSelector", ""))

    def _page(self, asked: Asked) -> Answer:
        listed = self._listed(asked)
        start, _, version = asked.query.get("continue", f"0/{self.given.version}").partition("/")
        if int(version) < self._floor:
            return status(410, "Expired")
        place = f"{asked.path}/{version}"
        items = listed["items"] if start == "0" else self._pages[place]
        self._pages[place] = items
        first, limit = int(start), int(asked.query.get("limit") or 0)
        end = first + (limit or len(items) or 1)
        metadata = {"resourceVersion": version}
        if end < len(items):
            metadata["continue"] = f"{end}/{version}"
        # As the real one does: items of a list do not say what they are.
        page = [
            {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}
            for body in items[first:end]
        ]
        return Answer(_as_asked(asked, {**listed, "metadata": metadata, "items": page}))

    def _happen(self, before: Object | None, after: Object | None) -> None:
        change = Change(self.given.version, before, after)
        self.history.append(change)
        if not self.is_paused:
            for stream in self.streams:
                self._tell(stream, change)

    def _tell(self, stream: Stream, change: Change) -> None:
        """Tell a watch; by its selectors, an object may enter or leave it."""
        is_now, was_before = (self._is_seen(stream, body) for body in (change.after, change.before))
        type_ = (
            "MODIFIED" if is_now and was_before else "ADDED" if is_now else "DELETED" if was_before else ""
        )
        if type_:
            api_version = _api_version(paths.target("GET", stream.asked.path))
            body = {**change.object, "apiVersion": api_version}
            stream.queue.put_nowait(_line(type_, _as_asked(stream.asked, body)))

    def _is_seen(self, stream: Stream, body: Object | None) -> bool:
        if body is None:
            return False
        target, query = paths.target("GET", stream.asked.path), stream.asked.query
        group = body["apiVersion"].rpartition("/")[0]
        resource = self._served(body["kind"], _api_version(target))
        if group != target.group or resource is None or resource.plural != target.resource:
            return False
        if target.namespace not in (None, body["metadata"].get("namespace")):
            return False
        has_labels = object_selectors.has_labels(
            query.get("labelSelector", ""), body["metadata"].get("labels") or {}
        )
        return has_labels and object_selectors.has_fields(
            query.get("fieldSelector", ""), target.resource, body
        )

    def _resource(self, kind: str, api_version: str | None = None) -> api_resources.Resource:
        resource = self._served(kind, api_version)
        if resource is None:
            raise NotKnown(f"no kind {kind} is served: add it with server.serve({kind!r}, API_VERSION)")
        return resource

    def _served(self, kind: str, api_version: str | None = None) -> api_resources.Resource | None:
        for each in self.given.resources:
            if each.kind == kind and api_version in (None, each.api_version):
                return each
        return None


@functools.cache
def _own_definitions() -> tuple[Object, ...]:
    return tuple(own_manifests.load(name) for name in (own_manifests.PODPRESETS, own_manifests.MODULES))


def _api_version(target: paths.Target) -> str:
    return f"{target.group}/{target.version}" if target.group else target.version


def _is_of(resource: api_resources.Resource, target: paths.Target) -> bool:
    return (resource.api_version, resource.plural) == (_api_version(target), target.resource)


def _reason(code: int) -> str:
    return 'User "me" cannot list resource' if code == 403 else "because"


def _as_asked(asked: Asked, document: Object) -> Object:
    """Only metadata, where no more was asked for."""
    if _METADATA not in asked.headers.get("accept", ""):
        return document
    if "items" in document:
        items = [{"metadata": each["metadata"]} for each in document["items"]]
        return {
            **document,
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "items": items,
        }
    if "metadata" not in document:
        return document
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": document["metadata"],
    }


def _line(type_: str, body: Object) -> bytes:
    return orjson.dumps({"type": type_, "object": body}) + b"\n"


def _bookmark(kind: str, api_version: str, version: int) -> Object:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": str(version)}}


@dataclasses.dataclass(frozen=True, slots=True)
class _Streamed:
    """Implements :class:`.connection.Answer` without a connection."""

    status: int
    headers: dict[str, str]
    content: aiohttp.StreamReader

    async def read(self) -> bytes:
        return await self.content.read()


class _InMemory(connection.Connection):
    """Calls the server: the way over HTTP has tests of its own."""

    def __init__(self, server: ApiServer, access: auth.ClusterAccess, time: clock.Clock) -> None:
        super().__init__(access, time)
        self._server = server

    @override
    async def _use(self, fresh: credentials.Credentials) -> None:
        """There is no session."""

    @override
    @contextlib.asynccontextmanager
    async def _answered(
        self, request: connection.Request, using: credentials.Credentials
    ) -> AsyncIterator[connection.Answer]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        sent = {"Accept": "application/json", **connection.headers(request, using)}
        asked = Asked(
            request.method,
            request.path,
            dict(request.query),
            {name.lower(): value for name, value in sent.items()},
            orjson.loads(request.body) if request.body else None,
        )
        await self._server.let_in(asked)
        answer = self._server.answer(asked)
        protocol = base_protocol.BaseProtocol(loop)
        protocol.connection_made(asyncio.Transport())
        reader = aiohttp.StreamReader(protocol, _STREAMED, loop=loop)
        if isinstance(answer, Answer):
            if answer.hang_up:
                raise aiohttp.ServerDisconnectedError(f"{using.server} hung up")
            reader.feed_data(answer.content)
            reader.feed_eof()
            yield _Streamed(answer.status, answer.headers, reader)
            return
        self._server.open(answer)
        feeding = asyncio.create_task(_feed(reader, answer), name=f"watch {asked.path}")
        try:
            yield _Streamed(200, {}, reader)
        finally:
            feeding.cancel()
            self._server.close(answer)


async def _feed(reader: aiohttp.StreamReader, stream: Stream) -> None:
    while (line := await stream.queue.get()) is not None:
        reader.feed_data(line)
    reader.set_exception(aiohttp.ClientPayloadError("the watch was cut"))


@contextlib.asynccontextmanager
async def running(server: ApiServer | None = None) -> AsyncIterator[ApiServer]:
    """Have a server, by default a new one, listen on loopback, at its ``url``."""
    server = server or ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with listening(app) as server.url:
        yield server


@contextlib.asynccontextmanager
async def listening(app: web.Application) -> AsyncIterator[str]:
    """Serve an application on loopback; give its URL."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


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


def access_to(server: str, source: auth.CredentialSource | None = None) -> auth.ClusterAccess:
    return auth.ClusterAccess("the fake server", server, source or credentials.AnonymousSource(server, {}))


def client_of(
    server: ApiServer | str,
    time: waiting.Time | None = None,
    *,
    source: auth.CredentialSource | None = None,
    done: client.RequestDone = lambda *_: None,
    rate: retries.Rate = retries.UNLIMITED,
    fence: fencing.Fence = fencing.OPEN,
) -> client.KubeClient:
    """A client that asks the server in this process, or speaks HTTP with what listens at a URL."""
    connect: Connect = connection.Connection
    if isinstance(server, ApiServer):
        connect, server = functools.partial(_InMemory, server), server.url
    return client.KubeClient(
        access_to(server, source),
        rate=rate,
        done=done,
        fence=fence,
        time=time or clocks.Pauses(),
        connect=connect,
    )
