"""How resources are: the cases of kstatus, each by the behaviour that it shows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.modules.health import resource_health
from addon_operator.modules.health.resource_health import HealthState, health_of
from tests.support import rows
from tests.unit import costs

NOW = 1_700_000_000.0
JUST_NOW, LONG_AGO = "2023-11-14T22:13:10Z", "2023-11-14T22:10:00Z"
HEALTHY, PROGRESSING, FAILED = HealthState.HEALTHY, HealthState.PROGRESSING, HealthState.FAILED
SEEN = {"generation": 1}


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def resource(kind: str, spec: object = None, status: object = None, **metadata: object) -> dict[str, Any]:
    """A resource as the API server gives it; ``kind`` with its group before it."""
    group, _, name = kind.rpartition("/")
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": name, "metadata": metadata, "spec": spec, "status": status}


def deployment(conditions: str, spec: dict[str, Any] | None = None, /, **counts: int) -> dict[str, Any]:
    """``conditions``: of ``a``vailable, ``p``rogressed, and the ``d``eadline exceeded."""
    each = {
        "a": condition("Available"),
        "p": condition("Progressing", reason="NewReplicaSetAvailable"),
        "d": condition("Progressing", "False", "ProgressDeadlineExceeded", "web-1 has timed out"),
    }
    status = {"observedGeneration": 1, "conditions": [each[letter] for letter in conditions], **counts}
    return resource("apps/Deployment", {"progressDeadlineSeconds": 600, **(spec or {})}, status, **SEEN)


def pods(full: int, **less: int) -> dict[str, int]:
    keys = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {key: less.get(key, full) for key in keys}


def stateful(spec: dict[str, Any] | None = None, /, **status: object) -> dict[str, Any]:
    both = {"observedGeneration": 1, "currentRevision": "a", "updateRevision": "a", **status}
    return resource("apps/StatefulSet", spec, both, **SEEN)


def daemons(**status: int) -> dict[str, Any]:
    keys = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    full = {"desiredNumberScheduled": 4, "observedGeneration": 1, **dict.fromkeys(keys, 4)}
    return resource("apps/DaemonSet", {}, full | status, **SEEN)


def replica_set(*conditions: object, **status: int) -> dict[str, Any]:
    keys = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    full = {"observedGeneration": 1, "conditions": list(conditions), **dict.fromkeys(keys, 2)}
    return resource("apps/ReplicaSet", {"replicas": 2}, full | status, **SEEN)


def pod(phase: str, *conditions: object, waiting: str = "", **metadata: object) -> dict[str, Any]:
    container = {"name": "app", "state": {"waiting": {"reason": waiting}}} if waiting else {"name": "app"}
    status = {"phase": phase, "conditions": list(conditions), "containerStatuses": [container]}
    return resource("Pod", {}, status, **metadata)


def job(*conditions: object, started: bool = True, **status: object) -> dict[str, Any]:
    begun = {"startTime": LONG_AGO} if started else {}
    return resource("batch/Job", {}, {"conditions": list(conditions), **begun, **status})


def definition(*conditions: object) -> dict[str, Any]:
    return resource("apiextensions.k8s.io/CustomResourceDefinition", {}, {"conditions": list(conditions)})


UNSCHEDULABLE = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes have enough memory")

CASES: dict[str, tuple[dict[str, Any], HealthState, str]] = {
    "what is deleted": (
        resource("ConfigMap", deletionTimestamp=JUST_NOW, finalizers=["a/b"]),
        PROGRESSING,
        "is being deleted, waits for a/b",
    ),
    "a change that the controller has not seen": (
        resource("x.io/Any", {}, {"observedGeneration": 1}, generation=2),
        PROGRESSING,
        "its controller has not seen the last change yet (generation 2)",
    ),
    "Reconciling": (
        resource("x.io/Any", {}, {"conditions": [condition("Reconciling", message="working")]}),
        PROGRESSING,
        "working",
    ),
    "Stalled": (
        resource("x.io/Any", {}, {"conditions": [condition("Stalled", message="no such image")]}),
        FAILED,
        "no such image",
    ),
    "not Stalled": (resource("x.io/Any", {}, {"conditions": [condition("Stalled", "False")]}), HEALTHY, ""),
    "Ready": (resource("x.io/Any", {}, {"conditions": [condition("Ready")]}), HEALTHY, ""),
    "not Ready": (
        resource("x.io/Any", {}, {"conditions": [condition("Ready", "False", message="waits")]}),
        PROGRESSING,
        "waits",
    ),
    "Ready is unknown": (
        resource("x.io/Any", {}, {"conditions": [condition("Ready", "Unknown")]}),
        PROGRESSING,
        "Ready is Unknown",
    ),
    "a kind without conditions": (resource("x.io/Any", {}, {"phase": "Odd"}), HEALTHY, ""),
    "a kind without a status": (resource("x.io/Any"), HEALTHY, ""),
    "a deployment without a status": (
        resource("apps/Deployment", {}, {}),
        PROGRESSING,
        "0 of 1 pods created",
    ),
    "a deployment that is rolled out": (deployment("ap", **pods(1)), HEALTHY, ""),
    "a deployment scaled to zero": (deployment("ap", {"replicas": 0}, **pods(0)), HEALTHY, ""),
    "a deployment that creates pods": (
        deployment("ap", {"replicas": 3}, **pods(3, replicas=1)),
        PROGRESSING,
        "1 of 3 pods created",
    ),
    "a deployment that updates pods": (
        deployment("ap", {"replicas": 3}, **pods(3, updatedReplicas=1)),
        PROGRESSING,
        "1 of 3 pods updated",
    ),
    "a deployment with one old pod": (
        deployment("ap", {"replicas": 1}, **pods(1, replicas=2)),
        PROGRESSING,
        "1 pod has yet to end",
    ),
    "a deployment with pods that are not available": (
        deployment("ap", {"replicas": 3}, **pods(3, availableReplicas=2)),
        PROGRESSING,
        "2 of 3 pods available",
    ),
    "a deployment with pods that are not ready": (
        deployment("ap", {"replicas": 3}, **pods(3, readyReplicas=2)),
        PROGRESSING,
        "2 of 3 pods ready",
    ),
    "a deployment that is not rolled out": (
        deployment("a", **pods(1)),
        PROGRESSING,
        "the rollout is not done",
    ),
    "a deployment without a deadline": (
        deployment("a", {"progressDeadlineSeconds": 2**31 - 1}, **pods(1)),
        HEALTHY,
        "",
    ),
    "a deployment that is not available": (
        deployment("p", **pods(1)),
        PROGRESSING,
        "too few pods are available",
    ),
    "a deployment past its deadline": (
        deployment("ad", **pods(1)),
        FAILED,
        "made no progress within its deadline",
    ),
    "a replica set that is complete": (replica_set(), HEALTHY, ""),
    "a replica set that cannot create pods": (
        replica_set(condition("ReplicaFailure", message="exceeded quota")),
        PROGRESSING,
        "exceeded quota",
    ),
    "a replica set without labels on pods": (
        replica_set(fullyLabeledReplicas=1),
        PROGRESSING,
        "1 of 2 pods labelled",
    ),
    "a replica set with pods to end": (replica_set(replicas=4), PROGRESSING, "2 pods have yet to end"),
    "a stateful set that is complete": (
        stateful({"replicas": 2}, replicas=2, readyReplicas=2, currentReplicas=2),
        HEALTHY,
        "",
    ),
    "a stateful set with pods that are not ready": (
        stateful({"replicas": 2}, replicas=2, readyReplicas=1, currentReplicas=2),
        PROGRESSING,
        "1 of 2 pods ready",
    ),
    "a stateful set that shrinks": (
        stateful({"replicas": 1}, replicas=2, readyReplicas=2),
        PROGRESSING,
        "1 pod has yet to end",
    ),
    "a stateful set whose pods somebody deletes": (
        stateful({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}),
        HEALTHY,
        "",
    ),
    "a stateful set whose pods somebody has yet to delete": (
        stateful({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, updateRevision="b"),
        HEALTHY,
        "pods of the last revision come when somebody deletes the others",
    ),
    "a stateful set whose partition is updated": (
        stateful(
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            replicas=3,
            readyReplicas=3,
            updatedReplicas=1,
            updateRevision="b",
        ),
        HEALTHY,
        "",
    ),
    "a stateful set whose partition is not updated": (
        stateful(
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 0}}},
            replicas=3,
            readyReplicas=3,
            updatedReplicas=2,
        ),
        PROGRESSING,
        "2 of 3 pods updated",
    ),
    "a stateful set with pods of an old revision": (
        stateful({"replicas": 1}, replicas=1, readyReplicas=1, currentReplicas=1, updateRevision="b"),
        PROGRESSING,
        "not all pods have the new revision",
    ),
    "a daemon set on all nodes": (daemons(), HEALTHY, ""),
    "a daemon set that nobody has seen": (
        resource("apps/DaemonSet", {}, {"desiredNumberScheduled": 0}),
        PROGRESSING,
        "its controller has not seen it yet",
    ),
    "a daemon set that is on too few nodes": (
        daemons(currentNumberScheduled=3),
        PROGRESSING,
        "3 of 4 pods created",
    ),
    "a daemon set that updates pods": (daemons(updatedNumberScheduled=1), PROGRESSING, "1 of 4 pods updated"),
    "a daemon set whose pods somebody deletes": (
        daemons(updatedNumberScheduled=1) | {"spec": {"updateStrategy": {"type": "OnDelete"}}},
        HEALTHY,
        "pods of the last revision come when somebody deletes the others",
    ),
    "a daemon set with pods that are not ready": (daemons(numberReady=0), PROGRESSING, "0 of 4 pods ready"),
    "a pod that is ready": (pod("Running", condition("Ready")), HEALTHY, ""),
    "a pod that is not ready": (
        pod("Running", condition("Ready", "False")),
        PROGRESSING,
        "runs and is not ready",
    ),
    "a pod in a crash loop": (
        pod("Running", condition("Ready", "False"), waiting="CrashLoopBackOff"),
        FAILED,
        "CrashLoopBackOff of app",
    ),
    "a pod that has done its work": (pod("Succeeded"), HEALTHY, ""),
    "a pod that has ended badly": (pod("Failed"), HEALTHY, ""),
    "a pod that is pending": (pod("Pending"), PROGRESSING, "is pending"),
    "a pod without a node, just now": (
        pod("Pending", UNSCHEDULABLE, creationTimestamp=JUST_NOW),
        PROGRESSING,
        "no node takes it: 0/3 nodes have enough memory",
    ),
    "a pod without a node": (
        pod("Pending", UNSCHEDULABLE, creationTimestamp=LONG_AGO),
        FAILED,
        "no node takes it: 0/3 nodes have enough memory",
    ),
    "a pod that nobody has seen": (pod(""), PROGRESSING, "its phase is not known yet"),
    "a claim with its volume": (resource("PersistentVolumeClaim", {}, {"phase": "Bound"}), HEALTHY, ""),
    "a claim without a volume": (
        resource("PersistentVolumeClaim", {}, {"phase": "Pending"}),
        PROGRESSING,
        "has no volume yet (Pending)",
    ),
    "a job that is done": (job(condition("Complete")), HEALTHY, ""),
    "a job that runs": (job(active=1), HEALTHY, ""),
    "a job that has not started": (job(started=False), PROGRESSING, "has not started"),
    "a job that is suspended": (job(condition("Suspended"), started=False), HEALTHY, "is suspended"),
    "a cron job": (resource("batch/CronJob", {"suspend": False}, {}), HEALTHY, ""),
    "a cron job that is suspended": (
        resource("batch/CronJob", {"suspend": True}, {}),
        HEALTHY,
        "is suspended",
    ),
    "a job that failed": (
        job(condition("Failed", message="Job has reached the specified backoff limit"), failed=4),
        FAILED,
        "failed, 4 of its pods did: Job has reached the specified backoff limit",
    ),
    "a disruption budget": (resource("policy/PodDisruptionBudget", {}, {}), HEALTHY, ""),
    "a disruption budget whose pods cannot be counted": (
        resource(
            "policy/PodDisruptionBudget",
            {},
            {"conditions": [condition("DisruptionAllowed", "False", "SyncFailed", "no controller")]},
        ),
        FAILED,
        "its pods cannot be counted: no controller",
    ),
    "a service in the cluster": (resource("Service", {"type": "ClusterIP"}, {}), HEALTHY, ""),
    "a load balancer with an address": (
        resource("Service", {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, {}),
        HEALTHY,
        "",
    ),
    "a load balancer without an address": (
        resource("Service", {"type": "LoadBalancer"}, {}),
        PROGRESSING,
        "has no cluster IP yet",
    ),
    "a definition that is served": (
        definition(condition("NamesAccepted"), condition("Established")),
        HEALTHY,
        "",
    ),
    "a definition that is being installed": (
        definition(condition("Established", "False", "Installing")),
        PROGRESSING,
        "is not served yet",
    ),
    "a definition whose names are taken": (
        definition(condition("NamesAccepted", "False", message="the name is in use")),
        FAILED,
        "the name is in use",
    ),
    "another group's Deployment": (resource("x.io/Deployment"), HEALTHY, ""),
}


@rows.each("case", CASES)
def test_a_resource_is_as_kstatus_says(case: str) -> None:
    looked_at, state, message = CASES[case]
    found = health_of(looked_at, NOW)
    assert (found.state, found.message) == (state, message)


def test_a_pod_says_when_it_will_have_waited_for_a_node_for_too_long() -> None:
    found = health_of(CASES["a pod without a node, just now"][0], NOW)
    assert found.fails_at == NOW + 5.0


def test_a_rollout_that_is_paused_is_a_wish_and_says_so() -> None:
    paused = deployment("a", {"replicas": 1, "paused": True}, **pods(1, replicas=0))
    found = health_of(paused, NOW)
    assert (found.state, found.message, found.rule) == (HEALTHY, "the rollout is paused", "spec.paused")


def test_why_pods_cannot_be_created_stands_with_how_many_are_missing() -> None:
    refused = deployment("a", None, **pods(1, replicas=0))
    refused["status"]["conditions"].append(condition("ReplicaFailure", message="exceeded quota: none"))
    assert health_of(refused, NOW).message == "0 of 1 pods created: exceeded quota: none"


def test_the_last_move_of_a_status_is_the_newest_time_that_it_names() -> None:
    moved = condition("Available") | {"lastTransitionTime": JUST_NOW}
    found = resource("apps/Deployment", {}, {"conditions": [moved]}, creationTimestamp=LONG_AGO)
    assert resource_health.moved_at(found) == NOW - 10.0
    assert resource_health.moved_at({}) == 0.0


def test_what_should_have_a_status_and_has_none_is_in_progress_for_a_minute() -> None:
    statuses: list[object] = [None, {}, {"conditions": []}]
    for status in statuses:
        new = resource("x.io/Any", {}, status, creationTimestamp=JUST_NOW)
        found = health_of(new, NOW, has_status=True)
        assert (found.message, found.heals_at) == ("has no status yet", NOW + 50.0)
        assert health_of(new, NOW + 50.0, has_status=True) == resource_health.HEALTHY
    assert health_of(resource("x.io/Any"), NOW, has_status=True).message == "has no status yet"
    assert health_of(resource("x.io/Any", {}, {"phase": "Odd"}), NOW, has_status=True).state is HEALTHY


def test_what_a_controller_calls_wrong_has_failed_when_it_stays_so() -> None:
    wrong = condition("Ready", "False", "InvalidSpec", "no such class") | {"lastTransitionTime": JUST_NOW}
    looked_at = resource("x.io/Any", {}, {"conditions": [wrong]}, creationTimestamp=LONG_AGO)
    found = health_of(looked_at, NOW)
    assert (found.state, found.message, found.fails_at) == (PROGRESSING, "no such class", NOW + 5.0)
    assert health_of(looked_at, NOW + 5.0).state is FAILED


def test_what_a_controller_says_is_one_short_line() -> None:
    told = health_of(
        resource("x.io/Any", {}, {"conditions": [condition("Stalled", message="a\n b" + "x" * 9999)]}), NOW
    )
    assert told.message.startswith("a bx")
    assert (len(told.message), told.message[-1]) == (300, "…")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from([
    "replicas", "conditions", "phase", "containerStatuses", "updateStrategy", "observedGeneration",
    "startTime", "generation", "deletionTimestamp", "finalizers", "creationTimestamp", "type",
    "desiredNumberScheduled",
])  # fmt: skip
KIND = st.sampled_from(sorted(resource_health.WITH_RULES))


@pytest.mark.slow
@given(
    KIND,
    st.fixed_dictionaries(
        {part: st.dictionaries(KEYS, JSON) | JSON for part in ("metadata", "spec", "status")}
    ),
)
def test_no_object_is_too_odd(kind: tuple[str, str], parts: dict[str, Any]) -> None:
    odd = {"apiVersion": f"{kind[0]}/v1" if kind[0] else "v1", "kind": kind[1], **parts}
    assert health_of(odd, NOW).state in HealthState


@pytest.mark.slow
def test_many_conditions_cost_their_number() -> None:
    def many(size: int) -> dict[str, Any]:
        return resource("x.io/Any", {}, {"conditions": [condition(f"C{number}") for number in range(size)]})

    assert costs.is_linear(many, lambda looked_at: health_of(looked_at, NOW), 10_000)
