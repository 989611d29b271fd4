"""HTTP with the API server: sessions, credentials that change, and failures as sentences.

A session of our own on aiohttp, not the client of ``kubernetes.aio``: one GET costs a fifth (98 against 474
microseconds), and watches need the raw stream.
"""

import asyncio
import contextlib
import dataclasses
import hashlib
import logging
import os
import pathlib
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

import aiohttp
import msgspec
import yarl

import addon_operator
from addon_operator.kernel import clock
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth, credentials

_log = logging.getLogger(__name__)

USER_AGENT: Final = f"addon-operator/{addon_operator.__version__}"
_CLOSED_MEANWHILE: Final = "Connection closed."
"""What aiohttp says, as a RuntimeError, to who reads an answer whose connection this process has closed."""
_CONNECT_SECONDS: Final = 10.0
_READ_BUFFER: Final = 1 << 17
"""Of a stream that is read slower than it comes; with what is read at once, a piece that is worked on stays
below a MiB."""


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without what the connection adds."""

    method: str
    path: str
    """Path with every name quoted already."""
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = dataclasses.field(default=None, repr=False)
    timeout: float | None = 60.0
    """Seconds for the whole exchange; ``None`` for streams."""
    most_bytes: int | None = None
    """How large the answer may be, where nobody depends on it; ``None`` for any size."""


@dataclasses.dataclass(frozen=True, slots=True)
class Response:
    """One whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes = dataclasses.field(repr=False)


class Answer(Protocol):
    """An answer while it comes in."""

    @property
    def status(self) -> int:
        """Its HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, by names of any case."""
        ...

    @property
    def content(self) -> aiohttp.StreamReader:
        """Its body, to be read piece by piece."""
        ...

    async def read(self) -> bytes:
        """Return the whole body."""
        ...


class Connection:
    """The sessions to one API server.

    Opened on first use. Credentials are read again when they expire, when :meth:`renew` is called, and when
    the server's certificate is not trusted and the files with the authorities have changed. A new session is
    made only if what TLS needs has changed: authorities and client certificates are rotated in place.
    """

    def __init__(self, access: auth.ClusterAccess, time: clock.Clock) -> None:
        self._access = access
        self._clock = time
        self._lock = asyncio.Lock()
        self._credentials: credentials.Credentials | None = None
        self._transport: Transport | None = None
        self._distrusted = False
        self._session: aiohttp.ClientSession | None = None
        self._retired: aiohttp.ClientSession | None = None

    @property
    def chosen(self) -> str:
        """The context, and its files, that name the server; empty in a pod."""
        return self._access.chosen

    async def close(self) -> None:
        """Close all sessions; requests on their way fail."""
        for session in (self._session, self._retired):
            if session is not None:
                await session.close()
        self._session = self._retired = None

    async def current(self) -> credentials.Credentials:
        """Return credentials that have not expired, as far as is known."""
        current = self._credentials
        if current is None or (current.expires is not None and self._clock.time() >= current.expires):
            return await self.renew(current)
        if self._distrusted and await asyncio.to_thread(transport_of, current) != self._transport:
            return await self.renew(current)
        return current

    async def renew(self, stale: credentials.Credentials | None) -> credentials.Credentials:
        """Read credentials again unless someone has done so since ``stale`` was in use."""
        async with self._lock:
            if self._credentials is None or self._credentials is stale:
                fresh = await self._access.source.load()
                await self._use(fresh)
                self._credentials = fresh
            return self._credentials

    async def _use(self, fresh: credentials.Credentials) -> None:
        transport = await asyncio.to_thread(transport_of, fresh)
        self._distrusted = False
        if self._session is not None and transport == self._transport:
            return
        try:
            session = await open_session(fresh)
        except api_errors.AccessError as error:
            if self._session is None:
                raise
            # What was there before may well go on; the next time credentials are read it is tried again.
            _log.warning("the connections to the API server stay as they were: %s", error)
            return
        self._transport = transport
        # Requests and watches of the last session go on; those of the one before have had their time.
        if self._retired is not None:
            await self._retired.close()
        self._retired, self._session = self._session, session

    async def send(self, request: Request, using: credentials.Credentials) -> Response:
        """Send a request and return the whole answer, whatever its status.

        Raises :class:`.Unreachable` if none came, and :class:`.BrokenAnswer` if it is too large.
        """
        async with self.open(request, using) as answer:
            return Response(answer.status, answer.headers, await _body(request, answer))

    @contextlib.asynccontextmanager
    async def open(self, request: Request, using: credentials.Credentials) -> AsyncIterator[Answer]:
        """Open the answer as a stream; failures while it is read become ``Unreachable`` too."""
        try:
            async with self._answered(request, using) as answer:
                yield answer
        except (aiohttp.ClientError, OSError) as error:
            self._distrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
            raise api_errors.Unreachable(sentence_of(error, using.server, self._access)) from error
        except RuntimeError as error:
            if str(error) != _CLOSED_MEANWHILE:
                raise
            raise api_errors.Unreachable(f"the connection to {using.server} was closed") from error

    @contextlib.asynccontextmanager
    async def _answered(self, request: Request, using: credentials.Credentials) -> AsyncIterator[Answer]:
        if self._session is None:
            raise api_errors.Unreachable(f"the connection to {using.server} is closed")
        async with self._session.request(
            request.method,
            yarl.URL(using.server + request.path, encoded=True).update_query(request.query),
            data=request.body,
            headers=headers(request, using),
            proxy=using.proxy,
            server_hostname=using.tls_server_name,
            timeout=aiohttp.ClientTimeout(total=request.timeout, sock_connect=_CONNECT_SECONDS),
            allow_redirects=False,
        ) as answer:
            try:
                yield answer
            finally:
                _drop(answer)


