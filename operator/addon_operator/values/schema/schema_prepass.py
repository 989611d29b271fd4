"""From OpenAPI 3.0, as Kubernetes uses it, to the JSON Schema (2020-12) that a library checks."""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.values.schema import schema_keywords, schema_walk

_DROPPED: Final = frozenset(
    {
        *("nullable", "default", "definitions", "example", "examples", "externalDocs"),
        *("title", "description", "discriminator", "xml", "$schema"),
    }
)
_EXCLUSIVE: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


def prepare(schema: Mapping[str, Any], *, for_helm: bool = False) -> dict[str, Any]:
    """The JSON Schema of an OpenAPI schema.

    Where an object schema with ``properties`` leaves ``additionalProperties`` unset, it becomes ``false``,
    but not inside the branches of ``oneOf``, ``anyOf``, ``allOf`` and ``not``, which only add to others, nor
    below an object that sets it. ``for_helm`` adds ``x-required-for-helm`` to ``required`` at every depth.
    """
    return _Prepass(schema.get("definitions", {}), for_helm=for_helm).whole(schema)


class _Prepass:
    """Where a definition is referred to decides whether it is closed, so that there are two forms of it."""

    def __init__(self, definitions: Mapping[str, Any], *, for_helm: bool) -> None:
        self._definitions = definitions
        self._numbers = {name: number for number, name in enumerate(definitions)}
        self._for_helm = for_helm
        self._wanted: dict[str, tuple[str, bool]] = {}

    def whole(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        result = self._prepare(schema, closed=True)
        made: dict[str, Any] = {}
        while missing := self._wanted.keys() - made.keys():
            for key in missing:
                name, closed = self._wanted[key]
                made[key] = self._prepare(self._definitions[name], closed=closed)
        return {**result, "$defs": made} if made else result

    def _prepare(self, schema: Mapping[str, Any], *, closed: bool) -> dict[str, Any]:
        result = {
            key: value
            for key, value in schema.items()
            if key in schema_keywords.KEYWORDS and key not in _DROPPED and not key.startswith("x-")
        }
        stays_closed = closed and "additionalProperties" not in schema
        self._prepare_inner(schema, result, closed=stays_closed)
        _prepare_bounds(result)
        _prepare_type(schema, result)
        if stays_closed and "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
        if self._for_helm and schema_keywords.REQUIRED_FOR_HELM in schema:
            required = [*schema.get("required", ()), *schema[schema_keywords.REQUIRED_FOR_HELM]]
            result["required"] = list(dict.fromkeys(required))
        return _with_null(result) if schema.get("nullable") else result

    def _prepare_inner(self, schema: Mapping[str, Any], result: dict[str, Any], *, closed: bool) -> None:
        for keyword in ("properties", "patternProperties"):
            if keyword in schema:
                result[keyword] = {
                    name: self._prepare(inner, closed=closed) for name, inner in schema[keyword].items()
                }
        for keyword in ("items", "additionalProperties"):
            if isinstance(schema.get(keyword), Mapping):
                result[keyword] = self._prepare(schema[keyword], closed=closed)
        if isinstance(schema.get("items"), list):
            result["prefixItems"] = [self._prepare(inner, closed=closed) for inner in result.pop("items")]
        if "not" in schema:
            result["not"] = self._prepare(schema["not"], closed=False)
        for keyword in schema_walk.LISTS_OF_SCHEMAS:
            if keyword in schema:
                result[keyword] = [self._prepare(inner, closed=False) for inner in schema[keyword]]
        if "$ref" in schema:
            result["$ref"] = self._reference(schema["$ref"], closed=closed)

    def _reference(self, reference: str, *, closed: bool) -> str:
        name = reference.removeprefix(schema_walk.REFERENCE_PREFIX)
        # Names may hold what a reference would have to escape.
        key = f"{self._numbers[name]}{'' if closed else '-open'}"
        self._wanted[key] = name, closed
        return f"#/$defs/{key}"


def _prepare_bounds(result: dict[str, Any]) -> None:
    for bound, exclusive in _EXCLUSIVE:
        if result.pop(exclusive, False) and bound in result:
            result[exclusive] = result.pop(bound)


def _prepare_type(schema: Mapping[str, Any], result: dict[str, Any]) -> None:
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]


def _with_null(result: dict[str, Any]) -> dict[str, Any]:
    if "type" in result:
        types = [result["type"]] if isinstance(result["type"], str) else result["type"]
        result["type"] = [*types, "null"]
        if "enum" in result and None not in result["enum"]:
            result["enum"] = [*result["enum"], None]
    elif "$ref" in result:
        return {"anyOf": [{"type": "null"}, result]}
    return result
