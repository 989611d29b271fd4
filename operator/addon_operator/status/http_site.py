"""Serve metrics, probes and the state of the converge over HTTP.

Paths and texts are those of the Go operator, but ``/readyz`` answers 503 and says why, and ``/healthz`` fails
when there is a reason to.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec
import orjson
from aiohttp import web

from addon_operator.admission.server import connections
from addon_operator.aio import short_cache
from addon_operator.kernel import clock, errors
from addon_operator.settings import settings
from addon_operator.status import converge_words, health, page_content, page_site
from addon_operator.telemetry import metrics

CONNECTIONS: Final = connections.Bounds(
    connections=128,
    request=20.0,
    idle_when_crowded=10.0,
    unused_when_crowded=5.0,
    unread_when_crowded=2.0,
    backlog=128,
)
"""Probes and scrapes need one at a time each; a probe that meets a closing connection is asked again."""
_SHUTDOWN_SECONDS: Final = 1.0


class SiteListenError(errors.ConfigurationError):
    """The operator cannot listen on the address and port of the settings."""


class Site(msgspec.Struct, frozen=True):
    """A site that is being served."""

    address: str
    port: int
    """The port that was taken, also when the settings said 0."""


@contextlib.asynccontextmanager
async def serving(
    settings_: settings.Settings,
    registry: metrics.Metrics,
    status: health.OperatorStatus,
    content: page_content.PageContent,
) -> AsyncIterator[Site]:
    """Serve the site at the address of the settings, until the context ends; with the page if they want it.

    Raises :class:`SiteListenError` when it cannot listen there.
    """
    try:
        listeners = await connections.bind(
            settings_.listen_address, settings_.listen_port, CONNECTIONS.backlog
        )
    except OSError as error:
        place = f"{settings_.listen_address} port {settings_.listen_port}"
        others = " and ".join(settings_.spelled(field) for field in ("listen_address", "listen_port"))
        raise SiteListenError(
            f"cannot listen on {place}: {connections.listen_problem(error)}; choose others with {others}"
        ) from error
    served = connections.Connections(
        application(registry, status, content if settings_.page else None),
        CONNECTIONS,
        shutdown_seconds=_SHUTDOWN_SECONDS,
        closed=lambda reason, _: registry.connection_closed("metrics", reason),
    )
    port = listeners[0].getsockname()[1]
    await served.start(listeners)
    try:
        yield Site(settings_.listen_address, port)
    finally:
        await served.stop()


def application(
    registry: metrics.Metrics, status: health.OperatorStatus, content: page_content.PageContent | None
) -> web.Application:
    """Return the routes; without ``content`` there is no page."""
    handlers = _SiteHandlers(registry, status)
    app = web.Application()
    app.router.add_get("/metrics", handlers.metrics)
    app.router.add_get("/healthz", _probe(status.unhealthy_reason))
    app.router.add_get("/readyz", handlers.ready)
    app.router.add_get("/readyz/admission", _probe(status.admission_unready_reason))
    app.router.add_get("/status/converge", handlers.converge)
    app.router.add_get("/discovery", handlers.discovery)
    if content is not None:
        page_site.PageSite(content.gather).serve(app)
    return app


def endpoints(app: web.Application) -> str:
    """Return one line for each path that an application answers, with its method."""
    found = {
        f"{route.method} {route.resource.canonical}"
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    return "".join(f"{line}\n" for line in sorted(found))


class _SiteHandlers:
    def __init__(self, registry: metrics.Metrics, status: health.OperatorStatus) -> None:
        self._registry = registry
        self._renders = short_cache.ShortCache(self._render_metrics, clock.SystemClock(), 0.0, keep=_never)
        self._status = status

    async def _render_metrics(self, form: metrics.Form) -> bytes:
        return await asyncio.to_thread(self._registry.render, form)

    async def metrics(self, request: web.Request) -> web.Response:
        accept = ",".join(request.headers.getall("Accept", []))
        form = metrics.Form.wanted(accept, request.headers.get("Accept-Encoding", ""))
        headers = {"Content-Type": form.content_type, "Vary": "Accept, Accept-Encoding"}
        if form.gzipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=await self._renders.get(form), headers=headers)

    async def ready(self, request: web.Request) -> web.Response:
        reason = self._status.unready_reason()
        lines = ["ok" if reason is None else reason]
        if "verbose" in request.query:
            lines += self._status.details()
        return web.Response(
            status=200 if reason is None else 503, text="".join(f"{line}\n" for line in lines)
        )

    async def discovery(self, request: web.Request) -> web.Response:
        return web.Response(text=endpoints(request.app))

    async def converge(self, request: web.Request) -> web.Response:
        state, tasks = self._status.converge()
        removals = self._status.removals
        if request.query.get("output") == "json":
            document = _document(state, tasks) | {converge_words.REMOVALS: removals}
            return web.Response(body=orjson.dumps(document), content_type="application/json")
        lines = [*_lines(state, tasks), *([f"{converge_words.REMOVALS}: {removals}"] if removals else ())]
        return web.Response(text="".join(f"{line}\n" for line in lines))


def _never(_: object) -> bool:
    return False


def _probe(reason: Callable[[], str | None]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        text = reason()
        return web.Response(text="ok\n") if text is None else web.Response(status=503, text=f"{text}\n")

    return answer


def _lines(state: str, tasks: int) -> tuple[str, ...]:
    counted = f"{state}: {tasks} tasks"
    by_state = {
        converge_words.STARTING: (counted,),
        converge_words.RUNNING: (converge_words.DONE, counted),
        converge_words.DONE: (converge_words.DONE, converge_words.WAITING),
    }
    return by_state.get(state, (state,))


def _document(state: str, tasks: int) -> dict[str, bool | int | str | None]:
    word, _, leader = state.partition(": ")
    standing_by = {converge_words.STANDBY: leader} if word == converge_words.STANDBY else {}
    return standing_by | {
        converge_words.NOT_STARTED: state == converge_words.NOT_STARTED,
        converge_words.STARTING: tasks if state == converge_words.STARTING else None,
        converge_words.DONE: state in (converge_words.DONE, converge_words.RUNNING),
        converge_words.RUNNING: tasks if state == converge_words.RUNNING else None,
        converge_words.WAITING: state == converge_words.DONE,
    }
