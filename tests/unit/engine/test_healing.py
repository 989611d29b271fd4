"""When a disappeared resource makes a run of its module, and when it does not."""

import asyncio
from collections.abc import Sequence

import pytest

from addon_operator.engine import heal_backoff, healing
from addon_operator.kernel import errors
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import own_deletions
from tests.unit.engine import fakes, watching

DB, WEB = watching.DB, watching.WEB


class Bench:
    """Modules with watched resources; time is moved by hand."""

    def __init__(self) -> None:
        self.clock = fakes.Clock()
        self.cluster = watching.Cluster()
        self.resources = watching.resources_of(self.cluster)
        self.deletions = own_deletions.OwnDeletions()
        self.runs: list[tuple[str, str]] = []
        self.told: list[tuple[str, str, tuple[str, ...]]] = []
        self.healing = healing.Healing(
            self.resources, self.cluster, self.deletions, self, self._run, self.clock
        )

    def _run(self, module: ModuleName, activation: str) -> None:
        self.runs.append((module, activation))

    def absent_found(self, module: ModuleName, resources: Sequence[str]) -> None:
        self.told.append(("absent", module, tuple(resources)))

    def healed(self, module: ModuleName, resources: Sequence[str]) -> None:
        self.told.append(("healed", module, tuple(resources)))

    def heal_postponed(self, module: ModuleName, resources: Sequence[str], seconds: float) -> None:
        self.told.append((f"postponed {seconds:g}", module, tuple(resources)))

    async def have(self, module: ModuleName, *names: str) -> None:
        """The module's release is there with these ConfigMaps."""
        self.cluster.put(*names)
        await self.resources.follow(module, watching.wanted(*names))
        self.cluster.sync()

    def hook_deletes(self, owner: str, name: str) -> None:
        key = own_deletions.ObjectKey("", "ConfigMap", "addons", name)
        self.deletions.note(own_deletions.Owner(owner), key)
        self.cluster.remove(name)

    async def after(self, seconds: float) -> list[str]:
        """The modules that runs are asked for by then."""
        before = len(self.runs)
        self.clock.now += seconds
        await self.healing.look()
        return [module for module, _ in self.runs[before:]]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_deleted_resource_makes_a_run_within_a_second(bench: Bench) -> None:
    await bench.have(WEB, "a")
    assert await bench.after(1) == []
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert bench.runs == [(WEB, "DetectAbsentHelmResources")]
    assert bench.told == [("absent", WEB, ("ConfigMap addons/a",))]


async def test_a_burst_of_deletions_makes_one_run(bench: Bench) -> None:
    await bench.have(WEB, "a", "b", "c")
    bench.cluster.remove("a")
    assert await bench.after(healing.SETTLE / 2) == []
    bench.cluster.remove("b", "c")
    assert await bench.after(healing.SETTLE) == [WEB]
    assert await bench.after(1) == []


async def test_a_shared_resource_makes_a_run_of_each_module(bench: Bench) -> None:
    await bench.have(WEB, "a")
    await bench.have(DB, "a")
    bench.cluster.remove("a")
    assert sorted(await bench.after(1)) == [DB, WEB]


