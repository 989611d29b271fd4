"""Charts that are pulled from a registry, or from a repository with an ``index.yaml``."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, operator_process, operator_site

pytestmark = pytest.mark.integration


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
