"""Programs that check settings, asked from threads, with time limits: most are functions, some are real."""

import asyncio
import inspect
import json
import os
import pathlib
import signal
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from addon_operator.engine.hooks import settings_programs
from addon_operator.kernel import names
from addon_operator.values import checks, settings_checks, sources, store
from addon_operator.values.schema import schemas
from tests.support import batch_program, programs

MODULE = names.ModuleName("some-module")
PROGRAM = {"version": "v1", "hooks": [], "has_settings_check": True}
CHECK = """
settings = read("SETTINGS_PATH")
if ASKED != ["check"] or os.environ["MODULE_NAME"] != "some-module":
    sys.exit(9)
"""


@pytest.fixture
def hooks(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "hooks"


@pytest.fixture
def started() -> programs.Programs:
    return programs.Programs()


@pytest.fixture
def asked(started: programs.Programs, tmp_path: pathlib.Path) -> settings_programs.SettingsPrograms:
    return settings_programs.SettingsPrograms(started, {}, tmp_path / "tmp")


@pytest.fixture
def really_asked(tmp_path: pathlib.Path) -> settings_programs.SettingsPrograms:
    return settings_programs.SettingsPrograms(
        programs.programs(), {"PATH": os.environ["PATH"]}, tmp_path / "tmp"
    )


def write(hooks: pathlib.Path, body: str) -> pathlib.Path:
    """Put a real program there."""
    return batch_program.write(hooks, "batch", PROGRAM, CHECK + body)


Check = Callable[[dict[str, Any]], object]
"""Gives the answer to settings, ``None`` if they are right."""


def add(
    started: programs.Programs,
    hooks: pathlib.Path,
    check: Check,
    config: Mapping[str, Any] = PROGRAM,
    killed_at: str = "",
) -> pathlib.Path:
    """Have a function stand for a program; ``killed_at`` is the question at which it is killed."""

    async def run(call: programs.Call) -> None:
        question = call.arguments[1]
        if question == killed_at:
            raise programs.ProgramError("", -signal.SIGKILL)
        match question:
            case "list":
                call.stdout.append("Found 0 items:")
            case "config":
                call.stdout.append(json.dumps(config))
            case _:
                answer = check(json.loads(call.file("SETTINGS_PATH").read_bytes()))
                if inspect.isawaitable(answer):
                    answer = await answer
                if answer is not None:
                    raise programs.ProgramError(json.dumps(answer))

    program = hooks / "batch"
    hooks.mkdir(exist_ok=True)
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    started.add(program, run)
    return program


def refused(_: dict[str, Any]) -> dict[str, object]:
    return {"valid": False, "message": "no"}


def verdict(
    asked: settings_programs.SettingsPrograms,
    hooks: pathlib.Path,
    **settings: Any,  # noqa: ANN401 - JSON
) -> settings_checks.SettingsVerdict:
    (found,) = asked.verdicts(hooks, MODULE, settings)
    return found


def asked_times(started: programs.Programs) -> int:
    return sum(call.arguments == ["hook", "check"] for call in started.calls)


def test_a_program_sees_the_settings_and_its_message_is_the_error(
    really_asked: settings_programs.SettingsPrograms, hooks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    body = "message = f'replicas cannot be {settings[\"replicas\"]}'\n"
    body += "print('aside'); sys.stderr.write('aside\\n')\n"
    body += (
        "sys.stderr.write(json.dumps({'valid': False, 'message': message, 'warnings': None}))\nsys.exit(1)"
    )
    program = write(hooks, body)
    assert verdict(really_asked, hooks, replicas=0) == settings_checks.SettingsVerdict(
        f"{program} hook check", "replicas cannot be 0"
    )
    assert list((tmp_path / "tmp").iterdir()) == []


def test_settings_may_be_right_with_warnings_or_wrong_without_a_message(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    add(started, hooks, lambda _: {"valid": True, "message": "", "warnings": ["2 is  odd", 3]})
    found = verdict(asked, hooks)
    assert (found.error, found.warnings) == ("", ("2 is odd",))
    add(started, hooks, lambda _: {"valid": False})
    assert verdict(asked, hooks).error == "these settings are wrong; the program does not say why"


def test_settings_that_were_right_are_not_asked_about_again_until_they_or_the_program_change(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    program = add(started, hooks, lambda _: None)
    for replicas in (1, 1, 2, 2, 1):
        asked.verdicts(hooks, MODULE, {"replicas": replicas})
    assert asked_times(started) == 3
    program.unlink()
    add(started, hooks, lambda _: None)
    assert verdict(asked, hooks, replicas=1).error == ""
    asked.verdicts(hooks, MODULE, {"replicas": 1})
    assert asked_times(started) == 4


def test_settings_that_were_wrong_are_asked_about_again(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    add(started, hooks, refused)
    for _ in range(2):
        assert verdict(asked, hooks).error == "no"
    assert asked_times(started) == 2


def test_only_programs_that_check_settings_are_asked(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    assert asked.verdicts(hooks, MODULE, {}) == []
    add(started, hooks, refused, {"version": "v1", "hooks": []})
    script = hooks / "script"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    text = hooks / "text"
    text.write_text("exit 1\n")
    text.chmod(0o755)
    assert asked.verdicts(hooks, MODULE, {}) == []
    assert sorted(map(str, started.calls)) == ["batch hook config", "batch hook list", "text hook list"]


def test_a_program_that_fails_gives_no_answer_and_says_how(
    really_asked: settings_programs.SettingsPrograms, hooks: pathlib.Path
) -> None:
    write(hooks, "exec(settings['does'])")
    for does, reason in (
        ("sys.exit(3)", "failed with exit code 3"),
        ("sys.stderr.write('{'); sys.exit(1)", "failed with exit code 1: {"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("sys.stderr.write('x' * (1 << 22)); sys.exit(1)", "failed with exit code 1: "),
    ):
        found = verdict(really_asked, hooks, does=does)
        assert not found.is_answer
        assert found.error.startswith(f"the program that checks these settings gave no answer: it {reason}")
        assert len(found.error) < 11_000


def test_whatever_stands_in_an_answer_the_settings_are_wrong_and_nothing_else_happens(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    add(started, hooks, lambda settings: settings["answer"])
    odds: list[object] = [None, True, 1e300, [5, None, {}], {"a": 1}]
    for odd in odds:
        answered = {"valid": False if odd is True else odd, "message": odd, "warnings": odd}
        found = verdict(asked, hooks, answer=answered)
        assert found.error
        assert found.is_answer
        assert set(map(type, found.warnings)) <= {str}


@pytest.mark.parametrize("words", ["list", "config"])
def test_a_program_that_was_killed_once_is_asked_for_its_checks_again(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path, words: str
) -> None:
    add(started, hooks, refused, killed_at=words)
    found = verdict(asked, hooks)
    assert not found.is_answer
    assert f"'hook {words}' was killed by SIGKILL" in found.error
    program = hooks / "batch"
    before = program.stat()
    add(started, hooks, refused)
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert verdict(asked, hooks) == settings_checks.SettingsVerdict(f"{program} hook check", "no")


def test_a_program_that_cannot_be_asked_is_a_verdict_of_its_own(
    started: programs.Programs, hooks: pathlib.Path
) -> None:
    asked = settings_programs.SettingsPrograms(started, {}, pathlib.Path("/proc/none"))
    add(started, hooks, lambda _: None)
    found = verdict(asked, hooks)
    assert not found.is_answer
    assert "/proc/none" in found.error


def test_a_program_that_hangs_is_ended_when_the_time_of_all_answers_is_up(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    add(started, hooks, lambda _: asyncio.Event().wait())
    with settings_checks.within(0.5):
        found = verdict(asked, hooks)
    assert not found.is_answer
    assert "was stopped because it ran longer than its timeout" in found.error


async def test_a_thread_has_the_loop_ask_which_goes_on_meanwhile(
    started: programs.Programs, hooks: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def check() -> dict[str, object]:
        begun.set()
        await go_on.wait()
        return {"valid": False, "message": "no"}

    add(started, hooks, lambda _: check())
    asked = settings_programs.SettingsPrograms(started, {}, tmp_path / "tmp", settings_programs.in_loop())
    asking = asyncio.create_task(asyncio.to_thread(asked.verdicts, hooks, MODULE, {}))
    # The program ends only if the loop goes on.
    await begun.wait()
    go_on.set()
    (found,) = await asking
    assert found.error == "no"


SCHEMA = """\
type: object
properties:
  replicas: {type: integer, default: 3}
  password: {type: string, x-sensitive: true}
"""
OTHER = "type: object\nadditionalProperties: true\n"


def values(asked: settings_checks.SettingsChecks, hooks: pathlib.Path) -> store.ValuesStore:
    loaded = schemas.load_schemas((SCHEMA, "config-values.yaml"), (OTHER, "values.yaml"))
    own = sources.parse_module_values(MODULE, "someModuleEnabled: true", "values.yaml")
    module = store.ModuleValues(MODULE, own=own, schemas=loaded, hooks=hooks)
    return store.ValuesStore([module], settings_checks=asked)


def config(**section: Any) -> sources.ConfigValues:  # noqa: ANN401 - JSON
    return sources.ConfigValues({names.values_key(MODULE): section}, {}, source="ConfigMap x")


def violations(
    asked: settings_checks.SettingsChecks, hooks: pathlib.Path, said: sources.ConfigValues
) -> list[str]:
    return [str(one) for one in checks.Checks(values(asked, hooks)).edit_violations(said)]


def test_a_message_is_a_violation_of_the_section_with_its_source(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    program = add(
        started, hooks, lambda given: {"valid": False, "message": f"{given['replicas']} is too many"}
    )
    said = f"someModule: 5 is too many ({program} hook check; set in ConfigMap x)"
    assert violations(asked, hooks, config(replicas=5)) == [said]
    defaults = f"someModule: 3 is too many ({program} hook check; set in ConfigMap x)"
    assert violations(asked, hooks, config(password="none")) == [defaults]


def test_what_the_schema_does_not_allow_is_not_asked(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    add(started, hooks, refused)
    assert "must be an integer" in violations(asked, hooks, config(replicas="many"))[0]
    assert asked_times(started) == 0


def test_messages_and_warnings_show_nothing_that_is_sensitive(
    asked: settings_programs.SettingsPrograms, started: programs.Programs, hooks: pathlib.Path
) -> None:
    def check(given: dict[str, Any]) -> dict[str, object]:
        text = f"{given['password']} is in a list"
        return {"valid": False, "message": text, "warnings": [text]}

    program = add(started, hooks, check)
    with settings_checks.within(60) as question:
        (said,) = violations(asked, hooks, config(password="letmein!"))
    assert said.startswith("someModule: *** is in a list")
    assert question.warnings == [f"someModule: *** is in a list ({program} hook check)"]
    assert json.dumps([said, question.warnings]).count("letmein") == 0
