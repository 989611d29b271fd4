"""Sends a message to a receiver, once: whether it took it, and if not, whether to try again.

An address is a secret: only the host of it is ever told.
"""

import contextlib
import errno
import http
import os
import socket
import ssl
import urllib.request
from typing import Any, Final

import aiohttp
import msgspec
import yarl

import addon_operator
from addon_operator.status.notifications import notify_config, texts

SECONDS: Final = 10.0
"""For one try, whatever the receiver does."""
_CONNECT_SECONDS: Final = 5.0
ANSWER_BYTES: Final = 64 * 1024
"""What a receiver may send for one try, certificates included: only the beginning of an answer counts."""
_PIECE_BYTES: Final = 4 * 1024
"""How much of it is read at a time: what a receiver sends is parsed in the event loop."""
_PAUSE_MAX: Final = 600.0
_HEADERS: Final = {"User-Agent": f"addon-operator/{addon_operator.__version__}"}
_LATER: Final = frozenset(
    {http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_EARLY, http.HTTPStatus.TOO_MANY_REQUESTS}
)
_REASONS: Final = (
    (
        (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError, ssl.SSLError),
        "its certificate is not trusted, or TLS fails",
    ),
    ((aiohttp.ClientConnectorDNSError,), "there is no such host"),
    ((aiohttp.ClientHttpProxyError,), "the proxy does not let the message through"),
    ((aiohttp.ClientResponseError,), "its answer is not one of HTTP"),
    ((aiohttp.ServerDisconnectedError,), "it closes the connection without an answer"),
)


class Answer(msgspec.Struct, frozen=True):
    """What became of a try."""

    problem: str = ""
    """Why the receiver has not taken it; empty if it has."""
    is_final: bool = False
    """Whether another try would not help."""
    retry_after: float = 0.0
    """For how many seconds the receiver wants to be left alone."""


class _Socket(socket.socket):
    """A socket that takes so much and no more, in small pieces."""

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._left = ANSWER_BYTES

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        data = super().recv(self._room(bufsize), flags)
        self._left -= len(data)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:  # noqa: ANN401 - any buffer
        read = super().recv_into(buffer, self._room(nbytes or len(buffer)), flags)
        self._left -= read
        return read

    def _room(self, wanted: int) -> int:
        if not self._left:
            raise OSError(errno.EMSGSIZE, "too much is answered")
        return min(wanted, self._left, _PIECE_BYTES)


def _session() -> aiohttp.ClientSession:
    # Each message has a connection of its own, whose bound counts for it alone.
    connector = aiohttp.TCPConnector(force_close=True, socket_factory=lambda found: _Socket(*found[:3]))
    return aiohttp.ClientSession(connector=connector, headers=_HEADERS, cookie_jar=aiohttp.DummyCookieJar())


def _proxy(url: yarl.URL) -> yarl.URL | None:
    """Return the proxy of the environment, as everywhere.

    The library's own way would also send what a ``.netrc`` has for the receiver.
    """
    found = urllib.request.getproxies_environment().get(url.scheme)
    if not found or urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    return yarl.URL(found if "://" in found else f"http://{found}")


class Sender:
    """Sends messages; an asynchronous context manager."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """``seconds`` are for each try."""
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections; what is on its way fails."""
        if self._session is not None:
            await self._session.close()
        self._session = None

    async def send(self, target: notify_config.Target, made: texts.Body) -> Answer:
        """Send a body to a target; never raises, and takes a bounded time."""
        if self._session is None:
            self._session = _session()
        timeout = aiohttp.ClientTimeout(total=self._seconds, sock_connect=_CONNECT_SECONDS)
        try:
            url = yarl.URL(target.url)
            # Nothing of the answer's body is read.
            async with self._session.post(
                url,
                data=made.content,
                headers=made.headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=_proxy(url),
            ) as answer:
                verdict = _verdict(target, answer.status, answer.headers.get("Retry-After", ""))
                answer.close()
                return verdict
        except TimeoutError:
            return Answer(f"{target.host} does not answer within {self._seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(f"{target.host} cannot be reached: {_reason(error)}")


def _verdict(target: notify_config.Target, status: int, retry_after: str) -> Answer:
    if http.HTTPStatus.OK <= status < http.HTTPStatus.MULTIPLE_CHOICES:
        return Answer()
    if status < http.HTTPStatus.OK:
        return Answer(
            f"{target.host} answers with status {status}, which does not say that it took the message; "
            "look at the target's url",
            is_final=True,
        )
    if status < http.HTTPStatus.BAD_REQUEST:
        return Answer(
            f"{target.host} answers with status {status} and another address, which is not followed",
            is_final=True,
        )
    problem = f"{target.host} answers with status {status}"
    if status in _LATER or status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return Answer(problem, retry_after=_seconds(retry_after))
    suspects = "url and hmacKey" if target.hmac_key else "url"
    return Answer(f"{problem}; look at the target's {suspects}", is_final=True)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        return min(_PAUSE_MAX, max(0.0, float(text[:20]))) if text else 0.0
    return 0.0


def _reason(error: Exception) -> str:
    """Return why, without what the library quotes of the address."""
    if isinstance(error, OSError) and error.errno == errno.EMSGSIZE:
        return f"it sends more than {ANSWER_BYTES // 1024} KiB before its answer is complete"
    for kinds, reason in _REASONS:
        if isinstance(error, kinds):
            return reason
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
