"""Reading what hooks write to KUBERNETES_PATCH_PATH."""

import json
from typing import Any

import pytest

from addon_operator.hook_contract.outputs import object_operations
from addon_operator.hook_contract.outputs.object_operations import (
    Apply,
    Create,
    Delete,
    IfExists,
    JqPatch,
    Patch,
    Propagation,
)
from tests.support import rows

CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "x", "namespace": "default"},
    "data": {"a": "1"},
}
POD = {"kind": "Pod", "name": "p", "namespace": "default"}


def parse(text: str) -> tuple[object_operations.Operation, ...]:
    return object_operations.parse(text, "hook a.sh: KUBERNETES_PATCH_PATH")


def one(document: dict[str, Any]) -> Any:  # noqa: ANN401  # each test asks for fields of its own kind
    (operation,) = parse(json.dumps(document))
    return operation


def refusal(text: str) -> str:
    with pytest.raises(object_operations.ObjectOperationError) as caught:
        parse(text)
    return str(caught.value)


@rows.each("if_exists", list(IfExists), ids=lambda policy: policy.value)
def test_the_three_creations_differ_in_what_they_do_with_an_object_that_exists(if_exists: IfExists) -> None:
    operation = one({"operation": if_exists.value, "object": CONFIG_MAP})
    assert isinstance(operation, Create)
    assert operation.if_exists is if_exists
    assert operation.body == CONFIG_MAP
    assert operation.target == object_operations.ObjectTarget("ConfigMap", "x", "default", "v1")


@rows.each(
    ("name", "propagation"),
    [
        ("Delete", Propagation.FOREGROUND),
        ("DeleteInBackground", Propagation.BACKGROUND),
        ("DeleteNonCascading", Propagation.ORPHAN),
    ],
)
def test_the_three_deletions_differ_in_their_propagation(name: str, propagation: Propagation) -> None:
    operation = one({"operation": name, **POD})
    assert isinstance(operation, Delete)
    assert operation.propagation is propagation
    assert operation.ignore_missing
    assert operation.target.api_version is None


def test_a_deletion_may_insist_on_the_object() -> None:
    assert not one({"operation": "Delete", **POD, "ignoreMissingObject": False}).ignore_missing


def test_a_merge_patch_keeps_its_nulls() -> None:
    operation = one({"operation": "MergePatch", **POD, "mergePatch": {"data": {"a": None}}})
    assert isinstance(operation, Patch)
    assert operation.body == {"data": {"a": None}}
    assert not operation.ignore_missing


def test_items_of_a_json_patch_need_a_value_only_where_the_standard_says_so() -> None:
    items = [
        {"op": "add", "path": "/a", "value": None},
        {"op": "remove", "path": "/b", "value": "for the Go operator"},
        {"op": "move", "from": "/c", "path": "/d"},
        {"op": "copy", "from": "/c", "path": "/d"},
        {"op": "test", "path": "", "value": 1, "comment": "x"},
    ]
    operation = one({"operation": "JSONPatch", **POD, "jsonPatch": items})
    assert operation.body == [
        {"op": "add", "path": "/a", "value": None},
        {"op": "remove", "path": "/b"},
        {"op": "move", "from": "/c", "path": "/d"},
        {"op": "copy", "from": "/c", "path": "/d"},
        {"op": "test", "path": "", "value": 1},
    ]


def test_a_jq_patch_keeps_its_expression() -> None:
    operation = one({"operation": "JQPatch", **POD, "jqFilter": ".spec.replicas += 1"})
    assert isinstance(operation, JqPatch)
    assert operation.program == ".spec.replicas += 1"


def test_apply_has_a_field_manager_and_does_not_force() -> None:
    operation = one({"operation": "Apply", "object": CONFIG_MAP})
    assert isinstance(operation, Apply)
    assert (operation.field_manager, operation.force) == (None, False)
    operation = one({"operation": "Apply", "object": CONFIG_MAP, "fieldManager": "me", "force": True})
    assert (operation.field_manager, operation.force) == ("me", True)


@rows.each("written", ["status", "/status"])
def test_a_subresource_may_begin_with_a_slash(written: str) -> None:
    patch = {"operation": "MergePatch", **POD, "mergePatch": {}, "subresource": written}
    assert one(patch).target.subresource == "status"


def test_empty_optional_texts_count_as_left_out() -> None:
    target = one({"operation": "Delete", **POD, "namespace": "", "apiVersion": "", "subresource": ""}).target
    assert (target.namespace, target.api_version, target.subresource) == (None, None, None)


