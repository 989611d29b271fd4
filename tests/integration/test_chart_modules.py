"""Modules that the chart mounts: from an image, from Git, from a ConfigMap."""

import contextlib
import io
import json
import os
import pathlib
import secrets
import subprocess
import tarfile
from collections.abc import Iterator, Mapping

import pytest

from addon_operator.devcluster import cluster, handle, layout, locations, reporters
from addon_operator.devcluster.binaries import binaries, components
from tests.integration import charts

pytestmark = pytest.mark.integration

_TREE = "/var/lib/addon-operator/modules/tree"
IMAGE: dict[str, object] = {
    "modules.image.reference": "registry.example/modules:1.0.0",
    "modules.image.subPath": "modules",
}
GIT: dict[str, object] = {
    "modules.git.repo": "https://git.example/modules.git",
    "modules.git.ref": "main",
    "modules.git.subPath": "modules",
    "modules.git.globalHooksSubPath": "global-hooks",
    "modules.git.credentialsSecret": "git",
}
SSH: dict[str, object] = GIT | {"modules.git.repo": "git@git.example:modules.git"}
CONFIG_MAP: dict[str, object] = {"modules.configMap.name": "modules"}
CACHE: dict[str, object] = {
    "chartCache.existingClaim": "charts",
    "chartCredentialsSecret": "registry",
    "releaseNamespaces": ["edge", "default"],
}
SOURCES = pytest.mark.parametrize(
    "values",
    [IMAGE, GIT, SSH, CONFIG_MAP, CACHE, GIT | {"admission.separate": True}, {"releaseNamespaces": ["*"]}],
    ids=["image", "git", "ssh", "configmap", "cache", "apart", "everywhere"],
)


@pytest.fixture(scope="module")
def helms() -> Mapping[str, pathlib.Path]:
    return charts.helm_binaries()


@pytest.fixture
def helm(helms: Mapping[str, pathlib.Path]) -> pathlib.Path:
    return helms["helm4"]


def pod_of(helm: pathlib.Path, values: dict[str, object]) -> charts.Object:
    deployment = charts.only(charts.render(helm, values), "Deployment")
    pod: charts.Object = deployment["spec"]["template"]["spec"]
    return pod


def volume(pod: charts.Object, name: str) -> charts.Object:
    found: list[charts.Object] = [each for each in pod["volumes"] if each["name"] == name]
    (only,) = found
    return only


def variables(container: charts.Object) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container["env"]}


@SOURCES
def test_both_helms_render_what_the_api_server_takes_under_the_restricted_standard(
    devcluster: handle.DevCluster,
    helms: Mapping[str, pathlib.Path],
    namespace: str,
    values: dict[str, object],
) -> None:
    values = dict(values)
    if values.get("releaseNamespaces") == ["edge", "default"]:
        values["releaseNamespaces"] = ["default"]
    rendered = [charts.render(helm, values, namespace) for helm in helms.values()]
    assert sorted(map(json.dumps, rendered[0])) == sorted(map(json.dumps, rendered[1]))
    level = "pod-security.kubernetes.io/{}=restricted"
    devcluster.run_kubectl("label", "namespace", namespace, level.format("warn"), level.format("enforce"))
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": rendered[0]})
    done = devcluster.run_kubectl("apply", "--dry-run=server", "-f", "-", stdin=bundle)
    assert done.stdout.count("(server dry run)") == len(rendered[0])
    assert "Warning" not in done.stderr


def test_modules_of_an_image_are_copied_before_the_operator_starts(helm: pathlib.Path) -> None:
    pod = pod_of(helm, IMAGE)
    assert volume(pod, "modules-source")["image"] == {
        "reference": "registry.example/modules:1.0.0",
        "pullPolicy": "IfNotPresent",
    }
    (first,), (operator,) = pod["initContainers"], pod["containers"]
    assert first["image"] == operator["image"]
    assert first["securityContext"] == operator["securityContext"]
    assert variables(operator)["MODULES_DIR"] == f"{_TREE}/modules"
    assert variables(operator)["GLOBAL_HOOKS_DIR"] == "/global-hooks"
    assert "WATCH_MODULES" not in variables(operator)
    (mount,) = [each for each in operator["volumeMounts"] if each["name"] == "modules"]
    assert mount["readOnly"] is True


