"""Items of lists that Kubernetes tells apart by keys, such as the variables of a container by their names.

Source: the extensions ``x-kubernetes-list-type`` and ``x-kubernetes-list-map-keys`` of the API's schemas.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from addon_operator.documents import json_pointers

_REFERENCE: Final = "#/components/schemas/"
_KEYS: Final = "x-kubernetes-list-map-keys"
Path = tuple[str | int, ...]


def repeated(
    definitions: Mapping[str, Any],
    schema: Any,  # noqa: ANN401  # JSON
    value: Any,  # noqa: ANN401  # JSON
    path: Path = (),
) -> Iterator[tuple[Path, str]]:
    """Yield path and sentence for each item whose keys an earlier one of its list has."""
    schema = _resolved(definitions, schema)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, inner in value.items():
            yield from repeated(definitions, known.get(key, others), inner, (*path, key))
    elif isinstance(value, list):
        item = _resolved(definitions, schema.get("items"))
        if keys := schema.get(_KEYS):
            yield from _of_list(keys, item, value, path)
        for index, inner in enumerate(value):
            yield from repeated(definitions, item, inner, (*path, index))


def _of_list(
    keys: list[str], schema: Mapping[str, Any], items: list[Any], path: Path
) -> Iterator[tuple[Path, str]]:
    defaults = {key: schema.get("properties", {}).get(key, {}).get("default") for key in keys}
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        found = {key: default if item.get(key) is None else item[key] for key, default in defaults.items()}
        if None in found.values():
            continue  # Another check tells of a key that is required.
        before = first.setdefault(json.dumps(found), index)
        if before != index:
            said = ", ".join(f"{key} {json.dumps(value)}" for key, value in found.items())
            where, other = (json_pointers.format_path((*path, number)) for number in (index, before))
            yield (*path, index), f"{where} has the {said} of {other}; remove one of them"


def _resolved(definitions: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:  # noqa: ANN401  # JSON
    """Return the schema itself of a reference, alone or with a default beside it."""
    while isinstance(schema, dict):
        reference = schema.get("$ref")
        if not reference and len(parts := schema.get("allOf", ())) == 1:
            reference = parts[0].get("$ref")
        if not reference:
            return schema
        schema = definitions.get(reference.removeprefix(_REFERENCE))
    return {}
