"""Starts the programs of one cluster and waits until each is seen to work."""

import json
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final

from addon_operator.devcluster import api, errors, layout, state
from addon_operator.devcluster.binaries import components
from addon_operator.devcluster.controlplane import controlplane
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import json_types
from addon_operator.process import daemons

MARK: Final = "ADDON_OPERATOR_DEVCLUSTER_DIRECTORY"
"""Environment variable of every program of a cluster: the cluster's directory."""
START_TIMEOUT: Final = 90.0
"""Seconds that one step of the start may take."""
NODE_NAME: Final = "devcluster-node"

_POLL: Final = 0.03
# Someone else may have the port, and never answer.
_PROBE_TIMEOUT: Final = 3.0
_PORT_TAKEN: Final = "address already in use"
_NODE_CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "20000"}

# Collecting garbage a quarter as often takes a sixth off a cluster's processor time, and costs some memory.
_COLLECTION: Final = {"GOGC": "400", "GOMEMLIMIT": "1536MiB"}

Check = Callable[[], str | None]
"""Tells what is still missing; ``None`` when nothing is."""


class Starter:
    """Starts programs of one cluster, and writes down each before it starts the next."""

    def __init__(
        self,
        where: layout.Layout,
        begun: state.ClusterState,
        clock: clocks.Clock,
        sleep: Callable[[float], None],
    ) -> None:
        self._where = where
        self._clock = clock
        self._sleep = sleep
        self._processes = daemons.ProcessTable()
        self._client = api.ApiClient(where, begun.url, _PROBE_TIMEOUT)
        self.state = begun
        """What has been started so far."""

    def start(self, name: str, argv: tuple[str, ...]) -> None:
        """Start one program.

        Raises :class:`.DaemonError` when it cannot be run.
        """
        env = {"HOME": str(self._where.root), "PATH": os.defpath, MARK: str(self._where.root), **_COLLECTION}
        log = self._where.log(name)
        process = daemons.start(argv, self._where.root, log=log, env=env, table=self._processes)
        self.state = self.state.with_component(name, state.StartedProgram(process, argv))
        state.save(self._where.state, self.state)

    def wait_for_api_server(self) -> None:
        """Wait until the API server answers and RBAC's own roles are there."""
        self._wait(components.KUBE_APISERVER, self._api_server)

    def wait_for_controllers(self) -> None:
        """Wait until pods can be created: the controller manager has made the first ServiceAccount."""
        self._wait(components.KUBE_CONTROLLER_MANAGER, self._service_account)

    def wait_for_node(self) -> None:
        """Create the node that has no machine behind it, and wait until it is ready."""
        self._wait(components.KUBE_APISERVER, self._create_node)
        self._wait(components.KWOK, self._node)

    def server_version(self) -> str:
        """Return what the API server says it is, as in ``v1.37.1``."""
        return str(self._client.request("GET", "/version").document().get("gitVersion", self.state.version))

    def _api_server(self) -> str | None:
        for path in ("/readyz", "/api/v1/namespaces/default"):
            answer = self._client.request("GET", path)
            if not answer.is_success:
                return f"{path}: {answer.text or answer.status}"
        return None

    def _service_account(self) -> str | None:
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        answer = self._client.request("GET", path)
        return None if answer.is_success else f"{path}: {answer.text}"

    def _create_node(self) -> str | None:
        answer = self._client.request("POST", "/api/v1/nodes", node())
        return None if answer.is_success or answer.status == 409 else f"node: {answer.text}"

    def _node(self) -> str | None:
        answer = self._client.request("GET", f"/api/v1/nodes/{NODE_NAME}")
        return None if is_ready(answer.document()) else "the node is not ready"

    def _wait(self, component: str, check: Check) -> None:
        deadline = self._clock.monotonic() + START_TIMEOUT
        while missing := check():
            self._require_alive()
            if self._clock.monotonic() > deadline:
                raise self._too_slow(component, missing)
            self._sleep(_POLL)

    def _require_alive(self) -> None:
        for name, component in self.state.components.items():
            if not self._processes.is_alive(component.process):
                raise self._death(name)

    def _death(self, name: str) -> errors.ComponentError:
        log = self._where.log(name)
        tail = daemons.log_tail(log, lines=40)
        if any(_PORT_TAKEN in line for line in tail):
            return errors.PortTakenError(name, f"{name} ended: its port is taken")
        return errors.ComponentError(name, f"{name} ended: {log_message(tail)}; its log is {log}")

    def _too_slow(self, name: str, missing: str) -> errors.ComponentError:
        shown = missing.replace("\n", " ")[:300]
        log = self._where.log(name)
        return errors.ComponentError(
            name, f"{name} was not ready within {START_TIMEOUT:g} s ({shown}); its log is {log}"
        )


def unused_ports(count: int) -> list[int]:
    """Return so many ports of loopback that nobody listens on at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        # All are bound before one is let go, so that they differ.
        for listener in sockets:
            listener.bind((controlplane.LOOPBACK, 0))
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()


def node() -> json_types.JsonObject:
    """Return the one node of a cluster; kwok plays its kubelet."""
    labels: json_types.JsonObject = {
        "kubernetes.io/hostname": NODE_NAME,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": components.architecture(),
        "type": "kwok",
    }
    capacity: json_types.JsonObject = dict(_NODE_CAPACITY)
    annotations: json_types.JsonObject = {"kwok.x-k8s.io/node": "fake"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE_NAME, "labels": labels, "annotations": annotations},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def is_ready(found: json_types.KubernetesObject) -> bool:
    """Return whether a node's condition ``Ready`` is true."""
    conditions: Iterable[Any] = found.get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def log_message(tail: list[str]) -> str:
    """Return what the end of a log says about why a program ended."""
    if not tail:
        return "it wrote nothing"
    last = tail[-1]
    try:
        entry = json.loads(last)
        return f"{entry['msg']}: {entry['error']}" if "error" in entry else str(entry["msg"])
    except (ValueError, KeyError, TypeError):
        return last.strip()
