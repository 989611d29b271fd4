"""The source of values ConfigMap changes: Kopf handlers that decide nothing and hand the data over."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import kopf

from addon_operator.engine import kopf_thread
from addon_operator.kube import config_maps


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
        login: kopf_thread.Login,
        deliver: Callable[[config_maps.Snapshot | None], None],
        log_restart: kopf_thread.LogRestart,
    ) -> None:
        self._target = target
        self._deliver = deliver
        scope = kopf_thread.Scope(
            self._register,
            ((("", "v1", "configmaps"), f"metadata.name={target.name}"),),
            target.namespace,
        )
        self._thread = kopf_thread.KopfThread("values", scope, login, log_restart)

    @property
    def alive(self) -> bool:
        """Whether the watch goes on, if need be after a pause."""
        return self._thread.alive

    def start(self) -> None:
        """Begin to watch; deliveries come in the running loop."""
        self._thread.start()

    async def stop(self) -> None:
        """End the watch."""
        await self._thread.stop()

    def _register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event("", "v1", "configmaps", registry=registry)
        async def changed(type: str | None, body: Mapping[str, Any], **_: object) -> None:  # noqa: A002 - Kopf's name
            if body["metadata"]["name"] != self._target.name:
                return
            snapshot = None if type == "DELETED" else config_maps.snapshot_of(body)
            self._thread.hand_over(functools.partial(self._deliver, snapshot))
