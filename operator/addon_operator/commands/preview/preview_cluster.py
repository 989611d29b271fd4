"""What decides about a pod besides the pod itself, as a cluster has it: read once, never written."""

import asyncio
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from addon_operator.aio import short_cache
from addon_operator.commands.preview import preview_objects
from addon_operator.kernel import clock
from addon_operator.kube import api_errors, paths
from addon_operator.kube.client import client
from addon_operator.podpreset import model

_PLURALS: Final = {"ConfigMap": "configmaps", "Secret": "secrets"}


class ClusterObjects:
    """Reads objects of a cluster, each at most once.

    All methods raise :class:`.KubernetesError` when the cluster does not answer;
    what it has not, or may not be read, is left out with a note.
    """

    def __init__(self, kube: client.KubeClient, allowed_volumes: Collection[str]) -> None:
        self._kube = kube
        self._allowed_volumes = allowed_volumes
        time = clock.SystemClock()
        self._presets = short_cache.ShortCache(self._list_presets, time, math.inf)
        self._services = short_cache.ShortCache(self._list_services, time, math.inf)
        self._texts = short_cache.ShortCache(self._get_contents, time, math.inf)
        self.notes: list[str] = []
        """What a person should know about the answers."""

    async def presets(self, namespace: str) -> tuple[model.Preset, ...]:
        """Return the valid presets of a namespace."""
        return await self._presets.get(namespace)

    async def services(self, namespace: str) -> preview_objects.Services:
        """Return the Services of a namespace, by name; none when they cannot be read."""
        return await self._services.get(namespace)

    async def contents(self, namespace: str, wanted: Iterable[model.SourceRef]) -> preview_objects.Contents:
        """Return keys and texts of ConfigMaps and Secrets, of those that are there and may be read."""
        listed = sorted(set(wanted))
        texts = await asyncio.gather(*(self._texts.get((namespace, source)) for source in listed))
        return {source: one for source, one in zip(listed, texts, strict=True) if one is not None}

    async def _list_presets(self, namespace: str) -> tuple[model.Preset, ...]:
        path = paths.of(model.API_VERSION, model.PLURAL, namespace=namespace)
        try:
            stored = await self._kube.list_all(path)
        except api_errors.NotServed:
            self.notes.append("the cluster has no PodPresets: apply crds/podpresets.yaml to install them")
            return ()
        parsed = [model.parse(one, self._allowed_volumes) for one in stored.items]
        self.notes += [
            preview_objects.ignored(f"PodPreset {one.name} in namespace {namespace}", one.reasons)
            for one in parsed
            if isinstance(one, model.InvalidPreset)
        ]
        return tuple(one for one in parsed if isinstance(one, model.Preset))

    async def _list_services(self, namespace: str) -> preview_objects.Services:
        try:
            stored = await self._kube.list_all(paths.of("v1", "services", namespace=namespace))
        except (api_errors.Unreachable, api_errors.Forbidden) as error:
            self.notes.append(f"Services of namespace {namespace} are left out: {error}")
            return {}
        return {one["metadata"]["name"]: one for one in stored.items}

    async def _get_contents(self, wanted: tuple[str, model.SourceRef]) -> Mapping[str, str] | None:
        namespace, source = wanted
        path = paths.of("v1", _PLURALS[source.kind], namespace=namespace, name=source.name)
        try:
            return preview_objects.texts_of_stored(source.kind, await self._kube.get(path))
        except api_errors.NotFound:
            return None
        except api_errors.Forbidden as error:
            self.notes.append(f"{source} counts as missing: {error}")
            return None
