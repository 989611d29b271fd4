"""The CustomResourceDefinition and the parser know the same fields and rules."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from addon_operator.podpreset import core_types, model, schema
from addon_operator.podpreset.schema import Field, Kind, ListOf, MapOf, Struct, Type

CRD = yaml.safe_load((pathlib.Path(__file__).parents[3] / "crds" / "podpresets.yaml").read_text())
VERSION = CRD["spec"]["versions"][0]
OBJECT = VERSION["schema"]["openAPIV3Schema"]["properties"]

TYPES: dict[Kind, dict[str, object]] = {
    Kind.TEXT: {"type": "string"},
    Kind.INTEGER: {"type": "integer"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.QUANTITY: {"x-kubernetes-int-or-string": True},
    Kind.SCALAR: {"x-kubernetes-preserve-unknown-fields": True},
}


def walk(shape: Type, given: dict[str, Any], path: str) -> Iterator[tuple[str, Type, dict[str, Any]]]:
    """All parts of a shape, each with its part of the definition."""
    yield path, shape, given
    if isinstance(shape, ListOf):
        yield from walk(shape.item, given["items"], f"{path}[]")
    if isinstance(shape, MapOf):
        yield f"{path}{{}}", shape.value, given["additionalProperties"]
    if isinstance(shape, Struct):
        for name, one in shape.fields.items():
            yield from walk(one.type, given["properties"].get(name, {}), f"{path}.{name}")


PARTS = list(walk(model.SPEC, OBJECT["spec"], "spec"))
STRUCTS = [pytest.param(shape, given, id=path) for path, shape, given in PARTS if isinstance(shape, Struct)]


FIELDS: list[tuple[str, Field, dict[str, Any]]] = [
    (f"{path}.{name}", one, given["properties"].get(name, {}))
    for path, shape, given in PARTS
    if isinstance(shape, Struct)
    for name, one in shape.fields.items()
]


def messages(given: dict[str, Any]) -> str:
    rules = given.get("x-kubernetes-validations", [])
    return " ".join(" ".join(rule["message"].split()) for rule in rules) + str(given.get("pattern", ""))


def test_it_is_the_resource_that_kubernetes_had() -> None:
    assert CRD["metadata"]["name"] == "podpresets.settings.k8s.io"
    assert CRD["spec"]["group"] == "settings.k8s.io"
    assert CRD["spec"]["scope"] == "Namespaced"
    assert CRD["spec"]["names"]["kind"] == "PodPreset"
    assert CRD["spec"]["names"]["shortNames"] == ["pp"]
    assert VERSION["name"] == "v1alpha1"
    assert VERSION["subresources"] == {"status": {}}


def test_the_protected_group_is_approved_openly() -> None:
    assert CRD["metadata"]["annotations"] == {
        "api-approved.kubernetes.io": "unapproved, kept for compatibility with Kubernetes 1.19"
    }


@pytest.mark.parametrize(("shape", "given"), STRUCTS)
def test_objects_have_the_same_fields_and_no_others(shape: Struct, given: dict[str, Any]) -> None:
    assert given["type"] == "object"
    assert set(given["properties"]) == set(shape.fields)
    assert set(given.get("required", [])) == {name for name, one in shape.fields.items() if one.required}


@pytest.mark.parametrize(("one", "given"), [pytest.param(one, given, id=path) for path, one, given in FIELDS])
def test_fields_have_the_same_type_and_limits(one: Field, given: dict[str, Any]) -> None:
    if isinstance(one.type, Kind):
        assert given.items() >= TYPES[one.type].items()
    elif isinstance(one.type, ListOf):
        assert given["type"] == "array"
        assert given.get("x-kubernetes-list-map-keys") == ([one.type.unique] if one.type.unique else None)
        assert given.get("minItems") == (1 if one.required else None)
    assert tuple(given.get("enum", ())) == one.choices
    assert (given.get("minimum"), given.get("maximum")) == (one.within or (None, None))
    if one.required and one.type is Kind.TEXT:
        assert given["minLength"] == 1


@pytest.mark.parametrize(
    ("one", "given"), [pytest.param(one, given, id=path) for path, one, given in FIELDS if one.format]
)
def test_fields_have_the_same_format_and_say_so(one: Field, given: dict[str, Any]) -> None:
    assert one.format is not None
    rules = " ".join(rule["rule"] for rule in given.get("x-kubernetes-validations", []))
    assert one.format.message in messages(given)
    assert one.format.matches in rules + given.get("pattern", "")


def test_every_rule_between_fields_has_its_counterpart() -> None:
    without = {
        path
        for path, shape, given in PARTS
        if isinstance(shape, Struct) and shape.rules and not messages(given)
    }
    explained_elsewhere = {
        "spec.env[]",  # by anyOf: CEL does not see a value without a type
        "spec.volumes[].downwardAPI.items[].resourceFieldRef",  # too costly in lists within lists
        "spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef",
    }
    assert without == explained_elsewhere


def test_a_value_beside_a_source_is_refused_by_name() -> None:
    first, second = OBJECT["spec"]["properties"]["env"]["items"]["anyOf"]
    assert first["properties"]["valueFrom"]["required"] == ["(may not be specified when value is not empty)"]
    assert second == {"properties": {"value": {"enum": [""]}}}


def test_the_spec_cannot_be_changed() -> None:
    assert {"rule": "self == oldSelf", "message": IMMUTABLE} in OBJECT["spec"]["x-kubernetes-validations"]


IMMUTABLE = "is immutable: to change a PodPreset, delete it and create it again"


def test_no_field_of_an_older_schema_is_pruned_by_the_parser() -> None:
    entry = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}
    assert schema.prune(core_types.ENV_VAR, entry) == entry
