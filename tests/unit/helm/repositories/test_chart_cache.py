"""The cache of charts that were pulled."""

import asyncio
import os
import pathlib
import time

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.helm import helm_errors
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import names
from addon_operator.modules import model, module_config
from tests.unit.helm.repositories.pulled_charts import WANTED, World

NO_CHART = model.Module(names.ModuleName("web"), 1, pathlib.Path("/nowhere"))


@pytest.fixture
async def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path)


def test_a_chart_has_a_place_of_its_own_for_each_thing_that_makes_it_another() -> None:
    charts = pathlib.Path("/charts")
    others = [
        module_config.ChartReference("https://other.example.com", "web", "1.2.3"),
        module_config.ChartReference(WANTED.repository, "../../web", "1.2.3"),
        module_config.ChartReference(WANTED.repository, "web", "1.2.4"),
        module_config.ChartReference(WANTED.repository, "web", "1.2.3", "sha256:abc"),
    ]
    places = [chart_cache.place(charts, each) for each in (WANTED, *others)]
    assert len(set(places)) == len(places)
    assert {place.parent for place in places} == {charts}
    assert places[0].name.startswith("web-1.2.3-")


async def test_a_chart_is_pulled_once_for_all_who_want_it(world: World) -> None:
    one, other = world.module(), world.module("other")
    assert not chart_cache.is_there(one)
    await asyncio.gather(world.cache.ensure(one), world.cache.ensure(other))
    await world.cache.ensure(one)
    assert chart_cache.is_there(one)
    await world.another().ensure(one)
    assert world.puller.pulls == 1
    assert world.names() == [one.chart_directory.name]
    assert world.notes == [f"chart {WANTED} pulled"]


async def test_a_module_without_a_repository_costs_nothing(world: World) -> None:
    await world.cache.ensure(NO_CHART)
    assert (world.puller.pulls, world.charts.exists()) == (0, False)


async def test_of_two_processes_that_pull_at_the_same_time_the_second_takes_what_the_first_put_there(
    world: World,
) -> None:
    world.puller.go.clear()
    both = [asyncio.create_task(each.ensure(world.module())) for each in (world.cache, world.another())]
    for _ in both:
        await world.puller.came.acquire()
    world.puller.go.set()
    await asyncio.gather(*both)
    assert world.names() == [world.module().chart_directory.name]


async def test_what_a_kill_left_half_done_is_not_used(world: World) -> None:
    half = world.module().chart_directory
    half.mkdir(parents=True)
    (half / "values.yaml").write_text("of nobody")
    await world.cache.ensure(world.module())
    assert (world.puller.pulls, [path.name for path in half.iterdir()]) == (1, ["Chart.yaml"])


async def test_a_pull_that_takes_long_holds_up_nobody_and_goes_on(world: World) -> None:
    world.puller.go.clear()
    with pytest.raises(
        helm_errors.ChartError, match=r"module web: chart web 1\.2\.3 of .* still being pulled"
    ):
        await world.cache.ensure(world.module(), 0.01)
    world.puller.go.set()
    await world.cache.ensure(world.module(), None)
    assert world.puller.pulls == 1


async def test_a_repository_that_hangs_holds_up_its_own_charts_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_cache, "NO_PATIENCE", 0.01)
    world.puller.go.clear()
    versions = [structs.replace(WANTED, version=f"1.2.{number}") for number in range(chart_cache.AT_ONCE + 3)]
    elsewhere = structs.replace(WANTED, repository="oci://other.example.com")
    with pytest.raises(helm_errors.ChartError, match="still being pulled"):
        await world.cache.ensure(world.module(), 0.01)
    async with asyncio.timeout(60):
        for wanted in versions:
            with pytest.raises(helm_errors.ChartError, match="still being pulled"):
                await world.cache.ensure(world.module(wanted=wanted), 60)
    with pytest.raises(helm_errors.ChartError, match="still being pulled"):
        await world.cache.ensure(world.module(wanted=elsewhere), 0.01)
    for _ in range(chart_cache.AT_ONCE + 1):
        await world.puller.came.acquire()
    assert world.puller.pulls == chart_cache.AT_ONCE + 1
    await world.cache.close()


async def test_a_pull_that_failed_is_an_error_of_each_module_and_is_tried_again(world: World) -> None:
    world.puller.fails = "no way"
    for name in ("web", "other"):
        with pytest.raises(helm_errors.ChartError, match=f"module {name}: no way"):
            await world.cache.ensure(world.module(name))
    world.puller.fails = ""
    await world.cache.ensure(world.module())
    assert world.puller.pulls == 3


async def test_an_archive_that_is_not_a_chart_does_not_get_into_the_cache(world: World) -> None:
    world.puller.archive.write_text("<html>")
    with pytest.raises(
        helm_errors.ChartError, match=r"the archive of chart web 1\.2\.3 of .* is not a readable"
    ):
        await world.cache.ensure(world.module())
    assert world.names() == []


async def test_a_directory_that_cannot_be_used_is_named(world: World) -> None:
    world.charts.parent.write_text("a file")
    with pytest.raises(helm_errors.ChartError, match="name another directory with CHART_CACHE_DIR"):
        await world.cache.ensure(world.module())


async def test_a_mounted_volume_is_used_whoever_owns_it(world: World) -> None:
    world.charts.mkdir(parents=True)
    world.charts.chmod(0o2777)
    await world.cache.ensure(world.module())
    assert chart_cache.is_there(world.module())


async def test_an_end_ends_the_pulls(world: World) -> None:
    world.puller.go.clear()
    with pytest.raises(helm_errors.ChartError):
        await world.cache.ensure(world.module(), 0.01)
    await world.puller.came.acquire()
    await world.cache.close()
    assert world.names() == []


def aged(path: pathlib.Path, seconds: float, now: float) -> pathlib.Path:
    path.mkdir(parents=True)
    os.utime(path, (now - seconds, now - seconds))
    return path


def test_charts_that_nobody_used_for_a_month_are_removed(tmp_path: pathlib.Path) -> None:
    now = 1e9
    used = aged(tmp_path / "used", 90 * chart_cache.DAY, now)
    recent = aged(tmp_path / "recent", 29 * chart_cache.DAY, now)
    old = aged(tmp_path / "old", 31 * chart_cache.DAY, now)
    left = aged(tmp_path / ".pull-left", 7200, now)
    running = aged(tmp_path / ".pull-running", 600, now)
    assert set(chart_cache.tidy(tmp_path, [used, tmp_path / "not-pulled-yet"], now)) == {old, left}
    assert set(tmp_path.iterdir()) == {used, recent, running}
    assert used.stat().st_mtime == now, "another operator sees that it is used"
    assert chart_cache.tidy(tmp_path / "nothing", [], now) == []


async def test_an_operator_keeps_what_its_modules_use_and_logs_what_it_removes(world: World) -> None:
    old = aged(world.module().chart_directory, 90 * chart_cache.DAY, time.time())
    left = aged(world.charts / "left", 90 * chart_cache.DAY, time.time())
    told = asyncio.Event()
    world.notes = Told(told)
    keeping = asyncio.create_task(world.another().keep(lambda: [world.module(), NO_CHART]))
    await asyncio.wait_for(told.wait(), 60)
    keeping.cancel()
    assert (old.exists(), left.exists()) == (True, False)
    assert world.notes == [f"{left} removed: no operator has used it for long"]


class Told(list[str]):
    """Notes that wake somebody."""

    def __init__(self, event: asyncio.Event) -> None:
        super().__init__()
        self._event = event

    @override
    def append(self, text: str) -> None:
        super().append(text)
        self._event.set()
