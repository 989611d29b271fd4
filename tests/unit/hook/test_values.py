"""Values of the library for hooks in Python: reading them, and the patch that changes make."""

import copy
import json
from typing import Any

import hypothesis
import jsonpatch
import pytest
from hypothesis import strategies

from addon_operator import hook
from addon_operator.kernel.json_types import JsonObject
from addon_operator.values.patches import patches
from tests.support import rows

DOCUMENT: JsonObject = {
    "global": {"ha": True},
    "web": {
        "size": 2, "off": False, "none": None, "names": ["a", {"b": 1}], "a.b": 1, "c/d~e": 2, "8080": "port",
    },
}  # fmt: skip


@pytest.fixture
def values() -> hook.Values:
    return hook.Values(DOCUMENT)


def patched(values: hook.Values, before: JsonObject = DOCUMENT) -> dict[str, Any]:
    """What the operator makes of the patch."""
    operations = patches.parse_patch(json.dumps(values.patch), "the patch").operations
    after: dict[str, Any] = jsonpatch.apply_patch(before, [dict(operation) for operation in operations])
    return after


@rows.each(
    ("path", "value"),
    [
        ("web.size", 2),
        ("/web/size", 2),
        (["web", "size"], 2),
        (("web", "names", 1, "b"), 1),
        ("web.names.1.b", 1),
        ("web.none", None),
        ("web.8080", "port"),
        (["web", "a.b"], 1),
        ("/web/a.b", 1),
        ("/web/c~1d~0e", 2),
        ("global", {"ha": True}),
    ],
    ids=str,
)
def test_a_value_is_read_by_its_path(values: hook.Values, path: hook.Path, value: object) -> None:
    assert values[path] == values.get(path, "default") == value
    assert path in values


@pytest.mark.parametrize(
    "path", ["web.nothing", "nothing.at.all", "web.size.more", "web.names.2", "web.names.x", "web.none.x"]
)
def test_a_value_that_is_not_there_has_a_default_or_is_an_error(values: hook.Values, path: str) -> None:
    assert values.get(path) is None
    assert values.get(path, 7) == 7
    assert path not in values
    with pytest.raises(hook.MissingError) as raised:
        values[path]
    assert str(raised.value) == f"there is no value '{path}'; give it a default, or read it with get()"


@pytest.mark.parametrize("path", ["", "web..size", ".web", []], ids=repr)
def test_what_is_not_a_path_is_refused(values: hook.Values, path: hook.Path) -> None:
    with pytest.raises(hook.HookError, match="path of values"):
        values.get(path)


def test_what_was_read_can_be_changed_without_changing_the_values(values: hook.Values) -> None:
    values["web"]["size"] = 9
    assert (values["web.size"], values.patch) == (2, [])


@pytest.mark.parametrize(
    ("path", "value", "operation"),
    [
        ("web.size", 3, {"op": "add", "path": "/web/size", "value": 3}),
        ("web.new", {"a": [1]}, {"op": "add", "path": "/web/new", "value": {"a": [1]}}),
        ("web.x.y.z", 1, {"op": "add", "path": "/web/x", "value": {"y": {"z": 1}}}),
        ("web.none.x", 1, {"op": "add", "path": "/web/none", "value": {"x": 1}}),
        ("web.names.0", "z", {"op": "replace", "path": "/web/names/0", "value": "z"}),
        ("web.names.-", "z", {"op": "add", "path": "/web/names/-", "value": "z"}),
        (["web", "c/d~e"], 1, {"op": "add", "path": "/web/c~1d~0e", "value": 1}),
        (["web", "x.y", "z"], 1, {"op": "add", "path": "/web/x.y", "value": {"z": 1}}),
        ("other.key", 1, {"op": "add", "path": "/other/key", "value": 1}),
        ("webEnabled", True, {"op": "add", "path": "/webEnabled", "value": True}),
    ],
    ids=str,
)
def test_a_value_that_is_put_is_one_operation_and_is_read_back(
    values: hook.Values, path: hook.Path, value: object, operation: JsonObject
) -> None:
    values.set(path, value)
    assert values.patch == [operation]
    if path != "web.names.-":
        assert values[path] == value


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("web.size.x", "web.size is a number, so nothing can be put at 'x' in it"),
        ("web.off.x", "web.off is true or false, so"),
        ("web.8080.x", "web.8080 is a text, so"),
        ("web.names.2", "web.names is a list of 2, so it has no place '2'; use append()"),
        ("web.names.x", "web.names is a list of 2, so it has no place 'x'; use append()"),
    ],
)
def test_a_value_that_has_no_place_is_refused(values: hook.Values, path: str, sentence: str) -> None:
    with pytest.raises(hook.HookError) as raised:
        values.set(path, 1)
    assert str(raised.value).startswith(sentence)
    assert values.patch == []


