"""Patches of hooks: reading, permission, and RFC 6902 to the letter."""

import json

import pytest

from addon_operator.kernel import json_types, names
from addon_operator.values.patches import patches
from tests.support import rows

SOME = names.ModuleName("some-module")


def parse(text: str) -> patches.ValuesPatch:
    return patches.parse_patch(text, "VALUES_JSON_PATCH_PATH")


def apply(section: json_types.JsonValue, text: str) -> json_types.JsonValue:
    document: json_types.JsonObject = {"m": section}
    patches.apply_strictly(document, parse(text))
    return document["m"]


ADD = '{"op":"add","path":"/m/a","value":1}'
REMOVE = '{"op":"remove","path":"/m/a"}'


@rows.each(
    ("text", "kinds"),
    [
        ("", []),
        (" \n\t", []),
        ("[]", []),
        (ADD, ["add"]),
        (f"[{ADD},{REMOVE}]", ["add", "remove"]),
        (f"{ADD}{REMOVE}", ["add", "remove"]),
        (f"[{ADD}]\n\n[{REMOVE}, {ADD}]\n", ["add", "remove", "add"]),
        (f"[{ADD}]\n{REMOVE}\n[]", ["add", "remove"]),
        ("\ufeff" + ADD, ["add"]),
    ],
    ids=[
        "empty",
        "space",
        "no operation",
        "object",
        "array",
        "objects",
        "arrays",
        "mixed",
        "byte order mark",
    ],
)
def test_arrays_objects_and_streams_of_both_are_read(text: str, kinds: list[str]) -> None:
    assert [operation["op"] for operation in parse(text).operations] == kinds


def test_a_patch_has_a_bound_of_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = 200
    monkeypatch.setattr(patches, "MAX_OPERATIONS", bound)
    assert len(parse(REMOVE * bound).operations) == bound
    with pytest.raises(patches.PatchError) as raised:
        parse(REMOVE * (bound + 1))
    assert str(raised.value) == (
        "VALUES_JSON_PATCH_PATH has 201 operations, and may have 200; "
        "write a mapping or a list with one operation, as a whole"
    )


def test_members_that_an_operation_does_not_know_are_ignored() -> None:
    assert parse('{"op":"remove","path":"/m/a","value":1,"note":"x"}').operations == (
        {"op": "remove", "path": "/m/a"},
    )


@rows.each(
    ("text", "message"),
    [
        (f'[{ADD},{{"op":"merge","path":"/m"}}]', "operation [1], field op: must be one of add, remove"),
        (f'{ADD}\n{{"op":"test","path":"/m"}}', "operation [1], field value: 'test' needs it"),
        ('{"path":"/m"}', "operation [0], field op"),
        ('{"op":"remove"}', "operation [0], field path: 'remove' needs it"),
        ('{"op":"move","path":"/m"}', "field from: 'move' needs it"),
        ('{"op":"copy","path":"/m","from":7}', "field from: must be a string"),
        ('{"op":"remove","path":["m"]}', "field path: must be a string"),
        ('{"op":"remove","path":"m/a"}', "field path: a path must begin with '/'"),
        ('{"op":"remove","path":"/m/~2"}', "field path: '~' in a path must be written '~0'"),
        ('{"op":"remove","path":"/m/~"}', "field path: '~' in a path must be written '~0'"),
        ("7", "operation [0]: an operation must be a JSON object"),
        ("[[]]", "operation [0]: an operation must be a JSON object"),
        (f"{ADD}\n{{bad", "VALUES_JSON_PATCH_PATH, line 2, column 2: invalid JSON"),
        ("\n  {", "line 2, column 4: invalid JSON"),
        (f"no JSON {'x' * 100}", f"it begins with 'no JSON {'x' * 52}'…"),
        ('{"op":"add","path":"/m/a","value":NaN}', "line 1, column 35: invalid JSON"),
        (f'{ADD}\n{{"op":"add","path":"/m/a","value":"\\ud800"}}', "line 2, column"),
        ("[" * 100_000, "VALUES_JSON_PATCH_PATH"),
    ],
    ids=lambda text: text[:40],
)
def test_a_wrong_patch_names_index_and_field_or_position(text: str, message: str) -> None:
    with pytest.raises(patches.PatchError) as caught:
        parse(text)
    assert message in str(caught.value)


