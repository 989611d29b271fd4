"""The page with values, on this machine: what it shows comes from the debug endpoint of an operator.

Whoever asks needs the token, which is the path of the link: other users of the machine and other pages of the
browser have none. It is not a cookie, which browsers send to all ports of this machine.
"""

import asyncio
import contextlib
import hmac
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from addon_operator.debug import debug_client, page_details
from addon_operator.kernel import errors
from addon_operator.status import page_content, page_site

PAGE_SECONDS: Final = 3.0
"""How old the page may be: with an operator in a cluster, each look is a command in its pod."""
_TOKEN: Final = "token"  # noqa: S105 - a name, not a token
_TOKEN_BYTES: Final = 32
_SHUTDOWN_SECONDS: Final = 0.2

_Document = TypeVar("_Document")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageListenError(errors.ConfigurationError):
    """The page cannot be served on the port that was asked for."""


@contextlib.asynccontextmanager
async def serving(client: debug_client.DebugClient, port: int) -> AsyncIterator[str]:
    """Serve the page on a loopback port, 0 for any free one, until the context ends; gives the link.

    Raises :class:`PageListenError`.
    """
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise PageListenError(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}; choose another one with --port"
        ) from error
    address, token = f"127.0.0.1:{listener.getsockname()[1]}", secrets.token_urlsafe(_TOKEN_BYTES)
    runner = web.AppRunner(
        application(client, address, token), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield f"http://{address}/{token}/"
    finally:
        await runner.cleanup()


def application(client: debug_client.DebugClient, address: str, token: str) -> web.Application:
    """Return the routes, for who comes to this address and knows the token."""
    app = web.Application(middlewares=[_for_whom(address, token)])

    async def gather() -> page_content.Content:
        document = await asyncio.to_thread(client.get, "/page.json")
        return _read(document, page_content.Content)

    async def details(request: web.Request) -> web.Response:
        path = f"/module/{request.match_info['name']}/details.json"
        found = _read(await asyncio.to_thread(client.get, path), page_details.Details)
        text = await asyncio.to_thread(page_details.render, found, await gather())
        return page_site.html_response(request, text.encode("utf-8", "replace"))

    page_site.PageSite(gather, PAGE_SECONDS, lambda name: f"module/{name}").serve(app, f"/{{{_TOKEN}}}")
    app.router.add_get(f"/{{{_TOKEN}}}/module/{{name}}", details)
    return app


def _read(document: object, type_: type[_Document]) -> _Document:
    try:
        return msgspec.convert(document, type_)
    except msgspec.ValidationError as error:
        raise debug_client.DebugClientError(
            f"the operator is one of another version, use its own command: {error}"
        ) from None


def _for_whom(address: str, token: str) -> Any:  # noqa: ANN401  # aiohttp's type of middlewares is private
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host != address:
            # Another name that leads here belongs to somebody else's page.
            raise web.HTTPForbidden(text=f"the page is only at http://{address}/\n")
        given = request.match_info.get(_TOKEN, "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise web.HTTPForbidden(text="open the link that 'addon-operator page' printed\n")
        try:
            return await handler(request)
        except errors.AddonOperatorError as error:
            return web.Response(status=502, text=f"{error}\n")

    return middleware
