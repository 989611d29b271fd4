"""Changes of objects and metrics of the library for hooks in Python, read as the operator reads them."""

import json
from typing import Any

import pytest

from addon_operator import hook
from addon_operator.hook_contract.outputs import metric_operations, object_operations, object_schemas
from tests.support import rows

CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"},
}  # fmt: skip
TARGET = {"kind": "Pod", "name": "x", "namespace": "shop"}


def call_all(kubernetes: hook.Kubernetes) -> None:
    kubernetes.create(CONFIG_MAP)
    kubernetes.create_or_update(CONFIG_MAP, subresource="status")
    kubernetes.create_if_not_exists(json.dumps(CONFIG_MAP))
    kubernetes.apply(CONFIG_MAP)
    kubernetes.apply(CONFIG_MAP, force=True, field_manager="me", subresource="status")
    kubernetes.merge_patch("Pod", "x", {"metadata": {"labels": None}}, namespace="shop")
    kubernetes.merge_patch(
        "Pod", "x", "status: {ok: false}", namespace="shop", subresource="status", ignore_hook_error=True
    )
    kubernetes.json_patch("Pod", "x", [{"op": "remove", "path": "/a"}], namespace="shop", api_version="v1")
    kubernetes.json_patch("Pod", "x", '[{"op": "remove", "path": "/a"}]', namespace="shop")
    kubernetes.jq_patch("Pod", "x", ".a = 1", namespace="shop", ignore_missing_object=True)
    kubernetes.delete("Node", "x")
    kubernetes.delete_in_background("Pod", "x", namespace="shop", ignore_missing_object=False)
    kubernetes.delete_non_cascading("Pod", "x", namespace="shop", subresource="scale")


OPERATIONS: list[dict[str, Any]] = [
    {"operation": "Create", "object": CONFIG_MAP},
    {"operation": "CreateOrUpdate", "object": CONFIG_MAP, "subresource": "status"},
    {"operation": "CreateIfNotExists", "object": json.dumps(CONFIG_MAP)},
    {"operation": "Apply", "object": CONFIG_MAP},
    {"operation": "Apply", "object": CONFIG_MAP, "fieldManager": "me", "force": True,
     "subresource": "status"},
    {"operation": "MergePatch", **TARGET, "mergePatch": {"metadata": {"labels": None}}},
    {"operation": "MergePatch", **TARGET, "mergePatch": "status: {ok: false}", "subresource": "status",
     "ignoreHookError": True},
    {"operation": "JSONPatch", **TARGET, "jsonPatch": [{"op": "remove", "path": "/a"}], "apiVersion": "v1"},
    {"operation": "JSONPatch", **TARGET, "jsonPatch": '[{"op": "remove", "path": "/a"}]'},
    {"operation": "JQPatch", **TARGET, "jqFilter": ".a = 1", "ignoreMissingObject": True},
    {"operation": "Delete", "kind": "Node", "name": "x"},
    {"operation": "DeleteInBackground", **TARGET, "ignoreMissingObject": False},
    {"operation": "DeleteNonCascading", **TARGET, "subresource": "scale"},
]  # fmt: skip


def test_each_change_of_an_object_is_one_document() -> None:
    kubernetes = hook.Kubernetes()
    call_all(kubernetes)
    assert kubernetes.operations == OPERATIONS


def test_the_operator_takes_all_changes_and_there_is_a_method_for_each() -> None:
    run = hook.Run()
    call_all(run.kubernetes)
    text = run.outputs()["KUBERNETES_PATCH_PATH"]
    assert len(object_operations.parse(text, "the hook")) == len(OPERATIONS)
    assert {operation["operation"] for operation in OPERATIONS} == set(object_schemas.BY_OPERATION)


def test_only_patches_that_ask_for_it_survive_a_failure() -> None:
    run = hook.Run()
    call_all(run.kubernetes)
    ((variable, text),) = run.outputs_of_failure().items()
    assert (variable, json.loads(text)) == ("KUBERNETES_PATCH_PATH", OPERATIONS[6])


def test_a_later_change_of_an_object_changes_no_operation() -> None:
    kubernetes = hook.Kubernetes()
    body = {"kind": "A", "metadata": {"name": "x"}}
    kubernetes.create(body)
    body["kind"] = "B"
    assert kubernetes.operations[0]["object"] == {"kind": "A", "metadata": {"name": "x"}}


def test_an_object_that_is_not_json_is_refused_with_its_operation() -> None:
    with pytest.raises(hook.HookError, match=r"^Apply: this is not JSON: "):
        hook.Kubernetes().apply({"data": {1, 2}})


def test_each_operation_on_a_metric_is_one_document_that_the_operator_takes() -> None:
    run = hook.Run()
    run.metrics.add("orders_total")
    run.metrics.add("orders_total", 2, {"shop": "north"}, group="g")
    run.metrics.set("orders_open", -1.5, {"number": 7})  # type: ignore[dict-item] # a text is made of it
    run.metrics.observe("order_seconds", 4.2, buckets=[1, 2.5])
    run.metrics.observe("order_seconds", 1)
    run.metrics.expire("old")
    assert run.metrics.operations == [
        {"name": "orders_total", "action": "add", "value": 1},
        {"name": "orders_total", "action": "add", "value": 2, "labels": {"shop": "north"}, "group": "g"},
        {"name": "orders_open", "action": "set", "value": -1.5, "labels": {"number": "7"}},
        {"name": "order_seconds", "action": "observe", "value": 4.2, "buckets": [1, 2.5]},
        {"name": "order_seconds", "action": "observe", "value": 1},
        {"group": "old", "action": "expire"},
    ]
    assert len(metric_operations.parse(run.outputs()["METRICS_PATH"], "the hook")) == 6


@rows.each("value", [float("nan"), float("inf")], ids=repr)
def test_a_metric_without_a_number_is_refused_with_its_name(value: float) -> None:
    metrics = hook.Metrics()
    with pytest.raises(hook.HookError, match=r"^metric orders: this is not JSON"):
        metrics.set("orders", value)
    assert metrics.operations == []
