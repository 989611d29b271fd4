"""An operator that is killed at any moment: the next one brings the cluster to the same state."""

import functools
import itertools
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import pytest

from addon_operator.devcluster import handle
from addon_operator.process import daemons
from tests.integration import crash_remedies, crash_scenario, helm_site, operator_process, operator_site

pytestmark = pytest.mark.integration

Begin: TypeAlias = Callable[[type[crash_scenario.Scenario]], crash_scenario.Scenario]
Recorded: TypeAlias = Mapping[str, crash_scenario.Seen]
LIVES: Final = (crash_scenario.InstallEditDisable, crash_remedies.Remedies)


@pytest.fixture
def begin(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[Begin]:
    """Begins a life, in a namespace of its own."""
    lives: list[crash_scenario.Scenario] = []

    def live(scenario: type[crash_scenario.Scenario]) -> crash_scenario.Scenario:
        lives.append(scenario(devcluster, tmp_path / str(len(lives))))
        return lives[-1]

    yield live
    for each in lives:
        each.close()


def live_undisturbed(life: crash_scenario.Scenario) -> Recorded:
    """What each phase leaves when nobody is killed."""
    seen = {}
    for phase in life.phases:
        life.enter(phase)
        seen[phase] = life.settle(functools.partial(life.is_over, phase))
    assert life.starts == 1
    return seen


def live_and_die(life: crash_scenario.Scenario, fatal: Mapping[str, str], recorded: Recorded) -> None:
    """Live through the phases up to the last fatal point, and compare what each leaves."""
    cost = 0
    for phase, point in fatal.items():
        wanted = recorded[phase]
        life.enter(phase, point)
        seen = life.settle(wanted.objects.__eq__)
        cost += life.cost(point)
        check_revisions(seen, wanted, cost)
    assert life.starts == 1 + sum(map(bool, fatal.values()))


def check_revisions(seen: crash_scenario.Seen, wanted: crash_scenario.Seen, cost: int) -> None:
    """No release is lost, doubled or left half-way; only a call that was interrupted may cost a revision."""
    assert seen.revisions.keys() == wanted.revisions.keys()
    for release, statuses in seen.revisions.items():
        assert statuses[-1] == "deployed"
        assert set(statuses[:-1]) <= {"superseded", "failed"}
        assert len(statuses) <= len(wanted.revisions[release]) + cost


def fatal_points(life: crash_scenario.Scenario) -> Iterator[dict[str, str]]:
    """The fatal point of each phase of one life, for as many lives as there must be to have each point."""
    of_phase = [
        [point for point in life.points if point.startswith(f"{phase}: ") and life.tells_apart(point)]
        for phase in life.phases
    ]
    for points in itertools.zip_longest(*of_phase, fillvalue=""):
        last = max(number for number, point in enumerate(points) if point)
        yield dict(zip(life.phases[: last + 1], points, strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", LIVES)
def test_killed_before_or_after_any_effect_the_next_start_brings_the_same_state(
    begin: Begin, scenario: type[crash_scenario.Scenario]
) -> None:
    undisturbed = begin(scenario)
    recorded = live_undisturbed(undisturbed)
    undisturbed.close()
    lives = list(fatal_points(undisturbed))
    assert sum(len(fatal) for fatal in lives) >= 36, "all effects of all phases are there"
    for fatal in lives:
        life = begin(scenario)
        live_and_die(life, fatal, recorded)
        life.close()


MIDDLE: Final = {
    crash_scenario.InstallEditDisable: {
        crash_scenario.INSTALL: "install: after POST configmaps/addon-operator #1",
        crash_scenario.EDIT: "edit: started helm upgrade web~ #1",
        crash_scenario.DISABLE: "disable: ended helm uninstall api~ #1",
    },
    crash_remedies.Remedies: {
        crash_remedies.FAIL: "fail: started helm uninstall api~ #1",
        crash_remedies.BREAK: "break: started helm rollback web~ #1",
        crash_remedies.MEND: "mend: started helm test web~ #1",
        crash_remedies.TOUCH: "touch: after PATCH configmaps/web~ #1",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", LIVES)
def test_a_kill_in_the_middle_is_made_up_for(begin: Begin, scenario: type[crash_scenario.Scenario]) -> None:
    undisturbed, life = begin(scenario), begin(scenario)
    recorded = live_undisturbed(undisturbed)
    undisturbed.close()
    live_and_die(life, MIDDLE[scenario], recorded)


def test_helm_ends_with_its_killed_operator_and_the_next_one_makes_up_for_it(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    slow = web / "templates" / "slow.yaml"
    slow.write_text(helm_site.SLOW_HOOK)
    first = site.start()
    first.wait_until(lambda: site.listed("job"), "Helm waits")
    left = processes(site) - {daemons.ProcessTable().identify(first.pid)}
    assert left
    first.kill()
    slow.unlink()
    site.start().wait_ready().wait_idle()
    operator_process.wait_until(lambda: not left & processes(site), "Helm has ended")
    assert site.data("web") == {"color": "green"}
    found = site.objects("secrets", labelSelector="owner=helm")
    assert [secret["metadata"]["labels"]["status"] for secret in found].count("deployed") == 1
    assert site.revisions()["web"] == len(found) <= 2


def processes(site: operator_site.Site) -> set[daemons.ProcessIdentity | None]:
    """The operators of this site and all programs that they have started."""
    return {*daemons.ProcessTable().marked("TRACE", str(site.root / "trace"))}
