"""ConfigMaps, Secrets and Services that decide about the environment of a pod, read while it is admitted.

Only names are kept: keys of ConfigMaps and Secrets, and names of the variables that Services make. No value
of a Secret stays in memory. What one pod can have read is bounded: see below.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from addon_operator import expansion
from addon_operator.admission import events
from addon_operator.aio import short_cache
from addon_operator.kernel import clock
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.podpreset import model

SOURCE_SECONDS: Final = 2.0
"""How long a ConfigMap or Secret that was found is not read again."""
SERVICES_SECONDS: Final = 5.0
"""How long the Services of a namespace are not read again."""
SOURCES_MAX: Final = 128
"""How many different ConfigMaps and Secrets are read for one pod, its presets included."""
KEYS_WEIGHT_MAX: Final = 4 << 20
"""Memory for the keys of all ConfigMaps and Secrets of one pod, in bytes; enough for 40 000 keys."""
AT_ONCE: Final = 16
"""How many ConfigMaps and Secrets are read at the same time, for all pods."""
WAITING_MAX: Final = 2048
"""How many reads may wait for their turn."""

KINDS: Final = ("configmaps", "secrets")
"""What can be read of a container's environment, as resources of the API."""

_NAME_WEIGHT: Final = 80
"""What a name takes in a set besides its characters, in bytes."""
_PLURALS: Final = {"ConfigMap": "configmaps", "Secret": "secrets"}
_MASTER_NAMESPACE: Final = "default"
_MASTER: Final = "kubernetes"


class EnvSource(msgspec.Struct, frozen=True):
    """What came of reading a ConfigMap or Secret."""

    keys: frozenset[str] | None
    """The keys of its ``data``; ``None`` when it does not exist or could not be read."""
    empty: frozenset[str] = frozenset()
    """Those with an empty value."""
    readable: bool = True
    """Whether that is known; ``False`` for a kind that is not read, without the right, and out of time."""


MISSING: Final = EnvSource(None)
UNREADABLE: Final = EnvSource(None, readable=False)

_Key = tuple[str, model.SourceRef]


class EnvSources:
    """Reads the sources of containers' environments, with a short memory."""

    def __init__(
        self,
        kube: client.KubeClient,
        time: clock.Clock,
        tell: events.Listener,
        kinds: Collection[str] = KINDS,
    ) -> None:
        """Read sources of ``kinds`` only."""
        self._kube = kube
        self._kinds = kinds
        self._tell = tell
        self._at_once = asyncio.Semaphore(AT_ONCE)
        # What is missing may be there with the next pod, and what could not be read may be readable.
        self._sources: short_cache.ShortCache[_Key, EnvSource] = short_cache.ShortCache(
            self._load, time, SOURCE_SECONDS, keep=lambda source: source.keys is not None, weight=_weight
        )
        self._services: short_cache.ShortCache[str, frozenset[str]] = short_cache.ShortCache(
            self._load_services, time, SERVICES_SECONDS, weight=_weight_of_names
        )

    async def read(
        self, namespace: str, wanted: Iterable[model.SourceRef], budget: float
    ) -> dict[model.SourceRef, EnvSource]:
        """Return the sources of a namespace; what has not come after ``budget`` seconds is unreadable.

        So are kinds that are not read, all of them when there are too many, and those for whose keys there is
        no room.
        """
        named = {reference for reference in wanted if reference.name}
        asked = {reference for reference in named if _PLURALS[reference.kind] in self._kinds}
        if not asked:
            return dict.fromkeys(named, UNREADABLE)
        if len(asked) > SOURCES_MAX or self._sources.running + len(asked) > WAITING_MAX:
            self._tell(events.Dropped("sources"))
            return dict.fromkeys(named, UNREADABLE)
        return dict.fromkeys(named, UNREADABLE) | await self._within(budget, namespace, asked)

    async def _within(
        self, budget: float, namespace: str, named: Collection[model.SourceRef]
    ) -> dict[model.SourceRef, EnvSource]:
        room = KEYS_WEIGHT_MAX

        async def one(reference: model.SourceRef) -> EnvSource:
            nonlocal room
            source = await self._sources.get((namespace, reference))
            room -= _weight(source)
            return source if room >= 0 else UNREADABLE

        reads = {asyncio.ensure_future(one(reference)): reference for reference in named}
        try:
            await asyncio.wait(reads, timeout=budget)
            return {name: read.result() if read.done() else UNREADABLE for read, name in reads.items()}
        finally:
            for read in reads:
                read.cancel()
            if room < 0:
                self._tell(events.Dropped("sources"))

    async def service_variables(self, namespace: str) -> frozenset[str]:
        """Return the names of the variables that the Services of a namespace make.

        Raises :class:`.KubernetesError` when they cannot be read.
        """
        return await self._services.get(namespace)

    async def master_variables(self) -> frozenset[str]:
        """Return the same of the API server's Service; raises as :meth:`service_variables` does."""
        return await self._services.get(f"{_MASTER_NAMESPACE}/{_MASTER}")

    async def _load(self, key: _Key) -> EnvSource:
        namespace, reference = key
        try:
            path = paths.of("v1", _PLURALS[reference.kind], namespace=namespace, name=reference.name)
            async with self._at_once:
                source = await self._kube.get(path)
        except (api_errors.NotFound, ValueError):
            return MISSING
        except api_errors.KubernetesError as error:
            self._tell(events.SourceUnreadable(str(error)))
            return UNREADABLE
        data = source.get("data") or {}
        return EnvSource(frozenset(data), frozenset(key for key, value in data.items() if not value))

    async def _load_services(self, where: str) -> frozenset[str]:
        namespace, _, name = where.partition("/")
        services: list[Mapping[str, Any]] = []
        if not name:
            listed = await self._kube.list_all(paths.of("v1", "services", namespace=namespace))
            services = [*listed.items]
        else:
            with contextlib.suppress(api_errors.NotFound):
                services = [await self._kube.get(paths.of("v1", "services", namespace=namespace, name=name))]
        return frozenset(expansion.service_environment(services))


def _weight(source: EnvSource) -> int:
    return _weight_of_names(source.keys or ())


def _weight_of_names(names: Collection[str]) -> int:
    return sum(map(len, names)) + _NAME_WEIGHT * len(names)
