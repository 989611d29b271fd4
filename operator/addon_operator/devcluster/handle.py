"""A cluster that runs: where it is, and what tests do with it."""

import pathlib
import secrets
import time
from collections.abc import Callable
from typing import Final

import msgspec

from addon_operator.devcluster import api, errors, layout
from addon_operator.devcluster.binaries import components
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import json_types
from addon_operator.process import commands

_ACCOUNT_TIMEOUT: Final = 30.0
_COMMAND_TIMEOUT: Final = 300.0
_POLL: Final = 0.02


class DevCluster(msgspec.Struct, frozen=True):
    """A cluster that runs, and a few things that tests do with it."""

    name: layout.ClusterName
    version: str
    """Of Kubernetes, as in ``v1.37.1``."""
    url: str
    """Where the API server answers."""
    kubeconfig: pathlib.Path
    """Of the administrator."""
    bin: pathlib.Path
    """Directory with ``kubectl``, ``helm`` and the control plane's binaries."""

    @property
    def kubectl(self) -> pathlib.Path:
        """The ``kubectl`` of the cluster's version."""
        return self.bin / components.KUBECTL

    @property
    def helm(self) -> pathlib.Path:
        """A ``helm`` of version 3."""
        return self.bin / components.HELM

    def namespace(
        self,
        prefix: str = "test",
        clock: clocks.Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> str:
        """Create a namespace whose name starts with ``prefix``, ready for pods, and give back its name.

        Raises :class:`.DevClusterError` when the API server refuses it.
        """
        name = f"{prefix}-{secrets.token_hex(4)}"
        body: json_types.JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        client = self._client()
        answer = client.request("POST", "/api/v1/namespaces", body)
        if not answer.is_success:
            raise errors.DevClusterError(
                f"the cluster {self.name} refused POST /api/v1/namespaces: {answer.text}"
            )
        self._wait_for_service_account(client, name, clock or clocks.SystemClock(), sleep)
        return name

    def delete_namespace(self, name: str) -> None:
        """Have a namespace deleted, without waiting until it is gone; one that is gone already is fine."""
        self._client().request("DELETE", f"/api/v1/namespaces/{name}")

    def run_kubectl(self, *arguments: str, stdin: str | None = None) -> commands.Completed:
        """Run ``kubectl`` as the administrator.

        Raises :class:`.CommandError` when it fails.
        """
        return self._run(str(self.kubectl), *arguments, stdin=stdin)

    def run_helm(self, *arguments: str) -> commands.Completed:
        """Run ``helm`` as the administrator.

        Raises :class:`.CommandError` when it fails.
        """
        return self._run(str(self.helm), *arguments)

    def _run(self, program: str, *arguments: str, stdin: str | None = None) -> commands.Completed:
        # Both programs know this option, and it wins over whatever the environment says.
        argv = [program, f"--kubeconfig={self.kubeconfig}", *arguments]
        return commands.run(argv, stdin=stdin, timeout=_COMMAND_TIMEOUT)

    def _client(self) -> api.ApiClient:
        return api.ApiClient(layout.Layout(self.kubeconfig.parent), self.url)

    def _wait_for_service_account(
        self, client: api.ApiClient, namespace: str, clock: clocks.Clock, sleep: Callable[[float], None]
    ) -> None:
        deadline = clock.monotonic() + _ACCOUNT_TIMEOUT
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        while not client.request("GET", path).is_success:
            if clock.monotonic() > deadline:
                raise errors.DevClusterError(
                    f"the namespace {namespace} got no ServiceAccount within {_ACCOUNT_TIMEOUT:g} s; see "
                    f"{layout.Layout(self.kubeconfig.parent).log('kube-controller-manager')}"
                )
            sleep(_POLL)
