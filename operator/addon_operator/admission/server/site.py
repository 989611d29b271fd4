"""The HTTPS site that the API server sends admission reviews to.

A review, from the request to its answer:

1. Take only what begins with the random part of the path, where it has one, and is JSON, and nothing before
   the presets are known: 403, 415 and 503 say so.
2. Read the body within a time, a size and a budget of memory that all reviews share; what is over one of
   them is refused with 408, 413 or 503, and its connection closed.
3. Parse it, and see that it is what the API server may ask at this path.
4. Let the handler of the route decide, within the time that the API server still waits.
5. Answer with its verdict. An error or a timeout of the handler allows what was asked: a mistake of the
   operator must not keep a cluster from working.

What is refused in 1 to 3 is a failed call for the API server, which then does as ``failurePolicy`` says.

Kopf's own server is not used: it refuses reviews over 1 MiB, allows what is sent to an unknown path, and
closes its socket to change its certificate.
"""

# ruff: noqa: A005 - only ever imported as a part of its package

import asyncio
import contextlib
import functools
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from addon_operator.admission import events, review_budget, review_shapes, reviews
from addon_operator.admission.certificates import certificate_store, tls
from addon_operator.admission.server import connections
from addon_operator.aio import waiting
from addon_operator.kernel import clock, errors

MAX_BODY_BYTES: Final = 20 << 20
"""Room for a review of the largest request that the API server takes (3 MiB), each byte escaped with six."""
MAX_REVIEW_MEMORY: Final = 128 << 20
"""What one review may take of the account: half, so that one client cannot have all of it."""
# Go's client gives up idle connections after 90 seconds. It has to be the one who closes: a review that
# meets a closing connection is not sent again. So idle ones are kept longer than that even when there is
# little room, unless they never carried a review. The API server opens one for each review that it waits for.
# A hook may take the 30 seconds that the API server waits at most.
CONNECTIONS: Final = connections.Bounds(connections=512, request=35.0, idle=600.0, idle_when_crowded=95.0)
NOT_READY: Final = "the operator has not read all that it needs for an answer yet"
"""Why reviews are refused at first: whoever starts the operator expects that."""
_JSON: Final = "application/json"
_KEY: Final = "key"
_BODY_SECONDS: Final = 5.0
# With half a second before it: what a hook may take that says nothing of its time.
_SHUTDOWN_SECONDS: Final = 9.0
# Of the time that the API server waits, kept for the way back.
_MARGIN_SECONDS: Final = 0.25

_HOW_TO_MOVE: Final = "choose others with ADMISSION_SERVER_LISTEN_ADDRESS and ADMISSION_SERVER_LISTEN_PORT"

_Endpoint = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Leaving(msgspec.Struct, frozen=True):
    """The seconds of the two steps in which a site that was used stops: no review meets a closed port.

    First every answer ends its connection, while new ones are still taken: the Service learns only by and by
    that this replica goes. Then no new ones are taken, but those that were are answered.
    """

    accepting: float = 0.0
    answering: float = 0.0
    sleep: waiting.Sleep = asyncio.sleep


AT_ONCE: Final = Leaving()
GRADUALLY: Final = Leaving(accepting=2.0, answering=0.5)


class AdmissionListenError(errors.ConfigurationError):
    """The address and port of the admission server cannot be listened on."""


class Route(msgspec.Struct, frozen=True):
    """Who answers the reviews of a path."""

    handler: reviews.ReviewHandler | reviews.BodyHandler
    """What it raises, or takes too long for, is allowed: an error of ours never refuses anything."""
    timeout: float = 4.5
    """Seconds that the handler may take; fewer if the API server says that it waits less."""
    shape: review_shapes.ReviewShape = review_shapes.ANY
    """What the API server can ask at this path; anything else is refused."""
    max_body: int = MAX_BODY_BYTES
    raw: bool = False
    """Whether the handler gets the review as it was sent, its objects unread. What it raises, or takes too
    long for, is a failed call for the API server then."""
    ready: Callable[[], bool] | None = None
    """Whether reviews are answered, where that does not depend on what the site waits for."""
    account: review_budget.MemoryBudget | None = None
    """What its reviews are held on, where others must not find that used up."""
    guard: certificate_store.CertificateStore | None = None
    """Who knows the random part that the path begins with, and without which nothing is read or run."""


