"""What people are shown of modules and queues."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator

import pytest

from addon_operator.engine import introspection, module_states, state, tasks
from addon_operator.engine.bindings import hook_bindings
from addon_operator.engine.queues import queue_set
from addon_operator.kernel import errors, names
from addon_operator.modules import findings, model
from addon_operator.modules.health import module_health, resource_health
from tests.support import clocks
from tests.unit.engine import bound_fakes, fakes

WEB = names.ModuleName("web")
DNS = names.ModuleName("dns")


def states() -> module_states.ModuleStates:
    modules = [model.Module(WEB, 20, pathlib.Path("web")), model.Module(DNS, 10, pathlib.Path("dns"))]
    return module_states.ModuleStates(modules, fakes.ignore)


def waits_for(row: introspection.ModuleRow) -> object:
    return dict(row)["waitsFor"]


class Bench:
    def __init__(self) -> None:
        self.clock = clocks.Clock()
        self.states = states()
        self.queues = queue_set.QueueSet(fakes.ignore, clock=self.clock)
        self.main = self.queues.main
        self.others = [self.queues[name] for name in ("fast", "slow")]
        self.gate = asyncio.Event()
        self.views = introspection.Introspection(
            self.states, self.queues, bound_fakes.WaitingBindings(), (), self.clock
        )

    def task(self, *, fails: bool = False, **more: object) -> tasks.Task:
        async def run(_: tasks.Task) -> None:
            if fails:
                raise errors.AddonOperatorError("the chart is broken")
            await self.gate.wait()

        return fakes.CallTask(tasks.TaskKind.MODULE_RUN, run, **more)  # type: ignore[arg-type] # names are those of a task

    async def rows(self) -> list[introspection.TaskRow]:
        return (await self.views.main_queue())["tasks"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    worker = asyncio.create_task(made.main.work())
    yield made
    worker.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await worker


async def test_a_module_that_has_not_run_says_for_whom_it_waits(bench: Bench) -> None:
    bench.states.enabled = (DNS, WEB)
    bench.states.mark(WEB, state.ModuleStatus.PENDING, "")
    bench.states.mark(DNS, state.ModuleStatus.FAILED, "helm failed")
    assert [waits_for(row) for row in await bench.views.modules()] == [[], ["dns (Failed)"]]
    assert waits_for(bench.views.module(WEB)) == ["dns (Failed)"]
    bench.states.mark(DNS, state.ModuleStatus.READY, "")
    assert waits_for(bench.views.module(WEB)) == []
    bench.states.mark(DNS, state.ModuleStatus.RUNNING, "")
    bench.states.enabled = (DNS,)
    assert waits_for(bench.views.module(WEB)) == [], "it is not enabled"


async def test_for_whom_a_module_waits_is_noted_when_it_is_so_for_some_looks(bench: Bench) -> None:
    bench.states.enabled = (DNS, WEB)
    bench.states.mark(WEB, state.ModuleStatus.PENDING, "")
    noted: list[tuple[str, ...]] = []
    steps = (state.ModuleStatus.RUNNING, state.ModuleStatus.FAILED, *[state.ModuleStatus.RUNNING] * 3)
    for status in (*steps, state.ModuleStatus.FAILED, state.ModuleStatus.READY):
        bench.states.mark(DNS, status, "")
        await bench.views.looks.note()
        noted.append(bench.states[WEB].texts(findings.WAITS))
    assert noted == [(), (), (), (), ("dns (Running)",), ("dns (Running)",), ()]


async def test_a_module_that_is_ready_says_for_whom_a_further_run_waits(bench: Bench) -> None:
    bench.states.enabled = (DNS, WEB)
    bench.states.mark(DNS, state.ModuleStatus.FAILED, "helm failed")
    bench.states.mark(WEB, state.ModuleStatus.READY, "")
    required, run = bench.task(fails=True, owner=DNS), bench.task(owner=WEB)
    run.after = frozenset({DNS, names.ModuleName("gone")})
    bench.main.add(required)
    assert waits_for(bench.views.module(WEB)) == []
    bench.main.add(run)
    assert [waits_for(row) for row in await bench.views.modules()] == [[], ["dns (Failed)"]]
    assert waits_for(bench.views.module(WEB)) == ["dns (Failed)"]


async def test_modules_stand_in_run_order_with_what_is_known_of_them(bench: Bench) -> None:
    bench.states.enabled = (WEB,)
    found = bench.states[WEB]
    found.reason, found.hooks, found.last_run = "the ConfigMap says so", (), 0.0
    found.health = module_health.ModuleHealth(
        resource_health.HealthState.PROGRESSING, "1 of 3 pods updated: Deployment web"
    )
    bench.states.mark(WEB, state.ModuleStatus.FAILED, "helm failed")
    dns, web = await bench.views.modules()
    assert web == {
        "name": "web",
        "description": "",
        "release": "web",
        "order": 20,
        "enabled": True,
        "state": "Failed",
        "health": "Progressing",
        "healthMessage": "1 of 3 pods updated: Deployment web",
        "findings": [{"type": "Progressing", "message": "1 of 3 pods updated: Deployment web", "since": ""}],
        "drift": "",
        "reason": "the ConfigMap says so",
        "suspended": "",
        "requires": [],
        "hooks": 0,
        "lastRun": "1970-01-01T00:00:00Z",
        "wrongValues": "",
        "waitsFor": [],
        "lastError": "helm failed",
        "tries": 0,
        "nextTry": None,
        "cure": [],
        "maintenance": "",
        "unmet": "",
        "foreignRecord": "",
        "editWaits": "",
        "runningHooks": [],
        "warnings": [],
        "atHook": "",
        "chartLost": "",
        "hooksFail": [],
        "hooksLeftOut": [],
        "notRegistered": "",
        "definitionsLeftOut": "",
        "bindingsWait": [],
        "waitingBindings": [],
        "answering": [],
        "heldBack": None,
    }
    assert (dns["name"], dns["enabled"], dns["hooks"], dns["lastRun"]) == ("dns", False, None, None)


async def test_a_module_without_a_release_is_as_healthy_as_its_object_says(bench: Bench) -> None:
    assert bench.views.module(WEB)["health"] == "", "it has not run"
    bench.states.mark(WEB, state.ModuleStatus.READY, "")
    assert bench.views.module(WEB)["health"] == "Healthy"
    bench.states[WEB].maintenance = "NoResourceReconciliation"
    assert bench.views.module(WEB)["health"] == "", "its object says Unknown"


async def test_bindings_that_wait_stand_with_their_module() -> None:
    waiting: dict[str, list[hook_bindings.WaitingBinding]] = {
        "web": [{"hook": "a.sh", "binding": "pods", "kind": "Pod", "reason": "it may not"}],
        "": [{"hook": "all.sh", "binding": "shops", "kind": "Shop", "reason": "no such kind"}],
    }
    clock = clocks.Clock()
    queues = queue_set.QueueSet(fakes.ignore, clock=clock)
    views = introspection.Introspection(states(), queues, bound_fakes.WaitingBindings(waiting), (), clock)
    assert [row["waitingBindings"] for row in await views.modules()] == [[], waiting["web"]]
    assert views.waiting_global_bindings == waiting[""]


async def test_a_running_task_is_the_head_and_the_others_wait_behind_it(bench: Bench) -> None:
    bench.main.add(bench.task(owner="web", activation="OperatorStartup"))
    bench.main.add(bench.task(owner="web", hook="a.sh"))
    await clocks.settle()
    bench.clock.now += 2.5
    head, behind = await bench.rows()
    assert (head["index"], head["module"], head["state"], head["age"]) == (1, "web", "running", 2.5)
    assert head["description"] == "ModuleRun:main:web:OperatorStartup"
    assert (behind["index"], behind["hook"], behind["state"]) == (2, "a.sh", "waiting")


async def test_a_failed_task_shows_its_tries_its_error_and_when_it_is_tried_again(bench: Bench) -> None:
    bench.main.add(bench.task(fails=True, owner="web", fixed_delay=5.0))
    await clocks.settle()
    bench.clock.now += 1.0
    (head,) = await bench.rows()
    assert (head["state"], head["tries"], head["nextTryIn"]) == ("backoff", 1, 4.0)
    assert head["lastError"] == "the chart is broken"
    assert head["description"].endswith(":failures 1")


async def test_a_queue_shows_age_and_tries_of_its_head(bench: Bench) -> None:
    bench.main.add(bench.task(fails=True, owner="web", fixed_delay=5.0))
    await clocks.settle()
    bench.clock.now += 3.0
    row = await bench.views.main_queue()
    assert (row["headAge"], row["headTries"], row["status"], row["tasksCount"]) == (3.0, 1, "backoff", 1)


async def test_all_queues_are_listed_main_first_and_counted(bench: Bench) -> None:
    for queue in (bench.main, *bench.others):
        queue.add(bench.task(owner="web"))
    bench.queues["idle"]
    found = await bench.views.queues()
    assert [row["name"] for row in found["active"]] == ["main", "fast", "slow"]
    assert [row["name"] for row in found["empty"]] == ["idle"]
    assert found["summary"] == {
        "mainQueueTasks": 1,
        "otherQueues": {"active": 2, "empty": 1, "tasks": 2},
        "totalTasks": 3,
    }


async def test_an_empty_queue_has_no_head(bench: Bench) -> None:
    assert await bench.views.main_queue() == {
        "name": "main", "tasksCount": 0, "status": "", "headAge": 0.0, "headTries": 0, "tasks": [],
    }  # fmt: skip


async def test_the_hooks_of_a_module_are_those_that_printed_their_configuration(bench: Bench) -> None:
    assert bench.views.hooks_of(WEB) is None


async def test_a_task_that_waits_in_its_try_says_for_what(bench: Bench) -> None:
    async def run(task: tasks.Task) -> None:
        with task.waiting("ConfigMap a/b to be gone"):
            await bench.gate.wait()

    bench.main.add(fakes.CallTask(tasks.TaskKind.MODULE_HOOK_RUN, run, owner=WEB))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (row,) = await bench.rows()
    assert row["state"] == "waits for ConfigMap a/b to be gone"
