"""Variables that one side sets with ``env`` and another side with ``envFrom``.

A *side* is a container as it came, or one preset. A variable and an envFrom source that only different sides
have are in conflict when the source defines the variable. Where one side has both, its author decided that
``env`` wins, as the kubelet lets it. A pod that is admitted a second time holds all that the first time put
there, so it has both itself, and nothing is in conflict.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from addon_operator.kernel import json_types
from addon_operator.podpreset import model
from addon_operator.podpreset.defaults import EnvFromKey, SourceRef, env_from_key

EnvFromKeys: TypeAlias = Callable[[SourceRef], Collection[str] | None]
"""Gives the keys of a source's ``data``; ``None`` for one that is missing or unreadable."""

CONTAINER_LISTS: Final = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class Side:
    """What one side sets, each in its order and without repetition."""

    names: dict[str, None]
    """Names of the ``env`` entries."""
    sources: dict[EnvFromKey, None]
    """The ``envFrom`` entries."""

    def has_both(self, name: str, source: EnvFromKey) -> bool:
        """Whether this side's author decided about the two."""
        return name in self.names and source in self.sources


@dataclass(frozen=True, slots=True)
class Clash:
    """A variable that one side sets and another side's envFrom sets too."""

    name: str
    source: SourceRef


def container_side(container: json_types.KubernetesObject) -> Side:
    """The side of a container as it came."""
    return Side(
        {str(entry.get("name")): None for entry in container.get("env") or ()},
        {env_from_key(entry): None for entry in container.get("envFrom") or ()},
    )


def preset_side(preset: model.Preset) -> Side:
    """The side of a preset."""
    return Side(
        {str(addition.key): None for addition in preset.env},
        {env_from_key(addition.entry): None for addition in preset.env_from},
    )


class Sides:
    """The sides of one container that were looked at so far."""

    __slots__ = ("_names", "_sides", "_sources")

    def __init__(self, first: Side) -> None:
        self._sides: list[Side] = []
        self._names: dict[str, None] = {}
        self._sources: dict[EnvFromKey, None] = {}
        self.add(first)

    def add(self, side: Side) -> None:
        """Remember one more side."""
        self._sides.append(side)
        self._names.update(side.names)
        self._sources.update(side.sources)

    def clashes(self, side: Side, env_from_keys: EnvFromKeys) -> Iterator[Clash]:
        """The variables about which a side and those before it are in conflict."""
        for names, source, reference in self._questions(side):
            keys = env_from_keys(reference) or ()
            for name in names:
                if name[len(source.prefix) :] in keys and not self._is_decided(name, source, side):
                    yield Clash(name, reference)

    def sources_needed(self, side: Side) -> Iterator[SourceRef]:
        """The sources about which :meth:`clashes` asks."""
        return (reference for _, _, reference in self._questions(side))

    def _questions(self, side: Side) -> Iterator[tuple[list[str], EnvFromKey, SourceRef]]:
        """The variables of one side that a source of another can define, going by the prefix."""
        for names, sources in ((side.names, self._sources), (self._names, side.sources)):
            for source in sources:
                possible = [name for name in names if name.startswith(source.prefix)]
                if possible and source.source is not None:
                    yield possible, source, source.source

    def _is_decided(self, name: str, source: EnvFromKey, side: Side) -> bool:
        return any(one.has_both(name, source) for one in (*self._sides, side))


def sources_needed(pod: json_types.KubernetesObject, presets: Iterable[model.Preset]) -> frozenset[SourceRef]:
    """The ConfigMaps and Secrets whose keys decide whether the presets fit the pod; often none."""
    sides = [preset_side(preset) for preset in presets]
    needed: set[SourceRef] = set()
    for container in containers(pod):
        together = Sides(container_side(container))
        for side in sides:
            needed.update(together.sources_needed(side))
            together.add(side)
    return frozenset(needed)


def containers(pod: json_types.KubernetesObject) -> list[dict[str, Any]]:
    """All containers that presets change: containers and init containers, never ephemeral ones."""
    spec = pod.get("spec") or {}
    return [container for name in CONTAINER_LISTS for container in spec.get(name) or ()]
