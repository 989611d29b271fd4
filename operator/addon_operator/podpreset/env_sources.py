"""Variables that one side sets with ``env`` and another side with ``envFrom``.

A *side* is a container as it came, or one preset. A side that has a variable alone, and one that has an
envFrom source alone which defines it, are in conflict about the two. A side that has both is not: its
author decided that ``env`` wins, as the kubelet lets it. A variable that the container has is the
container's, whoever repeats it: presets are in conflict about it with the container only, and none is if
some side has it together with the source. Which preset is older makes no difference for that. A pod that
is admitted a second time holds all that the first time put there, so nothing is in conflict then.

All of it takes time in proportion to what the sides have: sides are bits of a number, and sources are
looked up by prefix and key.
"""

import bisect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from addon_operator.kernel import json_types
from addon_operator.podpreset import model
from addon_operator.podpreset.model import EnvFromKey, SourceRef, env_from_key

EnvFromKeys: TypeAlias = Callable[[SourceRef], Collection[str] | None]
"""Gives the keys of a source's ``data``; ``None`` for one that is missing or unreadable."""

CONTAINER_LISTS: Final = ("containers", "initContainers")
CLASHES_MAX: Final = 1000
"""How many variables of one preset are named that a container's sources set, and the other way round."""

_KEY_MAX: Final = 253
"""Longest key of a ConfigMap or Secret, in characters."""
_CONTAINER: Final = 1
"""The bit of the container as it came."""
_T = TypeVar("_T")


class Side(msgspec.Struct, frozen=True):
    """What one side sets, each in its order and without repetition."""

    names: dict[str, None]
    """Names of the ``env`` entries."""
    sources: dict[EnvFromKey, None]
    """The ``envFrom`` entries."""


class Clash(msgspec.Struct, frozen=True):
    """A variable that one side sets and another side's envFrom sets too."""

    name: str
    source: SourceRef


class _Pair(msgspec.Struct, frozen=True):
    """A variable and a source that defines it, about which sides are in conflict."""

    clash: Clash
    rank: int
    """Which of all sources it is."""
    name_only: int
    """The sides that set the variable, as bits."""
    source_only: int
    """The sides that read the source."""


def container_side(container: json_types.KubernetesObject) -> Side:
    """Return the side of a container as it came."""
    return Side(
        {str(entry.get("name")): None for entry in container.get("env") or ()},
        {env_from_key(entry): None for entry in container.get("envFrom") or ()},
    )


def preset_side(preset: model.Preset) -> Side:
    """Return the side of a preset."""
    return Side(
        {str(addition.key): None for addition in preset.env},
        {env_from_key(addition.entry): None for addition in preset.env_from},
    )


class KnownKeys:
    """The sources that hold a key, among those that were asked about."""

    def __init__(self, env_from_keys: EnvFromKeys) -> None:
        self._env_from_keys = env_from_keys
        self._asked: set[SourceRef] = set()
        self._holders: dict[str, set[SourceRef]] = {}

    def ask(self, sources: Collection[SourceRef]) -> None:
        """Have the keys of these sources, too."""
        for source in sources:
            if source not in self._asked:
                self._asked.add(source)
                for key in self._env_from_keys(source) or ():
                    self._holders.setdefault(key, set()).add(source)

    def holders(self, key: str) -> Collection[SourceRef]:
        """Return the sources that have the key."""
        return self._holders.get(key, ())


