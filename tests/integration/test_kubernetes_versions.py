"""Every supported version of Kubernetes: it takes what the chart renders, and the operator works there."""

import json
import os
import pathlib
import secrets
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
import yaml

from addon_operator.devcluster import api, cluster, handle, layout, locations, reporters
from addon_operator.devcluster.binaries import binaries, components
from tests.integration import admitting, charts, operator_process, operator_site

pytestmark = [pytest.mark.integration, pytest.mark.slow]

IMAGE: Final[Mapping[str, object]] = {
    "modules.image.reference": "registry.example/modules:1.0.0",
    "modules.image.subPath": "modules",
    "modules.image.globalHooksSubPath": "global-hooks",
}
GIT: Final[Mapping[str, object]] = {
    "modules.git.repo": "https://git.example/modules.git",
    "modules.git.credentialsSecret": "git",
    "modules.git.ca.configMapName": "git-ca",
}
VALUES: Final[Mapping[str, Mapping[str, object]]] = {
    "defaults": {},
    "image": IMAGE,
    "git": GIT,
    "ssh": {"modules.git.repo": "git@git.example:modules.git", "modules.git.credentialsSecret": "git"},
    "configMap": {"modules.configMap.name": "modules"},
    "one replica without a Lease": {"replicas": 1, "highAvailability.enabled": False},
    "admission apart": {**IMAGE, "admission.separate": True, "podPresets.failurePolicy": "Fail"},
    "PodPresets only": {"moduleStatus.enabled": False, "valuesConfigMap.validate": False},
    "no PodPresets": {"podPresets.enabled": False},
    "chart cache": {"chartCache.existingClaim": "charts", "chartCredentialsSecret": "registry"},
    "values Secret": {"valuesSecret.name": "passwords", "valuesConfigMap.create": True},
    "namespaces by name": {"releaseNamespaces": ["default"], "rbac.modules": "namespace-admin"},
    "all namespaces": {"releaseNamespaces": ["*"], "rbac.modules": "cluster-admin", "rbac.moduleCRDs": True},
    "certificates": {"webhook.certificates.source": "secret", "webhook.certificates.secretName": "tls",
                     "webhook.clientCA.configMapName": "ca", "metrics.dashboard.enabled": True},
}  # fmt: skip


@pytest.fixture(scope="module", params=components.VERSIONS)
def supported(request: pytest.FixtureRequest) -> Iterator[handle.DevCluster]:
    """Start a control plane of one supported version; its binaries are built if there are none yet."""
    where = locations.locate(os.environ)
    manager = cluster.ClusterManager(where.state, reporters.Reporter())
    name = layout.ClusterName(f"pytest-{os.getpid()}-{secrets.token_hex(3)}")
    try:
        with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
            yield manager.up(cluster.ClusterRequest(name, request.param, nodes=False), store)
    finally:
        manager.down(name)


@pytest.fixture
def place(supported: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[operator_site.Site]:
    """Make a site on that control plane."""
    made = operator_site.Site(supported, supported.namespace(), tmp_path)
    yield made
    made.close()


def test_the_api_server_takes_every_object_under_the_restricted_standard(
    supported: handle.DevCluster,
) -> None:
    namespace = supported.namespace()
    level = "pod-security.kubernetes.io/{}=restricted"
    supported.run_kubectl("label", "namespace", namespace, level.format("warn"), level.format("enforce"))
    helms = charts.helm_binaries().values()
    for what, values in VALUES.items():
        first, second = (charts.render(helm, values, namespace) for helm in helms)
        assert sorted(map(json.dumps, first)) == sorted(map(json.dumps, second)), what
        bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": first})
        done = supported.run_kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=bundle)
        taken = json.loads(done.stdout)["items"]
        assert [charts.name_of(each) for each in taken] == [charts.name_of(each) for each in first], what
        assert "Warning" not in done.stderr, what
        # A field that the version does not know is dropped with a warning only.
        dropped = [sorted(_missing(given, kept)) for given, kept in zip(first, taken, strict=True)]
        assert [each for each in dropped if each] == [], what


def _missing(given: object, kept: object, where: str = "") -> Iterator[str]:
    """Paths of what was given and not kept; values that mean nothing may go."""
    if isinstance(given, dict):
        for key, value in given.items():
            if isinstance(kept, dict) and key in kept:
                yield from _missing(value, kept[key], f"{where}.{key}")
            elif value not in ({}, [], None, "", 0, False):
                yield f"{where}.{key}"
    elif isinstance(given, list) and isinstance(kept, list):
        for index, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from _missing(one, other, f"{where}[{index}]")


def test_the_api_server_takes_the_definitions(supported: handle.DevCluster) -> None:
    files = sorted((charts.CHART / "crds").iterdir())
    for file in files:
        done = supported.run_kubectl("apply", "--server-side", "--dry-run=server", "-f", str(file))
        assert done.stdout.count("(server dry run)") == len(list(yaml.safe_load_all(file.read_text())))
        assert "Warning" not in done.stderr


def test_the_operator_installs_upgrades_heals_and_admits_with_the_rights_of_its_chart(
    supported: handle.DevCluster, place: operator_site.Site
) -> None:
    site = place
    web = site.module(
        "010-web", {"size": "{{ .Values.web.size | quote }}"}, values="webEnabled: true\nweb: {size: small}"
    )
    (web / "module.yaml").write_text('requires: {kubernetes: ">= 1.30", apis: [apps/v1]}\n')
    own = {"nameSelector": {"matchNames": [site.namespace]}}
    watched = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": own}
    site.hook(web, "watch.sh", {"kubernetes": [watched]})
    with (
        charts.installed(supported, site, {"rbac.modules": "namespace-admin"}) as installation,
        charts.operating(installation) as operator,
    ):
        operator.wait_ready().wait_idle()
        assert site.data("web") == {"size": "small"}
        operator.wait_until(lambda: "web" in site.kubectl("get", "modules", "-o", "name"), "its status")
        site.config(web="size: large")
        operator.wait_until(lambda: site.data("web") == {"size": "large"}, "the edit is released")
        operator.wait_idle()
        site.delete("configmap", "web")
        operator.wait_until(lambda: site.data("web") == {"size": "large"}, "what was deleted is back")
        assert site.revisions() == {charts.RELEASE: 1, "web": 2}
        _see_a_pod_admitted(supported, operator)
        assert "watch.sh kubernetes" in {run.label for run in site.runs()}
        site.config(webEnabled="false")
        operator.wait_until(lambda: "web" not in site.revisions(), "the module is gone")
        operator.stop()
    assert "Traceback" not in operator.log
    assert "forbidden" not in operator.log


def _see_a_pod_admitted(supported: handle.DevCluster, operator: operator_process.OperatorProcess) -> None:
    client = api.ApiClient(layout.Layout(supported.kubeconfig.parent), supported.url)
    shop = admitting.Shop(supported.namespace("shop"), operator, supported, client)
    shop.preset()
    operator.wait_until(lambda: admitting.is_injected(shop, operator), "a pod is injected")
    given = shop.pod(dry_run=True)["spec"]["containers"][0]["env"]
    assert given == [{"name": "DB_PORT", "value": "6379"}]
