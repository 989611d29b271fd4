"""How custom resources are by the words of their status."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.modules.health import resource_health
from addon_operator.modules.health.resource_health import HealthState
from tests.support import rows
from tests.unit import costs

NOW = 1_700_000_000.0
HEALTHY, PROGRESSING, FAILED = HealthState.HEALTHY, HealthState.PROGRESSING, HealthState.FAILED


def shop(*conditions: str, kind: str = "Shop", spec: object = None, **status: object) -> dict[str, Any]:
    """A custom resource; conditions as ``Ready=False/Reason message``."""
    if conditions:
        status["conditions"] = [condition(text) for text in conditions]
    return {
        "apiVersion": "x.io/v1",
        "kind": kind,
        "metadata": {"generation": 2},
        "spec": spec,
        "status": status,
    }


def condition(text: str) -> dict[str, str]:
    named, _, message = text.partition(" ")
    kind, _, rest = named.partition("=")
    status, _, reason = rest.partition("/")
    return {"type": kind, "status": status, "reason": reason, "message": message}


def parents(key: str, *each: str) -> dict[str, Any]:
    found = shop()
    found["status"][key] = [{"conditions": [condition(text)]} for text in each]
    return found


CASES: dict[str, tuple[dict[str, Any], HealthState]] = {
    "a phase that means well": (shop(phase="Running"), HEALTHY),
    "in capitals": (shop(state="HEALTH_OK"), HEALTHY),
    "a phase under way": (shop(phase="Provisioning"), PROGRESSING),
    "in two words": (shop(status="In progress"), PROGRESSING),
    "a phase that means ill": (shop(phase="UpdateFailed"), FAILED),
    "ill counts more than well": (shop("Ready=True", health="red"), FAILED),
    "a word that is turned": (shop(state="NotReady"), PROGRESSING),
    "not found": (shop("Ready=False/SecretNotFound"), FAILED),
    "a phase that nobody knows": (shop(phase="Odd"), HEALTHY),
    "work that runs": (shop(kind="DatabaseBackup", phase="Running"), PROGRESSING),
    "work that is done": (shop(kind="DatabaseBackup", phase="Completed"), HEALTHY),
    "paused by its spec": (shop("Ready=False", spec={"paused": True}), HEALTHY),
    "switched off by its spec": (shop("Ready=False", spec={"enabled": False}), HEALTHY),
    "suspended": (shop(state="suspended"), HEALTHY),
    "not failed, and nothing more": (shop("FailedCreatePod=False"), HEALTHY),
    "conditions that nobody knows": (shop("Odd=True"), PROGRESSING),
    "discoverable": (shop("Discoverable=True"), HEALTHY),
    "not ready for a while": (shop("Ready=False/Creating"), PROGRESSING),
    "not ready with an error": (shop("Ready=False/ReconcileError"), FAILED),
    "not ready, and the message names an error": (shop("Ready=False/Shop failed to open the door"), FAILED),
    "not synced": (shop("Ready=True", "Synced=False"), FAILED),
    "not accepted yet": (shop("Accepted=Unknown/Pending"), PROGRESSING),
    "degraded": (shop("Available=True", "Degraded=True"), FAILED),
    "not degraded": (shop("Available=True", "Degraded=False"), HEALTHY),
    "progress that has ended well": (shop("Progressing=True/NewRevisionAvailable"), HEALTHY),
    "progress that has ended badly": (shop("Progressing=False/RolloutAborted"), FAILED),
    "progress that is not known": (shop("Available=True", "Progressing=Unknown"), PROGRESSING),
    "progress that is held": (shop("Progressing=Unknown/RolloutPaused"), HEALTHY),
    "reconciling": (shop("Reconciling=True", "Ready=True"), PROGRESSING),
    "reconciling after an error": (shop("Reconciling=True/ProgressingWithRetry"), FAILED),
    "a part that is not ready": (shop("WebhookReady=False"), PROGRESSING),
    "what sums up speaks for its parts": (shop("Ready=True", "WebhookReady=False"), HEALTHY),
    "what may be false while all is well": (shop("Ready=True", "Active=False/Idle"), HEALTHY),
    "a parent that accepts": (parents("parents", "Accepted=True"), HEALTHY),
    "one of two parents refuses": (parents("parents", "Accepted=True", "Accepted=False/Invalid"), FAILED),
    "a parent of others": (parents("ancestors", "Accepted=True", "Accepted=False/NoMatchingParent"), HEALTHY),
    "a condition of an older generation": (
        shop(conditions=[condition("Ready=True") | {"observedGeneration": 1}]),
        PROGRESSING,
    ),
    "a generation in a text": (shop(observedGeneration="1", phase="Ready"), PROGRESSING),
    "a rollout that is paused": (shop("Ready=False", spec={"updateStrategy": {"paused": True}}), HEALTHY),
    "pods that a partition keeps": (
        shop(spec={"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": 2}}}, updatedReplicas=3),
        HEALTHY,
    ),
    "a condition for a place": (shop("Scheduled=True"), HEALTHY),
    "a phase before a place": (shop(phase="CloneScheduled"), PROGRESSING),
    "progress that goes on": (shop("Progressing=True/ReplicaSetUpdated"), PROGRESSING),
    "fewer replicas than wanted": (shop(spec={"replicas": 3}, readyReplicas=2), PROGRESSING),
    "as many as wanted": (shop(spec={"replicas": 3}, readyReplicas=3), HEALTHY),
    "as many as wanted, and no condition": (
        shop(spec={"replicas": 3}, readyReplicas=3, conditions=[]),
        HEALTHY,
    ),
    "scaled to zero": (shop("Available=False", spec={"replicas": 0}, readyReplicas=0, replicas=0), HEALTHY),
    "scaled to zero with an error": (shop("Ready=False/Invalid", spec={"replicas": 0}), FAILED),
    "not scaled down yet": (shop("Available=False", spec={"replicas": 0}, replicas=2), PROGRESSING),
    "an end that is a failure": (shop("Complete=True/JobFailed"), FAILED),
    "an end that is none": (shop("Complete=True/JobComplete"), HEALTHY),
    "parts that failed": (shop("Ready=True", failedNamespaces=[{"namespace": "x"}]), FAILED),
    "no parts that failed": (shop("Ready=True", failedNamespaces=[]), HEALTHY),
    "a newer generation than it has": (shop(observedGeneration=3, phase="Ready"), HEALTHY),
    "a flag": (shop(ready=False), PROGRESSING),
    "a flag that means ill": (shop(healthy=False), FAILED),
    "an error": (shop(error={"message": "no such disk"}, readyToUse=False), FAILED),
    "a part of the status": (shop(server={"state": "error"}), FAILED),
    "what was before": (shop(history=[{"state": "error"}]), HEALTHY),
}


@rows.each("case", CASES)
def test_a_custom_resource_is_as_its_words_say(case: str) -> None:
    looked_at, state = CASES[case]
    assert resource_health.health_of(looked_at, NOW, has_status=True).state is state


def test_what_decided_is_named() -> None:
    found = resource_health.health_of(shop("Ready=False/ReconcileError no money."), NOW)
    assert (found.message, found.rule) == (
        "no money",
        "status.conditions: Ready=False, reason ReconcileError",
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from([
    "conditions", "parents", "phase", "state", "health", "error", "ready", "replicas", "readyReplicas",
    "paused", "type", "status", "reason", "message", "observedGeneration", "generation",
])  # fmt: skip
PART = st.dictionaries(KEYS, JSON | st.lists(st.dictionaries(KEYS, JSON)))


@pytest.mark.slow
@given(st.fixed_dictionaries(dict.fromkeys(("metadata", "spec", "status"), PART | JSON)))
def test_no_status_is_too_odd(parts: dict[str, Any]) -> None:
    assert resource_health.health_of({"apiVersion": "x.io/v1", **parts}, NOW).state in HealthState


def test_a_long_status_costs_its_length() -> None:
    def many(size: int) -> dict[str, Any]:
        return shop(**{f"part{number}Status": "x" * 50 for number in range(size)}, state="aB" * size)

    assert costs.is_linear(many, lambda looked_at: resource_health.health_of(looked_at, NOW), 10_000)
