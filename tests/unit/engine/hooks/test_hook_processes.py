"""Real hooks in sh and Python, run with their files."""

import asyncio
import contextlib
import json
import os
import pathlib
import stat
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Protocol

import pytest
import structlog
from typing_extensions import override

from addon_operator.engine import events, state
from addon_operator.engine.hooks import (
    hook_configurations,
    hook_directory,
    hook_exchange,
    hook_lines,
    hook_processes,
    questions,
)
from addon_operator.hook_contract import binding_contexts, jq_programs
from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.kernel import fencing, names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.loading import hook_files
from addon_operator.modules import model
from addon_operator.process.children import children
from tests.support import programs, rows

MODULE = names.ModuleName("some-module")
Records = list[MutableMapping[str, Any]]
WriteHook = Callable[..., pathlib.Path]


class MakeRunner(Protocol):
    def __call__(self, **settings: Any) -> hook_processes.HookProcesses: ...  # noqa: ANN401 - what HookProcesses takes


@pytest.fixture
def records() -> Records:
    return []


@pytest.fixture
def make_runner(tmp_path: pathlib.Path, records: Records) -> MakeRunner:
    def keep(_logger: object, method: str, record: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        records.append({"level": method, **record})
        raise structlog.DropEvent

    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(0)
    )

    def make(*, merge_json: bool = False, **settings: Any) -> hook_processes.HookProcesses:  # noqa: ANN401 - what HookProcesses takes
        defaults = {
            "tmp_dir": tmp_path / "tmp",
            "environment": {"PATH": os.environ["PATH"], "INHERITED": "yes"},
            "default_timeout": 20.0,
            "log": hook_lines.HookLog(logger, merge_json=merge_json),
            "programs": programs.programs(),
        }
        return hook_processes.HookProcesses(**{**defaults, **settings})

    return make


@pytest.fixture
def runner(make_runner: MakeRunner) -> hook_processes.HookProcesses:
    return make_runner()


@pytest.fixture
def hook(tmp_path: pathlib.Path) -> WriteHook:
    def write(text: str, *, name: str = "hook.sh", head: str = "#!/bin/sh") -> pathlib.Path:
        path = tmp_path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{head}\n{text}\n")
        path.chmod(0o755)
        return path

    return write


CONTEXTS = [binding_contexts.lifecycle(bindings.LifecycleBinding.BEFORE_HELM)]
CONFIG_VALUES: JsonObject = {"global": {}, "someModule": {"a": 1}}
GIVEN: JsonObject = {"global": {"enabledModules": ["x"]}, "someModule": {"a": 2}}


def given(
    values: JsonObject, question: questions.Question[Any] | None = None, *, is_short: bool = False
) -> hook_exchange.Given:
    """What a run is given."""
    return hook_exchange.Given(CONTEXTS, made(values), question, is_short)


def made(values: JsonObject, config_values: JsonObject = CONFIG_VALUES) -> hook_exchange.Values:
    """What makes the files with these values."""
    return lambda: {
        hook_exchange.CONFIG_VALUES: json.dumps(config_values).encode(),
        hook_exchange.VALUES: json.dumps(values, separators=(",", ":")).encode(),
    }


async def run_hook(
    runner: hook_processes.HookProcesses,
    path: pathlib.Path,
    *,
    values: JsonObject | None = None,
    timeout: float | None = None,
) -> hook_processes.HookRunResult:
    settings = hook_config.HookSettings(execution_timeout=timeout)
    hook = state.Hook("hook.sh", path, hook_config.HookConfig(settings=settings))
    fields = {"hook": "hook.sh", "binding": "beforeHelm", "queue": "main"}
    return await runner.run(hook, given(GIVEN if values is None else values), fields)