def test_git_is_checked_out_before_the_operator_starts_and_followed_afterwards(helm: pathlib.Path) -> None:
    pod = pod_of(helm, GIT)
    (first,) = pod["initContainers"]
    operator, beside = pod["containers"]
    env = variables(operator)
    assert env["MODULES_DIR"] == f"{_TREE}/modules"
    assert env["GLOBAL_HOOKS_DIR"] == f"{_TREE}/global-hooks"
    assert env["WATCH_MODULES"] == "yes"
    common = {
        "GITSYNC_REPO": "https://git.example/modules.git",
        "GITSYNC_REF": "main",
        "GITSYNC_ROOT": "/var/lib/addon-operator/modules",
        "GITSYNC_LINK": "tree",
        "HOME": "/tmp",
        "GITSYNC_USERNAME": "",
        "GITSYNC_PASSWORD_FILE": "/etc/git-secret/password",
    }
    assert variables(first) == common | {"GITSYNC_ONE_TIME": "true"}
    assert variables(beside) == common | {"GITSYNC_PERIOD": "30s", "GITSYNC_MAX_FAILURES": "-1"}
    for container in (first, beside):
        assert container["securityContext"] == operator["securityContext"] | {"runAsUser": 65533}
    assert volume(pod, "git-credentials")["secret"]["secretName"] == "git"
    assert "git-credentials" not in [each["name"] for each in operator["volumeMounts"]]
    ssh = variables(pod_of(helm, SSH)["initContainers"][0])
    assert ssh["GITSYNC_SSH_KEY_FILE"] == "/etc/git-secret/ssh-privatekey"
    assert ssh["GITSYNC_SSH_KNOWN_HOSTS_FILE"] == "/etc/git-secret/known_hosts"
    assert "GITSYNC_USERNAME" not in ssh


def test_settings_win_over_what_a_source_of_modules_sets(helm: pathlib.Path) -> None:
    pod = pod_of(helm, GIT | {"settings": {"WATCH_MODULES": "no"}})
    assert variables(pod["containers"][0])["WATCH_MODULES"] == "no"


def test_charts_are_kept_in_a_volume_and_their_credentials_are_mounted(helm: pathlib.Path) -> None:
    pod = pod_of(helm, {})
    env = variables(pod["containers"][0])
    assert "emptyDir" in volume(pod, "charts")
    assert env["CHART_CACHE_DIR"] == "/var/cache/addon-operator/charts"
    assert "CHART_CREDENTIALS" not in env
    assert "initContainers" not in pod
    pod = pod_of(helm, CACHE)
    env = variables(pod["containers"][0])
    assert volume(pod, "charts")["persistentVolumeClaim"] == {"claimName": "charts"}
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "chart-credentials"]
    (item,) = volume(pod, "chart-credentials")["secret"]["items"]
    assert item["key"] == ".dockerconfigjson"
    assert env["CHART_CREDENTIALS"] == f"{mount['mountPath']}/{item['path']}"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (IMAGE | GIT, ["modules.image, modules.git are all set"]),
        ({"modules.git.repo": "https://me:secret@git.example/x"}, ["/modules/git/repo"]),
        ({"modules.git.repo": "/tmp/repo"}, ["/modules/git/repo"]),
        (GIT | {"modules.git.ref": "--upload-pack=x"}, ["/modules/git/ref"]),
        (GIT | {"modules.git.subPath": "../etc"}, ["/modules/git/subPath"]),
        (CONFIG_MAP | {"modules.configMap.maxBytes": 0}, ["maxBytes"]),
        ({"releaseNamespaces": ["Edge"]}, ["/releaseNamespaces/0"]),
        ({"releaseNamespaces": ["*", "edge"]}, ['"*" alone']),
        ({"releaseNamespaces": ["*"], "rbac.modules": "namespace-admin"}, ["cluster-admin"]),
    ],
    ids=str,
)
def test_wrong_values_are_refused(
    helms: Mapping[str, pathlib.Path], values: dict[str, object], words: list[str]
) -> None:
    for helm in helms.values():
        said = charts.refusal(helm, values)
        assert all(word in said for word in words), said


def test_the_chart_says_which_kubernetes_has_image_volumes(helm: pathlib.Path) -> None:
    def ask(version: str) -> "subprocess.CompletedProcess[str]":
        argv = [str(helm), "template", "x", str(charts.CHART), "--kube-version", version]
        return subprocess.run(
            [*argv, *charts.flags(IMAGE)], check=False, capture_output=True, text=True, timeout=60
        )

    refused = ask("v1.30.4")
    assert refused.returncode != 0
    assert "modules.image needs image volumes, which Kubernetes has since 1.31" in refused.stderr
    assert ask("v1.31.0-alpha.1").returncode == 0


