"""Children that are started through the launcher: as others, but with their own peak memory."""

import asyncio
import contextlib
import fcntl
import os
import pathlib
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest
from typing_extensions import override

from addon_operator.kernel import clock, fencing
from addon_operator.process.children import children, launcher
from tests.support import clocks, pids

ENV = {"PATH": os.environ["PATH"]}
LEADING = fencing.Fence()
"""That of a replica whose programs the limit ends."""
PATIENT = 60.0
"""Seconds that a busy machine may take for what has to come."""
TIME_LIMIT = 1000.0
"""Seconds that a test lets pass when it wants to."""
Lose = Callable[[launcher.Launcher, int], Awaitable[None]]
HIGH = 1500
"""A number of a descriptor that select does not take."""


@pytest.fixture(scope="module", autouse=True)
def _no_signal_is_ignored() -> Iterator[None]:
    """Have the signals of the terminal as in a terminal: a job in the background of a script ignores them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)}
    ignored = [number for number, handler in before.items() if handler is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, before[number])


@pytest.fixture(scope="module")
def spawner() -> Iterator[launcher.Launcher]:
    """For all tests that leave it as it is."""
    with launcher.Launcher() as started:
        yield started


@pytest.fixture
def own_spawner() -> Iterator[launcher.Launcher]:
    with launcher.Launcher() as started:
        yield started


@pytest.fixture
def script(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    def write(text: str, *, head: str = "#!/bin/sh\n") -> pathlib.Path:
        path = tmp_path / "script.sh"
        path.write_text(head + text)
        path.chmod(0o755)
        return path

    return write


def launcher_of(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1])


def children_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()


async def first_line(
    spawner: launcher.Launcher, path: pathlib.Path
) -> tuple[asyncio.Task[children.ChildResult], int]:
    line = asyncio.get_running_loop().create_future()
    first = children.Children(spawner, LEADING).run(
        [path], env=ENV, timeout=TIME_LIMIT, on_stdout_line=line.set_result
    )
    run = asyncio.create_task(first)
    pid = int(await asyncio.wait_for(line, PATIENT))
    # Answers come in their order: after this one, it is known that the first child was started.
    await children.Children(spawner).run(["true"], env=ENV)
    await clocks.settle()
    return run, pid


async def test_a_child_has_its_own_peak_memory_and_not_that_of_this_process(
    spawner: launcher.Launcher,
) -> None:
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    small = await children.Children(spawner).run(["true"], env=ENV)
    grow = "x = bytearray(b'x') * (26 * 1024 * 1024)"
    large = await children.Children(spawner).run([sys.executable, "-I", "-S", "-c", grow], env=ENV)
    assert small.max_rss_bytes < 24 * 1024 * 1024 < 26 * 1024 * 1024 < large.max_rss_bytes < ours


async def test_environment_directory_streams_and_exit_code_are_the_childs_own(
    spawner: launcher.Launcher, script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    path = script('echo "$PWD $GREETING ${HOME-none} $(cat | wc -c)"; echo oops >&2; exit 3')
    result = await children.Children(spawner).run(
        [path], env={**ENV, "GREETING": "\udcff ü"}, cwd=tmp_path, capture_stdout=1000
    )
    assert result.stdout == f"{tmp_path} ".encode() + b"\xff \xc3\xbc none 0\n"
    assert (result.stderr_tail, result.exit_code) == ("oops", 3)


async def test_a_directory_that_is_not_given_or_relative_starts_from_ours(
    spawner: launcher.Launcher, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await children.Children(spawner).run(["true"], env=ENV)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    for cwd, place in ((None, tmp_path), (pathlib.Path("below"), tmp_path / "below")):
        result = await children.Children(spawner).run(["pwd"], env=ENV, cwd=cwd, capture_stdout=1000)
        assert result.stdout == f"{place}\n".encode()


async def test_a_program_without_a_directory_starts_although_ours_is_gone(
    spawner: launcher.Launcher, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = await children.Children(spawner).run(["pwd"], env=ENV, capture_stdout=1000)
    assert (result.stdout, result.exit_code) == (b"/\n", 0)


async def test_signals_have_their_default_meaning_in_a_child(spawner: launcher.Launcher) -> None:
    script = "grep -E 'Sig(Ign|Blk)' /proc/self/status"
    result = await children.Children(spawner).run(["sh", "-c", script], env=ENV, capture_stdout=1000)
    masks = [int(line.split()[1], 16) for line in (result.stdout or b"").splitlines()]
    # Signals 32 and 33 belong to the C library, whose posix_spawn leaves them ignored.
    assert [mask & ~0x180000000 for mask in masks] == [0, 0]


async def test_a_child_holds_no_descriptor_but_its_streams(spawner: launcher.Launcher) -> None:
    listing = "for fd in /proc/$$/fd/*; do [ -e $fd ] && echo ${fd##*/}; done"
    result = await children.Children(spawner).run(["sh", "-c", listing], env=ENV, capture_stdout=1000)
    assert (result.stdout or b"").split() == [b"0", b"1", b"2"]


async def test_a_program_is_looked_for_in_the_path_of_its_own_environment(
    spawner: launcher.Launcher, script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    path = script("exit 5", head="#!/bin/bash\n")
    for places in (f"/nowhere:{tmp_path}", "/nowhere:"):
        found = await children.Children(spawner).run([path.name], env={"PATH": places}, cwd=tmp_path)
        assert found.exit_code == 5


async def test_an_environment_larger_than_a_message_arrives(spawner: launcher.Launcher) -> None:
    environment = {**ENV, **{f"BIG_{number}": "x" * 100_000 for number in range(5)}}
    result = await children.Children(spawner).run(
        ["sh", "-c", "echo ${#BIG_4}"], env=environment, capture_stdout=100
    )
    assert result.stdout == b"100000\n"


@pytest.fixture(params=["killed", pytest.param("late", marks=pytest.mark.slow)])
def lose(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Lose:
    """Lose the launcher of a child: it is killed, or stopped until it counts as hanging."""

    async def lose(spawner: launcher.Launcher, pid: int) -> None:
        lost = launcher_of(pid)
        if request.param == "killed":
            os.kill(lost, signal.SIGKILL)
        else:
            os.kill(lost, signal.SIGSTOP)
            with monkeypatch.context() as impatient:
                impatient.setattr(launcher, "_ANSWER_TIMEOUT", 0.01)
                run = asyncio.create_task(children.Children(spawner).run(["true"], env=ENV))
                await asyncio.sleep(0)
            assert (await run).exit_code == 0
        assert await asyncio.to_thread(pids.ends_within, lost, PATIENT)

    return lose


async def test_a_child_whose_launcher_is_lost_goes_on_and_its_exit_is_its_own(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path], tmp_path: pathlib.Path, lose: Lose
) -> None:
    path = script(f"echo $$\nuntil test -e {tmp_path}/end; do sleep 0.01; done\nexit 3")
    run, pid = await first_line(own_spawner, path)
    await lose(own_spawner, pid)
    assert (await children.Children(own_spawner).run(["sh", "-c", "exit 4"], env=ENV)).exit_code == 4
    (tmp_path / "end").touch()
    result = await asyncio.wait_for(run, PATIENT)
    assert result.exit_code == 3
    assert result.max_rss_bytes > 0


async def test_a_child_whose_launcher_is_lost_ends_at_the_limit_before_another_replica_leads(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path], lose: Lose
) -> None:
    run, pid = await first_line(
        own_spawner, script("trap 'exit 7' TERM\necho $$\nwhile :; do sleep 0.01; done")
    )
    own_spawner.limit(boottime_in(600), boottime_in(600))
    await lose(own_spawner, pid)
    own_spawner.limit(boottime_in(0.02), boottime_in(600))
    assert (await asyncio.wait_for(run, PATIENT)).exit_code == 7


async def test_a_child_whose_launcher_is_lost_is_killed_with_what_it_started_at_the_end_of_the_limit(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path], lose: Lose
) -> None:
    path = script("trap '' TERM\nsh -c 'echo $$; exec sleep 600' &\nsleep 600")
    run, left = await first_line(own_spawner, path)
    await lose(own_spawner, launcher_of(left))
    own_spawner.limit(boottime_in(0.02), boottime_in(0.05))
    assert (await asyncio.wait_for(run, PATIENT)).exit_code == -signal.SIGKILL
    assert await asyncio.to_thread(pids.ends_within, left, PATIENT)


async def test_a_run_whose_launcher_is_lost_leaves_nothing_when_it_is_cancelled(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path], lose: Lose
) -> None:
    path = script("sh -c 'echo $$; exec sleep 600' &\nsleep 600")
    run, left = await first_line(own_spawner, path)
    await lose(own_spawner, launcher_of(left))
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await asyncio.to_thread(pids.ends_within, left, PATIENT)


async def test_a_child_whose_launcher_is_lost_ends_when_its_successor_is_closed(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path], lose: Lose
) -> None:
    run, pid = await first_line(own_spawner, script("echo $$\nexec sleep 600"))
    await lose(own_spawner, pid)
    await children.Children(own_spawner).run(["true"], env=ENV)
    own_spawner.close()
    assert (await asyncio.wait_for(run, PATIENT)).exit_code == -signal.SIGTERM


async def stopped(spawner: launcher.Launcher) -> int:
    """Stop the launcher, as a machine does that gives it no time; its process id."""
    found = await children.Children(spawner).run(["sh", "-c", "echo $PPID"], env=ENV, capture_stdout=20)
    assert found.stdout is not None
    pid = int(found.stdout)
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_the_loop_goes_on_while_the_launcher_has_no_time(own_spawner: launcher.Launcher) -> None:
    pid = await stopped(own_spawner)
    programs = children.Children(own_spawner)
    runs = [asyncio.create_task(programs.run(["sh", "-c", f"exit {n}"], env=ENV)) for n in range(3)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(run.done() for run in runs)
    os.kill(pid, signal.SIGCONT)
    assert [(await run).exit_code for run in runs] == [0, 1, 2]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_run_that_is_cancelled_while_it_is_started_ends_its_child(
    own_spawner: launcher.Launcher, times: int
) -> None:
    lines = list[str]()
    pid = await stopped(own_spawner)
    script = "trap 'exit' TERM; echo $$; while :; do sleep 0.01; done"
    run = asyncio.create_task(
        children.Children(own_spawner).run(
            ["sh", "-c", script], env=ENV, on_stdout_line=lines.append, kill_grace=0.05
        )
    )
    for _ in range(times):
        await asyncio.sleep(0)
        run.cancel()
    await asyncio.sleep(0)
    assert not run.done()
    os.kill(pid, signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await run
    assert children_of(pid) == "", "it has ended, and was reaped"


async def test_a_time_limit_around_a_run_that_passes_while_it_is_started_is_one(
    own_spawner: launcher.Launcher,
) -> None:
    pid = await stopped(own_spawner)
    asyncio.get_running_loop().call_later(0.05, os.kill, pid, signal.SIGCONT)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await children.Children(own_spawner).run(["sleep", "100"], env=ENV)


async def test_a_launcher_that_is_killed_before_it_has_started_a_program_costs_nothing(
    own_spawner: launcher.Launcher,
) -> None:
    pid = await stopped(own_spawner)
    run = asyncio.create_task(children.Children(own_spawner).run(["sh", "-c", "exit 4"], env=ENV))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert (await run).exit_code == 4


async def test_a_launcher_that_does_not_answer_is_replaced(
    own_spawner: launcher.Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = await stopped(own_spawner)
    with monkeypatch.context() as impatient:
        impatient.setattr(launcher, "_ANSWER_TIMEOUT", 0.01)
        run = asyncio.create_task(children.Children(own_spawner).run(["sh", "-c", "exit 4"], env=ENV))
        await asyncio.sleep(0)
    assert (await run).exit_code == 4
    assert pids.ends_within(pid, PATIENT)


async def test_a_program_is_not_started_by_a_launcher_that_is_closed_meanwhile(
    own_spawner: launcher.Launcher,
) -> None:
    pid = await stopped(own_spawner)
    run = asyncio.create_task(children.Children(own_spawner).run(["true"], env=ENV))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGCONT)
    own_spawner.close()
    with pytest.raises(children.ChildStartError, match="canceled"):
        await run


async def test_the_launcher_ends_its_children_when_it_is_closed(
    script: Callable[..., pathlib.Path],
) -> None:
    spawner = launcher.Launcher()
    run, pid = await first_line(spawner, script("echo $$; sleep 100"))
    spawner.close()
    await run
    assert pids.ends_within(pid, PATIENT)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child ends without needing a lock
def test_children_do_not_outlive_an_operator_that_is_killed(tmp_path: pathlib.Path) -> None:
    written = tmp_path / "pid"

    def die(line: str) -> None:
        written.write_text(line)
        os.kill(os.getpid(), signal.SIGKILL)

    run = children.Children(launcher.Launcher()).run(
        ["sh", "-c", "echo $$; sleep 100"], env=ENV, on_stdout_line=die
    )
    if (operator := os.fork()) == 0:
        try:
            asyncio.run(run)
        finally:
            os._exit(1)
    run.close()
    assert os.waitstatus_to_exitcode(os.waitpid(operator, 0)[1]) == -signal.SIGKILL
    assert pids.ends_within(int(written.read_text()), PATIENT)


def boottime_in(seconds: float) -> float:
    return clock.boottime() + seconds


async def test_children_run_until_the_limit_and_get_sigterm_then(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path]
) -> None:
    path = script("trap 'exit 7' TERM\necho $$\nwhile :; do sleep 0.01; done")
    task, _ = await first_line(own_spawner, path)
    own_spawner.limit(boottime_in(0.05), boottime_in(600))
    result = await asyncio.wait_for(task, PATIENT)
    assert result.exit_code == 7


async def test_children_that_ignore_sigterm_are_killed_at_the_end_of_the_limit(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path]
) -> None:
    task, _ = await first_line(own_spawner, script("trap '' TERM\necho $$\nsleep 600"))
    own_spawner.limit(boottime_in(0.02), boottime_in(0.05))
    result = await asyncio.wait_for(task, PATIENT)
    assert result.exit_code == -signal.SIGKILL


async def test_a_limit_that_is_moved_on_ends_nothing(script: Callable[..., pathlib.Path]) -> None:
    codes = list[int]()
    for seconds in (0.2, 2, 20):
        # On a busy machine, the limit may have passed before it is moved on.
        with launcher.Launcher() as spawner:
            task, _ = await first_line(spawner, script(f"echo $$\nsleep {1.5 * seconds}\nexit 3"))
            spawner.limit(boottime_in(seconds), boottime_in(seconds))
            spawner.limit(boottime_in(600), boottime_in(600))
            codes.append((await asyncio.wait_for(task, PATIENT)).exit_code)
        if codes[-1] == 3:
            break
    assert codes[-1] == 3


async def test_no_child_is_started_once_the_limit_has_passed_and_it_cannot_be_moved_any_more(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path]
) -> None:
    path, led = script("exit 0"), children.Children(own_spawner, LEADING)
    assert (await led.run([path], env=ENV)).exit_code == 0
    own_spawner.limit(boottime_in(0), boottime_in(0))
    own_spawner.limit(boottime_in(600), boottime_in(600))
    with pytest.raises(children.ChildStartError, match="canceled"):
        await led.run([path], env=ENV)


async def test_what_any_replica_may_run_goes_on_past_the_limit_and_is_started_after_it(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    path = script(f"echo $$\nuntil test -e {tmp_path}/end; do sleep 0.01; done\nexit 3")
    led, _ = await first_line(own_spawner, path)
    answering = children.Children(own_spawner, LEADING).unfenced
    line = asyncio.get_running_loop().create_future()
    run = asyncio.create_task(answering.run([path], env=ENV, on_stdout_line=line.set_result))
    await asyncio.wait_for(line, PATIENT)
    own_spawner.limit(boottime_in(0), boottime_in(0))
    ended = await asyncio.wait_for(led, PATIENT)
    assert ended.exit_code == -signal.SIGKILL
    assert (await answering.run(["sh", "-c", "exit 4"], env=ENV)).exit_code == 4
    (tmp_path / "end").touch()
    assert (await asyncio.wait_for(run, PATIENT)).exit_code == 3


async def test_a_limit_holds_for_a_launcher_that_is_started_later(
    own_spawner: launcher.Launcher, script: Callable[..., pathlib.Path]
) -> None:
    own_spawner.limit(boottime_in(0), boottime_in(0))
    with pytest.raises(children.ChildStartError):
        await children.Children(own_spawner, LEADING).run([script("exit 0")], env=ENV)


class Refusing(fencing.Fence):
    @override
    def check(self) -> None:
        raise fencing.FencedError("not now")

    @override
    def remaining(self) -> float:
        return 0.0


async def test_a_fence_is_asked_before_each_start(
    spawner: launcher.Launcher, script: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    path = script(f"touch {tmp_path}/started")
    with pytest.raises(fencing.FencedError, match="not now"):
        await children.Children(spawner, Refusing()).run([path], env=ENV)
    assert not (tmp_path / "started").exists()
    assert (await children.Children(spawner, fencing.OPEN).run([path], env=ENV)).exit_code == 0


def test_a_full_socket_is_waited_for_whatever_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard <= HIGH:
        pytest.skip(f"no descriptor may have the number {HIGH} here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, HIGH + 1), hard))
    monkeypatch.setattr(launcher, "_ANSWER_TIMEOUT", 0.01)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with ours, theirs, socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD, HIGH)) as high:
            launcher._wait_for_room(high)
            high.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    high.send(b"x" * 4096)
            with pytest.raises(TimeoutError):
                launcher._wait_for_room(high)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
