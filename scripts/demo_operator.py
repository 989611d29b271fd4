"""The operator of the demo, as a process, and the Helm that counts its calls."""

import contextlib
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from prometheus_client import parser

from addon_operator.kernel import errors
from addon_operator.process import daemons

T = TypeVar("T")

DEADLINE: Final = 60.0
"""Seconds until something that was announced must be seen."""
_STOP_DEADLINE: Final = 35.0
_POLL: Final = 0.1
_HELM: Final = """\
#!/bin/sh
echo "$1" >> "{calls}"
exec "{helm}" "$@"
"""


class DemoError(errors.AddonOperatorError):
    """The demo cannot go on."""


def wait_for(probe: Callable[[], T | None], what: str) -> T:
    """Ask ``probe`` until it gives something true, and give that back.

    Raises :class:`DemoError` when that takes longer than :data:`DEADLINE`.
    """
    give_up = time.monotonic() + DEADLINE
    while not (found := probe()):
        if time.monotonic() > give_up:
            raise DemoError(f"after {DEADLINE:g} s still not seen: {what}")
        time.sleep(_POLL)
    return found


def free_port() -> int:
    """Return a port on loopback that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class CountedHelm:
    """A script that stands in for ``helm``, notes each call and passes it on."""

    def __init__(self, directory: pathlib.Path, helm: pathlib.Path) -> None:
        self.path = directory / "helm-counted"
        self._calls = directory / "helm-calls"
        self._calls.touch()
        self.path.write_text(_HELM.format(calls=self._calls, helm=helm), encoding="utf-8")
        self.path.chmod(0o755)

    def calls(self) -> list[str]:
        """Return the verbs of all calls so far; asking for the version does not count."""
        return [verb for verb in self._calls.read_text(encoding="utf-8").split() if verb != "version"]


class Operator:
    """One run of ``addon-operator start``."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        port: int,
        log: pathlib.Path,
        cwd: pathlib.Path,
    ) -> None:
        self._port = port
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the demo, which then ends the operator in its own time.
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    def wait_ready(self) -> float:
        """Wait for the end of the first converge; how many seconds that took."""
        begun = time.monotonic()
        wait_for(self._is_ready, f"{self.url}/readyz says that the first converge is done")
        return time.monotonic() - begun

    def is_idle(self) -> bool:
        """Whether no converge runs and nothing is queued."""
        done = "CONVERGE_DONE" in self._get("/status/converge")
        return done and not self.metrics().get('tasks_queue_length{queue="main"}')

    def metrics(self) -> dict[str, float]:
        """All series of ``/metrics`` as they are written there, but without the prefix of their names."""
        families = parser.text_string_to_metric_families(self._get("/metrics"))
        return {
            _series(sample.name, sample.labels): sample.value
            for family in families
            for sample in family.samples
        }

    def stop(self) -> int:
        """End it as Kubernetes does; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(_STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise DemoError(f"the operator did not end within {_STOP_DEADLINE:g} s of SIGTERM") from None

    def kill(self) -> None:
        """End it whatever it does; no error if it has ended."""
        self._process.kill()
        self._process.wait()

    def log_tail(self) -> list[str]:
        """Return the last lines of its log."""
        return daemons.log_tail(self._log, 20)

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise DemoError(f"the operator ended with exit code {self._process.returncode}")
        with contextlib.suppress(OSError):
            self._get("/readyz")
            return True
        return False

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=5) as response:  # noqa: S310 - our own URL
            text: str = response.read().decode()
            return text


def _series(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    short = name.removeprefix("addon_operator_")
    return f"{short}{{{inside}}}" if inside else short
