"""Watches of the values ConfigMap and Secret: a Kopf operator in a thread of its own.

Its handlers decide nothing: they hand the objects over. It is started again whenever it ends.

Kopf ends, as a whole, on errors that we outlive, and cancels every task of its loop when it ends. A loop of
its own keeps both away from everything else.
"""

import asyncio
import contextlib
import datetime as dt
import functools
import itertools
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import kopf

from addon_operator.aio import waiting
from addon_operator.engine.sources import config_sync, configured_object
from addon_operator.kernel import errors
from addon_operator.kube.access import credentials
from addon_operator.kube.client import client
from addon_operator.kube.informers import watch_health, watching_sessions
from addon_operator.kube.objects import config_maps, values_secret

_RESTARTS: Final = waiting.Backoff(1.0, 30.0)
_FIRST_PAUSES: Final = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0)
_PAUSE_CAP: Final = 30.0
_STABLE_SECONDS: Final = 60.0
_STOP_TIMEOUT: Final = 10.0
# For Kopf's peering, which is off. Without one Kopf asks for the user's name, and a pod's uid often has none.
_IDENTITY: Final[Any] = "addon-operator"

_CONFIG_MAPS: Final = ("", "v1", "configmaps")
_SECRETS: Final = ("", "v1", "secrets")

LogRestart = Callable[[str, float], None]
"""Takes why Kopf ended, and in how many seconds it is started again; called from the thread."""


class ValuesSource:
    """Watches the values ConfigMap, and the values Secret if there may be one, for :class:`.ConfigSync`."""

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        name: str,
        config: config_sync.ConfigSync,
        log_restart: LogRestart,
        *,
        secret: values_secret.ValuesSecret | None = None,
    ) -> None:
        """Give Kopf the credentials of ``kube``; ``log_restart`` is called in the thread of the source."""
        self._kube = kube
        self._namespace = namespace
        self._watched = name
        self._secret = secret
        self._config = config
        self._log_restart = log_restart
        self._settings = _settings_of_kopf(name, secret)
        self._has_logged_in = False
        self.health: Final = watch_health.WatchHealth("the watch of the values ConfigMap")
        """Whether the watch of the ConfigMap stands."""
        self.secret_health: Final = watch_health.WatchHealth("the watch of the values Secret")
        """Whether the watch of the Secret stands."""
        self._thread: threading.Thread | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._end_kopf: Callable[[], object] = lambda: None

    def _health_of(self, path: str) -> watch_health.WatchHealth:
        return self.secret_health if path.endswith("/secrets") else self.health

    @property
    def watches_secret(self) -> bool:
        """Whether there may be a Secret."""
        return self._secret is not None

    def secret_trouble(self) -> str | None:
        """Say why edits of the Secret are not known; ``None`` if that is all right.

        A Secret that no setting names, and that must not be watched, is nobody's trouble: its absence was
        warned of.
        """
        if self._secret is None:
            return None
        trouble = self.secret_health.trouble
        return trouble if self._secret.is_named or self.secret_health.never_came_up is None else None

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Add the handlers, which run in the thread and deliver each state of ConfigMap and Secret."""

        @kopf.on.event(*_CONFIG_MAPS, registry=registry)
        async def changed(type: str | None, body: Mapping[str, Any], **_: object) -> None:  # noqa: A002 - Kopf's name
            if body["metadata"]["name"] == self._watched:
                snapshot = None if type == "DELETED" else config_maps.snapshot_of(body)
                self._deliver(functools.partial(self._config.received, snapshot))

        if (secret := self._secret) is None:
            return

        @kopf.on.event(*_SECRETS, registry=registry)
        async def secret_changed(type: str | None, body: Mapping[str, Any], **_: object) -> None:  # noqa: A002
            if body["metadata"]["name"] == secret.name:
                snapshot = None if type == "DELETED" else values_secret.snapshot_of(body)
                self._deliver(functools.partial(self._config.received, snapshot, configured_object.SECRET))

    def _falls(self, reason: str = "") -> None:
        for health in (self.health, self.secret_health):
            health.falls(reason)

    @property
    def alive(self) -> bool:
        """Whether the watch goes on, if need be after a pause."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to watch; logins are made, and deliveries come, in the running loop."""
        self._home = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._supervise, name="kopf", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End the watch."""
        self._stopping.set()
        self._falls()
        # Its loop may have ended already.
        with contextlib.suppress(RuntimeError):
            self._end_kopf()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _STOP_TIMEOUT)

    def _deliver(self, news: Callable[[], None]) -> None:
        """Call ``news`` in the loop that started the thread."""
        if self._home is not None:
            # The loop may be gone when the process ends.
            with contextlib.suppress(RuntimeError):
                self._home.call_soon_threadsafe(news)

    def _supervise(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            reason, lasted = self._once()
            if self._stopping.is_set():
                return
            attempt = 0 if lasted > _STABLE_SECONDS else attempt + 1
            delay = _RESTARTS.after(attempt + 1, random.random())  # noqa: S311 - jitter, not a secret
            self._falls(reason)
            self._log_restart(reason, delay)
            self._stopping.wait(delay)

    def _once(self) -> tuple[str, float]:
        loop = asyncio.new_event_loop()
        began = loop.time()
        try:
            reason = loop.run_until_complete(self._operate())
        except Exception as error:  # noqa: BLE001 - whatever ended Kopf, it is started again
            reason = f"{type(error).__name__}: {error}"
        lasted = loop.time() - began
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        return reason, lasted

    async def _operate(self) -> str:
        """Run Kopf; why it ended, unless by an error."""
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.AiohttpSession:
            return await self._log_in()

        self.register(registry)
        # For an event of threads Kopf waits in a thread that nothing but the event ends: after an error of
        # Kopf's this loop would wait for that thread, too.
        stop_flag = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._end_kopf = lambda: loop.call_soon_threadsafe(stop_flag.set)
        if self._stopping.is_set():
            stop_flag.set()
        await kopf.operator(
            registry=registry,
            settings=self._settings,
            identity=_IDENTITY,
            standalone=True,
            namespaces=[self._namespace],
            stop_flag=stop_flag,
        )
        return "Kopf ended"

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
            session = await watching_sessions.open_session(current, self._health_of)
        except errors.AddonOperatorError as error:
            self._falls(str(error))
            raise
        return kopf.AiohttpSession(
            server=current.server, aiohttp_session=session, expiration=_expiration(current)
        )


class _Pauses:
    """Seconds between the tries of a request of Kopf's, without end.

    After its last try a watch of Kopf's fails, and all of Kopf with it: an API server that is away, and
    answers with 503 when it comes back, is not a reason for that.
    """

    def __iter__(self) -> Iterator[float]:
        yield from _FIRST_PAUSES
        yield from itertools.repeat(_PAUSE_CAP)


def _expiration(current: credentials.Credentials) -> dt.datetime | None:
    if current.expires is None:
        return None
    return dt.datetime.fromtimestamp(current.expires, tz=dt.UTC)


def _settings_of_kopf(config_map: str, secret: values_secret.ValuesSecret | None) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.process.ultimate_exiting_timeout = None
    settings.networking.error_backoffs = _Pauses()
    settings.watching.field_selectors[_CONFIG_MAPS] = f"metadata.name={config_map}"
    if secret is not None:
        settings.watching.field_selectors[_SECRETS] = f"metadata.name={secret.name}"
    return settings
