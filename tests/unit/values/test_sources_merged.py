"""How sources lie on each other."""

from hypothesis import given

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types
from addon_operator.values import sources
from tests.support import rows
from tests.unit.values.json_strategies import OBJECTS


@rows.each(
    ("layers", "expected"),
    [
        ([], {}),
        ([{"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}], {"a": {"x": 1, "y": 3}}),
        ([{"a": [1, 2, 3]}, {"a": [4]}], {"a": [4]}),
        ([{"a": {"x": 1}}, {"a": "text"}], {"a": "text"}),
        ([{"a": "text"}, {"a": {"x": 1}}], {"a": {"x": 1}}),
        ([{"a": {"x": 1}}, {"a": None}], {"a": None}),
        ([{"a": None}, {"a": {"x": 1}}], {"a": {"x": 1}}),
        ([{"a": {"x": 1}}, {"a": {}}], {"a": {"x": 1}}),
        ([{"a": 1}, {"a": 2}, {"a": 3}], {"a": 3}),
    ],
    ids=[
        "nothing",
        "mappings deep",
        "lists whole",
        "scalar over mapping",
        "mapping over scalar",
        "null stays null",
        "mapping over null",
        "empty mapping changes nothing",
        "highest last",
    ],
)
def test_layers_merge(layers: list[json_types.JsonObject], expected: json_types.JsonObject) -> None:
    assert sources.merge(*layers) == expected


def test_keys_keep_the_order_in_which_they_first_appear() -> None:
    merged = sources.merge({"z": 1, "a": {"q": 1, "b": 2}}, {"m": 3, "a": {"x": 0, "b": 3}, "z": 2})
    assert list(merged) == ["z", "a", "m"]
    inner = merged["a"]
    assert isinstance(inner, dict)
    assert list(inner) == ["q", "b", "x"]


@given(OBJECTS, OBJECTS)
def test_the_result_shares_nothing_with_the_layers(
    below: json_types.JsonObject, above: json_types.JsonObject
) -> None:
    before = json_documents.encode([below, above])
    _scribble(sources.merge(below, above))
    assert json_documents.encode([below, above]) == before


def _scribble(value: json_types.JsonValue) -> None:
    if isinstance(value, dict):
        for inner in list(value.values()):
            _scribble(inner)
        value["scribble"] = True
    elif isinstance(value, list):
        for inner in value:
            _scribble(inner)
        value.append("scribble")


@given(OBJECTS, OBJECTS, OBJECTS)
def test_merging_one_after_another_is_merging_all_at_once(
    first: json_types.JsonObject, second: json_types.JsonObject, third: json_types.JsonObject
) -> None:
    assert sources.merge(sources.merge(first, second), third) == sources.merge(first, second, third)
