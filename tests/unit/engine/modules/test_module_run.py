"""Module runs and deletes, with real hooks and real values; only Helm and the ConfigMap are fakes."""

import asyncio
import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from typing_extensions import override

from addon_operator.engine import events, module_states, state, tasks
from addon_operator.engine.definitions import module_crds
from addon_operator.engine.hooks import hook_lines, hook_outputs, hook_processes, hook_run
from addon_operator.engine.modules import (
    left_watch,
    module_hooks,
    module_releases,
    module_run,
    module_windows,
    readiness_checks,
)
from addon_operator.engine.sources import config_sync
from addon_operator.kernel import clock, errors
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config, windows
from addon_operator.telemetry import hook_metrics, series
from addon_operator.values import store
from addon_operator.values.patches import patches
from tests.support import clocks, programs, timers
from tests.unit.engine import bound_fakes, fakes, watching
from tests.unit.engine.definitions import crd_bench

WEB = ModuleName("web")


class Observer:
    """Takes in everything that runs tell."""

    def __init__(self) -> None:
        self.hooks: list[tuple[str, str, bool]] = []
        self.statuses: list[str] = []
        self.failed: list[str] = []
        self.then: Callable[[], None] = lambda: None

    def tell(self, event: events.Event) -> None:
        match event:
            case events.HookSucceeded():
                self.hooks.append((event.labels.hook, event.labels.binding, True))
                self.then()
            case events.HookFailed():
                self.hooks.append((event.labels.hook, event.labels.binding, False))
            case state.ModuleChanged():
                self.statuses.append(event.state.status)
            case events.ModuleRan():
                assert event.seconds >= 0
            case events.ModuleFailed():
                self.failed.append(f"{'delete' if event.deleting else 'run'} {event.module}")
            case events.DiscoveryFailed():
                self.failed.append("discovery")


