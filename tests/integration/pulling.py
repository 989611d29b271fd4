"""A module whose chart is pulled from a repository."""

import pathlib
from collections.abc import Iterator

import pytest

from addon_operator.devcluster import handle
from tests.integration import chart_repositories, operator_site


@pytest.fixture
def registry(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> Iterator[chart_repositories.Registry]:
    with chart_repositories.registry(devcluster.helm, tmp_path) as made:
        yield made


@pytest.fixture
def archive(devcluster: handle.DevCluster, tmp_path: pathlib.Path) -> pathlib.Path:
    return chart_repositories.package(tmp_path / "upstream", devcluster.helm)


@pytest.fixture
def gate(registry: chart_repositories.Registry, archive: pathlib.Path) -> Iterator[chart_repositories.Gate]:
    """A gate, still shut, before a registry that has the chart."""
    registry.push(archive)
    with chart_repositories.serving(chart_repositories.Gate(upstream=registry.port)) as made:
        yield made


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


def pulls(site: operator_site.Site) -> int:
    return site.helm_calls().count("pull")


def state(site: operator_site.Site, module: str = "web") -> str:
    """All that an operator lists of the module."""
    return str(site.module_rows().get(module))


def cached(site: operator_site.Site) -> list[str]:
    """The names of the charts in the cache, and of whatever else lies there."""
    charts = site.root / "tmp" / "charts"
    return sorted(path.name for path in charts.iterdir()) if charts.is_dir() else []


def write_neighbour(site: operator_site.Site) -> None:
    site.module("020-db", {"a": "b"}, values="dbEnabled: true")
