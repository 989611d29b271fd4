"""References of a pod's containers that nothing resolves."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from addon_operator import expansion
from addon_operator.admission.pods import env_sources_reader
from addon_operator.expansion import services as expansion_services
from addon_operator.kernel import json_types
from addon_operator.kube import api_errors
from addon_operator.podpreset import env_sources, model

IGNORE: Final = "expansion.addon-operator.io/ignore"
"""With the value ``true``, exactly, no references of the pod are checked."""
SECONDS: Final = 5.0
"""How long Services, ConfigMaps and Secrets of one pod are waited for in all; nobody else waits meanwhile."""

REFERENCES_MAX: Final = 1000
"""How many unresolved references of one container are looked for; an Event names a few dozen."""

_OPENER: Final = "$("
_ALL_KEYS: Final = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
_ONE_KEY: Final = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}


class Unresolved(msgspec.Struct, frozen=True):
    """References of one container that nothing resolves."""

    message: str
    """The text of the Event."""
    count: int
    """How many references it names."""


_Sources = Mapping[model.SourceRef, env_sources_reader.EnvSource]


class ExpansionCheck:
    """Finds out which references the kubelet will not resolve, by names alone."""

    def __init__(self, sources: env_sources_reader.EnvSources) -> None:
        self._sources = sources

    async def check(self, namespace: str, pod: json_types.KubernetesObject) -> list[Unresolved]:
        """Return what there is to report about a pod, one entry for each container concerned.

        A container is skipped if an ``envFrom`` cannot be read: nobody knows which variables it defines.
        Of a single key of what cannot be read the name is known, and that is all that a reference needs.

        Raises :class:`.KubernetesError` when Services cannot be read, and
        :class:`.MalformedObjectError` for a pod that the API would not take.
        """
        annotations = (pod.get("metadata") or {}).get("annotations") or {}
        containers = [each for each in env_sources.containers(pod) if has_references(each)]
        if annotations.get(IGNORE) == "true" or not containers:
            return []
        sources, services = await self._known_variables(namespace, pod, containers)
        unresolved = []
        for container in containers:
            unresolved.append(_unresolved(pod, container, sources, services))
            # Thousands of containers must not hold the loop.
            await asyncio.sleep(0)
        return [each for each in unresolved if each is not None]

    async def _known_variables(
        self, namespace: str, pod: json_types.KubernetesObject, containers: Iterable[Mapping[str, Any]]
    ) -> tuple[_Sources, Collection[Collection[str]]]:
        references = {reference for each in containers for reference in _sources_of(each)}
        reading = asyncio.create_task(self._sources.read(namespace, references, SECONDS))
        try:
            async with asyncio.timeout(SECONDS):
                variables = await self._service_variables(namespace, pod)
            return await reading, variables
        except TimeoutError:
            raise api_errors.Unreachable("the Services of its namespace were not read in time") from None
        finally:
            reading.cancel()

    async def _service_variables(
        self, namespace: str, pod: json_types.KubernetesObject
    ) -> Collection[Collection[str]]:
        links = (pod.get("spec") or {}).get("enableServiceLinks") is not False
        own = await self._sources.service_variables(namespace) if links else ()
        return expansion_services.visible_names(own, await self._sources.master_variables())


def _unresolved(
    pod: json_types.KubernetesObject,
    container: Mapping[str, Any],
    known: _Sources,
    services: Collection[Collection[str]],
) -> Unresolved | None:
    sources = {reference: known[reference] for reference in _sources_of(container) if reference.name}
    unreadable = {reference for reference, source in sources.items() if not source.readable}
    if not unreadable.isdisjoint(_wholly_used(container)):
        return None
    assumed: dict[model.SourceRef, set[str]] = {reference: set() for reference in unreadable}
    for reference, key in _single_keys(container):
        if reference in assumed:
            assumed[reference].add(key)
    sources |= {
        reference: env_sources_reader.EnvSource(frozenset(keys)) for reference, keys in assumed.items()
    }
    unresolved = expansion.unresolved_references(
        pod,
        container,
        config_maps=_keys("ConfigMap", sources),
        secrets=_keys("Secret", sources),
        empty={(*reference, key) for reference, source in sources.items() for key in source.empty},
        service_variables=services,
        most=REFERENCES_MAX,
    )
    message = expansion.unresolved_message(str(container.get("name")), unresolved)
    named = [each for each in unresolved if each.is_variable and not each.pending]
    return Unresolved(message, len(named)) if message else None


def has_references(container: Mapping[str, Any]) -> bool:
    """Say whether a container has anything that may be a reference."""
    texts = [*(container.get("command") or ()), *(container.get("args") or ())]
    texts += [entry.get("value") or "" for entry in container.get("env") or ()]
    texts += [mount.get("subPathExpr") or "" for mount in container.get("volumeMounts") or ()]
    return any(_OPENER in text for text in texts)


def _sources_of(container: Mapping[str, Any]) -> Iterator[model.SourceRef]:
    yield from _wholly_used(container)
    yield from (reference for reference, _ in _single_keys(container))


def _wholly_used(container: Mapping[str, Any]) -> Iterator[model.SourceRef]:
    for holder in container.get("envFrom") or ():
        yield from (reference for reference, _ in _references(holder, _ALL_KEYS))


def _single_keys(container: Mapping[str, Any]) -> Iterator[tuple[model.SourceRef, str]]:
    for entry in container.get("env") or ():
        yield from _references(entry.get("valueFrom") or {}, _ONE_KEY)


def _references(holder: Mapping[str, Any], kinds: Mapping[str, str]) -> Iterator[tuple[model.SourceRef, str]]:
    for field, kind in kinds.items():
        if named := holder.get(field):
            yield model.SourceRef(kind, str(named.get("name") or "")), str(named.get("key") or "")


def _keys(kind: str, sources: _Sources) -> dict[str, Collection[str]]:
    return {
        reference.name: source.keys
        for reference, source in sources.items()
        if reference.kind == kind and source.keys is not None
    }
