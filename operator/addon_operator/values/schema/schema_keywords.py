"""The keywords of schemas: what each may say, how formats are checked, and what JSON Schema makes of them.

Formats are checked as the Kubernetes API server checks them; unknown ones are ignored. The dialect is OpenAPI
3.0 as Kubernetes uses it; :func:`.prepare` makes the JSON Schema (2020-12) of it that a library checks.
"""

import base64
import datetime as dt
import functools
import ipaddress
import re
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from addon_operator.documents import json_schemas
from addon_operator.kernel import names
from addon_operator.values.schema import schema_rules, schema_walk

CONFIG_SCHEMA_FILE: Final = "config-values.yaml"
EXTEND: Final = "x-extend"
REQUIRED_FOR_HELM: Final = "x-required-for-helm"
SENSITIVE: Final = "x-sensitive"
KUBERNETES_SWITCHES: Final = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
_EXTENSION: Final = "x-"
_ALIKE: Final = 0.8
_MUCH_ALIKE: Final = 0.85

TYPES: Final = ["string", "number", "integer", "boolean", "array", "object"]

_SCHEMA: Final = {"$ref": "#/definitions/schema"}
_NAMES: Final = {"type": "array", "items": {"type": "string"}}
_COUNT: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_SWITCH: Final = {"type": "boolean"}
_TEXT: Final = {"type": "string"}
_SCHEMAS_BY_NAME: Final = {"type": "object", "additionalProperties": _SCHEMA}
_SCHEMA_LIST: Final = {"type": "array", "minItems": 1, "items": _SCHEMA}
_RULES: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"rule": _TEXT, "expression": _TEXT, "message": _TEXT},
        "anyOf": [{"required": ["rule"]}, {"required": ["expression"]}],
    },
}

_UNCHECKED: Final = (
    *("default", "example", "examples", "externalDocs", "discriminator", "xml", "$schema"),
    *("writeOnly", "deprecated"),
)
KEYWORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "type": {
        "if": {"type": "array"},
        "then": {"items": {"enum": TYPES}},
        "else": {"enum": TYPES},
    },
    **dict.fromkeys(schema_walk.MAPS_OF_SCHEMAS, _SCHEMAS_BY_NAME),
    "additionalProperties": {"type": ["boolean", "object"], "if": {"type": "object"}, "then": _SCHEMA},
    "required": _NAMES,
    "items": {"if": {"type": "array"}, "then": {"items": _SCHEMA}, "else": _SCHEMA},
    **{f"{bound}{what}": _COUNT for bound in ("min", "max") for what in ("Properties", "Items", "Length")},
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "nullable", "readOnly"), _SWITCH),
    **dict.fromkeys(("pattern", "format", "$ref", "title", "description"), _TEXT),
    "enum": {"type": "array", "minItems": 1},
    **dict.fromkeys(schema_walk.LISTS_OF_SCHEMAS, _SCHEMA_LIST),
    "not": _SCHEMA,
    **{keyword: {} for keyword in _UNCHECKED},
    EXTEND: {
        "type": "object",
        "properties": {"schema": {"enum": [CONFIG_SCHEMA_FILE]}},
        "required": ["schema"],
        "additionalProperties": False,
    },
    REQUIRED_FOR_HELM: _NAMES,
    **dict.fromkeys((SENSITIVE, *KUBERNETES_SWITCHES), _SWITCH),
    **dict.fromkeys(schema_rules.RULE_KEYWORDS, _RULES),
}
"""What a schema may say, and the schema of each keyword."""
META: Final = {
    "definitions": {"schema": {"type": "object", "properties": KEYWORDS}},
    **_SCHEMA,
}
"""What a schema has to be, as a JSON Schema."""


def unknown(keyword: str, value: object = None) -> str | None:
    """Return what to say of an unknown keyword, ``None`` if there is nothing wrong with it.

    Extensions are free; one that is nearly ours is most likely misspelt. One whose ``value`` is a schema is
    most likely a property.
    """
    if keyword in KEYWORDS:
        return None
    extends = keyword.startswith(_EXTENSION)
    known = [name for name in KEYWORDS if name.startswith(_EXTENSION) is extends]
    near = names.nearest(keyword, known, _MUCH_ALIKE if extends else _ALIKE)
    if not extends and _is_schema(value) and near not in _HOLDING_SCHEMAS:
        return "this is not a keyword of schemas and checks nothing; put it under properties"
    if near:
        return f"this is not a keyword of schemas and checks nothing; did you mean {near!r}?"
    return None if extends else "this is not a keyword of schemas and checks nothing; remove it"


