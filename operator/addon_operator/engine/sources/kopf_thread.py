"""A Kopf operator in a thread with a loop of its own, started again whenever it ends.

Kopf ends, as a whole, on errors that we outlive, and cancels every task of its loop when it ends. A loop of
its own keeps both away from everything else.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import kopf

from addon_operator.aio import waiting
from addon_operator.kernel import errors
from addon_operator.kube.access import credentials
from addon_operator.kube.client import client, watching_sessions
from addon_operator.kube.informers import watch_health

_RESTARTS: Final = waiting.Backoff(1.0, 30.0)
_FIRST_PAUSES: Final = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0)
_PAUSE_CAP: Final = 30.0
_STABLE_SECONDS: Final = 60.0
_STOP_TIMEOUT: Final = 10.0
# For Kopf's peering, which is off. Without one Kopf asks for the user's name, and a pod's uid often has none.
_IDENTITY: Final[Any] = "addon-operator"

LogRestart = Callable[[str, float], None]
"""Told why Kopf ended, and in how many seconds it is started again; called from the thread."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """What a Kopf operator watches."""

    register: Callable[[kopf.OperatorRegistry], None]
    """Adds the handlers; they run in the thread and hand over with ``call_soon_threadsafe``."""
    field_selectors: tuple[tuple[tuple[str, str, str], str], ...] = ()
    """Pairs of (group, version, plural) and the field selector for the API server."""
    namespace: str | None = None
    """``None`` for the whole cluster."""


class KopfThread:
    """One supervised Kopf operator, which watches one kind of objects."""

    def __init__(
        self,
        name: str,
        scope: Scope,
        kube: client.KubeClient,
        log_restart: LogRestart,
        health: watch_health.WatchHealth,
    ) -> None:
        """Kopf gets the credentials of ``kube``; ``health`` shows whether the watch is up."""
        self._name = name
        self._scope = scope
        self._kube = kube
        self._has_logged_in = False
        self._log_restart = log_restart
        self.health = health
        """Whether the watch stands."""
        self._thread: threading.Thread | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._end_kopf: Callable[[], object] = _nothing

    @property
    def alive(self) -> bool:
        """Whether the watch goes on, if need be after a pause."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def ended(self) -> bool:
        """Whether the watch has ended for good although nobody stopped it."""
        return self._thread is not None and not self._thread.is_alive() and not self._stopping.is_set()

    def start(self) -> None:
        """Begin to watch; logins are made, and deliveries come, in the running loop."""
        self._home = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._supervise, name=f"kopf-{self._name}", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End the watch."""
        self._stopping.set()
        self.health.falls()
        # Its loop may have ended already.
        with contextlib.suppress(RuntimeError):
            self._end_kopf()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _STOP_TIMEOUT)

    def hand_over(self, deliver: Callable[[], None]) -> None:
        """Call ``deliver`` in the loop that started the thread; for handlers."""
        if self._home is not None:
            # The loop may be gone when the process ends.
            with contextlib.suppress(RuntimeError):
                self._home.call_soon_threadsafe(deliver)

    def _supervise(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            reason, lasted = self._once()
            if self._stopping.is_set():
                return
            attempt = 0 if lasted > _STABLE_SECONDS else attempt + 1
            delay = _RESTARTS.after(attempt + 1, random.random())  # noqa: S311 - jitter, not a secret
            self.health.falls(reason)
            self._log_restart(reason, delay)
            self._stopping.wait(delay)

    def _once(self) -> tuple[str, float]:
        loop = asyncio.new_event_loop()
        began = loop.time()
        try:
            loop.run_until_complete(self._operate())
            reason = "Kopf ended"
        except Exception as error:  # noqa: BLE001 - whatever ended Kopf, it is started again
            reason = f"{type(error).__name__}: {error}"
        lasted = loop.time() - began
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        return reason, lasted

    async def _operate(self) -> None:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.AiohttpSession:
            return await self._log_in()

        self._scope.register(registry)
        # For an event of threads Kopf waits in a thread that nothing but the event ends: after an error of
        # Kopf's this loop would wait for that thread, too.
        stop_flag = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._end_kopf = lambda: loop.call_soon_threadsafe(stop_flag.set)
        if self._stopping.is_set():
            stop_flag.set()
        namespace = self._scope.namespace
        await kopf.operator(
            registry=registry,
            settings=_settings(self._scope),
            identity=_IDENTITY,
            standalone=True,
            clusterwide=namespace is None,
            namespaces=[namespace] if namespace is not None else [],
            stop_flag=stop_flag,
        )

    async def _log_in(self) -> kopf.AiohttpSession:
        if self._home is None:
            raise RuntimeError("the thread was not started")

        async def call() -> credentials.Credentials:
            # A second login means that the credentials were refused.
            renew, self._has_logged_in = self._has_logged_in, True
            return await self._kube.current_credentials(renew=renew)

        try:
            current = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._home))
            # A session of our own: it reports the state of the watch, and trusts what our client trusts.
            session = await watching_sessions.open_session(current, self.health)
        except errors.AddonOperatorError as error:
            self.health.falls(str(error))
            raise
        return kopf.AiohttpSession(
            server=current.server, aiohttp_session=session, expiration=_expiration(current)
        )


def _nothing() -> None:
    """Nothing is to be ended yet."""


class _Pauses:
    """Seconds between the tries of a request of Kopf's, without end.

    After its last try a watch of Kopf's fails, and all of Kopf with it: an API server that is away, and
    answers with 503 when it comes back, is no reason for that.
    """

    def __iter__(self) -> Iterator[float]:
        yield from _FIRST_PAUSES
        yield from itertools.repeat(_PAUSE_CAP)


def _expiration(current: credentials.Credentials) -> dt.datetime | None:
    if current.expires is None:
        return None
    return dt.datetime.fromtimestamp(current.expires, tz=dt.UTC)


def _settings(scope: Scope) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.process.ultimate_exiting_timeout = None
    settings.networking.error_backoffs = _Pauses()
    for resource, selector in scope.field_selectors:
        settings.watching.field_selectors[resource] = selector
    return settings
