"""Programs that end by themselves."""

import os
import pathlib
import sys

import pytest

from addon_operator.process import commands
from tests.support import rows


def script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_both_outputs_and_the_exit_code_are_kept() -> None:
    done = commands.run(["sh", "-c", "echo out; echo err >&2; exit 3"], check=False)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert done.argv == ("sh", "-c", "echo out; echo err >&2; exit 3")


def test_a_failure_says_which_program_and_why() -> None:
    with pytest.raises(commands.CommandError) as caught:
        commands.run(["sh", "-c", "echo out; echo no such thing >&2; exit 3"])
    assert str(caught.value).endswith("ended with exit code 3: no such thing")
    assert str(caught.value).startswith("sh -c ")
    assert (
        caught.value.completed.exit_code,
        caught.value.completed.stdout,
        caught.value.completed.stderr,
    ) == (
        3,
        "out\n",
        "no such thing\n",
    )


def test_a_failure_without_messages_quotes_standard_output() -> None:
    with pytest.raises(commands.CommandError, match=r"ended with exit code 1: said here$"):
        commands.run(["sh", "-c", "echo said here; exit 1"])


def test_a_failure_without_output_is_reported_by_its_exit_code() -> None:
    with pytest.raises(commands.CommandError, match=r"ended with exit code 9$"):
        commands.run(["sh", "-c", "exit 9"])


def test_a_program_that_a_signal_ended_is_reported_as_such() -> None:
    with pytest.raises(commands.CommandError, match=r"killed by signal 15$"):
        commands.run(["sh", "-c", "kill -TERM $$"])


@rows.each(
    ("argv", "reason"),
    [
        pytest.param(["/nowhere/helm"], "No such file or directory", id="missing"),
        pytest.param(["/"], "Permission denied", id="not executable"),
    ],
)
def test_a_program_that_cannot_be_run_is_reported(argv: list[str], reason: str) -> None:
    with pytest.raises(commands.CommandError, match=f"cannot be run: {reason}") as caught:
        commands.run(argv)
    assert caught.value.completed.exit_code == -1
    with pytest.raises(commands.CommandError, match=f"cannot be run: {reason}"):
        commands.stream(argv, lambda _: None)
    with pytest.raises(commands.CommandError, match=f"cannot be run: {reason}"):
        commands.replace(argv, {})


def test_a_script_without_an_interpreter_is_reported_as_such(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit 0\n")
    script.chmod(0o755)
    with pytest.raises(commands.CommandError, match="cannot be run: it has no #! line; begin a script"):
        commands.run([str(script)])
    script.write_text("\ufeff#!/bin/sh\nexit 0\n")
    with pytest.raises(commands.CommandError, match="a byte order mark stands before its first line; save"):
        commands.run([str(script)])


def test_a_program_that_takes_too_long_is_ended() -> None:
    with pytest.raises(commands.CommandError, match=r"did not end within 0\.05 s"):
        commands.run(["sleep", "60"], timeout=0.05)


def test_a_program_gets_input_environment_and_directory(tmp_path: pathlib.Path) -> None:
    argv = ["sh", "-c", 'cat; echo "$WORD"; pwd']
    env = {"WORD": "hello", "PATH": os.environ["PATH"]}
    done = commands.run(argv, stdin="in\n", env=env, cwd=tmp_path)
    assert done.stdout == f"in\nhello\n{tmp_path}\n"


def test_a_program_without_input_reads_nothing() -> None:
    assert commands.run(["cat"], timeout=60).stdout == ""


def test_bytes_that_are_no_text_do_not_break_the_result() -> None:
    assert commands.run(["printf", r"a\377b"]).stdout == "a\N{REPLACEMENT CHARACTER}b"


def test_a_long_command_is_shown_shortened() -> None:
    with pytest.raises(commands.CommandError) as caught:
        commands.run(["sh", "-c", "exit 1", "x" * 5000])
    assert len(str(caught.value)) < 250


def test_lines_of_both_outputs_arrive_as_they_are_written() -> None:
    lines: list[str] = []
    done = commands.stream(["sh", "-c", "echo one; echo two >&2; printf three"], lines.append)
    assert lines == ["one", "two", "three"]
    assert done.stdout == "one\ntwo\nthree"


def test_a_streamed_program_that_fails_keeps_what_it_wrote() -> None:
    with pytest.raises(commands.CommandError, match=r"exit code 2: bad$") as caught:
        commands.stream(["sh", "-c", "echo good; echo bad >&2; exit 2"], lambda _: None)
    assert caught.value.completed.stdout == "good\nbad\n"


def test_a_streamed_program_does_not_outlive_an_error_of_its_reader() -> None:
    pids: list[int] = []

    def stop(line: str) -> None:
        pids.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commands.stream(["sh", "-c", "echo $$; exec sleep 60"], stop)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_replacing_a_process_keeps_its_pid() -> None:
    text = "from addon_operator.process import commands; import os; print(os.getpid(), flush=True); "
    text += "commands.replace(['/bin/sh', '-c', 'echo $$ $WORD'], {'WORD': 'new'})"
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    before, after = commands.run(script(text), env=env).stdout.splitlines()
    assert after == f"{before} new"
