"""Which presets apply to a pod.

Source: "PodPreset Exclude Annotation" of the PodPreset design; mirror pods as in Kubernetes 1.19.
"""

from collections.abc import Iterable

from addon_operator.kernel import json_types
from addon_operator.podpreset import annotations, model


def is_exempt(pod: json_types.KubernetesObject) -> bool:
    """Whether no preset may touch the pod: a mirror pod, or one that opted out."""
    given = (pod.get("metadata") or {}).get("annotations") or {}
    return annotations.MIRROR in given or given.get(annotations.EXCLUDE) == "true"


def select(pod: json_types.KubernetesObject, presets: Iterable[model.Preset]) -> tuple[model.Preset, ...]:
    """The presets that apply to a pod, of the presets of its namespace, in the order of their application."""
    if is_exempt(pod):
        return ()
    labels = (pod.get("metadata") or {}).get("labels") or {}
    matching = (preset for preset in presets if not preset.deleting and preset.selector.matches(labels))
    return tuple(sorted(matching, key=lambda preset: preset.order))
