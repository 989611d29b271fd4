"""Serves an application to a bounded number of connections, each with deadlines.

The HTTP library knows no such bound, no time for the header of a request, and names itself in every answer.
"""

import asyncio
import contextlib
import enum
import errno
import http
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from aiohttp import http_exceptions, web

from addon_operator.admission import events

_LOG: Final = logging.getLogger(__name__)
_SWEEP_SECONDS: Final = 1.0
_NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_LISTEN_PROBLEMS: Final = {
    errno.EADDRINUSE: "another process listens there",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "this user may not listen on such a low port",
}
_HEADERS_MAX: Final = 32

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections a site takes, and how long each may take, in seconds."""

    connections: int
    """How many may be open, those in the middle of a handshake too."""
    handshake: float = 10.0
    """For the handshake of TLS."""
    header: float = 10.0
    """From the first byte of a request to the end of its header."""
    request: float = 60.0
    """From the end of the header until the whole answer was taken."""
    idle: float = 600.0
    """Between two requests."""
    idle_when_crowded: float = 95.0
    """The same, once three quarters of the connections are open, of those that were of use."""
    unused_when_crowded: float = 10.0
    """The same, of those that had no good request yet."""
    unread_when_crowded: float | None = None
    """For the client to take an answer, once three quarters are open; ``None``: as long as otherwise."""
    backlog: int = 1024


class ConnectionStage(enum.Enum):
    """What a connection is doing."""

    WAITING = enum.auto()
    """For the handshake, or for a request."""
    READING = enum.auto()
    """The header of a request."""
    ANSWERING = enum.auto()


class _Member(msgspec.Struct):
    """What is known of a connection; it outlives the protocol's own knowledge."""

    since: float
    """When its stage began."""
    stage: ConnectionStage = ConnectionStage.WAITING
    useful: bool = False
    """Whether it has had a good answer."""
    transport: asyncio.Transport | None = None
    opening: asyncio.Task[None] | None = None

    def enter(self, stage: ConnectionStage, now: float) -> None:
        self.stage, self.since = stage, now

    @property
    def is_writing(self) -> bool:
        """Whether a part of an answer has not been taken yet."""
        return self.transport is not None and self.transport.get_write_buffer_size() > 0

    @property
    def may_go(self) -> bool:
        """Whether nothing good is cut off if it is closed now."""
        return self.stage is not ConnectionStage.ANSWERING and not self.is_writing

    @property
    def is_unread(self) -> bool:
        """Whether the answer is complete, and the client does not take it."""
        return self.stage is ConnectionStage.WAITING and self.is_writing

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class _SiteConnection(web.RequestHandler):
    """The library's protocol, which also knows where the connection stands."""

    __slots__ = ("context", "member", "sites")

    def __init__(self, sites: "Connections", member: _Member, context: ssl.SSLContext | None) -> None:
        super().__init__(
            sites.server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=sites.bounds.idle,
            logger=HttpLog(_LOG),  # type: ignore[arg-type]  # the library's own adapters are none, either
            access_log=None,  # type: ignore[arg-type]  # its runner hands on None as well
            max_headers=_HEADERS_MAX,
            # Nobody who asks compresses, and a small body must not become a large one.
            auto_decompress=False,
        )
        self.sites = sites
        self.member = member
        self.context = context

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - sockets have no others
        self.member.transport = transport
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.sites.forget(self.member)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.member.stage is ConnectionStage.WAITING:
            self.member.enter(ConnectionStage.READING, self.sites.now())
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        # For the sake of what it logs; its text would repeat what was sent.
        super().handle_error(request, status, exc, message)
        return _Nameless(status)


class _Nameless(web.Response):
    """An answer to what is not HTTP: no application is asked about those, so its signals do not help."""

    def __init__(self, status: int) -> None:
        super().__init__(status=status, text=f"{status} {http.HTTPStatus(status).phrase}\n")
        self.force_close()

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.popall("Server", None)


