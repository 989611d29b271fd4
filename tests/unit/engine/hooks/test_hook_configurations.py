"""Programs that hold many hooks, asked and run for real."""

import json
import os
import pathlib
from collections.abc import MutableMapping
from typing import Any

import pytest
import structlog

from addon_operator.engine import events, state
from addon_operator.engine.hooks import hook_configurations, hook_exchange, hook_lines, hook_processes
from addon_operator.hook_contract import binding_contexts
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import names
from addon_operator.loading import hook_files
from tests.support import batch_program, programs

MODULE = names.ModuleName("some-module")
HOOKS = [
    {"configVersion": "v1", "metadata": {"name": "one", "path": ""}, "beforeHelm": 1},
    {"configVersion": "v1", "metadata": {"name": "sub/two", "path": ""}, "afterHelm": 2},
]
PROGRAM = {"version": "v1", "hooks": HOOKS}
CONTEXTS = [binding_contexts.lifecycle(bindings.LifecycleBinding.BEFORE_HELM)]
ELF = b"\x7fELF"


VALUES = dict.fromkeys((hook_exchange.CONFIG_VALUES, hook_exchange.VALUES), b'{"global": {}}')


class Runner:
    """Processes of hooks, and what was logged and told of them."""

    def __init__(self, tmp_path: pathlib.Path, timeout: float = 20.0) -> None:
        self.records: list[MutableMapping[str, Any]] = []
        self.told: list[state.EngineEvent] = []

        def keep(_: object, method: str, record: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
            self.records.append({"level": method, **record})
            raise structlog.DropEvent

        logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(0)
        )
        self.processes = hook_processes.HookProcesses(
            tmp_dir=tmp_path / "tmp",
            environment={"PATH": os.environ["PATH"]},
            default_timeout=timeout,
            log=hook_lines.HookLog(logger),
            programs=programs.programs(),
        )

    async def load(
        self, root: pathlib.Path, module: names.ModuleName | None = MODULE
    ) -> hook_processes.LoadedHooks:
        return await self.processes.load(hook_files.discover(root), self.told.append, module)

    async def run(self, hook: state.Hook) -> hook_processes.HookRunResult:
        return await self.processes.run(
            hook, hook_exchange.Given(CONTEXTS, lambda: VALUES), {"hook": hook.name}
        )


@pytest.fixture
def runner(tmp_path: pathlib.Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "hooks"


def executable(path: pathlib.Path, text: str | bytes) -> pathlib.Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o755)
    return path


async def test_nested_hooks_are_named_by_path_name_and_number(runner: Runner, root: pathlib.Path) -> None:
    batch_program.write(root / "sub", "batch", PROGRAM)
    executable(root / "plain.sh", "#!/bin/sh\necho '{configVersion: v1, onStartup: 1}'")
    loaded = await runner.load(root)
    assert [hook.name for hook in loaded.hooks] == ["plain.sh", "sub/batch:one:0", "sub/batch:sub/two:1"]
    assert {hook.path for hook in loaded.hooks[1:]} == {root / "sub" / "batch"}
    assert loaded.readiness is None
    assert runner.told == []


async def test_a_nested_hook_gets_the_files_of_any_hook_and_whose_it_is(
    runner: Runner, root: pathlib.Path
) -> None:
    body = """
    names = ("MODULE_NAME", "APPLICATION_NAME", "APPLICATION_NAMESPACE")
    given = {name: os.environ[name] for name in names}
    write("VALUES_JSON_PATCH_PATH", {"asked": ASKED, "contexts": read("BINDING_CONTEXT_PATH"), **given})
    write("METRICS_PATH", read("VALUES_PATH"), read("CONFIG_VALUES_PATH"))
    print(json.dumps({"level": "warn", "msg": "done", "time": "now", "step": 1}))
    """
    batch_program.write(root, "batch", PROGRAM, body)
    _, second = (await runner.load(root)).hooks
    done = await runner.run(second)
    assert json.loads(done.written[hook_exchange.VALUES_PATCH]) == {
        "asked": ["run", "1"],
        "contexts": [{"binding": "beforeHelm", "snapshots": {}}],
        "MODULE_NAME": "some-module",
        "APPLICATION_NAME": "",
        "APPLICATION_NAMESPACE": "",
    }
    assert done.written[hook_exchange.METRICS] == '{"global": {}}\n' * 2
    assert runner.records == [
        {"level": "warning", "event": "done", "step": 1, "output": "stdout", "hook": "batch:sub/two:1"}
    ]


async def test_a_nested_hook_that_fails_says_what_its_json_says(runner: Runner, root: pathlib.Path) -> None:
    batch_program.write(root, "batch", PROGRAM, 'fail("execute: no such node")')
    hook, _ = (await runner.load(root)).hooks
    with pytest.raises(hook_processes.HookRunError) as caught:
        await runner.run(hook)
    assert str(caught.value) == "hook batch:one:0 failed with exit code 1: execute: no such node"