class Releases(module_releases.ModuleReleases):
    """Releases in memory; the discovery, which no run asks, is not there."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.unconfirmed: set[str] = set()
        self.windows = fakes.always_open()
        self.there: set[str] = set()
        self.half_removed: set[str] = set()
        self.noted: list[str] = []
        self._known = {}
        self.error: errors.AddonOperatorError | None = None
        self.fresh: list[bool] = []

    @override
    async def let_go(self, done: ModuleName | None = None) -> None:
        pass

    @override
    def _unconfirmed(self, release: str) -> bool:
        return release in self.unconfirmed

    @override
    async def ensure(
        self, module: model.Module, activation: str, *, fresh: bool, insists: bool = False
    ) -> None:
        self.log.append("helm")
        self.fresh.append(fresh)
        if self.error is not None:
            raise self.error
        self.there.add(module.name)

    @override
    async def remove(
        self, release: str, *, keep_record: bool = False, directory: pathlib.Path | None = None
    ) -> None:
        self.log.append("uninstall")
        if self.error is not None:
            raise self.error
        self.there.discard(release)
        if keep_record:
            self.half_removed.add(release)
            self.noted.append(release)

    @override
    async def forget(self, release: str) -> None:
        self.half_removed.discard(release)

    @override
    def exists(self, release: str) -> bool:
        return release in self.there


class Definitions(module_crds.ModuleCrds):
    """A module without definitions."""

    def __init__(self) -> None:
        self.charts = crd_bench.Charts()

    @override
    async def ensure(self, module: model.Module) -> None:
        """There is nothing to do."""


class ConfigMap(config_sync.ConfigSync):
    """Takes in what hooks write."""

    def __init__(self) -> None:
        """There is no cluster."""

    @override
    def check_writable(self) -> None:
        pass

    @override
    async def write(self, owner: ModuleName | None, patch: patches.ValuesPatch) -> bool:
        return True


class Bench:
    """One module on disk and everything that runs it; hooks write a line to ``log`` when they run."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        (root / "web" / "hooks").mkdir(parents=True)
        (root / "log").touch()
        self.module = model.Module(WEB, 1, root / "web", has_chart=True)
        self.values = store.ValuesStore([store.ModuleValues(WEB)])
        self.observer = Observer()
        self.states = module_states.ModuleStates([self.module], self.observer.tell)
        runner = hook_processes.HookProcesses(
            tmp_dir=root / "tmp",
            environment={"PATH": "/usr/bin:/bin", "LOG": str(root / "log")},
            default_timeout=60,
            log=hook_lines.HookLog(structlog.get_logger()),
            programs=programs.programs(),
        )
        (root / "tmp").mkdir()
        outputs = hook_outputs.HookOutputs(
            fakes.Objects(),
            ConfigMap(),
            self.values,
            hook_metrics.HookMetrics(series.Registry()),
        )
        self.states.enabled = (WEB,)
        executor = hook_run.HookExecutor(runner, self.values, outputs, self.states, self.observer.tell)
        self.helm: list[str] = []
        self.no_verdict: errors.AddonOperatorError | None = None
        self.releases = Releases(self.helm)
        self.left = fakes.Left()
        self.cluster = bound_fakes.Cluster()
        self.queues, self.bindings, self.ticks = bound_fakes.bound(
            executor, self.cluster, clock.SystemClock(), self.observer.tell
        )
        self.releases.healths = watching.healths_of(watching.resources_of(watching.Cluster()))
        readiness = readiness_checks.ReadinessChecks(
            self.states, self.releases.healths, runner, self.values, self.observer.tell, clock.SystemClock()
        )
        self.hooks = module_hooks.ModuleHooks(
            self.states, self.values, executor, self.bindings, self.observer.tell, readiness
        )
        self.runner = module_run.ModuleRunner(
            self.states,
            self.hooks,
            self.bindings,
            self.releases,
            Definitions(),
            left_watch.LeftWatch(self.left, self.states),
            self.observer.tell,
            self.ask_again,
        )

    async def ask_again(self, name: ModuleName) -> None:
        self.write(f"ask {name}")
        if self.no_verdict is not None:
            raise self.no_verdict

    def write(self, text: str) -> None:
        with (self.root / "log").open("a") as log:
            log.write(text + "\n")

    def hook(self, name: str, config: str, body: str = "") -> None:
        path = self.root / "web" / "hooks" / name
        path.write_text(
            "#!/bin/sh\n"
            f"if [ \"$1\" = --config ]; then echo '{config}'; exit; fi\n"
            f"read -r contexts < $BINDING_CONTEXT_PATH; printf '{name} %s\\n' \"$contexts\" >> $LOG\n{body}\n"
        )
        path.chmod(0o755)

    @property
    def log(self) -> list[str]:
        return [line for line in (self.root / "log").read_text().splitlines() if line]

    def runs(self, binding: str) -> list[str]:
        """The hooks that ran with that binding, in their order."""
        return [line.split(" ", 1)[0] for line in self.log if f'"{binding}"' in line]

    def run_task(self) -> tasks.Task:
        return module_run.ModuleRunTask(self.runner, WEB, "test")

    def delete_task(self) -> tasks.Task:
        return module_run.ModuleDeleteTask(self.runner, WEB, "test")

    async def run(self, *, converge: int | None = None, attempts: int = 0) -> None:
        task = self.run_task()
        task.converge, task.attempts = converge, attempts
        await task.run()

    async def delete(self) -> None:
        await self.delete_task().run()


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


def config(**orders: int) -> str:
    return "configVersion: v1\n" + "\n".join(f"{binding}: {order}" for binding, order in orders.items())


PATCH = """echo '[{"op":"add","path":"/web/%s","value":%s}]' > $VALUES_JSON_PATCH_PATH"""


async def test_a_first_run_goes_through_start_up_hooks_helm_and_hooks_again(bench: Bench) -> None:
    bench.hook("b", config(onStartup=1, beforeHelm=20))
    bench.hook("a", config(beforeHelm=20, afterHelm=1))
    bench.hook("c", config(beforeHelm=10))
    await bench.run()
    assert bench.log == [
        'b [{"binding":"onStartup"}]',
        'c [{"binding":"beforeHelm","snapshots":{}}]',
        'a [{"binding":"beforeHelm","snapshots":{}}]',
        'b [{"binding":"beforeHelm","snapshots":{}}]',
        'a [{"binding":"afterHelm","snapshots":{}}]',
    ]
    assert bench.helm == ["helm"]
    assert bench.observer.statuses == ["Running", "Ready"]


