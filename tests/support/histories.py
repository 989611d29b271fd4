"""Checks what a listener was told against a record of what was written."""

import dataclasses
import itertools
import types
from collections.abc import Iterable, Mapping, Sequence

import orjson

from addon_operator.kube.informers import object_changes

Key = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """One version of one object, as the API server confirmed it."""

    key: Key
    value: str | None
    """``None``: deleted."""


class HistoryError(AssertionError):
    """What was told cannot have come from what was written."""


def check_every_version(
    writes: Sequence[Write],
    changes: Sequence[object_changes.Change],
    before: Mapping[Key, str] = types.MappingProxyType({}),
) -> None:
    """Every write was told once, those of an object in their order; the type fits to what was before."""
    written = _by_key((write.key, write.value) for write in writes)
    told = _by_key(((change.key.namespace, change.key.name), _value(change)) for change in changes)
    for key in written.keys() | told.keys():
        if written.get(key, []) != told.get(key, []):
            raise HistoryError(f"{key}: written {written.get(key, [])}, told {told.get(key, [])}")
    check_sequence(before, changes)


def gaps(writes: Iterable[Write], changes: Iterable[object_changes.Change]) -> dict[Key, int]:
    """How many times some versions of an object in a row were not told, for each object.

    Each version has a value of its own. Deletions are not looked at.
    """
    told = {_value(change) for change in changes if change.type is not object_changes.ChangeType.DELETED}
    written = _by_key((write.key, write.value) for write in writes if write.value is not None)
    return {
        key: sum(not is_told for is_told, _ in itertools.groupby(value in told for value in values))
        for key, values in written.items()
    }


def check_sequence(before: Mapping[Key, str], changes: Sequence[object_changes.Change]) -> dict[Key, str]:
    """The state after the changes; each has to follow from the one before and none may go back in time."""
    state, versions = dict(before), dict[Key, int]()
    for change in changes:
        key, version = (change.key.namespace, change.key.name), int(change.resource_version)
        if version < versions.get(key, 0):
            raise HistoryError(f"back in time: {change}")
        versions[key] = version
        value = _value(change)
        if (change.type is object_changes.ChangeType.ADDED) != (key not in state):
            raise HistoryError(f"{change} when there was {state.get(key)!r}")
        if value is None:
            del state[key]
        elif state.get(key) == value:
            raise HistoryError(f"doubled: {change}")
        else:
            state[key] = value
    return state


def _by_key(pairs: Iterable[tuple[Key, str | None]]) -> dict[Key, list[str | None]]:
    found: dict[Key, list[str | None]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def _value(change: object_changes.Change) -> str | None:
    if change.type is object_changes.ChangeType.DELETED:
        return None
    result: str = orjson.loads(change.entry)["filterResult"]
    return result
