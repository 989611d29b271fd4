"""Deleted definitions of modules come back."""

import pathlib

import pytest
from typing_extensions import override

from addon_operator.engine import events
from addon_operator.engine.definitions import crd_guard
from addon_operator.engine.drift import drift_backoff, followed_releases
from addon_operator.kernel import names
from addon_operator.kube.discovery import api_resources
from addon_operator.modules import model
from addon_operator.values import store
from tests.support import clocks
from tests.unit.engine import fakes, watching
from tests.unit.engine.definitions.crd_bench import CRD
from tests.unit.engine.definitions.crd_bench import Bench as Definitions

CRDS = api_resources.Resource(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False, watching.ALL
)
NAME = "a.example.com"


class Followed(followed_releases.FollowedReleases):
    """No release is followed."""

    def __init__(self) -> None:
        """Nothing is asked for."""

    @override
    def look_again(self) -> None:
        """There is nothing to look at."""


class Modes(store.ValuesStore):
    """Says of all modules whether they are in maintenance."""

    def __init__(self, bench: "Bench") -> None:
        super().__init__(())
        self._bench = bench

    @override
    def maintenance(self, module: names.ModuleName) -> str:
        return self._bench.mode


class Bench(Definitions):
    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(root)
        self.clock = clocks.Clock()
        self.objects = watching.Cluster()
        self.mode = ""
        self.heard = fakes.Heard()
        self.guard = crd_guard.CrdGuard(
            self.definitions,
            self.objects,
            Followed(),
            Modes(self),
            self.heard.append,
            self.clock,
        )

    async def begin(self) -> None:
        self.write("a.yaml", CRD % "a")
        await self.due()
        await self.definitions.ensure(self.module)
        self.objects.put(NAME, resource=CRDS)
        self.objects.sync()

    async def delete(self) -> list[str]:
        self.cluster.asked.clear()
        self.cluster.there.pop(NAME, None)
        self.objects.remove(NAME, resource=CRDS)
        await self.guard.look()
        return self.cluster.asked


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


def test_without_definitions_nothing_is_followed(bench: Bench) -> None:
    assert bench.objects.subscriptions == []


async def test_a_deleted_definition_comes_back_at_once(bench: Bench) -> None:
    await bench.begin()
    assert await bench.delete() == [NAME]
    bench.objects.remove("other.example.com", resource=CRDS)
    bench.cluster.asked.clear()
    await bench.guard.look()
    assert bench.cluster.asked == []


async def test_one_that_went_before_it_was_followed_comes_back(bench: Bench) -> None:
    bench.write("a.yaml", CRD % "a")
    await bench.due()
    await bench.definitions.ensure(bench.module)
    bench.cluster.asked.clear()
    bench.cluster.there.clear()
    bench.objects.sync()
    await bench.guard.look()
    assert bench.cluster.asked == [NAME]


async def test_one_that_is_deleted_again_and_again_meets_a_pause(bench: Bench) -> None:
    await bench.begin()
    for _ in range(drift_backoff.FREE):
        assert await bench.delete() == [NAME]
    assert await bench.delete() == []
    bench.clock.now += drift_backoff.FIRST_PAUSE
    await bench.guard.look()
    assert bench.cluster.asked == [NAME]


async def test_one_that_cannot_be_applied_is_tried_again(bench: Bench) -> None:
    await bench.begin()
    bench.cluster.refuses = NAME
    assert await bench.delete() == [NAME]
    assert "no right; it is tried again" in bench.heard.warnings[0]
    bench.cluster.refuses = ""
    bench.cluster.asked.clear()
    bench.clock.now += crd_guard.RETRY
    await bench.guard.look()
    assert bench.cluster.asked == [NAME]


async def test_in_maintenance_it_comes_back_with_the_run_that_ends_it(bench: Bench) -> None:
    await bench.begin()
    bench.mode = "NoResourceReconciliation"
    assert await bench.delete() == []
    assert await bench.due()
    await bench.definitions.ensure(bench.module)
    assert bench.cluster.asked == [NAME]


async def test_a_missing_watch_is_reported(bench: Bench) -> None:
    await bench.begin()
    bench.guard.trouble("no right")
    bench.guard.trouble(None)
    assert len(bench.heard.warnings) == 1


async def test_a_defect_is_told_and_the_definition_comes_back_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.begin()
    original = bench.definitions.restore

    async def restore(_: model.Module) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(bench.definitions, "restore", restore)
    assert await bench.delete() == []
    assert [(each.part, str(each.error)) for each in bench.heard.of(events.PartFailed)] == [
        ("definitions", "a bug")
    ]
    monkeypatch.setattr(bench.definitions, "restore", original)
    bench.clock.now += crd_guard.RETRY
    await bench.guard.look()
    assert bench.cluster.asked == [NAME]