async def test_a_later_run_does_not_start_up_again(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1, beforeHelm=1))
    await bench.run()
    await bench.run()
    assert [line for line in bench.log if "onStartup" in line] == ['a [{"binding":"onStartup"}]']
    assert bench.helm == ["helm", "helm"]


async def test_values_that_a_hook_sets_are_seen_by_the_next_hook(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1), PATCH % ("x", "5"))
    bench.hook("b", config(beforeHelm=1), "cat $VALUES_PATH >> $LOG")
    await bench.run()
    assert bench.log[-1] == '{"global":{"enabledModules":["web"]},"web":{"x":5}}'


async def test_values_changed_by_after_helm_run_the_module_again_without_start_up(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1))
    bench.hook("b", config(afterHelm=1), PATCH % ("x", "5"))
    await bench.run()
    assert bench.helm == ["helm", "helm"]
    assert sum("onStartup" in line for line in bench.log) == 1
    assert sum("afterHelm" in line for line in bench.log) == 2


async def test_after_helm_hooks_that_never_come_to_rest_are_a_failure(bench: Bench) -> None:
    bench.hook("a", config(afterHelm=1), PATCH % ("x", "'1$$'"))
    with pytest.raises(errors.ModuleError, match="afterHelm hooks changed the values in 10 runs in a row"):
        await bench.run()


async def test_a_retry_after_a_failed_helm_call_does_not_repeat_start_up(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1, beforeHelm=1))
    bench.releases.error = errors.ModuleError("web", "helm says no")
    with pytest.raises(errors.ModuleError, match="helm says no"):
        await bench.run()
    bench.releases.error = None
    await bench.run()
    assert sum("onStartup" in line for line in bench.log) == 1
    assert bench.observer.failed == ["run web"]
    assert bench.observer.statuses == ["Running", "Failed", "Running", "Ready"]


FAILS_ONCE = "[ -e $LOG.once ] || { touch $LOG.once; exit 3; }"
FAILS_ONCE_AFTER = f'grep -q before "$BINDING_CONTEXT_PATH" || {FAILS_ONCE}'


async def test_a_retry_repeats_only_the_hooks_that_had_not_succeeded(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1, beforeHelm=1))
    bench.hook("b", config(onStartup=2, beforeHelm=2), FAILS_ONCE)
    task = bench.run_task()
    with pytest.raises(hook_processes.HookRunError):
        await task.run()
    task.attempts = 1
    await task.run()
    assert bench.runs("onStartup") == ["a", "b", "b"]
    assert bench.runs("beforeHelm") == ["a", "b"]


async def test_a_retry_after_the_release_failed_runs_all_before_helm_hooks_again(bench: Bench) -> None:
    """What the check before Helm misses may come with the second or third run of a hook."""
    bench.hook("a", config(onStartup=1, beforeHelm=1))
    bench.hook("b", config(beforeHelm=2, afterHelm=1), FAILS_ONCE)
    task = bench.run_task()
    bench.releases.error = errors.ModuleError("web", "the values are not ready for Helm")
    for attempt, failure in enumerate([hook_processes.HookRunError, errors.ModuleError, errors.ModuleError]):
        task.attempts = attempt
        with pytest.raises(failure):
            await task.run()
    bench.releases.error, task.attempts = None, 3
    await task.run()
    assert bench.runs("onStartup") == ["a"]
    assert bench.runs("beforeHelm") == ["a", "b", "b", *("a", "b"), *("a", "b")]
    assert bench.runs("afterHelm") == ["b"]


async def test_a_retry_that_was_asked_for_again_meanwhile_repeats_every_hook(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1, beforeHelm=1))
    bench.hook("b", config(beforeHelm=2), FAILS_ONCE)
    task = bench.run_task()
    with pytest.raises(hook_processes.HookRunError):
        await task.run()
    task.attempts, task.wanted_again = 1, True
    await task.run()
    assert bench.runs("onStartup") == ["a"]
    assert bench.runs("beforeHelm") == ["a", "b", "a", "b"], "they have not seen what changed meanwhile"


