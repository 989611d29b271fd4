"""What becomes of one pod: the decisions that the admission server makes, without one. No I/O."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jsonpatch

from addon_operator import expansion
from addon_operator.commands.preview import preview_objects
from addon_operator.kernel import json_types
from addon_operator.podpreset import env_sources, merge, model

_VALUE_SOURCES: Final = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}


@dataclass(frozen=True, slots=True)
class ContainerPreview:
    """A container or init container and the environment that it gets."""

    name: str
    environment: expansion.ContainerEnvironment

    @property
    def unresolved(self) -> list[expansion.UnresolvedReference]:
        """References without a value; what can be no variable, like ``$(date +%s)``, does not count."""
        return [one for one in self.environment.unresolved if one.is_variable]


@dataclass(frozen=True, slots=True)
class PodPreview:
    """A pod before and after its admission."""

    title: str
    """Kind and name of what was given, such as ``Deployment web``."""
    submitted: json_types.KubernetesObject
    admitted: json_types.KubernetesObject
    applied: tuple[merge.AppliedPreset, ...]
    conflicts: tuple[merge.PresetConflict, ...]
    containers: tuple[ContainerPreview, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is in conflict and every reference has a value."""
        return not self.conflicts and not any(one.unresolved for one in self.containers)


def admit(
    title: str,
    pod: json_types.KubernetesObject,
    presets: Collection[model.Preset],
    objects: preview_objects.Objects,
) -> PodPreview:
    """Apply the presets that were selected for a pod, and work out the environment of its containers.

    Raises :class:`.MalformedObjectError` for what the API server would refuse.
    """
    result = merge.inject(pod, presets, objects.contents.get)
    if isinstance(result, merge.Conflicted):
        return PodPreview(title, pod, pod, (), result.conflicts, _containers(pod, objects))
    admitted: dict[str, Any] = jsonpatch.apply_patch(pod, list(result.patch))
    return PodPreview(title, pod, admitted, result.applied, (), _containers(admitted, objects))


def sources_of(
    pod: json_types.KubernetesObject, presets: Collection[model.Preset]
) -> frozenset[model.SourceRef]:
    """Return all ConfigMaps and Secrets from which the pod, or a preset for it, takes variables."""
    sources: set[model.SourceRef] = set()
    for container in env_sources.containers(pod):
        sources.update(_named(container.get("env") or (), container.get("envFrom") or ()))
    for preset in presets:
        sources.update(_named([one.entry for one in preset.env], [one.entry for one in preset.env_from]))
    return frozenset(sources)


def _named(env: Collection[model.Entry], env_from: Collection[model.Entry]) -> Iterator[model.SourceRef]:
    for entry in env_from:
        if source := model.env_from_key(entry).source:
            yield source
    for entry in env:
        value_from: Mapping[str, Any] = entry.get("valueFrom") or {}
        for key, kind in _VALUE_SOURCES.items():
            if name := (value_from.get(key) or {}).get("name"):
                yield model.SourceRef(kind, name)


def _containers(
    pod: json_types.KubernetesObject, objects: preview_objects.Objects
) -> tuple[ContainerPreview, ...]:
    return tuple(
        ContainerPreview(one["name"], _environment(pod, one, objects)) for one in env_sources.containers(pod)
    )


def _environment(
    pod: json_types.KubernetesObject, container: Mapping[str, Any], objects: preview_objects.Objects
) -> expansion.ContainerEnvironment:
    return expansion.container_environment(
        pod,
        container,
        services=objects.services.values(),
        config_maps=objects.contents_of("ConfigMap"),
        secrets=objects.contents_of("Secret"),
        master_services=objects.master_services.values(),
    )
