"""The debug endpoint of one process: there from the beginning, with answers once the engine is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog

from addon_operator.debug import debug_api, debug_site, runtime_config
from addon_operator.kernel import clock
from addon_operator.settings import settings as app_settings
from addon_operator.status import health


@contextlib.asynccontextmanager
async def serving(
    settings: app_settings.Settings,
    status_: health.Status,
    is_child: Callable[[int], bool],
    log: structlog.typing.FilteringBoundLogger,
) -> AsyncIterator[debug_api.DebugApi]:
    """Serve the endpoint until the context ends; ``is_child`` says which processes are hooks.

    Raises :class:`.DebugSocketError` if somebody named a path that cannot be
    had.
    """
    runtime = runtime_config.RuntimeConfig(
        settings.log_level, asyncio.get_running_loop().call_later, clock=clock.SystemClock()
    )
    api = debug_api.DebugApi(runtime, status_.absent_reason)
    is_refused = _nobody if settings.hook_debug_socket else is_child
    async with debug_site.serving(settings, api, log, is_refused):
        yield api


def _nobody(_: int) -> bool:
    return False
