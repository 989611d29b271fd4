"""Defects in the background are told, counted, and do not end what works there."""

import asyncio
import gc

import pytest

from addon_operator.aio import background
from addon_operator.app import engine_listeners, kept_work
from addon_operator.telemetry import metrics
from tests.support import clocks, logs


@pytest.fixture
def meters() -> metrics.Metrics:
    return metrics.Metrics()


def errors_of(meters: metrics.Metrics, part: str) -> float | None:
    return meters.registry.get_sample_value("addon_operator_internal_errors_total", {"part": part})


async def test_a_part_that_fails_is_logged_counted_and_begins_again(
    meters: metrics.Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs.Records()
    monkeypatch.setattr(background, "RESTART_SECONDS", 0.0)
    begun, is_over = [], asyncio.Event()

    async def work() -> None:
        begun.append(1)
        if len(begun) == 1:
            raise TypeError("a bug")
        is_over.set()
        await asyncio.Event().wait()

    part = kept_work.kept("drift", work, engine_listeners.shown(meters, log.logger))
    await asyncio.wait({part, over := asyncio.create_task(is_over.wait())}, return_when="FIRST_COMPLETED")
    assert (over.done(), part.done()) == (True, False)
    part.cancel()
    assert errors_of(meters, "drift") == 1
    ((level, line),) = log.lines
    assert level == "error"
    assert line.startswith("a part of the operator failed: drift; next try in 0 s; report this bug")


async def test_what_ends_by_a_defect_and_nobody_waits_for_is_logged_and_counted(
    meters: metrics.Metrics,
) -> None:
    log, loop = logs.Records(), asyncio.get_running_loop()
    loop.set_exception_handler(kept_work.stray_defects(meters, log.logger))

    async def work() -> None:
        raise TypeError("a bug")

    asyncio.create_task(work(), name="forgotten")  # noqa: RUF006 - that is the point
    await clocks.settle()
    gc.collect()
    await clocks.settle()
    assert errors_of(meters, "background") == 1
    assert log.lines == [("error", "a part of the operator failed: forgotten; report this bug with the log")]
