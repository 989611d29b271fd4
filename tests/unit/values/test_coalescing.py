"""Values of charts within charts, as Helm makes them."""

from collections.abc import Sequence
from typing import Any

import pytest

from addon_operator.values import coalescing
from tests.support import rows


def chart(
    name: str,
    values: dict[str, Any],
    *charts: coalescing.Chart,
    dependencies: Sequence[Any] = (),
) -> coalescing.Chart:
    return coalescing.Chart(name, tuple(dependencies), values, charts)


@rows.each(
    ("values", "made"),
    [
        ({"a": 2}, {"a": 2, "b": {"c": 1, "d": None}, "e": None}),
        ({"b": {"c": 5, "x": 1}}, {"a": 1, "b": {"c": 5, "d": None, "x": 1}, "e": None}),
        ({"a": None, "b": {"c": None}, "e": 3}, {"b": {"d": None}, "e": 3}),
        ({"b": None, "unknown": None}, {"a": 1, "e": None, "unknown": None}),
        ({"b": "text"}, {"a": 1, "b": "text", "e": None}),
        ({"a": {"x": 1}}, {"a": {"x": 1}, "b": {"c": 1, "d": None}, "e": None}),
    ],
    ids=["over", "merge", "null deletes", "null of an unknown key stays", "another type", "a mapping"],
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


@rows.each(
    ("own", "above", "made"),
    [
        ("db", "web", "web"),
        (None, "web", "web"),
        ({"x": "db", "y": "db"}, {"x": "web", "z": "web"}, {"x": "web", "y": "db", "z": "web"}),
        (None, {"x": "web"}, {"x": "web"}),
        ({"x": "db"}, "web", {"x": "db"}),
        ("db", {"x": "web"}, "db"),
    ],
    ids=["texts", "nothing", "mappings", "no mapping", "text over mapping", "mapping over text"],
)
def test_global_values_win_over_those_of_a_chart_within_of_the_same_kind(
    own: object, above: object, made: object
) -> None:
    values: dict[str, Any] = {"db": {"size": 2, "global": {"key": own, "own": 1}}, "global": {"key": above}}
    found = coalescing.coalesced(chart("web", {}, chart("db", {})), values)
    assert found["db"] == {"size": 2, "global": {"key": made, "own": 1}}
    assert values["db"]["global"] == {"key": own, "own": 1}, "what was given is not changed"


@rows.each(
    ("own", "above"), [("text", {"a": 1}), ({"a": 1}, "text")], ids=["of the chart within", "of the chart"]
)
def test_global_values_that_are_no_mapping_are_not_passed_on(own: object, above: object) -> None:
    values: dict[str, Any] = {"db": {"size": 2, "global": own}, "global": above}
    found = coalescing.coalesced(chart("web", {}, chart("db", {})), values)
    assert found["db"] == {"size": 2, "global": own}


@rows.each(
    ("dependency", "values", "enabled"),
    [
        ({}, {"None": False, "tags": {"a": False}}, True),
        ({"condition": "a.on"}, {"a": {"on": False}}, False),
        ({"condition": "a.on"}, {"a": "text"}, True),
        ({"condition": "a.on"}, {"a": {"on": ""}}, True),
        ({"condition": "a.on,b.on"}, {"a": {"on": True}, "b": {"on": False}}, True),
        ({"condition": "a.on, b.on"}, {"b": {"on": False}}, False),
        ({"condition": "a.on", "tags": ["a"]}, {"a": {"on": True}, "tags": {"a": False}}, True),
        ({"condition": "a.on", "tags": ["a"]}, {"tags": {"a": False}}, False),
        ({"tags": ["a"]}, {}, True),
        ({"tags": ["a"]}, {"tags": {"b": False}}, True),
        ({"tags": ["a", "b"]}, {"tags": {"a": False, "b": True}}, True),
        ({"tags": ["a"]}, {"tags": {"a": ""}}, True),
        ({"tags": "a"}, {"tags": {"a": False}}, True),
        ({"tags": ["a"]}, {"tags": ["a"]}, True),
    ],
    ids=repr,
)
def test_the_first_condition_that_is_set_decides_else_one_tag_that_is_true(
    dependency: dict[str, Any], values: dict[str, Any], enabled: bool
) -> None:
    assert coalescing.is_enabled(dependency, values) is enabled


def test_enabled_charts_are_told_with_the_keys_of_their_values() -> None:
    db, cache = chart("db", {}), chart("cache", {})
    dependencies = [
        {"name": "db", "alias": "main"},
        {"name": "db", "alias": "spare", "condition": "spare.enabled"},
    ]
    web = chart("web", {}, db, cache, dependencies=dependencies)
    values: dict[str, Any] = {"spare": {"enabled": False}}
    assert list(coalescing.enabled(web, values)) == [("main", db), ("cache", cache)]


def test_values_decide_which_charts_remain_in_charts_within() -> None:
    parts = [{"name": "part", "condition": "part.enabled"}]
    db = chart("db", {"part": {"enabled": False}}, chart("part", {}), dependencies=parts)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"db": {"part": {"enabled": True}}}, ["part"]),
        ({"db": {"part": {"enabled": False}}}, []),
        ({}, []),
        ({"db": "text"}, ["part"]),
    ]
    for values, remaining in cases:
        [rest] = coalescing.remaining(chart("web", {}, db), values).charts
        assert [each.name for each in rest.charts] == remaining


