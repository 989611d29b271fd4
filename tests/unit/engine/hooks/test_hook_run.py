"""Outputs of hooks: all checked before the first is applied, and applied in order. The hooks are real."""

import asyncio
import concurrent.futures
import json
import pathlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import prometheus_client
import pytest
import structlog
from typing_extensions import override

from addon_operator.documents import document_stream
from addon_operator.engine import events, module_states, state, tasks
from addon_operator.engine.hooks import hook_lines, hook_outputs, hook_processes, hook_run, questions
from addon_operator.engine.sources import config_sync
from addon_operator.hook_contract import binding_contexts, jq_programs
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonValue
from addon_operator.kernel.names import ModuleName
from addon_operator.kube import api_errors
from addon_operator.kube.objects import object_patches
from addon_operator.modules import model
from addon_operator.telemetry import hook_metrics, series
from addon_operator.values import store
from addon_operator.values.patches import patches
from tests.support import programs
from tests.unit.engine import fakes

WEB = ModuleName("web")
DELETION = {"operation": "Delete", "kind": "Pod", "name": "p", "namespace": "default"}
STATUS = {
    "operation": "MergePatch",
    "kind": "Pod",
    "name": "p",
    "namespace": "default",
    "subresource": "status",
    "mergePatch": {"status": {"message": "failed"}},
    "ignoreHookError": True,
}
METRIC = {"name": "runs", "add": 1}
VALUES = {"op": "add", "path": "/web/a", "value": 1}
CONFIG = {"op": "add", "path": "/web/b", "value": 2}


class ConfigMap(config_sync.ConfigSync):
    """Instead of the ConfigMap: notes what is written."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    @override
    def check_writable(self) -> None:
        """It is there."""

    @override
    async def write(self, owner: ModuleName | None, patch: patches.ValuesPatch) -> bool:
        self._order.append("config values")
        return True


class Objects(fakes.Objects):
    """Notes when it is asked."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self._order = order

    @override
    async def apply(self, operations: Any, writer: object_patches.HookWriter) -> None:
        await super().apply(operations, writer)
        self._order.append("objects")


def hook_task() -> tasks.Task:
    """Return the task in which a hook runs."""

    async def nothing(_: tasks.Task) -> None: ...

    return fakes.CallTask(tasks.TaskKind.MODULE_HOOK_RUN, nothing)


class Heard(fakes.Heard):
    @property
    def outcomes(self) -> list[tuple[str, bool]]:
        """How runs ended, and whether that was allowed."""
        for failed in self.of(events.HookFailed):
            assert failed.result is not None
        return [
            ("succeeded", False) if isinstance(event, events.HookSucceeded) else ("failed", event.allowed)
            for event in self
            if isinstance(event, events.HookSucceeded | events.HookFailed)
        ]

    @property
    def held(self) -> list[float]:
        return [event.seconds for event in self.of(events.HookHolds)]


