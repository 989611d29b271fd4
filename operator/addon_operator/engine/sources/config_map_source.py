"""The source of values ConfigMap changes: Kopf handlers that decide nothing and hand the data over."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import kopf

from addon_operator.engine.sources import kopf_thread
from addon_operator.kube.client import config_maps
from addon_operator.kube.informers import watch_health


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigMapName:
    """Which ConfigMap is watched."""

    namespace: str
    name: str


class ConfigMapSource(kopf_thread.KopfThread):
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
        health = watch_health.WatchHealth("the watch of the values ConfigMap")
        super().__init__("values", scope, login, log_restart, health)

    def _register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event("", "v1", "configmaps", registry=registry)
        async def changed(type: str | None, body: Mapping[str, Any], **_: object) -> None:  # noqa: A002 - Kopf's name
            if body["metadata"]["name"] != self._target.name:
                return
            snapshot = None if type == "DELETED" else config_maps.snapshot_of(body)
            self.hand_over(functools.partial(self._deliver, snapshot))