@pytest.mark.parametrize(
    "value", [{1, 2}, float("nan"), b"x", object()], ids=lambda value: type(value).__name__
)
def test_what_json_cannot_hold_is_refused_with_its_path(values: hook.Values, value: object) -> None:
    with pytest.raises(hook.HookError, match=r"^web\.x: this is not JSON: "):
        values.set("web.x", value)


def test_a_later_change_of_what_was_put_changes_nothing(values: hook.Values) -> None:
    names = ["a"]
    values.set("web.list", names)
    names.append("b")
    values.append("web.list", "c")
    assert values.patch[0] == {"op": "add", "path": "/web/list", "value": ["a"]}
    assert values["web.list"] == ["a", "c"]


def test_a_list_is_made_by_what_is_appended_first(values: hook.Values) -> None:
    values.append("web.list", 1)
    values.append("web.list", 2)
    values.append("web.none", 3)
    assert patched(values)["web"]["list"] == [1, 2]
    assert patched(values)["web"]["none"] == [3]


def test_what_is_removed_is_gone_and_what_is_not_there_makes_no_operation(values: hook.Values) -> None:
    values.remove("web.size")
    values.remove("web.size")
    values.remove("web.names.0")
    values.remove("nothing.there")
    assert values.patch == [{"op": "remove", "path": "/web/size"}, {"op": "remove", "path": "/web/names/0"}]
    assert "web.size" not in values
    assert values["web.names"] == [{"b": 1}]


def test_items_are_put_and_removed_like_those_of_a_mapping(values: hook.Values) -> None:
    values["web.size"] = 5
    del values["web.off"]
    assert [operation["op"] for operation in values.patch] == ["add", "remove"]
    with pytest.raises(hook.MissingError, match=r"web\.off"):
        del values["web.off"]


KEYS = strategies.sampled_from(["a", "b", "c/d", "e~f", "0"])
LEAVES = strategies.none() | strategies.booleans() | strategies.integers() | strategies.text(max_size=3)
TREES = strategies.recursive(
    LEAVES,
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
SECTIONS = strategies.dictionaries(KEYS, strategies.dictionaries(KEYS, TREES, max_size=3), min_size=1)
CHANGES = strategies.lists(
    strategies.tuples(
        strategies.sampled_from(["set", "append", "remove"]),
        strategies.lists(KEYS, min_size=2, max_size=4),
        TREES,
    ),
    max_size=6,
)


@hypothesis.given(SECTIONS, CHANGES)
def test_the_patch_makes_of_the_values_what_the_hook_sees(
    document: JsonObject, changes: list[tuple[str, list[str], Any]]
) -> None:
    values = hook.Values(document)
    for kind, path, value in changes:
        arguments = (path,) if kind == "remove" else (path, value)
        try:
            getattr(values, kind)(*arguments)
        except hook.HookError:
            continue
    # A section always exists for the operator.
    before = copy.deepcopy(document) | {path[0]: {} for _, path, _ in changes if path[0] not in document}
    assert {key: part for key, part in patched(values, before).items() if part} == {
        key: part for key in before if (part := values.get([key]))
    }
