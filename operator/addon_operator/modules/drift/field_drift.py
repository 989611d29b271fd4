"""Where a live object differs from the manifest that it was made from, field by field.

Only what the manifest says counts. What the API server fills in or writes otherwise is no difference, nor are
status, conversions by hooks, and what :mod:`.not_ours` lists.
"""

import base64
import binascii
import dataclasses
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec

from addon_operator.documents import json_documents, json_pointers
from addon_operator.hook_contract import conversions
from addon_operator.kernel import clock, quantities
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.drift import field_owners, keyed_items, not_ours

MOST_DIFFERENCES: Final = 50
"""How many fields of one object are told."""
_NOT_OURS: Final = frozenset({"apiVersion", "kind", "metadata", "status", "stringData"})
METADATA: Final = ("labels", "annotations")
_SCALE: Final = ("", "scale")
"""Through others, such as ``status``, controllers write."""
OTHERS_ANNOTATIONS: Final = ("kubectl.kubernetes.io/", "meta.helm.sh/", "helm.sh/")
_TEXTS: Final = frozenset({"labels", "annotations", "data", "binaryData"})
"""Mappings whose values are texts and mean nothing but themselves."""

Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One field that is otherwise than in the manifest."""

    path: Path
    """In the manifest."""
    live_path: Path
    """In the live object; ``-`` stands for an item that its list lacks."""
    expected: Any = dataclasses.field(repr=False)
    """``None`` for what the manifest does not have."""
    live: Any = dataclasses.field(repr=False)
    """``None`` if it is missing."""
    manager: str = ""
    """Who wrote it, as far as that is known."""
    owners: tuple[field_owners.Owner, ...] = dataclasses.field(default=(), repr=False)
    """All who wrote it, the latest first."""
    left_until: str = ""
    """The command after which it is gone, if an earlier revision left it and nobody may remove it."""

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        return json_pointers.render(self.path)


def differences(
    expected: KubernetesObject,
    live: KubernetesObject,
    *,
    around: not_ours.Surroundings = not_ours.NOTHING,
    settled: str = "",
    whoever: bool = False,
) -> list[Difference]:
    """Return the fields of a live object that somebody else changed.

    ``settled``: what was written up to that time (RFC 3339) belongs to the installation. ``whoever``: return
    what Helm and others may have written, too.
    """
    looked = _Looked(expected, around, settled, whoever, bool(field_owners.owned(live).held))
    found: list[Difference] = []
    for difference in looked.object(expected, live):
        found.append(difference)
        if len(found) == MOST_DIFFERENCES:
            break
    return found


class _Looked(msgspec.Struct, frozen=True):
    of: KubernetesObject
    around: not_ours.Surroundings
    settled: str
    whoever: bool
    has_owners: bool

    def object(self, expected: KubernetesObject, live: KubernetesObject) -> Iterator[Difference]:
        owned = field_owners.owned(live)
        wanted = prepared(without_conversion(expected, live))
        metadata, live_metadata = _mapping(expected.get("metadata")), _mapping(live.get("metadata"))
        for key in METADATA:
            place = owned.field("metadata").field(key)
            for name, value in _mapping(metadata.get(key)).items():
                if key == "annotations" and str(name).startswith(OTHERS_ANNOTATIONS):
                    continue
                there = _mapping(live_metadata.get(key))
                path = ("metadata", key, str(name))
                yield from self._value(value, there.get(name), place.field(str(name)), path, path)
        for key, value in wanted.items():
            yield from self._value(value, live.get(key), owned.field(key), (key,), (key,))

    def _value(
        self,
        expected: Any,  # noqa: ANN401 - JSON
        live: Any,  # noqa: ANN401 - JSON
        place: field_owners.OwnedPlace,
        path: Path,
        live_path: Path,
    ) -> Iterator[Difference]:
        if expected is None or (live is None and _is_empty(expected)):
            return
        if isinstance(expected, dict) and isinstance(live, dict):
            for key, value in expected.items():
                name = str(key)
                yield from self._value(
                    value, live.get(key), place.field(name), (*path, name), (*live_path, name)
                )
        elif isinstance(expected, list) and isinstance(live, list):
            yield from self._list(expected, live, place, path, live_path)
        elif not _is_same(expected, live, path):
            yield from self._unless_excused(Difference(path, live_path, expected, live), place)

    def _list(
        self,
        expected: Sequence[Any],
        live: Sequence[Any],
        place: field_owners.OwnedPlace,
        path: Path,
        live_path: Path,
    ) -> Iterator[Difference]:
        keys = place.item_keys or (None if self.has_owners else guessed_keys(expected, live))
        if keys is not None:
            yield from self._by_keys(expected, live, keys, place, path, live_path)
        elif place.is_set:
            there = {_encoded(item) for item in live}
            for number, item in enumerate(expected):
                if _encoded(item) not in there:
                    added = Difference((*path, str(number)), (*live_path, "-"), item, None)
                    yield from self._unless_excused(added, place)
        elif not is_subset(list(expected), list(live), path):
            yield from self._unless_excused(Difference(path, live_path, expected, live), place)

    def _by_keys(
        self,
        expected: Sequence[Any],
        live: Sequence[Any],
        keys: Sequence[str],
        place: field_owners.OwnedPlace,
        path: Path,
        live_path: Path,
    ) -> Iterator[Difference]:
        index, places = keyed_items.ItemIndex(live, keys), place.items()
        for number, item in enumerate(expected):
            here = (*path, str(number))
            found = index.find(item)
            if found is None:
                added = Difference(here, (*live_path, "-"), item, None)
                yield from self._unless_excused(added, place)
                continue
            there = live[found]
            below = places.item(keyed_items.key_of(there, keys))
            yield from self._value(item, there, below, here, (*live_path, str(found)))

    def _unless_excused(self, difference: Difference, place: field_owners.OwnedPlace) -> Iterator[Difference]:
        owners = place.owners if difference.live is not None else ()
        wanted = difference.expected
        if not self.whoever:
            for owner in owners:
                # A write through scale has no time.
                is_settled = owner.subresource not in _SCALE or "" < owner.time <= self.settled
                if is_settled or not_ours.is_ours(owner.manager):
                    return
            field = not_ours.Field(self.of, difference.path, wanted, difference.live, owners)
            wanted = not_ours.kept(field, self.around)
            if wanted == difference.live:
                return
        manager = owners[0].manager if owners else ""
        yield dataclasses.replace(difference, expected=wanted, manager=manager, owners=owners)


def without_conversion(expected: KubernetesObject, live: KubernetesObject) -> KubernetesObject:
    """Return the manifest's object without what a definition says of conversions, if hooks do that."""
    annotations = _mapping(_mapping(live.get("metadata")).get("annotations"))
    if expected.get("kind") != "CustomResourceDefinition" or conversions.NOTE not in annotations:
        return expected
    spec = {key: value for key, value in _mapping(expected.get("spec")).items() if key != "conversion"}
    return {**expected, "spec": spec}


