"""The source of values ConfigMap changes: a Kopf operator, embedded in a thread with a loop of its own.

Kopf ends, as a whole, on errors that we outlive, and cancels every task of its loop when it ends. A loop of
its own keeps both away from the engine; a supervisor starts it again. Its handler decides nothing: it hands
the data over to the engine's loop.
"""

import asyncio
import dataclasses
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import kopf

from addon_operator.kube import config_maps

_RESTART_FIRST: Final = 1.0
_RESTART_CAP: Final = 30.0
_STOP_TIMEOUT: Final = 10.0

Login = Callable[[], Awaitable[kopf.ConnectionInfo]]
"""Gives fresh credentials; runs in the engine's loop."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigMapName:
    """Which ConfigMap is watched."""

    namespace: str
    name: str


class ConfigMapSource:
    """Watches one ConfigMap and delivers what it holds, or ``None`` when it is deleted."""

    def __init__(
        self,
        target: ConfigMapName,
        login: Login,
        deliver: Callable[[config_maps.Snapshot | None], None],
        log_restart: Callable[[str, float], None],
    ) -> None:
        self._target = target
        self._login = login
        self._deliver = deliver
        self._log_restart = log_restart
        self._thread: threading.Thread | None = None
        self._engine_loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()

    @property
    def alive(self) -> bool:
        """Whether the watching thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to watch; deliveries come in the running loop."""
        _quieten()
        self._engine_loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._supervise, name="kopf", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End the watch."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _STOP_TIMEOUT)

    def _supervise(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            try:
                asyncio.run(self._operate())
            except Exception as error:  # noqa: BLE001 - whatever ended Kopf, it is started again
                reason = f"{type(error).__name__}: {error}"
            else:
                reason = "it ended"
            if self._stopping.is_set():
                return
            delay = min(_RESTART_CAP, _RESTART_FIRST * 2 ** min(attempt, 10)) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            attempt += 1
            self._log_restart(reason, delay)
            self._stopping.wait(delay)

    async def _operate(self) -> None:
        await kopf.operator(
            registry=self._registry(),
            settings=_settings(self._target),
            standalone=True,
            namespaces=[self._target.namespace],
            stop_flag=self._stopping,
        )

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.ConnectionInfo:
            return await self._in_engine_loop(self._login)

        @kopf.on.event("", "v1", "configmaps", registry=registry)
        async def changed(type: str | None, body: Mapping[str, Any], **_: object) -> None:  # noqa: A002 - Kopf's name
            self._hand_over(type, body)

        return registry

    async def _in_engine_loop(self, login: Login) -> kopf.ConnectionInfo:
        if self._engine_loop is None:
            raise RuntimeError("the source was not started")

        async def call() -> kopf.ConnectionInfo:
            return await login()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._engine_loop))

    def _hand_over(self, event: str | None, body: Mapping[str, Any]) -> None:
        if body["metadata"]["name"] != self._target.name or self._engine_loop is None:
            return
        snapshot = None if event == "DELETED" else config_maps.snapshot_of(body)
        self._engine_loop.call_soon_threadsafe(self._deliver, snapshot)


def _settings(target: ConfigMapName) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.process.ultimate_exiting_timeout = None
    settings.watching.field_selectors["", "v1", "configmaps"] = f"metadata.name={target.name}"
    return settings


def _quieten() -> None:
    """Keep Kopf's own progress out of the operator's log, unless that is at level debug."""
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        return
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # It warns that it does not handle signals in this thread, which is what is wanted.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
