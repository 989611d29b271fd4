"""Which fields of a CustomResourceDefinition the API knows."""

from typing import Any

from addon_operator.modules import crd_fields


def spec(schema: dict[str, Any], **more: object) -> dict[str, Any]:
    return {
        "group": "example.com",
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}, **more}],
    }


def known(given: dict[str, Any]) -> tuple[Any, list[str]]:
    found, dropped = crd_fields.known(given)
    return found, [".".join(map(str, path)) for path in dropped]


def test_unknown_extensions_of_schemas_are_left_out_and_properties_keep_their_names() -> None:
    schema = {
        "type": "object",
        "x-examples": [1],
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "x-forwarded": {"type": "string", "x-doc": "a", "default": {"x-y": 1}},
            "list": {"type": "array", "items": {"type": "object", "x-doc": 1}},
            "map": {"type": "object", "additionalProperties": {"x-doc": 1, "type": "string"}},
            "any": {"anyOf": [{"type": "string", "x-doc": 1}], "not": {"x-doc": 1}},
        },
    }
    found, dropped = known(spec(schema))
    assert found["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "x-forwarded": {"type": "string", "default": {"x-y": 1}},
            "list": {"type": "array", "items": {"type": "object"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"anyOf": [{"type": "string"}], "not": {}},
        },
    }
    assert dropped == []


def test_fields_that_the_api_does_not_know_are_left_out_and_named() -> None:
    schema = {"type": "object", "properties": {"deprecated": {"type": "string", "deprecated": True}}}
    given = spec(schema, subresources={"status": {"any": 1}, "download": {}}, priority=1)
    found, dropped = known({**given, "validation": {}})
    assert sorted(dropped) == [
        "spec.validation",
        "spec.versions.0.priority",
        "spec.versions.0.schema.openAPIV3Schema.properties.deprecated.deprecated",
        "spec.versions.0.subresources.download",
    ]
    version = found["versions"][0]
    assert version["subresources"] == {"status": {"any": 1}}
    assert version["schema"]["openAPIV3Schema"]["properties"] == {"deprecated": {"type": "string"}}
    assert set(found) == {"group", "versions"}


def test_what_has_another_shape_is_left_for_the_api_server_to_refuse() -> None:
    given = {"group": 5, "names": "x", "versions": [{"schema": [], "additionalPrinterColumns": {"a": 1}}, 7]}
    assert known(given) == (given, [])
