"""When failed runs are woken: by what refused them, and by nothing else."""

import json
from typing import Any

import pytest
from typing_extensions import override

from addon_operator.engine import events, intents, tasks
from addon_operator.engine.drift import run_causes
from addon_operator.kernel import errors
from addon_operator.kube.informers import object_changes, projections
from addon_operator.modules.failure_causes import Cause, CauseKind
from tests.support import clocks, rows
from tests.unit.engine import fakes, watching

WEB = watching.WEB
QUOTA = "exceeded quota: few, requested: pods=1"
ENDPOINTS = (
    'failed calling webhook "x": failed to call webhook: Post "https://guard.far.svc:443/x": no endpoints'
)


class Run(tasks.Task):
    kind = tasks.TaskKind.MODULE_RUN

    @override
    async def run(self) -> None:
        """It is never run."""


class Bench:
    def __init__(self) -> None:
        self.cluster, self.clock = watching.Cluster(), clocks.Clock()
        self.inbox = fakes.Inbox()
        self.told: list[events.Event] = []
        self.causes = run_causes.RunCauses(
            self.cluster, lambda _: "addons", self.inbox, self.told.append, self.clock
        )

    def fail(self, error: str) -> None:
        self.task = Run(owner=WEB)
        self.causes.listen(events.TaskFailed("main", self.task, errors.ModuleError(WEB, error), 5.0))

    def begin(self) -> None:
        self.causes.listen(events.TaskStarted("main", self.task, 0.0))

    async def see(self, kind: object_changes.ChangeType, **found: Any) -> None:  # noqa: ANN401
        """The watch tells of one object."""
        (open_,) = self.cluster.open
        listener = open_.listener
        assert isinstance(listener, run_causes.Awaited)
        (reduced,) = await listener.projection.reduce([json.dumps(found).encode()])
        assert isinstance(reduced, projections.Reduced)
        key = object_changes.ObjectKey("addons", "x")
        if not open_.synced:
            open_.sync()
        listener.changed([object_changes.Change(kind, key, reduced.entry, "1")])

    @property
    def woken(self) -> int:
        return sum(each == intents.RetryWanted(WEB) for each in self.inbox.put_in)


@pytest.fixture
def bench() -> Bench:
    return Bench()


ADDED, MODIFIED = object_changes.ChangeType.ADDED, object_changes.ChangeType.MODIFIED
DELETED = object_changes.ChangeType.DELETED


async def test_a_quota_that_is_raised_wakes_and_one_that_is_only_used_more_does_not(bench: Bench) -> None:
    bench.fail(QUOTA)
    assert bench.told == [events.CureAwaited(WEB, ("room in ResourceQuota addons/few",))]
    await bench.see(ADDED, spec={"hard": {"pods": "3"}}, status={"used": {"pods": "2"}})
    await bench.see(MODIFIED, spec={"hard": {"pods": "3"}}, status={"used": {"pods": "3"}})
    assert bench.woken == 0
    await bench.see(MODIFIED, spec={"hard": {"pods": "3"}}, status={"used": {"pods": "1"}})
    assert bench.woken == 1
    bench.clock.now += run_causes.PAUSES.first
    await bench.see(MODIFIED, spec={"hard": {"pods": "4"}}, status={"used": {"pods": "1"}})
    assert bench.woken == 2


async def test_a_quota_that_is_removed_wakes(bench: Bench) -> None:
    bench.fail(QUOTA)
    await bench.see(DELETED)
    assert bench.woken == 1


LIMITED = f"{QUOTA}, used: pods=3, limited: pods=3"


@pytest.mark.parametrize(("pods", "woken"), [("3", 0), ("4", 1)])
async def test_a_quota_that_was_raised_while_the_run_failed_wakes(
    bench: Bench, pods: str, woken: int
) -> None:
    bench.fail(LIMITED)
    (open_,) = bench.cluster.open
    assert isinstance(open_.listener, run_causes.Awaited)
    found = json.dumps({"spec": {"hard": {"pods": pods}}, "status": {"used": {"pods": "1"}}}).encode()
    (reduced,) = await open_.listener.projection.reduce([found])
    assert isinstance(reduced, projections.Reduced)
    key = object_changes.ObjectKey("addons", "few")
    bench.cluster.objects["ResourceQuota"] = {key}
    bench.cluster.entries[key] = reduced.entry
    open_.sync()
    assert bench.woken == woken


async def test_endpoints_that_are_ready_wake(bench: Bench) -> None:
    bench.fail(ENDPOINTS)
    (selection,) = [each.selection for each in bench.cluster.open]
    assert (selection.label_selector, selection.namespaces) == ("kubernetes.io/service-name=guard", ("far",))
    await bench.see(ADDED, endpoints=[{"conditions": {"ready": False}}])
    assert bench.woken == 0
    await bench.see(MODIFIED, endpoints=[{"conditions": {"ready": True}}])
    assert bench.woken == 1


async def test_what_seems_gone_and_is_not_wakes_ever_more_seldom(bench: Bench) -> None:
    times: list[int] = []
    for second in range(0, 1000, 10):
        bench.fail(ENDPOINTS)
        await bench.see(ADDED, endpoints=[{}])
        if bench.woken > len(times):
            times.append(second)
        bench.begin()
        await bench.clock.advance(10.0)
    assert times == [0, 10, 30, 70, 150, 310, 610, 910]


async def test_a_cure_that_comes_too_soon_wakes_later_whatever_tries_there_are_meanwhile(
    bench: Bench,
) -> None:
    bench.fail(QUOTA)
    await bench.see(DELETED)
    bench.begin()
    bench.fail(QUOTA)
    await bench.see(DELETED)
    bench.begin()
    bench.fail("it was taken back")
    assert bench.woken == 1
    await bench.clock.advance(run_causes.PAUSES.first)
    assert bench.woken == 2


async def test_nothing_is_watched_once_the_next_try_begins(bench: Bench) -> None:
    bench.fail(ENDPOINTS)
    bench.begin()
    assert bench.cluster.open == []


async def test_an_error_that_names_nothing_is_waited_for_by_time_alone(bench: Bench) -> None:
    bench.fail("no host")
    assert (bench.cluster.open, bench.told) == ([], [])


@rows.each(
    ("cause", "kind"),
    [
        (Cause(CauseKind.NAMESPACE, "x"), "Namespace"),
        (Cause(CauseKind.OBJECT, "x", "y", "Secret"), "Secret"),
        (Cause(CauseKind.DEFINITION, "X", resource="X", group="x.io"), "CustomResourceDefinition"),
    ],
    ids=str,
)
def test_only_what_is_needed_is_watched(cause: Cause, kind: str) -> None:
    found = run_causes.selection_of(cause)
    assert found.kind == kind
    assert found.metadata_only is (kind != "CustomResourceDefinition")
