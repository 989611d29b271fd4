"""Serves the page, rendered once for all who look at it, and tells them when there is a new one."""

import asyncio
import contextlib
import gzip
import hashlib
import http
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from addon_operator.aio import short_cache
from addon_operator.kernel import clock
from addon_operator.status import page_content, status_page
from addon_operator.telemetry import metrics

PAGE_SECONDS: Final = 1.0
"""How old the page may be: one render serves all who look within that time."""
LOOK_SECONDS: Final = 2.0
"""Between two looks at whether somebody who follows the page needs a new one."""
FOLLOW_SECONDS: Final = 15.0
"""After so long browsers have to connect again: no request is longer than what the site grants."""
FOLLOWERS: Final = 64
"""How many may follow at once: half of the site's connections stay for probes and scrapes."""
_RECONNECT: Final = b"retry: 1000\n\n"
_COMPRESSION: Final = 5
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Vary": "Accept-Encoding",
    "Content-Security-Policy": status_page.CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_STREAM_HEADERS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}


class _Page(msgspec.Struct, frozen=True):
    """The page in both forms, for all who look at it."""

    plain: bytes
    gzipped: bytes
    version: str
    """Equal for equal pages."""

    @classmethod
    def of(cls, content: page_content.Content, link: status_page.Link) -> "_Page":
        """Render it; slow enough to be run in a thread."""
        plain = status_page.render(content, link).encode("utf-8", "replace")
        return cls(plain, gzip.compress(plain, _COMPRESSION), hashlib.sha256(plain).hexdigest()[:16])


class PageSite:
    """The page and its stream of changes."""

    def __init__(
        self,
        gather: Callable[[], Awaitable[page_content.Content]],
        seconds: float = PAGE_SECONDS,
        link: status_page.Link = status_page.no_link,
    ) -> None:
        """``seconds``: how old the page may be."""
        self._gather = gather
        self._link = link
        self._pages = short_cache.ShortCache(self._render, clock.SystemClock(), seconds)
        self._followers = 0

    def serve(self, app: web.Application, below: str = "") -> None:
        """Add the routes below a path."""
        app.router.add_get(f"{below}/", self._page)
        app.router.add_get(f"{below}/live", self._live)

    async def _render(self, _: None) -> _Page:
        # What changes is gathered in the loop, and put into words beside it.
        return await asyncio.to_thread(_Page.of, await self._gather(), self._link)

    async def _page(self, request: web.Request) -> web.Response:
        page = await self._pages.get(None)
        return html_response(request, page.plain, page.gzipped)

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Send the version of the page again and again: who has another one gets the page anew."""
        if self._followers >= FOLLOWERS:
            status = http.HTTPStatus.SERVICE_UNAVAILABLE
            return web.Response(status=status, text="too many follow the page: load it again\n")
        self._followers += 1
        try:
            return await self._follow(request)
        finally:
            self._followers -= 1

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers=_STREAM_HEADERS)
        page = await self._pages.get(None)
        # Who closed the page is not told any more.
        with contextlib.suppress(ConnectionError):
            await stream.prepare(request)
            await stream.write(_RECONNECT)
            for _ in range(int(FOLLOW_SECONDS / LOOK_SECONDS)):
                await stream.write(f"data: {page.version}\n\n".encode())
                await asyncio.sleep(LOOK_SECONDS)
                page = await self._pages.get(None)
        return stream


def html_response(request: web.Request, plain: bytes, gzipped: bytes | None = None) -> web.Response:
    """Return a document of the page's kind, compressed if the browser takes that and there is such a form."""
    headers, body = dict(_HEADERS), plain
    if gzipped is not None and metrics.Form.wanted("", request.headers.get("Accept-Encoding", "")).gzipped:
        headers["Content-Encoding"], body = "gzip", gzipped
    return web.Response(body=body, content_type="text/html", charset="utf-8", headers=headers)
