"""Values of charts within charts, as Helm makes them."""

from collections.abc import Sequence
from typing import Any

import pytest

from addon_operator.values import coalescing


def chart(
    name: str,
    values: dict[str, Any],
    *charts: coalescing.Chart,
    dependencies: Sequence[Any] = (),
) -> coalescing.Chart:
    return coalescing.Chart(name, tuple(dependencies), values, charts)


@pytest.mark.parametrize(
    ("values", "made"),
    [
        ({"a": 2}, {"a": 2, "b": {"c": 1, "d": None}, "e": None}),
        ({"b": {"c": 5, "x": 1}}, {"a": 1, "b": {"c": 5, "d": None, "x": 1}, "e": None}),
        ({"a": None, "b": {"c": None}, "e": 3}, {"b": {"d": None}, "e": 3}),
        ({"b": None, "unknown": None}, {"a": 1, "e": None, "unknown": None}),
        ({"b": "text"}, {"a": 1, "b": "text", "e": None}),
    ],
    ids=["over", "merge", "null deletes", "null of an unknown key stays", "another type"],
)
def test_values_lie_over_those_of_the_chart(values: dict[str, Any], made: dict[str, Any]) -> None:
    own = {"a": 1, "b": {"c": 1, "d": None}, "e": None}
    assert coalescing.coalesced(chart("web", own), values) == made
    assert own == {"a": 1, "b": {"c": 1, "d": None}, "e": None}


def test_a_chart_within_gets_its_own_values_those_of_its_key_and_the_globals() -> None:
    below = chart("db", {"size": 1, "global": {"a": "db", "b": "db"}})
    made = coalescing.coalesced(
        chart("web", {"db": {"size": 2}, "global": {"a": "web"}}, below), {"global": {"c": "given"}}
    )
    assert made["db"] == {"size": 2, "global": {"a": "web", "b": "db", "c": "given"}}


def test_only_enabled_charts_remain_under_their_aliases() -> None:
    dependencies = [
        {"name": "db", "alias": "main", "condition": "main.enabled"},
        {"name": "db", "alias": "spare", "condition": "spare.enabled,all.enabled"},
        {"name": "cache", "tags": ["extra"]},
    ]
    web = chart(
        "web",
        {"main": {"enabled": True}, "spare": {"enabled": False}},
        chart("db", {"size": 1}),
        chart("cache", {}),
        dependencies=dependencies,
    )
    values: dict[str, Any] = {"tags": {"extra": False}}
    rest = coalescing.remaining(web, values)
    assert [each.name for each in rest.charts] == ["main"]
    assert coalescing.coalesced(rest, values)["main"] == {"enabled": True, "size": 1, "global": {}}


@pytest.mark.parametrize(
    ("wanted", "made"),
    [("data", {"port": 1}), ({"child": "inner", "parent": "outer"}, {"outer": {"x": 2}})],
    ids=["exports", "child and parent"],
)
def test_values_are_imported_from_charts_within(wanted: object, made: dict[str, Any]) -> None:
    below = chart("db", {"exports": {"data": {"port": 1}}, "inner": {"x": 2}})
    web = chart("web", {}, below, dependencies=[{"name": "db", "import-values": [wanted]}])
    found = coalescing.coalesced(web, {})
    del found["db"]
    assert found == made


def chain(levels: int, *dependencies: dict[str, Any]) -> coalescing.Chart:
    found = chart("db", {"exports": {"data": {"port": 1}}})
    for _ in range(levels):
        found = chart("db", {"exports": {"data": {"size": 1}}}, found, dependencies=dependencies)
    return found


TWICE = ({"name": "db", "alias": "one"}, {"name": "db", "alias": "two"})


@pytest.mark.parametrize(
    ("large", "said"),
    [
        (chain(24, *TWICE), "more than 1000 charts within the chart; remove some"),
        (chain(500), "more than 32 levels deep within each other"),
        (chart("web", {"text": "x" * (33 << 20)}), "have more than 32 MiB; remove some"),
        (
            chart(
                "web",
                {"text": "x" * (4 << 20)},
                chart("db", {}),
                dependencies=[{"name": "db", "import-values": ["data"] * 9}],
            ),
            "have more than 32 MiB; remove some",
        ),
    ],
    ids=["aliases of aliases", "levels", "values", "imports"],
)
def test_charts_within_are_counted_before_their_values_are_worked_out(
    large: coalescing.Chart, said: str
) -> None:
    with pytest.raises(coalescing.TooManyChartsError, match=said):
        coalescing.check_size(large)


def test_charts_as_people_write_them_are_not_too_many() -> None:
    coalescing.check_size(chain(8, *TWICE))
    coalescing.check_size(chart("web", {}, *(chart(f"db{number}", {}) for number in range(999))))


def test_imports_of_each_level_are_worked_out_once() -> None:
    imports = {"name": "db", "import-values": ["data", {"child": "exports", "parent": "exports"}]}
    made = coalescing.coalesced(chain(30, imports), {})
    assert (made["port"], made["size"]) == (1, 1)


def test_all_charts_within_share_the_global_values_of_the_chart() -> None:
    wide = chart("web", {}, *(chart(f"db{number}", {}) for number in range(20)))
    above: dict[str, Any] = {"b": "c"}
    made: dict[str, Any] = coalescing.coalesced(wide, {"global": {"a": above}})
    assert all(made[f"db{number}"]["global"]["a"] is above for number in range(20))
