"""What is sent to the API server to put fields back: a JSON patch of exactly these fields.

The values are those of the release record; what people are shown is masked elsewhere, and never comes here.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from addon_operator.documents import json_pointers
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.drift import field_drift


def json_patch(live: KubernetesObject, found: Sequence[field_drift.Difference]) -> list[dict[str, Any]]:
    """Return the operations; they apply only as long as what they change is as it was found.

    The version of the object is no measure: its status may be written every second.
    """
    operations = list(_tested(live, found))
    made: set[field_drift.Path] = set()
    for difference in found:
        if difference.expected is None:
            continue
        parent = difference.live_path[:-1]
        if parent and parent not in made and json_pointers.find(live, parent) is None:
            # Somebody removed all labels, say.
            operations.append({"op": "add", "path": json_pointers.render(parent), "value": {}})
            made.add(parent)
        operation = "add" if difference.live is None else "replace"
        path = json_pointers.render(difference.live_path)
        operations.append({"op": operation, "path": path, "value": difference.expected})
    return [*operations, *removals(found)]


def removals(found: Iterable[field_drift.Difference]) -> list[dict[str, Any]]:
    """Return the operations that take away what the manifest does not have: of items the last ones first."""
    foreign = sorted(
        (each.live_path for each in found if each.expected is None), key=json_pointers.in_order, reverse=True
    )
    return [{"op": "remove", "path": json_pointers.render(path)} for path in foreign]


def _tested(live: KubernetesObject, found: Sequence[field_drift.Difference]) -> Iterator[dict[str, Any]]:
    """Yield the tests of the values that are replaced, and of the names of the items that they stand in."""
    for difference in found:
        if difference.live is not None:
            path = json_pointers.render(difference.live_path)
            yield {"op": "test", "path": path, "value": difference.live}
    yield from named(live, found)


def named(live: KubernetesObject, found: Iterable[field_drift.Difference]) -> Iterator[dict[str, Any]]:
    """Yield the tests of the names of all items on the way to the fields: these may have moved."""
    places = dict.fromkeys(
        (*difference.live_path[: end + 1], "name")
        for difference in found
        for end, step in enumerate(difference.live_path)
        if step.isdigit()
    )
    for place in places:
        if name := json_pointers.find(live, place):
            yield {"op": "test", "path": json_pointers.render(place), "value": name}


def kept_to(
    expected: KubernetesObject, live: KubernetesObject, counted: Sequence[field_drift.Difference]
) -> dict[str, Any]:
    """Return the manifest's object without the fields that others changed and that do not count.

    Applied by force on the server's side, it would take them back.
    """
    body: dict[str, Any] = copy.deepcopy(dict(field_drift.without_conversion(expected, live)))
    counts = {each.path for each in counted}
    others = [
        each
        for each in field_drift.differences(expected, live, whoever=True)
        if each.path not in counts and not field_drift.is_ours(each.manager)
    ]
    for difference in sorted(others, key=lambda each: json_pointers.in_order(each.path), reverse=True):
        _remove(body, difference.path)
    return body


def _remove(body: dict[str, Any], path: field_drift.Path) -> None:
    parent = json_pointers.find(body, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
    elif isinstance(parent, list):
        del parent[int(path[-1])]
