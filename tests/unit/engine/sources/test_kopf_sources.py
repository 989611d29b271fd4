"""The thread in which Kopf watches, and starts again."""

import asyncio
import getpass
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Sized

import kopf
import pytest
from kopf._cogs.aiokits import aioadapters
from typing_extensions import override

from addon_operator.engine.sources import config_sync, kopf_sources
from addon_operator.kube.client import client
from tests.support import unused

NOBODY = unused.unused(client.KubeClient)
"""Nobody logs in here."""
NO_CONFIG = unused.unused(config_sync.ConfigSync)


class Watch(kopf_sources.ValuesSource):
    def __init__(
        self, register: Callable[[kopf.OperatorRegistry], None], log_restart: kopf_sources.LogRestart
    ) -> None:
        super().__init__(NOBODY, "addons", "values", NO_CONFIG, log_restart)
        self._register = register

    @override
    def register(self, registry: kopf.OperatorRegistry) -> None:
        self._register(registry)


def fails(_: kopf.OperatorRegistry) -> None:
    raise RuntimeError("it cannot be set up")


async def test_a_watch_begins_under_a_uid_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 1_000_660_000)
    with pytest.raises((KeyError, OSError)):
        getpass.getuser()
    begun: list[str] = []

    def register(registry: kopf.OperatorRegistry) -> None:
        @kopf.on.startup(registry=registry)
        async def begin(**_: object) -> None:
            begun.append("its handlers")
            await watch.stop()
            await asyncio.Event().wait()

    watch = Watch(register, lambda *_: None)
    reason, _ = await asyncio.to_thread(watch._once)
    assert (begun, reason) == (["its handlers"], "Kopf ended")


async def test_kopf_is_started_again_after_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*, stop_flag: aioadapters.Flag, **_: object) -> None:
        waiter = asyncio.create_task(aioadapters.wait_flag(stop_flag))
        await asyncio.sleep(0)
        waiter.cancel()
        raise RuntimeError("a watch failed")

    monkeypatch.setattr(kopf, "operator", fail)
    told = threading.Event()
    watch = Watch(lambda _: None, lambda *_: told.set())
    watch.start()
    started_again = told.wait(60)
    await watch.stop()
    assert started_again


def test_a_request_is_tried_without_end_and_with_bounded_pauses() -> None:
    pauses = kopf_sources._settings_of_kopf("values", None).networking.error_backoffs
    assert isinstance(pauses, Iterable)
    assert not isinstance(pauses, Sized), "Kopf would count the tries"
    for _ in range(2):
        tried = list(itertools.islice(pauses, 100))
        assert tried == sorted(tried)
        assert (len(tried), tried[0], tried[-1]) == (100, 1.0, 30.0)


async def test_a_watch_that_was_stopped_is_not_begun_again() -> None:
    told = threading.Event()
    watch = Watch(fails, lambda *_: told.set())
    watch.start()
    assert told.wait(60)
    assert watch.alive
    assert "has not come up: RuntimeError: it cannot be set up" in (watch.health.trouble or "")
    await watch.stop()
    assert not watch.alive
