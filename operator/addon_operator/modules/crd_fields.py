"""The fields of a CustomResourceDefinition: what the API knows, and what it would drop or refuse.

Server-side apply refuses a definition with a field that the API does not know; create and update drop it
with a warning. Real modules have such fields, so they are left out here, and named.
Source: ``CustomResourceDefinitionSpec`` of ``apiextensions.k8s.io/v1`` in the API reference of Kubernetes.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from addon_operator.documents import json_pointers
from addon_operator.kernel.json_types import JsonObject, JsonValue

_Tell: TypeAlias = Callable[[json_pointers.Path], None]
_Prune: TypeAlias = Callable[[JsonValue, json_pointers.Path, _Tell], JsonValue]

_EXTENSION: Final = "x-"


def known(spec: JsonObject) -> tuple[JsonObject, list[json_pointers.Path]]:
    """Return a definition's ``spec`` with the fields that the API knows, and the paths of the others.

    Extensions of schemas (``x-…``) that the API does not know are left out without a word: they are notes.
    """
    dropped: list[json_pointers.Path] = []
    found = _SPEC(spec, ("spec",), dropped.append)
    return (found if isinstance(found, dict) else spec), dropped


def _as_it_is(value: JsonValue, _path: json_pointers.Path, _tell: _Tell) -> JsonValue:
    return value


def _fields(**named: _Prune) -> _Prune:
    """Return what leaves these fields of a mapping; what is not a mapping is for the API server to judge."""

    def prune(value: JsonValue, path: json_pointers.Path, tell: _Tell) -> JsonValue:
        if not isinstance(value, dict):
            return value
        for key in value.keys() - named.keys():
            if not key.startswith(_EXTENSION):
                tell((*path, key))
        return {key: named[key](inner, (*path, key), tell) for key, inner in value.items() if key in named}

    return prune


def _plain(*names: str) -> Mapping[str, _Prune]:
    return dict.fromkeys(names, _as_it_is)


def _each_item(prune_item: _Prune) -> _Prune:
    def prune(value: JsonValue, path: json_pointers.Path, tell: _Tell) -> JsonValue:
        if not isinstance(value, list):
            return value
        return [prune_item(item, (*path, index), tell) for index, item in enumerate(value)]

    return prune


def _each_value(prune_value: _Prune) -> _Prune:
    def prune(value: JsonValue, path: json_pointers.Path, tell: _Tell) -> JsonValue:
        if not isinstance(value, dict):
            return value
        return {key: prune_value(inner, (*path, key), tell) for key, inner in value.items()}

    return prune


def _schema(value: JsonValue, path: json_pointers.Path, tell: _Tell) -> JsonValue:
    """Prune a schema, a list of schemas, or leave a boolean or a list of names in the place of one."""
    if isinstance(value, list):
        return _each_item(_schema)(value, path, tell)
    return _SCHEMA(value, path, tell)


_SCHEMA: Final = _fields(
    **_plain(
        *("id", "$schema", "$ref", "description", "type", "format", "title", "default", "example", "enum"),
        *(
            "maximum",
            "exclusiveMaximum",
            "minimum",
            "exclusiveMinimum",
            "multipleOf",
            "maxLength",
            "minLength",
        ),
        *("pattern", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "required"),
        *("nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
        *("x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type"),
        "x-kubernetes-map-type",
    ),
    **dict.fromkeys(("properties", "patternProperties", "definitions", "dependencies"), _each_value(_schema)),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _each_item(_schema)),
    **dict.fromkeys(("items", "additionalItems", "additionalProperties", "not"), _schema),
    **{
        "externalDocs": _fields(**_plain("description", "url")),
        "x-kubernetes-validations": _each_item(
            _fields(
                **_plain("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
            )
        ),
    },
)
_VERSION: Final = _fields(
    **_plain("name", "served", "storage", "deprecated", "deprecationWarning"),
    schema=_fields(openAPIV3Schema=_schema),
    subresources=_fields(
        status=_as_it_is,
        scale=_fields(**_plain("specReplicasPath", "statusReplicasPath", "labelSelectorPath")),
    ),
    additionalPrinterColumns=_each_item(
        _fields(**_plain("name", "type", "format", "description", "priority", "jsonPath"))
    ),
    selectableFields=_each_item(_fields(**_plain("jsonPath"))),
)
_CLIENT: Final = _fields(
    **_plain("url", "caBundle"), service=_fields(**_plain("namespace", "name", "path", "port"))
)
_SPEC: Final = _fields(
    **_plain("group", "scope", "preserveUnknownFields"),
    names=_fields(**_plain("plural", "singular", "shortNames", "kind", "listKind", "categories")),
    versions=_each_item(_VERSION),
    conversion=_fields(
        strategy=_as_it_is,
        webhook=_fields(clientConfig=_CLIENT, conversionReviewVersions=_as_it_is),
    ),
)