@rows.each(
    ("section", "patch", "expected"),
    [
        ({}, '{"op":"add","path":"/m/a","value":{"b":1}}', {"a": {"b": 1}}),
        ({"a": 1}, '{"op":"add","path":"/m/a","value":2}', {"a": 2}),
        ({"l": [1, 2]}, '{"op":"add","path":"/m/l/1","value":9}', {"l": [1, 9, 2]}),
        ({"l": [1]}, '{"op":"add","path":"/m/l/1","value":2}', {"l": [1, 2]}),
        ({"l": [1]}, '{"op":"add","path":"/m/l/-","value":2}', {"l": [1, 2]}),
        ({"l": list(range(12))}, '{"op":"remove","path":"/m/l/11"}', {"l": list(range(11))}),
        ({"10": 1, "-": 2}, '[{"op":"remove","path":"/m/10"},{"op":"remove","path":"/m/-"}]', {}),
        ({"a": None}, '{"op":"remove","path":"/m/a"}', {}),
        ({"a": 1}, '{"op":"replace","path":"/m/a","value":null}', {"a": None}),
        ({"a": 1}, '{"op":"replace","path":"/m/a"}', {"a": None}),
        ({}, '{"op":"add","path":"/m/a"}', {"a": None}),
        ({"l": [1]}, '{"op":"add","path":"/m/l/-"}', {"l": [1, None]}),
        ({"l": [1, 2]}, '{"op":"replace","path":"/m/l/0","value":[]}', {"l": [[], 2]}),
        ({"a": {"b": 1}}, '{"op":"move","from":"/m/a/b","path":"/m/c"}', {"a": {}, "c": 1}),
        ({"l": [1, 2, 3]}, '{"op":"move","from":"/m/l/0","path":"/m/l/2"}', {"l": [2, 3, 1]}),
        ({"a": {"b": 1}}, '{"op":"move","from":"/m/a/b","path":"/m/a"}', {"a": 1}),
        ({"a": {"b": 1}}, '{"op":"copy","from":"/m/a","path":"/m/c"}', {"a": {"b": 1}, "c": {"b": 1}}),
        (
            {"a": [1, {"b": None}]},
            '{"op":"test","path":"/m/a","value":[1,{"b":null}]}',
            {"a": [1, {"b": None}]},
        ),
        ({"a": 1}, '{"op":"test","path":"/m/a","value":1.0}', {"a": 1}),
        ({"a/b": {"c~d": 1}}, '{"op":"remove","path":"/m/a~1b/c~0d"}', {"a/b": {}}),
        ({"": 1}, '{"op":"remove","path":"/m/"}', {}),
        ({"a": 1}, '{"op":"replace","path":"/m","value":{"b":2}}', {"b": 2}),
        ({"a": 1}, '{"op":"remove","path":"/m"}', {}),
        ({"a": {"b": 1}}, '{"op":"move","from":"/m/a","path":"/m"}', {"b": 1}),
    ],
    ids=repr,
)
def test_operations_apply_as_the_rfc_says(
    section: json_types.JsonValue, patch: str, expected: json_types.JsonValue
) -> None:
    assert apply(section, patch) == expected


@rows.each(
    ("section", "patch", "message"),
    [
        ({}, '{"op":"remove","path":"/m/a"}', "operation [0] (remove /m/a): there is nothing at '/m/a'"),
        ({}, '{"op":"replace","path":"/m/a","value":1}', "there is nothing at '/m/a'"),
        ({}, '{"op":"add","path":"/m/a/b/c","value":1}', "there is nothing at '/m/a'"),
        (
            {"a": 1},
            '{"op":"add","path":"/m/a/b","value":1}',
            "there is a number at '/m/a', and not a mapping or",
        ),
        ({"a": "x"}, '{"op":"add","path":"/m/a/0","value":1}', "there is a string at '/m/a', and not"),
        ({"a": None}, '{"op":"add","path":"/m/a/b/c","value":1}', "there is nothing at '/m/a/b'"),
        ({"a": None}, '{"op":"add","path":"/m/a/b","value":1}', "there is null at '/m/a', and not"),
        ({"a": True}, '{"op":"add","path":"/m/a/b","value":1}', "there is a boolean at '/m/a', and not"),
        ({"l": [1]}, '{"op":"add","path":"/m/l/3","value":1}', "'/3' does not exist there"),
        ({"l": [1]}, '{"op":"add","path":"/m/l/01","value":1}', "'/01' does not exist there"),
        ({"l": [1]}, '{"op":"add","path":"/m/l/-1","value":1}', "'/-1' does not exist there"),
        ({"l": [1]}, '{"op":"remove","path":"/m/l/-"}', "there is nothing at '/m/l/-'"),
        ({"l": [1]}, '{"op":"copy","from":"/m/l/-","path":"/m/a"}', "there is nothing at '/m/l/-'"),
        ({"l": [1]}, '{"op":"test","path":"/m/l/-","value":1}', "there is nothing at '/m/l/-'"),
        ({}, '{"op":"move","from":"/m/a","path":"/m/b"}', "there is nothing at '/m/a'"),
        ({"a": {"b": 1}}, '{"op":"move","from":"/m/a","path":"/m/a/c"}', "a value cannot move into itself"),
        ({"a": 1}, '{"op":"test","path":"/m/a","value":2}', "(test /m/a): the value there is different"),
        ({"a": 1}, '{"op":"test","path":"/m/a","value":true}', "the value there is different"),
        ({"a": None}, '{"op":"test","path":"/m/b","value":null}', "there is nothing at '/m/b'"),
        ({}, '{"op":"add","path":"/m","value":[1]}', "a section must be a mapping"),
        ({"a": 1}, '{"op":"move","from":"/m/a","path":"/m"}', "a section must be a mapping"),
        ({}, f"[{ADD},{REMOVE},{REMOVE}]", "operation [2] (remove /m/a)"),
    ],
    ids=repr,
)
def test_an_operation_that_does_not_apply_says_why(
    section: json_types.JsonValue, patch: str, message: str
) -> None:
    with pytest.raises(patches.PatchError) as caught:
        apply(section, patch)
    assert message in str(caught.value)


