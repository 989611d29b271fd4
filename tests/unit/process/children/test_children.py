"""Running a real child to its end."""

import asyncio
import errno
import os
import pathlib
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from addon_operator.process import start_errors
from addon_operator.process.children import children, groups, launcher
from tests.support import clocks, pids, programs, rows

ENV = {"PATH": os.environ["PATH"]}
PATIENT = 60.0
"""Seconds that a busy machine may take for what has to come."""
TIME_LIMIT = 1000.0
"""Seconds that a test lets pass when it wants to."""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """Write an executable shell script and give its path."""

    def write(text: str, *, head: str = "#!/bin/sh\n", name: str = "script.sh") -> pathlib.Path:
        path = tmp_path / name
        path.write_bytes((head + text).encode())
        path.chmod(0o755)
        return path

    return write


@pytest.fixture(scope="module", autouse=True)
def launcher_pid() -> str:
    """The process that starts them all."""
    # Files that ran before in this process may have left other children.
    asked = programs.programs().run(["sh", "-c", "echo $PPID"], env=ENV, capture_stdout=100)
    return (asyncio.run(asked).stdout or b"").decode().strip()


@pytest.fixture(autouse=True)
def nothing_left_behind(launcher_pid: str) -> Iterator[None]:
    """No test may leave an open descriptor or a zombie."""

    def own_children() -> set[str]:
        return children_of("self") | children_of(launcher_pid)

    pipes, processes = open_pipes(), own_children()
    yield
    assert open_pipes() <= pipes
    give_up = time.monotonic() + PATIENT
    while not own_children() <= processes and time.monotonic() < give_up:
        # What a child has left behind is reaped beside it.
        time.sleep(0.01)
    assert own_children() <= processes