class Fetching:
    """The container that brings modules, run on this machine in other directories."""

    def __init__(self, helm: pathlib.Path, values: dict[str, object], root: pathlib.Path) -> None:
        (self._container,) = pod_of(helm, values)["initContainers"]
        self.source, self.target = root / "source", root / "target"
        self.target.mkdir()

    @property
    def tree(self) -> pathlib.Path:
        return self.target / "tree"

    def run(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        here = {"SOURCE": str(self.source), "TARGET": str(self.target), "PATH": os.environ["PATH"]}
        given = variables(self._container) | here | environment
        return subprocess.run(
            self._container["command"], env=given, check=False, capture_output=True, text=True, timeout=60
        )


def archive(path: pathlib.Path, **files: bytes) -> None:
    with tarfile.open(path, "w:gz") as made:
        for name, content in files.items():
            info = tarfile.TarInfo(f"modules/{name}")
            info.size, info.mode = len(content), 0o755
            made.addfile(info, io.BytesIO(content))


def test_an_archive_is_unpacked_anew_at_each_start_with_what_is_executable(
    helm: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    given = Fetching(helm, CONFIG_MAP | {"modules.configMap.subPath": "modules"}, tmp_path)
    for name in ("first", "second"):
        archive(given.source, **{name: b"#!/bin/sh\n"})
        done = given.run()
        assert done.returncode == 0, done.stderr
        assert [each.name for each in (given.tree / "modules").iterdir()] == [name]
        assert os.access(given.tree / "modules" / name, os.X_OK)
        (given.tree / "modules").chmod(0o500)


@pytest.mark.parametrize(
    ("limit", "content", "words"),
    [
        ("100000", b"0" * 1_000_000, "is not a tar.gz archive, or holds more than 100000 bytes"),
        ("100000", None, "is not a tar.gz archive"),
        ("100000", b"x", "has no directory 'modules/other'"),
    ],
    ids=["too large", "no archive", "another directory"],
)
def test_an_archive_that_cannot_be_used_ends_the_container_and_says_why(
    helm: pathlib.Path, tmp_path: pathlib.Path, limit: str, content: bytes | None, words: str
) -> None:
    given = Fetching(helm, CONFIG_MAP, tmp_path)
    if content is None:
        given.source.write_text("no archive")
    else:
        archive(given.source, large=content)
    done = given.run(MAX_BYTES=limit, SUB_PATH="modules/other")
    assert done.returncode == 1
    assert f"ConfigMap modules, key modules.tar.gz, {words}" in done.stderr
    stored = sum(each.stat().st_size for each in given.tree.rglob("*") if each.is_file())
    assert stored <= int(limit)


def test_the_files_of_an_image_are_copied_as_they_are(helm: pathlib.Path, tmp_path: pathlib.Path) -> None:
    given = Fetching(helm, IMAGE, tmp_path)
    hook = given.source / "modules" / "010-web" / "hooks" / "hook.sh"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o555)
    given.source.chmod(0o555)
    for _ in range(2):
        done = given.run()
        assert done.returncode == 0, done.stderr
    copied = given.tree / "modules" / "010-web" / "hooks" / "hook.sh"
    assert os.access(copied, os.X_OK)
    done = given.run(SUB_PATH="other")
    assert "image registry.example/modules:1.0.0 has no directory 'other'" in done.stderr
    with contextlib.suppress(OSError):
        given.source.chmod(0o755)


@pytest.fixture(scope="module", params=components.VERSIONS[1:])
def older(request: pytest.FixtureRequest) -> Iterator[handle.DevCluster]:
    """A control plane of another supported version; its binaries are built if there are none yet."""
    where = locations.locate(os.environ)
    manager = cluster.ClusterManager(where.state, reporters.Reporter())
    name = layout.ClusterName(f"pytest-{os.getpid()}-{secrets.token_hex(3)}")
    try:
        with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
            yield manager.up(cluster.ClusterRequest(name, request.param, nodes=False), store)
    finally:
        manager.down(name)


@pytest.mark.slow
def test_every_supported_version_of_kubernetes_takes_what_the_chart_renders(
    older: handle.DevCluster, helms: Mapping[str, pathlib.Path]
) -> None:
    for values in (IMAGE, GIT, SSH, CONFIG_MAP, CACHE):
        for helm in helms.values():
            objects = charts.render(helm, {**values, "releaseNamespaces": ["default"]}, "kube-public")
            bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
            done = older.run_kubectl("apply", "--dry-run=server", "-f", "-", stdin=bundle)
            assert done.stdout.count("(server dry run)") == len(objects)
            assert "Warning" not in done.stderr
