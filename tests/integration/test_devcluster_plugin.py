"""The pytest fixtures as an author of modules uses them: in a project of its own."""

import os
import pathlib
import sys

import pytest

from addon_operator.devcluster import locations
from addon_operator.process import commands

pytestmark = pytest.mark.integration

AS_A_PLUGIN = 'pytest_plugins = ["addon_operator.devcluster.pytest_plugin"]\n'
BY_NAME = "from addon_operator.devcluster.pytest_plugin import devcluster, devcluster_options, namespace\n"
TESTS = """\
def test_one(devcluster, namespace):
    devcluster.run_kubectl("create", "configmap", "-n", namespace, "settings")
    assert devcluster.run_helm("list", "-n", namespace, "--short").stdout == ""


def test_two(devcluster, namespace):
    assert "settings" not in devcluster.run_kubectl("get", "configmaps", "-n", namespace).stdout


def test_that_fails(devcluster):
    assert devcluster.version == "v0"
"""


class Project:
    def __init__(self, root: pathlib.Path, package: pathlib.Path) -> None:
        self.root = root
        self.clusters = root / "clusters"
        self._env = {
            **os.environ,
            "PYTHONPATH": str(package),
            locations.STATE_VARIABLE: str(self.clusters),
        }
        (root / "pytest.ini").write_text("[pytest]\n")

    def test(self, conftest: str, tests: str, **env: str) -> str:
        (self.root / "conftest.py").write_text(conftest)
        (self.root / "test_module.py").write_text(tests)
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header", str(self.root)]
        ended = commands.run(argv, env={**self._env, **env}, cwd=self.root, timeout=300, check=False)
        return ended.stdout


@pytest.fixture
def project(tmp_path: pathlib.Path, pytestconfig: pytest.Config) -> Project:
    return Project(tmp_path, pytestconfig.rootpath / "operator")


@pytest.mark.parametrize(
    "conftest",
    [
        pytest.param(AS_A_PLUGIN, id="as a plugin"),
        # The tests of this repository have them by name, too.
        pytest.param(BY_NAME, id="by name", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_tests_get_a_cluster_that_is_gone_afterwards(project: Project, conftest: str) -> None:
    shown = project.test(conftest, TESTS)
    assert "1 failed, 2 passed" in shown
    assert list(project.clusters.iterdir()) == []


def test_without_binaries_a_test_fails_with_one_sentence(project: Project) -> None:
    cache = project.root / "cache"
    cache.write_text("a file where a directory should be")
    shown = project.test(AS_A_PLUGIN, TESTS, **{locations.CACHE_VARIABLE: str(cache / "sub")})
    assert "there is no control plane for this test: the directory" in shown
    assert "Traceback" not in shown
    assert list(project.clusters.iterdir()) == []
