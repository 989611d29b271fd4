"""Which paths values can have, and samples of what may stand there."""

from typing import Any

from addon_operator.values.schema import schema_paths, schemas
from tests.support import rows

SCHEMA = """
type: object
definitions:
  tree: {type: object, properties: {left: {$ref: '#/definitions/tree'}, right: {$ref: '#/definitions/tree'}}}
properties:
  word: {type: string, minLength: 8}
  port: {x-kubernetes-int-or-string: true}
  auth:
    type: object
    required: [user]
    properties: {user: {type: string}, password: {type: string}}
  free: {type: object}
  labels: {type: object, additionalProperties: {type: string}}
  open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
  chosen: {type: object, anyOf: [{properties: {a: {}}, additionalProperties: false}]}
  links: {type: array, items: {type: object, properties: {url: {type: string}}}}
  tree: {$ref: '#/definitions/tree'}
  anything: {}
"""


def unknown(path: str, text: str = SCHEMA) -> schema_paths.UnknownKey | None:
    return schema_paths.unknown_key(schemas.load_schema(text, "values.yaml").definition, path.split("."))


@rows.each(
    "path",
    ["word", "auth.password", "*.password", "free.a.b", "labels.a", "open.b.c", "chosen.b", "links.0.url",
     "links.*.url", "tree.left.right.left", "anything.a.b", "*.*.url", "labels.*"],
)  # fmt: skip
def test_what_the_schema_allows_or_does_not_speak_of_can_be_there(path: str) -> None:
    assert unknown(path) is None


@rows.each(
    ("path", "hint"),
    [
        ("wrod", "did you mean 'word'?"),
        ("auth.pasword", "did you mean 'password'?"),
        ("auth.x9", "it knows user, password"),
        ("word.length", "it has no keys"),
        ("port.x", "it has no keys"),
        ("labels.a.b", "it has no keys"),
        ("links.0.ulr", "did you mean 'url'?"),
        ("links.url", "it has no keys"),
        ("links.*.ulr", "did you mean 'url'?"),
        ("tree.left.rigth", "did you mean 'right'?"),
    ],
)
def test_a_key_that_no_values_can_have_is_told_with_what_can_stand_there(path: str, hint: str) -> None:
    found = unknown(path)
    assert found is not None
    assert found.hint(path.split(".")) == hint


def test_a_path_of_any_keys_through_a_schema_that_holds_itself_takes_no_longer_than_it_is() -> None:
    assert unknown(".".join(["tree"] + ["*"] * 400 + ["left"])) is None
    found = unknown(".".join(["tree"] + ["*"] * 400 + ["lft"]))
    assert found is not None
    assert found.index == 401


@rows.each(
    ("schema", "expected"),
    [
        ("{type: integer, default: 3, x-examples: [4]}", 3),
        ("{type: integer, x-examples: [4, 5]}", 4),
        ("{type: string, example: abc}", "abc"),
        ("{type: string, enum: [one, two]}", "one"),
        ("{type: string}", "sample"),
        ("{type: string, minLength: 8}", "samplexx"),
        ("{type: string, maxLength: 3}", "sam"),
        ("{type: string, format: ip}", "192.0.2.1"),
        ("{type: string, pattern: '^a$'}", schema_paths.NO_SAMPLE),
        ("{type: integer, minimum: 5}", 5),
        ("{type: integer, maximum: 0}", 0),
        ("{type: boolean}", True),
        ("{type: array, items: {type: string}}", []),
        ("{type: object, required: [a], properties: {a: {type: integer}, b: {type: string}}}", {"a": 1}),
        ("{type: object, x-required-for-helm: [a], properties: {a: {type: integer}}}", {"a": 1}),
        ("{}", schema_paths.NO_SAMPLE),
    ],
)  # fmt: skip
def test_a_sample_is_an_example_a_default_or_the_least_that_the_schema_allows(
    schema: str,
    expected: Any,  # noqa: ANN401  # any JSON
) -> None:
    loaded = schemas.load_schema(f"type: object\nproperties:\n  a: {schema}\n", "values.yaml")
    assert schema_paths.sample(loaded.definition, ["a"]) == expected


def test_a_sample_of_a_schema_that_holds_itself_ends() -> None:
    text = """
type: object
definitions:
  tree:
    type: object
    required: [a, b]
    properties: {a: {$ref: '#/definitions/tree'}, b: {$ref: '#/definitions/tree'}}
properties: {tree: {$ref: '#/definitions/tree'}}
"""
    loaded = schemas.load_schema(text, "values.yaml")
    assert str(schema_paths.sample(loaded.definition, ["tree"])).count("{") <= 100
