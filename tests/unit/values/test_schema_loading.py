"""Schema files: what is wrong with one is told when it is loaded, with its position."""
# ruff: noqa: E501 - rows of tables

import pytest

from addon_operator.kernel import errors
from addon_operator.values import schema_loading, schema_rules, schemas, yaml_reading


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(schema_loading.SchemaError) as caught:
        schema_loading.load(text, "openapi/values.yaml", evaluator=NoBrackets())
    return caught.value.problems


class NoBrackets:
    """A language in which brackets are the only mistake."""

    def check(self, expression: str) -> None:
        if "(" in expression:
            raise schema_rules.RuleError("a bracket")

    def evaluate(self, expression: str, variables: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "openapi/values.yaml: must be a mapping"),
        ("type: objekt", 'openapi/values.yaml, line 1, column 1, type: must be one of "string"'),
        ("type: [string, objekt]", "type[1]: must be one of"),
        ("type: ['null']", "type: must have at least 1 items"),
        (
            "type: object\nproperties:\n  a:\n    type: text\n",
            "line 4, column 5, properties.a.type: must be one of",
        ),
        ("properties: [a]", "properties: must be a mapping"),
        ("properties: {a: text}", "properties.a: must be a mapping"),
        ("required: name", "required: must be a list"),
        ("required: [a, a]", "required: must not have an item twice"),
        ("items: [{type: string}]", "items: must be a mapping"),
        ("items: {properties: {a: {minimum: x}}}", "items.properties.a.minimum: must be a number"),
        ("additionalProperties: {type: x}", "additionalProperties.type: must be one of"),
        ("additionalProperties: text", "additionalProperties: must be a boolean or a mapping"),
        ("minLength: -1", "minLength: must be at least 0"),
        ("exclusiveMinimum: 3", "exclusiveMinimum: must be a boolean"),
        ("multipleOf: 0", "multipleOf: must be greater than 0"),
        ("enum: []", "enum: must have at least 1 items"),
        ("allOf: []", "allOf: must have at least 1 items"),
        ("oneOf: [{not: {type: x}}]", "oneOf[0].not.type: must be one of"),
        ("pattern: '('", "line 1, column 1, pattern: '(' is no regular expression"),
        ("patternProperties: {'[': {}}", "is no regular expression"),
        ("$ref: '#/definitions/a'", "$ref: there is no definition 'a'"),
        ("$ref: other.yaml", "$ref: 'other.yaml' is another file, and there is none here"),
        ("$ref: '#definitions/a'", "'#definitions/a' does not have the form #/definitions/NAME or FILE#"),
        ("$ref: '#/definitions/a/b'", "there is nothing at '#/definitions/a/b'"),
        ("x-extend: {schema: other.yaml}", 'x-extend.schema: must be one of "config-values.yaml"'),
        ("x-required-for-helm: true", "x-required-for-helm: must be a list"),
        (
            "x-kubernetes-validations: [{message: m}]",
            "x-kubernetes-validations[0]: must be of one of 2 forms",
        ),
        (
            "x-deckhouse-validations: [{expression: '('}]",
            "x-deckhouse-validations[0]: the rule cannot be read: a bracket",
        ),
        (
            "definitions: {a: {allOf: [{$ref: '#/definitions/a'}]}}\n$ref: '#/definitions/a'",
            "a definition holds itself without end",
        ),
        (
            (
                "$ref: '#/definitions/a'\n"
                "definitions: {a: {properties: {b: {default: {}, $ref: '#/definitions/a'}}}}"
            ),
            "a definition holds itself without end",
        ),
    ],
    ids=lambda text: text[:50],
)
def test_a_wrong_schema_is_told_with_file_position_and_keyword(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(text)), problems(text)
    assert all(found.startswith("openapi/values.yaml") for found in problems(text))


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(problems("properties: {a: {type: x}, b: {minimum: y}}\nrequired: 7")) == 3


