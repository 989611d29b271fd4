"""docs/reference/schemas.md says what the code does."""

import functools
import pathlib
import re
from typing import Any

from addon_operator.values.schema import cel_functions, schema_keywords, schema_violations, schemas
from tests.support import rows

PAGE = (pathlib.Path(__file__).parents[4] / "docs" / "reference" / "schemas.md").read_text()
EXAMPLE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]


def test_every_keyword_is_described() -> None:
    words = schema_keywords.KEYWORDS
    assert [word for word in words if not re.search(rf"`{re.escape(word)}[`:]", PAGE)] == []


def test_no_keyword_is_described_that_there_is_not() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`([$\w-]+)[:`]", row)}
    files = {"config-values", "values", "yaml", "MODULE"}
    known = {*schema_keywords.KEYWORDS, *_functions()}
    assert {word for word in named if word not in known | files} == set()


def test_every_format_is_listed() -> None:
    (row,) = re.findall(r"^\| `format` .*$", PAGE, re.MULTILINE)
    assert [name for name in schema_keywords.FORMATS if f"`{name}`" not in row] == []


def _functions() -> list[str]:
    names = (signature.partition("(")[0] for signature in cel_functions.FUNCTIONS)
    return sorted({re.sub(r"^(list|map|string)\.", "", name) for name in names})


def test_every_function_of_rules_is_listed() -> None:
    assert _functions()
    assert [name for name in _functions() if f"`{name}`" not in PAGE] == []


@functools.cache
def example() -> schemas.Schema:
    return schemas.load_schema(EXAMPLE, "example")


@rows.each(
    ("value", "old", "told"),
    [
        ({}, None, []),
        ({"minReplicas": 4}, None, ["minReplicas must not be above maxReplicas"]),
        ({"memory": "3Gi"}, None, ["must be a quantity below 2Gi"]),
        ({"storageClass": "b"}, {"storageClass": "a"}, ["storageClass cannot be changed"]),
        ({}, {"storageClass": "a"}, ["storageClass cannot be changed"]),
        ({"storageClass": "b"}, {}, []),
    ],
)
def test_the_example_does_what_its_messages_say(
    value: dict[str, Any], old: dict[str, Any] | None, told: list[str]
) -> None:
    schema = example()
    for section in filter(None, (value, old)):
        schema.fill(section)
    schema.fill(value)
    assert [violation.rule for violation in schema.violations("m", value, old)] == told


def test_the_limit_of_steps_is_what_the_page_says() -> None:
    schema = schemas.load_schema("x-kubernetes-validations: [{rule: 'self.a.all(x, x > 0)'}]", "example")
    assert schema.violations("m", {"a": [1] * 9_000}) == []
    assert len(schema.violations("m", {"a": [1] * 11_000})) == 1


def test_the_violation_on_the_page_is_written_as_the_operator_writes_it() -> None:
    text = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)[0]
    found = schema_violations.Violation(
        "web.replicas",
        "must be at most 20",
        "50",
        "modules/010-web/openapi/config-values.yaml",
        origin="modules/010-web/values.yaml, line 2, column 3",
    )
    assert str(found) == text
