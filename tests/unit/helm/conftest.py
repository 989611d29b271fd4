"""A release manager over fakes, and a module with a chart."""

import pathlib
from collections.abc import Iterator

import pytest

from tests.support import clocks
from tests.unit.helm import fakes


@pytest.fixture(autouse=True)
def _without_threads() -> Iterator[None]:
    with clocks.without_threads():
        yield


@pytest.fixture
def world(tmp_path: pathlib.Path) -> fakes.World:
    api = fakes.FakeApi()
    return fakes.World(api, fakes.FakeHelm(api), tmp_path / "workspace")


@pytest.fixture
def module_dir(tmp_path: pathlib.Path) -> pathlib.Path:
    directory = tmp_path / "modules" / "010-web"
    (directory / "templates").mkdir(parents=True)
    (directory / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.0.1\n")
    (directory / "templates" / "config.yaml").write_text("kind: ConfigMap\n")
    return directory
