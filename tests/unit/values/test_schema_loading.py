"""Schema files: what is wrong with one is told when it is loaded, with its position."""

import pytest

from addon_operator.values import schema_loading, schema_rules, yaml_reading


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
        ("type: [string]", "line 1, column 1, type: must be one of"),
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
        ("$ref: other.yaml", "$ref: 'other.yaml' does not have the form #/definitions/NAME"),
        ("$ref: '#/definitions/a/b'", "does not have the form"),
        ("requierd: [a]", "requierd: this is no keyword of a schema; did you mean 'required'?"),
        ("x-senstive: true", "did you mean 'x-sensitive'?"),
        ("x-extend: {schema: other.yaml}", 'x-extend.schema: must be one of "config-values.yaml"'),
        ("x-extend: {schema: config-values.yaml}", "x-extend: there is no config-values.yaml to extend"),
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
        "unrelated: 1",
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
    )
    child = (
        "x-extend: {schema: config-values.yaml}\ntype: object\ndescription: child\nrequired: [b, c]\n"
        "definitions: {e: {type: integer}}\nproperties: {b: {type: integer}, c: {}}\nx-two: 2\n"
    )
    assert schema_loading.load(child, "values.yaml", parent) == {
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
    parent = schema_loading.load("definitions: {d: {type: string}}", "config-values.yaml")
    child = "x-extend: {schema: config-values.yaml}\nproperties: {a: {$ref: '#/definitions/d'}}"
    assert "d" in schema_loading.load(child, "values.yaml", parent)["definitions"]