@rows.each("written", [json.dumps(CONFIG_MAP), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}"])
def test_an_object_may_be_a_text_of_json_or_yaml(written: str) -> None:
    assert one({"operation": "Create", "object": written}).target.name == "x"


@rows.each(
    ("operation", "key", "text", "body"),
    [
        ("MergePatch", "mergePatch", "data:\n  a: null\n", {"data": {"a": None}}),
        ("JSONPatch", "jsonPatch", '[{"op": "remove", "path": "/a"}]', [{"op": "remove", "path": "/a"}]),
    ],
)
def test_a_patch_may_be_a_text(operation: str, key: str, text: str, body: object) -> None:
    assert one({"operation": operation, **POD, key: text}).body == body


def test_a_name_may_be_left_to_the_server() -> None:
    body = {**CONFIG_MAP, "metadata": {"generateName": "x-", "namespace": "default"}}
    assert one({"operation": "Create", "object": body}).target.name == ""


DELETE_A, DELETE_B = (json.dumps({"operation": "Delete", "kind": "Pod", "name": name}) for name in "ab")
STREAMS = {
    "json-lines": f"{DELETE_A}\n{DELETE_B}\n",
    "json-glued": DELETE_A + DELETE_B,
    "yaml": "operation: Delete\nkind: Pod\nname: a\n---\noperation: Delete\nkind: Pod\nname: b\n",
    "yaml-with-empty-documents": (
        "---\n---\n{operation: Delete, kind: Pod, name: a}\n---\n# nothing\n---\n"
        "operation: Delete\nkind: Pod\nname: b\n---\n"
    ),
}


@rows.each("text", STREAMS.values(), ids=STREAMS)
def test_a_stream_of_documents_is_read_in_its_order(text: str) -> None:
    operations = parse(text)
    assert [(op.origin.index, op.target.name) for op in operations] == [(0, "a"), (1, "b")]


@rows.each("text", ["", " \n\t\n", "---\n", "# a comment\n"])
def test_nothing_is_not_an_operation(text: str) -> None:
    assert parse(text) == ()


def test_octal_modes_and_clock_times_mean_what_they_mean_to_kubectl() -> None:
    text = (
        "operation: MergePatch\nkind: Pod\nname: p\n"
        "mergePatch: {mode: 0644, at: 12:30, big: 1e3, day: 2020-01-01}"
    )
    (operation,) = parse(text)
    assert isinstance(operation, Patch)
    assert operation.body == {"mode": 0o644, "at": "12:30", "big": 1000, "day": "2020-01-01"}


@rows.each(
    ("document", "unset"),
    [
        (
            {"operation": "Delete", **POD},
            {"apiVersion": None, "namespace": None, "ignoreMissingObject": None},
        ),
        ({"operation": "MergePatch", **POD, "mergePatch": {"a": None}}, {"subresource": None}),
        ({"operation": "Apply", "object": CONFIG_MAP}, {"fieldManager": None, "force": None}),
        ({"operation": "CreateOrUpdate", "object": CONFIG_MAP}, {"namespace": None, "jqFilter": None}),
        (
            {"operation": "JSONPatch", **POD, "jsonPatch": [{"op": "add", "path": "/a", "value": None}]},
            {"jsonPatch": [{"op": "add", "path": "/a", "value": None, "from": None}]},
        ),
        (
            {"operation": "Create", "object": {**CONFIG_MAP, "metadata": {"name": "x"}}},
            {"object": {**CONFIG_MAP, "metadata": {"name": "x", "namespace": None, "labels": None}}},
        ),
    ],
    ids=["Delete", "MergePatch", "Apply", "a key of others", "JSONPatch", "Create"],
)
def test_null_in_an_optional_field_counts_as_absent(document: dict[str, Any], unset: dict[str, Any]) -> None:
    without = {key: value for key, value in document.items() if unset.get(key, value) is not None}
    assert one({**document, **unset}) == one(without)


@rows.each(
    ("document", "said"),
    [
        (
            {"operation": "DeleteInBackground", **POD, "jqFilter": "."},
            "the key 'jqFilter' is not known here; it is for JQPatch",
        ),
        (
            {"operation": "Create", "object": CONFIG_MAP, "subresorce": "status"},
            "the key 'subresorce' is not known here; did you mean 'subresource'?",
        ),
    ],
    ids=["of-another-operation", "unknown"],
)
def test_a_key_that_has_no_effect_is_named(document: dict[str, Any], said: str) -> None:
    assert one(document).origin.ignored == (said,)


REFUSED = {
    "unknown-operation": (
        {"operation": "Creat"},
        ", operation: 'Creat' is not known; did you mean 'Create'?",
    ),
    "no-operation": ({"object": CONFIG_MAP}, ": the key 'operation' is missing; write one of Create, "),
    "operation-is-no-text": ({"operation": 5}, ", operation: 5 is not known; known are Apply, "),
    "misspelt-key": (
        {"operation": "Create", "objekt": {}},
        " (Create), the key 'object' is missing; the key 'objekt' is not known here; did you mean 'object'?",
    ),
    "null-in-a-required-field": (
        {"operation": "Delete", "kind": "Pod", "name": None},
        " (Delete), name: null",
    ),
    "no-object": ({"operation": "Create"}, " (Create), the key 'object' is missing"),
    "no-kind": ({"operation": "Delete", "name": "x"}, " (Delete), the key 'kind' is missing"),
    "object-without-kind": (
        {"operation": "Create", "object": {"apiVersion": "v1", "metadata": {"name": "x"}}},
        " (Create), object: the key 'kind' is missing",
    ),
    "object-without-name": (
        {"operation": "CreateOrUpdate", "object": {**CONFIG_MAP, "metadata": {"generateName": "x"}}},
        " (CreateOrUpdate), object.metadata: the key 'name' is missing",
    ),
    "applied-object-without-name": (
        {"operation": "Apply", "object": {**CONFIG_MAP, "metadata": {}}},
        " (Apply), object.metadata: the key 'name' is missing",
    ),
    "unquoted-name": (
        {"operation": "Create", "object": {**CONFIG_MAP, "metadata": {"name": 5}}},
        " (Create), object.metadata.name: 5 is not a text; put it in quotes",
    ),
    "impossible-name": (
        {"operation": "Delete", "kind": "Pod", "name": "../x"},
        " (Delete), name: '../x' is not a name that an object of Kubernetes can have",
    ),
    "impossible-api-version": (
        {"operation": "Delete", **POD, "apiVersion": "Apps/V1"},
        " (Delete), apiVersion: 'Apps/V1' is not an apiVersion; write one such as v1 or apps/v1",
    ),
    "flag-as-text": (
        {"operation": "MergePatch", **POD, "mergePatch": {}, "ignoreMissingObject": "yes"},
        ' (MergePatch), ignoreMissingObject: "yes" is not true or false',
    ),
    "item-without-value": (
        {
            "operation": "JSONPatch",
            **POD,
            "jsonPatch": [{"op": "remove", "path": "/a"}, {"op": "add", "path": "/a"}],
        },
        " (JSONPatch), jsonPatch[1]: the key 'value' is missing",
    ),
    "item-without-from": (
        {"operation": "JSONPatch", **POD, "jsonPatch": [{"op": "move", "path": "/a"}]},
        " (JSONPatch), jsonPatch[0]: the key 'from' is missing",
    ),
    "item-without-op": (
        {"operation": "JSONPatch", **POD, "jsonPatch": [{"path": "/a"}]},
        " (JSONPatch), jsonPatch[0]: the key 'op' is missing",
    ),
    "unknown-op": (
        {"operation": "JSONPatch", **POD, "jsonPatch": [{"op": "delete", "path": "/a"}]},
        ' (JSONPatch), jsonPatch[0].op: "delete" is not known here; known are add, copy, move, remove, ',
    ),
    "no-pointer": (
        {"operation": "JSONPatch", **POD, "jsonPatch": [{"op": "remove", "path": "a"}]},
        " (JSONPatch), jsonPatch[0].path: 'a' is not a JSON pointer: a path must begin with '/'",
    ),
    "bad-escape": (
        {"operation": "JSONPatch", **POD, "jsonPatch": [{"op": "remove", "path": "/a~b"}]},
        " (JSONPatch), jsonPatch[0].path: '/a~b' is not a JSON pointer: '~' in a path must be written '~0'",
    ),
    "no-jq": (
        {"operation": "JQPatch", **POD, "jqFilter": ".a["},
        " (JQPatch), jqFilter: syntax error, unexpected end of file at <top-level>, line 1, column 3",
    ),
    "text-without-an-object": (
        {"operation": "Create", "object": "a: 1\n---\nb: 2"},
        ", object: it holds 2 documents; write one",
    ),
    "text-that-is-broken": (
        {"operation": "MergePatch", **POD, "mergePatch": '{"a":'},
        ", mergePatch: document [0]: invalid JSON in line 1, column 6: Expecting value",
    ),
    "integer-too-large": (
        {"operation": "MergePatch", **POD, "mergePatch": {"a": 10**30}},
        " (MergePatch), the API server cannot read it as JSON: Integer exceeds 64-bit range",
    ),
}


def test_a_wrong_document_is_refused_with_its_index_and_field() -> None:
    good = json.dumps({"operation": "Delete", **POD})
    told = [
        (name, message, refusal(f"{good}\n{json.dumps(document)}"))
        for name, (document, message) in REFUSED.items()
    ]
    place = "hook a.sh: KUBERNETES_PATCH_PATH, document [1]"
    assert [row for row in told if not row[2].startswith(place + row[1])] == []


@rows.each("text", ["[]", "5", '"x"', "just text"])
def test_a_document_that_is_not_a_mapping_is_refused(text: str) -> None:
    assert "document [0]: it is not a mapping; write one operation in each document" in refusal(text)


@rows.each(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": ', "document [1]: invalid JSON in line 2, column 7: Expecting value"),
        ("a: 1\n---\nb: [", "document [1]: it is neither JSON nor YAML: line 4, column 1"),
        ('{"a": 1, "a": 2}', "document [0]: the key 'a' occurs twice"),
        ("a: 1\n---\nb: 1\nb: 2", "document [1]: line 4, column 1: the key 'b' occurs twice"),
        ("1: x", "document [0]: line 1, column 1: the key '1' is not a text; quote it"),
        ("a: .inf", "document [0]: line 1, column 4: .inf has no JSON form"),
        ("a: !!binary aGVsbG8", "document [0]: line 1, column 4: !!binary takes the base64 form"),
        ("a: &x [*x]", "document [0]: line 1, column 4: an anchor contains an alias to itself"),
        ("a: " + "[" * 100_000, "nest deeper than 100 levels"),
        ("[" * 100_000, "document [0]: mappings and lists nest deeper than 100 levels"),
    ],
    ids=["json", "yaml", "twice", "twice-yaml", "number-key", "inf", "bytes", "cycle", "deep", "deep-json"],
)
def test_a_text_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    assert message in refusal(text)


