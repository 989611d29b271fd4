"""What releases left in the cluster: looked at by one loop, and shown with the modules."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator

import pytest

from addon_operator.engine import module_states, state
from addon_operator.engine.modules import left_watch
from addon_operator.helm import remembered
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import keeping, manifests, model
from tests.support import clocks
from tests.unit.engine import fakes

WEB = ModuleName("web")
CLAIM = manifests.ManifestResource("v1", "PersistentVolumeClaim", None, "data")
MAP = remembered.RememberedObject(api_version="v1", kind="ConfigMap", name="held", namespace="addons")


class Bench:
    """A module that is disabled, and the loop."""

    def __init__(self) -> None:
        self.clock, self.left = clocks.Clock(), fakes.Left()
        module = model.Module(WEB, 1, pathlib.Path("web"))
        self.left.places.assign([module])
        self.states = module_states.ModuleStates([module], fakes.ignore)
        self.watch = left_watch.LeftWatch(self.left, self.states)

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        work = asyncio.create_task(self.watch.work())
        try:
            await clocks.settle()
            yield
        finally:
            work.cancel()

    def discover(self) -> None:
        self.states.discovered({WEB: model.Verdict(WEB, enabled=False, reason="off")}, [])

    def keep(self) -> None:
        """The release loses a claim that stays."""
        kept = keeping.Kept(CLAIM.kind, "addons", CLAIM.name, keeping.Why.DATA, uid="1")
        self.left.keep(WEB, {CLAIM: kept})

    def put(self, name: str, **metadata: object) -> None:
        self.left.live.there[name] = {"metadata": {"name": name, **metadata}}

    @property
    def kept(self) -> list[str]:
        return [f"{release} {each.kind} {each.name}" for release, each in self.states[WEB].kept or ()]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_what_waits_for_finalizers_is_known_to_the_next_operator(bench: Bench) -> None:
    bench.left.memory.change(bench.left.places.of(WEB), leaving=(MAP,))
    bench.put("held", deletionTimestamp="now", finalizers=["example.com/wait"])
    async with bench.working():
        bench.discover()
        assert bench.states[WEB].status is state.ModuleStatus.DELETING
        assert "held (example.com/wait)" in bench.states[WEB].reason
        bench.left.live.there.clear()
        await bench.clock.advance(10)
    assert bench.states[WEB].status is state.ModuleStatus.DISABLED
    assert "example.com/wait" not in bench.states[WEB].reason
    assert bench.left.memory.of(bench.left.places.of(WEB)) == remembered.UNKNOWN


async def test_what_is_kept_is_shown_until_it_is_deleted(bench: Bench) -> None:
    bench.put("data", uid="1", labels={keeping.KEPT_FROM: "web"})
    async with bench.working():
        assert bench.kept == []
        bench.keep()
        await clocks.settle()
        assert bench.kept == ["web PersistentVolumeClaim data"]
        await bench.clock.advance(60)
        assert bench.kept == ["web PersistentVolumeClaim data"]
        bench.left.live.there.clear()
        await bench.clock.advance(60)
        assert bench.kept == []


@pytest.mark.parametrize(
    ("uid", "labels"),
    [("1", {}), ("2", {keeping.KEPT_FROM: "web"})],
    ids=["a release has it again", "it is another one"],
)
async def test_what_is_no_longer_kept_is_forgotten(bench: Bench, uid: str, labels: dict[str, str]) -> None:
    bench.put("data", uid=uid, labels=labels)
    bench.keep()
    async with bench.working():
        assert bench.kept == []


async def test_without_anything_left_nobody_asks_the_api_server(bench: Bench) -> None:
    async with bench.working():
        await bench.clock.advance(600)
    assert bench.left.live.looks == 0


async def test_a_run_that_waits_for_finalizers_goes_on_when_a_look_finds_others(bench: Bench) -> None:
    bench.left.memory.change(bench.left.places.of(WEB), leaving=(MAP,))
    bench.put("held", deletionTimestamp="now")
    async with bench.working():
        waits = asyncio.create_task(bench.watch.change(asyncio.Event()))
        await bench.clock.advance(10)
        assert not waits.done()
        bench.left.live.there.clear()
        await bench.clock.advance(10)
        assert waits.done()
