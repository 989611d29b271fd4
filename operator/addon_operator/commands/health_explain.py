"""How objects in a file are, and which rule says so: what ``health explain`` prints."""

import dataclasses
import time

from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.health import health_config, health_rules, resource_health
from addon_operator.values.schema import cel_rules


@dataclasses.dataclass(frozen=True, slots=True)
class Explained:
    """How one object is."""

    health: resource_health.ResourceHealth
    rule: str
    """What decided."""


def explained(
    resource: KubernetesObject, evaluator: cel_rules.CelEvaluator, *, with_kinds: bool = True
) -> Explained:
    """Say how an object is, as the operator does for a kind with a status.

    Without a ``creationTimestamp`` it has just been made. ``with_kinds``: the rules of ``kinds.yaml`` count.
    """
    api_version, kind = str(resource.get("apiVersion")), str(resource.get("kind"))
    rule = health_rules.of_kind(api_version, kind) if with_kinds else None
    health = resource_health.in_passing(resource)
    if rule is not None and health is None:
        state, message = health_rules.judged(rule.healthy, rule.failed, resource, evaluator)
        health = resource_health.ResourceHealth(state, message)
        return Explained(health, _of_kind(rule, state))
    health = resource_health.health_of(resource, time.time(), has_status=True)
    return Explained(health, health.rule or "nothing says that it is not healthy")


def _of_kind(rule: health_config.HealthRule, state: resource_health.HealthState) -> str:
    text = rule.failed if state is resource_health.HealthState.FAILED else rule.healthy
    return f"kinds.yaml, {rule.api_version} {rule.kind}: {text}"
