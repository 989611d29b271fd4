"""The verdict on a document is the same whichever library gives it.

Beside these, the fixture of ``tests/unit/conftest.py`` asks both about each document of each unit test.
"""

from typing import Any

import hypothesis
from hypothesis import strategies as st

from addon_operator.documents import json_schemas
from addon_operator.values.schema import schema_keywords
from tests.support import rows

_FORMATS = schema_keywords.FORMATS
_ITSELF = "#/$defs/a"


def prepared(schema: dict[str, Any]) -> json_schemas.Validator:
    return json_schemas.Validator(schema_keywords.prepare(schema), _FORMATS)


@rows.each(
    ("schema", "document", "at_once"),
    [
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer", "format": "int32"}, 2**31 - 1, True),
        ({"format": "ipv4"}, "10.0.0.1", True),
        ({"format": "regex"}, "(", True),
        ({"pattern": r"\pL"}, "ñ", True),
        ({"pattern": "(?i)^k$"}, "\u212a", True),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"nullable": True, "type": "string", "enum": ["a"]}, None, True),
        ({"uniqueItems": True}, [1, True, "1", [1], [True], {"a": 1}, {"a": True}], True),
        ({"x-anything": {"$ref": "nowhere"}, "properties": {"a": {"x-y": 1}}}, {"a": 1}, True),
        ({"additionalProperties": {"type": "integer"}}, {"a": 2**53}, True),
        ({"additionalProperties": {"type": "integer"}}, {"a": 2**53 + 1}, False),
        ({"maximum": 2**63, "minimum": -1e308}, 2**53, True),
        ({"patternProperties": {"^a": {"type": "string"}}}, {"a": "a"}, False),
        ({"maxLength": 1}, "\ud800", False),
        ({"definitions": {"a": {"anyOf": [{"$ref": "#/definitions/a"}, {}]}}}, 1, True),
    ],
    ids=str,
)
def test_one_library_gives_the_verdict_on_what_is_right_where_both_agree(
    schema: dict[str, Any], document: object, at_once: bool
) -> None:
    assert prepared(schema).surely_allows(document) is at_once
    assert list(prepared(schema).errors(document)) == []


@rows.each(
    ("schema", "document"),
    [
        ({"enum": [1]}, True),
        ({"uniqueItems": True}, [1, 1.0]),
        ({"uniqueItems": True}, [2**63, float(2**63)]),
        ({"enum": [float(2**63)]}, 2**63 + 2),
        ({"pattern": r"^\s$"}, "\x0b"),
        ({"pattern": r"\bñ"}, "ñ"),
        ({"multipleOf": 0.1}, 0.35),
        ({"format": "int64"}, 2**63),
        ({"format": "duration"}, "P1D"),
        ({"patternProperties": {r"^\s$": False}}, {" ": 1}),
    ],
    ids=str,
)
def test_jsonschema_explains_what_is_wrong(schema: dict[str, Any], document: object) -> None:
    validator = json_schemas.Validator(schema, _FORMATS)
    assert not validator.surely_allows(document)
    assert len(list(validator.errors(document))) == 1


@rows.each(
    "loop",
    [{"$ref": _ITSELF}, {"allOf": [{"$ref": _ITSELF}]}, {"anyOf": [{}, {"not": {"$ref": _ITSELF}}]}],
    ids=["$ref", "allOf", "not in anyOf"],
)
def test_a_definition_that_demands_itself_gives_no_quick_verdict(loop: dict[str, Any]) -> None:
    schema = {"$ref": _ITSELF, "$defs": {"a": loop}}
    assert not json_schemas.Validator(schema, _FORMATS).surely_allows({})


_NUMBERS = st.sampled_from(
    [0, 1, -0.0, 0.1, 0.3, 1.0, 2.5, 1e-300, 2**53, 2**53 + 1, 2**63, float(2**63), 1e308]
)
_TEXTS = st.sampled_from(["", "a", "ab", "ñ", "😀", "a\nb", "10.0.0.1", "1h", " ", "\u212a"])
_KEYS = st.sampled_from(["a", "b", "ñ"])
_SCALARS = st.none() | st.booleans() | _NUMBERS | _TEXTS
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_COUNTS = st.sampled_from([0, 1, 2])
_PATTERNS = st.sampled_from(["", "^a$", "^.$", r"\d", r"\s", r"(?i)^k$", r"\pL", r"\bñ"])
_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["string", "number", "integer", "boolean", "array", "object"]),
    "enum": st.lists(_DOCUMENTS, min_size=1, max_size=3),
    "format": st.sampled_from(["int32", "int64", "ipv4", "duration", "regex", "other"]),
    "multipleOf": st.sampled_from([0.1, 1, 3, 1e-8, 1e300]),
    "nullable": st.booleans(),
    "pattern": _PATTERNS,
    "required": st.lists(_KEYS, max_size=2, unique=True),
    "uniqueItems": st.booleans(),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), st.booleans()),
    **dict.fromkeys(("minimum", "maximum"), _NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "maxProperties"), _COUNTS),
    "$ref": st.just("#/definitions/a"),
}


def _nesting(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several, named = st.lists(inner, min_size=1, max_size=2), st.dictionaries(_KEYS, inner, max_size=2)
    nested = {**dict.fromkeys(("allOf", "anyOf", "oneOf"), several), **dict.fromkeys(("items", "not"), inner)}
    closed = {"additionalProperties": st.booleans() | inner, "properties": named}
    return st.fixed_dictionaries({}, optional={**_SIMPLE, **nested, **closed})


_SCHEMAS = st.recursive(st.fixed_dictionaries({}, optional=_SIMPLE), _nesting, max_leaves=4)


@hypothesis.given(_SCHEMAS, _SCHEMAS, st.lists(_DOCUMENTS, min_size=1, max_size=5))
def test_no_schema_is_known_for_which_the_verdicts_differ(
    schema: dict[str, Any], definition: dict[str, Any], documents: list[object]
) -> None:
    validator = prepared({**schema, "definitions": {"a": definition}})
    for document in filter(validator.surely_allows, documents):
        assert [error.message for error in validator.reasons(document)] == []
