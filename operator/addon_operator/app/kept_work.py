"""Work that goes on whatever fails, and defects that nobody waits for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from addon_operator.aio import background
from addon_operator.app import event_log
from addon_operator.engine import events
from addon_operator.telemetry import metrics


def kept(part: str, work: Callable[[], Awaitable[None]], tell: events.Listener) -> asyncio.Task[None]:
    """Begin work that goes on until it is cancelled: a defect of it is told, and it begins again."""

    def failed(error: Exception, delay: float) -> None:
        tell(events.PartFailed(part, error, delay))

    return asyncio.create_task(background.kept(work, failed), name=part)


def stray_defects(
    meters: metrics.Metrics, log: event_log.Logger
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Return what an event loop calls with defects that nobody waits for, of tasks and callbacks."""

    def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        where = context.get("task") or context.get("future") or context.get("handle")
        if where is None or error is None:
            loop.default_exception_handler(context)
            return
        name = where.get_name() if isinstance(where, asyncio.Task) else "callback"
        meters.process.internal_errors_total.labels(part="background").inc()
        log.error(f"a part of the operator failed: {name}; report this bug with the log", exc_info=error)

    return report
