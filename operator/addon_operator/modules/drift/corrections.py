"""What is sent to the API server to put fields back: a JSON patch of exactly these fields.

The values are those of the release record; what people are shown is masked elsewhere, and never comes here.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from addon_operator.documents import json_pointers
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules import manifests
from addon_operator.modules.drift import field_drift, left_fields, not_ours


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
    expected: KubernetesObject,
    live: KubernetesObject,
    counted: Sequence[field_drift.Difference],
    around: not_ours.Surroundings = not_ours.NOTHING,
) -> dict[str, Any]:
    """Return the manifest's object as it is to be applied by force on the server's side.

    What is not ours keeps its live value, and what others changed and does not count is left out.
    """
    body: dict[str, Any] = copy.deepcopy(dict(field_drift.without_conversion(expected, live)))
    wanted = {each.path: each.expected for each in counted}
    others = field_drift.differences(expected, live, whoever=True)
    for each in sorted(others, key=lambda one: json_pointers.in_order(one.path), reverse=True):
        value = wanted.get(each.path, kept_value(expected, each, around))
        if value != each.expected:
            manifests.put(body, each.path, value)
        elif each.path not in wanted and not not_ours.is_ours(each.manager):
            _remove(body, each.path)
    return body


def _remove(body: dict[str, Any], path: field_drift.Path) -> None:
    parent = json_pointers.find(body, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
    elif isinstance(parent, list):
        del parent[int(path[-1])]


def kept_value(
    of: KubernetesObject,
    found: field_drift.Difference,
    around: not_ours.Surroundings,
    had: Any = None,  # noqa: ANN401 - JSON
) -> Any:  # noqa: ANN401 - JSON
    """Return what a field that is otherwise is to be; see :func:`.not_ours.kept`."""
    field = not_ours.Field(of, found.path, found.expected, found.live, found.owners, had)
    return not_ours.kept(field, around)


def live_values(
    before: KubernetesObject | None,
    said: KubernetesObject | None,
    after: KubernetesObject,
    live: KubernetesObject,
    around: not_ours.Surroundings,
) -> Iterator[field_drift.Difference]:
    """Yield what an object is to keep when the next manifest is written: what is kept is in ``live``.

    Also what others own, and is the chart's again as that says otherwise than before: both values are the
    same then. ``before``: what the deployed revision wrote; ``said``: what its chart says.
    """
    was = {} if said is None else {**field_drift.prepared(said), "metadata": said.get("metadata")}
    found = field_drift.differences(after, live, whoever=True)
    if before is not None:
        found += _dropped(before, after, live)
    for each in found:
        had = json_pointers.find(was, each.path)
        is_same = had == each.expected or field_drift.is_subset(had, each.expected, each.path)
        changed = None if is_same and said is not None else had or False
        value = kept_value(after, each, around, changed)
        is_taken = bool(changed) and value != kept_value(after, each, around)
        if (value is not None and value != each.expected) or is_taken:
            yield dataclasses.replace(each, live=value)


def _dropped(
    before: KubernetesObject, after: KubernetesObject, live: KubernetesObject
) -> Iterator[field_drift.Difference]:
    """Yield fields that leave the manifest: Helm would set them to a default."""
    left = left_fields.left(before, after, live)
    yield from (each for each in left if not any(map(json_pointers.is_index, each.path)))
    for path in (not_ours.REPLICAS, not_ours.PULL_SECRETS):
        had, has, there = (json_pointers.find(each, path) for each in (before, after, live))
        if had is not None and has is None and there is not None:
            yield field_drift.Difference(path, path, None, there)
