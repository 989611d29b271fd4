"""Why pods do not run, in the words of their users."""

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from addon_operator.modules.health import pod_causes
from tests.support import rows

IMAGE = "registry.example.com/web:1.2"


def pod(name: str = "web-1", created: str = "2026-01-01T00:00:00Z", **status: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"metadata": {"name": name, "creationTimestamp": created}, "status": status}


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "web", "image": IMAGE, "state": state, **more}


def ended(code: object, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


CASES = {
    "an image": (pod(containerStatuses=[waits("ImagePullBackOff")]), f'ImagePullBackOff "{IMAGE}"'),
    "a crash loop": (
        pod(containerStatuses=[waits("CrashLoopBackOff", lastState=ended(137, "OOMKilled"))]),
        "CrashLoopBackOff, exit code 137 (OOMKilled)",
    ),
    "a crash": (
        pod(containerStatuses=[waits("CrashLoopBackOff", lastState=ended(1))]),
        "CrashLoopBackOff, exit code 1",
    ),
    "no number": (
        pod(containerStatuses=[waits("CrashLoopBackOff", lastState=ended(2**70))]),
        "CrashLoopBackOff",
    ),
    "a missing Secret": (
        pod(containerStatuses=[waits("CreateContainerConfigError", 'secret "x" not found')]),
        'CreateContainerConfigError: secret "x" not found',
    ),
    "an init container first": (
        pod(
            initContainerStatuses=[waits("ErrImagePull")],
            containerStatuses=[waits("PodInitializing")],
        ),
        f'ErrImagePull "{IMAGE}"',
    ),
    "no node": (
        pod(
            conditions=[
                {"type": "PodScheduled", "status": "False", "message": "0/3 nodes have enough memory"}
            ]
        ),
        "Pending: 0/3 nodes have enough memory",
    ),
    "evicted": (pod(phase="Failed", reason="Evicted", message="disk"), "Evicted: disk"),
    "ended": (pod(phase="Failed", containerStatuses=[{"state": ended(3)}]), "failed, exit code 3"),
    "a readiness probe": (
        pod(containerStatuses=[{"ready": False, "state": {"running": {"startedAt": "x"}}}]),
        "runs, and its readiness probe does not succeed",
    ),
}


@rows.each("case", CASES)
def test_a_pod_says_why_it_does_not_run(case: str) -> None:
    found, cause = CASES[case]
    assert pod_causes.cause_of_pods([found]) == f"{cause} (pod web-1)"


def test_a_pod_that_has_just_begun_says_nothing() -> None:
    assert pod_causes.cause_of_pods([pod(containerStatuses=[waits("ContainerCreating")])]) == ""
    assert pod_causes.cause_of_pods([]) == ""


def test_the_newest_pod_that_says_something_is_named() -> None:
    broken = waits("ErrImagePull")
    pods = [
        pod("old", "2026-01-01T00:00:00Z", containerStatuses=[broken]),
        pod("new", "2026-01-02T00:00:00Z", containerStatuses=[broken]),
        pod("newest", "2026-01-03T00:00:00Z"),
    ]
    assert pod_causes.cause_of_pods(pods).endswith(" (pod new)")


def test_the_newest_warning_is_told() -> None:
    events = [
        {"type": "Warning", "reason": "Old", "message": "x", "lastTimestamp": "2026-01-01T00:00:00Z"},
        {"type": "Warning", "reason": "New", "message": "y", "eventTime": "2026-01-02T00:00:00.000000Z"},
        {"type": "Normal", "reason": "Fine", "message": "z", "lastTimestamp": "2026-01-03T00:00:00Z"},
    ]
    assert pod_causes.newest_warning(events) == "New: y"
    assert pod_causes.newest_warning(events[2:]) == ""


def test_a_warning_from_before_the_trouble_is_no_cause_of_it() -> None:
    event: dict[str, Any] = {"type": "Warning", "reason": "Old", "message": "x"}
    first = {**event, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:10:00Z"}
    at = dt.datetime(2026, 1, 1, 0, 10, tzinfo=dt.UTC).timestamp()
    assert pod_causes.newest_warning([first], at + 20) == "Old: x", "it may be a little earlier"
    assert pod_causes.newest_warning([first], at + 60) == ""
    again = {
        **event,
        "eventTime": "2026-01-01T00:00:00Z",
        "series": {"lastObservedTime": "2026-01-01T00:11:00Z"},
    }
    assert pod_causes.newest_warning([again], at + 60) == "Old: x"
    assert pod_causes.newest_warning([{**event, "lastTimestamp": "x"}], at) == "Old: x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["phase", "conditions", "containerStatuses", "reason"]), JSON))
def test_whatever_a_pod_holds_is_read(status: dict[str, Any]) -> None:
    assert isinstance(pod_causes.cause_of_pods([{"metadata": {"name": "x"}, "status": status}]), str)
