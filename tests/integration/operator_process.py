"""An operator started as a user starts it: as a process, seen only through its ports, log and exit code."""

import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from prometheus_client import parser

from tests.integration import operator_forks

T = TypeVar("T")

READY_DEADLINE: Final = 120.0
"""Seconds until an operator with a handful of small modules has to be ready, on a busy machine."""
STOP_DEADLINE: Final = 40.0
"""Seconds that an operator may take to end; more than its grace period."""
_ANSWER_SECONDS: Final = 20.0
"""Seconds until an operator that listens and does not answer counts as hung, on a busy machine."""
_FIRST_PAUSE: Final = 0.1
"""Seconds: what is asked costs an API server that has work to do, and lines of a log come in bursts."""
_LONGEST_PAUSE: Final = 0.25
_TICK: Final = 0.01
_PREFIX: Final = "addon_operator_"
_TAIL_LINES: Final = 40


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What an HTTP endpoint of the operator said."""

    status: int
    """HTTP status; 0 when nothing listens."""
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Metrics:
    """All series of one scrape; names are written without the operator's prefix."""

    series: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def total(self, name: str, **labels: str) -> float:
        """Sum of the series of that name that carry these labels; 0 when there is none."""
        wanted = set(labels.items())
        return sum(
            value for (found, its), value in self.series.items() if found == _PREFIX + name and wanted <= its
        )

    def names(self) -> frozenset[str]:
        """Names of all series that there are."""
        return frozenset(name.removeprefix(_PREFIX) for name, _ in self.series)


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """An operator that ended by itself."""

    exit_code: int
    output: str
    """Both its outputs."""


def wait_until(
    probe: Callable[[], T | None],
    what: str,
    *,
    deadline: float = READY_DEADLINE,
    explain: Callable[[], str] = lambda: "",
    traces: Callable[[], object] = lambda: None,
) -> T:
    """Ask ``probe`` again and again until it gives something true, and give that back.

    It is asked soon after ``traces``, which is cheap, gives something else, and less and less often as long
    as that stays. A probe that reads what is not there yet, a status of a new object, raises such an error:
    it is asked again. Fails with ``what``, the last answer and ``explain()`` after ``deadline`` seconds.
    """
    give_up = time.monotonic() + deadline
    pause, before = _FIRST_PAUSE, traces()
    while True:
        seen: object
        try:
            if found := probe():
                return found
            seen = found
        except (LookupError, StopIteration) as error:
            seen = error
        if time.monotonic() > give_up:
            break
        ask_again = time.monotonic() + pause
        pause = min(_LONGEST_PAUSE, pause * 1.5)
        while time.monotonic() < ask_again:
            time.sleep(_TICK)
            if (now := traces()) != before:
                pause, before = _FIRST_PAUSE, now
                ask_again = min(ask_again, time.monotonic() + pause)
    raise AssertionError(f"after {deadline:g} s still not: {what}; last seen: {seen!r}\n{explain()}")


