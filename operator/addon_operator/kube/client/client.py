"""The client of the Kubernetes API: objects by path, typed errors, retries.

Objects are plain mappings as the API writes them. All methods raise
:class:`.ApiError` (by status: ``NotFound``, ``Conflict``, ``Forbidden`` …) when the
server refuses, ``Unreachable`` when no answer came, ``BrokenAnswer`` for one that is not a JSON object,
``AccessError`` when there are no credentials, and ``Fenced`` for a write of a replica that does not lead.

Retries: credentials that are refused (401) are read again once; an overloaded server (429) is asked again;
reads are repeated after 5xx and broken connections. A create or patch is never sent twice unless the server
said that it did not take it; a replace or delete may be, by HTTP itself, when a kept connection was closed.
"""

import contextlib
import dataclasses
import enum
import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, Self

import aiohttp
import msgspec
import orjson

from addon_operator.aio import waiting
from addon_operator.kernel import clock, fencing
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth, credentials
from addon_operator.kube.client import connection, retries

Object = dict[str, Any]
"""An object of the API as decoded JSON."""

PAGE_SIZE: Final = 500
_FIRST_PAGE: Final = 5
"""Objects of a page of which nobody knows yet how large they are."""
_PAGE_BYTES: Final = 2 << 20
"""How large a page is meant to be that is read at once."""
FIELD_MANAGER: Final = "addon-operator"
_JSON: Final = "application/json"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NO_ANSWER: Final = "<error>"


