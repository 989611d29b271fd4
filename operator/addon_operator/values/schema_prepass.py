"""From OpenAPI 3.0, as Kubernetes uses it, to the JSON Schema (2020-12) that a library checks."""

from collections.abc import Mapping
from typing import Any, Final

from addon_operator.values import schema_loading, schema_walk

_DROPPED: Final = frozenset(
    {"nullable", "default", "example", "examples", "externalDocs", "title", "description"}
)
_EXCLUSIVE: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


def prepare(schema: Mapping[str, Any], *, for_helm: bool = False) -> dict[str, Any]:
    """The JSON Schema of an OpenAPI schema.

    Where an object schema with ``properties`` leaves ``additionalProperties`` unset, it becomes ``false``;
    ``for_helm`` adds ``x-required-for-helm`` to ``required`` at every depth.
    """
    return _Prepass(for_helm=for_helm).prepare(schema, closed=True)


class _Prepass:
    def __init__(self, *, for_helm: bool) -> None:
        self._for_helm = for_helm

    def prepare(self, schema: Mapping[str, Any], *, closed: bool) -> dict[str, Any]:
        result = {
            key: value for key, value in schema.items() if key not in _DROPPED and not key.startswith("x-")
        }
        self._prepare_inner(schema, result, closed=closed)
        _prepare_bounds(result)
        _prepare_type(schema, result)
        if closed and "properties" in result and not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
        if self._for_helm and schema_loading.REQUIRED_FOR_HELM in schema:
            required = [*schema.get("required", ()), *schema[schema_loading.REQUIRED_FOR_HELM]]
            result["required"] = list(dict.fromkeys(required))
        return _with_null(result) if schema.get("nullable") else result

    def _prepare_inner(self, schema: Mapping[str, Any], result: dict[str, Any], *, closed: bool) -> None:
        for keyword in schema_walk.MAPS_OF_SCHEMAS:
            if keyword in schema:
                result[keyword] = {
                    name: self.prepare(inner, closed=True) for name, inner in schema[keyword].items()
                }
        for keyword in ("items", "additionalProperties"):
            if isinstance(schema.get(keyword), Mapping):
                result[keyword] = self.prepare(schema[keyword], closed=True)
        if "not" in schema:
            result["not"] = self.prepare(schema["not"], closed=False)
        for keyword in schema_walk.LISTS_OF_SCHEMAS:
            if keyword in schema:
                result[keyword] = [
                    self.prepare(inner, closed=closed and _is_whole(keyword, schema, inner))
                    for inner in schema[keyword]
                ]


def _is_whole(keyword: str, schema: Mapping[str, Any], branch: Mapping[str, Any]) -> bool:
    """Whether a branch describes a mapping on its own; one that only adds to others must stay open."""
    return keyword != "allOf" and branch.get("type") == "object" and "properties" not in schema


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
