"""What others put beside what a manifest says: fields and items that it does not have.

Helm leaves them there. So they may stand in the way of what the manifest says: a port of the same name, or
``valueFrom`` beside ``value``.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from addon_operator.documents import json_pointers, text_parts
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.drift import field_drift, field_owners, keyed_items, not_ours

_OF_INJECTORS: Final = frozenset(
    {"containers", "initContainers", "ephemeralContainers", "volumes", "volumeMounts", "volumeDevices", "env"}
)
"""Lists to which programs add items: what they add does not count as drift."""
_BUILT_IN: Final = re.compile(r"(?:[a-z]+|[a-z.]+\.k8s\.io)/v[0-9a-z]+|v1")
"""Versions of APIs that come with Kubernetes: controllers of other kinds may add to their lists."""
_NOT_LOOKED_AT: Final = frozenset({"apiVersion", "kind", "metadata", "status", "stringData"})
_INDEX: Final = re.compile(r"\[[^\]]{0,253}\]")
_DEEPEST: Final = 100
"""Steps to a field that is still looked at."""
_MOST_FIELDS: Final = 20
"""Fields of a refusal that are looked for."""
_LONGEST: Final = 4000
"""Characters of a refusal that are read."""
_REFUSED_FIELD: Final = re.compile(
    r"(?<![\w.\]/])([a-zA-Z]\w{0,63}(?:\.\w{1,63}|\[[^\]\s]{1,253}\]){0,20}): "
    r"(?:Duplicate value|Forbidden|Invalid value|Not found|Required value|Unsupported value|Too many)"
)
"""A field as the API server names it."""
_TWICE: Final = re.compile(r': "([^"]{1,253})"')
"""What a list has twice."""
_OTHER_FIELD: Final = re.compile(r"`(\w{1,63})`")
"""Another field that is in its way, as the API server names it."""
_NEVER_CHANGES: Final = re.compile(r"immutable|(?:may|can) ?not (?:be )?change|updates to ")

Difference: TypeAlias = field_drift.Difference


def changes(
    expected: KubernetesObject,
    live: KubernetesObject,
    around: not_ours.Surroundings = not_ours.NOTHING,
    *,
    settled: str = "",
) -> list[Difference]:
    """Return all that counts as drift: fields that are otherwise, and items that people added to lists.

    ``settled``: as for :func:`.field_drift.differences`.
    """
    found = field_drift.differences(expected, live, around=around, settled=settled)
    items = [each for each in _beside(expected, live) if each.is_item]
    by_list = {each.difference.live_path[:-1]: each.difference.manager for each in items}
    told = [_by_who_added(each, by_list) for each in found]
    is_built_in = _BUILT_IN.fullmatch(str(expected.get("apiVersion"))) is not None
    counted = [
        each.difference
        for each in items
        if is_built_in and each.counts(settled) and not _is_others(expected, each, around)
    ]
    return [*told, *counted][: field_drift.MOST_DIFFERENCES]


def _by_who_added(missing: Difference, by_list: Mapping[field_drift.Path, str]) -> Difference:
    """Return a missing item with who put another one there: with another key, it is another item."""
    if missing.manager or missing.live_path[-1] != "-":
        return missing
    return dataclasses.replace(missing, manager=by_list.get(missing.live_path[:-1], ""))


def beside(
    expected: KubernetesObject, live: KubernetesObject, *, with_applied: bool = True
) -> list[Difference]:
    """Return all that others put there and the manifest does not have.

    ``with_applied``: also what they own by server-side apply, and would apply again.
    """
    return [
        each.difference
        for each in _beside(expected, live)
        if with_applied or not any(owner.operation == "Apply" for owner in each.owners)
    ]


def blamed(found: Sequence[Difference], refusal: str) -> list[Difference]:
    """Return those of them that a refusal of the API server is about, by the fields that it names."""
    told: dict[json_pointers.Tokens, Difference] = {}
    for start, said in text_parts.after_each(_REFUSED_FIELD, refusal[:_LONGEST])[:_MOST_FIELDS]:
        field = tuple(_INDEX.sub("", start[1]).split("."))
        near = _near(found, field, said)
        told |= {each.live_path: each for each in near}
    return list(told.values())


def _near(found: Sequence[Difference], field: json_pointers.Tokens, said: str) -> list[Difference]:
    """Return what is in the way of a field: what its refusal names, is in it or around it, or beside it."""
    parent = field[:-1]
    for name in _OTHER_FIELD.findall(said):
        if named := [each for each in found if _place(each) == (*parent, name)]:
            return named
    near = _closest(found, field)
    if near and (twice := _TWICE.match(said)):
        having = [
            each for each in near if isinstance(each.live, dict) and _has(each.live, field[-1], twice[1])
        ]
        return having or near
    return near or ([] if _NEVER_CHANGES.search(said) else _closest(found, parent))


def _closest(found: Sequence[Difference], field: json_pointers.Tokens) -> list[Difference]:
    near = [(each, place) for each in found if json_pointers.overlap(place := _place(each), field)]
    most = max((min(len(place), len(field)) for _, place in near), default=0)
    return [each for each, place in near if min(len(place), len(field)) == most > 0]


def _place(found: Difference) -> json_pointers.Tokens:
    return tuple(step for step in found.live_path if not json_pointers.is_index(step))


def _has(item: Mapping[str, Any], field: str, value: str) -> bool:
    return str(item.get(field)) == value


class _Found(msgspec.Struct, frozen=True):
    """One field or item, and who wrote it."""

    difference: Difference
    owners: tuple[field_owners.Owner, ...]
    is_item: bool

    def counts(self, settled: str) -> bool:
        """Say whether an item is drift, if it is not others'."""
        is_injected = self.difference.live_path[-2] in _OF_INJECTORS
        return not (is_injected or any(owner.time <= settled for owner in self.owners))


