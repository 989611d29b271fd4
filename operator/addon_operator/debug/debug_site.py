"""The debug endpoint: JSON over HTTP on a unix socket.

Paths are those of the Go operator: most end in the format that is wanted, ``.json``, ``.yaml`` or ``.text``.
"""

import asyncio
import contextlib
import dataclasses
import functools
import inspect
import pathlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
import orjson
import structlog
import yaml
from aiohttp import web

from addon_operator.admission.server import connections
from addon_operator.aio import short_cache
from addon_operator.debug import debug_api, debug_socket, engine_api, runtime_config
from addon_operator.engine import module_requests
from addon_operator.kernel import clock, errors
from addon_operator.settings import settings as app_settings
from addon_operator.status import http_site
from addon_operator.status.notifications import notifier

SHOW_SENSITIVE: Final = "showSensitive"
_FORMAT: Final = ".{format:json|yaml|text}"
_CREDENTIALS: Final = "3i"
"""Process, user and group, as ``SO_PEERCRED`` gives them."""
_SHUTDOWN_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 5.0
# A render with Helm takes as long as Helm does.
_CONNECTIONS: Final = connections.Bounds(connections=64, request=3600.0)
_PIECES_DEPTH: Final = 4
_TRUE: Final = frozenset({"1", "t", "true", "yes"})
_FALSE: Final = frozenset({"", "0", "f", "false", "no"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Logger = structlog.typing.FilteringBoundLogger


class RefusedPeerError(errors.AddonOperatorError):
    """The process that asks may not."""


class BadRequestError(errors.AddonOperatorError):
    """A parameter of the request is missing or wrong."""


@contextlib.asynccontextmanager
async def serving(
    settings: app_settings.Settings,
    api: debug_api.DebugApi,
    log: Logger,
    is_child: Callable[[int], bool] = lambda _: False,
) -> AsyncIterator[None]:
    """Serve the endpoint at the socket of the settings, until the context ends.

    ``is_child`` says of a process id whether the operator started it; such a process gets an answer only with
    ``HOOK_DEBUG_SOCKET``. If the default path cannot be used, there is a warning, the operator starts, and
    the path is tried again: mostly another operator holds it, and ends some time.

    Raises :class:`.DebugSocketError` if somebody named a path that cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        is_refused = _nobody if settings.hook_debug_socket else is_child
        site = application(api, log, is_refused)
        try:
            await stack.enter_async_context(_listening(settings.debug_unix_socket, site))
        except debug_socket.DebugSocketError as error:
            if settings.origins.get("debug_unix_socket", "default") != "default":
                raise
            log.warning(f"debug commands do not reach this operator: {error}; it is tried again")
            later = asyncio.create_task(_later(settings.debug_unix_socket, site, log), name="debug socket")
            stack.push_async_callback(_end, later)
        yield


async def _later(path: pathlib.Path, site: web.Application, log: Logger) -> None:
    """Listen as soon as the path can be used, until cancelled."""
    while True:
        await asyncio.sleep(_RETRY_SECONDS)
        with contextlib.suppress(debug_socket.DebugSocketError):
            async with _listening(path, site):
                log.info("debug commands reach this operator now")
                await asyncio.get_running_loop().create_future()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _listening(path: pathlib.Path, site: web.Application) -> AsyncIterator[None]:
    with debug_socket.listening(path) as listener:
        served = connections.Connections(site, _CONNECTIONS, shutdown_seconds=_SHUTDOWN_SECONDS)
        await served.start([listener])
        try:
            yield
        finally:
            await served.stop()


def application(
    api: debug_api.DebugApi, log: Logger, is_refused: Callable[[int], bool] = lambda _: False
) -> web.Application:
    """Return the routes."""
    app = web.Application(middlewares=[_errors_as_sentences(log), _not_for_all(is_refused)])
    # Equal questions at the same time share one answer; none is given again later.
    answers = short_cache.ShortCache(_written, clock.SystemClock(), 0.0, keep=lambda _: False)
    for path, answer in _documents(api).items():
        app.router.add_get(path + _FORMAT, functools.partial(_answer, answers, answer))
    app.router.add_get("/", _alive)
    app.router.add_get("/discovery", _discovery)
    app.router.add_get("/module/{name}/render", functools.partial(_render, api))
    app.router.add_get("/module/{name}/diff", functools.partial(_diff, api))
    app.router.add_post("/module/{name}/run", functools.partial(_run, api))
    app.router.add_post("/module/{name}/retry", functools.partial(_retry, api))
    app.router.add_post("/module/{name:.+}/remove", functools.partial(_confirm, api))
    app.router.add_post("/module/{name}/suspend", functools.partial(_suspend, api))
    app.router.add_post("/module/{name}/resume", functools.partial(_resume, api))
    app.router.add_post("/hooks/running/{id:[0-9]{1,18}}/end", functools.partial(_end_hook, api))
    app.router.add_post("/notify/{target}/test", functools.partial(_notify, api))
    app.router.add_post("/config/set", functools.partial(_set_parameter, api))
    return app


def _nobody(_: int) -> bool:
    return False


def _documents(api: debug_api.DebugApi) -> dict[str, Callable[[web.Request], Awaitable[object] | object]]:
    """Return paths without the format, and what answers them."""
    of_a_section: dict[str, Callable[[web.Request], Awaitable[object]]] = {
        "values": lambda request: api.engine.values(
            _module(request), **_with_global(request), **_shown(request)
        ),
        "config": lambda request: api.engine.config(
            _module(request), **_with_global(request), **_shown(request)
        ),
        "patches": lambda request: api.engine.patches(_module(request), **_shown(request)),
        "snapshots": lambda request: api.engine.snapshots(_module(request), **_shown(request)),
    }
    return {
        "/operator": lambda _: api.engine.home,
        "/global/list": lambda _: api.engine.global_list(),
        **{f"/global/{what}": answer for what, answer in of_a_section.items()},
        "/module/list": lambda _: _listed(api),
        "/module/resource-monitor": lambda _: api.engine.resource_monitor(),
        "/page": lambda _: api.page.gather(),
        "/module/{name}/details": lambda request: api.engine.details(request.match_info["name"]),
        "/module/{name}/diff": lambda request: api.engine.diff(request.match_info["name"]),
        "/module/{name}/origins": lambda request: api.engine.origins(
            request.match_info["name"], **_shown(request)
        ),
        "/module/{name}/why": lambda request: api.engine.why(
            request.match_info["name"],
            request.query.get("object", ""),
            request.query.get("path", ""),
            paths=_flag(request, "paths"),
        ),
        "/module/{name}/describe": lambda request: _described(api, request.match_info["name"]),
        **{f"/module/{{name}}/{what}": answer for what, answer in of_a_section.items()},
        "/hook-values": lambda request: _all_or_nothing(api, request),
        "/queue/main": lambda _: api.engine.main_queue(),
        "/queue/list": lambda request: api.engine.queues(show_empty=_flag(request, "showEmpty")),
        "/config/list": lambda _: api.parameters(),
        "/hooks/running": lambda _: api.running_hooks.rows,
        "/notify/list": lambda _: api.notifier.rows(),
        "/notify/source": lambda _: api.notifier.source,
    }


def _all_or_nothing(api: debug_api.DebugApi, request: web.Request) -> Awaitable[object]:
    if not _flag(request, SHOW_SENSITIVE):
        raise BadRequestError(f"this answer holds values marked x-sensitive: ask with ?{SHOW_SENSITIVE}=true")
    return api.engine.hook_values()


async def _described(api: debug_api.DebugApi, module: str) -> object:
    row = await api.engine.module(module)
    since = await api.page.since([row])
    return {**row, "since": since.get(module), "events": await api.page.events(module)}


async def _listed(api: debug_api.DebugApi) -> object:
    listed = await api.engine.modules()
    since = await api.page.since(listed["modules"])
    return {**listed, "modules": [{**row, "since": since.get(row["name"])} for row in listed["modules"]]}


def _module(request: web.Request) -> str | None:
    return request.match_info.get("name")


def _with_global(request: web.Request) -> dict[str, bool]:
    return {"with_global": _module(request) is not None and _flag(request, "global")}


def _shown(request: web.Request) -> dict[str, bool]:
    return {"show_sensitive": _flag(request, SHOW_SENSITIVE)}


async def _alive(_: web.Request) -> web.Response:
    return web.Response(text="debug endpoint is alive\n")


async def _discovery(request: web.Request) -> web.Response:
    return web.Response(text=http_site.endpoints(request.app))


async def _render(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    text = await api.engine.render(request.match_info["name"], diff=_flag(request, "diff"), **_shown(request))
    return web.Response(text=text)


async def _diff(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    if not _flag(request, "pending"):
        raise BadRequestError("only what waits for a window can be shown: ask with ?pending=true")
    return web.Response(text=await api.engine.pending(request.match_info["name"]))


async def _run(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    row = await api.engine.run(
        request.match_info["name"], waits=_flag(request, "wait"), past_windows=_flag(request, "now")
    )
    return web.json_response(row)


async def _retry(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    return web.json_response(api.engine.retry(request.match_info["name"]))


async def _confirm(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    if not _flag(request, "confirm"):
        raise BadRequestError("a module is removed when it is disabled; --confirm confirms that if it waits")
    return web.json_response(api.engine.confirm(request.match_info["name"]))


async def _suspend(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    form = await _form(request, "reason")
    told = await api.engine.suspend(
        request.match_info["name"],
        form["reason"],
        form.get("by", ""),
        form.get("for", ""),
        replaces=form.get("replace") == "true",
    )
    return web.json_response(told)


async def _resume(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    return web.json_response(await api.engine.resume(request.match_info["name"]))


async def _end_hook(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    return web.json_response({"ended": api.running_hooks.end(int(request.match_info["id"]))})


async def _notify(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    return web.json_response(await api.notifier.test(request.match_info["target"]))


async def _set_parameter(api: debug_api.DebugApi, request: web.Request) -> web.Response:
    texts = await _form(request, "name", "value")
    row = api.set_parameter(texts["name"], texts["value"], texts.get("duration", ""))
    return web.json_response(row)


async def _form(request: web.Request, *required: str) -> dict[str, str]:
    form = await request.post()
    texts = {key: value for key, value in form.items() if isinstance(value, str)}
    for key in required:
        if not texts.get(key):
            raise BadRequestError(f"{key!r} is missing from the form")
    return texts


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    """What is asked for; equal if the answers are."""

    path: str
    """With the query."""
    request: web.Request = dataclasses.field(compare=False)
    answer: Callable[[web.Request], Awaitable[object] | object] = dataclasses.field(compare=False)


async def _answer(
    answers: short_cache.ShortCache[_Question, bytes],
    answer: Callable[[web.Request], Awaitable[object] | object],
    request: web.Request,
) -> web.Response:
    body = await answers.get(_Question(request.path_qs, request, answer))
    wanted = request.match_info["format"]
    return web.Response(body=body, content_type=_CONTENT_TYPES[wanted], charset=_CHARSETS.get(wanted))


_CONTENT_TYPES: Final = {"json": "application/json", "yaml": "application/yaml", "text": "text/plain"}
_CHARSETS: Final = {"yaml": "utf-8", "text": "utf-8"}


async def _written(asked: _Question) -> bytes:
    body = asked.answer(asked.request)
    document = await body if inspect.isawaitable(body) else body
    write = _json if asked.request.match_info["format"] == "json" else _yaml
    return await asyncio.to_thread(write, document)


def _json(document: object, depth: int = _PIECES_DEPTH) -> bytes:
    """Write JSON piece by piece: one call for all of it would keep the interpreter's lock from the loop."""
    if depth and isinstance(document, dict):
        items = (orjson.dumps(str(key)) + b":" + _json(each, depth - 1) for key, each in document.items())
        return b"{" + b",".join(items) + b"}"
    if depth and isinstance(document, list | tuple):
        return b"[" + b",".join(_json(each, depth - 1) for each in document) + b"]"
    return orjson.dumps(document, default=msgspec.to_builtins)


def _yaml(document: object) -> bytes:
    # Rows may share parts; YAML anchors would only confuse.
    plain = orjson.loads(_json(document))
    text = yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text.encode("utf-8", "replace")


def _flag(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "").lower()
    if text not in _TRUE | _FALSE:
        raise BadRequestError(f"{name}={text}: give true or false")
    return text in _TRUE


_STATUS: Final[dict[type[errors.AddonOperatorError], int]] = {
    debug_api.NotReadyError: 503,
    engine_api.NoSuchModuleError: 404,
    module_requests.CannotRunError: 409,
    notifier.NotifyError: 409,
    runtime_config.RuntimeConfigError: 400,
    clock.DurationError: 400,
    BadRequestError: 400,
    RefusedPeerError: 403,
}


def _errors_as_sentences(log: Logger) -> Any:  # noqa: ANN401  # aiohttp's type of middlewares is private
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return _error(404, f"there is nothing at {request.path}; /discovery lists what there is")
        except web.HTTPMethodNotAllowed as error:
            return _error(405, f"{request.path} takes {', '.join(sorted(error.allowed_methods))} only")
        except errors.AddonOperatorError as error:
            return _error(_STATUS.get(type(error), 500), str(error))
        except web.HTTPException:
            raise
        except Exception:
            log.exception("a debug request failed", path=request.path)
            return _error(500, "the operator failed to answer; its log says why")

    return middleware


def _not_for_all(is_refused: Callable[[int], bool]) -> Any:  # noqa: ANN401  # as above
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_refused(_peer(request)):
            raise RefusedPeerError(
                "the operator does not answer processes that it has started itself: "
                "set HOOK_DEBUG_SOCKET=true if hooks are to use the debug socket"
            )
        return await handler(request)

    return middleware


def _peer(request: web.Request) -> int:
    """Return the process that connected, as the kernel took it down; 0 if it cannot be seen from here."""
    if request.transport is None:
        return 0
    connection = request.transport.get_extra_info("socket")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_CREDENTIALS))
    return int(struct.unpack(_CREDENTIALS, credentials)[0])


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
