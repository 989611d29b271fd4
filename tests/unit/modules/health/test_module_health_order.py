"""What tables cut at the end begins with why, whoever says so: the cause, the object, the rest."""

import itertools
from typing import Any

from addon_operator.modules.health import health_rules, module_health, pod_causes, resource_health
from addon_operator.values.schema import cel_rules
from tests.support import rows

WHY = "quota is exceeded"
Object = dict[str, Any]


def resource(kind: str, status: Object | None = None, api: str = "apps/v1", **spec: object) -> Object:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": spec,
        "status": status or {},
    }


def condition(kind: str, status: str = "True", **more: str) -> Object:
    return {"conditions": [{"type": kind, "status": status, "message": WHY, **more}]}


PENDING = {"phase": "Pending", **condition("PodScheduled", "False", reason="Unschedulable")}
RESOURCES: dict[str, tuple[Object, str]] = {
    "a Deployment that may not create pods": (
        resource("Deployment", condition("ReplicaFailure"), replicas=2),
        WHY,
    ),
    "a Deployment": (resource("Deployment", replicas=2), "0 of 2 pods created"),
    "a ReplicaSet": (resource("ReplicaSet", condition("ReplicaFailure")), WHY),
    "a StatefulSet": (resource("StatefulSet"), "0 of 1 pods created"),
    "a DaemonSet": (resource("DaemonSet"), "its controller has not seen it yet"),
    "a Pod": (resource("Pod", PENDING, "v1"), WHY),
    "a Job": (resource("Job", condition("Failed"), "batch/v1"), WHY),
    "a claim": (resource("PersistentVolumeClaim", {"phase": "Pending"}, "v1"), "has no volume yet"),
    "a Service": (resource("Service", None, "v1", type="LoadBalancer"), "has no cluster IP yet"),
    "a definition": (
        resource("CustomResourceDefinition", condition("NamesAccepted", "False"), "apiextensions.k8s.io/v1"),
        WHY,
    ),
    "another kind": (resource("Door", condition("Ready", "False"), "example.com/v1"), WHY),
    "a kind that is stalled": (resource("Door", condition("Stalled"), "example.com/v1"), WHY),
}
CAUSES = {
    "nothing": pod_causes.UNKNOWN,
    "a pod": pod_causes.Cause('ImagePullBackOff "web:1" (pod web-1)'),
    "an Event": pod_causes.Cause("FailedMount: no such disk", is_event=True),
}


def told(found: module_health.ObservedHealth, now: float = 1.0) -> str:
    return module_health.module_health([found], now).message


@rows.each("case", RESOURCES)
def test_how_each_kind_is_comes_before_the_object(case: str) -> None:
    found, why = RESOURCES[case]
    health = resource_health.health_of(found, 1.0, has_status=True)
    assert health.state is not resource_health.HealthState.HEALTHY
    for name, cause in CAUSES.items():
        text = told(module_health.ObservedHealth("Kind web", health, 0.0, cause))
        first = why if name == "nothing" else cause.text
        assert text.startswith(first), (name, text)
        assert ": Kind web" in text
        late = told(module_health.ObservedHealth("Kind web", health, 0.0, cause), 900.0)
        is_progressing = health.state is resource_health.HealthState.PROGRESSING
        assert late == (f"{text}, for more than 10 min" if is_progressing else text)


@rows.each("cause", ["nothing", "an Event"])
def test_what_a_rule_says_comes_before_the_object_and_what_may_be_about_something_else(cause: str) -> None:
    evaluator = cel_rules.CelEvaluator()
    for healthy, failed in itertools.product(["self.spec.a == 1", "self.spec.b"], ["", "self.spec.a == 2"]):
        state, message = health_rules.judged(healthy, failed, {"spec": {"a": 2, "b": "x"}}, evaluator)
        health = resource_health.ResourceHealth(state, message)
        text = told(module_health.ObservedHealth("Door web", health, 0.0, CAUSES[cause], is_by_rule=True))
        assert text.startswith(f"{message}: Door web"), text
