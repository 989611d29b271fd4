"""Strategic merge patches: how Kubernetes merges a part of an object into it.

Lists of built-in kinds merge by the keys of their items; those of other kinds are replaced, as nobody says
what tells their items apart. Source: "Strategic merge patch" of the Kubernetes documentation and kustomize's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETED: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "webhooks": ("name",),
}
_SETS: Final = frozenset({"finalizers"})


class PatchError(ValueError):
    """A patch does not fit what it is put on; the text says what and where."""


def merged(document: Any, patch: Any, *, is_built_in: bool) -> Any:  # noqa: ANN401 - JSON
    """Return a document with the patch merged into it.

    ``is_built_in``: its kind is one of Kubernetes. Raises :class:`PatchError`.
    """
    return _merged(document, patch, "", is_built_in=is_built_in)


def _merged(value: Any, patch: Any, path: str, *, is_built_in: bool) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(patch, dict):
        return patch
    directive = patch.get(_DIRECTIVE)
    if directive not in (None, "merge", "replace", "delete"):
        raise PatchError(f"{path or '/'}: $patch is merge, replace or delete, not {directive!r}")
    if directive == "delete":
        return None
    made: dict[str, Any] = {} if directive == "replace" or not isinstance(value, dict) else dict(value)
    if isinstance(kept := patch.get(_RETAIN), list):
        made = {key: each for key, each in made.items() if key in kept}
    for key, each in patch.items():
        if key in (_DIRECTIVE, _RETAIN) or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETED):
            name = key.removeprefix(_DELETED)
            gone = _list(each)
            made[name] = [item for item in _list(made.get(name)) if item not in gone]
            continue
        made[key] = _field_merged(made.get(key), each, f"{path}/{key}", is_built_in=is_built_in)
        if made[key] is None:
            del made[key]
    return made


def _field_merged(value: Any, patch: Any, path: str, *, is_built_in: bool) -> Any:  # noqa: ANN401 - JSON
    if isinstance(patch, list):
        return _list_merged(_list(value), patch, path, is_built_in=is_built_in)
    return _merged(value, patch, path, is_built_in=is_built_in)


def _list_merged(items: Sequence[Any], patch: Sequence[Any], path: str, *, is_built_in: bool) -> list[Any]:
    name = path.rpartition("/")[2]
    wanted = [each for each in patch if not _is_replacement(each)]
    if len(wanted) < len(patch) or not is_built_in:
        return wanted
    if name in _SETS:
        return [*items, *(each for each in wanted if each not in items)]
    keys = _KEYS.get(name)
    if keys is None or not all(isinstance(each, dict) for each in (*items, *wanted)):
        return wanted
    return list(_by_keys(items, wanted, keys, path))


def _by_keys(
    items: Sequence[dict[str, Any]], patch: Sequence[dict[str, Any]], keys: Sequence[str], path: str
) -> Iterator[Any]:
    """Yield the items with those of the patch merged into them, and then those that are new."""
    key = next((key for key in keys if any(key in each for each in (*patch, *items))), keys[0])
    changes: dict[str, dict[str, Any]] = {}
    for each in patch:
        if key not in each:
            raise PatchError(f"{path}: each item needs {key!r}, which tells it from the others")
        changes[str(each[key])] = each
    for item in items:
        change = changes.pop(str(item.get(key)), None)
        made = item if change is None else _merged(item, change, path, is_built_in=True)
        if made is not None:
            yield made
    for change in changes.values():
        if change.get(_DIRECTIVE) != "delete":
            yield _merged({}, change, path, is_built_in=True)


def _is_replacement(item: object) -> bool:
    return isinstance(item, dict) and set(item) == {_DIRECTIVE} and item[_DIRECTIVE] == "replace"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
