"""The operation of a patch that is blamed for a place is the one that wrote it."""

import json
from typing import Any

import pytest

from addon_operator.documents import json_pointers
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations
from tests.support import rows
from tests.unit import costs

ADD_A = {"op": "add", "path": "/m/a", "value": 1}
ADD_B = {"op": "add", "path": "/m/b", "value": 1}
ADD_IN_A = {"op": "add", "path": "/m/a/y", "value": 1}
MAPPING_A = {"op": "add", "path": "/m/a", "value": {"x": 1}}
REMOVE = {"op": "remove", "path": "/m/a/x"}
MOVE = {"op": "move", "path": "/m/b", "from": "/m/a"}
APPEND = {"op": "add", "path": "/m/l/-", "value": {"x": 1}}
TEST = {"op": "test", "path": "/m/a", "value": 1}


def blamed(keys: json_pointers.Path, section: dict[str, Any], *operations: dict[str, Any]) -> str:
    patch = patches.parse_patch(json.dumps(operations), "patch")
    document: dict[str, Any] = {"m": section}
    patches.apply_strictly(document, patch)
    return schema_violations.OperationFinder(patch, document).last_writing(keys)


@rows.each(
    ("keys", "section", "operations", "told"),
    [
        (("m", "a"), {}, [ADD_B, ADD_A], "operation [1], add /m/a"),
        (("m", "a"), {}, [ADD_A, ADD_A, ADD_B], "operation [1], add /m/a"),
        (("m", "a", "x"), {}, [MAPPING_A, ADD_IN_A], "operation [0], add /m/a"),
        (("m", "a"), {"a": {"x": 1}}, [REMOVE, ADD_IN_A], "operation [0], remove /m/a/x"),
        (("m", "a"), {"a": {}}, [ADD_IN_A, ADD_B], "operation [0], add /m/a/y"),
        (("m", "b"), {"a": 1}, [MOVE], "operation [0], move /m/b"),
        (("m",), {"a": 1}, [MOVE], "operation [0], move /m/b"),
        (("m", "l", 1), {"l": [0]}, [APPEND, APPEND], "operation [0], add /m/l/-"),
        (("m", "l", 2, "x"), {"l": [0]}, [APPEND, ADD_A, APPEND], "operation [2], add /m/l/-"),
        (("m", "l", 0), {"l": [0]}, [APPEND], ""),
        (("m", "a"), {"a": 1}, [TEST, ADD_B], ""),
    ],
    ids=repr,
)
def test_the_last_operation_that_wrote_a_place_is_blamed(
    keys: json_pointers.Path, section: dict[str, Any], operations: list[dict[str, Any]], told: str
) -> None:
    assert blamed(keys, section, *operations) == told


def test_a_path_of_any_length_is_cut() -> None:
    key = "x" * 5000
    assert len(blamed(("m", key), {}, {"op": "add", "path": f"/m/{key}", "value": 1})) < 250


def test_the_most_operations_and_places_are_looked_through_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_violations, "MOST_COMPARED", 5_000)
    deep = "/y" * 100
    operations: list[patches.Operation] = [{"op": "add", "path": f"/m{deep}", "value": 1}]

    def blame(count: int) -> schema_violations.OperationFinder:
        return schema_violations.OperationFinder(patches.ValuesPatch(tuple(operations * count)), {"m": {}})

    def look(made: schema_violations.OperationFinder) -> list[str]:
        told = [made.last_writing(("m", "y")) for _ in range(4)]
        told += [made.last_writing(("m", f"x{number}")) for number in range(schema_violations.MAX_VIOLATIONS)]
        return [*told, made.last_writing(("m", "y"))]

    told = look(blame(1_000))
    assert [bool(each) for each in (told[0], told[3], told[-1])] == [True, True, False]
    # What was looked through is noted, so that each time needs one of its own.
    assert costs.is_linear(int, lambda count: look(blame(count)), 20)