async def _body(request: Request, answer: Answer) -> bytes:
    if request.most_bytes is None:
        return await answer.read()
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > request.most_bytes:
            raise api_errors.BrokenAnswer(
                f"the answer of the API server to {request.method} {request.path} is larger than "
                f"{request.most_bytes >> 20} MiB"
            )
    return bytes(body)


def _drop(answer: aiohttp.ClientResponse) -> None:
    """Let go of the connection of an answer that was not read to its end: a watch that is left.

    To part politely, TLS waits for the server's answer to that, and one that is gone gives none: the socket
    would stay open for half a minute, and outlive the session.
    """
    if answer.connection is not None and answer.connection.transport is not None:
        answer.connection.transport.abort()


async def open_session(using: credentials.Credentials) -> aiohttp.ClientSession:
    """Open a session for the server of these credentials, without its ``Authorization`` header.

    Raises :class:`.AccessError` for certificates that cannot be used.
    """
    return aiohttp.ClientSession(
        connector=await connector_to(using),
        headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=_READ_BUFFER,
    )


async def connector_to(using: credentials.Credentials) -> aiohttp.TCPConnector:
    """Make a connector to the server of these credentials, for as many connections as are asked for.

    Raises :class:`.AccessError` for certificates that cannot be used.
    """
    context = await asyncio.to_thread(_tls, using) if using.server.startswith("https:") else False
    return aiohttp.TCPConnector(ssl=context, limit=0)


def _tls(using: credentials.Credentials) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=using.ca_file)
        # Python ≥ 3.13 refuses authorities without a key usage; many clusters have such, and Go takes them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if using.certificate_file is not None:
            context.load_cert_chain(using.certificate_file, using.key_file)
    except (ssl.SSLError, OSError) as error:
        raise api_errors.AccessError(
            f"the certificates for {using.server} cannot be used ({_reason(error)}): correct those that the "
            "kubeconfig holds or names, or choose another one with --kubeconfig or KUBECONFIG"
        ) from error
    if not using.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Transport(msgspec.Struct, frozen=True):
    """What connections stand on; as long as it stays the same, a session goes on."""

    settings: credentials.Credentials
    """Without what is sent with each request."""
    files: tuple[bytes | None, ...]
    """Digests of the files with certificates and keys; ``None`` for one that is not there."""


def transport_of(using: credentials.Credentials) -> Transport:
    """Return what connections with these credentials stand on just now; reads small files."""
    paths = (using.ca_file, using.certificate_file, using.key_file)
    return Transport(
        dataclasses.replace(using, authorization=None, expires=None), tuple(_digest(path) for path in paths)
    )


def _digest(path: pathlib.Path | None) -> bytes | None:
    with contextlib.suppress(OSError):
        return None if path is None else hashlib.sha256(path.read_bytes()).digest()
    return None


def headers(request: Request, using: credentials.Credentials) -> dict[str, str]:
    """Return the headers of a request, without those that each one of a session has."""
    authorization = {} if using.authorization is None else {"Authorization": using.authorization}
    return {**request.headers, **authorization}


def sentence_of(error: Exception, server: str, access: auth.ClusterAccess | None = None) -> str:
    """Say why no answer came from the API server; with ``access``, also who names it, and what to do."""
    chosen = access.chosen if access else ""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"the certificate of the API server {server} is not trusted "
            f"({_reason(error.certificate_error)}): check certificate-authority and server of "
            f"{chosen or 'the kubeconfig'}"
        )
    advice = f"; {access.server_advice}" if access and access.server_advice else ""
    if isinstance(error, TimeoutError):
        return f"the API server {server} did not answer in time{advice}"
    return f"the API server {server} cannot be reached ({_reason(error)}){advice}"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, aiohttp.ClientConnectorError):
        return _reason(error.os_error)
    if isinstance(error, OSError) and error.strerror:
        # asyncio's own text repeats the address; the system's says what happened.
        return _system_text(error)
    return " ".join(str(error).split()) or type(error).__name__


def _system_text(error: OSError) -> str:
    if error.errno is not None and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return " ".join(str(error.strerror).split())
