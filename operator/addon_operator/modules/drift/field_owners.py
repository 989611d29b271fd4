"""Who wrote which field of an object, as its ``metadata.managedFields`` tell.

Source: "Field management" and "FieldsV1" of the Kubernetes documentation on server-side apply: ``f:`` is a
field, ``k:`` an item of a list by its keys, ``v:`` one of a set; an empty mapping stands for all below it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.kernel.json_types import KubernetesObject

MOST_ENTRIES: Final = 100
"""How many managers are looked at; the API server itself joins those beyond ten."""


class Owner(msgspec.Struct, frozen=True):
    """One entry of ``managedFields``."""

    manager: str
    operation: str
    """``Apply`` or ``Update``."""
    subresource: str
    time: str
    """RFC 3339."""


_Held = tuple[Owner, Mapping[str, Any] | None]
"""An owner, and what it owns from a place on; ``None``: all of it."""


class OwnedPlace(msgspec.Struct, frozen=True):
    """A place in an object, and who owns what from there on."""

    held: tuple[_Held, ...]

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Who owns the place itself, or anything below it; the latest first."""
        return tuple(sorted({owner for owner, _ in self.held}, key=lambda one: one.time, reverse=True))

    def field(self, name: str) -> "OwnedPlace":
        """Go to a field of a mapping."""
        return self._below(f"f:{name}")

    def items(self) -> "OwnedItems":
        """Return the places of a list's items."""
        by_keys: dict[str, list[_Held]] = {}
        for owner, fields in self._divided:
            for step, below in fields.items():
                if step.startswith("k:") and isinstance(below, dict) and (keys := _keys_of(step)):
                    by_keys.setdefault(_canonical(keys), []).append((owner, below or None))
        return OwnedItems(by_keys, () if self._divided else self.held)

    @property
    def _divided(self) -> list[tuple[Owner, Mapping[str, Any]]]:
        """Those who own parts of the place.

        As soon as there is one, an empty mapping is no more than the place itself: a mapping whose keys are
        others'. Else it is a value that is owned as a whole.
        """
        return [(owner, fields) for owner, fields in self.held if fields is not None]

    def _below(self, step: str) -> "OwnedPlace":
        divided = self._divided
        if not divided:
            return self
        found = ((owner, fields.get(step)) for owner, fields in divided)
        return OwnedPlace(tuple((owner, below or None) for owner, below in found if isinstance(below, dict)))

    @property
    def item_keys(self) -> tuple[str, ...] | None:
        """The keys by which the items of a list are told apart; ``None`` if they are not."""
        steps = (step for _, fields in self.held for step in fields or () if step.startswith("k:"))
        keys = next((found for step in steps if (found := _keys_of(step))), None)
        return None if keys is None else tuple(keys)

    @property
    def is_set(self) -> bool:
        """Whether the items of a list stand for themselves, in any order."""
        return any(step.startswith("v:") for _, fields in self.held for step in fields or ())


class OwnedItems(msgspec.Struct, frozen=True):
    """The items of a list."""

    _by_keys: Mapping[str, Sequence[_Held]]
    _everywhere: tuple[_Held, ...]

    def item(self, keys: Mapping[str, Any]) -> OwnedPlace:
        """Go to an item, by the values of its keys."""
        return OwnedPlace((*self._by_keys.get(_canonical(keys), ()), *self._everywhere))


def owned(resource: KubernetesObject) -> OwnedPlace:
    """Return who owns what of an object."""
    metadata = resource.get("metadata")
    entries: Any = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return OwnedPlace(
        tuple(
            (_owner(entry), fields)
            for entry in (entries[:MOST_ENTRIES] if isinstance(entries, list) else ())
            if isinstance(entry, dict) and isinstance(fields := entry.get("fieldsV1"), dict)
        )
    )


def as_applied(
    entries: Sequence[Mapping[str, Any]], is_meant: Callable[[Mapping[str, Any]], bool]
) -> list[Mapping[str, Any]]:
    """Return the entries with those that are meant as one of an apply: the next one takes away what it lacks.

    They are all of one manager, which may have such an entry already.
    """
    meant = list(filter(is_meant, entries))
    manager = meant[0].get("manager")
    applied = [each for each in entries if (each.get("manager"), each.get("operation")) == (manager, "Apply")]
    fields: dict[str, Any] = {}
    for each in (*applied, *meant):
        fields = _united(fields, each.get("fieldsV1") or {})
    left = [each for each in entries if each not in meant and each not in applied]
    return [*left, {**meant[0], "operation": "Apply", "fieldsV1": fields}]


def _united(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _united(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **both}


def _owner(entry: Mapping[str, Any]) -> Owner:
    texts: Sequence[str] = [
        str(entry.get(key) or "") for key in ("manager", "operation", "subresource", "time")
    ]
    return Owner(*texts)


def _keys_of(step: str) -> dict[str, Any] | None:
    try:
        keys = json.loads(step[2:])
    except ValueError:
        return None
    return keys if isinstance(keys, dict) else None


def _canonical(keys: Mapping[str, Any]) -> str:
    try:
        return json.dumps(keys, sort_keys=True)
    except ValueError:
        # A number of too many digits: managedFields name none.
        return ""