class ListenOptions(msgspec.Struct, frozen=True):
    """Where a site listens, and how it leaves."""

    address: str
    port: int
    """0 takes any free port."""
    leaving: Leaving = AT_ONCE


class _RefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class AdmissionSite:
    """Serves the routes from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        tls_: tls.LiveTls,
        place: ListenOptions,
        tell: events.Listener,
        account: review_budget.MemoryBudget,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """Answer reviews with 503 until ``ready`` says yes: for the API server a call that failed.

        What is in work is held on the ``account``.
        """
        self._routes = routes
        self._tls = tls_
        self._place = place
        self.port = place.port
        """The port that is listened on, also when it was asked for port 0."""
        self._tell = tell
        self._ready = ready
        self._account = account
        self._connections: connections.Connections | None = None
        self._was_asked = False
        self._stopping = False

    @property
    def ready(self) -> bool:
        """Whether reviews are answered."""
        return self._connections is not None and not self._stopping and self._ready()

    async def start(self) -> None:
        """Listen; raises :class:`AdmissionListenError` when the address cannot be used."""
        try:
            listeners = await connections.bind(self._place.address, self.port, CONNECTIONS.backlog)
        except OSError as error:
            raise AdmissionListenError(
                f"the admission server cannot listen on {self._place.address} port {self.port}: "
                f"{connections.listen_problem(error)}; {_HOW_TO_MOVE}"
            ) from error
        self._connections = connections.Connections(
            self._application(),
            CONNECTIONS,
            shutdown_seconds=_SHUTDOWN_SECONDS,
            closed=lambda *closed: self._tell(events.ConnectionClosed(*closed)),
            tls=lambda: self._tls.context,
        )
        await self._connections.start(listeners)
        self.port = listeners[0].getsockname()[1]

    async def stop(self) -> None:
        """Take no further connections, answer what is being asked, then close all."""
        leaves = self._was_asked and not self._stopping
        self._stopping = True
        if leaves:
            await self._place.leaving.sleep(self._place.leaving.accepting)
        if self._connections is not None:
            self._connections.close_listeners()
        if leaves:
            await self._place.leaving.sleep(self._place.leaving.answering)
        if self._connections is not None:
            await self._connections.stop()

    def _application(self) -> web.Application:
        app = web.Application()
        for path, route in self._routes.items():
            app.router.add_post(path, self._endpoint(path, route))
            if route.guard is not None:
                app.router.add_post(f"/{{{_KEY}}}{path}", self._endpoint(path, route))
        return app

    def _endpoint(self, path: str, route: Route) -> _Endpoint:
        async def respond(request: web.Request) -> web.Response:
            began = time.perf_counter()
            self._was_asked = True
            response = await self._respond(path, route, request)
            if self._stopping or connections.context_of(request) is not self._tls.context:
                response.force_close()
            is_lost = request.transport is None or request.transport.is_closing()
            if route.guard is not None and is_lost and response.status != 403:
                # After its timeout the API server quotes the address in its error, and not what we answer.
                route.guard.expose()
            self._tell(events.ReviewAnswered(path, response.status, time.perf_counter() - began))
            return response

        return respond

    async def _respond(self, path: str, route: Route, request: web.Request) -> web.Response:
        try:
            body = await self._answer(path, route, request)
        except _RefusedError as error:
            self._tell(events.ReviewRefused(path, error.status, error.reason))
            response = web.Response(status=error.status, text=f"{error.reason}\n")
            # The rest of a body that was not read must not be taken for the next request.
            response.force_close()
            return response
        return web.Response(body=body, content_type=_JSON)

    async def _answer(self, path: str, route: Route, request: web.Request) -> bytes:
        await self._check(request, route)
        try:
            account = route.account or self._account
            with account.request() as held:
                body = await _body(request, route.max_body, held)
                if isinstance(route.handler, reviews.BodyHandler):
                    # Nobody says who reads what is to be converted: all of them are one.
                    with account.share("", held):
                        return await self._answered(
                            path, route.handler, request, body, _budget(route, request)
                        )
                review = _review(route, request, body)
                review = msgspec.structs.replace(review, memory=held.amount)
                del body
                # What hooks answer waits for long: one who floods must leave room for others, also where a
                # controller asks for all of them, such as that of ReplicaSets.
                owner = review.namespace, review.user
                with account.share(owner, held) if route.raw else contextlib.nullcontext():
                    return await self._decided(path, route, route.handler, review, _budget(route, request))
        except review_budget.OverloadedError as error:
            raise _RefusedError(503, "too many reviews are being answered") from error

    async def _check(self, request: web.Request, route: Route) -> None:
        if route.guard is not None and not await route.guard.accepts(request.match_info.get(_KEY, "")):
            raise _RefusedError(403, "the path is not the one that is registered now")
        if request.content_type != _JSON:
            raise _RefusedError(415, f"the Content-Type is {request.content_type!r}: send {_JSON}")
        if "Content-Encoding" in request.headers:
            raise _RefusedError(415, "the body has a Content-Encoding: send it as it is")
        if not (route.ready or self._ready)():
            raise _RefusedError(503, NOT_READY)

    async def _answered(
        self, path: str, handler: reviews.BodyHandler, request: web.Request, body: bytes, seconds: float
    ) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                return await handler.answer(request.match_info.get("name", ""), body, seconds)
        except reviews.MalformedReviewError as error:
            raise _RefusedError(400, str(error)) from error
        except Exception as error:
            self._tell(events.HandlerFailed(path, error, is_allowed=False))
            raise _RefusedError(500, "the operator failed; its log says more") from error

    async def _decided(
        self, path: str, route: Route, handler: reviews.ReviewHandler, review: reviews.Review, seconds: float
    ) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                verdict = await handler.decide(review)
            return reviews.answer(review, verdict)
        except reviews.UnansweredError as error:
            # Of all statuses the API server shows the sentence of this one.
            raise _RefusedError(500, str(error)) from error
        except Exception as error:
            self._tell(events.HandlerFailed(path, error, is_allowed=not route.raw))
            if route.raw:
                raise _RefusedError(500, "the operator failed; its log says more") from error
        return reviews.answer(review, reviews.ALLOWED)


async def _body(request: web.Request, most: int, held: review_budget.Reservation) -> bytes:
    """Read the body, whose memory is held bit by bit as it arrives."""
    if (request.content_length or 0) > most:
        raise _too_large(most)
    parts, size, estimate = [], 0, review_budget.Estimate()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise _too_large(most)
                held.grow(estimate.add(part))
                if held.amount > MAX_REVIEW_MEMORY:
                    raise _RefusedError(413, "the review would take too much memory")
    except (ConnectionError, web.RequestPayloadError) as error:
        raise _RefusedError(400, "the body broke off, or is not a body of HTTP") from error
    except TimeoutError as error:
        raise _RefusedError(408, f"the body did not arrive within {_BODY_SECONDS:g} seconds") from error
    return b"".join(parts)


def _review(route: Route, request: web.Request, body: bytes) -> reviews.Review:
    try:
        review = reviews.parse(body, has_objects=not route.raw)
        route.shape.check(review)
    except reviews.MalformedReviewError as error:
        raise _RefusedError(400, str(error)) from error
    if not route.raw:
        return review
    waits = _waits(request)
    key = request.match_info.get(_KEY)
    path = request.path if key is None else request.path.removeprefix(f"/{key}")
    return msgspec.structs.replace(review, path=path, sent=body, seconds=math.inf if waits is None else waits)


def _too_large(most: int) -> _RefusedError:
    return _RefusedError(413, f"the body is over {most} bytes")


def _budget(route: Route, request: web.Request) -> float:
    """Return seconds for the handler; the API server says in the query how long it waits: ``?timeout=5s``."""
    waits = _waits(request)
    if waits is None:
        return route.timeout
    return min(route.timeout, max(_MARGIN_SECONDS, waits - _MARGIN_SECONDS))


def _waits(request: web.Request) -> float | None:
    return _seconds(request.query.get("timeout", ""))


@functools.lru_cache(maxsize=64)
def _seconds(text: str) -> float | None:
    try:
        return clock.parse_duration(text)
    except errors.AddonOperatorError:
        return None
