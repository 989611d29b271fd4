"""Schemas of stock charts, over the values that Helm makes."""

from typing import Any

from addon_operator.kernel import json_types
from addon_operator.values.schema import chart_schemas
from tests.support import rows
from tests.unit import costs

SOURCE = "chart/values.schema.json"


def checked(
    schema: json_types.JsonValue,
    values: dict[str, Any] | None = None,
    **more: Any,  # noqa: ANN401  # any field
) -> chart_schemas.ChartSchemas:
    return chart_schemas.ChartSchemas(
        chart_schemas.CheckedChart("web", values=values or {}, schema=schema, source=SOURCE, **more)
    )


def sentences(
    schema: json_types.JsonValue, values: dict[str, Any], own: dict[str, Any] | None = None
) -> list[str]:
    return [str(one) for one in checked(schema, own).violations(values)]


@rows.each(
    ("schema", "told"),
    [
        ({"properties": {"a": {"type": "string"}}}, "a: must be a string, not 1"),
        ({"required": ["b"]}, ": must have the key 'b'"),
        ({"properties": {"own": {"minimum": 3}}}, "own: must be at least 3, not 2"),
        ({"additionalProperties": False}, "a: the schema allows no keys here"),
        ({"properties": {"a": False}}, ": has something that the schema does not allow"),
        ({"properties": {"name": {"pattern": "^x"}}}, "name: must match '^x', not \"web\""),
        ({"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"const": 2}}}, "a: must be 2"),
        (False, ": cannot be set: the schema allows nothing"),
    ],
    ids=["type", "required", "own value", "unknown key", "nothing", "pattern", "reference", "false"],
)  # fmt: skip
def test_what_a_schema_does_not_allow_is_reported(schema: json_types.JsonValue, told: str) -> None:
    found = sentences(schema, {"a": 1, "name": "web"}, {"own": 2})
    assert any(one.startswith(told) for one in found), found
    assert all(one.endswith(f"({SOURCE})") for one in found)


@rows.each(
    ("dialect", "is_right"),
    [
        ("http://json-schema.org/draft-07/schema#", False),
        ("https://json-schema.org/draft/2019-09/schema", False),
        ("https://json-schema.org/draft/2020-12/schema", True),
        (None, True),
        ("https://example.com/own", True),
    ],
)
def test_the_dialect_is_the_one_that_the_schema_names(dialect: str | None, *, is_right: bool) -> None:
    schema: dict[str, Any] = {"properties": {"a": {"items": [{"type": "string"}]}}}
    schema |= {"$schema": dialect} if dialect else {}
    assert bool(sentences(schema, {"a": [1]})) is not is_right


@rows.each(
    "schema",
    [
        {"$ref": "https://example.com/other.json"},
        {"properties": {"a": {"$ref": "#/definitions/missing"}}},
        {"properties": {"a": {"$ref": "other.json#/x"}}},
    ],
    ids=["elsewhere", "missing", "another file"],
)
def test_what_cannot_be_resolved_checks_nothing_with_a_warning(schema: dict[str, Any]) -> None:
    assert sentences(schema, {"a": 1}) == []
    (warning,) = checked(schema).warnings
    assert "it is never fetched" in warning
    assert sentences({**schema, "required": ["b"]}, {"a": 1})


@rows.each(
    ("schema", "expected"),
    [
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}},
            False,
        ),
        ({"properties": {"$ref": {"type": "string"}}}, False),
        ({"properties": {"a": {"$ref": "file:///var/run/secrets/token"}}}, True),
        ({"allOf": [{"$dynamicRef": "http://169.254.169.254/latest"}]}, True),
        ({"$defs": {"a": {"$schema": "http://169.254.169.254/"}}}, True),
    ],
)
def test_what_helm_would_fetch_is_known(schema: dict[str, Any], *, expected: bool) -> None:
    assert checked(schema).leads_outside is expected
    outer = chart_schemas.CheckedChart("web", charts=(chart_schemas.CheckedChart("db", schema=schema),))
    assert chart_schemas.ChartSchemas(outer).leads_outside is expected


def test_a_schema_that_cannot_be_read_checks_nothing_with_a_warning() -> None:
    found = chart_schemas.ChartSchemas(chart_schemas.CheckedChart("web", source="web/values.schema.json"))
    assert found.leads_outside
    assert found.warnings[0].startswith("web/values.schema.json: it cannot be read here")


def test_many_references_that_lead_nowhere_are_found_at_once() -> None:
    def schema(size: int) -> dict[str, Any]:
        wide = {f"d{number}": {"properties": {"a": {"type": "string"}}} for number in range(size)}
        return {"$defs": wide, "allOf": [{"$ref": f"#none{number}"} for number in range(size)]}

    assert len(checked(schema(100)).warnings) == 20
    assert costs.is_linear(schema, checked, 100)


@rows.each(
    "schema",
    [
        {"type": "objct"},
        {"properties": {"a": {"pattern": "(?!x)"}}},
        {"$ref": "#"},
        {"properties": 3},
        {"patternProperties": {"(?=a)": False}},
    ],
    ids=["type", "pattern", "itself", "properties", "pattern of keys"],
)
def test_a_schema_that_cannot_be_used_is_left_to_helm(schema: dict[str, Any]) -> None:
    assert sentences(schema, {"a": "y"}) == []


def test_schemas_of_charts_within_check_what_those_get() -> None:
    below = chart_schemas.CheckedChart(
        "db",
        values={"size": 1},
        schema={"properties": {"size": {"minimum": 1}}, "required": ["global"]},
        source="chart/charts/db/values.schema.json",
    )
    dependency: json_types.JsonObject = {"name": "db", "alias": "main", "condition": "main.enabled"}
    chart = checked(None, charts=(below,), dependencies=(dependency,))
    assert chart.chart.has_schemas
    (found,) = chart.violations({"main": {"size": 0}})
    assert str(found) == "main.size: must be at least 1, not 0 (chart/charts/db/values.schema.json)"
    assert chart.violations({"main": {"size": 0, "enabled": False}}) == []


@rows.each(
    ("schema", "told"),
    [
        ({"type": "objct"}, "type"),
        ([], "a schema is a mapping"),
        ({"properties": {"a": {"minimum": "x"}}}, "properties.a.minimum: must be a number"),
    ],
    ids=["type", "list", "deep"],
)
def test_mistakes_in_a_schema_are_found(schema: json_types.JsonValue, told: str) -> None:
    assert any(told in one for one in chart_schemas.mistakes(schema))
    assert list(chart_schemas.mistakes({"type": "object"})) == []


@rows.each(
    ("schema", "told"),
    [
        ({"required": ["mode"], "properties": {"mode": {"enum": ["a"]}}}, [": must have the key 'mode'"]),
        ({"properties": {"mode": {"type": "string"}}}, []),
        ({"required": ["mode"], "properties": {"mode": {"type": ["string", "null"]}}}, []),
    ],
    ids=["both refuse it", "Helm 4 leaves it out", "Helm 3 allows it"],
)
def test_a_key_that_is_null_in_the_chart_and_required_is_missing_if_every_helm_says_so(
    schema: json_types.JsonValue, told: list[str]
) -> None:
    assert [one.partition(" (")[0] for one in sentences(schema, {}, {"mode": None})] == told
    assert sentences(schema, {"mode": "a"}, {"mode": None}) == []
    below: dict[str, Any] = {"properties": {"db": schema}}
    assert len(sentences(below, {}, {"db": {"mode": None}})) == len(told)
