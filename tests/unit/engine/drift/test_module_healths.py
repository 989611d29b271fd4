"""When it is told how modules are, and what is waited for."""

import dataclasses
from collections.abc import Sequence

import pytest
from typing_extensions import override

from addon_operator.engine import events, intents
from addon_operator.engine.drift import health_causes, health_watch, module_healths, watched_resources
from addon_operator.kernel.json_types import KubernetesObject
from addon_operator.kernel.names import ModuleName
from addon_operator.kube.informers import object_changes
from addon_operator.modules.health import health_config, pod_causes, resource_health
from addon_operator.modules.health.resource_health import HealthState
from tests.support import clocks
from tests.unit.engine import fakes, watching

WEB = watching.WEB
DEPLOYED = watching.wanted("app", resource=watching.DEPLOYMENT)
UPDATING = resource_health.ResourceHealth(HealthState.PROGRESSING, "1 of 3 pods updated")
FAILED = resource_health.ResourceHealth(HealthState.FAILED, "no progress")


class Causes(health_causes.HealthCauses):
    """Tells what a test says, and counts who asks."""

    def __init__(self) -> None:
        self.text = ""
        self.asked = 0

    @override
    async def cause(self, watched: watched_resources.Watched, since: float) -> pod_causes.Cause:
        self.asked += 1
        return pod_causes.Cause(self.text)


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.cluster, self.statuses = watching.Cluster(), watching.Cluster()
        self.resources = watching.resources_of(self.cluster)
        self.inbox, self.causes = fakes.Inbox(), Causes()
        self.told: list[events.Event] = []
        self.config = health_config.HealthConfig()
        self.healths = module_healths.ModuleHealths(
            self.statuses,
            self.resources,
            self.causes,
            self._judge,
            lambda _: self.config,
            self.told.append,
            self.inbox,
            self.clock,
        )

    def _judge(
        self, rule: health_config.HealthRule, objects: Sequence[KubernetesObject]
    ) -> list[resource_health.ResourceHealth]:
        raise AssertionError("the objects are put in with their verdicts")

    async def follow(self, module: ModuleName = WEB) -> None:
        self.cluster.put("app", resource=watching.DEPLOYMENT)
        await self.resources.follow(module, DEPLOYED)
        self.cluster.sync()
        await self.after(module_healths.GATHER)

    async def report(
        self, health: resource_health.ResourceHealth, moved: float = 0.0, name: str = "app"
    ) -> None:
        """The watch of statuses tells of a Deployment."""
        key = object_changes.ObjectKey("addons", name)
        verdict = health_watch.Verdict(health, moved)
        self.statuses.entries[key] = health_watch.written(verdict)
        self.statuses.put(name, resource=watching.DEPLOYMENT)
        self.statuses.sync()
        await self.after(module_healths.GATHER)

    async def after(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.healths.look()
        await clocks.settle()

    @property
    def shown(self) -> list[str]:
        """What was told of states and messages, in its order."""
        found = [each.health for each in self.told if isinstance(each, events.HealthChanged)]
        return ["" if each is None else f"{each.state} {each.message}".strip() for each in found]

    @property
    def stood(self) -> list[HealthState]:
        return [each.health.state for each in self.told if isinstance(each, events.HealthStands)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_resource_that_may_never_get_a_status_holds_nobody(bench: Bench) -> None:
    await bench.follow()
    waits = resource_health.ResourceHealth(
        HealthState.PROGRESSING, "has no status yet", heals_at=bench.clock.time() + 60
    )
    await bench.report(waits)
    assert bench.shown == ["Progressing has no status yet: Deployment app"]
    assert bench.healths.has_been_healthy(WEB)
    await bench.after(60.0)
    assert bench.shown[-1] == "Healthy"


async def test_a_kind_of_which_older_objects_have_no_status_is_healthy_at_once(bench: Bench) -> None:
    await bench.follow()
    waits = resource_health.ResourceHealth(
        HealthState.PROGRESSING, "has no status yet", heals_at=bench.clock.time() + 60
    )
    older = dataclasses.replace(waits, heals_at=bench.clock.time() - 1)
    await bench.report(waits)
    assert bench.shown == ["Progressing has no status yet: Deployment app"]
    await bench.report(older, name="old")
    await bench.report(waits)
    assert bench.shown[-1] == "Healthy"
    await bench.report(resource_health.HEALTHY, name="used")
    await bench.report(waits)
    assert bench.shown[-1] == "Progressing has no status yet: Deployment app"


async def test_a_wish_is_healthy_and_said(bench: Bench) -> None:
    await bench.follow()
    await bench.report(resource_health.ResourceHealth(HealthState.HEALTHY, "the rollout is paused"))
    assert bench.shown == ["Healthy the rollout is paused: Deployment app"]


async def test_nothing_is_told_before_all_is_known(bench: Bench) -> None:
    await bench.follow()
    assert bench.shown == []
    assert not bench.healths.has_been_healthy(WEB)
    await bench.report(resource_health.HEALTHY)
    assert bench.shown == ["Healthy"]
    assert bench.healths.has_been_healthy(WEB)
    assert intents.HealthChanged(WEB) in bench.inbox.put_in


async def test_only_objects_that_helm_labels_come_with_their_status(bench: Bench) -> None:
    await bench.follow()
    (selection,) = [each.selection for each in bench.statuses.open]
    assert (selection.kind, selection.label_selector) == ("Deployment", "app.kubernetes.io/managed-by=Helm")
    assert not selection.metadata_only
    bench.resources.unfollow(WEB)
    assert bench.statuses.open == []


async def test_a_module_whose_kinds_can_only_be_healthy_is_so_at_once(bench: Bench) -> None:
    bench.cluster.put("a")
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    await bench.after(module_healths.GATHER)
    assert (bench.shown, bench.statuses.open) == (["Healthy"], [])


async def test_a_rollout_is_progress_and_a_failure_after_the_deadline(bench: Bench) -> None:
    bench.config = health_config.HealthConfig(deadline=30.0)
    await bench.follow()
    await bench.report(UPDATING)
    await bench.after(29.0)
    assert bench.shown == ["Progressing 1 of 3 pods updated: Deployment app"]
    await bench.after(1.0)
    assert bench.shown[-1] == "Failed 1 of 3 pods updated: Deployment app, for more than 30 s"


async def test_after_a_start_what_takes_long_has_done_so_since_its_status_moved(bench: Bench) -> None:
    await bench.follow()
    await bench.report(UPDATING, moved=bench.clock.time() - 700.0)
    assert bench.shown[-1].startswith("Failed ")


async def test_another_revision_has_to_be_healthy_anew_and_the_watch_gets_time_to_tell(bench: Bench) -> None:
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    bench.healths.expect(WEB)
    assert not bench.healths.has_been_healthy(WEB)
    await bench.resources.follow(WEB, DEPLOYED)
    await bench.after(module_healths.GATHER)
    assert not bench.healths.has_been_healthy(WEB)
    await bench.after(module_healths.LAG)
    assert bench.healths.has_been_healthy(WEB)


async def test_what_becomes_unhealthy_later_was_healthy_once(bench: Bench) -> None:
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    await bench.report(FAILED)
    assert bench.shown == ["Healthy", "Failed no progress: Deployment app"]
    assert bench.healths.has_been_healthy(WEB)


async def test_an_absent_resource_is_no_healthy_one(bench: Bench) -> None:
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    bench.cluster.remove("app", resource=watching.DEPLOYMENT)
    await bench.after(module_healths.GATHER)
    assert bench.shown[-1] == "Progressing does not exist: Deployment app"


async def test_the_cause_is_read_while_something_is_not_healthy_and_ever_more_seldom(bench: Bench) -> None:
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    await bench.after(60.0)
    assert bench.causes.asked == 0
    bench.causes.text = "ImagePullBackOff (pod app-1)"
    await bench.report(UPDATING)
    for _ in range(30):
        await bench.after(10.0)
    assert bench.shown[2] == "Progressing ImagePullBackOff (pod app-1): Deployment app, 1 of 3 pods updated"
    assert 10 < bench.causes.asked < 18
    await bench.report(resource_health.HEALTHY)
    asked = bench.causes.asked
    await bench.after(60.0)
    assert bench.causes.asked == asked


async def test_a_change_is_worth_an_event_when_it_stands_for_a_minute(bench: Bench) -> None:
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    await bench.report(UPDATING)
    await bench.after(30.0)
    await bench.report(resource_health.HEALTHY)
    await bench.after(61.0)
    assert bench.stood == []
    await bench.report(FAILED)
    await bench.after(60.0)
    await bench.report(resource_health.HEALTHY)
    await bench.after(61.0)
    assert bench.stood == [HealthState.FAILED, HealthState.HEALTHY]


async def test_what_is_ignored_does_not_count(bench: Bench) -> None:
    bench.config = health_config.read({"ignore": [{"kind": "Deployment"}]})
    await bench.follow()
    await bench.report(FAILED)
    assert bench.shown == ["Healthy"]


async def test_of_a_module_that_is_not_followed_any_more_nothing_is_known(bench: Bench) -> None:
    await bench.follow()
    await bench.report(FAILED)
    bench.resources.unfollow(WEB)
    assert bench.shown[-1] == ""
    assert bench.healths.health_of(WEB) is None
    assert bench.healths.has_been_healthy(WEB), "it keeps nobody waiting"


async def test_a_kind_that_may_not_be_followed_keeps_nobody_waiting(bench: Bench) -> None:
    await bench.follow()
    for each in bench.statuses.open:
        each.listener.trouble("forbidden")
    await bench.after(module_healths.GATHER)
    assert bench.shown == ["Healthy"]


async def test_modules_with_the_same_rule_share_a_watch_and_others_have_their_own(bench: Bench) -> None:
    rule = {"apiVersion": "apps/v1", "kind": "Deployment", "healthy": "true"}
    bench.config = health_config.read({"rules": [rule]})
    await bench.follow()
    await bench.follow(watching.DB)
    assert len(bench.statuses.open) == 1
    bench.config = health_config.HealthConfig()
    await bench.follow(watching.DB)
    assert len(bench.statuses.open) == 2


@pytest.mark.parametrize("change", [{"rules": []}, {"ignore": [{"kind": "Deployment"}]}])
async def test_what_module_yaml_says_of_health_counts_without_another_revision(
    bench: Bench, change: dict[str, object]
) -> None:
    await bench.follow()
    await bench.report(FAILED)
    rule = {"apiVersion": "apps/v1", "kind": "Deployment", "healthy": "true"}
    bench.config = health_config.read({"rules": [rule]} if "rules" in change else change)
    bench.healths.configured(WEB)
    await bench.after(module_healths.GATHER)
    if "rules" in change:
        assert len(bench.statuses.open) == 1, "the watch without the rule is closed, and one with it is open"
        await bench.report(resource_health.ResourceHealth(HealthState.HEALTHY))
    assert bench.shown[-1] == "Healthy"


UNREADY = resource_health.ResourceHealth(HealthState.PROGRESSING, "failed with exit code 1")
UNASKED = "has not been asked yet since the last change"


async def test_what_a_program_says_counts_like_a_resource_and_fails_after_the_deadline(bench: Bench) -> None:
    bench.config = health_config.HealthConfig(deadline=30.0)
    bench.healths.ask_readiness(WEB, "batch:readiness")
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    assert bench.shown[-1] == f"Progressing {UNASKED}: Readiness batch:readiness"
    assert not bench.healths.has_been_healthy(WEB)
    bench.healths.note_readiness(WEB, resource_health.HEALTHY, bench.clock.time())
    await bench.after(1.0)
    assert bench.shown[-1] == "Healthy"
    assert bench.healths.has_been_healthy(WEB)
    bench.healths.note_readiness(WEB, UNREADY, bench.clock.time())
    await bench.after(1.0)
    assert bench.shown[-1] == "Progressing failed with exit code 1: Readiness batch:readiness"
    await bench.after(30.0)
    assert bench.shown[-1].startswith("Failed failed with exit code 1: Readiness batch:readiness, for more")


async def test_an_answer_from_before_a_revision_does_not_count_for_it(bench: Bench) -> None:
    bench.healths.ask_readiness(WEB, "batch:readiness")
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    asked = bench.clock.time()
    bench.healths.note_readiness(WEB, resource_health.HEALTHY, asked)
    await bench.after(1.0)
    assert bench.healths.has_been_healthy(WEB)
    await bench.resources.follow(WEB, DEPLOYED)
    bench.healths.followed(WEB)
    await bench.after(1.0)
    bench.healths.note_readiness(WEB, resource_health.HEALTHY, asked)
    await bench.after(1.0)
    assert bench.shown[-1].startswith(f"Progressing {UNASKED}")
    assert not bench.healths.knows_readiness(WEB)
    bench.healths.note_readiness(WEB, resource_health.HEALTHY, bench.clock.time())
    await bench.after(1.0)
    assert bench.shown[-1] == "Healthy"


async def test_a_module_without_a_release_is_as_its_program_says_until_none_is_asked(bench: Bench) -> None:
    bench.healths.ask_readiness(WEB, "batch:readiness")
    bench.healths.note_readiness(WEB, UNREADY, bench.clock.time())
    await bench.after(module_healths.GATHER)
    assert bench.shown == ["Progressing failed with exit code 1: Readiness batch:readiness"]
    bench.healths.ask_readiness(WEB, None)
    await bench.after(module_healths.GATHER)
    assert bench.shown[-1] == ""
    assert bench.healths.health_of(WEB) is None


async def test_a_module_may_ignore_what_its_program_says(bench: Bench) -> None:
    bench.config = health_config.HealthConfig(ignore=(health_config.ResourcePattern(kind="Readiness"),))
    bench.healths.ask_readiness(WEB, "batch:readiness")
    await bench.follow()
    await bench.report(resource_health.HEALTHY)
    assert bench.shown == ["Healthy"]
