"""The trials, each with few of what they try by the hundred."""

import pathlib

import pytest

from addon_operator.devcluster import handle
from tests.integration import helm_site
from tests.trials import kept_objects, packed, planned_changes, public_charts

pytestmark = pytest.mark.integration

_CHART = pathlib.Path(__file__).parents[2] / "deploy" / "chart" / "addon-operator"


@pytest.mark.slow
@pytest.mark.parametrize("helm", ["helm4"], indirect=True)
def test_the_chart_of_the_project_passes_the_trial_of_public_charts(
    devcluster: handle.DevCluster, helm: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    table, said = public_charts.run(devcluster, helm, [_CHART], {}, tmp_path)
    told = {
        step: found["addon-operator"].partition(" ")[0].rstrip(",") for step, found in table.items() if found
    }
    steps = ("lint", "plan", "install", "plan after", "restart", "alone", "heal", "edit", "schema", "off")
    assert told == dict.fromkeys(steps, "ok"), table
    assert "addonOperator.image: must be a mapping" in said["addon-operator", packed.Edit.SCHEMA]


@pytest.mark.slow
def test_a_plan_without_the_cluster_foresees_a_handful_of_random_changes(
    devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    result = planned_changes.run(devcluster, tmp_path, changes=12, seed=3, at_once=6)
    assert result.wrong == []
    assert (result.changes, result.rounds) == (12, 2)
    assert result.revisions + result.removals > 0
    assert result.without_effect > 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
@helm_site.ANY_HELM
def test_random_sequences_lose_nothing_and_leave_nothing_stuck(
    devcluster: handle.DevCluster, helm: pathlib.Path, tmp_path: pathlib.Path, count: int
) -> None:
    result = kept_objects.run(devcluster, helm, tmp_path, range(1, 1 + count))
    assert result.wrong == []
    assert result.sequences == count
    assert result.steps["mend"] == count
