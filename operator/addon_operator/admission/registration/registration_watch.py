"""Notices at once that somebody touches a webhook configuration."""

import asyncio
from collections.abc import Sequence
from typing import Final

from addon_operator.admission.registration import registration_specs as specs
from addon_operator.aio import waiting
from addon_operator.kube.client import api_errors, client, connection, paths
from addon_operator.kube.informers import wire

_WATCH_SECONDS: Final = 270
# A stream without a word for so long is dead: the server ends it before.
_SILENCE_SECONDS: Final = _WATCH_SECONDS + 30.0
_BACKOFF: Final = waiting.Backoff(1.0, 30.0)
_NO_RIGHT_SECONDS: Final = 300.0


class RegistrationWatch:
    """Watches configurations by name; what has changed is for others to read.

    Without the right to watch there is none, and the registrar's regular look has to do.
    """

    def __init__(
        self,
        kube: client.KubeClient,
        configurations: Sequence[specs.WebhookConfiguration],
        changed: asyncio.Event,
        time: waiting.Time,
    ) -> None:
        """``changed`` is set when a configuration may have changed."""
        self._kube = kube
        self._configurations = configurations
        self._changed = changed
        self._time = time

    async def keep(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for configuration in self._configurations:
                tasks.create_task(self._keep(configuration))

    async def _keep(self, configuration: specs.WebhookConfiguration) -> None:
        failures = 0
        while True:
            try:
                await self._watch(configuration)
            except api_errors.Forbidden:
                failures += 1
                await self._time.sleep(_NO_RIGHT_SECONDS)
                continue
            except api_errors.KubernetesError:
                failures += 1
            else:
                failures = 0
            await self._time.sleep(_BACKOFF.after(failures + 1, self._time.jitter()))

    async def _watch(self, configuration: specs.WebhookConfiguration) -> None:
        async with self._kube.stream(_request(configuration)) as content:
            # It may have been removed while nobody watched, of which the watch says nothing.
            self._changed.set()
            async for _ in wire.batches(content.iter_any(), _SILENCE_SECONDS):
                self._changed.set()


def _request(configuration: specs.WebhookConfiguration) -> connection.Request:
    # Without a resourceVersion the present state comes first, so that nothing is missed between two watches.
    query = {
        "watch": "1",
        "fieldSelector": f"metadata.name={configuration.name}",
        "timeoutSeconds": str(_WATCH_SECONDS),
    }
    path = paths.of(specs.API_VERSION, configuration.kind.value)
    return connection.Request("GET", path, query, timeout=None)
