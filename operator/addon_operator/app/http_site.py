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

from addon_operator.app import settings
from addon_operator.kernel import errors, listening
from addon_operator.telemetry import metrics

NOT_STARTED: Final = "STARTUP_CONVERGE_NOT_STARTED"
STARTING: Final = "STARTUP_CONVERGE_IN_PROGRESS"
DONE: Final = "STARTUP_CONVERGE_DONE"
RUNNING: Final = "CONVERGE_IN_PROGRESS"
WAITING: Final = "CONVERGE_WAIT_TASK"
STANDBY: Final = "STANDBY"

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

    def render(self, accept: str, accept_encoding: str) -> metrics.Exposition:
        """The document; called in a thread."""
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
    runner = web.AppRunner(application(meters, status), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        yield await _listen(runner, settings_.listen_address, settings_.listen_port)
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, address: str, port: int) -> Site:
    try:
        await web.TCPSite(runner, address, port).start()
    except OSError as error:
        reason = listening.reason(error)
        raise ListenError(f"cannot listen on {address} port {port}: {reason}; {_HOW_TO_MOVE}") from error
    return Site(address, runner.addresses[0][1])


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


class _Handlers:
    def __init__(self, meters: MetricsSource, status: Status) -> None:
        self._meters = meters
        self._status = status

    async def metrics(self, request: web.Request) -> web.Response:
        accept = ",".join(request.headers.getall("Accept", []))
        encoding = request.headers.get("Accept-Encoding", "")
        document = await asyncio.to_thread(self._meters.render, accept, encoding)
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
