"""Webhook configurations come, stay and go with the chart: with ``Fail`` all pods hang on that."""

import json
import os
import pathlib
import re
import shutil
from collections.abc import Mapping

import pytest

from addon_operator.devcluster import api, handle, layout
from addon_operator.process import commands
from tests.integration import admitting, charts, definitions, guarded, operator_process, operator_site

pytestmark = pytest.mark.integration

FAIL = {"podPresets.failurePolicy": "Fail"}


@pytest.fixture(scope="module")
def helms() -> Mapping[str, pathlib.Path]:
    return charts.helm_binaries()


class Cluster:
    """What is left of the webhooks in a cluster, and a Helm of either version."""

    def __init__(self, cluster: handle.DevCluster, site: operator_site.Site, helm: pathlib.Path) -> None:
        self._api = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
        self._site = site
        self._helm = (str(helm), f"--kubeconfig={cluster.kubeconfig}", f"--namespace={site.namespace}")

    def helm(self, *arguments: str) -> None:
        commands.run([*self._helm, *arguments], timeout=120)

    def configurations(self) -> list[charts.Object]:
        """Those that are there."""
        answers = (
            self._api.request("GET", f"{path}/addon-operator-{self._site.namespace}")
            for path in admitting.CONFIGURATIONS
        )
        return [json.loads(answer.text) for answer in answers if answer.is_success]

    def certificates(self) -> charts.Object:
        """What the Secret of the certificates holds; the chart makes it, too."""
        (found,) = self._site.objects("secrets", fieldSelector="metadata.name=addon-operator-admission")
        return dict(found.get("data") or {})

    def are_filled(self) -> bool:
        found = self.configurations()
        return len(found) == 2 and all(one.get("webhooks") for one in found)

    def takes_pods(self, namespace: str) -> bool:
        body: charts.Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "web-"},
            "spec": {"containers": [admitting.container()]},
        }
        return self._api.request("POST", admitting.PODS.format(namespace), body).is_success