async def test_readiness_is_a_question_to_the_program(runner: Runner, root: pathlib.Path) -> None:
    config = {**PROGRAM, "readiness": HOOKS[0], "has_settings_check": True}
    batch_program.write(root, "batch", config, 'ASKED == ["ready"] or fail("asked for something else")')
    readiness = (await runner.load(root)).readiness
    assert readiness is not None
    assert readiness.name == "batch:readiness"
    assert (await runner.run(readiness)).result.exit_code == 0


async def test_two_programs_that_say_if_the_module_is_ready_are_an_error_that_names_both(
    runner: Runner, root: pathlib.Path
) -> None:
    for name in ("one", "two"):
        batch_program.write(root / name, "batch", {**PROGRAM, "readiness": HOOKS[0]})
    with pytest.raises(hook_config.HookConfigError) as caught:
        await runner.load(root)
    assert str(root / "one/batch") in str(caught.value)
    assert str(root / "two/batch") in str(caught.value)


async def test_what_a_global_program_says_of_a_module_is_a_warning(
    runner: Runner, root: pathlib.Path
) -> None:
    hooks = [{"metadata": {"name": "start"}, "onStartup": 1}]
    config = {"version": "v1", "hooks": hooks, "readiness": hooks[0], "has_settings_check": True}
    batch_program.write(root, "batch", config)
    loaded = await runner.load(root, None)
    assert ([hook.name for hook in loaded.hooks], loaded.readiness) == (["batch:start:0"], None)
    texts = [event.text for event in runner.told if isinstance(event, events.Warned)]
    assert ["readiness" in texts[0], "check of settings" in texts[1]] == [True, True]


async def test_a_script_without_an_extension_is_asked_as_any_script(
    runner: Runner, root: pathlib.Path
) -> None:
    executable(root / "plain", '#!/bin/sh\n[ "$1" = --config ] && echo "{configVersion: v1, onStartup: 1}"')
    assert [hook.name for hook in (await runner.load(root)).hooks] == ["plain"]


async def test_a_file_without_an_interpreter_has_no_line_that_names_one(
    runner: Runner, root: pathlib.Path
) -> None:
    for name in ("plain", "named.sh"):
        path = executable(root / name, "echo '{configVersion: v1, onStartup: 1}'")
        with pytest.raises(hook_config.HookConfigError, match="has no #! line; begin a script with a line"):
            await runner.processes.configurations.ask(path)


async def test_a_program_for_another_machine_is_not_called_a_script(
    runner: Runner, root: pathlib.Path
) -> None:
    path = executable(root / "batch", ELF + bytes(100))
    with pytest.raises(hook_config.HookConfigError, match="it is a program for another kind of machine"):
        await runner.processes.configurations.ask(path)


async def test_a_compiled_program_that_holds_no_hooks_says_both_ways_in_which_it_was_asked(
    runner: Runner, root: pathlib.Path
) -> None:
    program = batch_program.write(root, "batch", PROGRAM)
    (root / "hook" / "__main__.py").write_text("print('usage')")
    with pytest.raises(hook_config.HookConfigError) as caught:
        await runner.processes.configurations.ask(program)
    assert "--config failed with exit code 2" in str(caught.value)
    assert "'hook list' did not begin its answer with 'Found N items:'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("fail('no hooks registered')", "hook config failed with exit code 1: no hooks registered"),
        ("print('{')", "'hook config' printed no JSON"),
        ("sys.stdout.write('x' * (1 << 24))", "hook config printed more than 1048576 bytes"),
        pytest.param(
            "while True: sys.stdout.write('x' * 65536)",
            "ran longer than its timeout|more than 1048576 bytes",
            marks=pytest.mark.slow,  # it writes until its timeout
        ),
        ("time.sleep(100)", "hook config was stopped because it ran longer than its timeout of 1s"),
    ],
)
async def test_a_program_that_cannot_say_what_it_holds_is_one_sentence_with_its_path(
    tmp_path: pathlib.Path, root: pathlib.Path, answer: str, reason: str
) -> None:
    program = batch_program.write(root, "batch", PROGRAM)
    script = root / "hook" / "__main__.py"
    script.write_text(script.read_text().replace(f"    print({json.dumps(PROGRAM)!r})", f"    {answer}"))
    with pytest.raises(hook_config.HookConfigError, match=reason) as caught:
        await Runner(tmp_path, timeout=1.0 if "timeout" in reason else 60.0).load(root)
    assert str(caught.value).startswith(f"hook {program}: invalid configuration: ")
    assert "\n" not in str(caught.value)


def test_the_questions_are_those_of_the_go_sdk() -> None:
    assert [" ".join(words) for words in (hook_configurations.READY, hook_configurations.CHECK)] == [
        "hook ready",
        "hook check",
    ]
