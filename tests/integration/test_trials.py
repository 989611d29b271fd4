"""The trial of public charts, with a chart that is always at hand."""

import pathlib

import pytest

from addon_operator.devcluster import handle
from tests.trials import packed, public_charts

pytestmark = pytest.mark.integration

_CHART = pathlib.Path(__file__).parents[2] / "deploy" / "chart" / "addon-operator"


@pytest.mark.slow
@pytest.mark.parametrize("helm", ["helm4"], indirect=True)
def test_the_chart_of_the_project_passes_the_trial_of_public_charts(
    devcluster: handle.DevCluster, helm: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    table, said = public_charts.run(devcluster, helm, [_CHART], {}, tmp_path)
    told = {step: found["addon-operator"].partition(" ")[0] for step, found in table.items() if found}
    steps = ("lint", "plan", "install", "plan after", "restart", "alone", "heal", "edit", "schema", "off")
    assert told == dict.fromkeys(steps, "ok"), table
    assert "addonOperator.image: must be a mapping" in said["addon-operator", packed.Edit.SCHEMA]