async def test_values_changed_by_after_helm_before_another_hook_failed_are_not_forgotten(
    bench: Bench,
) -> None:
    bench.hook("a", config(afterHelm=1), PATCH % ("x", "5"))
    await bench.run()
    bench.hook("a", config(afterHelm=1), PATCH % ("x", "6"))
    bench.hook("b", config(afterHelm=2), FAILS_ONCE)
    bench.states[WEB].hooks = None
    task = bench.run_task()
    with pytest.raises(hook_processes.HookRunError):
        await task.run()
    task.attempts = 1
    before = len(bench.helm)
    await task.run()
    assert len(bench.helm) - before == 2, "the release is looked at again, and again with the new values"


async def test_a_retried_delete_repeats_only_what_had_not_succeeded(bench: Bench) -> None:
    bench.hook("a", config(beforeDeleteHelm=1, afterDeleteHelm=1))
    bench.releases.there.add("web")
    bench.releases.error = errors.ModuleError("web", "helm says no")
    task = bench.delete_task()
    with pytest.raises(errors.ModuleError):
        await task.run()
    bench.releases.error, task.attempts = None, 1
    await task.run()
    assert bench.runs("beforeDeleteHelm") == ["a"]
    assert bench.runs("afterDeleteHelm") == ["a"]


async def test_a_delete_that_gives_way_is_not_a_failure_and_the_module_starts_up_again_when_enabled(
    bench: Bench,
) -> None:
    bench.hook("a", config(onStartup=1, beforeDeleteHelm=1, afterDeleteHelm=1))
    await bench.run()
    task = bench.delete_task()
    bench.observer.then = task.supersede
    with pytest.raises(tasks.SupersededError):
        await task.run()
    bench.observer.then = lambda: None
    assert bench.observer.failed == []
    await bench.run()
    assert bench.runs("onStartup") == ["a", "a"]


async def test_a_module_whose_hooks_cannot_be_registered_lets_others_go_before_it(bench: Bench) -> None:
    bench.hook("a", "configVersion: v1\nbeforeHlem: 1")
    task = bench.run_task()
    with pytest.raises(errors.ConfigurationError):
        await task.run()
    assert task.aside.is_set()


async def test_a_module_that_fails_in_a_hook_does_not_let_others_go(bench: Bench) -> None:
    bench.hook("a", config(beforeHelm=1), "exit 1")
    task = bench.run_task()
    with pytest.raises(hook_processes.HookRunError):
        await task.run()
    assert not task.aside.is_set()


async def test_a_first_run_that_fails_in_after_helm_is_repeated_from_start_up(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1))
    bench.hook("b", config(afterHelm=1), "[ -e $LOG.once ] || { touch $LOG.once; exit 3; }")
    with pytest.raises(hook_processes.HookRunError, match="hook b failed with exit code 3"):
        await bench.run()
    await bench.run()
    assert sum("onStartup" in line for line in bench.log) == 2


async def test_a_later_run_that_fails_in_after_helm_is_not_repeated_from_start_up(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1))
    bench.hook("b", config(afterHelm=1), "[ -e $LOG.fail ] && exit 3 || true")
    await bench.run()
    (bench.root / "log.fail").touch()
    with pytest.raises(hook_processes.HookRunError):
        await bench.run()
    (bench.root / "log.fail").unlink()
    await bench.run()
    assert sum("onStartup" in line for line in bench.log) == 1


async def test_a_hook_with_a_bad_configuration_fails_the_run_and_counts_as_a_discovery_error(
    bench: Bench,
) -> None:
    bench.hook("a", "configVersion: v1\nbeforeHlem: 1")
    with pytest.raises(errors.ConfigurationError, match="beforeHelm"):
        await bench.run()
    assert bench.observer.failed == ["discovery", "run web"]
    bench.hook("a", config(beforeHelm=1))
    await bench.run()
    assert bench.helm == ["helm"], "a retry asks the hook again"


async def test_nothing_of_a_hook_is_applied_when_one_of_its_outputs_is_wrong(bench: Bench) -> None:
    body = PATCH % ("x", "5") + '\necho \'[{"op":"add","path":"/db/x"}]\' > $CONFIG_VALUES_JSON_PATCH_PATH'
    bench.hook("a", config(beforeHelm=1), body)
    with pytest.raises(patches.PatchError):
        await bench.run()
    assert bench.values.values(WEB)["web"] == {}
    assert bench.observer.hooks == [("a", "beforeHelm", False)]


