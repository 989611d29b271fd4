"""A hundred thousand pods that a hook is bound to with a jqFilter, beside reading the same list."""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

import orjson

from addon_operator.devcluster import handle
from tests.benchmarks import measures, pod_server, surroundings
from tests.integration import operator_process, operator_site

PODS: Final = 100_000
_SECONDS_AIM: Final = 7.0
_MEMORY_AIM: Final = 250.0
_OBJECT_AIM: Final = 1.0
_LAG_AIM: Final = 20.0
_PROBE_PAUSE: Final = 0.02
_PROBE_LATE: Final = 1.0
_IDLE_PROBES: Final = 200
_BASELINE: Final = "reading and parsing the list"
_NOTE: Final = f"{PODS:,} pods of 3 to 9 KB, bound with a jqFilter"

_HOOK: Final = """\
#!/bin/bash
started=$EPOCHREALTIME
if [[ "${1:-}" == "--config" ]]; then
  echo '%s'
  exit 0
fi
echo "$started" >> "$TRACE"
"""
_KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
clusters: [{{name: bench, cluster: {{server: "{url}"}}}}]
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
users: [{{name: bench, user: {{}}}}]
current-context: bench
"""


def run(cluster: handle.DevCluster) -> list[measures.Row]:
    """All measurements; takes about half a minute."""
    with surroundings.site(cluster) as site, _pods(cluster) as port:
        _write_hook(site)
        kubeconfig = site.root / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(url=f"http://127.0.0.1:{port}"))
        read = _read_alone(port)
        idle = _idle(site)
        return _measure(site, kubeconfig, port, read, idle)


def _write_hook(site: operator_site.Site) -> None:
    binding = {
        "name": "pods", "apiVersion": "v1", "kind": "Pod", "keepFullObjectsInMemory": False,
        "jqFilter": "{name: .metadata.name, phase: .status.phase, ip: .status.podIP}",
    }  # fmt: skip
    config = json.dumps({"configVersion": "v1", "kubernetes": [binding]})
    site.script(site.root / "pods.sh", _HOOK % config, exact=True)


@contextlib.contextmanager
def _pods(cluster: handle.DevCluster) -> Iterator[int]:
    """The port of an API server with that many pods."""
    plan = pod_server.Plan(PODS, cluster.url, str(cluster.kubeconfig))
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.pod_server", json.dumps(dataclasses.asdict(plan))],
        stdout=subprocess.PIPE,
    )
    try:
        if child.stdout is None:
            raise RuntimeError("the server of pods has no output")
        yield int(child.stdout.readline())
    finally:
        child.kill()
        child.wait()


def _read_alone(port: int) -> float:
    """Seconds to read the same list and parse each object, and to keep nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=surroundings.DEADLINE)
    began = time.perf_counter()
    connection.request("GET", "/api/v1/pods?watch=1&sendInitialEvents=true")
    for line in connection.getresponse():
        if orjson.loads(line)["type"] == "BOOKMARK":
            break
    connection.close()
    return time.perf_counter() - began


@dataclasses.dataclass(frozen=True, slots=True)
class _Idle:
    mebibytes: float
    answers: list[float]


def _idle(site: operator_site.Site) -> _Idle:
    """An operator without the hook."""
    _, operator = surroundings.seconds_until_ready(site.start)
    prober = _Prober(operator)
    surroundings.until(lambda: len(prober.seconds) >= _IDLE_PROBES, "probes", poll=_PROBE_PAUSE)
    prober.end()
    memory = surroundings.resident_mebibytes(operator.pid)
    operator.stop()
    return _Idle(memory, prober.seconds)


def _measure(
    site: operator_site.Site, kubeconfig: pathlib.Path, port: int, read: float, idle: _Idle
) -> list[measures.Row]:
    (site.root / "pods.sh").rename(site.global_hooks / "hooks" / "pods.sh")
    trace = site.root / "started"
    operator = site.start(KUBE_CONFIG=str(kubeconfig), TRACE=str(trace))
    surroundings.until(lambda: operator.get("/healthz").status == 200, "it lives")
    prober = _Prober(operator)
    surroundings.until(lambda: trace.exists() and trace.read_text().endswith("\n"), "the hook ran")
    prober.end()
    seconds = float(trace.read_text()) - _asked(port)
    operator.wait_ready(surroundings.DEADLINE)
    time.sleep(_PROBE_LATE)
    rows = _rows(seconds, read, prober.seconds, idle, operator)
    operator.stop()
    return rows


def _asked(port: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/bench")
    asked: float = json.loads(connection.getresponse().read())["asked"]
    connection.close()
    return asked


class _Prober:
    """Asks an operator for its health again and again: a loop that is held answers late."""

    def __init__(self, operator: operator_process.OperatorProcess) -> None:
        self.seconds: list[float] = []
        self._port = operator.port
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._probe)
        self._thread.start()

    def _probe(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=surroundings.DEADLINE)
        while not self._ended.wait(_PROBE_PAUSE):
            began = time.perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            self.seconds.append(time.perf_counter() - began)
        connection.close()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def _rows(
    seconds: float,
    read: float,
    answers: list[float],
    idle: _Idle,
    operator: operator_process.OperatorProcess,
) -> list[measures.Row]:
    peak = surroundings.resident_mebibytes(operator.pid, "VmHWM")
    kept = surroundings.resident_mebibytes(operator.pid) - idle.mebibytes
    each = kept * 1024 / PODS
    middle, lag = (measures.milliseconds(answers, percent) for percent in (50, 99))
    return [
        measures.Row("hooks", _NOTE, "s from the list request to the hook's start", seconds, _BASELINE, read,
                     f"<= {_SECONDS_AIM:g}", seconds <= _SECONDS_AIM),
        measures.Row("hooks", _NOTE, "MiB resident, at most", peak, "without the binding", idle.mebibytes,
                     f"<= {_MEMORY_AIM:g}", peak <= _MEMORY_AIM),
        measures.Row("hooks", _NOTE, "KiB kept for each object", each, "", None,
                     f"<= {_OBJECT_AIM:g}", each <= _OBJECT_AIM),
        measures.Row("hooks", _NOTE, "answer of /healthz meanwhile, p50 (ms)", middle, "idle operator",
                     measures.milliseconds(idle.answers, 50)),
        measures.Row("hooks", _NOTE, "answer of /healthz meanwhile, p99 (ms)", lag, "idle operator",
                     measures.milliseconds(idle.answers, 99), f"<= {_LAG_AIM:g}", lag <= _LAG_AIM),
    ]  # fmt: skip
