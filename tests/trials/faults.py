"""What goes wrong around an operator: processes that are killed or stand still, an API server that does not
answer, objects that somebody deletes or writes over. None of it costs anything that holds data."""

import contextlib
import os
import pathlib
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from addon_operator.devcluster import layout, state
from addon_operator.devcluster.binaries import components
from tests.integration import operator_process, operator_site

_MEMORY: Final = "addon-operator-state"
_HELM_SECONDS: Final = 3.0
"""How long a call of Helm is waited for."""


class Faults:
    """Makes them around the operators of one site."""

    def __init__(self, site: operator_site.Site, chance: random.Random) -> None:
        self._site = site
        self._chance = chance

    def make(self, fault: str, operator: operator_process.OperatorProcess) -> None:
        """Make this fault, one of :data:`FAULTS`."""
        FAULTS[fault](self, operator)

    def _kill_helm(self) -> None:
        """Kill the next call of Helm, or none if there is none soon."""
        give_up = time.monotonic() + _HELM_SECONDS
        while time.monotonic() < give_up:
            for pid in _calls_of_helm(self._site.root):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.01)

    def _hold(self, pid: int) -> None:
        """Let a process stand still for some seconds."""
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.3 + 3 * self._chance.random())
        finally:
            os.kill(pid, signal.SIGCONT)

    def _api_server(self) -> int:
        known = state.load(layout.Layout(self._site.cluster.kubeconfig.parent).state)
        assert known is not None, "the control plane has written down what it started"
        return known.components[components.KUBE_APISERVER].process.pid

    def _replace(self) -> None:
        """Delete the values ConfigMap and make it again, as ``kubectl replace --force`` does."""
        data = self._site.data(operator_site.CONFIG_MAP)
        self._site.delete("configmap", operator_site.CONFIG_MAP)
        time.sleep(self._chance.uniform(0.2, 0.7))
        self._site.create("configmap", operator_site.CONFIG_MAP, {"data": data})

    def _delete_memory(self) -> None:
        self._site.delete("secret", _MEMORY)

    def _delete_record(self) -> None:
        records = self._site.objects("secrets", labelSelector="owner=helm,status=deployed")
        if records:
            self._site.delete("secret", self._chance.choice(records)["metadata"]["name"])


FAULTS: Final[Mapping[str, Callable[[Faults, operator_process.OperatorProcess], None]]] = {
    "helm-killed": lambda faults, _: faults._kill_helm(),
    "stands-still": lambda faults, operator: faults._hold(operator.pid),
    "outage": lambda faults, _: faults._hold(faults._api_server()),
    "replaced": lambda faults, _: faults._replace(),
    "record-deleted": lambda faults, _: faults._delete_record(),
    "memory-deleted": lambda faults, _: faults._delete_memory(),
}


def _calls_of_helm(root: pathlib.Path) -> Iterator[int]:
    """Yield the ids of processes of Helm that were started for an operator below that directory."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            program, *arguments = path.read_bytes().split(b"\0")
            if program.endswith(b"/helm") and any(os.fsencode(root) in each for each in arguments):
                yield int(path.parent.name)