class Bench:
    """One hook and everything that it can change."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.order: list[str] = []
        self.is_current = True
        self.large = 0
        self.compiled: list[str] = []
        self.config_map = ConfigMap(self.order)
        self.objects = Objects(self.order)
        self.registry = series.Registry()
        prometheus_client.Gauge("ticks", "One of the operator's own.", registry=self.registry)
        self.values = store.ValuesStore([store.ModuleValues(WEB)])
        self.heard = Heard()
        runner = hook_processes.HookProcesses(
            tmp_dir=root / "tmp",
            environment={"PATH": "/usr/bin:/bin"},
            default_timeout=60,
            log=hook_lines.HookLog(structlog.get_logger()),
            programs=programs.programs(),
        )
        outputs = hook_outputs.HookOutputs(
            self.objects,
            self.config_map,
            self.values,
            hook_metrics.HookMetrics(self.registry),
            self._load_large,
            lambda: jq_programs.checking_with(self.compiled.append),
        )
        self.states = module_states.ModuleStates([model.Module(WEB, 1, root)], fakes.ignore)
        self.states.enabled = (WEB,)
        self.executor = hook_run.HookExecutor(runner, self.values, outputs, self.states, self.heard.append)

    def _load_large(self, text: str) -> Sequence[JsonValue]:
        self.large += 1
        return document_stream.load_stream(text)

    async def run(
        self, files: Mapping[str, object], *, exit_code: int = 0, module: ModuleName | None = WEB
    ) -> hook_outputs.HookEffects:
        """Run a hook that writes these documents to the files of these variables."""
        hook, labels = self._hook(files, exit_code, module)
        return await self.executor.run(hook, [], labels, hook_task())

    async def ask(
        self, files: Mapping[str, object], read: Callable[[str], questions.Answer]
    ) -> questions.Answer:
        """The same for a hook that is asked by the API server."""
        hook, labels = self._hook(files, 0, WEB)
        asked = questions.Question(("VALIDATING_RESPONSE_PATH", "ADMISSION_RESPONSE_PATH"), read)
        context = binding_contexts.review("a.b.c", "Validating", b"{}", {})
        answer, _ = await self.executor.ask(hook, context, labels, asked)
        return answer

    def _hook(
        self, files: Mapping[str, object], exit_code: int, module: ModuleName | None
    ) -> tuple[state.Hook, events.HookLabels]:
        lines = ["#!/bin/sh"]
        for variable, document in files.items():
            (self.root / variable).write_text(document if isinstance(document, str) else json.dumps(document))
            target = "/dev/stdout" if variable == "stdout" else f"${variable}"
            lines.append(f'cat "{self.root / variable}" >> "{target}"')
        path = self.root / "hook.sh"
        path.write_text("\n".join([*lines, f"exit {exit_code}", ""]))
        path.chmod(0o755)
        hook = state.Hook("sub/hook.sh", path, hook_config.HookConfig(), module)
        self.states[WEB].hooks = (*(self.states[WEB].hooks or ()), hook) if self.is_current else ()
        return hook, events.HookLabels(hook.name, "onStartup", "main", "test", module)

    @property
    def applied(self) -> set[str]:
        """Which outputs had an effect."""
        found = set(self.order)
        if self.values.values(WEB, None).get("web"):
            found.add("values")
        if self.series:
            found.add("metrics")
        return found

    @property
    def series(self) -> list[str]:
        lines = prometheus_client.generate_latest(self.registry).decode().splitlines()
        return [line for line in lines if "hook=" in line]


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


GOOD: dict[str, object] = {
    "KUBERNETES_PATCH_PATH": DELETION,
    "CONFIG_VALUES_JSON_PATCH_PATH": CONFIG,
    "VALUES_JSON_PATCH_PATH": VALUES,
    "METRICS_PATH": METRIC,
}


async def test_all_outputs_of_a_good_run_are_applied(bench: Bench) -> None:
    effects = await bench.run(GOOD)
    assert effects.values_changed
    assert bench.order == ["objects", "config values"]
    assert bench.applied == {"objects", "config values", "values", "metrics"}
    assert bench.heard.outcomes == [("succeeded", False)]


async def test_of_a_key_that_stands_twice_in_a_patch_of_values_the_last_counts_and_that_is_told(
    bench: Bench,
) -> None:
    for key in "ab":
        patch = f'{{"op": "add", "path": "/web/a", "value": 1, "value": 2, "{key}": 1, "{key}": 2}}'
        assert (await bench.run({"VALUES_JSON_PATCH_PATH": patch})).values_changed is (key == "a")
    told = [event for event in bench.heard if isinstance(event, events.HookDoubted)]
    assert [event.is_new for event in told] == [True, False], "keys may be others each time"
    assert "VALUES_JSON_PATCH_PATH: the key 'value' occurs twice" in told[0].text


async def test_keys_without_effect_are_named_and_the_run_succeeds(bench: Bench) -> None:
    deletion = '{"operation": "Delete", "kind": "Pod", "name": "p", "namespace": null, "jqFilter": "."}'
    await bench.run(
        {"KUBERNETES_PATCH_PATH": deletion, "METRICS_PATH": '{"name": "m", "set": 1, "grup": "g"}'}
    )
    assert bench.heard.outcomes == [("succeeded", False)]
    objects, metrics = [event.text for event in bench.heard if isinstance(event, events.HookDoubted)]
    assert objects == (
        "wrote keys to $KUBERNETES_PATCH_PATH that have no effect: "
        "document [0], the key 'jqFilter' is not known here; it is for JQPatch"
    )
    assert metrics == (
        "wrote keys to $METRICS_PATH that have no effect: "
        "document [0], the key 'grup' is not known here; did you mean 'group'?"
    )


async def test_series_of_a_modules_hook_have_its_module(bench: Bench) -> None:
    await bench.run({"METRICS_PATH": METRIC})
    assert bench.series == ['runs{hook="sub/hook.sh",module="web"} 1.0']


async def test_series_of_a_global_hook_have_no_module(bench: Bench) -> None:
    await bench.run({"METRICS_PATH": METRIC}, module=None)
    assert bench.series == ['runs{hook="sub/hook.sh"} 1.0']


async def test_deletions_belong_to_the_module_of_the_hook(bench: Bench) -> None:
    await bench.run({"KUBERNETES_PATCH_PATH": DELETION})
    await bench.run({"KUBERNETES_PATCH_PATH": DELETION}, module=None)
    assert bench.objects.owners == ["web", ""]


async def test_a_run_without_outputs_changes_nothing(bench: Bench) -> None:
    assert await bench.run({}) == hook_outputs.HookEffects()
    assert bench.applied == set()


WRONG: dict[str, tuple[str, object, str]] = {
    "objects": (
        "KUBERNETES_PATCH_PATH",
        {"operation": "Nothing"},
        "KUBERNETES_PATCH_PATH, document [0], operation",
    ),
    "config-values": ("CONFIG_VALUES_JSON_PATCH_PATH", "[{", "CONFIG_VALUES_JSON_PATCH_PATH, line 1"),
    "values": (
        "VALUES_JSON_PATCH_PATH",
        {"op": "add", "path": "/api/a", "value": 1},
        "'/api/a' is not permitted",
    ),
    "values-that-do-not-apply": (
        "VALUES_JSON_PATCH_PATH",
        {"op": "remove", "path": "/web/x"},
        "there is nothing at",
    ),
    "metrics": ("METRICS_PATH", {"name": "m"}, "METRICS_PATH, document [0], the key 'action' is missing"),
    "metrics-that-clash": (
        "METRICS_PATH",
        {"name": "ticks", "set": 1},
        "the operator itself exports",
    ),
}


@pytest.mark.parametrize(("variable", "document", "message"), WRONG.values(), ids=WRONG)
async def test_one_wrong_output_keeps_all_of_them_from_being_applied(
    bench: Bench, variable: str, document: object, message: str
) -> None:
    with pytest.raises(errors.AddonOperatorError) as caught:
        await bench.run({**GOOD, variable: document})
    assert message in str(caught.value)
    assert "sub/hook.sh" in str(caught.value)
    assert bench.applied == set()
    assert bench.heard.outcomes == [("failed", False)]


async def test_a_refused_config_value_keeps_all_outputs_from_being_applied(bench: Bench) -> None:
    with pytest.raises(patches.PatchError, match="/db/b"):
        await bench.run({**GOOD, "CONFIG_VALUES_JSON_PATCH_PATH": {**CONFIG, "path": "/db/b"}})
    assert bench.applied == set()


async def test_a_failure_at_the_objects_applies_nothing_after_them(bench: Bench) -> None:
    bench.objects.error = api_errors.KubernetesError("no right to do that")
    with pytest.raises(api_errors.KubernetesError, match="no right to do that"):
        await bench.run(GOOD)
    assert bench.applied == set()
    assert bench.heard.outcomes == [("failed", False)]


async def test_nothing_of_a_failed_hook_is_applied(bench: Bench) -> None:
    with pytest.raises(hook_processes.HookRunError, match="exit code 3"):
        await bench.run(GOOD, exit_code=3)
    assert bench.applied == set()


@pytest.mark.parametrize("exit_code", [0, 1], ids=["it succeeded", "it failed"])
async def test_nothing_of_a_hook_whose_module_was_removed_meanwhile_is_applied(
    bench: Bench, exit_code: int
) -> None:
    bench.is_current = False
    with pytest.raises(tasks.SupersededError, match="module web was removed while it ran"):
        await bench.run(GOOD | {"KUBERNETES_PATCH_PATH": STATUS}, exit_code=exit_code)
    assert bench.applied == set()
    assert bench.heard.outcomes == [], "it is neither a success nor a failure"


async def test_a_failed_hook_may_tell_so_in_a_status(bench: Bench) -> None:
    written = "\n".join(json.dumps(document) for document in (DELETION, STATUS))
    with pytest.raises(hook_processes.HookRunError, match="exit code 3"):
        await bench.run({**GOOD, "KUBERNETES_PATCH_PATH": written}, exit_code=3)
    ((operation,),) = bench.objects.applied
    assert operation.origin.index == 1
    assert bench.applied == {"objects"}
    assert bench.heard.outcomes == [("failed", False)]


@pytest.mark.parametrize("written", ["no json {", json.dumps(STATUS)], ids=["unreadable", "refused"])
async def test_a_mistake_in_that_does_not_hide_the_failure(bench: Bench, written: str) -> None:
    bench.objects.error = api_errors.KubernetesError("refused")
    with pytest.raises(hook_processes.HookRunError, match="exit code 3"):
        await bench.run({"KUBERNETES_PATCH_PATH": written}, exit_code=3)
    (warning,) = bench.heard.warnings
    assert warning.startswith("the hook failed, and its status patches cannot be applied: ")


async def test_metrics_of_runs_that_end_together_are_all_counted(bench: Bench) -> None:
    await asyncio.gather(*(bench.run({"METRICS_PATH": METRIC}) for _ in range(8)))
    assert bench.series == ['runs{hook="sub/hook.sh",module="web"} 8.0']


async def test_series_without_a_group_accumulate_over_runs(bench: Bench) -> None:
    for _ in range(2):
        await bench.run({"METRICS_PATH": METRIC})
    assert bench.series == ['runs{hook="sub/hook.sh",module="web"} 2.0']


async def test_large_documents_are_read_where_that_can_be_ended(bench: Bench) -> None:
    written = "\n".join(json.dumps(DELETION) for _ in range(10))
    await bench.run({"KUBERNETES_PATCH_PATH": written})
    assert bench.large == 0
    await bench.run({"KUBERNETES_PATCH_PATH": written + " " * hook_outputs.LARGE_CHARS})
    assert bench.large == 1
    assert [len(operations) for operations in bench.objects.applied] == [10, 10]


async def test_a_hook_that_runs_long_is_reported_at_intervals_that_double(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_run, "HOLDS_AFTER", 0.02)
    path = bench.root / "slow.sh"
    path.write_text("#!/bin/sh\nexec sleep 0.2\n")
    path.chmod(0o755)
    labels = events.HookLabels("slow.sh", "onStartup", "main", "test", WEB)
    hook = state.Hook("slow.sh", path, hook_config.HookConfig(), WEB)
    bench.states[WEB].hooks = (hook,)
    await bench.executor.run(hook, [], labels, hook_task())
    assert bench.heard.held[:3] == [0.02, 0.04, 0.08]
    assert len(bench.heard.held) < 6


async def test_expressions_of_jq_in_operations_are_compiled_where_they_hold_nobody(
    bench: Bench,
) -> None:
    patch = {"operation": "JQPatch", "kind": "Pod", "namespace": "a", "name": "b", "jqFilter": ".a"}
    await bench.run({"KUBERNETES_PATCH_PATH": patch})
    assert bench.compiled == [".a"]


@pytest.mark.parametrize("outputs", [{}, {"METRICS_PATH": METRIC}], ids=["no outputs", "an output"])
async def test_an_answer_takes_a_thread_before_the_process_and_one_after_it(
    bench: Bench, outputs: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, submit = list[object](), concurrent.futures.ThreadPoolExecutor.submit

    def counted(*args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:  # noqa: ANN401 - what submit takes
        turns.append(args)
        return submit(*args, **kwargs)

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", counted)
    readers: list[threading.Thread] = []

    def read(text: str) -> str:
        readers.append(threading.current_thread())
        return text

    answer = await bench.ask({"ADMISSION_RESPONSE_PATH": {"allowed": True}} | outputs, read)
    assert answer == '{"allowed": true}'
    assert readers != [threading.main_thread()], "it may be large"
    # Outputs are read, and those of metrics are planned.
    assert len(turns) == 2 + 2 * len(outputs)


async def test_an_answer_that_is_wrong_names_hook_and_file_and_nothing_of_the_run_is_applied(
    bench: Bench,
) -> None:
    def read(text: str) -> str:
        raise errors.ConfigurationError(f"{text!r} will not do")

    with pytest.raises(questions.AnswerError) as caught:
        await bench.ask({"VALIDATING_RESPONSE_PATH": "x", **GOOD}, read)
    assert str(caught.value) == "hook sub/hook.sh: VALIDATING_RESPONSE_PATH: 'x' will not do"
    assert bench.applied == set()
    assert list((bench.root / "tmp").iterdir()) == []
