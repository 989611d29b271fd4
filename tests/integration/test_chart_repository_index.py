"""Repositories with an ``index.yaml``: digests, where archives come from, and what is too large."""

import pathlib
import re

import pytest

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, operator_site, pulling

pytestmark = pytest.mark.integration

_MIB = 1024 * 1024


def open_gate(files: pathlib.Path, **fields: str) -> chart_repositories.Gate:
    gate = chart_repositories.Gate(files, **fields)  # type: ignore[arg-type]  # mypy does not match the keywords
    gate.opened.set()
    return gate


@pytest.mark.slow
def test_a_digest_is_that_of_the_archive_whatever_the_index_says(
    site: operator_site.Site, archive: pathlib.Path, devcluster: handle.DevCluster
) -> None:
    listed = chart_repositories.index(devcluster.helm, archive.parent)
    found = re.search(r"digest: (\S+)", listed.read_text())
    assert found is not None
    digest = f"sha256:{found[1]}"
    with chart_repositories.serving(open_gate(archive.parent)) as gate:
        address = f"http://127.0.0.1:{gate.port}"

        def planned(wanted: str, cache: str) -> str:
            pulling.write_module(site, address, f", digest: '{wanted}'")
            return site.command("plan", CHART_CACHE_DIR=str(site.root / cache)).stdout

        wrong = f"sha256:{'0' * 64}"
        assert f"has the digest {digest}, but module.yaml wants {wrong}" in planned(wrong, "first")
        assert "install" in planned(digest, "first")
        listed.write_text(re.sub(r"\n *digest: .*", "", listed.read_text()))
        assert "digest" not in listed.read_text()
        assert "install" in planned(digest, "second"), "the index need not say it"
        archive.unlink()
        changed = chart_repositories.package(
            archive.parent, devcluster.helm, more={"values.yaml": "replicas: 5\n"}
        )
        assert changed == archive
        said = planned(digest, "third")
        assert f", but module.yaml wants {digest}" in said
        assert "make sure that the chart was not replaced, then correct chart.digest" in said
        assert "install" in planned(digest, "second"), "what was right stays in the cache"
    assert [len(list((site.root / each).iterdir())) for each in ("first", "second", "third")] == [1, 1, 0]


def test_credentials_follow_to_no_other_host(
    site: operator_site.Site, archive: pathlib.Path, helm: pathlib.Path, devcluster: handle.DevCluster
) -> None:
    site.use_helm(helm)
    listed = chart_repositories.index(devcluster.helm, archive.parent)
    own = open_gate(archive.parent, password=chart_repositories.PASSWORD)
    with chart_repositories.serving(own), chart_repositories.serving(open_gate(archive.parent)) as other:
        host = f"127.0.0.1:{own.port}"
        environment = {
            "CHART_CREDENTIALS": str(chart_repositories.credentials(site.root / "config.json", host))
        }
        pulling.write_module(site, f"http://{host}")
        elsewhere = f"http://localhost:{other.port}/{archive.name}"
        own.moved[f"/{archive.name}"] = elsewhere
        assert "install" in site.command("plan", CHART_CACHE_DIR="redirected", **environment).stdout
        listed.write_text(listed.read_text().replace(f"- {archive.name}", f"- {elsewhere}"))
        assert "install" in site.command("plan", CHART_CACHE_DIR="named", **environment).stdout
    assert own.credentials
    assert other.requests == [f"/{archive.name}"] * 2
    assert other.credentials == set()


@pytest.mark.slow
def test_a_redirect_to_plain_http_elsewhere_is_not_followed(
    site: operator_site.Site, archive: pathlib.Path, helm: pathlib.Path, devcluster: handle.DevCluster
) -> None:
    site.use_helm(helm)
    chart_repositories.index(devcluster.helm, archive.parent)
    tls = chart_repositories.authority(site.root, "127.0.0.1")
    own, proxy = open_gate(archive.parent), open_gate(archive.parent)
    own.moved["/index.yaml"] = "http://charts.example.com/index.yaml"
    with chart_repositories.serving(own, tls), chart_repositories.serving(proxy):
        pulling.write_module(site, f"https://127.0.0.1:{own.port}")
        environment = {"CHART_CA_FILE": str(tls.ca), "HTTP_PROXY": f"http://127.0.0.1:{proxy.port}"}
        told = site.command("plan", **environment, http_proxy=environment["HTTP_PROXY"]).stdout
        assert "serve it by HTTPS; plain HTTP is only for this machine itself" in told, told
        del own.moved["/index.yaml"]
        assert "install" in site.command("plan", **environment).stdout
    assert proxy.requests == []


@pytest.mark.slow
def test_what_a_repository_serves_is_bounded(
    site: operator_site.Site, archive: pathlib.Path, helm: pathlib.Path, devcluster: handle.DevCluster
) -> None:
    site.use_helm(helm)
    listed = chart_repositories.index(devcluster.helm, archive.parent)
    good = listed.read_text()
    aliases = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with chart_repositories.serving(open_gate(archive.parent)) as gate:
        pulling.write_module(site, f"http://127.0.0.1:{gate.port}")
        for text, told in (
            (good + "#" * (33 * _MIB), "the index.yaml of the repository is too large; it may have 32 MiB"),
            (f"a0: &a0 [x]\n{aliases}{good}", "excessive aliasing"),
        ):
            listed.write_text(text)
            assert told in site.command("plan").stdout
        listed.write_text(good)
        with archive.open("r+b") as file:
            file.truncate(33 * _MIB)
        assert "its archive is too large; it may have 32 MiB" in site.command("plan").stdout
    assert pulling.cached(site) == []
    assert list((site.root / "tmp").rglob("pull-*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("helm", ["helm3", "helm4"], indirect=True)
def test_an_index_of_a_hundred_megabytes_takes_no_more_memory_than_helm_may_have(
    site: operator_site.Site, archive: pathlib.Path, helm: pathlib.Path, devcluster: handle.DevCluster
) -> None:
    """Its lists would take some gigabytes."""
    site.use_helm(helm)
    listed = chart_repositories.index(devcluster.helm, archive.parent)
    listed.write_text(listed.read_text() + "more:\n" + "- a: 1\n" * (100 * _MIB // 7))
    with chart_repositories.serving(open_gate(archive.parent)) as gate:
        pulling.write_module(site, f"http://127.0.0.1:{gate.port}")
        assert "the index.yaml of the repository is too large" in site.command("plan").stdout
    assert pulling.cached(site) == []
