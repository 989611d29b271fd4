"""An operator that is killed at any moment: the next one brings the cluster to the same state."""

import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import pytest

from addon_operator.devcluster import handle
from addon_operator.process import daemons
from tests.integration import crash_scenario, helm_site, operator_process, operator_site

pytestmark = pytest.mark.integration

Begin: TypeAlias = Callable[[], crash_scenario.Scenario]
Recorded: TypeAlias = Mapping[str, crash_scenario.Seen]


@pytest.fixture
def begin(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[Begin]:
    """Begins a life, in a namespace of its own."""
    lives: list[crash_scenario.Scenario] = []

    def live() -> crash_scenario.Scenario:
        lives.append(crash_scenario.Scenario(devcluster, tmp_path / str(len(lives))))
        return lives[-1]

    yield live
    for each in lives:
        each.close()


def live_undisturbed(life: crash_scenario.Scenario) -> Recorded:
    """What each phase leaves when nobody is killed."""
    seen = {}
    for phase in crash_scenario.PHASES:
        life.enter(phase)
        seen[phase] = life.settle(crash_scenario.is_over(phase))
    assert life.starts == 1
    return seen


def live_and_die(life: crash_scenario.Scenario, fatal: Mapping[str, str], recorded: Recorded) -> None:
    """Live through the phases up to the last fatal point, and compare what each leaves."""
    interrupted = 0
    for phase, point in fatal.items():
        wanted = recorded[phase]
        life.enter(phase, point)
        seen = life.settle(wanted.objects.__eq__)
        interrupted += "started helm upgrade" in point
        check_revisions(seen, wanted, interrupted)
    assert life.starts == 1 + sum(map(bool, fatal.values()))


def check_revisions(seen: crash_scenario.Seen, wanted: crash_scenario.Seen, interrupted: int) -> None:
    """No release is lost, doubled or left half-way; only a call that was interrupted may cost a revision."""
    assert seen.revisions.keys() == wanted.revisions.keys()
    for release, statuses in seen.revisions.items():
        assert statuses[-1] == "deployed"
        assert set(statuses[:-1]) <= {"superseded", "failed"}
        assert len(statuses) <= len(wanted.revisions[release]) + interrupted


def fatal_points(passed: list[str]) -> Iterator[dict[str, str]]:
    """The fatal point of each phase of one life, for as many lives as there must be to have each point."""
    of_phase = [
        [point for point in passed if point.startswith(f"{phase}: ") and tells_apart(point)]
        for phase in crash_scenario.PHASES
    ]
    for points in itertools.zip_longest(*of_phase, fillvalue=""):
        last = max(number for number, point in enumerate(points) if point)
        yield dict(zip(crash_scenario.PHASES[: last + 1], points, strict=False))


def tells_apart(point: str) -> bool:
    """Whether a kill there leaves something else than a kill at the point before.

    Before an effect the cluster is as it was after the effect that came before it, and values are memory. The
    status of Modules is written when there is time, for all that happened until then: only the first time at
    the start is sure to come.
    """
    is_status = " modules/" in point
    is_sure = point.startswith(crash_scenario.INSTALL) and point.endswith("#1")
    is_shared = "modules.addon-operator.io" in point
    return not (": before " in point or "values of" in point or is_shared or (is_status and not is_sure))


@pytest.mark.slow
def test_killed_before_or_after_any_effect_the_next_start_brings_the_same_state(begin: Begin) -> None:
    undisturbed = begin()
    recorded = live_undisturbed(undisturbed)
    undisturbed.close()
    lives = list(fatal_points(undisturbed.points))
    assert sum(len(fatal) for fatal in lives) > 40, "all effects of all phases are there"
    for fatal in lives:
        life = begin()
        live_and_die(life, fatal, recorded)
        life.close()


@pytest.mark.slow
def test_a_kill_in_the_middle_of_an_install_an_edit_and_a_removal_is_made_up_for(begin: Begin) -> None:
    undisturbed, life = begin(), begin()
    recorded = live_undisturbed(undisturbed)
    undisturbed.close()
    fatal = {
        crash_scenario.INSTALL: "install: after POST configmaps/addon-operator #1",
        crash_scenario.EDIT: "edit: started helm upgrade web~ #1",
        crash_scenario.DISABLE: "disable: ended helm uninstall api~ #1",
    }
    live_and_die(life, fatal, recorded)


def test_helm_ends_with_its_killed_operator_and_the_next_one_makes_up_for_it(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    slow = web / "templates" / "slow.yaml"
    slow.write_text(helm_site.SLOW_HOOK)
    first = site.start()
    jobs = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    first.wait_until(lambda: json.loads(site.kubectl("get", "--raw", jobs))["items"], "Helm waits")
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
