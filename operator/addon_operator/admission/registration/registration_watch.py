"""Notices at once that somebody touches a webhook configuration."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

from addon_operator.admission.registration import registration_specs as specs
from addon_operator.kernel import clock
from addon_operator.kernel import errors as kernel_errors
from addon_operator.kube.access import auth
from addon_operator.kube.client import api_errors, connection, paths, rate_limit

_WATCH_SECONDS: Final = 270
# A stream without a word for so long is dead: the server ends it before.
_SILENCE_SECONDS: Final = _WATCH_SECONDS + 30.0
_RETRY_FIRST_SECONDS: Final = 1.0
_RETRY_MAX_SECONDS: Final = 30.0
_NO_RIGHT_SECONDS: Final = 300.0


class RegistrationWatch:
    """Watches configurations by name; what has changed is for others to read.

    Without the right to watch there is none, and the registrar's regular look has to do.
    """

    def __init__(
        self,
        access: auth.ClusterAccess,
        configurations: Sequence[specs.Configuration],
        changed: Callable[[], None],
        *,
        time: clock.Clock,
        sleep: rate_limit.Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``changed`` is called when a configuration may have changed."""
        self._connection = connection.Connection(access, time)
        self._configurations = configurations
        self._changed = changed
        self._sleep = sleep
        self._jitter = jitter

    async def keep(self) -> None:
        """Watch until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for configuration in self._configurations:
                    tasks.create_task(self._keep(configuration))
        finally:
            await self._connection.close()

    async def _keep(self, configuration: specs.Configuration) -> None:
        failures = 0
        while True:
            try:
                status = await self._watch(configuration)
            except kernel_errors.AddonOperatorError:
                status = 0
            failures = 0 if status == 200 else failures + 1
            await self._sleep(self._pause(status, failures))

    def _pause(self, status: int, failures: int) -> float:
        if status == 403:
            return _NO_RIGHT_SECONDS
        growing = min(_RETRY_MAX_SECONDS, _RETRY_FIRST_SECONDS * 2.0 ** min(failures, 10))
        return growing * (0.5 + self._jitter())

    async def _watch(self, configuration: specs.Configuration) -> int:
        """The HTTP status of a watch that has ended."""
        using = await self._connection.current()
        try:
            async with (
                asyncio.timeout(_SILENCE_SECONDS),
                self._connection.open(_request(configuration), using) as answer,
            ):
                if answer.status == 200:
                    # It may have been removed while nobody watched, of which the watch says nothing.
                    self._changed()
                    async for _ in answer.content.iter_any():
                        self._changed()
                status = answer.status
        except TimeoutError as error:
            raise api_errors.Unreachable("the watch of a webhook configuration has become silent") from error
        if status == 401:
            await self._connection.renew(using)
        return status


def _request(configuration: specs.Configuration) -> connection.Request:
    # Without a resourceVersion the present state comes first, so that nothing is missed between two watches.
    query = {
        "watch": "1",
        "fieldSelector": f"metadata.name={configuration.name}",
        "timeoutSeconds": str(_WATCH_SECONDS),
    }
    path = paths.of(specs.API_VERSION, configuration.kind.value)
    return connection.Request("GET", path, query, timeout=None)