class Sides:
    """All sides of one container: itself, and the presets in the order of their application."""

    __slots__ = ("_by_prefix", "_lengths", "_names", "_sides", "_sources")

    def __init__(self, container: Side, presets: Sequence[Side]) -> None:
        self._sides = (container, *presets)
        self._names = _bits(side.names for side in self._sides)
        self._sources = _bits(side.sources for side in self._sides)
        self._by_prefix: dict[str, set[SourceRef]] = {}
        for key in self._sources:
            if key.source is not None:
                self._by_prefix.setdefault(key.prefix, set()).add(key.source)
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})

    def sources_needed(self) -> set[SourceRef]:
        """Return the sources that may define a variable of another side, going by the prefix."""
        behind: dict[str, int] = {}
        for name, sides in self._names.items():
            for prefix in self._prefixes(name):
                behind[prefix] = behind.get(prefix, 0) | sides
        return {
            key.source
            for key, sides in self._sources.items()
            if key.source is not None and _differ(behind.get(key.prefix, 0), sides)
        }

    def clashes(self, known: KnownKeys) -> list[list[Clash]]:
        """Return what each preset is in conflict about with the container or an older preset."""
        known.ask(self.sources_needed())
        by_name: dict[str, list[_Pair]] = {}
        by_source: dict[EnvFromKey, list[_Pair]] = {}
        for name, source, pair in self._pairs(known):
            by_name.setdefault(name, []).append(pair)
            by_source.setdefault(source, []).append(pair)
        if not by_name:
            return [[] for _ in self._sides[1:]]
        return [
            list(itertools.islice(_of_side(1 << number, side, by_name, by_source), CLASHES_MAX))
            for number, side in enumerate(self._sides)
            if number
        ]

    def _pairs(self, known: KnownKeys) -> Iterator[tuple[str, EnvFromKey, _Pair]]:
        ranks = {source: rank for rank, source in enumerate(self._sources)}
        for name, names in self._names.items():
            for prefix in self._prefixes(name):
                for reference in self._by_prefix[prefix].intersection(known.holders(name[len(prefix) :])):
                    source = EnvFromKey(prefix, reference)
                    name_only, source_only = _in_conflict(names, self._sources[source])
                    if name_only and source_only:
                        clash = Clash(name, reference)
                        yield name, source, _Pair(clash, ranks[source], name_only, source_only)

    def _prefixes(self, name: str) -> Iterator[str]:
        """Yield the prefixes of sources that leave a key of the name."""
        first = bisect.bisect_left(self._lengths, len(name) - _KEY_MAX)
        for length in self._lengths[first : bisect.bisect_left(self._lengths, len(name))]:
            if name[:length] in self._by_prefix:
                yield name[:length]


def _bits(parts: Iterable[Iterable[_T]]) -> dict[_T, int]:
    """Return each item of the parts, in the order of its first part, with a bit for each part that has it."""
    bits: dict[_T, int] = {}
    for number, part in enumerate(parts):
        for item in part:
            bits[item] = bits.get(item, 0) | 1 << number
    return bits


def _differ(names: int, sources: int) -> bool:
    """Say whether a side of the first is not the same as one of the others."""
    only_one = names == sources and names.bit_count() == 1
    return bool(names) and bool(sources) and not only_one


def _in_conflict(names: int, sources: int) -> tuple[int, int]:
    """Say which sides that set a variable, and which that read a source of it, are in conflict."""
    if not names & _CONTAINER:
        return names & ~sources, sources & ~names
    return (0, 0) if names & sources else (_CONTAINER, sources)


def _of_side(
    bit: int, side: Side, by_name: Mapping[str, list[_Pair]], by_source: Mapping[EnvFromKey, list[_Pair]]
) -> Iterator[Clash]:
    """Yield the conflicts of a side with those before it."""
    before = bit - 1
    own = (
        pair
        for name in side.names
        for pair in by_name.get(name, ())
        if pair.name_only & bit and pair.source_only & before
    )
    ranked = sorted(itertools.islice(own, CLASHES_MAX), key=lambda pair: pair.rank)
    yield from (pair.clash for pair in ranked)
    for source in side.sources:
        for pair in by_source.get(source, ()):
            if pair.source_only & bit and pair.name_only & before:
                yield pair.clash


def sources_needed(pod: json_types.KubernetesObject, presets: Iterable[model.Preset]) -> frozenset[SourceRef]:
    """Return the ConfigMaps and Secrets whose keys decide whether the presets fit the pod; often none."""
    sides = [preset_side(preset) for preset in presets]
    each = (Sides(container_side(container), sides).sources_needed() for container in containers(pod))
    return frozenset(itertools.chain.from_iterable(each))


def containers(pod: json_types.KubernetesObject) -> list[dict[str, Any]]:
    """Return all containers that presets change: containers and init containers, never ephemeral ones."""
    spec = pod.get("spec") or {}
    return [container for name in CONTAINER_LISTS for container in spec.get(name) or ()]
