"""A PodPreset, parsed once per stored object, with its entries in the form in which equal ones are equal.

The pod of an admission request has the API server's defaults filled in, a preset has not: without that form
an identical Secret volume would look like a conflict. Nothing of it is ever written to a pod.
"""

import datetime as dt
import functools
import operator
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Final, NamedTuple, NewType, TypeAlias

import msgspec

from addon_operator.kernel import json_types
from addon_operator.podpreset import crd, schema, volume_types

Entry: TypeAlias = Mapping[str, Any]
"""A variable, an envFrom source, a volume or a mount as decoded JSON."""


class SourceRef(NamedTuple):
    """A ConfigMap or Secret that envFrom reads."""

    kind: str
    """``ConfigMap`` or ``Secret``."""
    name: str

    def __str__(self) -> str:
        """Say how messages name it: ``ConfigMap c``."""
        return f"{self.kind} {self.name}"


class EnvFromKey(NamedTuple):
    """What two envFrom entries must share to be about the same thing."""

    prefix: str
    source: SourceRef | None
    """``None`` for an entry without a source, which the API server refuses."""


def env_from_key(entry: Entry) -> EnvFromKey:
    """Return the prefix and source of an envFrom entry."""
    prefix = entry.get("prefix") or ""
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        reference = entry.get(field)
        if reference:
            return EnvFromKey(prefix, SourceRef(kind, reference.get("name") or ""))
    return EnvFromKey(prefix, None)


GROUP: Final = "settings.k8s.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "PodPreset"
PLURAL: Final = "podpresets"

PresetName = NewType("PresetName", str)
"""Name of a PodPreset in its namespace."""

_NAME: Final = operator.itemgetter("name")
_LAST: Final = dt.datetime.max.replace(tzinfo=dt.UTC)


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: str
    """``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``."""
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels meet the condition; without the key, NotIn and DoesNotExist are met."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class Selector(msgspec.Struct, frozen=True):
    """All the conditions that a pod's labels have to meet; an empty one matches nothing that we serve.

    Source: "Labels and Selectors" of the Kubernetes documentation; held to what the API server asks of the
    selector of a NetworkPolicy.
    """

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels meet every condition."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def compile_selector(selector: Mapping[str, Any]) -> Selector:
    """Return the selector of a mapping that is valid."""
    pairs = (selector.get("matchLabels") or {}).items()
    equal = [Requirement(key, "In", frozenset({value})) for key, value in pairs]
    expressions = selector.get("matchExpressions") or []
    rest = [
        Requirement(one["key"], one["operator"], frozenset(one.get("values") or ())) for one in expressions
    ]
    return Selector((*equal, *rest))


class Addition(msgspec.Struct, frozen=True):
    """One entry that a preset adds to a list of a pod or container."""

    key: Hashable
    """What makes two entries be about the same thing: name, mount path, or prefix and source."""
    entry: Entry
    """What is written to the pod."""
    canonical: Entry
    """What is compared with the pod's own entries."""
    size: int
    """How many characters the entry has, about."""


class Preset(msgspec.Struct, frozen=True):
    """A valid PodPreset."""

    namespace: str
    name: PresetName
    resource_version: str
    created: dt.datetime
    """When it was created; far in the future for one that is in no cluster yet."""
    deleting: bool
    selector: Selector
    env: tuple[Addition, ...]
    env_from: tuple[Addition, ...]
    volumes: tuple[Addition, ...]
    volume_mounts: tuple[Addition, ...]

    def characters(self, containers: int) -> int:
        """Say how many characters it can add to a pod with so many containers."""
        for_each = sum(one.size for part in (self.env, self.env_from, self.volume_mounts) for one in part)
        return containers * for_each + sum(one.size for one in self.volumes)

    @property
    def order(self) -> tuple[dt.datetime, PresetName]:
        """Presets are applied in this order: the oldest first, then by name."""
        return self.created, self.name


class InvalidPreset(msgspec.Struct, frozen=True):
    """A PodPreset that is ignored, for instance one stored under an older CustomResourceDefinition."""

    namespace: str
    name: PresetName
    resource_version: str
    reasons: tuple[str, ...]
    """One sentence each, beginning with the path of the field; never empty."""


@functools.cache
def _object() -> schema.TypeShape:
    return schema.TypeShape(schema.Kind.OBJECT, {"spec": crd.spec()}, required=["spec"])


def parse(
    preset: json_types.KubernetesObject, allowed: Collection[str] = volume_types.SOURCE_NAMES
) -> Preset | InvalidPreset:
    """Read a PodPreset as the API server or a file gives it, with the rules of ``crds/podpresets.yaml``.

    A preset with a volume of a type that is not ``allowed`` is invalid, too. Like the API server it leaves
    out nulls and fields that it does not know. It never raises.
    """
    metadata = preset.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = {}
    pruned = schema.prune(_object(), preset)
    reasons = tuple(schema.problems(_object(), pruned, "")) or _forbidden_volumes(pruned["spec"], allowed)
    if reasons:
        name, version = _text(metadata, "name"), _text(metadata, "resourceVersion")
        return InvalidPreset(_text(metadata, "namespace"), PresetName(name), version, reasons)
    return _preset(metadata, pruned["spec"])


def _forbidden_volumes(spec: Mapping[str, Any], allowed: Collection[str]) -> tuple[str, ...]:
    """Return what is wrong with types of a spec's volumes, one sentence each, if nothing else is wrong."""
    only = ", ".join(sorted(allowed, key=str.lower))
    kinds = [
        next((name for name in volume if name in volume_types.SOURCE_NAMES), volume_types.NO_SOURCE)
        for volume in spec.get("volumes") or ()
    ]
    return tuple(
        f"spec.volumes[{index}].{kind}: volumes of this type are not allowed in presets here, only {only} "
        "(PODPRESET_VOLUME_TYPES)"
        for index, kind in enumerate(kinds)
        if kind not in allowed
    )


def _preset(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Preset:
    return Preset(
        namespace=_text(metadata, "namespace"),
        name=PresetName(_text(metadata, "name")),
        resource_version=_text(metadata, "resourceVersion"),
        created=_time(metadata.get("creationTimestamp")),
        deleting=metadata.get("deletionTimestamp") is not None,
        selector=compile_selector(spec["selector"]),
        env=_additions(spec, "env", _NAME),
        env_from=_additions(spec, "envFrom", env_from_key),
        volumes=_additions(spec, "volumes", _NAME),
        volume_mounts=_additions(spec, "volumeMounts", operator.itemgetter("mountPath")),
    )


def _additions(spec: Mapping[str, Any], part: str, key: Callable[[Entry], Hashable]) -> tuple[Addition, ...]:
    entries = [_text_value(one) if part == "env" else one for one in spec.get(part, ())]
    return tuple(Addition(key(one), one, crd.canonical(part, one), _size(one)) for one in entries)


def _size(value: object) -> int:
    if isinstance(value, Mapping):
        return 2 + sum(len(str(key)) + 4 + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return 2 + sum(1 + _size(item) for item in value)
    return 2 + len(value) if isinstance(value, str) else 8


def _text_value(variable: dict[str, Any]) -> dict[str, Any]:
    if isinstance(variable.get("value", ""), str):
        return variable
    return {**variable, "value": schema.text_of(variable["value"])}


def _text(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _time(value: object) -> dt.datetime:
    try:
        parsed = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return _LAST
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)
