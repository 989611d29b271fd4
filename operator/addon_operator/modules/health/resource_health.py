"""How a resource is: healthy, in progress, or failed, and why in a few words.

The rules are those of kstatus (the documentation and the behaviour of ``sigs.k8s.io/cli-utils``). Argo CD and
Flux users know them. Three are ours: what somebody wishes (paused, suspended) is healthy; a kind with a
status subresource whose controller has not written a status yet is in progress for a minute (kstatus takes
such an object for finished before anybody has looked at it); and kinds without rules of their own are known
by all words of :mod:`.health_words`, not by ``Ready`` alone.

Everything here is pure. Objects come from the cluster and may hold anything: a field of another type counts
as missing.
"""

import dataclasses
import datetime as dt
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.health import health_words

SCHEDULE_SECONDS: Final = 15.0
"""How long a pod may find no node before that is a failure, as in kstatus."""
PASSING_SECONDS: Final = 15.0
"""How long a controller may call something wrong before that is a failure."""
NO_STATUS_SECONDS: Final = 60.0
"""How long after it was made a resource may have no status before it counts as one that never has any."""
_ON_DELETE: Final = (
    "pods of the last revision come when somebody deletes the others",
    "spec.updateStrategy.type",
)
_JUDGED: Final = ("conditions", "parents", "ancestors")
"""Lists of a status that its controllers fill when they have looked at the object."""
_MOST_DIGITS: Final = 20
_NO_DEADLINE: Final = 2**31 - 1
"""As ``progressDeadlineSeconds``, the controller takes it for none."""


