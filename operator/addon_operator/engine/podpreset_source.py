"""The source of PodPresets: a Kopf handler that decides nothing and hands the objects over."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import kopf

from addon_operator.engine import kopf_thread

GROUP: Final = "settings.k8s.io"
VERSION: Final = "v1alpha1"
PLURAL: Final = "podpresets"

EventType = Literal["ADDED", "MODIFIED", "DELETED"] | None
Deliver = Callable[[EventType, Mapping[str, Any]], None]
"""Takes the type of a watch event (``None`` for what is listed before it) and the object."""


class PodPresetSource:
    """Watches the PodPresets of the whole cluster."""

    def __init__(
        self, login: kopf_thread.Login, deliver: Deliver, log_restart: kopf_thread.LogRestart
    ) -> None:
        """``deliver`` is called in the loop that starts the source, ``log_restart`` in its thread."""
        self._deliver = deliver
        scope = kopf_thread.Scope(self._register)
        self._thread = kopf_thread.KopfThread("podpresets", scope, login, log_restart)

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

    def hand_over(self, call: Callable[[], None]) -> None:
        """Call something in the loop that started the source."""
        self._thread.hand_over(call)

    def _register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
        async def changed(event: Any, **_: object) -> None:  # noqa: ANN401 - a private type of Kopf's
            self._thread.hand_over(functools.partial(self._deliver, event["type"], event["object"]))
