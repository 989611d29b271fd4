"""The list of what is not ours: what an object keeps when the next manifest is written, row by row."""

from typing import Any

import pytest

from addon_operator.modules.drift import corrections, field_drift, not_ours
from tests.support import rows

Object = dict[str, Any]
AROUND = not_ours.Surroundings(
    "x", frozenset({("x", "Deployment", "a"), ("x", "Deployment", "b")}), frozenset({"app"})
)
WORKLOADS = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: a}
spec: {scaleTargetRef: {name: a}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: b, namespace: z}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: b}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          initContainers: [{name: kubectl, image: "registry:5000/tools/kubectl@sha256:0"}]
          containers: [{name: main, image: "registry:5000/team/writer:1.2", command: [/bin/sync, -a]}]
"""


def entry(manager: str, fields: Object, operation: str = "Update", subresource: str = "") -> Object:
    return {"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields}


def body(kind: str, *entries: Object, **fields: Any) -> Object:  # noqa: ANN401 - of the object
    return {"kind": kind, "metadata": {"name": "a", "managedFields": list(entries)}, **fields}


def owned(manager: str, *path: str, operation: str = "Update") -> Object:
    fields: Object = {}
    for step in reversed(path):
        fields = {f"f:{step}": fields}
    return entry(manager, fields, operation)


def replicas(count: int | None, name: str = "a") -> Object:
    made = body("Deployment", spec={} if count is None else {"replicas": count})
    made["metadata"]["name"] = name
    return made


def claim(size: str) -> Object:
    return body("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": size}}})


def account(*names: str) -> Object:
    writer = owned("helm", "imagePullSecrets")
    return body("ServiceAccount", writer, imagePullSecrets=[{"name": each} for each in names])


def data(value: str, *entries: Object) -> Object:
    return body("ConfigMap", *entries, data={"k": value})


def kept(before: Object | None, after: Object, live: Object, said: Object | None = None) -> list[Any]:
    found = corrections.live_values(before, said or before, after, live, AROUND)
    return [each.live for each in found if each.live != each.expected]


BY_APP, APPLIED = owned("app", "data", "k"), owned("gitops", "data", "k", operation="Apply")
BY_HELM, BY_HAND = owned("helm", "data", "k", operation="Apply"), owned("kubectl-edit", "data", "k")
AGGREGATED: Object = {"aggregationRule": {"clusterRoleSelectors": []}}


@rows.each(
    ("before", "after", "live", "expected"),
    [
        pytest.param(replicas(2), replicas(2), replicas(5), [5], id="scaled"),
        pytest.param(replicas(2), replicas(2), replicas(0), [0], id="scaled to nothing"),
        pytest.param(replicas(2), replicas(3), replicas(5), [5], id="scaled, and the chart changes"),
        pytest.param(replicas(2), replicas(None), replicas(2), [2], id="handed over"),
        pytest.param(replicas(2, "c"), replicas(2, "c"), replicas(5, "c"), [], id="nobody scales it"),
        pytest.param(replicas(2, "c"), replicas(None, "c"), replicas(2, "c"), [], id="nobody takes it"),
        pytest.param(claim("10Gi"), claim("10Gi"), claim("20Gi"), ["20Gi"], id="a claim that grew"),
        pytest.param(claim("10Gi"), claim("30Gi"), claim("20Gi"), [], id="a chart that wants more"),
        pytest.param(claim("1Gi"), claim("1Gi"), claim("1024Mi"), [], id="the same size"),
        pytest.param(
            account("own"),
            account("own"),
            account("platform", "own"),
            [[{"name": "platform"}, {"name": "own"}]],
            id="a pull secret",
        ),
        pytest.param(
            account("own"),
            account("other"),
            account("own", "platform"),
            [[{"name": "platform"}, {"name": "other"}]],
            id="a pull secret, and the chart changes",
        ),
        pytest.param(
            account("own"),
            body("ServiceAccount"),
            account("own", "platform"),
            [[{"name": "platform"}]],
            id="a pull secret, and the chart drops its own",
        ),
        pytest.param(account("own"), account("other"), account("own"), [], id="no pull secret"),
        pytest.param(
            body("ClusterRole", **AGGREGATED, rules=[]),
            body("ClusterRole", **AGGREGATED, rules=[]),
            body("ClusterRole", **AGGREGATED, rules=[{"verbs": ["get"]}]),
            [[{"verbs": ["get"]}]],
            id="rules that are gathered",
        ),
        pytest.param(data("a"), data("a"), data("b", BY_APP), ["b"], id="by a program of the release"),
        pytest.param(data("a"), data("a"), data("b", BY_HAND), [], id="by hand"),
        pytest.param(data("a"), data("a"), data("b", APPLIED), ["b"], id="applied"),
        pytest.param(data("a"), data("c"), data("b", APPLIED), [], id="applied, and the chart changes"),
        pytest.param(None, data("a"), data("b", APPLIED), [], id="applied before there was a release"),
        pytest.param(data("a"), data("a"), data("b", BY_HELM), [], id="applied by Helm"),
    ],
)
def test_what_is_not_ours_keeps_its_live_value(
    before: Object | None, after: Object, live: Object, expected: list[Any]
) -> None:
    assert kept(before, after, live) == expected
    if before == after:
        drifted = field_drift.differences(after, live, around=AROUND)
        assert not (expected and drifted), "what is kept is no drift"


def test_what_the_chart_said_counts_and_not_what_the_record_holds() -> None:
    live = data("b", APPLIED)
    assert kept(data("b"), data("a"), live, said=data("a")) == ["b"]
    (taken,) = corrections.live_values(data("b"), data("c"), data("a"), live, AROUND)
    assert (taken.live, taken.manager) == ("a", "gitops")


def test_autoscalers_and_programs_are_those_of_the_manifest() -> None:
    around = not_ours.surroundings(WORKLOADS, "x")
    assert around.scaled == {("x", "Deployment", "a"), ("z", "StatefulSet", "b")}
    assert around.programs == {"main", "writer", "sync"}
