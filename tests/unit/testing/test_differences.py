"""Differences name the field, and a subset asks only for what it says."""

import pytest

from addon_operator.testing import differences


def paths(expected: object, actual: object, *, subset: bool = False) -> list[str]:
    return [each.path for each in differences.between(expected, actual, subset=subset)]


def test_equal_documents_do_not_differ() -> None:
    assert paths({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


def test_a_field_is_named_by_its_object() -> None:
    before = [{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}]
    after = [{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}]

    assert paths(before, after) == ["Deployment web: spec.replicas"]


def test_items_are_compared_by_their_names_wherever_they_are() -> None:
    one, two = {"name": "one", "image": "a"}, {"name": "two", "image": "b"}

    assert paths({"c": [two]}, {"c": [one, two]}, subset=True) == []
    assert paths({"c": [one, two]}, {"c": [one, {**two, "image": "x"}]}) == ["c[two].image"]
    assert paths({"c": [one, two]}, {"c": [two, one]}) == ["c: order"]


def test_a_subset_asks_for_what_it_names_alone() -> None:
    assert paths({"a": 1}, {"a": 1, "b": 2}, subset=True) == []
    assert paths({"a": 1}, {"a": 1, "b": 2}) == ["b"]
    assert paths({"a": {"x": 1}}, {}, subset=True) == ["a"]


def test_a_subset_asks_with_null_for_a_field_that_is_not_there() -> None:
    assert paths({"a": {"x": None}}, {"a": {"y": 1}}, subset=True) == []
    assert paths({"a": {"x": None}}, {"a": {"x": None}}, subset=True) == []
    assert paths({"a": {"x": None}}, {"a": {"x": 1}}, subset=True) == ["a.x"]
    assert paths({"a": {"x": None}}, {"a": {}}) == ["a.x"]


def test_lists_without_names_are_compared_by_place_and_length() -> None:
    assert paths({"a": [1, 2]}, {"a": [1, 3, 4]}, subset=True) == ["a[1]", "a[2]"]


@pytest.mark.parametrize(("one", "other"), [(True, 1), (0, False), ("1", 1), (None, "")])
def test_what_only_looks_alike_differs(one: object, other: object) -> None:
    assert paths({"a": one}, {"a": other}) == ["a"]


def test_many_differences_are_counted() -> None:
    found = differences.between({str(n): 1 for n in range(25)}, {})

    assert differences.shown(found).endswith("and 5 more")