def _is_others(expected: KubernetesObject, found: _Found, around: not_ours.Surroundings) -> bool:
    item = found.difference
    field = not_ours.Field(expected, item.path, None, item.live, found.owners)
    return not_ours.kept(field, around) is not None


def dropped(before: KubernetesObject, after: KubernetesObject, live: KubernetesObject) -> list[Difference]:
    """Return what an upgrade takes away: what one manifest has and the next one has not."""
    stays = {each.difference.live_path for each in _beside(before, live, whoever=True)}
    found = (each.difference for each in _beside(after, live, whoever=True))
    return [each for each in found if each.live_path not in stays]


def _beside(expected: KubernetesObject, live: KubernetesObject, *, whoever: bool = False) -> Iterator[_Found]:
    owned = field_owners.owned(live)
    if not owned.held:
        return
    kept = field_drift.without_conversion(expected, live)
    for key, value in live.items():
        if key not in _NOT_LOOKED_AT:
            yield from _Looked(whoever).value(kept.get(key), value, owned.field(key), (key,), (key,))


class _Looked(msgspec.Struct, frozen=True):
    whoever: bool
    """Whether also that counts which Helm wrote, and what nobody owns."""

    def value(
        self,
        expected: Any,  # noqa: ANN401 - JSON
        live: Any,  # noqa: ANN401 - JSON
        place: field_owners.OwnedPlace,
        path: field_drift.Path,
        live_path: field_drift.Path,
    ) -> Iterator[_Found]:
        if len(live_path) > _DEEPEST:
            return
        if expected is None:
            yield from self._surplus(live, place, path, live_path, is_item=False)
        elif isinstance(expected, dict) and isinstance(live, dict):
            for key, value in live.items():
                name = str(key)
                yield from self.value(
                    expected.get(key), value, place.field(name), (*path, name), (*live_path, name)
                )
        elif isinstance(expected, list) and isinstance(live, list) and (keys := place.item_keys):
            yield from self._items(expected, live, keys, place, path, live_path)

    def _items(
        self,
        expected: Sequence[Any],
        live: Sequence[Any],
        keys: Sequence[str],
        place: field_owners.OwnedPlace,
        path: field_drift.Path,
        live_path: field_drift.Path,
    ) -> Iterator[_Found]:
        index, places = keyed_items.ItemIndex(live, keys), place.items()
        found = ((index.find(item), number) for number, item in enumerate(expected))
        wanted = {there: number for there, number in found if there is not None}
        beyond = len(expected)
        for number, item in enumerate(live):
            below = places.item(keyed_items.key_of(item, keys))
            here = (*live_path, str(number))
            if number in wanted:
                at = wanted[number]
                yield from self.value(expected[at], item, below, (*path, str(at)), here)
            else:
                yield from self._surplus(item, below, (*path, str(beyond)), here, is_item=True)
                beyond += 1

    def _surplus(
        self,
        live: Any,  # noqa: ANN401 - JSON
        place: field_owners.OwnedPlace,
        path: field_drift.Path,
        live_path: field_drift.Path,
        *,
        is_item: bool,
    ) -> Iterator[_Found]:
        """Yield what others alone wrote: what nobody owns is a default."""
        owners = tuple(owner for owner in place.owners if not owner.subresource)
        ours = [owner for owner in place.owners if not_ours.is_ours(owner.manager)]
        if self.whoever or (owners and not ours):
            manager = owners[0].manager if owners else ""
            yield _Found(Difference(path, live_path, None, live, manager), owners, is_item)
        elif len(owners) > len(ours) and isinstance(live, dict | list):
            # Helm takes away its own part of it.
            nothing: dict[str, Any] | list[Any] = {} if isinstance(live, dict) else []
            yield from self.value(nothing, live, place, path, live_path)
