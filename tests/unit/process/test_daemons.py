"""Programs that outlive the command that started them."""

import os
import pathlib
import secrets
from collections.abc import Iterator

import pytest

from addon_operator.process import daemons

BOOT = "2f6e0d2c-0000-4000-8000-1d9b34a7b001"
MARK = "DAEMON_OF_A_TEST"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def write_process(
    proc: pathlib.Path,
    pid: int,
    *,
    started: int = 100,
    status: str = "S",
    name: str = "etcd",
    threads: int = 1,
    env: bytes = b"",
) -> None:
    directory = proc / str(pid)
    directory.mkdir(parents=True, exist_ok=True)
    fields = [status, *["0"] * 16, str(threads), "0", str(started), *["0"] * 20]
    (directory / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
    (directory / "environ").write_bytes(env)


@pytest.fixture
def proc(tmp_path: pathlib.Path) -> pathlib.Path:
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text(BOOT + "\n")
    return tmp_path / "proc"


@pytest.fixture
def table(proc: pathlib.Path) -> daemons.ProcessTable:
    return daemons.ProcessTable(proc)


@pytest.fixture
def mark() -> Iterator[str]:
    value = secrets.token_hex(8)
    yield value
    machine = daemons.ProcessTable()
    machine.kill(machine.marked(MARK, value))


def test_a_process_is_known_by_pid_start_time_and_boot(
    proc: pathlib.Path, table: daemons.ProcessTable
) -> None:
    write_process(proc, 7, started=4711)
    assert table.identify(7) == daemons.ProcessIdentity(7, 4711, BOOT)


@pytest.mark.parametrize("name", ["a b", "(sd-pam)", "x) S 1 2", "tmux: server"])
def test_names_with_spaces_and_parentheses_do_not_shift_the_fields(
    proc: pathlib.Path, table: daemons.ProcessTable, name: str
) -> None:
    write_process(proc, 7, started=4711, name=name)
    assert table.identify(7) == daemons.ProcessIdentity(7, 4711, BOOT)


def test_nobody_has_a_free_pid(table: daemons.ProcessTable) -> None:
    assert table.identify(7) is None


def test_a_process_that_only_waits_to_be_reaped_has_ended(
    proc: pathlib.Path, table: daemons.ProcessTable
) -> None:
    write_process(proc, 7, status="Z")
    assert table.identify(7) is None


def test_a_process_whose_threads_still_run_has_not_ended(
    proc: pathlib.Path, table: daemons.ProcessTable
) -> None:
    write_process(proc, 7, status="Z", threads=3)
    assert table.is_alive(daemons.ProcessIdentity(7, 100, BOOT))


def test_a_pid_that_is_used_again_is_another_process(proc: pathlib.Path, table: daemons.ProcessTable) -> None:
    write_process(proc, 7, started=100)
    known = daemons.ProcessIdentity(7, 100, BOOT)
    assert table.is_alive(known)
    write_process(proc, 7, started=101)
    assert not table.is_alive(known)


def test_the_same_numbers_after_a_reboot_are_another_process(
    proc: pathlib.Path, table: daemons.ProcessTable
) -> None:
    write_process(proc, 7, started=100)
    assert not table.is_alive(daemons.ProcessIdentity(7, 100, "another-boot"))


def test_processes_are_found_by_their_whole_mark(proc: pathlib.Path, table: daemons.ProcessTable) -> None:
    write_process(proc, 1, env=b"PATH=/bin\0CLUSTER=/a\0")
    write_process(proc, 2, env=b"CLUSTER=/a/b\0")
    write_process(proc, 3, env=b"MY_CLUSTER=/a\0")
    write_process(proc, 4, env=b"CLUSTER=/a\0", status="Z")
    assert [process.pid for process in table.marked("CLUSTER", "/a")] == [1]


def test_a_process_that_is_becoming_another_program_is_found_all_the_same(proc: pathlib.Path) -> None:
    table = daemons.ProcessTable(proc, sleep=lambda _: write_process(proc, 1, env=b"CLUSTER=/a\0"))
    write_process(proc, 1)
    assert [process.pid for process in table.marked("CLUSTER", "/a")] == [1]


def test_killing_what_has_ended_touches_nobody(proc: pathlib.Path, table: daemons.ProcessTable) -> None:
    own = os.getpid()
    write_process(proc, own, started=2)
    table.kill([daemons.ProcessIdentity(own, 1, BOOT)])


def test_a_process_that_does_not_go_away_is_reported(
    proc: pathlib.Path, mark: str, tmp_path: pathlib.Path
) -> None:
    real = start(["sleep", "60"], tmp_path, mark)
    write_process(proc, real.pid)
    clock = Clock()
    stuck = daemons.ProcessTable(proc, clock, clock.sleep)
    with pytest.raises(daemons.DaemonError, match=f"process {real.pid} does not end"):
        stuck.kill([daemons.ProcessIdentity(real.pid, 100, BOOT)])
    assert clock.now == pytest.approx(10, abs=0.1)


def start(argv: list[str], directory: pathlib.Path, mark: str) -> daemons.ProcessIdentity:
    env = {MARK: mark, "PATH": os.environ["PATH"]}
    program = ["/bin/sh", "-c", f"exec {' '.join(argv)}"]
    return daemons.start(program, log=directory / "log", env=env, table=daemons.ProcessTable())


def test_a_daemon_has_a_session_of_its_own(tmp_path: pathlib.Path, mark: str) -> None:
    process = start(["sleep", "60"], tmp_path, mark)
    assert os.getsid(process.pid) == process.pid != os.getsid(0)


def test_a_started_daemon_is_found_by_its_mark_and_killed(tmp_path: pathlib.Path, mark: str) -> None:
    machine = daemons.ProcessTable()
    process = start(["sleep", "60"], tmp_path, mark)
    assert machine.marked(MARK, mark) == [process]
    machine.kill([process])
    assert not machine.is_alive(process)
    assert machine.marked(MARK, mark) == []


def test_a_daemon_writes_to_a_log_that_only_the_owner_may_read(tmp_path: pathlib.Path, mark: str) -> None:
    log = tmp_path / "log"
    process = daemons.start(
        ["/bin/sh", "-c", "echo out; echo err >&2; exec sleep 60 <&0"],
        log=log,
        env={MARK: mark, "PATH": os.environ["PATH"]},
        table=daemons.ProcessTable(),
    )
    while daemons.log_tail(log) != ["out", "err"]:
        assert daemons.ProcessTable().is_alive(process)
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_daemon_that_ends_at_once_is_known_all_the_same(tmp_path: pathlib.Path, mark: str) -> None:
    machine = daemons.ProcessTable()
    process = start(["true"], tmp_path, mark)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert machine.identify_child(process.pid) == process
    assert not machine.is_alive(process)
    machine.kill([process])


def test_a_program_that_is_not_there_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(daemons.DaemonError, match="/nowhere/etcd cannot be started: No such file"):
        daemons.start(["/nowhere/etcd"], log=tmp_path / "log", env={}, table=daemons.ProcessTable())


def test_the_tail_of_a_log_has_its_last_lines_without_empty_ones(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n\n" % number for number in range(5000)))
    assert daemons.log_tail(log, lines=2) == ["line 4998", "line 4999"]


def test_a_log_that_is_not_there_has_no_tail(tmp_path: pathlib.Path) -> None:
    assert daemons.log_tail(tmp_path / "none") == []