async def test_a_run_stops_between_two_steps_when_a_newer_intent_came(bench: Bench) -> None:
    bench.hook("a", config(beforeHelm=1))
    bench.hook("b", config(beforeHelm=2))
    task = bench.run_task()
    bench.observer.then = task.supersede
    with pytest.raises(tasks.SupersededError):
        await task.run()
    assert (len(bench.log), bench.helm) == (1, [])


@pytest.mark.parametrize(
    ("more", "fresh"),
    [({"converge": 1}, False), ({}, True), ({"converge": 1, "attempts": 1}, True)],
    ids=["in a converge", "on its own", "after a failure"],
)
async def test_a_run_trusts_the_list_of_its_own_converge_only(
    bench: Bench, more: dict[str, int], fresh: bool
) -> None:
    await bench.run(**more)
    assert bench.releases.fresh == [fresh]


async def test_a_module_without_a_chart_runs_its_hooks_only(bench: Bench) -> None:
    bench.states[WEB].module = model.Module(WEB, 1, bench.root / "web", has_chart=False)
    bench.hook("a", config(beforeHelm=1, afterHelm=2))
    await bench.run()
    assert len(bench.log) == 2
    assert bench.helm == []


async def test_a_delete_runs_hooks_around_the_uninstall_and_forgets_the_module(bench: Bench) -> None:
    bench.hook("a", config(onStartup=1), PATCH % ("x", "5"))
    bench.hook("b", config(beforeDeleteHelm=1, afterDeleteHelm=1))
    await bench.run()
    await bench.delete()
    assert bench.helm == ["helm", "uninstall"]
    assert [line.split(" ", 1)[1] for line in bench.log[1:]] == [
        '[{"binding":"beforeDeleteHelm","snapshots":{}}]',
        '[{"binding":"afterDeleteHelm","snapshots":{}}]',
    ]
    assert bench.values.values(WEB)["web"] == {}, "its patches are dropped"
    assert bench.states[WEB].status is state.ModuleStatus.DISABLED
    await bench.run()
    assert sum("onStartup" in line for line in bench.log) == 2, "enabled again, it starts up again"


async def test_a_removal_is_noted_as_unfinished_until_the_hooks_after_it_succeeded(bench: Bench) -> None:
    bench.hook("a", config(beforeDeleteHelm=1, afterDeleteHelm=1), FAILS_ONCE_AFTER)
    bench.releases.there.add("web")
    with pytest.raises(hook_processes.HookRunError):
        await bench.delete()
    assert (bench.releases.there, bench.releases.half_removed) == (set(), {"web"})
    bench.states[WEB].reset()
    await bench.delete()
    assert bench.releases.half_removed == set()
    assert bench.runs("beforeDeleteHelm") == ["a"], "what comes before the removal is over"
    assert bench.helm == ["uninstall"]


async def test_a_removal_that_no_hooks_follow_is_not_noted(bench: Bench) -> None:
    bench.releases.there.add("web")
    await bench.delete()
    assert bench.releases.noted == []


async def test_a_failing_before_delete_hook_keeps_the_release(bench: Bench) -> None:
    bench.hook("b", config(beforeDeleteHelm=1), "exit 1")
    bench.releases.there.add("web")
    with pytest.raises(hook_processes.HookRunError):
        await bench.delete()
    assert bench.helm == []
    assert bench.observer.failed == ["delete web"]


async def test_a_module_without_a_release_is_deleted_without_helm(bench: Bench) -> None:
    bench.hook("b", config(beforeDeleteHelm=1, afterDeleteHelm=1))
    await bench.delete()
    assert bench.helm == []
    assert bench.log == ['b [{"binding":"afterDeleteHelm","snapshots":{}}]']


async def test_hooks_that_are_bound_alike_run_by_order_and_then_by_name(bench: Bench) -> None:
    for name, order in (("c", -5), ("a", 10), ("b", 10)):
        bench.hook(name, config(beforeHelm=order))
    await bench.run()
    assert [hook for hook, _, _ in bench.observer.hooks] == ["c", "a", "b"]