def free_port() -> int:
    """A port on loopback that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(
    arguments: Sequence[str], environment: Mapping[str, str], cwd: pathlib.Path, log: pathlib.Path
) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "addon_operator", *arguments],
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class OperatorProcess:
    """One run of ``addon-operator start``."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        port: int,
        log: pathlib.Path,
        cwd: pathlib.Path,
        first_retry: float | None = None,
        status_pause: float | None = None,
        holds: pathlib.Path | None = None,
        follows_health: bool = True,
    ) -> None:
        self.port = port
        self._log = log
        # What most changes that tests wait for come with: a line of the log, a run of a hook, a call of Helm.
        self._traces = [os.fspath(path) for path in (log, cwd / "trace", cwd / "helm-calls")]
        log.touch()
        command = ("start", *arguments)
        given = dict(environment)
        self._process: operator_forks.Process = (
            operator_forks.Fork(
                command,
                operator_forks.Surroundings(
                    given,
                    cwd,
                    log,
                    log,
                    first_retry=first_retry,
                    status_pause=status_pause,
                    holds=holds,
                    follows_health=follows_health,
                ),
            )
            if operator_forks.serves(given)
            else _start(command, given, cwd, log)
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything it has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str) -> Answer:
        """What an HTTP path answers; an error status is an answer too."""
        try:
            url = f"http://127.0.0.1:{self.port}{path}"
            with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as response:
                return Answer(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode())
        except OSError as error:
            return Answer(0, str(error))

    def metrics(self) -> Metrics:
        """Scrape it once."""
        found = self._scrape()
        assert found is not None, f"/metrics does not answer\n{self.tail()}"
        return found

    def _scrape(self, name: str = "") -> Metrics | None:
        """All series, or those of ``name`` alone: who asks again and again has no time to read the rest."""
        answer = self.get("/metrics")
        if answer.status != 200:
            return None
        lines = answer.text.splitlines(keepends=True)
        text = "".join(line for line in lines if line.startswith(_PREFIX + name)) if name else answer.text
        families = parser.text_string_to_metric_families(text)
        samples = (sample for family in families for sample in family.samples)
        return Metrics({(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples})

    def wait_until(self, probe: Callable[[], T | None], what: str, *, deadline: float = READY_DEADLINE) -> T:
        """Like :func:`wait_until`, but fails at once when the operator has ended, and shows its log."""

        def alive() -> T | None:
            found = probe()
            if not found and self._process.poll() is not None:
                raise AssertionError(
                    f"the operator ended with code {self._process.poll()} before: {what}\n{self.tail()}"
                )
            return found

        return wait_until(alive, what, deadline=deadline, explain=self.tail, traces=self._sizes)

    def _sizes(self) -> list[int]:
        return [os.stat(path).st_size if os.path.exists(path) else 0 for path in self._traces]  # noqa: PTH110, PTH116 - a hundred times a second

    def wait_ready(self, deadline: float = READY_DEADLINE) -> "OperatorProcess":
        """Wait for the end of the first converge."""
        self.wait_until(lambda: self.get("/readyz").status == 200, "/readyz is 200", deadline=deadline)
        return self

    def wait_metric(
        self, at_least: float, name: str, deadline: float = READY_DEADLINE, /, **labels: str
    ) -> None:
        """Wait until the sum of these series reaches a value."""

        def reached() -> bool:
            found = self._scrape(name)
            return found is not None and found.total(name, **labels) >= at_least

        self.wait_until(reached, f"{name}{labels} >= {at_least:g}", deadline=deadline)

    def wait_logged(self, *words: str) -> str:
        """Wait for a log line that has all these words, and give it back."""

        def line() -> str | None:
            lines = self.log.splitlines()
            return next((line for line in lines if all(word in line for word in words)), None)

        return self.wait_until(line, f"a log line with {words}")

    def wait_idle(self, deadline: float = READY_DEADLINE) -> "OperatorProcess":
        """Wait until nothing is queued and no converge runs."""
        queued = "tasks_queue_length"

        def idle() -> bool:
            if "CONVERGE_DONE" not in self.get("/status/converge").text:
                return False
            found = self._scrape(queued)
            return found is not None and found.total(queued) == 0

        self.wait_until(idle, "the queues are empty", deadline=deadline)
        return self

    def wait_end(self, deadline: float = STOP_DEADLINE) -> Ended:
        """Wait for it to end by itself."""
        try:
            code = self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the operator still runs after {deadline:g} s\n{self.tail()}") from None
        return Ended(code, self.log)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it as Kubernetes does, and check that it ends cleanly."""
        self.terminate()
        ended = self.wait_end()
        assert ended.exit_code == 0, f"SIGTERM ended it with code {ended.exit_code}\n{self.tail()}"
        assert "Traceback" not in ended.output, self.tail()

    def kill(self) -> None:
        """End it whatever it does; for the end of a test that failed."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def tail(self) -> str:
        """The end of its log, for messages."""
        lines = self.log.splitlines()[-_TAIL_LINES:]
        return "\n".join([f"--- the operator's log ({self._log}):", *lines, "---"])
