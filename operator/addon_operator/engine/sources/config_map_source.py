"""The source of values ConfigMap changes: Kopf handlers that decide nothing and hand the data over."""

import functools
from collections.abc import Mapping
from typing import Any

import kopf

from addon_operator.engine.sources import config_sync, kopf_thread
from addon_operator.kube.client import client, config_maps
from addon_operator.kube.informers import watch_health


class ConfigMapSource(kopf_thread.KopfThread):
    """Watches the values ConfigMap for :class:`.ConfigSync`."""

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        name: str,
        config: config_sync.ConfigSync,
        log_restart: kopf_thread.LogRestart,
    ) -> None:
        """``log_restart`` is called in the thread of the source."""
        self._watched = name
        self._config = config
        scope = kopf_thread.Scope(
            self._register,
            ((("", "v1", "configmaps"), f"metadata.name={name}"),),
            namespace,
        )
        health = watch_health.WatchHealth("the watch of the values ConfigMap")
        super().__init__("values", scope, kube, log_restart, health)

    def _register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event("", "v1", "configmaps", registry=registry)
        async def changed(type: str | None, body: Mapping[str, Any], **_: object) -> None:  # noqa: A002 - Kopf's name
            if body["metadata"]["name"] != self._watched:
                return
            snapshot = None if type == "DELETED" else config_maps.snapshot_of(body)
            self.hand_over(functools.partial(self._config.received, snapshot))