def bound(*names: str, **more: object) -> str:
    """The configuration of a hook that is bound to Pods under these names."""
    kubernetes = [{"name": name, "kind": "Pod", **more} for name in names]
    return json.dumps({"configVersion": "v1", "onStartup": 1, "beforeHelm": 1, "kubernetes": kubernetes})


def brief(bench: Bench) -> list[str]:
    """The bindings and types that hooks were told, in their order."""
    told = [json.loads(line.split(" ", 1)[1]) for line in bench.log if "[{" in line]
    return [" ".join(filter(None, (item["binding"], item.get("type")))) for run in told for item in run]


async def test_a_first_run_synchronizes_between_start_up_and_helm(bench: Bench) -> None:
    bench.hook("a", bound("pods"))
    bench.cluster.put("Pod", "x")
    await bench.run()
    await bench.run()
    assert brief(bench) == ["onStartup", "pods Synchronization", "beforeHelm", "beforeHelm"]
    assert '"snapshots":{"pods":[{"object":' in bench.log[-1]
    assert bench.helm == ["helm", "helm"]


async def test_a_retry_does_not_repeat_synchronizations_that_succeeded(bench: Bench) -> None:
    bench.hook("a", bound("pods"))
    bench.hook(
        "b",
        bound("pods"),
        'if grep -q Synchronization "$BINDING_CONTEXT_PATH" && mkdir $LOG.once; then exit 1; fi',
    )
    with pytest.raises(hook_processes.HookRunError):
        await bench.run()
    await bench.run(attempts=1)
    assert bench.runs("pods") == ["a", "b", "b", "a", "b"], "the last two are the snapshots of beforeHelm"
    assert bench.runs("onStartup") == ["a", "b"]


async def test_a_first_run_that_fails_in_after_helm_repeats_synchronizations(bench: Bench) -> None:
    bench.hook("a", bound("pods"))
    bench.hook("b", config(afterHelm=1), "mkdir $LOG.once && exit 3 || true")
    with pytest.raises(hook_processes.HookRunError):
        await bench.run()
    await bench.run()
    once = ["onStartup", "pods Synchronization", "beforeHelm", "afterHelm"]
    assert brief(bench) == [*once, *once]


async def test_a_run_that_is_stopped_while_objects_are_listed_ends(bench: Bench) -> None:
    bench.hook("a", bound("pods"))
    bench.cluster.slow.add("Pod")
    task = bench.run_task()
    running = asyncio.create_task(task.run())
    await asyncio.wait_for(bench.cluster.followed.wait(), 60)
    task.supersede()
    with pytest.raises(tasks.SupersededError):
        await asyncio.wait_for(running, 60)
    assert bench.helm == []


async def test_snapshots_are_there_for_the_hooks_of_a_delete_and_end_with_it(bench: Bench) -> None:
    kubernetes = [{"name": "pods", "kind": "Pod"}]
    bench.hook("a", json.dumps({"configVersion": "v1", "beforeDeleteHelm": 1, "kubernetes": kubernetes}))
    await bench.run()
    bench.bindings.mute(WEB)
    bench.cluster.put("Pod", "x")
    await bench.delete()
    assert '"binding":"beforeDeleteHelm","snapshots":{"pods":[{"object":' in bench.log[-1]
    assert bench.cluster.subscriptions == []


async def test_hooks_whose_configuration_changed_start_the_module_up_again(bench: Bench) -> None:
    bench.hook("a", config(beforeHelm=1))
    await bench.run()
    bench.hook("a", config(beforeHelm=1, onStartup=1))
    await bench.hooks.renew(WEB)
    await bench.run()
    assert bench.runs("onStartup") == ["a"]


async def test_hooks_of_which_only_the_text_changed_start_nothing_up(bench: Bench) -> None:
    bench.hook("a", config(beforeHelm=1, onStartup=1))
    await bench.run()
    bench.hook("a", config(beforeHelm=1, onStartup=1), "true")
    await bench.hooks.renew(WEB)
    await bench.run()
    assert bench.runs("onStartup") == ["a"]


