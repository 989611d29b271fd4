"""Reading schema files: a wrong one is an error here, with its position, not a surprise later."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema

from addon_operator.kernel import errors, patterns
from addon_operator.values import (
    schema_defaults,
    schema_messages,
    schema_rules,
    schema_walk,
    yaml_reading,
)

CONFIG_SCHEMA_FILE: Final = "config-values.yaml"
EXTEND: Final = "x-extend"
REQUIRED_FOR_HELM: Final = "x-required-for-helm"
SENSITIVE: Final = "x-sensitive"

_INHERITED_MAPS: Final = ("definitions", "properties", "patternProperties")
_INHERITED_TEXTS: Final = ("title", "description")
_TYPES: Final = ["string", "number", "integer", "boolean", "array", "object"]

_SCHEMA: Final = {"$ref": "#/definitions/schema"}
_NAMES: Final = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
_COUNT: Final = {"type": "integer", "minimum": 0}
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

KEYWORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "type": {"enum": _TYPES},
    "properties": _SCHEMAS_BY_NAME,
    "patternProperties": _SCHEMAS_BY_NAME,
    "definitions": _SCHEMAS_BY_NAME,
    "additionalProperties": {"type": ["boolean", "object"], "if": {"type": "object"}, "then": _SCHEMA},
    "required": _NAMES,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "items": _SCHEMA,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": _SWITCH,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _SWITCH,
    "exclusiveMaximum": _SWITCH,
    "multipleOf": {"type": "number", "exclusiveMinimum": 0},
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "enum": {"type": "array", "minItems": 1},
    "allOf": _SCHEMA_LIST,
    "anyOf": _SCHEMA_LIST,
    "oneOf": _SCHEMA_LIST,
    "not": _SCHEMA,
    "nullable": _SWITCH,
    "$ref": _TEXT,
    "title": _TEXT,
    "description": _TEXT,
    "default": {},
    "example": {},
    "examples": {},
    "externalDocs": {},
    "readOnly": _SWITCH,
    "writeOnly": _SWITCH,
    "deprecated": _SWITCH,
    EXTEND: {
        "type": "object",
        "properties": {"schema": {"enum": [CONFIG_SCHEMA_FILE]}},
        "required": ["schema"],
        "additionalProperties": False,
    },
    REQUIRED_FOR_HELM: _NAMES,
    SENSITIVE: _SWITCH,
    "x-kubernetes-int-or-string": _SWITCH,
    "x-kubernetes-preserve-unknown-fields": _SWITCH,
    **dict.fromkeys(schema_rules.RULE_KEYWORDS, _RULES),
}
"""What a schema may say, and the schema of each keyword."""
_META: Final = {
    "definitions": {"schema": {"type": "object", "properties": KEYWORDS}},
    **_SCHEMA,
}


class SchemaError(errors.ConfigurationError):
    """A schema file is wrong; each of the ``problems`` names file, position and keyword."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        """One sentence each."""


def load(
    text: str,
    source: str,
    parent: Mapping[str, Any] | None = None,
    evaluator: schema_rules.RuleEvaluator | None = None,
) -> dict[str, Any]:
    """The schema of a file, joined with ``parent`` if it says ``x-extend``; an empty file allows everything.

    Raises :class:`SchemaError` or :class:`~addon_operator.values.yaml_reading.YamlError`.
    """
    document = yaml_reading.load_document(text, source)
    schema: Any = {} if document.value is None else document.value
    _raise_all(document, _meta_problems(schema))
    if EXTEND in schema and parent is None:
        _raise_all(document, [((EXTEND,), f"there is no {CONFIG_SCHEMA_FILE} to extend")])
    extended = _extended(schema, parent) if EXTEND in schema and parent is not None else schema
    _raise_all(document, _detail_problems(schema, extended.get("definitions", {}), evaluator))
    _raise_all(document, _recursion_problems(extended))
    return dict(extended)


_Problem = tuple[tuple[str | int, ...], str]


def _raise_all(document: yaml_reading.Document, problems: Iterator[_Problem] | list[_Problem]) -> None:
    found = tuple(f"{document.where(path)}{_key(path)}: {problem}" for path, problem in problems)
    if found:
        raise SchemaError(found)


def _key(path: tuple[str | int, ...]) -> str:
    return f", {yaml_reading.format_path(path)}" if path else ""


def _meta_problems(schema: object) -> Iterator[_Problem]:
    for error in jsonschema.Draft202012Validator(_META).iter_errors(schema):
        yield from schema_messages.explain(error)


def _detail_problems(
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any],
    evaluator: schema_rules.RuleEvaluator | None,
) -> Iterator[_Problem]:
    for path, inner in schema_walk.subschemas(schema):
        yield from _keyword_problems(path, inner)
        yield from _pattern_problems(path, inner)
        yield from _reference_problems(path, inner, definitions)
        yield from _rule_problems(path, inner, evaluator)


def _keyword_problems(path: tuple[str | int, ...], schema: Mapping[str, Any]) -> Iterator[_Problem]:
    """A misspelt keyword would silently check nothing."""
    for keyword in [keyword for keyword in schema if keyword not in KEYWORDS]:
        near = difflib.get_close_matches(keyword, KEYWORDS, n=1, cutoff=0.85)
        if near and keyword.startswith("x-") is near[0].startswith("x-"):
            yield (*path, keyword), f"this is no keyword of a schema; did you mean {near[0]!r}?"


def _pattern_problems(path: tuple[str | int, ...], schema: Mapping[str, Any]) -> Iterator[_Problem]:
    keys = [(("patternProperties", pattern), pattern) for pattern in schema.get("patternProperties", {})]
    own = [(("pattern",), schema["pattern"])] if "pattern" in schema else []
    for place, pattern in (*own, *keys):
        try:
            patterns.check(pattern)
        except patterns.PatternError as error:
            yield (*path, *place), str(error)


def _reference_problems(
    path: tuple[str | int, ...], schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[_Problem]:
    reference = schema.get("$ref")
    prefix = schema_walk.REFERENCE_PREFIX
    if reference is None:
        return
    if not reference.startswith(prefix) or "/" in reference.removeprefix(prefix):
        yield (*path, "$ref"), f"{reference!r} does not have the form {prefix}NAME"
    elif reference.removeprefix(prefix) not in definitions:
        yield (*path, "$ref"), f"there is no definition {reference.removeprefix(prefix)!r}"


def _rule_problems(
    path: tuple[str | int, ...],
    schema: Mapping[str, Any],
    evaluator: schema_rules.RuleEvaluator | None,
) -> Iterator[_Problem]:
    for keyword in schema_rules.RULE_KEYWORDS if evaluator is not None else ():
        for index, rule in enumerate(schema_rules.rules_of({keyword: schema.get(keyword, ())})):
            try:
                evaluator.check(rule.expression)  # type: ignore[union-attr]  # the loop is empty without one
            except schema_rules.RuleError as error:
                yield (*path, keyword, index), f"the rule cannot be read: {error}"


def _recursion_problems(schema: Mapping[str, Any]) -> Iterator[_Problem]:
    try:
        schema_defaults.fill([schema], {}, schema.get("definitions", {}))
    except RecursionError:
        yield (), "a definition holds itself without end, in allOf or through its default"


def _extended(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """What the child says over what comes along from the parent ("Extending" in the documentation)."""
    inherited = {
        key: value
        for key, value in parent.items()
        if key in _INHERITED_TEXTS or (key.startswith("x-") and key != EXTEND)
    }
    result = {**inherited, **{key: value for key, value in child.items() if key != EXTEND}}
    for keyword in _INHERITED_MAPS:
        if keyword in parent or keyword in child:
            result[keyword] = {**parent.get(keyword, {}), **child.get(keyword, {})}
    required = [*parent.get("required", ()), *child.get("required", ())]
    if required:
        result["required"] = list(dict.fromkeys(required))
    return result