async def test_a_resource_that_somebody_puts_back_at_once_is_no_reason(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.cluster.put("a")
    assert await bench.after(1) == []


async def test_what_disappeared_while_the_operator_was_away_makes_a_run(bench: Bench) -> None:
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    assert await bench.after(1) == [WEB]


async def test_a_watch_that_is_behind_is_not_believed(bench: Bench) -> None:
    bench.cluster.behind = {"a"}
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    assert await bench.after(1) == []
    assert await bench.healing.absent(WEB) == ()
    bench.cluster.behind = set()
    assert await bench.after(healing.LAG) == [WEB]


async def test_without_the_right_to_get_the_watch_is_believed(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.may_get = False
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]


async def test_while_the_api_server_does_not_answer_nothing_is_concluded(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.cluster.error = errors.AddonOperatorError("no answer")
    assert await bench.after(1) == []
    bench.cluster.error = None
    assert await bench.after(healing.RECHECK) == [WEB]


async def test_of_many_absent_resources_only_the_first_are_asked_for(bench: Bench) -> None:
    names = [f"a{number:03}" for number in range(100)]
    await bench.have(WEB, *names)
    bench.cluster.remove(*names)
    assert len(await bench.healing.absent(WEB)) == 100
    assert len(bench.cluster.probed) < 10


async def test_of_many_that_a_watch_is_behind_with_only_the_first_are_asked_for(bench: Bench) -> None:
    names = [f"a{number:03}" for number in range(100)]
    bench.cluster.behind = set(names)
    await bench.resources.follow(WEB, watching.wanted(*names))
    bench.cluster.sync()
    assert await bench.healing.absent(WEB) == ()
    assert len(bench.cluster.probed) < 10


async def test_a_deletion_by_the_modules_own_hook_is_no_reason(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.hook_deletes(WEB, "a")
    assert await bench.after(1) == []
    assert await bench.healing.absent(WEB) == ()


async def test_a_hooks_deletion_counts_once(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.hook_deletes(WEB, "a")
    assert await bench.after(1) == []
    bench.cluster.put("a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]


@pytest.mark.parametrize("owner", ["db", ""], ids=["other module", "global hook"])
async def test_a_deletion_by_the_hook_of_somebody_else_is_a_reason(bench: Bench, owner: str) -> None:
    await bench.have(WEB, "a")
    bench.hook_deletes(owner, "a")
    assert await bench.after(1) == [WEB]


async def test_a_hooks_deletion_before_the_first_list_is_no_reason_either(bench: Bench) -> None:
    bench.hook_deletes(WEB, "a")
    await bench.resources.follow(WEB, watching.wanted("a"))
    bench.cluster.sync()
    assert await bench.after(1) == []


async def test_while_helm_works_on_a_release_its_deletions_are_no_reason(bench: Bench) -> None:
    await bench.have(WEB, "a", "b")
    with bench.healing.helm_at_work(WEB):
        bench.cluster.remove("a", "b")
        assert await bench.after(1) == []
        bench.cluster.put("a")
        await bench.resources.follow(WEB, watching.wanted("a"))
    assert await bench.after(10) == []


async def test_what_is_absent_after_helm_worked_is_healed(bench: Bench) -> None:
    await bench.have(WEB, "a")
    with bench.healing.helm_at_work(WEB):
        bench.cluster.remove("a")
    assert await bench.after(healing.LAG) == [WEB]


async def test_a_run_that_came_to_nothing_is_asked_for_again(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    assert await bench.after(1) == [WEB]
    assert await bench.after(healing.RECHECK) == [WEB]
    bench.cluster.put("a")
    assert await bench.after(healing.RECHECK) == []


async def test_a_resource_that_is_removed_again_and_again_is_healed_more_and_more_seldom(
    bench: Bench,
) -> None:
    await bench.have(WEB, "a")
    for _ in range(heal_backoff.FREE):
        bench.cluster.remove("a")
        assert await bench.after(0.5) == [WEB]
        bench.cluster.put("a")
        bench.healing.healed(WEB, ["ConfigMap addons/a"])
    bench.cluster.remove("a")
    assert await bench.after(0.5) == []
    assert bench.told[-1] == ("postponed 4.5", WEB, ("ConfigMap addons/a",))
    assert await bench.after(1) == []
    assert len([told for told in bench.told if told[0].startswith("postponed")]) == 1
    assert await bench.after(4) == [WEB]


async def test_nothing_of_a_forgotten_module_is_healed(bench: Bench) -> None:
    await bench.have(WEB, "a")
    bench.cluster.remove("a")
    bench.resources.unfollow(WEB)
    bench.healing.forget(WEB)
    assert await bench.after(100) == []


async def test_the_worker_looks_as_soon_as_a_watch_tells(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "SETTLE", 0.0)
    await bench.have(WEB, "a")
    worker = asyncio.create_task(bench.healing.work())
    await fakes.settle()
    bench.cluster.remove("a")
    await fakes.settle()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert bench.runs == [(WEB, healing.ACTIVATION)]