def children_of(process: str) -> set[str]:
    """The processes that it has started and not reaped."""
    tasks = pathlib.Path(f"/proc/{process}/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text().split()}


def open_pipes() -> set[str]:
    links = (os.path.realpath(entry) for entry in pathlib.Path("/proc/self/fd").iterdir())
    return {link for link in links if "pipe:" in link}


async def are_started() -> None:
    """Wait until all children so far were started: a line of a child can come before the launcher's answer.

    Answers come in their order.
    """
    await programs.programs().run(["true"], env=ENV)
    await clocks.settle()


async def first_line(
    script: pathlib.Path, **arguments: float
) -> tuple[asyncio.Task[children.ChildResult], str]:
    """Start a script; the task that runs it, and the first line it wrote."""
    lines = asyncio.Queue[str]()
    run = programs.programs().run([script], env=ENV, on_stdout_line=lines.put_nowait, **arguments)  # type: ignore[arg-type]  # mypy does not match the keywords
    task = asyncio.create_task(run)
    line = await asyncio.wait_for(lines.get(), PATIENT)
    await are_started()
    return task, line


async def timed_out(script: pathlib.Path, **arguments: float) -> tuple[children.ChildResult, str]:
    """Let the time of a script be up once it has written a line: how it ended, and the line."""
    run, line = await first_line(script, timeout=TIME_LIMIT, **arguments)
    await clocks.Clock().advance(TIME_LIMIT)
    return await run, line


async def test_a_child_gets_exactly_the_given_environment_and_directory(
    script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    path = script('echo "$PWD $GREETING ${HOME-none}"')
    result = await programs.programs().run(
        [path], env={**ENV, "GREETING": "hi"}, cwd=tmp_path, capture_stdout=1000
    )
    assert result.stdout == f"{tmp_path} hi none\n".encode()
    assert result.exit_code == 0


async def test_the_standard_input_of_a_child_is_empty() -> None:
    result = await programs.programs().run(["cat"], env=ENV, timeout=PATIENT)
    assert (result.exit_code, result.timed_out) == (0, False)


async def test_the_exit_code_and_the_end_of_stderr_come_back(script: Callable[..., pathlib.Path]) -> None:
    result = await programs.programs().run([script("echo one >&2; echo two >&2; exit 3")], env=ENV)
    assert (result.exit_code, result.stderr_tail) == (3, "one\ntwo")


async def test_a_child_that_dies_of_a_signal_has_its_negative_number(
    script: Callable[..., pathlib.Path],
) -> None:
    result = await programs.programs().run([script("kill -KILL $$")], env=ENV)
    assert result.exit_code == -signal.SIGKILL


async def test_lines_of_both_streams_reach_their_handlers_while_the_child_runs(
    script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    heard = tmp_path / "heard"
    path = script(f"echo out; echo err >&2; while [ ! -e {heard} ]; do sleep 0.01; done; printf last")
    out: list[str] = []
    err: list[str] = []

    def on_out(line: str) -> None:
        out.append(line)
        heard.touch()

    result = await programs.programs().run(
        [path], env=ENV, on_stdout_line=on_out, on_stderr_line=err.append, timeout=PATIENT
    )
    assert (out, err, result.stdout) == (["out", "last"], ["err"], None)


async def test_captured_output_is_cut_at_the_limit_and_says_so(script: Callable[..., pathlib.Path]) -> None:
    result = await programs.programs().run([script("printf 123456789")], env=ENV, capture_stdout=5)
    assert (result.stdout, result.stdout_is_cut) == (b"12345", True)


async def test_many_megabytes_of_output_are_drained_without_being_kept(
    script: Callable[..., pathlib.Path],
) -> None:
    path = script("head -c 20000000 /dev/zero; head -c 1000000 /dev/zero >&2")
    result = await programs.programs().run([path], env=ENV, capture_stdout=10)
    assert (result.exit_code, result.stdout, result.stdout_is_cut) == (0, bytes(10), True)


async def test_cpu_time_is_that_of_the_child_itself() -> None:
    burn = "import time\nwhile time.process_time() < 0.06: pass"
    busy, idle = await asyncio.gather(
        programs.programs().run([sys.executable, "-I", "-S", "-c", burn], env=ENV),
        programs.programs().run(["sleep", "0.06"], env=ENV),
    )
    assert busy.user_cpu_seconds + busy.system_cpu_seconds >= 0.06
    assert idle.user_cpu_seconds + idle.system_cpu_seconds < 0.05
    assert idle.wall_seconds >= 0.06


async def test_cpu_time_includes_what_the_child_waited_for(script: Callable[..., pathlib.Path]) -> None:
    burn = "import time\nwhile time.process_time() < 0.05: pass"
    result = await programs.programs().run([script(f"{sys.executable} -I -S -c '{burn}'; exit 0")], env=ENV)
    assert result.user_cpu_seconds + result.system_cpu_seconds >= 0.05


async def test_a_timeout_ends_the_whole_group_with_sigterm(
    script: Callable[..., pathlib.Path],
) -> None:
    result, pid = await timed_out(script("sleep 100 & echo $!; wait"))
    assert (result.timed_out, result.exit_code) == (True, -signal.SIGTERM)
    assert pids.ends_within(int(pid), PATIENT)


async def test_a_child_may_use_the_grace_to_clean_up(script: Callable[..., pathlib.Path]) -> None:
    # dash may miss a signal that comes before it waits.
    path = script("trap 'echo cleaned; exit 7' TERM; echo here; sleep 100 & wait", head="#!/bin/bash\n")
    result, _ = await timed_out(path, capture_stdout=100)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 7, b"here\ncleaned\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("trap '' TERM; echo $$; while :; do sleep 0.05; done", id="the child itself"),
        pytest.param(
            "sh -c \"trap '' TERM; echo \\$\\$; while :; do sleep 0.05; done\" & wait",
            id="its own child",
        ),
    ],
)
async def test_who_ignores_sigterm_is_killed_after_the_grace(
    script: Callable[..., pathlib.Path], text: str
) -> None:
    result, pid = await timed_out(script(text), kill_grace=0.05)
    assert result.timed_out
    assert result.exit_code in {-signal.SIGKILL, -signal.SIGTERM}
    assert pids.ends_within(int(pid), PATIENT)


async def test_a_stopped_child_is_ended_too(script: Callable[..., pathlib.Path]) -> None:
    result = await programs.programs().run([script("kill -STOP $$; sleep 100")], env=ENV, timeout=0.1)
    assert (result.timed_out, result.exit_code) == (True, -signal.SIGTERM)


async def test_a_process_left_behind_with_the_pipe_open_does_not_hold_up_the_result(
    script: Callable[..., pathlib.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "DRAIN_GRACE", 0.05)
    path = script(f"sleep 100 & echo $! > {tmp_path}/pid; echo done")
    result = await programs.programs().run([path], env=ENV, capture_stdout=100)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (result.exit_code, result.stdout) == (0, b"done\n")


async def test_a_child_that_may_leave_nothing_takes_its_group_with_it(
    script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    path = script(f"trap '' TERM; sleep 100 & echo $! > {tmp_path}/pid; echo done")
    with launcher.Launcher() as starter:
        of_a_command = children.Children(starter, leaves_nothing=True).run(
            [path], env=ENV, capture_stdout=100
        )
        told = programs.programs().run([path], env=ENV, capture_stdout=100, leaves_nothing=True)
        for run in (told, of_a_command):
            result = await run
            assert (result.exit_code, result.stdout) == (0, b"done\n")
            assert pids.ends_within(int((tmp_path / "pid").read_text()), PATIENT)


async def test_cancelling_ends_the_group_before_the_cancellation_goes_on(
    script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    # dash may miss a signal that comes before it waits.
    text = f"trap 'echo bye > {tmp_path}/bye; exit' TERM; sleep 100 & echo $!; wait"
    path = script(text, head="#!/bin/bash\n")
    task, left = await first_line(path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "bye").read_text() == "bye\n"
    assert pids.ends_within(int(left), PATIENT)


async def test_cancelling_twice_kills_without_waiting_for_the_grace(
    script: Callable[..., pathlib.Path],
) -> None:
    path = script("trap '' TERM; echo $$; while :; do sleep 0.05; done")
    task, pid = await first_line(path, kill_grace=1000)
    task.cancel()
    await clocks.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENT)
    assert pids.ends_within(int(pid), PATIENT)


def test_a_loop_that_is_torn_down_leaves_no_child(
    script: Callable[..., pathlib.Path],
) -> None:
    async def begin() -> str:
        run, pid = await first_line(script("echo $$; sleep 100"))
        assert not run.done()
        return pid

    assert pids.ends_within(int(asyncio.run(begin())), PATIENT)


async def test_many_children_at_once_each_get_their_own_result(script: Callable[..., pathlib.Path]) -> None:
    path = script("echo $1; exit $1")
    results = await asyncio.gather(
        *(programs.programs().run([path, str(code)], env=ENV, capture_stdout=10) for code in range(20))
    )
    assert [(result.exit_code, result.stdout) for result in results] == [
        (code, f"{code}\n".encode()) for code in range(20)
    ]


async def test_a_script_without_interpreter_line_is_explained(script: Callable[..., pathlib.Path]) -> None:
    with pytest.raises(children.ChildStartError, match=r"script\.sh: .*'#!/usr/bin/env bash'"):
        await programs.programs().run([script("echo x", head="")], env=ENV)


async def test_a_missing_interpreter_is_named(script: Callable[..., pathlib.Path]) -> None:
    with pytest.raises(children.ChildStartError, match="interpreter /no/such/shell, which does not exist"):
        await programs.programs().run([script("", head="#!/no/such/shell -e\n")], env=ENV)


async def test_windows_line_ends_are_recognised(script: Callable[..., pathlib.Path]) -> None:
    with pytest.raises(children.ChildStartError, match="CR LF"):
        await programs.programs().run([script("", head="#!/bin/bash\r\n")], env=ENV)


async def test_a_file_that_is_not_executable_is_named_with_the_remedy(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "hook.sh"
    path.write_text("#!/bin/sh\n")
    path.chmod(stat.S_IRUSR)
    with pytest.raises(children.ChildStartError, match=f"chmod [+]x {path}"):
        await programs.programs().run([path], env=ENV)


async def test_a_mount_with_noexec_is_not_mended_by_the_mode(
    script: Callable[..., pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script("")
    monkeypatch.setattr(start_errors, "_mount_flags", lambda _: os.ST_NOEXEC)
    refused = start_errors.explain(PermissionError(errno.EACCES, "Permission denied"), str(path), None)
    assert "mounted with noexec" in str(refused)
    assert "chmod" not in str(refused)


def test_a_mode_that_cannot_be_changed_here_is_mended_where_the_file_comes_from(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a hook.sh"
    assert start_errors.not_executable(path) == f"is not executable; run 'chmod +x '{path}''"
    monkeypatch.setattr(start_errors, "_mount_flags", lambda _: os.ST_RDONLY)
    assert "defaultMode: 0555" in start_errors.not_executable(path)


@rows.each(
    ("program", "reason"),
    [
        ("/no/such/file", "no such file"),
        ("no-such-program-anywhere", "no such program in PATH"),
        ("/", "it is a directory"),
        ("with\0zero", "null byte"),
    ],
)
async def test_a_program_that_cannot_be_started_gives_one_sentence(program: str, reason: str) -> None:
    with pytest.raises(children.ChildStartError, match=reason) as caught:
        await programs.programs().run([program], env=ENV)
    assert caught.value.program == program
    assert "\n" not in str(caught.value)


async def test_a_missing_working_directory_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(children.ChildStartError, match=f"working directory {tmp_path}/gone"):
        await programs.programs().run(["true"], env=ENV, cwd=tmp_path / "gone")


async def test_an_environment_beyond_the_kernels_limit_is_explained() -> None:
    with pytest.raises(children.ChildStartError, match="larger than the kernel takes"):
        await programs.programs().run(["true"], env={**ENV, "BIG": "x" * 5_000_000})


def test_a_group_without_living_member_is_recognised() -> None:
    assert groups.living_member(os.getpgrp()) is not None
    assert groups.living_member(2**22 + 1) is None


async def test_a_child_takes_no_more_than_its_bounds(tmp_path: pathlib.Path) -> None:
    program = """
import sys
with open(sys.argv[1], "wb", buffering=0) as file:
    for _ in range(3):
        try:
            file.write(bytes(1 << 20))
        except OSError as error:
            print(error.strerror)
try:
    bytearray(160 << 20)
except MemoryError:
    print("no memory")
"""
    argv = [sys.executable, "-I", "-c", program, str(tmp_path / "written")]
    bounds = children.ChildBounds(file_bytes=1 << 20, memory_bytes=128 << 20)
    done = await programs.programs().run(argv, env=ENV, capture_stdout=1000, bounds=bounds)
    assert done.stdout == b"File too large\nFile too large\nno memory\n", done
    assert (tmp_path / "written").stat().st_size == 1 << 20
    free = await programs.programs().run(argv, env=ENV, capture_stdout=1000)
    assert (free.exit_code, free.stdout) == (0, b"")
