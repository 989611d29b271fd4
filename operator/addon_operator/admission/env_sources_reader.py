"""ConfigMaps, Secrets and Services that decide about the environment of a pod, read while it is admitted."""

import asyncio
import base64
import binascii
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from addon_operator.admission import short_cache
from addon_operator.kernel import clock
from addon_operator.kube import client, errors, paths
from addon_operator.podpreset import defaults

SOURCE_SECONDS: Final = 2.0
"""How long a ConfigMap or Secret that was found is not read again."""
SERVICES_SECONDS: Final = 5.0
"""How long the Services of a namespace are not read again."""

_PLURALS: Final = {"ConfigMap": "configmaps", "Secret": "secrets"}
_MASTER_NAMESPACE: Final = "default"
_MASTER: Final = "kubernetes"

Services = tuple[Mapping[str, Any], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """What came of reading a ConfigMap or Secret."""

    data: Mapping[str, str] | None = dataclasses.field(repr=False)
    """Key to text; ``None`` when it does not exist or could not be read."""
    readable: bool = True
    """Whether that is known; ``False`` without the right to read it, or when no answer came in time."""


MISSING: Final = Source(None)
UNREADABLE: Final = Source(None, readable=False)

_Key = tuple[str, defaults.SourceRef]


class EnvSources:
    """Reads the sources of containers' environments, with a short memory."""

    def __init__(
        self, kube: client.KubeClient, time: clock.Clock, warn_once: Callable[[str], None] = lambda _: None
    ) -> None:
        """``warn_once`` is told of rights that are missing."""
        self._kube = kube
        self._warn_once = warn_once
        # What is missing may be there with the next pod, and what could not be read may be readable.
        self._sources: short_cache.ShortCache[_Key, Source] = short_cache.ShortCache(
            self._load, time, SOURCE_SECONDS, keep=lambda source: source.data is not None
        )
        self._services: short_cache.ShortCache[str, Services] = short_cache.ShortCache(
            self._load_services, time, SERVICES_SECONDS
        )

    async def read(
        self, namespace: str, wanted: Iterable[defaults.SourceRef], budget: float
    ) -> dict[defaults.SourceRef, Source]:
        """The sources of a namespace; what has not come after ``budget`` seconds is unreadable."""
        named = [reference for reference in set(wanted) if reference.name]
        if not named:
            return {}
        reads = {
            asyncio.ensure_future(self._sources.get((namespace, reference))): reference for reference in named
        }
        done, late = await asyncio.wait(reads, timeout=budget)
        for read in late:
            read.cancel()
        return {reference: read.result() if read in done else UNREADABLE for read, reference in reads.items()}

    async def services(self, namespace: str) -> Services:
        """The Services of a namespace.

        Raises :class:`addon_operator.kube.errors.KubernetesError` when they cannot be read.
        """
        return await self._services.get(namespace)

    async def master_services(self) -> Services:
        """The Service of the API server; raises as :meth:`services` does."""
        return await self._services.get(f"{_MASTER_NAMESPACE}/{_MASTER}")

    async def _load(self, key: _Key) -> Source:
        namespace, reference = key
        try:
            path = paths.of("v1", _PLURALS[reference.kind], namespace=namespace, name=reference.name)
            found = await self._kube.get(path)
        except (errors.NotFound, ValueError):
            return MISSING
        except errors.KubernetesError as error:
            self._warn_once(f"a source of variables cannot be read and counts as empty: {error}")
            return UNREADABLE
        return Source(_texts(reference.kind, found.get("data") or {}))

    async def _load_services(self, where: str) -> Services:
        namespace, _, name = where.partition("/")
        if not name:
            return tuple((await self._kube.list_all(paths.of("v1", "services", namespace=namespace))).items)
        with contextlib.suppress(errors.NotFound):
            return (await self._kube.get(paths.of("v1", "services", namespace=namespace, name=name)),)
        return ()


def _texts(kind: str, data: Mapping[str, str]) -> dict[str, str]:
    return dict(data) if kind == "ConfigMap" else {key: _decoded(text) for key, text in data.items()}


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except binascii.Error:
        return ""
