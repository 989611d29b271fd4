"""How objects in a file are, and which rule says so: what ``health explain`` prints."""

import dataclasses
import time

from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.modules.health import health_rules, resource_health
from addon_operator.values.schema import cel_rules


def explained(
    resource: KubernetesObject, evaluator: cel_rules.CelEvaluator, *, with_kinds: bool = True
) -> resource_health.ResourceHealth:
    """Say how an object is, as the operator does for a kind with a status, and which rule decides.

    Without a ``creationTimestamp`` it has just been made. ``with_kinds``: the rules of ``kinds.yaml`` count.
    """
    api_version, kind = str(resource.get("apiVersion")), str(resource.get("kind"))
    rule = health_rules.of_kind(api_version, kind) if with_kinds else None
    if rule is not None and resource_health.in_passing(resource) is None:
        state, message = health_rules.judged(rule.healthy, rule.failed, resource, evaluator)
        text = rule.failed if state is resource_health.HealthState.FAILED else rule.healthy
        of_kind = f"kinds.yaml, {rule.api_version} {rule.kind}: {text}"
        return resource_health.ResourceHealth(state, message, rule=of_kind)
    health = resource_health.health_of(resource, time.time(), has_status=True)
    return dataclasses.replace(health, rule=health.rule or "nothing says that it is not healthy")
