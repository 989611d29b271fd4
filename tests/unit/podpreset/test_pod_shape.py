"""Pods that were written by hand."""

from typing import Any

from addon_operator.podpreset import pod_shape
from tests.support import rows


def pod(**container: object) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "app", "image": "i", **container}]}}


@rows.each(
    "given",
    [
        pod(),
        pod(env=[{"name": "1 a", "value": ""}], envFrom=[{"prefix": "2 ", "configMapRef": {"name": "c"}}]),
        pod(command=["sh", "-c"], args=[""], volumeMounts=[{"name": "v", "mountPath": "/v"}], unknown=7),
        {"metadata": None, "spec": {"initContainers": None, "containers": [{"name": "a"}]}},
    ],
    ids=["least", "names that only pods may use", "lists", "nulls"],
)
def test_nothing_is_wrong_with_a_pod_that_the_api_server_takes(given: dict[str, Any]) -> None:
    assert list(pod_shape.problems(given)) == []


@rows.each(
    ("given", "problem"),
    [
        ({}, "spec: is required"),
        ({"spec": []}, "spec: is required"),
        ({"spec": "x"}, "spec: must be a mapping"),
        ({"spec": {"containers": {}}}, "spec.containers: must be a list"),
        ({"spec": {"containers": []}}, "spec.containers: is required"),
        ({"spec": {"containers": [{}]}}, "spec.containers[0].name: is required"),
        ({"metadata": {"labels": {"a": 1}}, **pod()}, "metadata.labels[a]: must be a text"),
        (pod(env=[{"name": "A", "value": 1}]), "spec.containers[0].env[0].value: must be a text"),
        (pod(args=["a", 1]), "spec.containers[0].args[1]: must be a text"),
        (pod(env="A=1"), "spec.containers[0].env: must be a list"),
        (pod(volumeMounts=[{"name": "v"}]), "spec.containers[0].volumeMounts[0].mountPath: is required"),
    ],
    ids=str,
)
def test_the_first_thing_that_is_wrong_is_named_with_its_field(given: dict[str, Any], problem: str) -> None:
    assert next(pod_shape.problems(given)) == problem
