"""References of a pod's containers that nothing resolves."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator import expansion
from addon_operator.admission import env_sources_reader
from addon_operator.kernel import json_types
from addon_operator.podpreset import defaults, env_sources

IGNORE: Final = "expansion.addon-operator.io/ignore"
"""With the value ``true``, exactly, no references of the pod are checked."""
SOURCES_SECONDS: Final = 5.0
"""How long ConfigMaps and Secrets are waited for; nobody else waits meanwhile."""

_OPENER: Final = "$("
_KINDS: Final = {
    "configMapRef": "ConfigMap",
    "secretRef": "Secret",
    "configMapKeyRef": "ConfigMap",
    "secretKeyRef": "Secret",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Unresolved:
    """What one container refers to in vain."""

    message: str
    """The text of the Event."""
    count: int
    """How many references it names."""


class ExpansionCheck:
    """Builds the environment of containers as the kubelet will."""

    def __init__(self, sources: env_sources_reader.EnvSources) -> None:
        self._sources = sources

    async def check(self, namespace: str, pod: json_types.KubernetesObject) -> list[Unresolved]:
        """What there is to tell of a pod, one entry for each container concerned.

        A container whose sources cannot be read is passed over: nobody knows what they would define.

        Raises :class:`addon_operator.kube.errors.KubernetesError` when Services cannot be read, and
        :class:`addon_operator.expansion.MalformedObjectError` for a pod that the API would not take.
        """
        given = (pod.get("metadata") or {}).get("annotations") or {}
        containers = [each for each in env_sources.containers(pod) if has_references(each)]
        if given.get(IGNORE) == "true" or not containers:
            return []
        services = await self._sources.services(namespace) if _links_services(pod) else ()
        masters = await self._sources.master_services()
        found = [await self._container(namespace, pod, each, services, masters) for each in containers]
        return [each for each in found if each is not None]

    async def _container(
        self,
        namespace: str,
        pod: json_types.KubernetesObject,
        container: dict[str, Any],
        services: env_sources_reader.Services,
        masters: env_sources_reader.Services,
    ) -> Unresolved | None:
        sources = await self._sources.read(namespace, set(_sources_of(container)), SOURCES_SECONDS)
        if not all(source.readable for source in sources.values()):
            return None
        environment = expansion.container_environment(
            pod,
            container,
            services=services,
            config_maps=_contents("ConfigMap", sources),
            secrets=_contents("Secret", sources),
            master_services=masters,
        )
        message = expansion.unresolved_message(str(container.get("name")), environment.unresolved)
        told = [each for each in environment.unresolved if each.is_variable and not each.pending]
        return Unresolved(message, len(told)) if message else None


def has_references(container: Mapping[str, Any]) -> bool:
    """Whether a container has anything that may be a reference."""
    texts = [*(container.get("command") or ()), *(container.get("args") or ())]
    texts += [entry.get("value") or "" for entry in container.get("env") or ()]
    return any(_OPENER in text for text in texts)


def _links_services(pod: json_types.KubernetesObject) -> bool:
    return (pod.get("spec") or {}).get("enableServiceLinks") is not False


def _sources_of(container: Mapping[str, Any]) -> Iterator[defaults.SourceRef]:
    holders = list(container.get("envFrom") or ())
    holders += [entry.get("valueFrom") or {} for entry in container.get("env") or ()]
    for holder in holders:
        for field, kind in _KINDS.items():
            if holder.get(field):
                yield defaults.SourceRef(kind, str(holder[field].get("name") or ""))


def _contents(
    kind: str, sources: Mapping[defaults.SourceRef, env_sources_reader.Source]
) -> dict[str, Mapping[str, str]]:
    return {
        reference.name: source.data
        for reference, source in sources.items()
        if reference.kind == kind and source.data is not None
    }
