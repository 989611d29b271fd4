"""Charts that are pulled from a registry, or from a repository with an ``index.yaml``."""

import io
import json
import pathlib
import re
import shutil
import tarfile
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import pytest

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, charts, operator_process, operator_site

pytestmark = pytest.mark.integration

_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.fixture
def registry(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[chart_repositories.Registry]:
    with chart_repositories.registry(devcluster.helm, tmp_path) as made:
        yield made


@pytest.fixture
def archive(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> pathlib.Path:
    return chart_repositories.package(tmp_path / "upstream", devcluster.helm)


def write_module(
    site: operator_site.Site, repository: str, more: str = "", version: str = "1.2.3"
) -> pathlib.Path:
    module = site.modules / "010-web"
    if not module.is_dir():
        site.module("010-web", values="webEnabled: true\nweb: {replicas: 2}")
    (module / "module.yaml").write_text(
        f"chart: {{repository: {repository}, name: upstream, version: {version}{more}}}"
    )
    return module


def seen(site: operator_site.Site) -> dict[str, Any]:
    """The values that the chart got."""
    data = site.data("web-seen")
    assert data is not None
    found: dict[str, Any] = json.loads(data["values"])
    return found


def pulls(site: operator_site.Site) -> int:
    return site.helm_calls().count("pull")


@pytest.mark.parametrize("helm", ["helm3", "helm4"], indirect=True)
def test_a_chart_of_a_registry_is_pulled_once_and_used_offline_from_then_on(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    registry.push(archive)
    write_module(site, registry.address)
    operator = site.start().wait_ready().wait_idle()
    try:
        assert seen(site) == {"replicas": 2}
        assert pulls(site) == 1
    finally:
        operator.stop()
    registry.stop()
    calls = len(site.helm_calls())
    operator = site.start().wait_ready().wait_idle()
    try:
        assert len(site.helm_calls()) == calls
        site.config(web="replicas: 3")
        operator_process.wait_until(lambda: seen(site) == {"replicas": 3}, "the edit is released")
        assert "replicas" in site.command("module", "render", "web").stdout
    finally:
        operator.stop()
    assert (pulls(site), site.revisions()) == (1, {"web": 2})


def state(site: operator_site.Site, module: str = "web") -> str:
    return site.command("module", "describe", module).stdout


def cached(site: operator_site.Site) -> list[str]:
    """The names of the charts in the cache, and of whatever else lies there."""
    charts = site.root / "tmp" / "charts"
    return sorted(path.name for path in charts.iterdir()) if charts.is_dir() else []


def write_neighbour(site: operator_site.Site) -> None:
    site.module("020-db", {"a": "b"}, values="dbEnabled: true")


def test_a_registry_that_is_away_holds_up_only_modules_whose_chart_is_not_in_the_cache(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    registry.push(archive)
    registry.stop()
    write_module(site, registry.address)
    write_neighbour(site)
    operator = site.start()
    try:
        operator_process.wait_until(lambda: "Ready" in state(site, "db"), "the other module runs")
        found = state(site)
        assert "Failed" in found
        assert f"module web: cannot pull chart upstream 1.2.3 of {registry.address}: " in found
        assert (
            "connection refused; it is tried again; check that the operator reaches the repository" in found
        )
        assert (site.revisions(), cached(site)) == ({"db": 1}, [])
    finally:
        operator.kill()


def test_a_module_runs_when_its_registry_is_back(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    gate = chart_repositories.Gate(upstream=registry.port)
    registry.push(archive)
    with chart_repositories.serving(gate):
        write_module(site, f"oci://127.0.0.1:{gate.port}/charts")
        write_neighbour(site)
        operator = site.start()
        try:
            operator_process.wait_until(lambda: gate.requests, "the pull hangs")
            operator_process.wait_until(lambda: "Ready" in state(site, "db"), "the other module runs")
            assert "still being pulled; the module runs when it is there" in state(site)
            gate.opened.set()
            operator.wait_ready()
            assert site.revisions() == {"web": 1, "db": 1}
            assert pulls(site) == 1
        finally:
            operator.kill()


def test_a_pull_that_is_killed_leaves_nothing_that_is_used(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    gate = chart_repositories.Gate(upstream=registry.port)
    registry.push(archive)
    with chart_repositories.serving(gate):
        write_module(site, f"oci://127.0.0.1:{gate.port}/charts")
        operator = site.start()
        operator_process.wait_until(lambda: gate.requests, "the pull hangs")
        operator.kill()
        assert cached(site) == []
        gate.opened.set()
        site.start().wait_ready().wait_idle().stop()
    assert (site.revisions(), len(cached(site))) == ({"web": 1}, 1)


def test_a_chart_has_the_digest_that_module_yaml_says_or_is_not_used(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    digest = registry.push(archive)
    wrong = f"sha256:{'0' * 64}"
    write_module(site, registry.address, f", digest: '{wrong}'")
    operator = site.start()
    try:
        operator_process.wait_until(lambda: "Failed" in state(site), "the module fails")
        said = f"has the digest {digest}, but module.yaml wants {wrong}"
        operator_process.wait_until(lambda: said in state(site), "the error names both")
        assert (site.revisions(), cached(site)) == ({}, [])
    finally:
        operator.kill()
    write_module(site, registry.address, f", digest: '{digest}'")
    site.start().wait_ready().wait_idle().stop()
    assert site.revisions() == {"web": 1}


def test_a_new_version_is_pulled_and_upgrades_and_plan_says_so_before(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    archive: pathlib.Path,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    registry.push(archive)
    registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, "2.0.0"))
    write_module(site, registry.address)
    site.start().wait_ready().wait_idle().stop()
    write_module(site, registry.address, version="2.0.0")
    assert site.command("values", "check").returncode == 0
    assert pulls(site) == 1
    planned = site.command("plan", "-o", "json")
    assert json.loads(planned.stdout)["modules"], "no word of the pull is in the way"
    assert (pulls(site), planned.returncode) == (2, 2), planned
    assert "upgrade" in planned.stdout
    registry.stop()
    site.start().wait_ready().wait_idle().stop()
    data = site.data("web-seen")
    assert data is not None
    assert (data["version"], site.revisions(), pulls(site)) == ("2.0.0", {"web": 2}, 2)


def test_a_new_version_is_pulled_while_the_operator_runs(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    archive: pathlib.Path,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    registry.push(archive)
    write_module(site, registry.address)
    operator = site.start(WATCH_MODULES="true").wait_ready().wait_idle()
    try:
        operator.wait_logged("chart upstream 1.2.3 of", "pulled")
        write_module(site, registry.address, version="2.0.0")
        operator_process.wait_until(lambda: "Failed" in state(site), "the new version is not there yet")
        assert "correct chart.name or chart.version in module.yaml" in state(site)
        assert site.revisions() == {"web": 1}
        registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, "2.0.0"))
        operator_process.wait_until(lambda: site.revisions() == {"web": 2}, "the new version is released")
    finally:
        operator.stop()


def test_two_processes_may_pull_into_one_cache_at_the_same_time(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    gate = chart_repositories.Gate(upstream=registry.port)
    registry.push(archive)
    shared = str(site.root / "shared")
    with chart_repositories.serving(gate), futures.ThreadPoolExecutor() as threads:
        write_module(site, f"oci://127.0.0.1:{gate.port}/charts")
        plans = [threads.submit(site.command, "plan", CHART_CACHE_DIR=shared) for _ in range(2)]
        operator_process.wait_until(lambda: len(gate.requests) == 2, "both pull")
        gate.opened.set()
        assert [plan.result().returncode for plan in plans] == [2, 2]
    (chart,) = (site.root / "shared").iterdir()
    assert (chart / "Chart.yaml").is_file()


def test_definitions_of_a_pulled_chart_are_applied(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    group = f"pulled.{site.namespace}.example.com"
    more = {"crds/things.yaml": _CRD.replace("GROUP", group)}
    registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, more=more))
    write_module(site, registry.address)
    operator = site.start().wait_ready().wait_idle()
    try:
        assert f"things.{group}" in site.kubectl("get", "crd", "--output=name")
    finally:
        operator.stop()


def test_the_schema_of_a_pulled_chart_checks_edits_plans_and_files(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    more = {"values.schema.json": json.dumps({"properties": {"replicas": {"minimum": 1}}})}
    registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, more=more))
    write_module(site, registry.address)
    site.config(web="replicas: 0")
    told = "web.replicas: must be at least 1, not 0"
    assert told in site.command("plan").stdout
    assert pulls(site) == 1
    site.config(web="replicas: 3")
    operator = site.start().wait_ready().wait_idle()
    try:
        site.config(web="replicas: 0")
        operator.wait_logged(told)
        assert seen(site) == {"replicas": 3}
    finally:
        operator.stop()
    (site.modules / "010-web" / "values.yaml").write_text("webEnabled: true\nweb: {replicas: 0}")
    checked = site.command("values", "check")
    assert told in checked.stdout + checked.stderr
    assert pulls(site) == 1


@pytest.mark.parametrize("helm", ["helm3", "helm4"], indirect=True)
def test_a_private_registry_is_reached_through_a_proxy_with_credentials_and_a_private_ca(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path, helm: pathlib.Path
) -> None:
    host = "registry.example.com"
    site.use_helm(helm)
    registry.push(archive)
    tls = chart_repositories.authority(site.root, host)
    gate = chart_repositories.Gate(upstream=registry.port, password=chart_repositories.PASSWORD)
    gate.opened.set()
    write_module(site, f"oci://{host}/charts")
    asked: list[str] = []
    with chart_repositories.serving(gate, tls), chart_repositories.proxy(gate.port, asked) as port:
        environment = {
            "HTTPS_PROXY": f"http://127.0.0.1:{port}",
            "NO_PROXY": "127.0.0.1,localhost",
            "CHART_CREDENTIALS": str(chart_repositories.credentials(site.root / "config.json", host)),
        }
        told = site.command("plan", **environment)
        assert "name the CA of the repository with CHART_CA_FILE" in told.stdout
        environment |= {"CHART_CA_FILE": str(tls.ca)}
        refused = environment | {"CHART_CREDENTIALS": ""}
        assert "that may read it with CHART_CREDENTIALS" in site.command("plan", **refused).stdout
        operator = site.start(**environment).wait_ready().wait_idle()
        operator.stop()
    assert site.revisions() == {"web": 1}
    assert set(asked) == {f"{host}:443"}
    assert_no_password(site, operator, told.stdout)


@pytest.mark.parametrize("helm", ["helm3", "helm4"], indirect=True)
def test_a_registry_elsewhere_is_not_reached_by_plain_http(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    registry.push(archive)
    write_module(site, "oci://registry.example.com/charts")
    with chart_repositories.proxy(registry.port, []) as port:
        address = f"http://127.0.0.1:{port}"
        told = site.command("plan", HTTPS_PROXY=address, HTTP_PROXY=address).stdout
    assert "serve it by HTTPS; plain HTTP is only for this machine itself" in told, told


@pytest.mark.parametrize("helm", ["helm3", "helm4"], indirect=True)
def test_a_chart_of_an_index_is_pulled_with_credentials_and_a_private_ca(
    site: operator_site.Site,
    archive: pathlib.Path,
    helm: pathlib.Path,
    devcluster: handle.DevCluster,
) -> None:
    site.use_helm(helm)
    chart_repositories.index(devcluster.helm, archive.parent)
    tls = chart_repositories.authority(site.root, "127.0.0.1")
    gate = chart_repositories.Gate(archive.parent, password=chart_repositories.PASSWORD)
    gate.opened.set()
    with chart_repositories.serving(gate, tls):
        host = f"127.0.0.1:{gate.port}"
        write_module(site, f"https://{host}")
        config = site.root / "config.json"
        chart_repositories.credentials(config, host, password="canary-of-another")
        environment = {"CHART_CREDENTIALS": str(config), "CHART_CA_FILE": str(tls.ca)}
        told = site.command("plan", **environment).stdout
        assert "401 Unauthorized; name a Docker configuration that may read it with CHART_CREDENTIALS" in told
        chart_repositories.credentials(config, host)
        operator = site.start(**environment).wait_ready().wait_idle()
        operator.stop()
    assert (site.revisions(), pulls(site)) == ({"web": 1}, 1)
    assert_no_password(site, operator, told)


def assert_no_password(
    site: operator_site.Site, operator: operator_process.OperatorProcess, *texts: str
) -> None:
    calls = (site.root / "helm-calls").read_text()
    for text in (calls, operator.log, *texts):
        assert "canary" not in text
    left = [path for path in site.root.rglob("*") if path.is_file() and path.name != "config.json"]
    secrets = [b"canary", *(part.encode() for part in _encoded(site.root / "config.json"))]
    assert [path for path in left if any(secret in path.read_bytes() for secret in secrets)] == []


def _encoded(config: pathlib.Path) -> list[str]:
    return [entry["auth"] for entry in json.loads(config.read_text())["auths"].values()]


def test_an_archive_must_be_what_index_yaml_says_and_stay_in_its_directory(
    site: operator_site.Site, archive: pathlib.Path, devcluster: handle.DevCluster
) -> None:
    listed = chart_repositories.index(devcluster.helm, archive.parent)
    good = archive.read_bytes()
    with tarfile.open(archive, "w:gz") as packed:
        link = tarfile.TarInfo("upstream/files/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        packed.addfile(link)
        chart = tarfile.TarInfo("upstream/Chart.yaml")
        text = b"apiVersion: v2\nname: upstream\nversion: 1.2.3\n"
        chart.size = len(text)
        packed.addfile(chart, io.BytesIO(text))
    gate = chart_repositories.Gate(archive.parent)
    gate.opened.set()
    with chart_repositories.serving(gate):
        write_module(site, f"http://127.0.0.1:{gate.port}")
        found = site.command("plan").stdout
        assert "but index.yaml says sha256:" in found, found
        listed.unlink()
        chart_repositories.index(devcluster.helm, archive.parent)
        found = site.command("plan").stdout
        assert "neither file nor directory: 'upstream/files/link'" in found, found
        assert cached(site) == []
        archive.write_bytes(good)
        listed.unlink()
        chart_repositories.index(devcluster.helm, archive.parent)
        site.start().wait_ready().wait_idle().stop()
    assert site.revisions() == {"web": 1}


def test_the_example_of_a_public_chart_is_off_and_installs_it_when_it_is_switched_on(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    example = charts.ROOT / "modules" / "040-podinfo"
    assert "podinfoEnabled: false" in (example.parent / "values.yaml").read_text()
    module = site.modules / example.name
    shutil.copytree(example, module)
    text = (module / "module.yaml").read_text()
    assert chart_repositories.PODINFO_ADDRESS in text
    (module / "module.yaml").write_text(text.replace(chart_repositories.PODINFO_ADDRESS, registry.address))
    version = re.search(r"version: (\S+)", text)
    assert version is not None
    registry.push(chart_repositories.podinfo(tmp_path / "public", devcluster.helm, version[1]))
    site.config(podinfoEnabled="true", podinfo="replicaCount: 3")
    operator = site.start().wait_ready().wait_idle()
    try:
        spec = json.loads(site.kubectl("get", "deployment", "podinfo", "-o", "json"))["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        assert (spec["replicas"], container["env"][0]["value"]) == (3, "Installed by addon-operator")
    finally:
        operator.stop()