class HttpLog(logging.LoggerAdapter[logging.Logger]):
    """The log of the HTTP library, without a traceback for every client that does not speak HTTP."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **kwargs: Any) -> None:  # noqa: ANN401 - the signature of the standard library
        """Log as the library does, but only at level debug for what clients do wrong."""
        level = logging.DEBUG if isinstance(exc_info, http_exceptions.HttpProcessingError) else logging.ERROR
        self.log(level, msg, *args, exc_info=exc_info, **kwargs)


class Connections:
    """All connections to one application, from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        app: web.Application,
        bounds: Bounds,
        *,
        shutdown_seconds: float,
        closed: Callable[[events.Closing, str], None] = lambda *_: None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        """Call ``closed`` for each connection that was closed for a bound, with details if any.

        ``tls`` gives the context for the next handshake. ``now`` is a clock in seconds.
        """
        app.middlewares.insert(0, _followed)
        app.on_response_prepare.append(_hide_name)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=shutdown_seconds)
        self.bounds = bounds
        self._closed = closed
        self._tls = tls
        self.now = now or (lambda: asyncio.get_running_loop().time())
        self.members: dict[int, _Member] = {}
        self._listeners: Sequence[socket.socket] = ()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def server(self) -> web.Server:
        """What the library hands requests to."""
        assert self._runner.server is not None  # noqa: S101 - it was set up
        return self._runner.server

    @property
    def number(self) -> int:
        """How many are open."""
        return len(self.members)

    async def start(self, listeners: Sequence[socket.socket]) -> None:
        """Take connections from these sockets, which are closed at the end."""
        await self._runner.setup()
        self._listeners = listeners
        for each in listeners:
            each.setblocking(False)
        self._tasks = [asyncio.create_task(self._accept(each)) for each in listeners]
        self._tasks.append(asyncio.create_task(self._sweep_for_ever()))

    def close_listeners(self) -> None:
        """Take no more connections; those that are open stay."""
        for task in self._tasks:
            task.cancel()
        for listener in self._listeners:
            listener.close()

    async def stop(self) -> None:
        """Take no more connections, answer what is being asked, then close all."""
        self.close_listeners()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        opening = [member.opening for member in self.members.values() if member.opening is not None]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        await self._runner.cleanup()

    def forget(self, member: _Member) -> None:
        """Forget a connection that is closed."""
        self.members.pop(id(member), None)

    def sweep(self) -> None:
        """Close what takes too long, and what is idle if there is little room left."""
        now, bounds, crowded = self.now(), self.bounds, self.number * 4 >= self.bounds.connections * 3
        for member in list(self.members.values()):
            age = now - member.since
            if age > self._longest(member, crowded=crowded):
                self._end(member, "slow")
            elif crowded and member.may_go:
                longest = bounds.idle_when_crowded if member.useful else bounds.unused_when_crowded
                if age > longest:
                    self._end(member, "made room")

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                self.sweep()
            except Exception:  # noqa: BLE001 - one connection must not keep the others open
                _LOG.exception("connections were not looked at")

    def _longest(self, member: _Member, *, crowded: bool) -> float:
        if crowded and member.is_unread and self.bounds.unread_when_crowded is not None:
            return self.bounds.unread_when_crowded
        if member.stage is ConnectionStage.READING:
            return self.bounds.header
        if member.stage is ConnectionStage.ANSWERING or member.is_writing:
            return self.bounds.request
        return self.bounds.idle

    def _end(self, member: _Member, reason: events.Closing) -> None:
        self.forget(member)
        member.abort()
        self._closed(reason, "")

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                # Otherwise it was the client who went away again.
                if error.errno in _NO_RESOURCES:
                    _LOG.warning("connections wait: %s", error.strerror)
                    await asyncio.sleep(_SWEEP_SECONDS)
                continue
            try:
                self._take(accepted)
            except Exception:  # noqa: BLE001 - one connection must not keep others from being taken
                _LOG.exception("a connection was not taken")
                accepted.close()
            # Those that wait are accepted without a pause; others want their turn.
            await asyncio.sleep(0)

    def _take(self, accepted: socket.socket) -> None:
        if self.number >= self.bounds.connections:
            leaving = [member for member in self.members.values() if member.may_go]
            if not leaving:
                accepted.close()
                self._closed("no room", "")
                return
            # Who never had a good request goes first, then who is idle for longest.
            self._end(min(leaving, key=lambda member: (member.useful, member.since)), "made room")
        member = _Member(self.now())
        self.members[id(member)] = member
        member.opening = asyncio.create_task(self._open(accepted, member))
        # A task that is cancelled before its first step does nothing itself.
        member.opening.add_done_callback(lambda _: self._opened(accepted, member))

    def _opened(self, accepted: socket.socket, member: _Member) -> None:
        member.opening = None
        if member.transport is None:
            self.forget(member)
            accepted.close()

    async def _open(self, accepted: socket.socket, member: _Member) -> None:
        loop = asyncio.get_running_loop()
        context = self._tls() if self._tls else None
        connection = _SiteConnection(self, member, context)
        try:
            await loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=context,
                ssl_handshake_timeout=self.bounds.handshake if context else None,
                ssl_shutdown_timeout=1.0 if context else None,
            )
        except OSError as error:
            self._closed("handshake", getattr(error, "reason", None) or str(error))


async def bind(address: str, port: int, backlog: int) -> list[socket.socket]:
    """Listen on all addresses of a name; with port 0 on any free port.

    Addresses of the name that the machine does not have are skipped.

    Raises ``OSError`` with the number of the reason.
    """
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    absent = OSError(errno.EADDRNOTAVAIL, "there is no such address")
    with contextlib.ExitStack() as failing:
        sockets = []
        for family, _, _, _, where in dict.fromkeys(addresses):
            try:
                listener = socket.create_server(where, family=family, backlog=backlog)
                sockets.append(failing.enter_context(listener))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
        if not sockets:
            raise absent
        failing.pop_all()
    return sockets


def listen_problem(error: OSError) -> str:
    """Say in the words of a user why :func:`bind` could not listen."""
    return _LISTEN_PROBLEMS.get(error.errno or 0) or error.strerror or str(error)


def context_of(request: web.Request) -> ssl.SSLContext | None:
    """Return the context with which the handshake of a request's connection was made."""
    protocol = request.protocol
    return protocol.context if isinstance(protocol, _SiteConnection) else None


@web.middleware
async def _followed(request: web.Request, handler: Handler) -> web.StreamResponse:
    connection = request.protocol
    if not isinstance(connection, _SiteConnection):
        return await handler(request)
    member, now = connection.member, connection.sites.now
    member.enter(ConnectionStage.ANSWERING, now())
    try:
        response = await handler(request)
    finally:
        member.enter(ConnectionStage.WAITING, now())
    member.useful |= response.status < 400
    return response


async def _hide_name(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall("Server", None)
