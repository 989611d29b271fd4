"""A control plane of the benchmarks' own, and operators on it that are looked at from outside."""

import contextlib
import http
import http.client
import json
import os
import pathlib
import secrets
import ssl
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from addon_operator.devcluster import (
    cluster,
    handle,
    layout,
    locations,
    reporters,
)
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.devcluster.controlplane import certificates
from tests.integration import operator_process, operator_site

T = TypeVar("T")

DEADLINE: Final = 300.0
"""Seconds until a benchmark gives up."""
_POLL: Final = 0.01
_READY_POLL: Final = 0.05


@contextlib.contextmanager
def control_plane(*, nodes: bool = False) -> Iterator[handle.DevCluster]:
    """A control plane, gone afterwards; its binaries are built if there are none yet."""
    where = locations.locate(os.environ)
    manager = cluster.ClusterManager(where.state, reporters.Reporter())
    name = layout.ClusterName(f"bench-{os.getpid()}-{secrets.token_hex(3)}")
    try:
        with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
            started = manager.up(cluster.ClusterRequest(name, components.DEFAULT_VERSION, nodes=nodes), store)
        yield handle.DevCluster(started.name, started.version, started.url, started.kubeconfig, started.bin)
    finally:
        manager.down(name)


@contextlib.contextmanager
def site(devcluster: handle.DevCluster) -> Iterator[operator_site.Site]:
    """A directory and a namespace for operators, which do not outlive it."""
    namespace = devcluster.namespace("bench")
    with tempfile.TemporaryDirectory(prefix="addon-operator-bench-") as root:
        opened = operator_site.Site(devcluster, namespace, pathlib.Path(root))
        opened.status_pause = None
        opened.use_helm(devcluster.helm, validates=True)
        try:
            yield opened
        finally:
            opened.close()
            devcluster.delete_namespace(namespace)


class Api:
    """Requests on one connection to the API server, so that asking often costs little."""

    def __init__(self, devcluster: handle.DevCluster) -> None:
        self._address = urllib.parse.urlsplit(devcluster.url).netloc
        tls, self._bearer = admin(devcluster)
        self._connection = http.client.HTTPSConnection(self._address, timeout=60, context=tls)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """What the API server answers; an error status raises."""
        content = None if body is None else json.dumps(body)
        while True:
            self._connection.request(method, path, content, {"Content-Type": content_type} | self._bearer)
            answer = self._connection.getresponse()
            read = answer.read()
            if answer.status != http.HTTPStatus.TOO_MANY_REQUESTS:
                break
            # A kind is new, or the server has much to do.
            time.sleep(_READY_POLL)
        if answer.status >= 300 and answer.status != 404:
            raise RuntimeError(f"{method} {path}: {read.decode(errors='replace')}")
        if answer.status >= 300:
            return {}
        decoded: dict[str, Any] = json.loads(read)
        return decoded


def admin(devcluster: handle.DevCluster) -> tuple[ssl.SSLContext, dict[str, str]]:
    """TLS and headers of the cluster's administrator."""
    where = layout.Layout(devcluster.kubeconfig.parent)
    context = ssl.create_default_context(cafile=str(where.certificate(certificates.CA)))
    return context, certificates.bearer(where.pki)


def until(probe: Callable[[], T | None], what: str, *, poll: float = _POLL) -> T:
    """Ask every ``poll`` seconds until the answer is true, and give it back."""
    give_up = time.monotonic() + DEADLINE
    while not (found := probe()):
        if time.monotonic() > give_up:
            raise RuntimeError(f"after {DEADLINE:g} s still not: {what}")
        time.sleep(poll)
    return found


def seconds_until_ready(
    start: Callable[[], operator_process.OperatorProcess],
) -> tuple[float, operator_process.OperatorProcess]:
    """Start an operator; the time from its ``exec`` until its first converge is done."""
    began = time.perf_counter()
    operator = start()
    until(lambda: _is_ready(operator), "it is ready", poll=_READY_POLL)
    return time.perf_counter() - began, operator


def _is_ready(operator: operator_process.OperatorProcess) -> bool:
    if "State:\tZ" in pathlib.Path(f"/proc/{operator.pid}/status").read_text():
        raise RuntimeError(f"the operator ended\n{operator.tail()}")
    return operator.get("/readyz").status == 200


def resident_mebibytes(pid: int, what: str = "VmRSS") -> float:
    """Resident memory of a process: now, or at most with ``VmHWM``."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{what}:"))
    return int(line.split()[1]) / 1024


def processor_seconds(pid: int) -> float:
    """Processor time that a process has taken, without its children."""
    return _ticks(pid, slice(11, 13))


def tree_seconds(pid: int) -> float:
    """Processor time of a process, of its children that live, and of all those that have ended."""
    return _of_tree(pid, lambda each: _ticks(each, slice(11, 15)))


def tree_mebibytes(pid: int) -> float:
    """Resident memory of a process and of its children; what they share counts once."""
    return _of_tree(pid, _share_mebibytes)


def _share_mebibytes(pid: int) -> float:
    shares = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in shares if line.startswith("Pss:")) / 1024


def _of_tree(pid: int, figure: Callable[[int], float]) -> float:
    """The sum over a process and its children, without those that end meanwhile."""
    total = figure(pid)
    for child in _children(pid):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, StopIteration):
            total += _of_tree(child, figure)
    return total


def _children(pid: int) -> list[int]:
    threads = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def _ticks(pid: int, fields: slice) -> float:
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, stat[fields])) / os.sysconf("SC_CLK_TCK")