class PatchType(enum.StrEnum):
    """How a patch is written; the value is its media type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ObjectList(msgspec.Struct, frozen=True):
    """All objects of a collection at one moment."""

    items: list[Object]
    resource_version: str
    """Where a watch goes on from."""


RequestDone = Callable[[paths.Target, str, str, float], None]
"""Called after each try of a request with its method, its HTTP status or ``<error>``, and its seconds."""


class KubeClient:
    """Requests to one API server; an asynchronous context manager, to be used in one event loop."""

    def __init__(
        self,
        access: auth.ClusterAccess,
        *,
        rate: retries.Rate = retries.UNLIMITED,
        done: RequestDone = lambda *_: None,
        fence: fencing.Fence = fencing.OPEN,
        time: waiting.Time | None = None,
        connect: Callable[[auth.ClusterAccess, clock.Clock], connection.Connection] = connection.Connection,
    ) -> None:
        """``done`` is called after each request; ``fence`` is asked before each write.

        ``connect`` makes what carries the requests; by default that is HTTP.
        """
        self.access = access
        self._time = time or waiting.SystemTime()
        self._connection = connect(access, self._time)
        self._limiter = retries.RateLimiter(rate, self._time)
        self._done = done
        self._fence = fence

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def current_credentials(self, *, renew: bool = False) -> credentials.Credentials:
        """Return credentials for another client of this server, such as Kopf's; ``renew`` reads them anew."""
        current = await self._connection.current()
        return await self._connection.renew(current) if renew else current

    async def get(
        self, path: str, *, query: Mapping[str, str] | None = None, metadata_only: bool = False
    ) -> Object:
        """Return the object, or whatever JSON object stands at the path."""
        headers = {"Accept": f"{_METADATA},{_JSON}"} if metadata_only else {}
        return await self.document(connection.Request("GET", path, query or {}, headers))

    async def list_all(
        self,
        path: str,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        page_size: int = PAGE_SIZE,
    ) -> ObjectList:
        """List all objects of the collection, in pages; begins again once if the server lost its place."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {key: value for key, value in selectors.items() if value}
        headers = {"Accept": f"{_METADATA_LIST},{_JSON}"} if metadata_only else {}
        request = connection.Request("GET", path, query, headers)
        try:
            return await self._pages(request, page_size)
        except api_errors.Gone:
            return await self._pages(request, page_size=0)

    async def pages(
        self, path: str, *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[list[Object]]:
        """Yield the objects of a collection some at a time, and fewer the larger they are.

        Raises :class:`.Gone` if the server loses its place.
        """
        limit, token = _FIRST_PAGE, ""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        selected = {key: value for key, value in selectors.items() if value}
        while True:
            query = selected | {"limit": str(limit)}
            request = connection.Request("GET", path, query | ({"continue": token} if token else {}))
            response = await self.request(request)
            page = decoded(request, response)
            items: list[Object] = page.get("items") or []
            yield items
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return
            limit = max(1, min(PAGE_SIZE, _PAGE_BYTES * len(items) // max(1, len(response.body))))

    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> Object:
        """Create an object in the collection at ``path``; raises ``AlreadyExists`` if its name is taken."""
        return await self._write("POST", path, body, query)

    async def replace(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> Object:
        """Replace the object; raises ``Conflict`` if it has a resourceVersion that is not the current one."""
        return await self._write("PUT", path, body, query)

    async def patch(
        self,
        path: str,
        patch: Mapping[str, Any] | list[Any],
        type_: PatchType = PatchType.MERGE,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Change the object; a JSON patch is a list, all others are mappings."""
        return await self._write("PATCH", path, patch, query, media_type=type_.value)

    async def apply(
        self, path: str, body: Mapping[str, Any], *, field_manager: str = FIELD_MANAGER, force: bool = False
    ) -> Object:
        """Apply on the server's side; raises ``Conflict`` over fields of other managers without ``force``."""
        query = {"fieldManager": field_manager, "force": str(force).lower()}
        return await self.patch(path, body, PatchType.APPLY, query=query)

    async def delete(
        self,
        path: str,
        *,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> Object:
        """Delete the object, if given only with that uid and resourceVersion; raises ``NotFound``."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if preconditions_body := {key: value for key, value in preconditions.items() if value}:
            options["preconditions"] = preconditions_body
        return await self._write("DELETE", path, options, None)

    async def request(self, request: connection.Request, *, limited: bool = True) -> connection.Response:
        """Send any request, with the retries of this client; a status of 400 or more is raised as its error.

        ``limited=False`` keeps it out of the rate limit, as discovery is.
        """
        target = paths.target(request.method, request.path, watch="watch" in request.query)
        number, renewed = 1, False
        while True:
            using = await self._connection.current()
            if limited:
                await self._limiter.wait()
            outcome = await self._try(request, target, using)
            if isinstance(outcome, connection.Response) and outcome.status < 400:
                return outcome
            if _status(outcome) == 401 and not renewed:
                renewed = True
                await self._connection.renew(using)
                continue
            await self._pause_or_raise(request, target, outcome, number)
            number += 1

    async def document(self, request: connection.Request, *, limited: bool = True) -> Object:
        """Return the JSON object in the answer to any request; see :meth:`request`."""
        return decoded(request, await self.request(request, limited=limited))

    @contextlib.asynccontextmanager
    async def stream(self, request: connection.Request) -> AsyncIterator[aiohttp.StreamReader]:
        """Open the answer to a watch, to be read while it comes in.

        Nothing is retried; credentials that were refused are renewed for the next try. ``Unreachable`` is
        raised also when the stream breaks.
        """
        await self._limiter.wait()
        using = await self._connection.current()
        target = paths.target(request.method, request.path, watch=True)
        started, answered = self._time.monotonic(), False
        try:
            async with self._connection.open(request, using) as answer:
                answered = True
                seconds = self._time.monotonic() - started
                self._done(target, request.method, str(answer.status), seconds)
                if answer.status == 401:
                    await self._connection.renew(using)
                if answer.status >= 400:
                    chosen = self._connection.chosen
                    raise api_errors.from_answer(target, answer.status, await answer.read(), chosen=chosen)
                yield answer.content
        except api_errors.Unreachable:
            if not answered:
                seconds = self._time.monotonic() - started
                self._done(target, request.method, _NO_ANSWER, seconds)
            raise

    async def _pages(self, request: connection.Request, page_size: int) -> ObjectList:
        items: list[Object] = []
        query = dict(request.query) | ({"limit": str(page_size)} if page_size else {})
        while True:
            page = await self.document(dataclasses.replace(request, query=query))
            items += page.get("items") or []
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return ObjectList(items, metadata.get("resourceVersion", ""))
            query = query | {"continue": metadata["continue"]}

    async def _write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | list[Any],
        query: Mapping[str, str] | None,
        *,
        media_type: str = _JSON,
    ) -> Object:
        # Mappings of the caller may be any, orjson wants a dict at the top.
        data = orjson.dumps(body if isinstance(body, list) else dict(body))
        headers = {"Content-Type": media_type}
        return await self.document(connection.Request(method, path, query or {}, headers, data))

    async def _try(
        self, request: connection.Request, target: paths.Target, using: credentials.Credentials
    ) -> connection.Response | api_errors.Unreachable:
        request = self._fenced(request)
        started = self._time.monotonic()
        outcome: connection.Response | api_errors.Unreachable
        try:
            outcome = await self._connection.send(request, using)
        except api_errors.Unreachable as error:
            outcome = error
        code = str(_status(outcome) or _NO_ANSWER)
        self._done(target, request.method, code, self._time.monotonic() - started)
        return outcome

    def _fenced(self, request: connection.Request) -> connection.Request:
        """End a write before the right to write does: it could wait for a connection until then."""
        if request.method in retries.READS:
            return request
        try:
            self._fence.check()
        except fencing.FencedError as error:
            raise api_errors.Fenced(str(error)) from error
        left = self._fence.remaining()
        if left == math.inf:
            return request
        return dataclasses.replace(request, timeout=min(left, request.timeout or left))

    async def _pause_or_raise(
        self,
        request: connection.Request,
        target: paths.Target,
        outcome: connection.Response | api_errors.Unreachable,
        number: int,
    ) -> None:
        answered = outcome if isinstance(outcome, connection.Response) else None
        asked = retries.parse_retry_after(answered.headers.get("Retry-After")) if answered else None
        delay = retries.delay(number, request.method, _status(outcome), asked, self._time.jitter())
        if delay is not None:
            await self._time.sleep(delay)
        elif isinstance(outcome, api_errors.Unreachable):
            raise outcome
        else:
            chosen = self._connection.chosen
            raise api_errors.from_answer(target, outcome.status, outcome.body, chosen=chosen)


def decoded(request: connection.Request, response: connection.Response) -> Object:
    """Return the JSON object in an answer; raises :class:`.BrokenAnswer` for anything else."""
    try:
        document = orjson.loads(response.body)
    except orjson.JSONDecodeError as error:
        raise api_errors.BrokenAnswer(
            f"{_answer_to(request)} is not JSON ({error}); is it an API server that answers, and not a proxy "
            "or a login page?"
        ) from error
    if not isinstance(document, dict):
        raise api_errors.BrokenAnswer(f"{_answer_to(request)} is not a JSON object")
    return document


def _status(outcome: connection.Response | api_errors.Unreachable) -> int | None:
    return outcome.status if isinstance(outcome, connection.Response) else None


def _answer_to(request: connection.Request) -> str:
    return f"the answer of the API server to {request.method} {request.path}"
