"""Modules run again when their charts came late."""

import pathlib

import pytest
from typing_extensions import override

from addon_operator.engine import intents
from addon_operator.engine.definitions import module_charts
from addon_operator.helm import helm_errors
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import names
from addon_operator.modules import model
from tests.unit.helm.repositories import pulled_charts


class Impatient(chart_cache.ChartCache):
    """Gives up at once."""

    @override
    async def ensure(self, module: model.Module, patience: float | None = None) -> None:
        await super().ensure(module, 0.01)


@pytest.mark.parametrize("fails", ["", "no way"], ids=["there", "failed"])
async def test_the_end_of_a_pull_is_an_intent_for_each_module_that_did_not_wait(
    tmp_path: pathlib.Path, fails: str
) -> None:
    world, inbox = pulled_charts.World(tmp_path), intents.Inbox()
    charts = module_charts.ModuleCharts(Impatient(world.charts, world.puller, world.notes.append), inbox)
    world.puller.go.clear()
    for name in ("web", "shop"):
        with pytest.raises(helm_errors.ChartError, match="still being pulled"):
            await charts.ensure(world.module(name))
    assert inbox.empty()
    world.puller.fails = fails
    world.puller.go.set()
    reported = [await inbox.get(), await inbox.get()]
    assert reported == [intents.ChartPulled(names.ModuleName(name)) for name in ("web", "shop")]
