"""Keys without a value are left out of custom resources where the definition has no null."""

import json
from typing import Any, Final

import yaml

from addon_operator.modules.patching import manifest_changes, null_fields
from tests.unit import costs

KIND: Final = ("example.com/v1", "Thing")
MANIFEST: Final = """\
# Source: a/b.yaml
apiVersion: example.com/v1
kind: Thing
metadata:
  name: one
  annotations:
spec:
  volumes:
  text: null
  list:
  - name: a
    value:
  - name: b
    value: c
  kept:
    nullable: ~
    byDefault:
    free: {any: null}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data:
---
apiVersion: example.com/v1
kind: Other
metadata: {name: unknown}
spec:
"""
TEXT: Final = {"type": "string"}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "volumes": {"type": "array", "items": TEXT},
                "text": TEXT,
                "list": {"type": "array", "items": {"type": "object", "additionalProperties": TEXT}},
                "kept": {
                    "type": "object",
                    "properties": {
                        "nullable": {**TEXT, "nullable": True},
                        "byDefault": {**TEXT, "default": "a"},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                },
            },
        }
    },
}
REFUSED: Final = frozenset({("spec", "volumes"), ("spec", "text"), ("spec", "list", "*", "value")})


def test_keys_without_a_value_are_found_and_those_that_the_schema_does_not_allow_are_left_out() -> None:
    found = null_fields.found(MANIFEST)
    assert found.keys() == {KIND, ("example.com/v1", "Other")}
    assert null_fields.refused(found[KIND], SCHEMA) == REFUSED
    text, told = null_fields.without(MANIFEST, {KIND: REFUSED})
    first, *others = yaml.safe_load_all(text)
    assert first["spec"]["list"] == [{"name": "a"}, {"name": "b", "value": "c"}]
    assert first["spec"].keys() == {"list", "kept"}
    assert first["spec"]["kept"] == {"nullable": None, "byDefault": None, "free": {"any": None}}
    assert others == list(yaml.safe_load_all(MANIFEST))[1:]
    (sentence,) = told
    assert sentence.startswith("Thing one: keys without a value are left out (spec.list.*.value, spec.text, ")


def test_a_manifest_without_such_keys_is_as_it_was() -> None:
    plain = "a: b\n---\nc: d\n"
    assert null_fields.without(plain, {KIND: REFUSED}) == (plain, ())
    assert null_fields.without(MANIFEST, {("example.com/v1", "None"): REFUSED}) == (MANIFEST, ())


def test_the_program_that_changes_what_helm_renders_leaves_them_out_also_in_lists() -> None:
    changes = manifest_changes.ManifestChanges(nulls={KIND: REFUSED})
    assert changes
    again = manifest_changes.read(changes.written())
    assert again == changes
    thing, *_ = yaml.safe_load_all(MANIFEST)
    inner = {"apiVersion": "v1", "kind": "List", "items": [thing]}
    (made,) = manifest_changes.changed([inner], again, "a")
    assert made["spec"].keys() == {"list", "kept"}
    assert json.loads(manifest_changes.NOTHING.written()).keys() == {"annotations", "labels", "patches"}


def test_a_manifest_is_read_in_one_pass() -> None:
    def many(count: int) -> str:
        head = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: one}\nspec:\n"
        return head + "".join(f"  key{number}:\n" for number in range(count))

    assert costs.is_linear(many, null_fields.found, 500)
