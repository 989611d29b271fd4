"""A patch that the API server refuses is told with the entry and the field, as the hook wrote them."""

import json
from typing import Any

from addon_operator.hook_contract.outputs import object_operations
from addon_operator.kube import api_errors, paths
from addon_operator.kube.objects import patch_refusals
from tests.support import rows

TARGET = {"kind": "Deployment", "name": "web", "namespace": "default"}
GO = (
    'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal {} into Go struct '
    "field {} of type {}"
)
NOTHING = "the server rejected our request due to an error in our request"


def operation(name: str, field: str, body: object) -> object_operations.Operation:
    document = {"operation": name, field: body, **({} if field == "object" else TARGET)}
    (found,) = object_operations.parse(json.dumps(document), "hook a.sh")
    return found


def patched(*entries: dict[str, Any]) -> object_operations.Operation:
    return operation("JSONPatch", "jsonPatch", list(entries))


def refusal(message: str, status: int = 422) -> api_errors.ApiError:
    target = paths.Target("patch", "/apis/apps/v1/namespaces/default/deployments/web")
    body = json.dumps({"reason": "Invalid", "message": message}).encode()
    return api_errors.from_answer(target, status, body)


REPLICAS = {"op": "replace", "path": "/spec/replicas", "value": "three"}
LABEL = {"op": "add", "path": "/metadata/labels/a~1b", "value": 3}
TEMPLATE = {"op": "add", "path": "/spec/template", "value": {"spec": {"containers": [{}, {"image": 3}]}}}
IMAGE = {"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": 3}
TESTED = {"op": "test", "path": "/spec/replicas", "value": "three"}
BODY = {"spec": {"template": {"spec": {"containers": [{"image": "a"}, {"image": 3}]}}}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1", "b": 2}}


def merged(body: object) -> object_operations.Operation:
    return operation("MergePatch", "mergePatch", body)


OF_IMAGE = ("number", "Container.spec.template.spec.containers.image", "string")
SECOND_IMAGE = "spec.template.spec.containers[1].image must be a string, not a number"
OF_DATA = ("number 3", "ConfigMap.data", "string")


@rows.each(
    ("written", "go", "said"),
    [
        (
            patched(LABEL, REPLICAS, TESTED),
            ("string", "DeploymentSpec.spec.replicas", "int32"),
            "jsonPatch[1] (replace /spec/replicas): spec.replicas must be an integer, not a string",
        ),
        (
            patched(REPLICAS, LABEL),
            ("number", "ObjectMeta.metadata.labels", "string"),
            "jsonPatch[1] (add /metadata/labels/a~1b): metadata.labels.a/b must be a string, not a number",
        ),
        (patched(REPLICAS, TEMPLATE), OF_IMAGE, f"jsonPatch[1] (add /spec/template): {SECOND_IMAGE}"),
        (
            patched(TEMPLATE, IMAGE),
            OF_IMAGE,
            f"jsonPatch[1] (replace /spec/template/spec/containers/1/image): {SECOND_IMAGE}",
        ),
        (merged(BODY), OF_IMAGE, SECOND_IMAGE),
        (
            merged({"spec": "x"}),
            ("string", "Deployment.spec", "v1.DeploymentSpec"),
            "spec must be a mapping, not a string",
        ),
        (
            merged({"spec": {"x": True}}),
            ("bool", "Deployment.spec.x", "[]v1.Container"),
            "spec.x must be a list, not a boolean",
        ),
        (operation("Create", "object", CONFIG_MAP), OF_DATA, "data.b must be a string, not a number"),
        (operation("JQPatch", "jqFilter", ".x"), OF_DATA, "data must be a string, not a number"),
    ],
)
def test_a_wrong_type_is_told_with_the_place_that_the_hook_wrote(
    written: object_operations.Operation, go: tuple[str, str, str], said: str
) -> None:
    told = patch_refusals.worded(refusal(GO.format(*go)), written)
    assert told.message == said
    assert told.without_values.endswith(f"(422 Invalid): {said}")


def test_another_rule_is_told_with_the_entry_that_broke_it() -> None:
    said = 'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -3: must be greater than 0'
    told = patch_refusals.worded(refusal(said), patched(LABEL, REPLICAS))
    assert told.message == f"jsonPatch[1] (replace /spec/replicas): {said}"
    assert "-3" not in told.without_values
    assert patch_refusals.worded(refusal(said), patched(LABEL)).message == said


@rows.each(
    ("entry", "said"),
    [
        (
            IMAGE,
            "(replace /spec/template/spec/containers/1/image): it does not apply: the object has no such",
        ),
        (TESTED, "(test /spec/replicas): it does not apply: the object has another value there"),
    ],
)
def test_of_a_patch_that_does_not_apply_the_entry_is_told(entry: dict[str, Any], said: str) -> None:
    written, error = patched(REPLICAS | {"value": 2}, entry), refusal(NOTHING)
    assert patch_refusals.is_about_patch(error, written)
    told = patch_refusals.not_applied(error, written, {"spec": {"replicas": 1}})
    assert told.message.startswith(f"jsonPatch[1] {said}")


def test_a_patch_that_applies_by_now_leaves_the_error_as_it_is() -> None:
    error, written = refusal(NOTHING), patched(REPLICAS)
    assert patch_refusals.not_applied(error, written, {"spec": {"replicas": 1}}) is error


@rows.each("message", ["too busy", "cannot unmarshal string into Go value of type v1.Pod", ""])
def test_other_messages_stay_as_they_are(message: str) -> None:
    error = refusal(message, 500)
    assert patch_refusals.worded(error, patched(REPLICAS)) is error
    assert not patch_refusals.is_about_patch(error, patched(REPLICAS))
