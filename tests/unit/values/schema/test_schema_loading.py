"""Schema files: what is wrong with one is told when it is loaded, with its position."""
# ruff: noqa: E501 - rows of tables

import json
import re

import pytest

from addon_operator.documents import patterns, yaml_reading
from addon_operator.kernel import errors
from addon_operator.values.schema import schema_loading, schema_rules, schema_walk, schemas
from tests.support import rows


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


@rows.each(
    ("text", "problem"),
    [
        ("[]", "openapi/values.yaml: must be a mapping"),
        ("type: 7", 'openapi/values.yaml, line 1, column 1, type: must be one of "string"'),
        ("type: [string, 7]", "type[1]: must be one of"),
        (
            "type: object\nproperties:\n  a:\n    type: {}\n",
            "line 4, column 5, properties.a.type: must be one of",
        ),
        ("properties: [a]", "properties: must be a mapping"),
        ("properties: {a: text}", "properties.a: must be a mapping"),
        ("required: name", "required: must be a list"),
        ("items: [{type: 7}]", "items[0].type: must be one of"),
        ("items: {properties: {a: {minimum: x}}}", "items.properties.a.minimum: must be a number"),
        ("additionalProperties: {type: 7}", "additionalProperties.type: must be one of"),
        ("minLength: '3'", "minLength: must be an integer"),
        ("exclusiveMinimum: 3", "exclusiveMinimum: must be a boolean"),
        ("multipleOf: x", "multipleOf: must be a number"),
        ("enum: x", "enum: must be a list"),
        ("allOf: {}", "allOf: must be a list"),
        ("oneOf: [{not: {type: 7}}]", "oneOf[0].not.type: must be one of"),
        ("nullable: 'true'", "nullable: must be a boolean"),
        ("description: 7", "description: must be a string"),
        ("pattern: '('", "line 1, column 1, pattern: '(' is not a regular expression"),
        ("patternProperties: {'[': {}}", "is not a regular expression"),
        ("$ref: '#/definitions/a'", "$ref: there is no definition 'a'"),
        ("$ref: other.yaml", "$ref: 'other.yaml' is another file, and there is none here"),
        ("$ref: '#definitions/a'", "'#definitions/a' does not have the form #/definitions/NAME or FILE#"),
        ("$ref: '#/definitions/a/b'", "there is nothing at '#/definitions/a/b'"),
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
            "a definition contains itself endlessly",
        ),
        (
            (
                "$ref: '#/definitions/a'\n"
                "definitions: {a: {properties: {b: {default: {}, $ref: '#/definitions/a'}}}}"
            ),
            "a definition contains itself endlessly",
        ),
    ],
    ids=lambda text: text[:50],
)
def test_a_wrong_schema_is_reported_with_file_position_and_keyword(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(text)), problems(text)
    assert all(found.startswith("openapi/values.yaml") for found in problems(text))


def test_all_that_is_wrong_is_reported_at_once() -> None:
    assert len(problems("properties: {a: {type: 7}, b: {minimum: y}}\nrequired: 7")) == 3


def test_broken_yaml_is_reported_as_such() -> None:
    with pytest.raises(yaml_reading.YamlError, match="line 2"):
        schema_loading.load("a: [", "openapi/values.yaml")


