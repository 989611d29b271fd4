"""What is sent to the API server to put fields back: a JSON patch of exactly these fields.

The values are those of the release record; what people are shown is masked elsewhere, and never comes here.
"""

import copy
from collections.abc import Sequence
from typing import Any

from addon_operator.documents import json_pointers
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.drift import field_drift


def json_patch(live: KubernetesObject, found: Sequence[field_drift.Difference]) -> list[dict[str, Any]]:
    """Return the operations; they apply to the very version of the object that was looked at."""
    version = live["metadata"]["resourceVersion"]
    operations: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    made: set[field_drift.Path] = set()
    for difference in found:
        parent = difference.live_path[:-1]
        if parent and parent not in made and json_pointers.find(live, parent) is None:
            # Somebody removed all labels, say.
            operations.append({"op": "add", "path": json_pointers.render(parent), "value": {}})
            made.add(parent)
        operation = "add" if difference.live is None else "replace"
        path = json_pointers.render(difference.live_path)
        operations.append({"op": operation, "path": path, "value": difference.expected})
    return operations


def kept_to(
    expected: KubernetesObject, live: KubernetesObject, counted: Sequence[field_drift.Difference]
) -> dict[str, Any]:
    """Return the manifest's object without the fields that others changed and that do not count.

    Applied by force on the server's side, it would take them back.
    """
    body: dict[str, Any] = copy.deepcopy(dict(expected))
    counts = {each.path for each in counted}
    others = [
        each
        for each in field_drift.differences(expected, live, whoever=True)
        if each.path not in counts and not field_drift.is_ours(each.manager)
    ]
    for difference in sorted(others, key=_place, reverse=True):
        _remove(body, difference.path)
    return body


def _remove(body: dict[str, Any], path: field_drift.Path) -> None:
    parent = json_pointers.find(body, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
    elif isinstance(parent, list):
        del parent[int(path[-1])]


def _place(difference: field_drift.Difference) -> list[tuple[int, str]]:
    # Items go from the last one to the first, as the others are named by their numbers.
    return [(int(step) if step.isdigit() else -1, step) for step in difference.path]
