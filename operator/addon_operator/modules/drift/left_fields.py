"""What an object still has of a manifest that its release no longer has, and what it lost with it.

Helm forgets fields whose manager is another one, that a failed revision added, or that the API server keeps
elsewhere than they were written. Whose a field was, the manifests say; what others wrote into it since is
theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from addon_operator.documents import json_documents, json_pointers
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.drift import field_drift, field_owners, keyed_items, not_ours

Difference = field_drift.Difference


def loses(before: Any, after: Any) -> bool:  # noqa: ANN401 - JSON
    """Say whether a manifest has something that the next one has not, whatever its value."""
    if before is None:
        return False
    if isinstance(before, dict) and isinstance(after, dict):
        return any(loses(value, after.get(key)) for key, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        there = {json_documents.encode(each) for each in after}
        return any(json_documents.encode(each) not in there for each in before)
    return after is None


def left(before: KubernetesObject, after: KubernetesObject, live: KubernetesObject) -> list[Difference]:
    """Return what a live object has, the manifest before had, and the next one has not."""
    owned = field_owners.owned(live)
    looked = _Looked(has_owners=bool(owned.held))
    found: list[Difference] = []
    pairs = [(key, value, owned.field(key)) for key, value in field_drift.prepared(before).items()]
    has = field_drift.prepared(after)
    for key, value, place in pairs:
        found += looked.value(value, has.get(key), live.get(key), place, (key,))
    metadata = [_mapping(each.get("metadata")) for each in (before, after, live)]
    for key in field_drift.METADATA:
        had, wanted, there = (_mapping(each.get(key)) for each in metadata)
        place = owned.field("metadata").field(key)
        for name, value in had.items():
            if not str(name).startswith(field_drift.OTHERS_ANNOTATIONS):
                path = ("metadata", key, str(name))
                found += looked.value(value, wanted.get(name), there.get(name), place.field(name), path)
    return found


def lost(before: KubernetesObject, after: KubernetesObject, live: KubernetesObject) -> list[Difference]:
    """Return the items that both manifests have and the live object has not.

    A Helm that takes an item away by one of its keys takes those away, too, that have the same.
    """
    had = field_drift.prepared(before)
    return [
        each
        for each in field_drift.differences(after, live, whoever=True)
        if each.live_path[-1] == "-" and each.expected in (json_pointers.find(had, each.path[:-1]) or ())
    ]


def stale(before: KubernetesObject, after: KubernetesObject, live: KubernetesObject) -> list[Difference]:
    """Return the fields that are as a manifest before had them, and that the next one has otherwise.

    Helm 3 does not look at custom resources: what a failed revision wrote into them stays.
    """
    had = {**field_drift.prepared(before), "metadata": before.get("metadata")}

    def is_as_before(found: Difference) -> bool:
        value = json_pointers.find(had, found.path)
        return value == found.live or (
            value is not None and field_drift.is_subset(value, found.live, found.path)
        )

    return list(filter(is_as_before, field_drift.differences(after, live, whoever=True)))


_TWINS: Final = (("port", "protocol", "TCP"), ("containerPort", "protocol", "TCP"))
"""Merge keys of Helm 3 for lists whose items another field, with this default, tells apart, too."""


def without_twins(before: Any, after: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what a manifest had without items that are gone, if one with the same merge key stays.

    Helm 3 would take away both, and the API server may refuse what is left.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: without_twins(value, after.get(key)) for key, value in before.items()}
    if not isinstance(before, list) or not isinstance(after, list):
        return before
    stays = [each for each in after if isinstance(each, dict)]
    by_name = {each["name"]: each for each in stays if "name" in each}
    return [
        without_twins(each, by_name.get(each.get("name"))) if isinstance(each, dict) else each
        for each in before
        if not isinstance(each, dict) or not any(_is_twin(each, stays, *keys) for keys in _TWINS)
    ]


def _is_twin(
    item: Mapping[str, Any], stays: Sequence[Mapping[str, Any]], key: str, more: str, default: str
) -> bool:
    same = {each.get(more, default) for each in stays if key in item and each.get(key) == item[key]}
    return bool(same) and item.get(more, default) not in same


class _Looked:
    def __init__(self, *, has_owners: bool) -> None:
        self._has_owners = has_owners

    def value(
        self,
        had: Any,  # noqa: ANN401 - JSON
        has: Any,  # noqa: ANN401 - JSON
        live: Any,  # noqa: ANN401 - JSON
        place: field_owners.OwnedPlace,
        path: field_drift.Path,
    ) -> Iterator[Difference]:
        if had is None or live is None or path[-1] in not_ours.INJECTED or path == not_ours.REPLICAS:
            return
        if has is None:
            yield from self._surplus(had, live, place, path)
        elif isinstance(had, dict) and isinstance(has, dict) and isinstance(live, dict):
            for key, value in had.items():
                name = str(key)
                yield from self.value(value, has.get(key), live.get(key), place.field(name), (*path, name))
        elif isinstance(had, list) and isinstance(has, list) and isinstance(live, list):
            yield from self._list(had, has, live, place, path)

    def _list(
        self,
        had: Sequence[Any],
        has: Sequence[Any],
        live: Sequence[Any],
        place: field_owners.OwnedPlace,
        path: field_drift.Path,
    ) -> Iterator[Difference]:
        if keys := self._keys(place, had, live):
            index, places = keyed_items.ItemIndex(live, keys), place.items()
            staying = {index.find(item): item for item in has}
            for item in had:
                if (number := index.find(item)) is not None:
                    below = places.item(keyed_items.key_of(live[number], keys))
                    here = (*path, str(number))
                    yield from self.value(item, staying.get(number), live[number], below, here)
        elif place.is_set:
            gone = {json_documents.encode(each) for each in had}
            gone -= {json_documents.encode(each) for each in has}
            for number, item in enumerate(live):
                if json_documents.encode(item) in gone:
                    here = (*path, str(number))
                    yield Difference(here, here, None, item)

    def _surplus(
        self,
        had: Any,  # noqa: ANN401 - JSON
        live: Any,  # noqa: ANN401 - JSON
        place: field_owners.OwnedPlace,
        path: field_drift.Path,
    ) -> Iterator[Difference]:
        """Yield what the manifest had of this, and all of it if nobody else has a part of it."""
        if field_drift.is_subset(had, live, path) and not self._has_others(had, live, place):
            owners = place.owners
            manager = owners[0].manager if owners else ""
            yield Difference(path, path, None, live, manager, owners)
        elif isinstance(had, dict) and isinstance(live, dict):
            for key, value in had.items():
                name = str(key)
                yield from self.value(value, None, live.get(key), place.field(name), (*path, name))
        elif isinstance(had, list) and isinstance(live, list):
            yield from self._list(had, [], live, place, path)

    def _keys(
        self, place: field_owners.OwnedPlace, had: Sequence[Any], live: Sequence[Any]
    ) -> tuple[str, ...] | None:
        return place.item_keys or (None if self._has_owners else field_drift.guessed_keys(had, live))

    def _has_others(self, had: Any, live: Any, place: field_owners.OwnedPlace) -> bool:  # noqa: ANN401 - JSON
        """Say whether somebody has a part of this who has nothing of what the manifest had."""
        if not isinstance(had, dict) or not isinstance(live, dict):
            return False
        mine = {owner for key in had for owner in place.field(str(key)).owners}
        for key, value in live.items():
            below = place.field(str(key))
            if key in had:
                if self._has_others(had[key], value, below):
                    return True
            elif not self._has_owners or (below.owners and mine.isdisjoint(below.owners)):
                return True
        return False


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