@rows.each(
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


def test_what_is_wrong_is_reported_by_line_and_column() -> None:
    text = (
        "required: 7\nitems: {type: 7}\nproperties:\n  a: {minimum: y}\n  b: {type: 7, enum: z}\nallOf: z\n"
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
    return [re.sub("^f, line 1, column [0-9]+, ", "", warning) for warning in found]


@rows.each(
    ("text", "warning"),
    [
        ("requierd: [a]", "requierd: this is not a keyword of schemas and checks nothing; did you mean 'required'?"),
        ("propertys: {}", "propertys: this is not a keyword of schemas and checks nothing; did you mean 'properties'?"),
        ("faults: 1", "faults: this is not a keyword of schemas and checks nothing; remove it"),
        ("unrelated: 1", "unrelated: this is not a keyword of schemas and checks nothing; remove it"),
        ("x-senstive: true", "x-senstive: this is not a keyword of schemas and checks nothing; did you mean 'x-sensitive'?"),
        (
            "auth: {type: object}",
            "auth: this is not a keyword of schemas and checks nothing; put it under properties",
        ),
        (
            "additionalProperties: {titles: {properties: {a: {}}}}",
            "additionalProperties.titles: this is not a keyword of schemas and checks nothing; put it under properties",
        ),
        ("type: bool", "type: there is no type 'bool'; no value is valid here; did you mean boolean?"),
        ("items: {type: int}", "items.type: there is no type 'int'; no value is valid here; did you mean integer?"),
        ("type: [str, integer]", "type: there is no type 'str'; did you mean string?"),
        ("type: map", "type: there is no type 'map'; no value is valid here; did you mean object?"),
        (
            "type: xyz",
            "type: there is no type 'xyz'; no value is valid here; write one of string, number, integer, boolean, array, object",
        ),
        ("type: []", "type: this is empty and checks nothing; write a value, or remove it"),
        ("items: strings", "items: 'strings' is not a schema and checks nothing; write {type: string}"),
        ("items: true", "items: this is not a schema and checks nothing; write {type: string}"),
        ("items: []", "items: this is empty and checks nothing; write a value, or remove it"),
        (
            "items: [{type: string}]",
            "items: a list checks items by their position; write one schema, without '-', to check all of them",
        ),
        (
            'additionalProperties: "yes"',
            "additionalProperties: 'yes' is read as true; write true, false or a schema",
        ),
        ('additionalProperties: "false"', "additionalProperties: 'false' is read as true; write true, false or a schema"),
        ("additionalProperties: []", "additionalProperties: this is read as true; write true, false or a schema"),
        ("required: [a, a]", "required: a name occurs twice; remove one"),
        ("x-required-for-helm: true", "x-required-for-helm: this is not a list of names and checks nothing; write one"),
        ("minLength: -1", "minLength: a number below 0 checks nothing; remove it"),
        ("maxItems: -1", "maxItems: the number is below 0, and so no value is valid here; correct or remove it"),
        ("multipleOf: 0", "multipleOf: the number is not above 0, and so no number is valid here; correct or remove it"),
        ("enum: []", "enum: this is empty and checks nothing; write a value, or remove it"),
        ("allOf: []", "allOf: this is empty and checks nothing; write a value, or remove it"),
        ("$ref: 7", "$ref: this is not a text and refers to nothing; write '#/definitions/NAME'"),
        ("x-extend: config-values.yaml", "x-extend: this has no effect; write {schema: config-values.yaml}"),
        ("x-sensitive: 'yes'", "x-sensitive: 'yes' is read as true; write true or false"),
        (
            "x-kubernetes-int-or-string: 1",
            "x-kubernetes-int-or-string: this is not true or false and checks nothing; write true, or remove it",
        ),
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


@rows.each(
    ("text", "value", "broken"),
    [
        ("type: bool", {}, []),
        (
            "type: bool",
            {"a": True},
            ["m.a: cannot be set: the schema gives no type that there is, not true (f)"],
        ),
        ("type: bool\n    nullable: true", {"a": None}, []),
        ("type: 'null'", {"a": None}, []),
        ("type: 'null'", {"a": 1}, ["m.a: must be null, not 1 (f)"]),
        ("type: [bool, string]", {"a": "x"}, []),
        ("type: [bool, string]", {"a": True}, ["m.a: must be a string, not true (f)"]),
        ("type: []", {"a": True}, []),
        ("items: strings", {"a": [1, "x"]}, []),
        ("items: [{type: string}]", {"a": ["x", 1]}, []),
        ("items: [{type: string}]", {"a": [1]}, ["m.a[0]: must be a string, not 1 (f)"]),
        ("items: [{x-sensitive: true, type: string}]", {"a": [1]}, ["m.a[0]: must be a string, not *** (f)"]),
        ("properties: {}\n    additionalProperties: 'no'", {"a": {"b": 1}}, []),
        ("minLength: -1", {"a": ""}, []),
        ("maxLength: -1", {"a": ""}, ['m.a: must have at most -1 characters, not "" (f)']),
        ("multipleOf: 0", {"a": 0}, ["m.a: must be a multiple of 0, not 0 (f)"]),
        ("enum: []", {"a": 1}, []),
    ],
    ids=lambda text: str(text)[:40],
)
def test_a_strange_shape_allows_what_it_allows_in_the_original(
    text: str, value: dict[str, object], broken: list[str]
) -> None:
    schema = schemas.load_schema(f"properties:\n  a:\n    {text}\n", "f")
    assert list(map(str, schema.violations("m", value))) == broken  # type: ignore[arg-type]


def test_a_list_of_schemas_hides_what_it_hides_wherever_an_item_is_written() -> None:
    schema = schemas.load_schema("properties: {a: {items: [{}, {x-sensitive: true}]}}", "f")
    assert schema.masked_at(["a", "-"], "secret") == "***"
    assert schema.masked({"a": ["x", "secret"]}) == {"a": ["x", "***"]}


@rows.each(
    ("written", "warning"),
    [
        ("x-doc: ee\nx-doc: ee", "line 2, column 1, x-doc: the key is already set on line 1; the last one counts, remove the other"),
        (
            "properties:\n  a: {type: string}\n  a: {type: integer}",
            "line 3, column 3, properties.a: the key is already set on line 2 to something else; the last one counts, remove the other",
        ),
    ],
    ids=["same", "different"],
)  # fmt: skip
def test_the_last_of_two_equal_keys_counts_and_is_a_warning(written: str, warning: str) -> None:
    loaded = schema_loading.load(written, "f")
    assert loaded.warnings == (f"f, {warning}",)
    assert loaded.definition.get("properties", {"a": {"type": "integer"}}) == {"a": {"type": "integer"}}


@rows.each("more", ["---\n", "---\ntype: string\n"], ids=["empty", "another schema"])
def test_only_the_first_document_of_a_schema_file_is_read(more: str) -> None:
    loaded = schema_loading.load(f"---\ntype: object\n{more}", "f")
    assert loaded.definition == {"type": "object"}
    assert loaded.warnings == ("f: another document follows, which is not read; write one document",)


def test_a_duplicate_key_in_a_referred_file_is_reported_for_that_file() -> None:
    text = "definitions: {a: {type: string, type: string}}"
    loaded = schema_loading.load("$ref: 'c#/definitions/a'", "f", read=lambda _, name: (text, name))
    assert [warning.split(",")[0] for warning in loaded.warnings] == ["c"]


def test_x_extend_extends_whatever_file_it_names() -> None:
    child = "x-extend: {schema: other.yaml, x: 1}\nproperties: {b: {}}"
    loaded = schemas.load_schemas(("properties: {a: {}}", "c"), (child, "f"), NoBrackets())
    assert loaded.values is not None
    assert loaded.values.definition["properties"] == {"a": {}, "b": {}}
    assert loaded.warnings == (
        "f, line 1, column 1, x-extend: config-values.yaml is extended, whatever else this says; write its name alone",
    )


def test_warnings_come_by_line() -> None:
    text = "allOf: [{zz: 1}]\nproperties:\n  b: {minimal: 1}\n  a: {zz: 1}\nbb: 1\n"
    lines = [warning.split(",")[1] for warning in schema_loading.load(text, "f").warnings]
    assert lines == [" line 1", " line 3", " line 4", " line 5"]


@rows.each(
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
        ("deprecated: use x\nwriteOnly: 1", {"deprecated": "use x", "writeOnly": 1}),
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
  bad: {type: 7, pattern: 7}
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


@rows.each(
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
def test_what_is_wrong_with_a_referred_file_is_reported_with_its_place(reference: str, problem: str) -> None:
    with pytest.raises(schema_loading.SchemaError) as caught:
        schema_loading.load(f"$ref: '{reference}'", "openapi/values.yaml", read=beside)
    assert caught.value.problems[0].startswith(problem)


def test_defaults_that_double_with_each_level_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_walk, "MAX_FILLED", 1000)

    def level(number: int) -> dict[str, object]:
        below = {"$ref": f"#/definitions/d{number + 1}"}
        return {"type": "object", "default": {}, "properties": {"a": below, "b": below}}

    definitions = {f"d{number}": level(number) for number in range(30)} | {"d30": {"type": "string"}}
    schema = {"type": "object", "properties": {"tree": level(-1)}, "definitions": definitions}
    with pytest.raises(schema_loading.SchemaError, match="its defaults fill in more than 1000 keys"):
        schema_loading.load(json.dumps(schema), "values.yaml")


def test_a_large_default_in_many_places_is_refused() -> None:
    properties = {f"p{number}": {"$ref": "#/definitions/large"} for number in range(300)}
    large = {"type": "object", "default": {"text": "x" * 100_000}}
    schema = {"type": "object", "properties": properties, "definitions": {"large": large}}
    with pytest.raises(schema_loading.SchemaError, match="or 16 MiB"):
        schema_loading.load(json.dumps(schema), "values.yaml")


def test_patterns_that_are_too_large_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_STEPS", 100_000)
    properties = {f"p{number}": {"pattern": f"\\pL{{10}}{number}"} for number in range(12)}
    with pytest.raises(schema_loading.SchemaError, match="more than 100000 steps") as caught:
        schema_loading.load(json.dumps({"properties": properties}), "values.yaml")
    assert len(caught.value.problems) == 12 - 9


@rows.each(
    ("text", "said"),
    [
        (
            "properties: {a: {type: string, default: 5}}",
            "properties.a.default: .* it must be a string, so nobody",
        ),
        ("properties: {a: {enum: [x, y], default: z}}", "it must be one of"),
        ("properties: {a: {type: integer, minimum: 3, default: 1}}", "it must be at least 3"),
        ("properties: {a: {type: array, items: {type: object}, default: {}}}", "it must be a list"),
        ("default: {b: 1}\nproperties: {a: {type: object, default: []}}", "it must be a mapping"),
        ("properties: {a: {pattern: '^a', type: string, default: b}}", "it must match"),
    ],
)
def test_a_default_that_its_own_schema_refuses_is_told_with_its_place(text: str, said: str) -> None:
    (warning,) = schema_loading.load(text, "f").warnings

    assert re.search(said, warning)
    assert warning.startswith("f, line ")


@rows.each(
    "text",
    [
        "properties: {a: {type: string, default: null}}",
        "properties: {a: {type: object, required: [b], default: {}, properties: {b: {default: 1}}}}",
        "properties: {a: {type: string, minLength: 1, default: x}}",
        "properties: {a: {type: array, items: {type: string}, default: []}}",
        "properties: {a: {oneOf: [{type: string}, {type: integer}], default: 1}}",
    ],
)
def test_a_default_that_is_right_or_is_filled_further_is_no_mistake(text: str) -> None:
    assert schema_loading.load(text, "f").warnings == ()