def test_errors_never_show_values() -> None:
    with pytest.raises(patches.PatchError) as caught:
        apply({"password": "hunter2"}, '{"op":"test","path":"/m/password","value":"hunter3"}')
    assert "hunter" not in str(caught.value)


def test_values_that_no_json_reader_would_take_are_refused() -> None:
    deep = "[" * 150 + "]" * 150
    patch = f"""[{{"op":"add","path":"/m/a","value":{deep}}},
                {{"op":"copy","from":"/m/a","path":"/m/a{"/0" * 149}/-"}}]"""
    with pytest.raises(patches.PatchError, match="nest too deep"):
        apply({}, patch)


@rows.each(
    ("owner", "path", "permitted"),
    [
        (SOME, "/someModule", True),
        (SOME, "/someModule/a/b", True),
        (SOME, "/someModules", False),
        (SOME, "/global/a", False),
        (SOME, "/someModuleEnabled", False),
        (SOME, "", False),
        (None, "/global", True),
        (None, "/global/a", True),
        (None, "/anyModuleEnabled", True),
        (None, "/anyModuleEnabled/a", False),
        (None, "/Enabled", False),
        (None, "/someModule/a", False),
        (None, "", False),
    ],
)
def test_hooks_change_only_their_own_roots(
    owner: names.ModuleName | None, path: str, permitted: bool
) -> None:
    patch = parse(f'[{{"op":"remove","path":"{path}"}}]')
    if permitted:
        patches.check_roots(owner, patch, switches=True)
        return
    with pytest.raises(patches.PatchError) as caught:
        patches.check_roots(owner, patch, switches=True)
    assert f"operation [0]: path {path!r} is not permitted: " in str(caught.value)


def test_the_origin_of_a_move_must_be_permitted_too() -> None:
    patch = parse('{"op":"copy","from":"/global/a","path":"/someModule/a"}')
    with pytest.raises(
        patches.PatchError, match="path '/global/a' is not permitted: hooks of module 'some-module'"
    ):
        patches.check_roots(SOME, patch, switches=True)


@pytest.mark.parametrize("kind", ["copy", "move"])
def test_copies_that_double_the_values_again_and_again_are_refused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patches, "MAX_COPIED_BYTES", 1 << 20)
    doubling = [{"op": "copy", "from": "/m/a", "path": f"/m/a/{number}"} for number in range(60)]
    moving = [{"op": "move", "from": "/m/x", "path": "/m/x"} for _ in range(60)]
    text = json.dumps(doubling if kind == "copy" else moving)
    with pytest.raises(patches.PatchError, match="all copies and moves of the patch are over 1 MiB"):
        apply({"a": {"b": 1}, "x": "y" * 50_000}, text)


@rows.each(
    ("value", "message"),
    [
        ("1" * 5_000, "a number has thousands of digits; quote it"),
        ("[" * 100_000 + "]" * 100_000, "the JSON nests too deep"),
        ("[" * 600 + "]" * 600, "the values would nest too deep to be written as JSON"),
    ],
    ids=["long number", "very deep", "deep"],
)
def test_absurd_json_is_refused_in_one_sentence(value: str, message: str) -> None:
    with pytest.raises(patches.PatchError, match=message):
        apply({}, f'{{"op":"add","path":"/m/a","value":{value}}}')
