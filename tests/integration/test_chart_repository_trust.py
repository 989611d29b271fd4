"""Whom the operator trusts when it pulls charts: digests, credentials, CAs, and what archives contain."""

import io
import json
import pathlib
import tarfile

import pytest

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, operator_process, operator_site, pulling

pytestmark = pytest.mark.integration


def test_a_chart_has_the_digest_that_module_yaml_says_or_is_not_used(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    digest = registry.push(archive)
    wrong = f"sha256:{'0' * 64}"
    pulling.write_module(site, registry.address, f", digest: '{wrong}'")
    operator = site.start(WATCH_MODULES="true")
    try:
        said = f"has the digest {digest}, but module.yaml wants {wrong}"
        operator.wait_until(lambda: said in pulling.state(site), "the error names both")
        assert "Failed" in pulling.state(site)
        assert (site.revisions(), pulling.cached(site)) == ({}, [])
        pulling.write_module(site, registry.address, f", digest: '{digest}'")
        operator.wait_until(lambda: site.deployed() == {"web": 1}, "with the right one it is used")
    finally:
        operator.kill()


@pytest.mark.slow
def test_a_private_registry_is_reached_through_a_proxy_with_credentials_and_a_private_ca(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path, helm: pathlib.Path
) -> None:
    host = "registry.example.com"
    site.use_helm(helm)
    registry.push(archive)
    tls = chart_repositories.authority(site.root, host)
    gate = chart_repositories.Gate(upstream=registry.port, password=chart_repositories.PASSWORD)
    gate.opened.set()
    pulling.write_module(site, f"oci://{host}/charts")
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


def test_an_identity_token_lets_in_and_is_shown_nowhere(
    site: operator_site.Site, gate: chart_repositories.Gate, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    gate.identity = "canary-of-an-identity"
    gate.opened.set()
    pulling.write_module(site, gate.address)
    config = site.root / "config.json"
    for identity, told in (("canary-of-another", "with CHART_CREDENTIALS"), (gate.identity, "install")):
        config.write_text(
            json.dumps({"auths": {f"127.0.0.1:{gate.port}": {"auth": "", "identitytoken": identity}}})
        )
        ran = site.command("plan", CHART_CREDENTIALS=str(config))
        assert told in ran.stdout, ran
        assert "canary" not in ran.stdout + ran.stderr


def test_a_registry_elsewhere_is_not_reached_by_plain_http(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    registry.push(archive)
    pulling.write_module(site, "oci://registry.example.com/charts")
    with chart_repositories.proxy(registry.port, []) as port:
        address = f"http://127.0.0.1:{port}"
        told = site.command("plan", HTTPS_PROXY=address, HTTP_PROXY=address).stdout
    assert "serve it by HTTPS; plain HTTP is only for this machine itself" in told, told


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
        pulling.write_module(site, f"https://{host}")
        config = site.root / "config.json"
        chart_repositories.credentials(config, host, password="canary-of-another")
        environment = {"CHART_CREDENTIALS": str(config), "CHART_CA_FILE": str(tls.ca)}
        told = site.command("plan", **environment).stdout
        assert "401 Unauthorized; name a Docker configuration that may read it with CHART_CREDENTIALS" in told
        chart_repositories.credentials(config, host)
        operator = site.start(**environment).wait_ready().wait_idle()
        operator.stop()
    assert (site.revisions(), pulling.pulls(site)) == ({"web": 1}, 1)
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


@pytest.mark.slow
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
        pulling.write_module(site, f"http://127.0.0.1:{gate.port}")
        found = site.command("plan").stdout
        assert "but index.yaml says sha256:" in found, found
        listed.unlink()
        chart_repositories.index(devcluster.helm, archive.parent)
        found = site.command("plan").stdout
        assert "neither file nor directory: 'upstream/files/link'" in found, found
        assert pulling.cached(site) == []
        archive.write_bytes(good)
        listed.unlink()
        chart_repositories.index(devcluster.helm, archive.parent)
        site.start().wait_ready().wait_idle().stop()
    assert site.revisions() == {"web": 1}
