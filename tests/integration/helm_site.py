"""A module, a namespace and a real helm 3 or 4: the release manager without an operator around it."""

import asyncio
import contextlib
import os
import pathlib
import subprocess
import tempfile
from collections.abc import AsyncIterator
from typing import Final

import pytest

from addon_operator.app import parts
from addon_operator.devcluster import api, layout, locations, pytest_plugin, reporters
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.helm import binary, command, memory, release_types
from addon_operator.helm.releases import releases
from addon_operator.kernel import clock, json_types, names
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.kube.discovery import discovery
from tests.integration import cluster_objects, counted_helm, helm_records
from tests.support import programs

WEB: Final = names.ModuleName("web")
SLOW_HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: slow
  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: slow, image: example.com/slow}]
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  size: "{{ .Values.web.size }}"
"""


class Site(cluster_objects.Objects):
    """A module, a namespace and a helm whose calls are counted."""

    def __init__(
        self, cluster: pytest_plugin.DevCluster, helm: pathlib.Path, namespace: str, root: pathlib.Path
    ) -> None:
        super().__init__(api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url), namespace)
        self.cluster = cluster
        self.root = root
        self.module = root / "modules" / "010-web"
        self.calls = root / "calls"
        self.pid = root / "pid"
        self.real_helm = helm
        self.helm = root / "helm"
        counted_helm.write(self.helm, helm, self.calls, more=f"echo $$ > {self.pid}")
        self.warnings: list[str] = []
        self.take_ownership = release_types.TakeOwnership.ALWAYS
        self.helm_class = command.Helm

    def write(self, name: str, text: str) -> None:
        path = self.module / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def verbs(self) -> list[str]:
        """What helm was called for, without the look at its version."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [verb for verb in (line.split()[0] for line in lines) if verb != "version"]

    @contextlib.asynccontextmanager
    async def manager(
        self, *, timeout: float = 60.0, kubeconfig: pathlib.Path | None = None, **environ: str
    ) -> AsyncIterator[releases.ReleaseManager]:
        """A new manager, as a started operator has it."""
        found = await binary.find(str(self.helm), os.environ, programs.programs())
        access = auth.load_access(kubeconfig or self.cluster.kubeconfig, None, None, os.environ)
        admin = auth.load_access(self.cluster.kubeconfig, None, None, os.environ)
        async with client.KubeClient(access) as api, client.KubeClient(admin) as owner:
            target = command.HelmTarget(self.namespace, access.kubeconfig, access.context)
            options = release_types.Options(
                history_max=3, timeout=timeout, take_ownership=self.take_ownership
            )
            with tempfile.TemporaryDirectory(
                prefix="helm-", dir=self.root, ignore_cleanup_errors=True
            ) as workspace:
                helm = self.helm_class(
                    found,
                    target,
                    {**os.environ, **environ},
                    pathlib.Path(workspace),
                    programs.programs(),
                    lambda _, text: self.warnings.append(text),
                )
                driver, time = environ.get("HELM_DRIVER", "secret"), clock.SystemClock()
                remembered = memory.Memory(owner, self.namespace, "addon-operator", self.warnings.append)
                await remembered.load()
                kinds = discovery.Catalog(api, time)
                yield parts.release_manager(helm, api, kinds, options, remembered, time, driver)

    def asked(
        self, size: int = 1, absent: tuple[str, ...] = (), fresh: bool = False, **more: str
    ) -> release_types.ReleaseRequest:
        values: json_types.JsonObject = {"global": {}, "web": {"size": size, **more}}
        return release_types.ReleaseRequest(WEB, self.module, values, absent, fresh)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        argv = [str(self.cluster.kubectl), "--namespace", self.namespace, *arguments]
        environ = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        return subprocess.run(
            argv, env=environ, check=True, capture_output=True, text=True, input=given
        ).stdout

    def revisions(self) -> dict[int, str]:
        """Number and status of the revisions that helm has stored."""
        found = self.listed("secret", labelSelector="owner=helm,name=web")
        labels = [each["metadata"]["labels"] for each in found]
        return {int(each["version"]): each["status"] for each in labels}

    async def wait_for_slow_hook(self) -> None:
        """Until helm waits for the Job of ``SLOW_HOOK``."""
        while self.find("job", "slow") is None:  # noqa: ASYNC110 - it is in the API server
            await asyncio.sleep(0.05)

    def set_status(self, number: int, status: str) -> None:
        """Leave a revision as a helm that was killed does: in its record and in the record's label."""
        helm_records.change(
            self, "web", number, lambda found: {**found, "info": {**found["info"], "status": status}}
        )
        self.label("secret", f"sh.helm.release.v1.web.v{number}", {"status": status})

    def run_helm(self, *arguments: str) -> None:
        """Do something by hand; the operator's own calls are not counted."""
        environ = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        argv = [str(self.real_helm), *arguments, "--namespace", self.namespace]
        subprocess.run(argv, env=environ, check=True, capture_output=True, text=True)


@pytest.fixture(scope="session")
def helm4() -> pathlib.Path:
    return helm4_binary()


def helm4_binary() -> pathlib.Path:
    """A helm of version 4."""
    wanted = binaries.Wanted(components.HELM4)
    where = locations.locate(os.environ)
    with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
        return store.ensure([wanted])[components.HELM]


ANY_HELM: Final = pytest.mark.parametrize(
    "helm", [pytest.param("helm3", marks=pytest.mark.slow), "helm4"], indirect=True
)
"""What the fixture does by itself; for files that say it yet."""


@pytest.fixture(params=[pytest.param("helm3", marks=pytest.mark.slow), "helm4"])
def helm(
    request: pytest.FixtureRequest, devcluster: pytest_plugin.DevCluster, helm4: pathlib.Path
) -> pathlib.Path:
    return devcluster.helm if request.param == "helm3" else helm4


@pytest.fixture
def helm_site(
    devcluster: pytest_plugin.DevCluster, helm: pathlib.Path, namespace: str, tmp_path: pathlib.Path
) -> Site:
    made = Site(devcluster, helm, namespace, tmp_path)
    made.write("Chart.yaml", "apiVersion: v2\nname: something-else\nversion: 0.0.1\n")
    made.write("templates/config.yaml", CONFIG)
    return made