@pytest.fixture
def chart(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the chart, of which tests make another version."""
    return pathlib.Path(shutil.copytree(charts.CHART, tmp_path / "chart"))


@pytest.mark.parametrize("version", [pytest.param("helm3", marks=pytest.mark.slow), "helm4"])
def test_webhooks_outlive_upgrades_and_go_with_the_release(
    devcluster: handle.DevCluster,
    site: operator_site.Site,
    helms: Mapping[str, pathlib.Path],
    chart: pathlib.Path,
    version: str,
) -> None:
    cluster = Cluster(devcluster, site, helms[version])
    given = charts.flags({"replicas": 1, **FAIL})
    cluster.helm("install", charts.RELEASE, str(chart), *given)
    try:
        assert [one.get("webhooks") for one in cluster.configurations()] == [None, None]
        # Even an operator that may create them must not bring them back.
        everything = {"KUBE_CONFIG": str(devcluster.kubeconfig)}
        with charts.operating(charts.Installation(devcluster, site), **everything) as operator:
            operator.wait_until(cluster.are_filled, "the webhooks are registered")
            see_upgrade(cluster, chart, given)
            cluster.helm("uninstall", charts.RELEASE)
            assert cluster.configurations() == []
            operator.wait_logged("does not exist", "helm upgrade")
        assert cluster.configurations() == []
        namespace = devcluster.namespace("shop")
        assert cluster.takes_pods(namespace)
        devcluster.delete_namespace(namespace)
    finally:
        cluster.helm("uninstall", charts.RELEASE, "--ignore-not-found")


def see_upgrade(cluster: Cluster, chart: pathlib.Path, given: list[str]) -> None:
    """Another version of the chart, and other values, touch no webhook: not even for a moment."""
    before = cluster.configurations()
    certificates = cluster.certificates()
    assert certificates["tls.crt"]
    about = chart / "Chart.yaml"
    about.write_text(about.read_text().replace("\nversion: 0.1.0", "\nversion: 0.1.1"))
    cluster.helm("upgrade", charts.RELEASE, str(chart), *given, "--set", "service.port=9750")
    after = cluster.configurations()
    assert [one["metadata"]["labels"]["helm.sh/chart"] for one in after] == ["addon-operator-0.1.1"] * 2
    assert [one["webhooks"] for one in after] == [one["webhooks"] for one in before]
    assert cluster.certificates() == certificates
    assert [one["metadata"]["generation"] for one in after] == [
        one["metadata"]["generation"] for one in before
    ]


@pytest.mark.slow
def test_manifests_can_be_applied_again_and_their_webhooks_go_with_them(
    devcluster: handle.DevCluster, site: operator_site.Site, helms: Mapping[str, pathlib.Path]
) -> None:
    cluster = Cluster(devcluster, site, helms["helm3"])
    objects = charts.render(helms["helm3"], {"replicas": 1}, site.namespace)
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    devcluster.run_kubectl("apply", "--server-side", "-f", "-", stdin=bundle)
    with charts.operating(charts.Installation(devcluster, site)) as operator:
        operator.wait_until(cluster.are_filled, "the webhooks are registered")
        before = [one["webhooks"] for one in cluster.configurations()], cluster.certificates()
        devcluster.run_kubectl("apply", "--server-side", "-f", "-", stdin=bundle)
        assert ([one["webhooks"] for one in cluster.configurations()], cluster.certificates()) == before
    devcluster.run_kubectl("delete", "--wait=false", "-f", "-", stdin=bundle)
    assert cluster.configurations() == []


@pytest.mark.slow
def test_pods_are_created_after_an_uninstallation_without_any_operator(
    devcluster: handle.DevCluster, site: operator_site.Site, helms: Mapping[str, pathlib.Path]
) -> None:
    cluster = Cluster(devcluster, site, helms["helm3"])
    namespace = devcluster.namespace("shop")
    with charts.installed(devcluster, site, FAIL) as installation:
        with charts.operating(installation) as operator:
            operator.wait_until(cluster.are_filled, "the webhooks are registered")
        operator_process.wait_until(lambda: not cluster.takes_pods(namespace), "pods are refused")
    operator_process.wait_until(lambda: cluster.takes_pods(namespace), "pods are taken again")
    devcluster.delete_namespace(namespace)


@pytest.mark.slow
def test_no_hook_is_asked_after_an_uninstallation_and_what_it_converted_is_set_back_as_the_guide_says(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    group = f"{site.namespace}.example"
    module = site.module("010-shop", values="shopEnabled: true\n")
    definitions.write(module, "things.yaml", definitions.definition(group, "things", "v1", "v2"))
    rules = [{"fromVersion": "v2", "toVersion": "v1"}]
    bindings = {
        "kubernetesValidating": [guarded.binding(site, "guard.shop.example")],
        "kubernetesCustomResourceConversion": [
            {"name": "c", "crdName": f"things.{group}", "conversions": rules}
        ],
    }
    site.hook(module, "guard.sh", bindings, "exit 1")
    rights = {"rbac.modules": "namespace-admin", "rbac.moduleCRDs": True}
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}"

    def strategy() -> str:
        return str(json.loads(site.request("GET", crd).text)["spec"]["conversion"]["strategy"])

    with (
        charts.installed(devcluster, site, rights) as installation,
        charts.operating(installation) as operator,
    ):
        operator.wait_until(
            lambda: "of module shop failed" in guarded.create(site, "refused").text, "it is asked"
        )
        operator.wait_until(lambda: strategy() == "Webhook", "its objects are converted")
        things = f"/apis/{group}/{{}}/namespaces/{site.namespace}/things"
        body = {"apiVersion": f"{group}/v2", "kind": "Thing", "metadata": {"name": "a"}}
        assert site.request("POST", things.format("v2"), body).is_success
        devcluster.run_helm("uninstall", charts.RELEASE, f"--namespace={site.namespace}")
        operator_process.wait_until(lambda: guarded.create(site, "taken").is_success, "nobody is asked")
    assert not site.request("GET", things.format("v1")).is_success, "what the guide warns of"
    page = (charts.CHART.parents[2] / "docs" / "how-to" / "install.md").read_text("utf-8")
    (script,) = re.findall(
        r"^```bash\n(.*?)^```$", page.split("\n## Remove\n")[1].split("\n## ")[0], re.DOTALL | re.MULTILINE
    )
    environment = {
        "PATH": f"{devcluster.bin}:{os.environ['PATH']}",
        "KUBECONFIG": str(devcluster.kubeconfig),
        "HOME": str(site.root),
    }
    told = commands.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("operator addons", f"operator {site.namespace}")],
        timeout=60,
        env=environment,
    )
    assert "things" in told.stdout
    assert strategy() == "None"
    operator_process.wait_until(
        lambda: site.request("GET", things.format("v1")).is_success, "it is read as it is stored"
    )


@pytest.mark.slow
def test_webhooks_of_an_operator_without_the_chart_go_with_its_namespace(
    devcluster: handle.DevCluster, site: operator_site.Site, helms: Mapping[str, pathlib.Path]
) -> None:
    cluster = Cluster(devcluster, site, helms["helm3"])
    with admitting.admitting(site, devcluster, WEBHOOK_FAILURE_POLICY="Fail") as operator:
        assert cluster.are_filled()
        operator.kill()
        devcluster.delete_namespace(site.namespace)
        operator_process.wait_until(lambda: cluster.configurations() == [], "the garbage collector has come")