async def test_hooks_that_tell_no_configuration_any_more_stay_as_they_were(bench: Bench) -> None:
    bench.hook("a", config(beforeHelm=1))
    await bench.run()
    bench.hook("a", "nonsense: true")
    with pytest.raises(errors.AddonOperatorError, match="nonsense"):
        await bench.hooks.renew(WEB)
    await bench.run()
    assert len(bench.runs("beforeHelm")) == 2


async def test_hooks_that_were_never_asked_are_left_to_the_first_run(bench: Bench) -> None:
    bench.hook("a", "nonsense: true")
    await bench.hooks.renew(WEB)
    assert bench.states[WEB].hooks is None


@pytest.mark.parametrize("field", ["problem", "hooks_problem"])
async def test_a_module_whose_files_are_wrong_fails_before_anything_of_it_runs(
    bench: Bench, field: str
) -> None:
    bench.hook("a", config(beforeHelm=1))
    problem = "web/module.yaml, line 1, column 1, namspace: the key is not known here"
    found: dict[str, Any] = {field: problem}
    bench.states[WEB].module = dataclasses.replace(bench.module, **found)
    for step in (bench.run, bench.delete):
        with pytest.raises(errors.ModuleError, match="namspace"):
            await step()
    assert (bench.log, bench.helm) == ([], [])
    assert bench.states[WEB].last_error == problem


TOP = ModuleName("top")
NIGHTS = windows.parse([{"schedule": "0 22 * * *", "duration": "4h"}])
HELD = windows.HeldBack("upgrade to revision 2", 1000.0)


class KeptReleases(Releases):
    """Writes down which releases nobody looks after any more."""

    def __init__(self, log: list[str], windows: module_windows.ModuleWindows) -> None:
        super().__init__(log)
        self.windows = windows
        self.left: list[str] = []

    @override
    def _leave(self, module: ModuleName) -> None:
        self.left.append(module)

    @override
    def successor(self, release: str) -> ModuleName | None:
        return None

    @override
    def revision(self, release: str) -> int | None:
        return 1 if release in self.there else None


class WindowBench(Bench):
    """A module with a release whose window is closed."""

    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(root)
        self.clock, self.heard = clocks.Clock(), fakes.Heard()
        self.clock.now = 12 * 3600.0
        self.windows = module_windows.ModuleWindows(
            self.states,
            fakes.Inbox(),
            self.heard.append,
            self.clock,
            default=NIGHTS,
            timers=timers.Timers(),
        )
        self.kept = KeptReleases(self.helm, self.windows)
        self.kept.there.add(WEB)
        self.runner.releases = self.kept


@pytest.fixture
def windowed(tmp_path: pathlib.Path) -> WindowBench:
    return WindowBench(tmp_path)


async def test_a_run_whose_upgrade_waits_succeeds(windowed: WindowBench) -> None:
    windowed.windows.hold(WEB, HELD)
    windowed.hook("a", config(beforeHelm=1, afterHelm=2))
    await windowed.run()
    assert windowed.states[WEB].status is state.ModuleStatus.READY
    assert len(windowed.log) == 2, "hooks do not wait"


async def test_a_run_on_top_of_a_failed_revision_that_waits_is_no_success_and_not_tried_again(
    windowed: WindowBench,
) -> None:
    windowed.windows.hold(WEB, windows.HeldBack("upgrade to revision 3", 1000.0, is_broken=True))
    await windowed.run()
    module = windowed.states[WEB]
    assert module.status is state.ModuleStatus.FAILED
    assert module.last_error.startswith("the last revision failed; waits for a window, which opens at 1970-")


async def test_only_a_run_that_began_with_the_right_to_pass_uses_it_up(windowed: WindowBench) -> None:
    windowed.windows.let_pass(WEB)
    await windowed.run()
    assert not windowed.windows.may_pass(WEB)


async def test_a_run_that_fails_may_pass_the_next_time_too(windowed: WindowBench) -> None:
    windowed.windows.let_pass(WEB)
    windowed.hook("a", config(beforeHelm=1), "exit 1")
    with pytest.raises(Exception, match="exit code 1"):
        await windowed.run()
    assert windowed.windows.may_pass(WEB)


