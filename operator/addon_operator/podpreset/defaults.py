"""Entries of pods and presets in the form in which those that mean the same are equal.

The pod of an admission request has the API server's defaults filled in, a preset has not: without this an
identical Secret volume would look like a conflict. Nothing of this is ever written to a pod.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from addon_operator.podpreset import core_types, schema, volume_types

Entry: TypeAlias = Mapping[str, Any]
"""A variable, an envFrom source, a volume or a mount as decoded JSON."""


class SourceRef(NamedTuple):
    """A ConfigMap or Secret that envFrom reads."""

    kind: str
    """``ConfigMap`` or ``Secret``."""
    name: str

    def __str__(self) -> str:
        """How messages name it: ``ConfigMap c``."""
        return f"{self.kind} {self.name}"


class EnvFromKey(NamedTuple):
    """What two envFrom entries must share to be about the same thing."""

    prefix: str
    source: SourceRef | None
    """``None`` for an entry without a source, which the API server refuses."""


def canonical_env(entry: Entry) -> Entry:
    """A variable, comparable."""
    return schema.canonical(core_types.ENV_VAR, entry)


def canonical_env_from(entry: Entry) -> Entry:
    """An envFrom entry, comparable."""
    return schema.canonical(core_types.ENV_FROM_SOURCE, entry)


def canonical_volume(entry: Entry) -> Entry:
    """A volume, comparable."""
    return schema.canonical(volume_types.VOLUME, entry)


def canonical_mount(entry: Entry) -> Entry:
    """A mount, comparable."""
    return schema.canonical(core_types.VOLUME_MOUNT, entry)


def env_from_key(entry: Entry) -> EnvFromKey:
    """Prefix and source of an envFrom entry."""
    prefix = entry.get("prefix") or ""
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        reference = entry.get(field)
        if reference:
            return EnvFromKey(prefix, SourceRef(kind, reference.get("name") or ""))
    return EnvFromKey(prefix, None)
