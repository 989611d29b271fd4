"""Programs that are asked if their module is ready: which, when, how often, and what their answers mean."""

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest
from typing_extensions import override

from addon_operator.engine import events, module_states, state
from addon_operator.engine.drift import module_healths
from addon_operator.engine.hooks import hook_exchange, hook_processes
from addon_operator.engine.modules import readiness_checks
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model
from addon_operator.modules.health import resource_health
from addon_operator.process.children import children
from addon_operator.values import store
from tests.support import clocks
from tests.unit.engine import fakes

WEB, SHOP, BLOG = ModuleName("web"), ModuleName("shop"), ModuleName("blog")


def ended(exit_code: int = 0, *, timed_out: bool = False) -> children.ChildResult:
    return children.ChildResult(exit_code, 0, 0, 0, 0, timed_out, None, False, "the password is x")


class Programs(hook_processes.HookProcesses):
    """Answers what the test says; with ``gate`` as soon as it says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.values: list[JsonObject] = []
        self.timeouts: set[float | None] = set()
        self.answer: Callable[[], None] = lambda: None
        self.written = ""
        self.gate = asyncio.Event()
        self.gate.set()

    @override
    async def run(
        self,
        hook: state.Hook,
        given: hook_exchange.Given,
        log_fields: Mapping[str, str],
    ) -> hook_processes.HookRunResult:
        self.asked.append(hook.name)
        self.values.append(json.loads(given.values()[hook_exchange.VALUES]))
        self.timeouts.add(hook.config.settings.execution_timeout)
        await self.gate.wait()
        self.answer()
        return hook_processes.HookRunResult(ended(), {hook_exchange.KUBERNETES_PATCH: self.written})


class Healths(module_healths.ModuleHealths):
    """Remembers what was said of modules."""

    def __init__(self) -> None:
        self.programs: dict[ModuleName, str | None] = {}
        self.noted: list[tuple[ModuleName, str, str]] = []
        self.is_known = True

    @override
    def ask_readiness(self, module: ModuleName, name: str | None) -> None:
        self.programs[module] = name

    @override
    def note_readiness(
        self, module: ModuleName, health: resource_health.ResourceHealth, asked: float
    ) -> None:
        self.noted.append((module, health.state.value, health.message))

    @override
    def knows_readiness(self, module: ModuleName) -> bool:
        return self.is_known


class Bench:
    """Three modules that have started, each with a program."""

    def __init__(self) -> None:
        self.clock, self.programs, self.healths = clocks.Clock(), Programs(), Healths()
        self.heard = fakes.Heard()
        modules = [model.Module(name, 1, fakes.NOWHERE) for name in (WEB, SHOP, BLOG)]
        self.states = module_states.ModuleStates(modules, fakes.ignore)
        self.states.enabled = (WEB, SHOP, BLOG)
        values = store.ValuesStore([store.ModuleValues(name) for name in (WEB, SHOP, BLOG)])
        self.checks = readiness_checks.ReadinessChecks(
            self.states, self.healths, self.programs, values, self.heard.append, self.clock
        )

    def start(self, *names: ModuleName) -> None:
        for name in names:
            hook = state.Hook(f"{name}:readiness", fakes.NOWHERE, hook_config.HookConfig(), name)
            self.states[name].readiness = hook
            self.states[name].started = True
            self.states[name].status = state.ModuleStatus.READY
            self.checks.loaded(name, hook)

    async def look(self, after: float = 0.0) -> list[str]:
        """Let time pass and look; which programs were asked then."""
        self.programs.asked.clear()
        await self.clock.advance(after)
        self.checks.look()
        await clocks.settle()
        return list(self.programs.asked)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_a_program_is_asked_at_once_and_in_turns_as_long_as_it_says_yes(bench: Bench) -> None:
    bench.start(WEB)
    assert bench.healths.programs == {WEB: "web:readiness"}
    assert await bench.look() == ["web:readiness"]
    assert bench.healths.noted == [(WEB, "Healthy", "")]
    assert await bench.look(readiness_checks.EVERY - 1) == []
    assert await bench.look(1) == ["web:readiness"]
    assert bench.programs.timeouts == {readiness_checks.SECONDS}
    assert all("web" in values and "global" in values for values in bench.programs.values)


def failed(result: children.ChildResult) -> Callable[[], None]:
    def answer() -> None:
        raise hook_processes.HookRunError("web:readiness", result, "failed: the password is x", module=WEB)

    return answer


LOG = "; the operator's log shows what it wrote"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ended(3), f"failed with exit code 3{LOG}"),
        (ended(-9), f"was killed by SIGKILL; did it run out of memory?{LOG}"),
        (ended(0, timed_out=True), f"was stopped because it ran longer than its timeout of 30s{LOG}"),
        (ended(0), f"returned invalid output{LOG}"),
    ],
    ids=["exit code", "killed", "timeout", "output"],
)
async def test_a_program_that_fails_keeps_its_module_from_being_ready_and_is_asked_sooner(
    bench: Bench, result: children.ChildResult, said: str
) -> None:
    bench.programs.answer = failed(result)
    bench.start(WEB)
    await bench.look()
    assert bench.healths.noted == [(WEB, "Progressing", said)]
    assert "password" not in said
    assert await bench.look(readiness_checks.SOONER) == ["web:readiness"]


def patch(status: str, **condition: str) -> str:
    """What a program of the SDK writes after its probe."""
    conditions = [{"type": "EnabledByModuleManager", "status": "True"}, {"type": "IsReady", "status": status}]
    conditions[1] |= condition
    operation = {
        "operation": "MergePatch",
        "apiVersion": "deckhouse.io/v1alpha1",
        "kind": "Module",
        "name": "web",
        "mergePatch": {"status": {"conditions": conditions, "phase": "Reconciling"}},
    }
    return json.dumps(operation) + "\n"


async def test_a_program_of_the_sdk_that_says_its_probe_failed_is_not_ready(bench: Bench) -> None:
    bench.programs.written = patch("False", message="no\nleader")
    bench.start(WEB)
    await bench.look()
    said = "its probe failed, as IsReady of its Module of Deckhouse says; the operator's log says more"
    assert bench.healths.noted == [(WEB, "Progressing", said)]
    await bench.look(readiness_checks.SOONER)
    assert [each.text for each in bench.heard.of(events.Noted)] == [
        "web:readiness of module web is not ready: no leader"
    ], "it is told once"
    bench.programs.written = patch("True")
    await bench.look(readiness_checks.SOONER)
    assert bench.healths.noted[-1] == (WEB, "Healthy", "")


@pytest.mark.parametrize(
    "written",
    [
        "IsReady",
        '{"kind": "Module", "mergePatch": "IsReady"}',
        '{"kind": "Module", "mergePatch": {"status": {"conditions": ["IsReady", {"type": "IsReady"}]}}}',
        patch("False").replace('"Module"', '"Pod"'),
        '["IsReady"]',
    ],
)
async def test_whatever_else_a_ready_program_writes_has_no_effect(bench: Bench, written: str) -> None:
    bench.programs.written = written
    bench.start(WEB)
    await bench.look()
    assert bench.healths.noted == [(WEB, "Healthy", "")]


async def test_a_program_that_cannot_be_started_says_so_in_a_line_without_values(bench: Bench) -> None:
    def answer() -> None:
        raise errors.AddonOperatorError("it cannot\nbe   started") from errors.AddonOperatorError("a secret")

    bench.programs.answer = answer
    bench.start(WEB)
    await bench.look()
    assert bench.healths.noted == [(WEB, "Progressing", "it cannot be started")]


async def test_a_defect_at_one_module_ends_nothing(bench: Bench) -> None:
    def answer() -> None:
        raise RuntimeError("a defect")

    bench.programs.answer = answer
    bench.start(WEB)
    await bench.look()
    assert [str(each.error) for each in bench.heard.of(events.PartFailed)] == ["a defect"]
    bench.programs.answer = lambda: None
    assert await bench.look(readiness_checks.SOONER) == ["web:readiness"]
    assert bench.healths.noted == [(WEB, "Healthy", "")]


async def test_an_answer_from_before_the_last_revision_is_asked_for_again_sooner(bench: Bench) -> None:
    bench.healths.is_known = False
    bench.start(WEB)
    await bench.look()
    assert await bench.look(readiness_checks.SOONER) == ["web:readiness"]


async def test_two_programs_run_at_once_and_none_twice(bench: Bench) -> None:
    bench.programs.gate.clear()
    bench.start(WEB, SHOP, BLOG)
    assert await bench.look() == ["web:readiness", "shop:readiness"]
    assert await bench.look(readiness_checks.EVERY) == []
    bench.programs.gate.set()
    assert await bench.look() == ["blog:readiness"]


@pytest.mark.parametrize("status", [state.ModuleStatus.DISABLED, state.ModuleStatus.DELETING])
async def test_nobody_is_asked_of_a_module_that_has_not_started_or_is_going(
    bench: Bench, status: state.ModuleStatus
) -> None:
    bench.start(WEB, SHOP)
    bench.states[WEB].started = False
    bench.states[SHOP].status = status
    assert await bench.look() == []


async def test_what_is_loaded_again_is_asked_anew_and_what_is_the_same_is_not(bench: Bench) -> None:
    bench.start(WEB)
    await bench.look()
    bench.checks.loaded(WEB, bench.states[WEB].readiness)
    assert await bench.look() == []
    other = state.Hook("other:readiness", fakes.NOWHERE, hook_config.HookConfig(), WEB)
    bench.states[WEB].readiness = other
    bench.checks.loaded(WEB, other)
    assert await bench.look() == ["other:readiness"]


async def test_a_program_that_is_gone_does_not_count_any_more(bench: Bench) -> None:
    bench.programs.gate.clear()
    bench.start(WEB)
    await bench.look()
    bench.states[WEB].reset()
    assert await bench.look(readiness_checks.EVERY) == []
    assert bench.healths.programs == {WEB: None}
    bench.programs.gate.set()
    await clocks.settle()
    assert bench.healths.noted == [], "what was being asked is not taken any more"


async def test_questions_end_with_the_operator(bench: Bench) -> None:
    bench.programs.gate.clear()
    bench.start(WEB)
    work = asyncio.create_task(bench.checks.work())
    await clocks.settle()
    assert bench.programs.asked == ["web:readiness"]
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    bench.programs.gate.set()
    await clocks.settle()
    assert bench.healths.noted == []
