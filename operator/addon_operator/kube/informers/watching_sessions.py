"""HTTP sessions for a client that is not ours and watches, such as Kopf: they report how its watches fare.

The client itself says nothing of a watch that does not come up: it tries again, without end.
"""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

import aiohttp

from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import credentials
from addon_operator.kube.client import connection
from addon_operator.kube.informers import watch_health

_WATCH: Final = "watch"
_ERROR: Final = 400


HealthOf = Callable[[str], watch_health.WatchHealth]
"""Gives what to report to from the path of a request."""


async def open_session(using: credentials.Credentials, health_of: HealthOf) -> aiohttp.ClientSession:
    """Open a session with these credentials whose watches are reported; the caller closes it.

    It closes itself when the server's certificate is not trusted and the files with the authorities have
    changed since: its client has to log in again then.

    Raises :class:`.AccessError` for certificates that cannot be used.
    """
    watcher = _Watcher(using, health_of, await asyncio.to_thread(connection.transport_of, using))
    headers = {"User-Agent": connection.USER_AGENT}
    if using.authorization is not None:
        headers["Authorization"] = using.authorization
    return aiohttp.ClientSession(
        connector=await connection.connector_to(using),
        headers=headers,
        proxy=using.proxy,
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[watcher.trace()],
        middlewares=[watcher.name_server],
    )


class _Watcher:
    def __init__(
        self,
        using: credentials.Credentials,
        health_of: HealthOf,
        transport: connection.Transport,
    ) -> None:
        self._using = using
        self._health_of = health_of
        self._transport = transport

    def trace(self) -> aiohttp.TraceConfig:
        tracing = aiohttp.TraceConfig()
        tracing.on_request_start.append(self._started)
        tracing.on_request_end.append(self._answered)
        tracing.on_request_exception.append(self._failed)
        return tracing

    async def name_server(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if self._using.tls_server_name is not None:
            request.server_hostname = self._using.tls_server_name
        return await handler(request)

    async def _started(
        self, _: aiohttp.ClientSession, __: SimpleNamespace, started: aiohttp.TraceRequestStartParams
    ) -> None:
        # A watch whose stream has ended is asked for again at once.
        self._health_of(started.url.path).falls()

    async def _answered(
        self, _: aiohttp.ClientSession, __: SimpleNamespace, answered: aiohttp.TraceRequestEndParams
    ) -> None:
        response, is_watch = answered.response, _WATCH in answered.url.query
        health = self._health_of(answered.url.path)
        if response.status >= _ERROR:
            target = paths.target(answered.method, answered.url.raw_path, watch=is_watch)
            # The body is kept in the answer for whoever reads it next.
            health.falls(str(api_errors.from_answer(target, response.status, await response.read())))
        elif is_watch:
            health.stands()

    async def _failed(
        self, session: aiohttp.ClientSession, _: SimpleNamespace, failed: aiohttp.TraceRequestExceptionParams
    ) -> None:
        error = failed.exception
        if not isinstance(error, aiohttp.ClientError | OSError):
            return
        self._health_of(failed.url.path).falls(connection.sentence_of(error, self._using.server))
        if isinstance(error, aiohttp.ClientConnectorCertificateError) and await self._is_outdated():
            await session.close()

    async def _is_outdated(self) -> bool:
        return await asyncio.to_thread(connection.transport_of, self._using) != self._transport
