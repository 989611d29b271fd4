"""A watch that has ended for good is noticed."""

import asyncio
import getpass
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Sized

import kopf
import pytest
from kopf._cogs.aiokits import aioadapters
from kopf._cogs.structs import references
from typing_extensions import override

from addon_operator.engine.sources import kopf_sources
from addon_operator.kube.client import client
from addon_operator.kube.informers import watch_health
from tests.support import unused

NOBODY = unused.unused(client.KubeClient)
"""Nobody logs in here."""


class Watch(kopf_sources.KopfThread):
    def __init__(
        self, register: Callable[[kopf.OperatorRegistry], None], log_restart: kopf_sources.LogRestart
    ) -> None:
        super().__init__(NOBODY, log_restart, watch_health.WatchHealth("the watch"))
        self._register = register

    @override
    def register(self, registry: kopf.OperatorRegistry) -> None:
        self._register(registry)


def fails(_: kopf.OperatorRegistry) -> None:
    raise RuntimeError("it cannot be set up")


# The thread is meant to die of an error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_is_gone_has_ended() -> None:
    gone = threading.Event()

    def end_thread(_reason: str, _delay: float) -> None:
        gone.set()
        raise SystemExit

    watch = Watch(fails, end_thread)
    ended_before = watch.ended
    assert not ended_before, "it has not begun"
    watch.start()
    assert gone.wait(60)
    assert watch._thread is not None
    watch._thread.join(60)
    assert watch.ended
    assert not watch.alive


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


@pytest.mark.parametrize(("found", "reason"), [(0, "does not name the kind"), (1, "Kopf ended")])
async def test_kopf_ends_at_once_only_if_the_kind_was_not_named_when_it_looked(
    monkeypatch: pytest.MonkeyPatch, found: int, reason: str
) -> None:
    kind = references.Resource("settings.k8s.io", "v1alpha1", "podpresets")
    looked, told_to_end = threading.Event(), list[bool]()

    async def look(*, stop_flag: asyncio.Event, insights: references.Insights, **_: object) -> None:
        insights.watched_resources.update([kind] * found)
        insights.ready_resources.set()
        for _turn in range(5):
            await asyncio.sleep(0)
        told_to_end.append(stop_flag.is_set())
        looked.set()
        await stop_flag.wait()

    monkeypatch.setattr(kopf, "operator", look)
    watch = Watch(lambda _: None, lambda *_: None)
    running = asyncio.create_task(asyncio.to_thread(watch._once))
    assert await asyncio.to_thread(looked.wait, 5)
    if found:
        await watch.stop()
    ended = (await asyncio.wait_for(running, 60))[0]
    assert (reason in ended, told_to_end) == (True, [not found])


def test_a_request_is_tried_without_end_and_with_bounded_pauses() -> None:
    pauses = kopf_sources._settings_of_kopf({}).networking.error_backoffs
    assert isinstance(pauses, Iterable)
    assert not isinstance(pauses, Sized), "Kopf would count the tries"
    for _ in range(2):
        tried = list(itertools.islice(pauses, 100))
        assert tried == sorted(tried)
        assert (len(tried), tried[0], tried[-1]) == (100, 1.0, 30.0)


async def test_a_watch_that_was_stopped_has_not_ended_by_itself() -> None:
    told = threading.Event()
    watch = Watch(fails, lambda *_: told.set())
    watch.start()
    assert told.wait(60)
    assert not watch.ended
    assert watch.health.trouble == "the watch has not come up: RuntimeError: it cannot be set up"
    await watch.stop()
    assert not watch.alive
    assert not watch.ended
