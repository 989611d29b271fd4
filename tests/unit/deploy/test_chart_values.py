"""values.yaml of the operator's chart and its schema know the same keys."""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import yaml

from tests.support import rows

CHART = pathlib.Path(__file__).parents[3] / "deploy" / "chart" / "addon-operator"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
FREE = {("settings",), ("webhook", "certificates", "certManager", "issuerRef")}
"""Mappings of which users choose the keys."""
OF_HELM = {"global"}
"""What Helm itself adds."""


def places(schema: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield each mapping of the schema that lists its keys and takes no others."""
    if not isinstance(schema, Mapping):
        return
    if schema.get("additionalProperties") is False:
        yield path
    for key, inner in schema.get("properties", {}).items():
        yield from places(inner, (*path, key))


def at(document: Mapping[str, Any], path: tuple[str, ...]) -> Any:  # noqa: ANN401  # any value
    for key in path:
        document = document[key]
    return document


@rows.each(
    "path", [path for path in places(SCHEMA) if path not in FREE], ids=lambda path: ".".join(path) or "all"
)
def test_each_key_has_a_default_and_a_rule(path: tuple[str, ...]) -> None:
    rules = at(SCHEMA, tuple(part for key in path for part in ("properties", key)))["properties"]
    assert set(rules) - OF_HELM == set(at(VALUES, path))


def test_the_defaults_are_valid() -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(VALUES)


DEPENDENT: dict[str, dict[str, Any]] = yaml.safe_load((CHART / "dependent-values.yaml").read_text("utf-8"))


@rows.each("path", DEPENDENT)
def test_a_value_that_needs_another_one_has_the_default_of_the_values(path: str) -> None:
    about = DEPENDENT[path]
    assert about["default"] == at(VALUES, tuple(path.split(".")))
    assert about.keys() <= {"needs", "is", "default"}
    for other in about["needs"]:
        is_default = at(VALUES, tuple(other.split(".")))
        assert "is" not in about or (len(about["needs"]), about["is"] != is_default) == (1, True)


@rows.each("source", ["image", "git", "configMap", "git.ca"])
def test_no_key_of_a_source_of_modules_is_taken_unseen(source: str) -> None:
    assert ("modules", *source.split(".")) in set(places(SCHEMA))
