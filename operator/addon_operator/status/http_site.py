"""The HTTP site: metrics, probes and the state of the converge.

Paths and texts are those of the Go operator, but ``/readyz`` answers 503 and says why, and ``/healthz`` fails
when there is a reason to.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

import orjson
from aiohttp import web

from addon_operator.admission.server import connections
from addon_operator.kernel import errors, listening
from addon_operator.settings import settings
from addon_operator.telemetry import metrics

NOT_STARTED: Final = "STARTUP_CONVERGE_NOT_STARTED"
STARTING: Final = "STARTUP_CONVERGE_IN_PROGRESS"
DONE: Final = "STARTUP_CONVERGE_DONE"
RUNNING: Final = "CONVERGE_IN_PROGRESS"
WAITING: Final = "CONVERGE_WAIT_TASK"
STANDBY: Final = "STANDBY"

CONNECTIONS: Final = connections.Bounds(
    connections=128, request=20.0, idle_when_crowded=10.0, unused_when_crowded=5.0, backlog=128
)
"""Probes and scrapes need one at a time each; a probe that meets a closing connection is asked again."""
_SHUTDOWN_SECONDS: Final = 1.0
_PAGE_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_HOW_TO_MOVE: Final = (
    "choose others with ADDON_OPERATOR_LISTEN_ADDRESS and ADDON_OPERATOR_LISTEN_PORT "
    "(--prometheus-listen-address, --prometheus-listen-port)"
)


class ListenError(errors.ConfigurationError):
    """The address and port of the settings cannot be listened on."""


class Status(Protocol):
    """What the site asks the operator."""

    def unhealthy_reason(self) -> str | None:
        """Why the operator should be restarted, or ``None``."""
        ...

    def unready_reason(self) -> str | None:
        """Why the operator is not ready, or ``None``."""
        ...

    def admission_unready_reason(self) -> str | None:
        """Why pods cannot be admitted now, or ``None``, whatever the converge does."""
        ...

    def page(self) -> str:
        """The status page, as HTML."""
        ...

    def converge(self) -> tuple[str, int]:
        """State of the converge and how many tasks remain.

        The state is one of this module's words; after ``STANDBY`` follows a colon and who leads.
        """
        ...


class MetricsSource(Protocol):
    """Where the document for ``/metrics`` comes from."""

    def render(self, form: metrics.Form) -> metrics.Exposition:
        """The document; called in a thread."""
        ...

    def connection_closed(self, site: str, reason: str) -> None:
        """A connection was closed for one of the site's bounds."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A site that is being served."""

    address: str
    port: int
    """The port that was taken, also when the settings said 0."""


@contextlib.asynccontextmanager
async def serving(settings_: settings.Settings, meters: MetricsSource, status: Status) -> AsyncIterator[Site]:
    """Serve the site at the address of the settings, until the context ends.

    Raises :class:`ListenError` when that address cannot be had.
    """
    try:
        listeners = await connections.bind(
            settings_.listen_address, settings_.listen_port, CONNECTIONS.backlog
        )
    except OSError as error:
        raise _listen_error(error, settings_.listen_address, settings_.listen_port) from error
    served = connections.Connections(
        application(meters, status),
        CONNECTIONS,
        shutdown_seconds=_SHUTDOWN_SECONDS,
        closed=lambda reason, _: meters.connection_closed("metrics", reason),
    )
    port = listeners[0].getsockname()[1]
    await served.start(listeners)
    try:
        yield Site(settings_.listen_address, port)
    finally:
        await served.stop()


def _listen_error(error: OSError, address: str, port: int) -> ListenError:
    reason = listening.reason(error)
    return ListenError(f"cannot listen on {address} port {port}: {reason}; {_HOW_TO_MOVE}")


def application(meters: MetricsSource, status: Status) -> web.Application:
    """The routes."""
    handlers = _Handlers(meters, status)
    app = web.Application()
    app.router.add_get("/metrics", handlers.metrics)
    app.router.add_get("/healthz", handlers.healthz)
    app.router.add_get("/readyz", handlers.readyz)
    app.router.add_get("/readyz/admission", handlers.readyz_admission)
    app.router.add_get("/status/converge", handlers.converge)
    app.router.add_get("/discovery", handlers.discovery)
    app.router.add_get("/", handlers.page)
    return app


def endpoints(app: web.Application) -> str:
    """One line for each path that an application answers, with its method."""
    found = {
        f"{route.method} {route.resource.canonical}"
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    return "".join(f"{line}\n" for line in sorted(found))


class _Renders:
    """Renders that are under way: scrapes at the same time share them, in threads beside the event loop."""

    def __init__(self, meters: MetricsSource) -> None:
        self._meters = meters
        self._running: dict[metrics.Form, asyncio.Task[metrics.Exposition]] = {}

    async def get(self, form: metrics.Form) -> metrics.Exposition:
        """The document of the render that is under way, or of a new one."""
        running = self._running.get(form)
        if running is None:
            running = asyncio.create_task(asyncio.to_thread(self._meters.render, form))
            self._running[form] = running
            running.add_done_callback(lambda _: self._running.pop(form))
        # Whoever goes away must not take the document from the others.
        return await asyncio.shield(running)


class _Handlers:
    def __init__(self, meters: MetricsSource, status: Status) -> None:
        self._renders = _Renders(meters)
        self._status = status

    async def metrics(self, request: web.Request) -> web.Response:
        accept = ",".join(request.headers.getall("Accept", []))
        form = metrics.Form.wanted(accept, request.headers.get("Accept-Encoding", ""))
        document = await self._renders.get(form)
        headers = {"Content-Type": document.content_type, "Vary": "Accept, Accept-Encoding"}
        if document.gzipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=document.body, headers=headers)

    async def page(self, _: web.Request) -> web.Response:
        return web.Response(text=self._status.page(), content_type="text/html", headers=_PAGE_HEADERS)

    async def discovery(self, request: web.Request) -> web.Response:
        return web.Response(text=endpoints(request.app))

    async def healthz(self, _: web.Request) -> web.Response:
        return _probe(self._status.unhealthy_reason)

    async def readyz(self, _: web.Request) -> web.Response:
        return _probe(self._status.unready_reason)

    async def readyz_admission(self, _: web.Request) -> web.Response:
        return _probe(self._status.admission_unready_reason)

    async def converge(self, request: web.Request) -> web.Response:
        state, tasks = self._status.converge()
        if request.query.get("output") == "json":
            return web.Response(body=orjson.dumps(_document(state, tasks)), content_type="application/json")
        return web.Response(text="".join(f"{line}\n" for line in _lines(state, tasks)))


def _probe(reason: Callable[[], str | None]) -> web.Response:
    text = reason()
    if text is None:
        return web.Response(text="ok\n")
    return web.Response(status=503, text=f"{text}\n")


def _lines(state: str, tasks: int) -> tuple[str, ...]:
    counted = f"{state}: {tasks} tasks"
    by_state = {
        STARTING: (counted,),
        RUNNING: (DONE, counted),
        DONE: (DONE, WAITING),
        WAITING: (DONE, WAITING),
    }
    return by_state.get(state, (state,))


def _document(state: str, tasks: int) -> dict[str, bool | int | str | None]:
    word, _, leader = state.partition(": ")
    standing_by = {STANDBY: leader} if word == STANDBY else {}
    return standing_by | {
        NOT_STARTED: state == NOT_STARTED,
        STARTING: tasks if state == STARTING else None,
        DONE: state in (DONE, RUNNING, WAITING),
        RUNNING: tasks if state == RUNNING else None,
        WAITING: state in (DONE, WAITING),
    }
