"""Find the presets that apply to a pod, without looking at each of a cluster.

Each preset lies in buckets of one label that it requires, so that a pod meets only the presets that share a
label with it. Of the labels that a preset requires, the one with the fewest presets so far is taken.
Source: "PodPreset Exclude Annotation" and "Behavior" of the PodPreset design;
mirror pods as in Kubernetes 1.19.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from addon_operator.kernel import json_types
from addon_operator.podpreset import model

DOMAIN: Final = "podpreset.admission.kubernetes.io"
EXCLUDE: Final = f"{DOMAIN}/exclude"
"""With the value ``true``, exactly, no preset touches the pod."""
MIRROR: Final = "kubernetes.io/config.mirror"
"""Present on the API server's image of a static pod, which nobody may change."""

_PREFIX: Final = "podpreset-"
_LONGEST: Final = 63
_HASH_LENGTH: Final = 10


def applied_key(preset: str) -> str:
    """Return the key of the annotation that says that a preset was applied.

    The part behind the ``/`` may have 63 characters. A preset whose name does not fit keeps the beginning
    of its name and gets the beginning of the SHA-256 of the whole one, in hexadecimal.
    """
    name = _PREFIX + preset
    if len(name) > _LONGEST:
        digest = hashlib.sha256(preset.encode()).hexdigest()[:_HASH_LENGTH]
        name = f"{name[: _LONGEST - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"
    return f"{DOMAIN}/{name}"


def is_exempt(pod: json_types.KubernetesObject) -> bool:
    """Say whether no preset may touch the pod: a mirror pod, or one that opted out."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return MIRROR in annotations or annotations.get(EXCLUDE) == "true"


def select(pod: json_types.KubernetesObject, presets: Iterable[model.Preset]) -> tuple[model.Preset, ...]:
    """Return the presets, of its namespace's, that apply to a pod, in the order of their application."""
    if is_exempt(pod):
        return ()
    return matching(presets, (pod.get("metadata") or {}).get("labels") or {})


def matching(presets: Iterable[model.Preset], labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
    """Return the presets whose selector matches these labels, in order, without those being deleted."""
    found = (preset for preset in presets if not preset.deleting and preset.selector.matches(labels))
    return tuple(sorted(found, key=lambda preset: preset.order))


class _Bucket(NamedTuple):
    """Presets that require a label with a value, or with any; without a key, those that require none."""

    key: str = ""
    value: str | None = None


class _Namespace:
    """The presets of one namespace."""

    __slots__ = ("_buckets", "_placed", "_presets")

    def __init__(self) -> None:
        self._presets: dict[model.PresetName, model.Preset] = {}
        self._placed: dict[model.PresetName, tuple[_Bucket, ...]] = {}
        self._buckets: dict[_Bucket, dict[model.PresetName, model.Preset]] = {}

    def __len__(self) -> int:
        return len(self._presets)

    def put(self, preset: model.Preset) -> None:
        self.remove(preset.name)
        choice = min(
            _choices(preset.selector),
            key=lambda buckets: sum(len(self._buckets.get(bucket, ())) for bucket in buckets),
        )
        self._presets[preset.name] = preset
        self._placed[preset.name] = choice
        for bucket in choice:
            self._buckets.setdefault(bucket, {})[preset.name] = preset

    def remove(self, name: model.PresetName) -> None:
        self._presets.pop(name, None)
        for bucket in self._placed.pop(name, ()):
            del self._buckets[bucket][name]
            if not self._buckets[bucket]:
                del self._buckets[bucket]

    def candidates(self, labels: Mapping[str, str]) -> Iterator[model.Preset]:
        yield from self._buckets.get(_Bucket(), {}).values()
        for key, value in labels.items():
            yield from self._buckets.get(_Bucket(key), {}).values()
            yield from self._buckets.get(_Bucket(key, value), {}).values()


class PresetIndex:
    """The valid presets of all namespaces."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def put(self, preset: model.Preset) -> None:
        """Add a preset, or replace the one of its namespace and name."""
        self._namespaces.setdefault(preset.namespace, _Namespace()).put(preset)

    def remove(self, namespace: str, name: model.PresetName) -> None:
        """Forget a preset; nothing happens when it is not there."""
        held = self._namespaces.get(namespace)
        if held is None:
            return
        held.remove(name)
        if not len(held):
            del self._namespaces[namespace]

    def match(self, namespace: str, labels: Mapping[str, str]) -> tuple[model.Preset, ...]:
        """Return a namespace's presets whose selector matches, in order, without those being deleted."""
        held = self._namespaces.get(namespace)
        return matching(held.candidates(labels), labels) if held else ()


def _choices(selector: model.Selector) -> Iterator[tuple[_Bucket, ...]]:
    """Yield sets of buckets of which one suffices to find a preset; that for everything only if need be."""
    found = False
    for requirement in selector.requirements:
        if requirement.operator == "In":
            found = True
            yield tuple(_Bucket(requirement.key, value) for value in sorted(requirement.values))
        elif requirement.operator == "Exists":
            found = True
            yield (_Bucket(requirement.key),)
    if not found:
        yield (_Bucket(),)