def prepared(expected: KubernetesObject) -> dict[str, Any]:
    """Return what the manifest says of the object, in the shape in which the API server keeps it."""
    wanted = {key: value for key, value in expected.items() if key not in _NOT_OURS}
    if expected.get("kind") == "Secret" and isinstance(texts := expected.get("stringData"), dict):
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        wanted["data"] = {**_mapping(wanted.get("data")), **encoded}
    return wanted


def guessed_keys(expected: Sequence[Any], live: Sequence[Any]) -> tuple[str, ...] | None:
    """Without owners nobody says what tells items apart: their names, if all have one of their own."""
    for items in (expected, live):
        named = [item.get("name") for item in items if isinstance(item, dict)]
        if not named or None in named or len(set(map(str, named))) < len(items):
            return None
    return ("name",)


def is_subset(expected: Any, live: Any, path: Path) -> bool:  # noqa: ANN401 - JSON
    """Say whether the live value is the expected one, with defaults filled in."""
    if expected is None or (live is None and _is_empty(expected)):
        return True
    if isinstance(expected, dict) and isinstance(live, dict):
        return all(
            key in not_ours.INJECTED or is_subset(value, live.get(key), (*path, str(key)))
            for key, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(live, list):
        return len(expected) == len(live) and all(
            is_subset(*pair, path) for pair in zip(expected, live, strict=True)
        )
    return _is_same(expected, live, path)


def _is_empty(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Say whether the API server leaves the value out."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    if isinstance(value, list):
        return not value
    return not value


def _is_same(expected: Any, live: Any, path: Path) -> bool:  # noqa: ANN401 - JSON
    if expected == live and isinstance(expected, bool) == isinstance(live, bool):
        return True
    if live is None or isinstance(expected, dict | list | bool) or isinstance(live, dict | list | bool):
        return False
    first, second = keyed_items.text_of(expected), keyed_items.text_of(live)
    if first == second:
        return True
    parent = path[-2] if len(path) > 1 else ""
    if parent in _TEXTS:
        return parent in ("data", "binaryData") and _decoded(first) == _decoded(second) is not None
    return _is_quantity(first, second) or _is_duration(first, second)


def _is_quantity(first: str, second: str) -> bool:
    amounts: list[Fraction | None] = [_amount(first), _amount(second)]
    return amounts[0] is not None and amounts[0] == amounts[1]


def _amount(text: str) -> Fraction | None:
    return quantities.parse(text) if len(text) <= _LONGEST else None


_LONGEST: Final = 40
"""Characters of a quantity or a duration."""


def _is_duration(first: str, second: str) -> bool:
    if max(len(first), len(second)) > _LONGEST:
        return False
    try:
        return clock.parse_duration(first) == clock.parse_duration(second)
    except clock.DurationError:
        return False


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _encoded(item: Any) -> bytes:  # noqa: ANN401 - JSON
    try:
        return json_documents.encode(item)
    except TypeError:
        # A number that is none of JSON.
        return keyed_items.text_of(item).encode() if isinstance(item, int) else b""


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
