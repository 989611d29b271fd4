"""Binaries of an envtest directory."""

import json
import pathlib

from addon_operator.devcluster.binaries import assets
from tests.support import rows
from tests.unit.devcluster import fakes

ALL = ["kube-apiserver", "etcd", "kubectl", "kube-controller-manager"]


def write_assets(directory: pathlib.Path, version: str) -> pathlib.Path:
    client = json.dumps({"clientVersion": {"gitVersion": version}})
    fakes.write_program(directory / "kube-apiserver", f"echo Kubernetes {version}")
    fakes.write_program(directory / "kubectl", f"echo '{client}'")
    fakes.write_program(directory / "etcd", "echo etcd Version: 3.5.0")
    return directory


def find(directory: pathlib.Path, minor: str, reporter: fakes.Recorder | None = None) -> set[str]:
    environ = {assets.VARIABLE: str(directory)}
    return set(assets.EnvtestAssets(environ, reporter or fakes.Recorder()).find(ALL, minor))


def test_without_the_variable_nothing_is_found() -> None:
    reporter = fakes.Recorder()
    assert assets.EnvtestAssets({}, reporter).find(ALL, "1.36") == {}
    assert reporter.said == []


def test_the_three_programs_of_envtest_are_used(tmp_path: pathlib.Path) -> None:
    directory = write_assets(tmp_path, "v1.36.0")
    fakes.write_program(directory / "kube-controller-manager", "echo Kubernetes v1.36.0")
    assert find(directory, "1.36") == {"kube-apiserver", "kubectl", "etcd"}


def test_programs_of_another_version_are_not_used(tmp_path: pathlib.Path) -> None:
    reporter = fakes.Recorder()
    assert find(write_assets(tmp_path, "v1.33.1"), "1.36", reporter) == {"etcd"}
    assert reporter.said[0] == f"{tmp_path}/kube-apiserver is version 1.33, not 1.36: searching further"


@rows.each("script", ["exit 1", "echo nonsense"], ids=["fails", "says nonsense"])
def test_a_program_without_a_version_is_not_used(tmp_path: pathlib.Path, script: str) -> None:
    reporter = fakes.Recorder()
    write_assets(tmp_path, "v1.36.0")
    fakes.write_program(tmp_path / "kubectl", script)
    assert find(tmp_path, "1.36", reporter) == {"kube-apiserver", "etcd"}
    assert reporter.said == [f"{tmp_path}/kubectl is version unknown, not 1.36: searching further"]


def test_a_program_that_is_missing_is_reported_once(tmp_path: pathlib.Path) -> None:
    reporter = fakes.Recorder()
    (write_assets(tmp_path, "v1.36.0") / "kubectl").unlink()
    envtest = assets.EnvtestAssets({assets.VARIABLE: str(tmp_path)}, reporter)
    for _ in range(2):
        assert set(envtest.find(ALL, "1.36")) == {"kube-apiserver", "etcd"}
    assert reporter.said == [
        f"{assets.VARIABLE} names {tmp_path}, but there is no program kubectl: searching further"
    ]


def test_a_directory_that_is_not_there_is_reported_once(tmp_path: pathlib.Path) -> None:
    reporter = fakes.Recorder()
    environ = {assets.VARIABLE: str(tmp_path / "none")}
    envtest = assets.EnvtestAssets(environ, reporter)
    for _ in range(2):
        assert envtest.find(ALL, "1.36") == {}
    assert reporter.said == [
        f"{assets.VARIABLE} names {tmp_path}/none, which is not a directory: searching further"
    ]


def test_links_are_followed_to_what_they_stand_for(tmp_path: pathlib.Path) -> None:
    real = write_assets(tmp_path / "real", "v1.36.0")
    links = tmp_path / "links"
    links.mkdir()
    (links / "etcd").symlink_to(real / "etcd")
    environ = {assets.VARIABLE: str(links)}
    assert assets.EnvtestAssets(environ, fakes.Recorder()).find(["etcd"], "3.7") == {"etcd": real / "etcd"}