class HealthState(enum.StrEnum):
    """How a resource, or a module, is; the names are those of the metric's label ``state``."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    FAILED = "Failed"


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceHealth:
    """How a resource is."""

    state: HealthState
    message: str = ""
    """Why it is not healthy, for people."""
    fails_at: float | None = None
    """When what is in progress will have failed unless it changes before, in seconds since the epoch."""
    cause: str = ""
    """The end of the message, if it says why."""
    heals_at: float | None = None
    """When what is in progress counts as healthy unless it changes before: nobody may ever say more of it."""
    rule: str = dataclasses.field(default="", compare=False)
    """What decided, for people."""


HEALTHY: Final = ResourceHealth(HealthState.HEALTHY)
SILENT: Final = ResourceHealth(HealthState.HEALTHY, rule="no status")
"""Of what has had no status for long."""
WORK: Final = frozenset({("", "Pod"), ("batch", "Job")})
"""Kinds, each with its group before it, whose objects end, and are not made again because they are gone."""
_ENDED_PHASES: Final = ("Succeeded", "Failed")


def health_of(resource: KubernetesObject, now: float, *, has_status: bool = False) -> ResourceHealth:
    """Say how a resource is at ``now``, in seconds since the epoch.

    ``has_status``: its kind has a status subresource.
    """
    if (passing := in_passing(resource)) is not None:
        return passing
    if (rule := _RULES.get((_group(resource), _text(resource, "kind")))) is not None:
        found = rule(resource, now)
        return found if found.rule else dataclasses.replace(found, rule=f"the rule of {resource['kind']}")
    return _by_words(resource, now, has_status=has_status)


def has_ended(resource: KubernetesObject) -> bool:
    """Say whether a Job or Pod, of :data:`WORK`, has done or given up what it was made for."""
    if _text(resource, "kind") == "Pod":
        return _text(resource, "status", "phase") in _ENDED_PHASES
    return any(
        one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
        for one in _conditions(resource)
    )


def in_passing(resource: KubernetesObject) -> ResourceHealth | None:
    """Return how a resource is that is on its way out, or whose last change nobody has seen yet."""
    if _text(resource, "metadata", "deletionTimestamp"):
        finalizers = resource["metadata"].get("finalizers")
        named = [one for one in finalizers if isinstance(one, str)] if isinstance(finalizers, list) else []
        waits = f", waits for {', '.join(named[:3])}" if named else ""
        return dataclasses.replace(
            _progressing(f"is being deleted{waits}"), rule="metadata.deletionTimestamp"
        )
    return _generation(resource)


def moved_at(resource: KubernetesObject) -> float:
    """Return when the status of a resource last moved as it says itself, in seconds since the epoch."""
    times = [_text(resource, "metadata", "creationTimestamp")]
    times += [_text(condition, "lastTransitionTime") for condition in _conditions(resource)]
    return max(map(_moment, times))


def _generation(resource: KubernetesObject) -> ResourceHealth | None:
    generation = _number(resource, "metadata", "generation")
    observed = _number(resource, "status", "observedGeneration")
    if observed is None and (text := _text(resource, "status", "observedGeneration")).isdecimal():
        observed = int(text[:_MOST_DIGITS])
    if generation is None or observed is None or generation <= observed:
        return None
    unseen = _progressing(f"its controller has not seen the last change yet (generation {generation})")
    return dataclasses.replace(unseen, rule="status.observedGeneration")


def _by_words(resource: KubernetesObject, now: float, *, has_status: bool) -> ResourceHealth:
    word = health_words.decisive(resource)
    if word is None:
        status = resource.get("status")
        is_empty = not status or any(isinstance(_field(resource, "status", key), list) for key in _JUDGED)
        return _without_status(resource, now) if has_status and is_empty else HEALTHY
    state, fails_at = _STATES[word.polarity], None
    if state is HealthState.FAILED and not word.is_final:
        # Many controllers write an error while what they need is still being made.
        fails_at = moved_at(resource) + PASSING_SECONDS
        state, fails_at = (HealthState.PROGRESSING, fails_at) if fails_at > now else (state, None)
    return ResourceHealth(state, word.said, fails_at, rule=word.rule)


def _without_status(resource: KubernetesObject, now: float) -> ResourceHealth:
    heals_at = (_moment(_text(resource, "metadata", "creationTimestamp")) or now) + NO_STATUS_SECONDS
    if heals_at <= now:
        return SILENT
    return ResourceHealth(HealthState.PROGRESSING, "has no status yet", heals_at=heals_at, rule=SILENT.rule)


_STATES: Final = {
    health_words.Polarity.WELL: HealthState.HEALTHY,
    health_words.Polarity.WISH: HealthState.HEALTHY,
    health_words.Polarity.UNDER_WAY: HealthState.PROGRESSING,
    health_words.Polarity.ILL: HealthState.FAILED,
}


def _deployment(resource: KubernetesObject, _now: float) -> ResourceHealth:
    if _field(resource, "spec", "paused") is True:
        return _wished("the rollout is paused", "spec.paused")
    deadline, refused = _number(resource, "spec", "progressDeadlineSeconds"), ""
    # Without a deadline the controller sets no such condition.
    is_rolled_out = deadline is None or deadline == _NO_DEADLINE
    is_available = False
    for condition in _conditions(resource):
        if condition.get("type") == "Progressing":
            if condition.get("reason") == "ProgressDeadlineExceeded":
                return _failed("made no progress within its deadline")
            is_new = condition.get("reason") == "NewReplicaSetAvailable"
            is_rolled_out = is_rolled_out or (is_new and condition.get("status") == "True")
        elif condition.get("type") == "Available":
            is_available = condition.get("status") == "True"
        elif condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            refused = health_words.said(condition)
    wanted, there = _wanted(resource), _count(resource, "replicas")
    updated = _count(resource, "updatedReplicas")
    return (
        _too_few(there, wanted, "created", refused)
        or _too_few(updated, wanted, "updated", refused)
        or _too_many(there, wanted)
        or _too_few(_count(resource, "availableReplicas"), updated, "available")
        or _too_few(_count(resource, "readyReplicas"), wanted, "ready")
        or (None if is_rolled_out else _progressing("the rollout is not done"))
        or (HEALTHY if is_available else _progressing("too few pods are available"))
    )


def _replica_set(resource: KubernetesObject, _now: float) -> ResourceHealth:
    for condition in _conditions(resource):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return _progressing(health_words.said(condition) or "pods cannot be created")
    wanted = _wanted(resource)
    return (
        _too_few(_count(resource, "fullyLabeledReplicas"), wanted, "labelled")
        or _too_few(_count(resource, "availableReplicas"), wanted, "available")
        or _too_few(_count(resource, "readyReplicas"), wanted, "ready")
        or _too_many(_count(resource, "replicas"), wanted)
        or HEALTHY
    )


def _stateful_set(resource: KubernetesObject, _now: float) -> ResourceHealth:
    if _text(resource, "spec", "updateStrategy", "type") == "OnDelete":
        return HEALTHY if _has_one_revision(resource) else _wished(*_ON_DELETE)
    wanted, there = _wanted(resource), _count(resource, "replicas")
    scaled = (
        _too_few(there, wanted, "created")
        or _too_few(_count(resource, "readyReplicas"), wanted, "ready")
        or _too_many(there, wanted)
    )
    if scaled is not None:
        return scaled
    partition = _number(resource, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition is not None:
        return _too_few(_count(resource, "updatedReplicas"), wanted - partition, "updated") or HEALTHY
    if (missing := _too_few(_count(resource, "currentReplicas"), wanted, "current")) is not None:
        return missing
    return HEALTHY if _has_one_revision(resource) else _progressing("not all pods have the new revision")


def _has_one_revision(resource: KubernetesObject) -> bool:
    return len({_text(resource, "status", key) for key in ("currentRevision", "updateRevision")}) == 1


def _daemon_set(resource: KubernetesObject, _now: float) -> ResourceHealth:
    # Its controller always sets them: without, it has not seen the object yet.
    generations = (("metadata", "generation"), ("status", "observedGeneration"))
    wanted = _number(resource, "status", "desiredNumberScheduled")
    if wanted is None or any(_number(resource, *keys) is None for keys in generations):
        return _progressing("its controller has not seen it yet")
    outdated = _too_few(_count(resource, "updatedNumberScheduled"), wanted, "updated")
    is_manual = _text(resource, "spec", "updateStrategy", "type") == "OnDelete"
    return (
        _too_few(_count(resource, "currentNumberScheduled"), wanted, "created")
        or (None if is_manual else outdated)
        or _too_few(_count(resource, "numberAvailable"), wanted, "available")
        or _too_few(_count(resource, "numberReady"), wanted, "ready")
        or (HEALTHY if outdated is None else _wished(*_ON_DELETE))
    )


def _pod(resource: KubernetesObject, now: float) -> ResourceHealth:
    phase = _text(resource, "status", "phase")
    if phase in _ENDED_PHASES:
        # A pod that a chart brings and that has ended will not change any more; kstatus asks no more of it.
        return HEALTHY
    conditions = {str(one.get("type")): one for one in _conditions(resource)}
    if phase == "Running":
        return _running_pod(resource, conditions.get("Ready", {}))
    if phase != "Pending":
        return _progressing("its phase is not known yet")
    return _pending_pod(resource, conditions.get("PodScheduled", {}), now)


def _running_pod(pod: KubernetesObject, ready: Mapping[str, Any]) -> ResourceHealth:
    if ready.get("status") == "True":
        return HEALTHY
    crashing = list(_crash_loops(pod))
    if crashing:
        return _failed(f"CrashLoopBackOff of {', '.join(crashing[:3])}")
    return _progressing("runs and is not ready")


def _pending_pod(pod: KubernetesObject, scheduled: Mapping[str, Any], now: float) -> ResourceHealth:
    if scheduled.get("status") != "False" or scheduled.get("reason") != "Unschedulable":
        return _progressing("is pending")
    fails_at = _moment(_text(pod, "metadata", "creationTimestamp")) + SCHEDULE_SECONDS
    if fails_at <= now:
        return _failed("no node takes it", health_words.said(scheduled))
    waits = _progressing("no node takes it", health_words.said(scheduled))
    return dataclasses.replace(waits, fails_at=fails_at)


def _crash_loops(pod: KubernetesObject) -> Iterator[str]:
    statuses = _field(pod, "status", "containerStatuses")
    for status in statuses if isinstance(statuses, list) else ():
        if isinstance(status, dict) and _text(status, "state", "waiting", "reason") == "CrashLoopBackOff":
            yield _text(status, "name")


def _claim(resource: KubernetesObject, _now: float) -> ResourceHealth:
    phase = _text(resource, "status", "phase")
    return HEALTHY if phase == "Bound" else _progressing(f"has no volume yet ({phase or 'no phase'})")


def _job(resource: KubernetesObject, _now: float) -> ResourceHealth:
    for condition in _conditions(resource):
        if condition.get("status") != "True":
            continue
        if condition.get("type") == "Complete":
            return HEALTHY
        if condition.get("type") == "Suspended":
            return _wished("is suspended", "spec.suspend")
        if condition.get("type") == "Failed":
            count = _count(resource, "failed")
            pods = f", {count} of its pods did" if count else ""
            return _failed(f"failed{pods}", health_words.said(condition))
    # A job that runs is as it should be: whoever waits for its end asks for that.
    return HEALTHY if _text(resource, "status", "startTime") else _progressing("has not started")


def _service(resource: KubernetesObject, _now: float) -> ResourceHealth:
    is_balanced = _text(resource, "spec", "type") == "LoadBalancer"
    has_address = bool(_text(resource, "spec", "clusterIP"))
    return _progressing("has no cluster IP yet") if is_balanced and not has_address else HEALTHY


def _definition(resource: KubernetesObject, _now: float) -> ResourceHealth:
    for condition in _conditions(resource):
        kind, status = condition.get("type"), condition.get("status")
        if kind == "NamesAccepted" and status == "False":
            return _failed(health_words.said(condition) or "its names are taken")
        if kind == "Established":
            if status == "True":
                return HEALTHY
            if status == "False" and condition.get("reason") != "Installing":
                return _failed(health_words.said(condition) or "is not established")
    return _progressing("is not served yet")


def _cron_job(resource: KubernetesObject, _now: float) -> ResourceHealth:
    return _wished("is suspended", "spec.suspend") if _field(resource, "spec", "suspend") is True else HEALTHY


def _budget(resource: KubernetesObject, _now: float) -> ResourceHealth:
    # What its controller has seen, it has computed: the generation says so.
    failed = (one for one in _conditions(resource) if one.get("reason") == "SyncFailed")
    return next((_failed("its pods cannot be counted", health_words.said(one)) for one in failed), HEALTHY)


def _always(_resource: KubernetesObject, _now: float) -> ResourceHealth:
    return HEALTHY


_Rule = Callable[[KubernetesObject, float], ResourceHealth]
_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "ConfigMap"): _always,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Secret"): _always,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _budget,
}
WITH_RULES: Final = frozenset(_RULES)
"""Kinds, each with its group before it, that have rules of their own."""
ALWAYS_HEALTHY: Final = frozenset({("", "ConfigMap"), ("", "Secret"), ("batch", "CronJob")})
"""Kinds whose objects have nothing that could be otherwise."""


def _wished(message: str, rule: str) -> ResourceHealth:
    return ResourceHealth(HealthState.HEALTHY, message, rule=rule)


def _progressing(message: str, why: str = "") -> ResourceHealth:
    return ResourceHealth(HealthState.PROGRESSING, _with(message, why), cause=why)


def _failed(message: str, why: str = "") -> ResourceHealth:
    return ResourceHealth(HealthState.FAILED, _with(message, why), cause=why)


def _with(message: str, why: str) -> str:
    return f"{message}: {why}" if why else message


def _too_few(count: int, wanted: int, done: str, why: str = "") -> ResourceHealth | None:
    return _progressing(f"{count} of {wanted} pods {done}", why) if count < wanted else None


def _too_many(there: int, wanted: int) -> ResourceHealth | None:
    surplus = there - wanted
    pods = "1 pod has" if surplus == 1 else f"{surplus} pods have"
    return _progressing(f"{pods} yet to end") if surplus > 0 else None


def _wanted(resource: KubernetesObject) -> int:
    """Return the number of pods; the API server's default is one."""
    number = _number(resource, "spec", "replicas")
    return 1 if number is None else number


def _count(resource: KubernetesObject, key: str) -> int:
    return _number(resource, "status", key) or 0


def _conditions(resource: KubernetesObject) -> Iterator[Mapping[str, Any]]:
    status = resource.get("status")
    return health_words.conditions(status if isinstance(status, dict) else {})


def _group(resource: KubernetesObject) -> str:
    group, _, version = _text(resource, "apiVersion").rpartition("/")
    return group if version else ""


def _moment(text: str) -> float:
    """Return seconds since the epoch; what is no time was long ago."""
    try:
        return dt.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _field(resource: KubernetesObject, *keys: str) -> Any:  # noqa: ANN401 - whatever the cluster has
    value: Any = resource
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _text(resource: KubernetesObject, *keys: str) -> str:
    value = _field(resource, *keys)
    return value if isinstance(value, str) else ""


def _number(resource: KubernetesObject, *keys: str) -> int | None:
    value = _field(resource, *keys)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
