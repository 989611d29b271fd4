"""How a module is, by how its resources are."""

from addon_operator.modules.health import module_health
from addon_operator.modules.health.pod_causes import Cause
from addon_operator.modules.health.resource_health import HEALTHY, HealthState, ResourceHealth

UPDATING = ResourceHealth(HealthState.PROGRESSING, "1 of 3 pods updated")
BROKEN = ResourceHealth(HealthState.FAILED, "failed")


def one(resource: str, health: ResourceHealth, since: float = 0.0) -> module_health.ObservedHealth:
    return module_health.ObservedHealth(resource, health, since)


def summed(*resources: module_health.ObservedHealth, now: float = 1.0) -> module_health.ModuleHealth:
    return module_health.module_health(resources, now)


def test_a_module_is_healthy_when_all_its_resources_are() -> None:
    assert summed() == summed(one("Job a", HEALTHY)) == module_health.ModuleHealth(HealthState.HEALTHY)


def test_what_somebody_wishes_is_healthy_and_said() -> None:
    paused = one("Deployment web", ResourceHealth(HealthState.HEALTHY, "the rollout is paused"))
    assert summed(paused) == module_health.ModuleHealth(
        HealthState.HEALTHY, "the rollout is paused: Deployment web", named=("Deployment web",)
    )
    assert summed(paused, one("Job z", BROKEN)).message == "failed: Job z"


def test_a_claim_that_waits_for_its_first_consumer_is_healthy_and_said() -> None:
    wish = Cause("waits for its first consumer", is_event=True, is_wish=True)
    unbound = ResourceHealth(HealthState.PROGRESSING, "has no volume yet (Pending)")
    claim = module_health.ObservedHealth("PersistentVolumeClaim a", unbound, 0.0, wish)
    found = summed(claim, now=6000.0)
    assert (found.state, found.named) == (HealthState.HEALTHY, ("PersistentVolumeClaim a",))
    assert (
        found.message == "waits for its first consumer: PersistentVolumeClaim a, has no volume yet (Pending)"
    )


def test_a_rollout_is_no_failure_and_says_when_it_will_be_one() -> None:
    assert summed(one("Job a", HEALTHY), one("Deployment web", UPDATING, since=0.5)) == (
        module_health.ModuleHealth(
            HealthState.PROGRESSING, "1 of 3 pods updated: Deployment web", 600.5, ("Deployment web",), True
        )
    )


def test_one_resource_that_failed_makes_the_module_failed_and_is_named_first() -> None:
    found = summed(one("Deployment web", UPDATING), one("Job z", BROKEN))
    assert (found.state, found.message) == (
        HealthState.FAILED,
        "failed: Job z; 1 of 3 pods updated: Deployment web",
    )


def test_what_may_never_get_a_status_holds_nothing_and_is_healthy_after_its_time() -> None:
    new = one("Shop a", ResourceHealth(HealthState.PROGRESSING, "has no status yet", heals_at=60.0))
    found = summed(new)
    assert (found.state, found.holds, found.next_deadline) == (HealthState.PROGRESSING, False, 60.0)
    assert summed(new, one("Deployment web", UPDATING)).holds
    assert summed(new, now=60.0) == module_health.ModuleHealth(HealthState.HEALTHY)


def test_what_is_in_progress_for_too_long_has_failed() -> None:
    found = summed(one("Deployment web", UPDATING), now=600.0)
    assert found == module_health.ModuleHealth(
        HealthState.FAILED,
        "1 of 3 pods updated: Deployment web, for more than 10 min",
        named=("Deployment web",),
        holds=True,
    )
    assert summed(one("Deployment web", UPDATING), now=599.9).state is HealthState.PROGRESSING
    late = module_health.module_health([one("Deployment web", UPDATING)], 90.0, 90.0)
    assert late.message.endswith("for more than 90 s")


def test_of_many_resources_three_are_named() -> None:
    found = summed(*(one(f"Job {name}", BROKEN) for name in "edcba"))
    assert found.message == "failed: Job a; failed: Job b; failed: Job c; and 2 more"


def test_the_cause_is_first_as_tables_cut_the_end_and_is_not_said_twice() -> None:
    pods = ResourceHealth(HealthState.PROGRESSING, "0 of 1 pods available")
    found = summed(
        module_health.ObservedHealth("Deployment web", pods, 0.0, Cause('ErrImagePull "web:9" (pod web-x)'))
    )
    assert found.message == 'ErrImagePull "web:9" (pod web-x): Deployment web, 0 of 1 pods available'
    job = ResourceHealth(HealthState.FAILED, "failed: it ran too long", cause="it ran too long")
    event = Cause("DeadlineExceeded: it ran too long", is_event=True)
    assert summed(one("Job once", job)).message == "it ran too long: Job once, failed"
    found = summed(module_health.ObservedHealth("Job once", job, 0.0, event))
    assert found.message == "it ran too long: Job once, failed"


def test_what_a_rule_says_is_before_an_event_which_may_be_about_something_else() -> None:
    rule = ResourceHealth(HealthState.PROGRESSING, "does not meet self.a == 'b: c'")
    event = Cause("ClusterIPNotAllocated: is repaired", is_event=True)

    def told(cause: Cause, *, is_by_rule: bool = True) -> str:
        return summed(module_health.ObservedHealth("Service web", rule, 0.0, cause, is_by_rule)).message

    assert told(event) == "does not meet self.a == 'b: c': Service web, ClusterIPNotAllocated: is repaired"
    assert (
        told(Cause("OOMKilled (pod a)")) == "OOMKilled (pod a): Service web, does not meet self.a == 'b: c'"
    )
    assert told(event, is_by_rule=False).startswith("ClusterIPNotAllocated: is repaired: Service web, ")