async def configured(
    runner: hook_processes.HookProcesses, path: pathlib.Path, kind: hook_config.HookKind
) -> hook_config.HookConfig:
    """Load one hook, as the only one of its owner."""
    files = hook_files.HookFiles((hook_files.HookFile(path, path.name),))
    told: list[state.EngineEvent] = []
    loaded = await runner.load(files, told.append, MODULE if kind is hook_config.HookKind.MODULE else None)
    return loaded.hooks[0].config


async def test_a_hook_reads_its_contexts_and_values_and_its_patches_come_back(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    path = hook(
        """
        {
          printf '{"context":'; cat "$BINDING_CONTEXT_PATH"
          printf ',"config":'; cat "$CONFIG_VALUES_PATH"
          printf ',"values":'; cat "$VALUES_PATH"; printf '}'
        } > "$VALUES_JSON_PATCH_PATH"
        echo config-patch > "$CONFIG_VALUES_JSON_PATCH_PATH"
        echo metric >> "$METRICS_PATH"; echo metric >> "$METRICS_PATH"
        echo '{"operation": "Create"}' > "$KUBERNETES_PATCH_PATH"
        """
    )
    done = await run_hook(runner, path)
    assert json.loads(done.written[hook_exchange.VALUES_PATCH]) == {
        "context": [{"binding": "beforeHelm", "snapshots": {}}],
        "config": CONFIG_VALUES,
        "values": GIVEN,
    }
    assert (done.written[hook_exchange.CONFIG_VALUES_PATCH], done.written[hook_exchange.METRICS]) == (
        "config-patch\n",
        "metric\nmetric\n",
    )
    assert done.written[hook_exchange.KUBERNETES_PATCH] == '{"operation": "Create"}\n'
    assert done.result.exit_code == 0


class Refusing(fencing.Fence):
    @override
    def check(self) -> None:
        raise fencing.FencedError("another one leads")

    @override
    def remaining(self) -> float:
        return 0.0


async def test_a_hook_that_is_asked_something_answers_whoever_leads(
    make_runner: MakeRunner, hook: WriteHook
) -> None:
    runner = make_runner(programs=programs.programs(Refusing()))
    path = hook('echo yes > "$ANSWER_PATH"')
    with pytest.raises(fencing.FencedError, match="another one leads"):
        await run_hook(runner, path)
    asked = state.Hook("hook.sh", path, hook_config.HookConfig())
    question = questions.Question(("ANSWER_PATH",), str, seconds=20.0)
    done = await runner.run(asked, given({}, question), {})
    assert done.written["ANSWER_PATH"] == "yes\n"


async def test_a_hook_in_python_works_as_well(runner: hook_processes.HookProcesses, hook: WriteHook) -> None:
    path = hook(
        "import json, os, pathlib\n"
        "values = json.loads(pathlib.Path(os.environ['VALUES_PATH']).read_text())\n"
        "pathlib.Path(os.environ['VALUES_JSON_PATCH_PATH']).write_text(str(values['someModule']['a'] + 1))",
        name="hook.py",
        head=f"#!{sys.executable} -IS",
    )
    assert (await run_hook(runner, path)).written[hook_exchange.VALUES_PATCH] == "3"


async def test_outputs_that_were_not_written_or_were_removed_are_empty(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    done = await run_hook(runner, hook('rm "$METRICS_PATH"'))
    assert list(done.written.values()) == [""] * 4


async def test_a_hook_gets_the_operators_environment_no_argument_and_its_own_directory(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    path = hook('echo "$# $INHERITED $PWD" > "$METRICS_PATH"')
    done = await run_hook(runner, path)
    assert done.written[hook_exchange.METRICS] == f"0 yes {path.parent}\n"


async def test_a_hook_named_by_a_relative_path_is_found(
    make_runner: MakeRunner, hook: WriteHook, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hook('pwd > "$METRICS_PATH"')
    monkeypatch.chdir(tmp_path)
    done = await run_hook(make_runner(), path.relative_to(tmp_path))
    assert done.written[hook_exchange.METRICS] == f"{path.parent}\n"


async def test_the_files_are_private_and_gone_after_the_run(
    runner: hook_processes.HookProcesses, hook: WriteHook, tmp_path: pathlib.Path
) -> None:
    path = hook('cd "$(dirname "$VALUES_PATH")"; stat -c "%a" . * | sort -u > "$METRICS_PATH"')
    done = await run_hook(runner, path)
    assert done.written[hook_exchange.METRICS].split() == ["600", "700"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert stat.S_IMODE((tmp_path / "tmp").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "text",
    [
        """python3 -c "
import os
for _ in range(1500):
    os.mkdir('d')
    os.chdir('d')" """,
        'cd /; rm -rf "$D"; ln -s /etc "$D"',
        'chmod 000 "$D"',
    ],
    ids=["very deep", "a link in its place", "closed"],
)
async def test_whatever_a_hook_makes_of_its_directory_it_goes(
    runner: hook_processes.HookProcesses, hook: WriteHook, tmp_path: pathlib.Path, text: str
) -> None:
    # Whoever is not root cannot read the outputs in a closed one.
    with contextlib.suppress(hook_processes.HookRunError):
        await run_hook(runner, hook(f'D="$(dirname "$VALUES_PATH")"; cd "$D"; {text}'))
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_two_runs_at_once_do_not_meet(runner: hook_processes.HookProcesses, hook: WriteHook) -> None:
    path = hook('cat "$VALUES_PATH" > "$METRICS_PATH"')
    runs = await asyncio.gather(*(run_hook(runner, path, values={"n": n}) for n in range(5)))
    assert [run.written[hook_exchange.METRICS] for run in runs] == [f'{{"n":{n}}}' for n in range(5)]


async def test_files_can_be_kept_for_debugging(
    make_runner: MakeRunner, hook: WriteHook, tmp_path: pathlib.Path
) -> None:
    await run_hook(make_runner(keep_tmp_files=True), hook("true"))
    (kept,) = (tmp_path / "tmp").iterdir()
    assert kept.name.startswith("hook.sh-")
    assert (kept / "values.json").is_file()


async def test_a_failing_hook_is_named_with_its_exit_code_and_last_words(
    runner: hook_processes.HookProcesses, hook: WriteHook, tmp_path: pathlib.Path
) -> None:
    path = hook("echo one >&2; echo two >&2; echo three >&2; echo four >&2; exit 3")
    with pytest.raises(hook_processes.HookRunError) as caught:
        await run_hook(runner, path)
    assert str(caught.value) == "hook hook.sh failed with exit code 3: two | three | four"
    assert (caught.value.hook, caught.value.result.exit_code) == ("hook.sh", 3)
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_what_a_failing_hook_wrote_is_not_read(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    with pytest.raises(hook_processes.HookRunError, match=r"hook hook\.sh failed with exit code 1$"):
        await run_hook(runner, hook('printf "\\377" > "$METRICS_PATH"; exit 1'))


async def test_a_hook_that_dies_of_a_signal_says_which(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    with pytest.raises(hook_processes.HookRunError, match="was killed by SIGKILL; did it run out of memory"):
        await run_hook(runner, hook("kill -KILL $$"))


async def test_a_signal_without_a_name_is_reported_by_its_number(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    with pytest.raises(hook_processes.HookRunError, match="was killed by signal 40"):
        await run_hook(runner, hook("kill -40 $$"))


@pytest.mark.parametrize(
    ("own", "default"), [pytest.param(0.1, 1000.0, id="its own"), pytest.param(None, 0.1, id="the default")]
)
async def test_a_hook_is_stopped_at_its_timeout(
    make_runner: MakeRunner, hook: WriteHook, own: float | None, default: float
) -> None:
    with pytest.raises(hook_processes.HookRunError, match="ran longer than its timeout of 100ms") as caught:
        await run_hook(make_runner(default_timeout=default), hook("sleep 100"), timeout=own)
    assert caught.value.result.timed_out


async def test_a_hook_that_exits_well_after_its_timeout_has_failed(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    with pytest.raises(hook_processes.HookRunError, match="timeout"):
        await run_hook(runner, hook("trap 'exit 0' TERM; sleep 100 & wait"), timeout=0.1)


async def test_a_cancelled_run_ends_its_hook_and_removes_its_files(
    runner: hook_processes.HookProcesses, hook: WriteHook, tmp_path: pathlib.Path, records: Records
) -> None:
    # dash may miss a signal that comes before it waits.
    text = f"trap 'touch {tmp_path}/ended; exit' TERM; echo ready; sleep 100 & wait"
    path = hook(text, head="#!/bin/bash")
    run = asyncio.create_task(run_hook(runner, path))
    async with asyncio.timeout(60):
        while not records:  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.005)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (tmp_path / "ended").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_hook_that_cannot_be_started_says_why(
    runner: hook_processes.HookProcesses, hook: WriteHook, tmp_path: pathlib.Path
) -> None:
    path = hook("", head="#!/no/such/interpreter")
    with pytest.raises(children.ChildStartError, match="interpreter /no/such/interpreter"):
        await run_hook(runner, path)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            'head -c 1048577 /dev/zero > "$METRICS_PATH"', "more than 1 MiB were written", id="size"
        ),
        pytest.param('printf "ab\\377" > "$METRICS_PATH"', r"not UTF-8 text \(byte 2\)", id="encoding"),
        pytest.param(
            'rm "$METRICS_PATH"; mkfifo "$METRICS_PATH"', "METRICS_PATH is not a regular file", id="pipe"
        ),
        pytest.param('rm "$METRICS_PATH"; mkdir "$METRICS_PATH"', "METRICS_PATH", id="directory"),
        pytest.param('ln -sf /dev/zero "$METRICS_PATH"', "not a regular file", id="device"),
    ],
)
async def test_an_output_that_cannot_be_read_fails_the_hook(
    runner: hook_processes.HookProcesses,
    hook: WriteHook,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    reason: str,
) -> None:
    monkeypatch.setattr(hook_directory, "MAX_OUTPUT_BYTES", 1024 * 1024)
    with pytest.raises(
        hook_processes.HookRunError, match=f"hook hook.sh returned invalid output: .*{reason}"
    ):
        await run_hook(runner, hook(text))


async def test_a_disk_that_takes_no_files_is_explained(
    make_runner: MakeRunner, hook: WriteHook, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(hook_directory.HookFileError, match=r"file/tmp: Not a directory; .*TMP_DIR"):
        await run_hook(make_runner(tmp_dir=tmp_path / "file" / "tmp"), hook("true"))


async def test_output_goes_to_the_log_with_the_fields_of_the_run(
    runner: hook_processes.HookProcesses, hook: WriteHook, records: Records
) -> None:
    await run_hook(runner, hook('echo "hello %s"; echo; echo oops >&2'))
    fields = {"level": "info", "hook": "hook.sh", "binding": "beforeHelm", "queue": "main"}
    assert {record["output"]: record for record in records} == {
        "stdout": {**fields, "event": "hello %s", "output": "stdout"},
        "stderr": {**fields, "event": "oops", "output": "stderr"},
    }


CHATTY = """
for stream in 1 2; do i=0; while [ $i -lt 10000 ]; do echo $i >&$stream; i=$((i+1)); done; done
printf true > "${MODULE_ENABLED_RESULT:-/dev/null}"; printf yes > "${ANSWER_PATH:-/dev/null}"
"""


@pytest.mark.parametrize("kind", ["run", "question", "enabled script", "--config", "program", "readiness"])
async def test_no_kind_of_run_fills_the_log(
    runner: hook_processes.HookProcesses, hook: WriteHook, records: Records, kind: str
) -> None:
    path = hook(CHATTY)
    config = hook_config.HookConfig()
    match kind:
        case "run" | "program" | "readiness":
            arguments = {
                "run": (),
                "program": hook_configurations.RUN,
                "readiness": hook_configurations.READY,
            }
            chatty = state.Hook("hook.sh", path, config, arguments=arguments[kind])
            await runner.run(chatty, given({}), {})
        case "question":
            question = questions.Question(("ANSWER_PATH",), str, seconds=20.0)
            ran = await runner.run(state.Hook("hook.sh", path, config), given({}, question), {})
            assert ran.answer == "yes"
        case "enabled script":
            assert (await runner.enabled(path, MODULE, made({}))).enabled
        case _:
            await runner.configurations.ask(path)
    wrote = 10_000 if kind == "--config" else 20_000
    lines = [record["event"] for record in records]
    assert len(lines) == hook_lines.LOGGED_FIRST + hook_lines.LOGGED_LAST + 2
    assert "further lines" in lines[hook_lines.LOGGED_FIRST]
    left_out = wrote - hook_lines.LOGGED_FIRST - hook_lines.LOGGED_LAST
    assert lines[hook_lines.LOGGED_FIRST + 1].startswith(f"and {left_out} more lines")
    assert lines[-1] == "9999"


async def test_json_lines_become_records_of_their_own_when_asked(
    make_runner: MakeRunner, hook: WriteHook, records: Records
) -> None:
    line = '{"level":"warning","msg":"low","queue":"q","event":"e","free":3,"time":"now"}'
    await run_hook(make_runner(merge_json=True), hook(f"echo '{line}'"))
    assert records == [
        {"level": "warning", "event": "low", "hook": "hook.sh", "binding": "beforeHelm", "queue": "main",
         "output": "stdout", "hook_queue": "q", "hook_event": "e", "free": 3}
    ]  # fmt: skip


async def test_json_lines_stay_text_when_not_asked(
    runner: hook_processes.HookProcesses, hook: WriteHook, records: Records
) -> None:
    await run_hook(runner, hook("""echo '{"msg":"x"}'"""))
    assert records[0]["event"] == '{"msg":"x"}'


async def test_the_configuration_is_what_a_hook_prints_when_asked_for_it(
    runner: hook_processes.HookProcesses, hook: WriteHook, records: Records
) -> None:
    path = hook('[ "$1" = --config ] && echo "{configVersion: v1, beforeHelm: 7}"; echo aside >&2')
    files, told = hook_files.HookFiles((hook_files.HookFile(path, "hook.sh"),)), list[state.EngineEvent]()
    (read,) = (await runner.load(files, told.append, MODULE)).hooks
    assert read.config.order(hook_config.LifecycleBinding.BEFORE_HELM) == 7
    wrote = f"{path}: --config printed a configuration, and wrote to standard error: aside"
    assert told == [events.Warned(f"module {MODULE}: {wrote}")]
    assert [record["event"] for record in records] == ["aside"]


async def test_the_configuration_is_read_in_the_hooks_directory_without_run_files(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    path = hook(
        '[ "$PWD" = "$(dirname "$0")" ] && [ -z "$VALUES_PATH" ] && echo "{configVersion: v1, onStartup: 1}"'
    )
    assert (await configured(runner, path, hook_config.HookKind.GLOBAL)).order(
        hook_config.LifecycleBinding.ON_STARTUP
    ) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo broken >&2; exit 1", "--config failed with exit code 1: broken"),
        ("exit 0", "--config printed nothing"),
        ("echo '{configVersion: v1, onStart: 1}'", "did you mean 'onStartup'"),
        ("echo 'jq: gone' >&2; echo '{'", "neither JSON.*; it said on standard error: jq: gone"),
        ("head -c 1048577 /dev/zero", "more than 1048576 bytes"),
        ('printf "\\377"', "not UTF-8"),
        ("kill -TERM $$", "was killed by SIGTERM"),
    ],
)
async def test_a_missing_configuration_is_one_sentence_that_names_the_hook(
    runner: hook_processes.HookProcesses, hook: WriteHook, text: str, reason: str
) -> None:
    path = hook(text)
    with pytest.raises(hook_config.HookConfigError, match=reason) as caught:
        await configured(runner, path, hook_config.HookKind.GLOBAL)
    assert str(caught.value).startswith(f"hook {path}: ")
    assert "\n" not in str(caught.value)


async def test_a_hook_that_cannot_be_started_has_no_configuration(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    with pytest.raises(hook_config.HookConfigError, match="interpreter /no/such"):
        await configured(runner, hook("", head="#!/no/such"), hook_config.HookKind.GLOBAL)


async def test_a_hook_that_never_prints_its_configuration_is_stopped(
    make_runner: MakeRunner, hook: WriteHook
) -> None:
    with pytest.raises(hook_config.HookConfigError, match="ran longer than its timeout"):
        await configured(make_runner(default_timeout=0.1), hook("sleep 100"), hook_config.HookKind.GLOBAL)


@pytest.mark.parametrize(("word", "enabled"), [("true", True), ("false", False), (" true\n\n", True)])
async def test_an_enabled_script_gives_verdict_and_reason(
    runner: hook_processes.HookProcesses, hook: WriteHook, word: str, enabled: bool
) -> None:
    path = hook(f"""
        grep -q enabledModules "$VALUES_PATH" && grep -q someModule "$CONFIG_VALUES_PATH" || exit 1
        printf '{word}' > "$MODULE_ENABLED_RESULT"
        printf 'because\n  of it\n' > "$MODULE_ENABLED_REASON"
    """)
    values = made({"global": {"enabledModules": []}}, {"someModule": {}})
    result = await runner.enabled(path, MODULE, values)
    assert result == model.Verdict(MODULE, enabled, "because of it")


@pytest.mark.parametrize(("word", "said"), [("true", "enabled"), ("false", "disabled")])
async def test_an_enabled_script_without_a_reason_is_the_reason(
    runner: hook_processes.HookProcesses, hook: WriteHook, word: str, said: str
) -> None:
    path = hook(f'echo {word} > "$MODULE_ENABLED_RESULT"', name="enabled")
    assert (await runner.enabled(path, MODULE, made({}))).reason == f"{said} by its enabled script"


async def test_a_relative_hook_runs_although_the_directory_of_the_start_is_gone(
    make_runner: MakeRunner, hook: WriteHook, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook("pwd > ${METRICS_PATH:-/dev/null}; echo true > ${MODULE_ENABLED_RESULT:-/dev/null}")
    start = tmp_path / "start"
    start.mkdir()
    monkeypatch.chdir(start)
    runner = make_runner()
    start.rmdir()
    path = pathlib.Path("../hooks/hook.sh")
    assert (await run_hook(runner, path)).written[hook_exchange.METRICS] == f"{tmp_path / 'hooks'}\n"
    assert (await runner.enabled(path, MODULE, made({}))).enabled


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("true", "wrote nothing to the file of MODULE_ENABLED_RESULT"),
        (
            "echo looking; echo false",
            "wrote nothing .*, and printed it to its standard output instead; write it with > .*_RESULT",
        ),
        ('echo yes > "$MODULE_ENABLED_RESULT"', "wrote 'yes' to"),
        ('echo True > "$MODULE_ENABLED_RESULT"', "wrote 'True' to"),
        ('echo true > "$MODULE_ENABLED_RESULT"; echo no >&2; exit 2', "failed with exit code 2: no"),
        ('printf "\\377" > "$MODULE_ENABLED_RESULT"', "cannot be asked: .*UTF-8"),
    ],
)
async def test_an_enabled_script_without_verdict_is_an_error_of_its_module(
    runner: hook_processes.HookProcesses, hook: WriteHook, text: str, reason: str
) -> None:
    with pytest.raises(
        hook_processes.EnabledScriptError, match=f"module some-module: its enabled script {reason}"
    ):
        await runner.enabled(hook(text, name="enabled"), MODULE, made({}))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('echo hunter2 > "$MODULE_ENABLED_RESULT"', "wrote no verdict to the file of MODULE_ENABLED_RESULT"),
        (
            "echo hunter2 >&2; exit 2",
            "failed with exit code 2; 'addon-operator module describe some-module' shows the end of what it",
        ),
    ],
)
async def test_what_an_enabled_script_wrote_is_not_in_its_error_without_values(
    runner: hook_processes.HookProcesses, hook: WriteHook, text: str, told: str
) -> None:
    with pytest.raises(hook_processes.EnabledScriptError, match="hunter2") as failed:
        await runner.enabled(hook(text, name="enabled"), MODULE, made({}))
    assert failed.value.without_values.startswith(f"module some-module: its enabled script {told}")


async def test_an_enabled_script_that_cannot_be_started_is_an_error_of_its_module(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    with pytest.raises(hook_processes.EnabledScriptError, match=r"some-module: .*interpreter /no/such"):
        await runner.enabled(hook("", head="#!/no/such"), MODULE, made({}))


@rows.each(
    ("exit_code", "module", "text"),
    [
        (3, MODULE, "hook a.sh failed with exit code 3; 'addon-operator module describe some-module' shows "),
        (3, None, "hook a.sh failed with exit code 3; 'addon-operator queue list' shows "),
        (0, None, "hook a.sh returned invalid output; 'addon-operator queue list' shows "),
    ],
    ids=["failed", "global", "wrong-output"],
)
def test_what_a_failing_hook_wrote_is_left_out_where_values_may_not_be_shown(
    exit_code: int, module: names.ModuleName | None, text: str
) -> None:
    result = children.ChildResult(
        exit_code, 0.0, 0.0, 1.0, 1, timed_out=False, stdout=None, stdout_is_cut=False, stderr_tail="s3cret"
    )
    error = hook_processes.HookRunError("a.sh", result, "gave back: s3cret", module=module)
    assert "s3cret" in str(error)
    assert error.without_values == f"{text}the end of what it wrote, and the operator's log more of it"


async def test_expressions_of_jq_in_a_configuration_are_compiled_where_they_hold_nobody(
    make_runner: MakeRunner, hook: WriteHook
) -> None:
    compiled: list[str] = []
    runner = make_runner(checking_jq=lambda: jq_programs.checking_with(compiled.append))
    binding = {"kind": "Pod", "jqFilter": ".a"}
    path = hook(f"echo '{json.dumps({'configVersion': 'v1', 'kubernetes': [binding]})}'")
    await configured(runner, path, hook_config.HookKind.MODULE)
    assert set(compiled) == {".a"}


async def test_a_field_of_a_log_line_may_have_any_name(
    make_runner: MakeRunner, hook: WriteHook, records: Records
) -> None:
    names = ["method_name", "self", "event", "logger", "args", "kwargs", "name", "exc_info", "_record"]
    line = json.dumps({**dict.fromkeys(names, "x"), "msg": "said"})
    path = hook(f"echo '{line}'; echo afterwards")
    run = state.Hook("hook.sh", path, hook_config.HookConfig())
    await make_runner(merge_json=True).run(run, given({}), {})
    assert [record["event"] for record in records] == ["said", "afterwards"]
    assert records[0]["hook_method_name"] == "x"


async def test_of_a_reason_that_is_long_only_the_beginning_counts(
    runner: hook_processes.HookProcesses, hook: WriteHook
) -> None:
    path = hook("""
        echo true > "$MODULE_ENABLED_RESULT"
        head -c 3000000 /dev/zero | tr '\\0' x > "$MODULE_ENABLED_REASON"
    """)
    assert (await runner.enabled(path, MODULE, made({}))).reason == "x" * 10_000