def test_broken_yaml_is_told_as_such() -> None:
    with pytest.raises(yaml_reading.YamlError, match="line 2"):
        schema_loading.load("a: [", "openapi/values.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "type: object",
        "x-examples: [{a: 1}]\nx-doc-default: 5",
        "example: 1\nexternalDocs: {url: x}",
        "$schema: x",
        "definitions: {node: {type: object, properties: {next: {$ref: '#/definitions/node'}}}}",
        "properties: {a: &x {type: string}, b: {<<: *x, minLength: 1}}",
    ],
)
def test_schemas_in_use_are_accepted(text: str) -> None:
    schema_loading.load(text, "openapi/values.yaml")


def test_x_extend_brings_along_what_is_documented_and_the_child_wins() -> None:
    parent = schema_loading.load(
        "type: object\ntitle: parent\ndescription: parent\nrequired: [a, b]\nminProperties: 2\n"
        "definitions: {d: {type: string}, e: {type: string}}\n"
        "properties: {a: {type: string}, b: {type: string}}\n"
        "patternProperties: {'^p': {}}\nx-one: 1\nx-two: 1\n",
        "config-values.yaml",
    ).definition
    child = (
        "x-extend: {schema: config-values.yaml}\ntype: object\ndescription: child\nrequired: [b, c]\n"
        "definitions: {e: {type: integer}}\nproperties: {b: {type: integer}, c: {}}\nx-two: 2\n"
    )
    assert schema_loading.load(child, "values.yaml", parent).definition == {
        "type": "object",
        "title": "parent",
        "description": "child",
        "required": ["a", "b", "c"],
        "definitions": {"d": {"type": "string"}, "e": {"type": "integer"}},
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {}},
        "patternProperties": {"^p": {}},
        "x-one": 1,
        "x-two": 2,
    }


def test_a_reference_may_lead_to_a_definition_of_the_extended_schema() -> None:
    parent = schema_loading.load("definitions: {d: {type: string}}", "config-values.yaml").definition
    child = "x-extend: {schema: config-values.yaml}\nproperties: {a: {$ref: '#/definitions/d'}}"
    assert "d" in schema_loading.load(child, "values.yaml", parent).definition["definitions"]


def test_what_is_wrong_is_told_by_line_and_column() -> None:
    text = (
        "required: 7\nitems: {type: x}\nproperties:\n  a: {minimum: y}\n  b: {type: z, enum: []}\nallOf: []\n"
    )
    places = [problem.split(": ")[0].removeprefix("openapi/values.yaml, ") for problem in problems(text)]
    assert places == [
        "line 1, column 1, required",
        "line 2, column 9, items.type",
        "line 4, column 7, properties.a.minimum",
        "line 5, column 7, properties.b.type",
        "line 5, column 16, properties.b.enum",
        "line 6, column 1, allOf",
    ]


def warnings(text: str) -> list[str]:
    found = schema_loading.load(text, "f").warnings
    return [warning.removeprefix("f, line 1, column 1, ") for warning in found]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("requierd: [a]", "requierd: this is no keyword of a schema and checks nothing; did you mean 'required'?"),
        ("propertys: {}", "propertys: this is no keyword of a schema and checks nothing; did you mean 'properties'?"),
        ("unrelated: 1", "unrelated: this is no keyword of a schema and checks nothing; remove it"),
        ("x-senstive: true", "x-senstive: this is no keyword of a schema and checks nothing; did you mean 'x-sensitive'?"),
        ("required:", "required: this is empty and checks nothing; write a value, or remove it"),
        (
            "x-extend: {schema: config-values.yaml}",
            "x-extend: there is no config-values.yaml to extend; this has no effect",
        ),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_what_checks_nothing_is_a_warning_that_names_what_was_meant(text: str, warning: str) -> None:
    assert warnings(text) == [warning]


