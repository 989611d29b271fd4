"""Which source set a value."""

from addon_operator.kernel import json_types
from addon_operator.values import origins
from tests.support import rows

LAYERS = [
    origins.Layer("low", {"a": {"b": 1, "c": [1, 2]}, "only": 1}),
    origins.Layer("high", {"a": {"b": None, "c": [3]}, "top": {}}),
]


@rows.each(
    ("path", "source"),
    [
        (("a", "b"), "high"),
        (("a", "c"), "high"),
        (("a", "c", 0), "high"),
        (("only",), "low"),
        (("top",), "high"),
        (("missing",), ""),
        (("a", "b", "x"), ""),
    ],
)
def test_the_highest_source_that_has_the_place_is_its_origin(
    path: tuple[str | int, ...], source: str
) -> None:
    assert origins.origin(path, LAYERS) == source


@rows.each(
    ("path", "source"),
    [(("a", "missing"), "high"), (("only", "x"), "low"), (("missing", "x"), "high"), ((), "high")],
)
def test_a_missing_value_is_laid_at_the_door_of_what_contains_it(
    path: tuple[str | int, ...], source: str
) -> None:
    assert origins.nearest_origin(path, LAYERS) == source


def test_where_no_source_says_anything_nobody_is_blamed() -> None:
    assert origins.nearest_origin(("a",), [origins.Layer("empty", {})]) == ""


@rows.each(
    ("value", "places"),
    [
        ({"a": {"b": 1, "c": [{}]}, "d": {}}, [("a", "b"), ("a", "c"), ("d",)]),
        ({}, [()]),
        (1, [()]),
    ],
)
def test_leaves_are_what_sources_replace_as_a_whole(
    value: json_types.JsonValue, places: list[tuple[str | int, ...]]
) -> None:
    assert [path for path, _ in origins.leaves(value)] == places
