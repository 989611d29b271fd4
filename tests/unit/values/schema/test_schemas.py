"""What schemas check, fill in and hide."""
# ruff: noqa: E501 - rows of tables

from typing import Any

from addon_operator.documents import json_documents, yaml_reading
from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_violations, schemas
from tests.support import rows


def load(text: str) -> schemas.Schema:
    return schemas.load_schema(text, "openapi/values.yaml")


def violations(schema: str, value: str, *, for_helm: bool = False) -> list[str]:
    found = load(schema).violations("m", read(value), for_helm=for_helm)
    return [str(violation).removesuffix(" (openapi/values.yaml)") for violation in found]


def read(text: str) -> json_types.JsonObject:
    value = yaml_reading.load(text, "values")
    assert isinstance(value, dict)
    return value


def in_property(schema: str) -> str:
    return f"properties: {{a: {{{schema}}}}}"


@rows.each(
    ("schema", "value", "rule"),
    [
        ("type: string", "1", "must be a string, not 1"),
        ("type: integer", "1.5", "must be an integer, not 1.5"),
        ("type: integer", "true", "must be an integer, not true"),
        ("type: boolean", "'yes'", 'must be a boolean, not "yes"'),
        ("type: object", "[]", "must be a mapping, not []"),
        ("type: array", "{}", "must be a list, not {}"),
        ("type: string", "~", "must be a string, not null"),
        ("type: string, nullable: true", "1", "must be a string or null, not 1"),
        ("x-kubernetes-int-or-string: true", "1.5", "must be an integer or a string, not 1.5"),
        ("minimum: 3", "2", "must be at least 3, not 2"),
        ("minimum: 3, exclusiveMinimum: true", "3", "must be greater than 3, not 3"),
        ("maximum: 3", "4", "must be at most 3, not 4"),
        ("maximum: 3, exclusiveMaximum: true", "3", "must be less than 3, not 3"),
        ("multipleOf: 0.1", "0.35", "must be a multiple of 0.1, not 0.35"),
        ("minLength: 2", "x", 'must have at least 2 characters, not "x"'),
        ("maxLength: 1", "xy", 'must have at most 1 characters, not "xy"'),
        ("pattern: '^a$'", "ab", "must match '^a$', not \"ab\""),
        ("pattern: '^\\.$'", "ab", "must match '^\\.$', not \"ab\""),
        ("format: ipv4", "1.2.3", 'must have the format ipv4, not "1.2.3"'),
        ("enum: [b, 1]", "c", 'must be one of "b", 1, not "c"'),
        ("enum: [1]", "true", "must be one of 1, not true"),
        ("minItems: 1", "[]", "must have at least 1 items, not []"),
        ("maxItems: 1", "[1, 2]", "must have at most 1 items, not [1,2]"),
        ("uniqueItems: true", "[1, 1]", "must not have an item twice, not [1,1]"),
        ("minProperties: 1", "{}", "must have at least 1 keys, not {}"),
        ("maxProperties: 1", "{b: 1, c: 2}", 'must have at most 1 keys, not {"b":1,"c":2}'),
        ("required: [b]", "{}", "must have the key 'b'"),
        ("not: {type: string}", "x", 'must not be of the form that the schema excludes, not "x"'),
        ("allOf: [{minimum: 3}]", "2", "must be at least 3, not 2"),
        (
            "anyOf: [{type: string}, {minimum: 3}]",
            "2",
            "must be of one of 2 forms (nearest: must be at least 3), not 2",
        ),
        (
            "anyOf: [{type: string}, {properties: {b: {type: integer}}}]",
            "{b: x}",
            'must be of one of 2 forms (nearest: b must be an integer), not {"b":"x"}',
        ),
        (
            "oneOf: [{minimum: 1}, {minimum: 2}]",
            "3",
            "must be of exactly one of 2 forms, and is of several, not 3",
        ),
    ],
)
def test_a_value_that_the_schema_forbids_is_reported_with_path_rule_and_value(
    schema: str, value: str, rule: str
) -> None:
    assert violations(in_property(schema), f"a: {value}") == [f"m.a: {rule}"]