def test_warnings_come_by_line() -> None:
    text = "allOf: [{zz: 1}]\nproperties:\n  b: {minimal: 1}\n  a: {zz: 1}\nbb: 1\n"
    lines = [warning.split(",")[1] for warning in schema_loading.load(text, "f").warnings]
    assert lines == [" line 1", " line 3", " line 4", " line 5"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("type: [string]", {"type": "string"}),
        ("type: [integer, string]", {"type": ["integer", "string"]}),
        ("type: [integer, 'null', string]", {"type": ["integer", "string"], "nullable": True}),
        ("type: [string, null]", {"type": "string", "nullable": True}),
        ("properties:", {"properties": {}}),
        ("properties: {a: }", {"properties": {"a": {}}}),
        ("oneOf: [{properties: {a: }}]", {"oneOf": [{"properties": {"a": {}}}]}),
        ("x-required-for-helm: host", {"x-required-for-helm": ["host"]}),
        ("items: {x-required-for-helm: host}", {"items": {"x-required-for-helm": ["host"]}}),
        ("default: ", {"default": None}),
        ("x-examples:\nconst: 1", {"x-examples": None}),
    ],
    ids=lambda text: str(text)[:40],
)
def test_schemas_are_read_as_leniently_as_the_original_reads_them(
    written: str, read: dict[str, object]
) -> None:
    assert schema_loading.load(written, "f").definition == read


COMMON = """
definitions:
  port: {type: integer, maximum: 9}
  node: {type: object, properties: {next: {$ref: '#/definitions/node'}, port: {$ref: '#/definitions/port'}}}
  bad: {type: objekt, pattern: 7}
properties:
  list: {items: [{}]}
"""


def beside(source: str, reference: str) -> tuple[str, str]:
    """One file beside the schema, as its reader finds it."""
    if reference != "common.yaml":
        raise errors.ConfigurationError(f"{reference!r} lies outside of the module")
    return COMMON, f"{source.rpartition('/')[0]}/common.yaml"


def test_a_reference_to_a_file_beside_it_brings_its_definitions_along() -> None:
    text = (
        "properties: {a: {$ref: 'common.yaml#/definitions/node'}, b: {$ref: 'common.yaml#/definitions/port'}}"
    )
    loaded = schema_loading.load(text, "openapi/values.yaml", read=beside).definition
    schema = schemas.Schema(loaded, "values.yaml", NoBrackets())
    value: dict[str, object] = {"a": {"next": {"next": {"port": 10}}}, "b": 9}
    assert [v.path for v in schema.violations("m", value)] == ["m.a.next.next.port"]  # type: ignore[arg-type]
    assert [v.path for v in schema.violations("m", {"a": {"b": 1}})] == ["m.a.b"]


def test_a_reference_may_lead_to_any_place_of_its_own_file() -> None:
    text = "properties: {a: {type: integer}, b: {$ref: '#/properties/a'}, c: {$ref: '#'}}"
    schema = schemas.load_schema(text, "f")
    assert [v.path for v in schema.violations("m", {"b": "x", "c": {"c": {"a": "x"}}})] == ["m.b", "m.c.c.a"]


def test_a_child_and_its_parent_may_refer_to_one_file() -> None:
    text = "properties: {a: {$ref: 'common.yaml#/definitions/port'}}"
    child = "x-extend: {schema: config-values.yaml}\nproperties: {b: {$ref: 'common.yaml#/definitions/port'}}"
    loaded = schemas.load_schemas((text, "openapi/c"), (child, "openapi/v"), NoBrackets(), beside)
    assert loaded.values is not None
    assert [v.path for v in loaded.values.violations("m", {"a": 10, "b": 10})] == ["m.a", "m.b"]


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (
            "common.yaml#/definitions/bad",
            "openapi/common.yaml, line 5, column 9, definitions.bad.type: must be one of",
        ),
        (
            "common.yaml#/definitions/none",
            "openapi/values.yaml, line 1, column 1, $ref: there is nothing at 'common.yaml#/definitions/none'",
        ),
        ("../other.yaml", "openapi/values.yaml, line 1, column 1, $ref: '../other.yaml' lies outside"),
        ("common.yaml", "openapi/common.yaml, line 5, column 9, definitions.bad.type: must be one of"),
    ],
)
def test_what_is_wrong_with_a_referred_file_is_told_with_its_place(reference: str, problem: str) -> None:
    with pytest.raises(schema_loading.SchemaError) as caught:
        schema_loading.load(f"$ref: '{reference}'", "openapi/values.yaml", read=beside)
    assert caught.value.problems[0].startswith(problem)