def test_charts_that_remain_are_still_imported_from() -> None:
    dependencies = [{"name": "db", "alias": "main", "import-values": ["data"]}]
    db = chart("db", {"exports": {"data": {"port": 1}}})
    rest = coalescing.remaining(chart("web", {}, db, dependencies=dependencies), {})
    assert coalescing.coalesced(rest, {})["port"] == 1


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


@rows.each(
    ("wanted", "made"),
    [
        ("data", {"port": 1}),
        ("size", {}),
        ({"child": "inner", "parent": "outer"}, {"outer": {"x": 2}}),
        ({"child": "inner", "parent": "outer.most"}, {"outer": {"most": {"x": 2}}}),
        ({"child": "inner", "parent": "."}, {"x": 2}),
        ({"child": "inner"}, {"x": 2}),
        ({"child": "exports.size", "parent": "."}, {}),
        (5, {}),
    ],
    ids=repr,
)
def test_values_are_imported_from_charts_within(wanted: object, made: dict[str, Any]) -> None:
    below = chart("db", {"exports": {"data": {"port": 1}, "size": 3}, "inner": {"x": 2}})
    web = chart("web", {}, below, dependencies=[{"name": "db", "import-values": [wanted]}])
    found = coalescing.coalesced(web, {})
    del found["db"]
    assert found == made


@rows.each(
    ("own", "port"),
    [({"db": {"exports": {"data": {"port": 2}}}}, 2), ({"db": "text"}, 1), ({"port": 3}, 3)],
    ids=["set for the chart within", "no values for it", "set for itself"],
)
def test_a_chart_imports_what_its_own_values_make_of_a_chart_within(own: dict[str, Any], port: int) -> None:
    below = chart("db", {"exports": {"data": {"port": 1}}})
    web = chart("web", own, below, dependencies=[{"name": "db", "import-values": ["data"]}])
    assert coalescing.coalesced(web, {})["port"] == port


def chain(levels: int, *dependencies: dict[str, Any]) -> coalescing.Chart:
    found = chart("db", {"exports": {"data": {"port": 1}}})
    for _ in range(levels):
        found = chart("db", {"exports": {"data": {"size": 1}}}, found, dependencies=dependencies)
    return found


TWICE = ({"name": "db", "alias": "one"}, {"name": "db", "alias": "two"})


@rows.each(
    ("large", "said"),
    [
        (chain(24, *TWICE), "more than 1000 charts within the chart; remove some"),
        (chart("web", {}, *(chart(f"db{number}", {}) for number in range(1000))), "more than 1000 charts"),
        (chain(500), "more than 32 levels deep within each other"),
        (chart("web", {"text": "x" * (3 << 20)}), "have more than 2 MiB; remove some"),
        (
            chart("web", {}, *(chart(f"db{number}", {"text": "x" * (1 << 20)}) for number in range(3))),
            "have more than 2 MiB; remove some",
        ),
        (
            chart(
                "web",
                {"text": "x" * (1 << 18)},
                chart("db", {}),
                dependencies=[{"name": "db", "import-values": ["data"] * 9}],
            ),
            "have more than 2 MiB; remove some",
        ),
    ],
    ids=["aliases of aliases", "one more", "levels", "values", "values within", "imports"],
)
def test_charts_within_are_counted_before_their_values_are_worked_out(
    large: coalescing.Chart, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coalescing, "MAX_BYTES", 2 << 20)
    with pytest.raises(coalescing.TooManyChartsError, match=said):
        coalescing.check_size(large)


def test_charts_as_people_write_them_are_not_too_many() -> None:
    coalescing.check_size(chain(8, *TWICE))
    coalescing.check_size(chart("web", {}, *(chart(f"db{number}", {}) for number in range(999))))


def test_values_may_be_as_large_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    web = chart("web", {"text": "x" * 100})
    size = len(repr((web.values, web.dependencies)))
    monkeypatch.setattr(coalescing, "MAX_BYTES", size)
    coalescing.check_size(web)
    monkeypatch.setattr(coalescing, "MAX_BYTES", size - 1)
    with pytest.raises(coalescing.TooManyChartsError):
        coalescing.check_size(web)


def test_imports_of_each_level_are_worked_out_once() -> None:
    imports = {"name": "db", "import-values": ["data", {"child": "exports", "parent": "exports"}]}
    made = coalescing.coalesced(chain(30, imports), {})
    assert (made["port"], made["size"]) == (1, 1)


def test_all_charts_within_share_the_global_values_of_the_chart() -> None:
    wide = chart("web", {}, *(chart(f"db{number}", {}) for number in range(20)))
    above: dict[str, Any] = {"b": "c"}
    made: dict[str, Any] = coalescing.coalesced(wide, {"global": {"a": above}})
    assert all(made[f"db{number}"]["global"]["a"] is above for number in range(20))
