"""Rendered objects against schemas as an API server has them."""

from addon_operator.commands.checks import object_checks
from addon_operator.devcluster import api_schemas
from addon_operator.documents import manifest_diff
from tests.support import rows

PORT = {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}
SPEC = {
    "type": "object",
    "required": ["selector"],
    "properties": {
        "selector": {"type": "object", "additionalProperties": {"type": "string"}},
        "replicas": {"type": "integer", "format": "int32"},
        "port": {"$ref": "#/components/schemas/Port"},
        "parts": {
            "type": "array",
            "items": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
        },
        "memory": {"allOf": [{"$ref": "#/components/schemas/k8s.api.resource.Quantity"}]},
        "ports": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/NamedPort"},
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}},
    },
}
THING = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"$ref": "#/components/schemas/Spec"},
    },
}
NAMED_PORT = {
    "type": "object",
    "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
}
QUANTITY = {"oneOf": [{"type": "string"}, {"type": "number"}]}
TYPES = {
    "Thing": THING, "Spec": SPEC, "Port": PORT, "NamedPort": NAMED_PORT,
    "k8s.api.resource.Quantity": QUANTITY,
}  # fmt: skip
CHECKS = object_checks.ObjectChecks(api_schemas.ApiSchemas("v1.36.3", TYPES, {"v1/Thing": "Thing"}))
TWICE = 'has the port 1, protocol "TCP" of'
WRONG, UNKNOWN, MISSING, REPEATED = object_checks.Mistake


def problems(
    text: str, checks: object_checks.ObjectChecks = CHECKS
) -> list[tuple[object_checks.Mistake, str]]:
    (document,) = manifest_diff.parse(text)
    return [(mistake, text.rpartition(" refuses: ")[2]) for mistake, text, _ in checks.problems(document)]


def thing(spec: str) -> str:
    return f"{{apiVersion: v1, kind: Thing, metadata: {{name: a}}, spec: {spec}}}"


@rows.each(
    ("spec", "expected"),
    [
        ("{selector: {a: b}, replicas: null, port: 80, any: {x: 1}}", []),
        ("{selector: {a: b}, port: http, parts: [{selector: {}}]}", []),
        ("{selector: {}, replicas: many}", [(WRONG, "spec.replicas must be an integer")]),
        ("{selector: {a: 1}}", [(WRONG, "spec.selector.a must be a string")]),
        ("{}", [(MISSING, "spec must have the key 'selector'")]),
        (
            "{selector: {}, replica: 1}",
            [(UNKNOWN, "spec.replica is no field of it; did you mean 'replicas'?")],
        ),
        ("{selector: {}, memory: 1.5Gi, parts: [{selector: {}, memory: 100}]}", []),
        (
            "{selector: {}, memory: 12x}",
            [(WRONG, "spec.memory must be a quantity such as 100m or 1Gi, and not '12x'")],
        ),
        ("{selector: {}, ports: [{port: 1}, {port: 1, protocol: UDP}, {}, {}]}", []),
        (
            "{selector: {}, parts: [{selector: {}, ports: [{port: 1}, {port: 1, protocol: TCP}]}]}",
            [
                (REPEATED, f"spec.parts[0].ports[1] {TWICE} spec.parts[0].ports[0]; remove one of them"),
            ],
        ),
        ("{selector: {}, parts: [{}]}", [(MISSING, "spec.parts[0] must have the key 'selector'")]),
    ],
)  # fmt: skip
def test_what_the_api_server_would_refuse_is_told_by_field(
    spec: str, expected: list[tuple[object_checks.Mistake, str]]
) -> None:
    assert problems(thing(spec)) == expected
    assert problems(f"{{apiVersion: v1, kind: List, items: [{thing(spec)}]}}") == expected
    assert problems(thing(spec).replace("Thing", "Other")) == []


@rows.each(
    ("metadata", "said"),
    [
        ("{name: a.b-1, labels: {x.io/a: b, c: ''}}", ""),
        ("{name: Web_2}", "metadata.name 'Web_2' is not a name; use lower-case letters, digits, '-' and '.'"),
        ("{name: a, labels: {a: b c}}", "a: 'b c' in metadata.labels is not a label"),
        ("{name: a, labels: {a b: c}}", "a b: 'c' in metadata.labels is not a label"),
    ],
)
def test_names_and_labels_that_the_api_server_would_refuse_are_told(metadata: str, said: str) -> None:
    body = f"{{apiVersion: v1, kind: Thing, metadata: {metadata}, spec: {{selector: {{}}}}}}"
    assert problems(body) == ([(WRONG, said)] if said else [])


def test_roles_and_kinds_of_others_may_have_names_with_other_characters() -> None:
    kinds = {"rbac.authorization.k8s.io/v1/Role": "Thing"}
    checks = object_checks.ObjectChecks(api_schemas.ApiSchemas("v1.36.3", TYPES, kinds))
    for version, kind in (("rbac.authorization.k8s.io/v1", "Role"), ("example.com/v1", "Thing")):
        body = (
            f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: 'a:Web'}}, spec: {{selector: {{}}}}}}"
        )
        assert problems(body, checks) == []


@rows.each(
    ("text", "mistake", "said"),
    [
        ("- a", WRONG, "a document that is not an object"),
        ("a: 1", WRONG, "an object without apiVersion"),
        ("{apiVersion: v1, kind: List, items: [5]}", WRONG, "an object without apiVersion"),
        ("{apiVersion: v1, kind: Thing, metadata: {labels: {}}}", MISSING, "give it metadata.name"),
    ],
)
def test_what_is_no_object_needs_no_schema(text: str, mistake: object_checks.Mistake, said: str) -> None:
    ((found, sentence),) = problems(text, object_checks.ObjectChecks(None))
    assert found is mistake
    assert said in sentence
