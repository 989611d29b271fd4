"""Patches that the API server could not apply, and whose they are it would not say."""

import json
from typing import Any

import pytest

from addon_operator.hook_contract.outputs import patch_check
from tests.support import rows
from tests.unit import costs

OBJECT = {"metadata": {"name": "x"}, "data": {"password": "hidden"}, "items": [1, 2]}


def sent(document: object = OBJECT) -> bytes:
    return json.dumps({"request": {"uid": "1", "object": document}}).encode()


@rows.each(
    "operation",
    [
        {"op": "add", "path": "/data/color", "value": "green"},
        {"op": "add", "path": "/items/-", "value": 3},
        {"op": "add", "path": "/items/2", "value": 3},
        {"op": "remove", "path": "/items/-1"},
        {"op": "add", "path": "/items/-3", "value": 3},
        {"op": "test", "path": "/items/-1", "value": 2},
        {"op": "move", "from": "/items/0", "path": "/items/-2"},
        {"op": "replace", "path": "/items/+00000000000000000001", "value": 3},
        {"op": "replace", "path": "/spec", "value": 1},
        {"op": "replace", "path": "", "value": {}},
        {"op": "test", "path": "", "value": OBJECT},
        {"op": "copy", "from": "/spec", "path": "/data/x"},
        {"op": "move", "from": "/data/password", "path": "/data/password"},
        {"op": "test", "path": "/items/0", "value": 1.0},
        {"op": "test", "path": "/data/other", "value": None},
        {"op": "replace", "path": "/data/password", "value": "y"},
        {"op": "remove", "path": "/data"},
        {"op": "test", "path": "/items/0", "value": 1},
        {"op": "copy", "from": "/data", "path": "/spec"},
        {"op": "move", "from": "/data", "path": "/spec"},
        {"op": "move", "from": "/items/0", "path": "/items/-1"},
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_what_the_api_server_applies_is_taken(operation: dict[str, Any]) -> None:
    patch_check.check(sent(), [operation])


def test_where_something_moves_is_looked_for_when_it_has_gone() -> None:
    document = {"kind": "A", "items": ["x", "s", {"a": 1}]}
    moved = patch_check.check(sent(document), [{"op": "move", "from": "/items/0", "path": "/items/1/y"}])
    assert moved == {"kind": "A", "items": ["s", {"a": 1, "y": "x"}]}


@rows.each(
    ("operation", "said"),
    [
        ({"op": "add", "path": "/spec/x", "value": 1}, "has no such place; add what leads there first"),
        ({"op": "add", "path": "/items/7", "value": 1}, "has no such place"),
        ({"op": "add", "path": "/items/x", "value": 1}, "has no such place"),
        ({"op": "add", "path": "/data/password/x", "value": 1}, "has no such place"),
        ({"op": "replace", "path": "/spec/x", "value": 1}, "has no such place"),
        ({"op": "remove", "path": "/spec"}, "has no such place"),
        ({"op": "copy", "from": "/spec/a", "path": "/data/x"}, "has no such place"),
        ({"op": "move", "from": "/spec", "path": "/data/x"}, "has no such place"),
        ({"op": "test", "path": "/items/9", "value": None}, "has no such place"),
        ({"op": "test", "path": "/spec/x", "value": None}, "has no such place"),
        ({"op": "move", "from": "/spec/a", "path": "/data/x"}, "has no such place"),
        ({"op": "test", "path": "/data/password", "value": "z"}, "has another value there"),
        ({"op": "test", "path": "/data/other", "value": "z"}, "does not apply"),
        ({"op": "test", "path": "/items/0", "value": True}, "has another value there"),
        ({"op": "remove", "path": "/items/-3"}, "has no such place"),
        ({"op": "add", "path": "/items/-4", "value": 1}, "has no such place"),
        ({"op": "move", "from": "/items/0", "path": "/items/-3"}, "has no such place"),
        ({"op": "replace", "path": "/items/-", "value": 1}, "has no such place"),
        ({"op": "remove", "path": f"/items/{'1' * 5000}"}, "has no such place"),
        ({"op": "remove", "path": "/items/\u0661"}, "has no such place"),
        ({"op": "move", "from": "/data", "path": "/data/inner"}, "has no such place"),
        ({"op": "replace", "path": "", "value": 1}, "can only be replaced by another one"),
        ({"op": "test", "path": "", "value": {}}, "has another value there"),
        ({"op": "add", "path": "", "value": OBJECT}, "name a place in it"),
        ({"op": "remove", "path": ""}, "name a place in it"),
        ({"op": "copy", "from": "", "path": "/data/x"}, "name a place in it"),
        ({"op": "move", "from": "/data", "path": ""}, "name a place in it"),
    ],
    ids=lambda given: f"{given['op']} {given['path']}" if isinstance(given, dict) else "",
)
def test_what_does_not_apply_is_said_by_operation_and_path_without_values(
    operation: dict[str, Any], said: str
) -> None:
    fine = {"op": "add", "path": "/data/color", "value": "green"}
    with pytest.raises(patch_check.PatchError) as error:
        patch_check.check(sent(), [fine, operation])
    text = str(error.value)
    assert text.startswith(f"patch[1] ({operation['op']} {operation['path'][:200]}): ")
    assert said in text
    assert "hidden" not in text


@rows.each(
    "operation",
    [
        {"op": "replace", "path": "/kind", "value": "Secret"},
        {"op": "remove", "path": "/apiVersion"},
        {"op": "replace", "path": "", "value": {"apiVersion": "v1"}},
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_an_object_stays_of_its_kind(operation: dict[str, Any]) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", **OBJECT}
    with pytest.raises(patch_check.PatchError, match="its patch changes 'apiVersion' or 'kind'"):
        patch_check.check(sent(document), [operation])


def test_a_patch_of_a_deletion_has_nothing_to_change() -> None:
    with pytest.raises(patch_check.PatchError, match="there is no object"):
        patch_check.check(sent(None), [{"op": "add", "path": "/a", "value": 1}])


def test_copies_that_double_the_object_end_early() -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/a{number}"} for number in range(200)]
    with pytest.raises(patch_check.PatchError, match="all copies of the patch are over 3 MiB"):
        patch_check.check(sent(), doubling)


def test_a_patch_is_checked_whatever_its_size_and_stays_as_it_is() -> None:
    large = {"data": {f"k{number}": "x" * 1000 for number in range(2500)}}

    def operations(count: int) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = [{"op": "add", "path": "/data/new", "value": {"a": 1, "b": []}}]
        made += [{"op": "add", "path": "/data/new/b/-", "value": number} for number in range(count)]
        return [*made, {"op": "remove", "path": "/data/new/a"}]

    assert costs.is_linear(operations, lambda made: patch_check.check(sent(large), made), 1000)
    fine = operations(4000)
    with pytest.raises(patch_check.PatchError, match=r"patch\[4002\] \(remove /data/new/a\)"):
        patch_check.check(sent(large), [*fine, fine[-1]])
    assert fine[0]["value"] == {"a": 1, "b": []}


def test_a_patch_that_moves_too_much_is_left_to_the_api_server() -> None:
    large = {"items": list(range(100_000))}
    insert = {"op": "add", "path": "/items/0", "value": 1}
    wrong = {"op": "remove", "path": "/none"}
    with pytest.raises(patch_check.PatchError):
        patch_check.check(sent(large), [insert, wrong])
    patch_check.check(sent(large), [*[insert] * 20_000, wrong])