@rows.each(
    ("schema", "value"),
    [
        ("type: number", "1"),
        ("type: integer", "1.0"),
        ("type: string, nullable: true", "~"),
        ("type: string, nullable: true, enum: [b]", "~"),
        ("x-kubernetes-int-or-string: true", "1"),
        ("x-kubernetes-int-or-string: true", "50%"),
        ("multipleOf: 0.1", "0.3"),
        ("minimum: 3, exclusiveMinimum: false", "3"),
        ("minimum: 3", "text"),
        ("pattern: b", "abc"),
        ("format: something-else", "x"),
        ("type: object", "{anything: 1}"),
        ("type: object, additionalProperties: {type: integer}", "{anything: 1}"),
    ],
)
def test_a_value_that_the_schema_allows_is_fine(schema: str, value: str) -> None:
    assert violations(in_property(schema), f"a: {value}") == []


@rows.each(
    ("name", "good", "bad"),
    [
        ("byte", "aGk=", "a*"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-02-29T12:00:00Z", "2024-02-29 noon"),
        ("duration", "1h30m", "1 hour"),
        ("email", "a@b.c", "a.b.c"),
        ("hostname", "a.example.com", "-a"),
        ("ipv4", "10.1.2.3", "10.1.2.256"),
        ("ipv6", "::1", "10.1.2.3"),
        ("mac", "00:11:22:aa:bb:cc", "00:11"),
        ("uri", "https://example.com/", "example"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("int32", "2147483647", "2147483648"),
        ("int64", "-9223372036854775808", "9223372036854775808"),
    ],
)
def test_known_formats_are_checked(name: str, good: str, bad: str) -> None:
    text = "" if name.startswith("int") else "type: string, "
    schema = in_property(f"{text}format: {name}")
    assert violations(schema, f"a: {good}" if not text else f"a: '{good}'") == []
    assert len(violations(schema, f"a: {bad}" if not text else f"a: '{bad}'")) == 1


def test_all_violations_are_reported_at_once_with_their_paths() -> None:
    schema = """
        required: [project]
        properties:
          project: {type: string}
          nodes: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}}}
    """
    assert violations(schema, "nodes: [{name: 1}, {nam: x}]\nother: 1") == [
        "m: must have the key 'project'",
        "m.nodes[0].name: must be a string, not 1",
        "m.nodes[1]: must have the key 'name'",
        "m.nodes[1].nam: the schema does not know this key (it knows name)",
        "m.other: the schema does not know this key (it knows nodes, project)",
    ]


@rows.each(
    ("schema", "value", "allowed"),
    [
        ("properties: {a: {}}", "b: 1", False),
        ("properties: {a: {}}\nadditionalProperties: true", "b: 1", True),
        ("properties: {a: {}}\nadditionalProperties: {type: integer}", "b: 1", True),
        ("properties: {a: {}}\nx-kubernetes-preserve-unknown-fields: true", "b: 1", True),
        ("properties: {a: {}}\npatternProperties: {'^b': {}}", "b: 1", True),
        ("type: object", "b: 1", True),
        ("properties: {a: {type: object, properties: {c: {}}}}", "a: {b: 1}", False),
        ("additionalProperties: true\nproperties: {a: {properties: {c: {}}}}", "a: {b: 1}", True),
        ("properties: {a: {items: {properties: {c: {}}}}}", "a: [{b: 1}]", False),
        ("properties: {a: {additionalProperties: {properties: {c: {}}}}}", "a: {x: {b: 1}}", True),
        ("patternProperties: {'^a': {properties: {c: {}}}}", "ab: {b: 1}", False),
        ("properties:", "b: 1", False),
        (
            "definitions: {d: {properties: {c: {}}}}\nproperties: {a: {$ref: '#/definitions/d'}}",
            "a: {b: 1}",
            False,
        ),
        ("properties: {a: {}, b: {}}\nanyOf: [{properties: {a: {enum: [1]}}}]", "{a: 1, b: 1}", True),
        (
            "properties: {a: {oneOf: [{type: object, properties: {c: {}}}, {type: string}]}}",
            "a: {b: 1}",
            True,
        ),
    ],
)
def test_unknown_keys_are_refused_wherever_properties_are_listed_unless_allowed(
    schema: str, value: str, allowed: bool
) -> None:
    assert (violations(schema, value) == []) is allowed


KINDS = """
    properties: {master: {type: object, properties: {kind: {type: string}, size: {type: integer}}}}
    %s
    definitions: {master: {properties: {master: {properties: {kind: {enum: [a]}}}}}}
"""
OF_KIND_A = "{properties: {master: {properties: {kind: {enum: [a]}}}}}"


@rows.each(
    ("branches", "kind", "allowed"),
    [
        (f"oneOf: [{OF_KIND_A}, {OF_KIND_A.replace('[a]', '[b]')}]", "a", True),
        (f"oneOf: [{OF_KIND_A}, {OF_KIND_A.replace('[a]', '[b]')}]", "c", False),
        (f"anyOf: [{OF_KIND_A}]", "a", True),
        (f"anyOf: [{OF_KIND_A}]", "c", False),
        (f"allOf: [{OF_KIND_A}]", "a", True),
        (f"not: {OF_KIND_A}", "a", False),
        (f"not: {OF_KIND_A}", "c", True),
        (f"not: {{anyOf: [{OF_KIND_A}]}}", "a", False),
        ("not: {$ref: '#/definitions/master'}", "a", False),
        ("oneOf: [{$ref: '#/definitions/master'}]", "a", True),
    ],
)
def test_nothing_is_closed_in_branches_at_any_depth(branches: str, kind: str, allowed: bool) -> None:
    found = violations(KINDS % branches, f"master: {{kind: {kind}, size: 3}}")
    assert (found == []) is allowed
    unknown = violations(KINDS % branches, f"master: {{kind: {kind}, sise: 3}}")
    assert [text for text in unknown if "does not know" in text] == [
        "m.master.sise: the schema does not know this key (it knows kind, size)"
    ], "the object itself stays closed"


def test_a_definition_is_closed_where_its_place_is() -> None:
    schema = """
        definitions: {d: {properties: {c: {properties: {e: {}}}}}}
        properties: {a: {$ref: '#/definitions/d'}, b: {additionalProperties: {$ref: '#/definitions/d'}}}
    """
    assert violations(schema, "b: {x: {c: {other: 1}, other: 1}}") == []
    assert violations(schema, "a: {c: {other: 1}}") == [
        "m.a.c.other: the schema does not know this key (it knows e)"
    ]


def test_an_unknown_keyword_checks_nothing() -> None:
    assert violations("properties: {a: {const: 1, propertyNames: 7, $id: ':'}}", "a: {b: 2}") == []


def form(kind: str) -> str:
    return (
        f"{{type: object, additionalProperties: false, properties: {{kind: {{enum: [{kind}]}}, size: {{}}}}}}"
    )


@rows.each(
    ("schema", "value", "found"),
    [
        (
            f"oneOf: [{form('a')}, {form('b')}]",
            "{kind: b, sise: 3}",
            "m.a: must be of one of 2 forms (nearest: sise: the schema does not know this key (it knows kind, size))",
        ),
        (
            f"anyOf: [{form('a')}, {{type: string}}]",
            "{kind: a, sise: 3}",
            "m.a: must be of one of 2 forms (nearest: sise: the schema does not know this key (it knows kind, size))",
        ),
        (f"oneOf: [{form('a')}]", "{kind: a, sise: 3}", "m.a.sise: the schema does not know this key (it knows kind, size)"),
        ("anyOf: [{required: [b]}]", "{}", "m.a: must have the key 'b'"),
        ("$ref: '#/definitions/d', nullable: true", "3", "m.a: must be a string, not 3"),
        (
            f"oneOf: [{{oneOf: [{form('a')}]}}, {{type: string}}]",
            "{kind: a, sise: 3}",
            "m.a: must be of one of 2 forms (nearest: sise: the schema does not know this key (it knows kind, size))",
        ),
        (
            f"oneOf: [{{properties: {{kind: {{enum: [a]}}}}}}, {form('b').replace('size: {}', 'size: {type: integer}')}]",
            "{kind: b, sise: 3, size: x}",
            "m.a: must be of one of 2 forms (nearest: sise: the schema does not know this key (it knows kind, size); size must be an integer)",
        ),
        (
            f"oneOf: [{{type: string}}, {form('b').replace('size: {}', 'size: {type: integer}')}]",
            "{kind: c, sise: 3, size: x}",
            "m.a: must be of one of 2 forms (nearest: sise: the schema does not know this key (it knows kind, size); kind must be one of \"b\"; size must be an integer)",
        ),
    ],
    ids=["of two objects", "of an object and a text", "a single form", "a single condition", "nullable", "nested", "of the kind", "of the type"],
)  # fmt: skip
def test_what_no_form_allows_is_reported_for_the_form_that_was_meant(
    schema: str, value: str, found: str
) -> None:
    assert violations(in_property(schema) + "\ndefinitions: {d: {type: string}}", f"a: {value}") == [found]


def test_references_and_recursive_definitions_are_followed() -> None:
    schema = """
        definitions:
          node: {type: object, properties: {name: {type: string}, next: {$ref: '#/definitions/node'}}}
        properties:
          first: {$ref: '#/definitions/node'}
          maybe: {$ref: '#/definitions/node', nullable: true}
    """
    assert violations(schema, "first: {next: {next: {name: 1}}}\nmaybe: ~") == [
        "m.first.next.next.name: must be a string, not 1"
    ]


def test_what_helm_requires_is_demanded_only_before_helm_at_any_depth() -> None:
    schema = """
        required: [a]
        x-required-for-helm: [b]
        properties:
          a: {type: object, x-required-for-helm: [c], properties: {c: {}}}
          b: {}
          l: {items: {type: object, x-required-for-helm: [d], properties: {d: {}}}}
    """
    assert violations(schema, "{a: {}, l: [{}]}") == []
    assert violations(schema, "{a: {}, l: [{}]}", for_helm=True) == [
        "m: must have the key 'b'",
        "m.a: must have the key 'c'",
        "m.l[0]: must have the key 'd'",
    ]


@rows.each(
    ("schema", "value", "filled"),
    [
        ("properties: {a: {default: 1}, b: {default: x}}", "b: z", {"b": "z", "a": 1}),
        ("properties: {a: {default: 1}}", "a: ~", {"a": None}),
        ("properties: {a: {properties: {b: {default: 1}}}}", "{}", {}),
        ("properties: {a: {properties: {b: {default: 1}}}}", "a: {}", {"a": {"b": 1}}),
        ("properties: {a: {default: {}, properties: {b: {default: 1}}}}", "{}", {"a": {"b": 1}}),
        ("properties: {a: {default: {c: 2}, properties: {b: {default: 1}}}}", "{}", {"a": {"c": 2, "b": 1}}),
        (
            "properties: {l: {items: {properties: {b: {default: 1}}}}}",
            "l: [{}, {b: 2}, x]",
            {"l": [{"b": 1}, {"b": 2}, "x"]},
        ),
        ("additionalProperties: {properties: {b: {default: 1}}}", "x: {}", {"x": {"b": 1}}),
        (
            "patternProperties: {'^x': {properties: {b: {default: 1}}}}",
            "{x: {}, z: {}}",
            {"x": {"b": 1}, "z": {}},
        ),
        ("allOf: [{properties: {a: {default: 1}}}]", "{}", {"a": 1}),
        ("anyOf: [{properties: {a: {default: 1}}}]", "{}", {}),
        ("definitions: {d: {default: 5}}\nproperties: {a: {$ref: '#/definitions/d'}}", "{}", {"a": 5}),
        ("properties: {a: {default: ~}}", "{}", {}),
        ("properties: {a: {type: string, default: ~}}", "{}", {}),
        ("properties: {a: {type: string, nullable: true, default: ~}}", "{}", {"a": None}),
        ("properties: {a: {type: [string, 'null'], default: ~}}", "{}", {"a": None}),
        (
            "properties: {a: {$ref: '#/definitions/d', nullable: true}}\ndefinitions: {d: {default: ~}}",
            "{}",
            {"a": None},
        ),
    ],
)
def test_defaults_fill_only_missing_keys_of_what_exists(
    schema: str, value: str, filled: json_types.JsonObject
) -> None:
    document = read(value)
    load(schema).fill(document)
    assert document == filled


def test_a_default_is_copied_each_time() -> None:
    schema = load("properties: {a: {default: {list: []}}}")
    first: dict[str, Any] = {}
    schema.fill(first)
    first["a"]["list"].append(1)
    second: dict[str, Any] = {}
    schema.fill(second)
    assert second == {"a": {"list": []}}


SENSITIVE = """
    definitions: {secret: {type: string, minLength: 8, x-sensitive: true}}
    properties:
      password: {$ref: '#/definitions/secret'}
      users:
        items: {required: [name], properties: {name: {type: string}, token: {$ref: '#/definitions/secret'}}}
      keys: {type: object, x-sensitive: true, additionalProperties: {type: string}}
      mode:
        anyOf:
        - {type: integer}
        - {type: object, properties: {pin: {x-sensitive: true, type: integer}}, additionalProperties: false}
      depth: {type: object, maxProperties: 0, properties: {secret: {$ref: '#/definitions/secret'}}}
"""


@rows.each(
    "value",
    [
        "password: hunter2",
        "users: [{name: x, token: hunter2}]",
        "keys: {a: [hunter2]}",
        "keys: {a: {b: hunter2}}",
        "mode: {pin: hunter2}",
        "depth: {secret: hunter2-long}",
        "pasword: hunter2",
        "mode: {pim: hunter2}",
    ],
)
def test_violations_never_show_what_is_sensitive(value: str) -> None:
    found = violations(SENSITIVE, value)
    assert found
    assert "hunter2" not in "".join(found)


def test_sensitive_values_are_masked_for_people() -> None:
    value = read("{password: p, users: [{name: one, token: t}], keys: {a: b}, mode: {pin: 1}, other: x}")
    before = json_documents.encode(value)
    assert load(SENSITIVE).masked(value) == {
        "password": "***",
        "users": [{"name": "one", "token": "***"}],
        "keys": "***",
        "mode": {"pin": "***"},
        "other": "x",
    }
    assert json_documents.encode(value) == before


@rows.each(
    ("path", "value", "shown"),
    [
        (["password"], "p", "***"),
        ([], {"password": "p", "other": "x"}, {"password": "***", "other": "x"}),
        (["users", "0"], {"name": "one", "token": "t"}, {"name": "one", "token": "***"}),
        (["users", "-", "token"], "t", "***"),
        (["users"], [{"token": "t"}], [{"token": "***"}]),
        (["keys", "a", "b"], "t", "***"),
        (["mode", "pin"], 1, "***"),
        (["other", "0", "token"], "x", "x"),
    ],
)
def test_what_is_written_at_a_place_is_masked_by_where_it_stands(
    path: list[str], value: json_types.JsonValue, shown: object
) -> None:
    assert load(SENSITIVE).masked_at(path, value) == shown


def test_a_long_value_is_cut_in_a_violation() -> None:
    (found,) = violations(in_property("type: integer"), f"a: {'x' * 5_000}")
    assert len(found) < 200


RULES = """
    x-kubernetes-validations:
    - {rule: 'self["min"] <= self["max"]', message: min must not be above max}
    - {rule: 'self["max"] >= oldSelf["max"]', message: max must not shrink}
    properties:
      min: {type: integer}
      max: {type: integer, x-deckhouse-validations: [{expression: self < 100}]}
      names:
        type: array
        items: {type: string, x-kubernetes-validations: [{rule: self != "x", message: not x}]}
"""


@rows.each(
    ("value", "old", "found"),
    [
        ({"min": 1, "max": 2}, None, []),
        ({"min": 3, "max": 2}, None, ["m: min must not be above max"]),
        ({"min": 1, "max": 2}, {"min": 1, "max": 3}, ["m: max must not shrink"]),
        ({"min": 1, "max": 200}, None, ["m.max: the rule 'self < 100' must hold"]),
        ({"min": 1, "max": 2, "names": ["a", "x"]}, None, ["m.names[1]: not x"]),
        (
            {"min": 1},
            None,
            [
                (
                    "m: min must not be above max (the rule cannot be evaluated over these values: "
                    "it reads a missing key; ask with has(…))"
                )
            ],
        ),
    ],
)
def test_rules_are_evaluated_where_they_stand(
    value: json_types.JsonObject, old: json_types.JsonObject | None, found: list[str]
) -> None:
    schema = schemas.load_schema(RULES, "f")
    broken = schema.violations("m", value, old)
    assert [f"{violation.path}: {violation.rule}" for violation in broken] == found


@rows.each(
    ("value", "old", "broken"),
    [
        ({"min": 3}, None, []),
        ({"min": 3}, {}, []),
        ({"min": 3}, {"min": 4}, ["m"]),
        ({"min": 3}, {"min": 3}, []),
        ({"min": 3}, {"other": 3}, ["m"]),
    ],
    ids=["nothing before", "an empty section before", "more before", "the same before", "no key before"],
)
@rows.each("keyword", ["x-kubernetes-validations", "x-deckhouse-validations"])
def test_a_rule_about_a_change_is_skipped_where_there_is_no_old_value(
    keyword: str, value: json_types.JsonObject, old: json_types.JsonObject | None, broken: list[str]
) -> None:
    schema = schemas.load_schema(f"{keyword}: [{{rule: self.min >= oldSelf.min}}]", "f")
    told = [found.path for found in schema.violations("m", value, old)]
    assert told == ([] if "deckhouse" in keyword and old == {"other": 3} else broken)


MISSING = "{0}: [{{rule: self.a.b > 1, message: too small}}]"


def test_a_rule_over_a_missing_key_fails_but_is_skipped_with_a_warning_under_the_alias() -> None:
    strict = schemas.load_schema(MISSING.format("x-kubernetes-validations"), "f")
    lenient = schemas.load_schema(MISSING.format("x-deckhouse-validations"), "f")
    assert [v.rule for v in strict.violations("m", {"a": {}})] == [
        "too small (the rule cannot be evaluated over these values: it reads a missing key; ask with has(…))"
    ]
    assert strict.skipped_rules("m", {"a": {}}) == []
    assert lenient.violations("m", {"a": {}}) == []
    assert [str(v) for v in lenient.skipped_rules("m", {"a": {}})] == [
        "m: the rule 'self.a.b > 1' is skipped: it reads a missing key; ask with has(…), or read it with .? (f)"
    ]
    assert [v.rule for v in lenient.violations("m", {"a": {"b": 1}})] == ["too small"]
    assert lenient.skipped_rules("m", {"a": {"b": 1}}) == []
    assert [v.rule for v in lenient.violations("m", {"a": 1})] == [
        "too small (the rule cannot be evaluated over these values)"
    ], "it is not the key that is missing"


def test_rules_wait_until_the_rest_of_the_schema_holds() -> None:
    schema = schemas.load_schema(RULES, "f")
    assert [v.path for v in schema.violations("m", {"min": "x", "max": 2})] == ["m.min"]


def test_both_files_of_a_section_are_loaded_together() -> None:
    loaded = schemas.load_schemas(
        ("required: [a]\nproperties: {a: {type: string}}", "config-values.yaml"),
        ("x-extend: {schema: config-values.yaml}\nproperties: {b: {type: string}}", "values.yaml"),
    )
    assert loaded.config is not None
    assert loaded.values is not None
    assert loaded.values.violations("m", {"a": "x", "b": "y"}) == []
    assert [v.path for v in loaded.config.violations("m", {"a": "x", "b": "y"})] == ["m.b"]


@rows.each(("config", "values"), [(None, None), (("", "c"), None), (None, ("", "v"))])
def test_a_missing_file_checks_nothing(
    config: tuple[str, str] | None, values: tuple[str, str] | None
) -> None:
    loaded = schemas.load_schemas(config, values)
    assert (loaded.config is None) is (config is None)
    assert (loaded.values is None) is (values is None)


def test_the_error_lists_all_violations_in_one_sentence() -> None:
    error = schema_violations.InvalidValuesError(
        load("properties: {a: {type: string}}").violations("m", {"a": 1, "b": 2})
    )
    assert str(error) == (
        "the values are not valid: m.a: must be a string, not 1 (openapi/values.yaml); "
        "m.b: the schema does not know this key (it knows a) (openapi/values.yaml)"
    )
    assert len(error.violations) == 2


@rows.each(("number", "count"), [(1e308, 0), (1e-300, 1), (0.3, 0), (0.35, 1)])
def test_multiples_are_exact_whatever_the_size(number: float, count: int) -> None:
    schema = schemas.load_schema("properties: {a: {multipleOf: 0.1}}", "config-values.yaml")
    assert len(schema.violations("web", {"a": number})) == count
