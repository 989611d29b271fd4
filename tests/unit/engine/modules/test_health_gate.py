"""Which runs wait for health, and what ends that."""

import asyncio
import dataclasses
import pathlib

import pytest
from typing_extensions import override

from addon_operator.engine import intents, module_states, tasks
from addon_operator.engine.drift import module_healths
from addon_operator.engine.modules import health_gate, module_releases
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config
from addon_operator.modules.health import health_config, module_health
from addon_operator.modules.health.resource_health import HealthState
from tests.support import clocks
from tests.unit.engine import fakes

WEB, DB = ModuleName("web"), ModuleName("db")


class Healths(module_healths.ModuleHealths):
    """What a test says of modules."""

    def __init__(self) -> None:
        self.inbox = fakes.Inbox()
        self.reached: set[ModuleName] = set()
        self.health: module_health.ModuleHealth | None = None
        self.fresh = True

    @override
    def has_been_healthy(self, module: ModuleName) -> bool:
        return module in self.reached

    @override
    def health_of(self, module: ModuleName) -> module_health.ModuleHealth | None:
        return self.health

    @override
    def is_fresh(self, module: ModuleName) -> bool:
        return self.fresh


class Releases(module_releases.ModuleReleases):
    """Tests of charts that go on until a test says how they end."""

    def __init__(self) -> None:
        self.healths = Healths()
        self.marked: list[ModuleName] = []
        self.tested = False
        self.ended = asyncio.Event()
        self.error: errors.ModuleError | None = None

    @override
    async def is_tested(self, module: ModuleName) -> bool:
        return self.tested

    @override
    async def test(self, module: model.Module) -> None:
        await self.ended.wait()
        if self.error is not None:
            raise self.error
        self.tested = True

    @override
    async def mark_healthy(self, module: ModuleName) -> None:
        self.marked.append(module)


class Run(tasks.Task):
    kind = tasks.TaskKind.MODULE_RUN

    @override
    async def run(self) -> None:
        """It is never run."""


class Bench:
    def __init__(self, config: module_config.ModuleConfig) -> None:
        web = model.Module(WEB, 2, pathlib.Path("web"), has_chart=True, config=config)
        self.states = module_states.ModuleStates(
            [model.Module(DB, 1, pathlib.Path("db")), web], lambda _: None
        )
        self.releases = Releases()
        self.healths = self.releases.healths
        assert isinstance(self.healths, Healths)
        self.gate = health_gate.HealthGate(self.states, self.releases)
        self.task = Run(owner=WEB)

    @property
    def seen(self) -> Healths:
        assert isinstance(self.healths, Healths)
        return self.healths

    async def is_through(self) -> bool:
        try:
            await self.gate.check_own(self.task)
        except tasks.PostponedError:
            return False
        return True


def with_health(**health: bool | float) -> module_config.ModuleConfig:
    return module_config.ModuleConfig(health=health_config.HealthConfig(**health), rollback=True)  # type: ignore[arg-type]


NEEDS = module_config.Requirements(modules=(DB,))


async def test_a_run_waits_until_what_it_requires_was_healthy() -> None:
    bench = Bench(module_config.ModuleConfig(requires=NEEDS))
    with pytest.raises(tasks.PostponedError):
        bench.gate.check_required(bench.task)
    assert bench.task.aside.is_set(), "others do not wait for it"
    assert "waits until db is healthy" in bench.states[WEB].reason
    bench.seen.reached.add(DB)
    bench.gate.check_required(bench.task)


async def test_it_does_not_wait_for_what_need_only_be_ready() -> None:
    needs = dataclasses.replace(NEEDS, until_ready=frozenset({DB}))
    bench = Bench(module_config.ModuleConfig(requires=needs))
    bench.gate.check_required(bench.task)


async def test_without_the_key_a_run_ends_at_once() -> None:
    assert await Bench(module_config.NOTHING).is_through()


async def test_a_run_ends_when_its_module_is_healthy_and_remembers_that_for_a_rollback() -> None:
    bench = Bench(with_health(wait=True))
    assert not await bench.is_through()
    assert bench.states[WEB].awaits_health == (WEB,)
    bench.seen.reached.add(WEB)
    assert await bench.is_through()
    assert bench.releases.marked == [WEB]


async def test_what_has_failed_since_the_revision_fails_the_run_at_once() -> None:
    bench = Bench(with_health(wait=True))
    bench.seen.health = module_health.ModuleHealth(HealthState.FAILED, "failed: Job x")
    bench.seen.fresh = False
    assert not await bench.is_through()
    bench.seen.fresh = True
    with pytest.raises(errors.ModuleError, match="not healthy: failed: Job x"):
        await bench.is_through()


async def test_what_takes_too_long_fails_the_run() -> None:
    bench = Bench(with_health(wait=True, timeout=0.0))
    with pytest.raises(errors.ModuleError, match="not healthy within 0s: nothing is known"):
        await bench.is_through()


async def test_tests_of_the_chart_run_beside_and_wake_the_run_when_they_end() -> None:
    bench = Bench(with_health(test=True))
    bench.seen.reached.add(WEB)
    assert not await bench.is_through()
    assert not await bench.is_through()
    bench.releases.ended.set()
    await clocks.settle()
    assert intents.HealthChanged(WEB) in bench.seen.inbox.put_in  # type: ignore[attr-defined]
    assert await bench.is_through()


async def test_a_test_that_fails_fails_the_run() -> None:
    bench = Bench(with_health(test=True))
    bench.seen.reached.add(WEB)
    bench.releases.error = errors.ModuleError(WEB, "the chart's tests failed")
    bench.releases.ended.set()
    assert not await bench.is_through()
    await clocks.settle()
    with pytest.raises(errors.ModuleError, match="tests failed"):
        await bench.is_through()


async def test_another_run_ends_tests_of_the_revision_before() -> None:
    bench = Bench(with_health(test=True))
    bench.seen.reached.add(WEB)
    assert not await bench.is_through()
    bench.gate.end_tests(WEB)
    await clocks.settle()
    assert not bench.releases.tested
    bench.gate.end_tests(WEB)