_HOLDING_SCHEMAS: Final = frozenset({*schema_walk.MAPS_OF_SCHEMAS, *schema_walk.SINGLE_SCHEMAS})


def _is_schema(value: object) -> bool:
    return isinstance(value, Mapping) and any(keyword in KEYWORDS for keyword in value)


_HOSTNAME: Final = re.compile(
    r"(?=.{1,253}\Z)[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*\.?"
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_MAC: Final = re.compile(
    r"[0-9a-fA-F]{2}(([:-])[0-9a-fA-F]{2})(\2[0-9a-fA-F]{2}){4}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}"
)
_DURATION: Final = re.compile(
    r"[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w))*)"
)
_DATE_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2})"
)


def parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    """Say whether a text is one that ``parse`` takes, which raises :class:`ValueError` for others."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _date(text: str) -> None:
    dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC)


def _date_time(text: str) -> None:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    _date(text[:10])


def _uri(text: str) -> None:
    if not urllib.parse.urlsplit(text).scheme or " " in text:
        raise ValueError(text)


def _cidr(text: str) -> None:
    if "/" not in text:
        raise ValueError(text)
    ipaddress.ip_interface(text)


_TEXT_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "byte": parses(functools.partial(base64.b64decode, validate=True)),
    "cidr": parses(_cidr),
    "date": parses(_date),
    "date-time": parses(_date_time),
    "datetime": parses(_date_time),
    "duration": _DURATION.fullmatch,
    "email": _EMAIL.fullmatch,
    "hostname": _HOSTNAME.fullmatch,
    "ip": parses(ipaddress.ip_address),
    "ipv4": parses(ipaddress.IPv4Address),
    "ipv6": parses(ipaddress.IPv6Address),
    "mac": _MAC.fullmatch,
    "uri": parses(_uri),
    "uuid": parses(uuid.UUID),
}
_INTEGER_FORMATS: Final[Mapping[str, Callable[[int], bool]]] = {
    "int32": range(-(2**31), 2**31).__contains__,
    "int64": range(-(2**63), 2**63).__contains__,
}


def _only(kind: type, check: Callable[[Any], object]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, kind) or bool(check(value))


FORMATS: Final[json_schemas.Formats] = {
    **{name: _only(str, check) for name, check in _TEXT_FORMATS.items()},
    **{name: _only(int, check) for name, check in _INTEGER_FORMATS.items()},
}
"""All known formats; each is only for values of its type."""


_DROPPED: Final = frozenset({"nullable", "definitions", "title", "description", *_UNCHECKED})
_EXCLUSIVE: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


def prepare(schema: Mapping[str, Any], *, for_helm: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of an OpenAPI schema.

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
        checked: dict[str, Any] = {}
        while missing := self._wanted.keys() - checked.keys():
            for key in missing:
                name, closed = self._wanted[key]
                checked[key] = self._prepare(self._definitions[name], closed=closed)
        return {**result, "$defs": checked} if checked else result

    def _prepare(self, schema: Mapping[str, Any], *, closed: bool) -> dict[str, Any]:
        result = {
            key: value
            for key, value in schema.items()
            if key in KEYWORDS and key not in _DROPPED and not key.startswith("x-")
        }
        stays_closed = closed and "additionalProperties" not in schema
        self._prepare_inner(schema, result, closed=stays_closed)
        for bound, exclusive in _EXCLUSIVE:
            if result.pop(exclusive, False) and bound in result:
                result[exclusive] = result.pop(bound)
        if schema.get("x-kubernetes-int-or-string"):
            result["type"] = ["integer", "string"]
        if stays_closed and "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
        if self._for_helm and REQUIRED_FOR_HELM in schema:
            required = [*schema.get("required", ()), *schema[REQUIRED_FOR_HELM]]
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


def _with_null(result: dict[str, Any]) -> dict[str, Any]:
    if "type" in result:
        types = [result["type"]] if isinstance(result["type"], str) else result["type"]
        result["type"] = [*types, "null"]
        if "enum" in result and None not in result["enum"]:
            result["enum"] = [*result["enum"], None]
    elif "$ref" in result:
        return {"anyOf": [{"type": "null"}, result]}
    return result