def test_aliases_that_would_fill_the_memory_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "document [0]: line 5, column 5: aliases expand to more than 250000 nodes" in refusal(
        "\n".join(lines)
    )


@rows.each(
    "document",
    [
        {"operation": "Create", "object": "s3cret"},
        {"operation": "Create", "object": ["s3cret"]},
        {"operation": "MergePatch", **POD, "mergePatch": "s3cret"},
        {"operation": "JSONPatch", **POD, "jsonPatch": {"a": "s3cret"}},
        {"operation": "JSONPatch", **POD, "jsonPatch": ["s3cret"]},
        {"operation": "Create", "object": {**CONFIG_MAP, "kind": "", "data": {"a": "s3cret"}}},
        {"operation": "Create", "object": '{"data": "s3cret'},
        {"operation": "Create", "object": {**CONFIG_MAP, "metadata": "s3cret"}},
    ],
    ids=range(8),
)
def test_messages_do_not_show_what_objects_hold(document: dict[str, Any]) -> None:
    assert "s3cret" not in refusal(json.dumps(document))


def test_only_patches_of_the_status_are_for_a_failed_hook() -> None:
    patch = {"operation": "MergePatch", **POD, "mergePatch": {}}
    documents = [
        {**patch, "ignoreHookError": True, "subresource": "status"},
        {**patch, "ignoreHookError": True},
        {**patch, "subresource": "status"},
        {"operation": "JQPatch", **POD, "jqFilter": ".", "ignoreHookError": True, "subresource": "/status"},
        {"operation": "Delete", **POD},
    ]
    operations = parse("\n".join(map(json.dumps, documents)))
    chosen = object_operations.for_failed_hook(operations)
    assert [operation.origin.index for operation in chosen] == [0, 3]


@rows.each("operation", ["Create", "CreateOrUpdate", "CreateIfNotExists"])
def test_an_object_of_a_snapshot_is_created_without_what_the_api_server_owns(operation: str) -> None:
    owned = {
        "resourceVersion": "12",
        "uid": "u1",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }
    metadata = {"name": "x", "namespace": "shop", "labels": {"a": "b"}}
    written = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, **owned}}
    (read,) = object_operations.parse(json.dumps({"operation": operation, "object": written}), "hook")
    assert isinstance(read, object_operations.Create)
    assert read.body == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
