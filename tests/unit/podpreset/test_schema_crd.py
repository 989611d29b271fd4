"""The CustomResourceDefinition and the parser know the same fields and rules."""

import pathlib
from collections.abc import Iterator
from typing import Any

import yaml

from addon_operator.podpreset import core_types, model, schema
from addon_operator.podpreset.schema import Field, Kind, ListOf, MapOf, Struct, Type

CRD = yaml.load(
    (pathlib.Path(__file__).parents[3] / "crds" / "podpresets.yaml").read_text(), Loader=yaml.CSafeLoader
)
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
STRUCTS = [(path, shape, given) for path, shape, given in PARTS if isinstance(shape, Struct)]
FIELDS: list[tuple[str, Field, dict[str, Any]]] = [
    (f"{path}.{name}", one, given["properties"].get(name, {}))
    for path, shape, given in STRUCTS
    for name, one in shape.fields.items()
]


def messages(given: dict[str, Any]) -> str:
    rules = given.get("x-kubernetes-validations", [])
    return " ".join(" ".join(rule["message"].split()) for rule in rules) + str(given.get("pattern", ""))


def patterns(given: dict[str, Any]) -> str:
    rules = " ".join(rule["rule"] for rule in given.get("x-kubernetes-validations", []))
    return rules + str(given.get("pattern", ""))


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


def test_objects_have_the_same_fields_and_no_others() -> None:
    assert {path: (given["type"], set(given["properties"])) for path, _, given in STRUCTS} == {
        path: ("object", set(shape.fields)) for path, shape, _ in STRUCTS
    }
    assert {path: set(given.get("required", [])) for path, _, given in STRUCTS} == {
        path: {name for name, one in shape.fields.items() if one.required} for path, shape, _ in STRUCTS
    }


def test_fields_have_the_same_type() -> None:
    simple = [(path, one.type, given) for path, one, given in FIELDS if isinstance(one.type, Kind)]
    assert [path for path, kind, given in simple if not given.items() >= TYPES[kind].items()] == []


def test_lists_have_the_same_keys_and_are_not_empty_where_they_are_needed() -> None:
    lists = [(path, one, one.type, given) for path, one, given in FIELDS if isinstance(one.type, ListOf)]
    assert {
        path: (given["type"], given.get("x-kubernetes-list-map-keys"), given.get("minItems"))
        for path, _, _, given in lists
    } == {
        path: ("array", [kind.unique] if kind.unique else None, 1 if one.required else None)
        for path, one, kind, _ in lists
    }


def test_fields_have_the_same_choices_and_limits() -> None:
    assert {
        path: (tuple(given.get("enum", ())), (given.get("minimum"), given.get("maximum")))
        for path, _, given in FIELDS
    } == {path: (one.choices, one.within or (None, None)) for path, one, _ in FIELDS}


def test_texts_that_are_needed_are_not_empty() -> None:
    needed = {path: given for path, one, given in FIELDS if one.required and one.type is Kind.TEXT}
    assert needed
    assert [path for path, given in needed.items() if given.get("minLength") != 1] == []


def test_fields_have_the_same_format_and_say_so() -> None:
    formats = [(path, one.format, given) for path, one, given in FIELDS if one.format is not None]
    assert formats
    assert [
        path
        for path, wanted, given in formats
        if wanted.message not in messages(given) or wanted.matches not in patterns(given)
    ] == []


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


def test_no_rule_goes_through_one_list_for_each_item_of_another() -> None:
    rules = {rule["rule"]: rule for rule in OBJECT["spec"]["x-kubernetes-validations"]}
    assert [rule for rule in rules if ".all(" in rule] == []
    # A message does so, as it names what is wrong, but only of few.
    slow = [
        one["messageExpression"] for one in rules.values() if ".exists(" in one.get("messageExpression", "")
    ]
    assert len(slow) == 2
    assert all(text.startswith("size(self.volumes) * size(self.volumeMounts) > 1000 ? ") for text in slow)
