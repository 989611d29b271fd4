"""The source of PodPresets: a Kopf handler that decides nothing and hands the objects over."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import kopf

from addon_operator.engine.sources import kopf_thread
from addon_operator.kube.client import client
from addon_operator.kube.informers import watch_health
from addon_operator.podpreset import model

EventType = Literal["ADDED", "MODIFIED", "DELETED"] | None
Deliver = Callable[[EventType, Mapping[str, Any]], None]
"""Takes the type of a watch event (``None`` for what is listed before it) and the object."""


class PodPresetSource(kopf_thread.KopfThread):
    """Watches the PodPresets of the whole cluster."""

    def __init__(
        self,
        kube: client.KubeClient,
        deliver: Deliver,
        log_restart: kopf_thread.LogRestart,
        health: watch_health.WatchHealth,
    ) -> None:
        """``deliver`` is called in the loop that starts the source, ``log_restart`` in its thread."""
        self._deliver = deliver
        super().__init__("podpresets", kopf_thread.Scope(self._register), kube, log_restart, health)

    def _register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event(model.GROUP, model.VERSION, model.PLURAL, registry=registry)
        async def changed(event: Any, **_: object) -> None:  # noqa: ANN401 - a private type of Kopf's
            self.hand_over(functools.partial(self._deliver, event["type"], event["object"]))