async def test_a_removal_waits_with_its_hooks_and_the_task_ends(windowed: WindowBench) -> None:
    windowed.hook("a", config(beforeDeleteHelm=1, afterDeleteHelm=1))
    windowed.states[WEB].verdict = "disabled by webEnabled"
    await windowed.delete()
    assert (windowed.helm, windowed.log) == ([], [])
    module = windowed.states[WEB]
    assert module.status is state.ModuleStatus.DELETING
    assert module.held_back is not None
    assert module.held_back.what == "removal of the release: the module is disabled: disabled by webEnabled"
    assert windowed.kept.left == [WEB], "nothing of it is restored meanwhile"

    windowed.windows.let_pass(WEB)
    await windowed.delete()
    assert windowed.helm == ["uninstall"]
    assert windowed.states[WEB].status is state.ModuleStatus.DISABLED
    assert not windowed.windows.may_pass(WEB)


async def test_a_module_that_has_no_release_is_removed_at_any_time(windowed: WindowBench) -> None:
    windowed.kept.there.clear()
    windowed.hook("a", config(afterDeleteHelm=1))
    await windowed.delete()
    assert windowed.runs("afterDeleteHelm") == ["a"]
    assert windowed.states[WEB].status is state.ModuleStatus.DISABLED


async def test_a_removal_waits_for_those_that_go_before_it(windowed: WindowBench) -> None:
    requires = module_config.Requirements(modules=(WEB,))
    described = module_config.ModuleConfig(requires=requires)
    windowed.states.replace([windowed.module, model.Module(TOP, 1, pathlib.Path("top"), config=described)])
    windowed.clock.now = 23 * 3600.0
    windowed.windows.hold(TOP, windows.HeldBack("removal", 99 * 3600.0, is_removal=True))
    await windowed.delete()
    assert (windowed.windows.held(WEB) or HELD).until == 99 * 3600.0
    windowed.windows.done(TOP)
    await windowed.delete()
    assert windowed.helm == ["uninstall"]


@pytest.mark.parametrize("awaited", [WEB, TOP], ids=["what is required", "what requires it"])
async def test_a_removal_that_nobody_has_confirmed_waits_with_those_that_go_with_it(
    windowed: WindowBench, awaited: ModuleName
) -> None:
    requires = module_config.Requirements(modules=(WEB,))
    described = module_config.ModuleConfig(requires=requires)
    windowed.states.replace([windowed.module, model.Module(TOP, 1, pathlib.Path("top"), config=described)])
    windowed.clock.now = 23 * 3600.0
    windowed.states.enabled = ()
    windowed.kept.there.add(TOP)
    windowed.kept.unconfirmed = {awaited}
    for name in (TOP, WEB):
        await module_run.ModuleDeleteTask(windowed.runner, name, "test").run()
        held = windowed.states[name].held_back
        assert held is not None
        assert (held.confirm, held.reason) == (awaited, "WaitsForConfirmation")
    assert windowed.helm == []

    windowed.kept.unconfirmed.clear()
    windowed.windows.done(TOP)
    await windowed.delete()
    assert windowed.helm == ["uninstall"]


async def test_a_purge_waits_for_the_windows_of_the_setting(windowed: WindowBench) -> None:
    windowed.kept.there.add("old")
    await windowed.runner.purge("old")
    assert windowed.helm == []
    assert [event.module for event in windowed.heard.of(events.HeldBack)] == ["old"]
    windowed.clock.now = 23 * 3600.0
    await module_run.ReleasePurgeTask(windowed.runner, "old", "test").run()
    assert windowed.helm == ["uninstall"]


async def test_a_module_without_a_verdict_fails_as_its_script_did_until_that_answers(bench: Bench) -> None:
    error = errors.ModuleError(WEB, "its enabled script failed")
    bench.states[WEB].undecided = bench.no_verdict = error
    task = bench.run_task()
    for _ in range(2):
        with pytest.raises(errors.ModuleError, match="its enabled script failed"):
            await bench.runner.run(task)
        task.attempts += 1
    assert bench.states[WEB].status is state.ModuleStatus.FAILED
    assert task.aside.is_set(), "nobody waits for it"
    bench.no_verdict = None
    with pytest.raises(tasks.SupersededError):
        await bench.runner.run(task)
    assert bench.log == ["ask web", "ask web"], "not again what the discovery has asked just now"
