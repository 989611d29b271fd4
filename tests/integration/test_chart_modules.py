"""Modules that the chart mounts: from an image, from Git, from a ConfigMap."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import tarfile
from collections.abc import Iterator, Mapping

import pytest

from addon_operator.devcluster import handle
from tests.integration import charts, operator_process
from tests.support import rows

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
TRUSTED: dict[str, object] = {"modules.git.repo": "https://git.example/x", "modules.git.ca.secretName": "ca"}
CONFIG_MAP: dict[str, object] = {"modules.configMap.name": "modules"}
CACHE: dict[str, object] = {
    "chartCache.existingClaim": "charts",
    "chartCredentialsSecret": "registry",
    "releaseNamespaces": ["edge", "default"],
}
SOURCES: Mapping[str, dict[str, object]] = {
    "image": IMAGE,
    "git": GIT,
    "ssh": SSH,
    "trusted": TRUSTED,
    "configmap": CONFIG_MAP,
    "cache": CACHE | {"releaseNamespaces": ["default"]},
    "apart": GIT | {"admission.separate": True},
    "everywhere": {"releaseNamespaces": ["*"]},
}


@pytest.fixture(scope="module")
def helm() -> pathlib.Path:
    return charts.helm_binaries()["helm4"]


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


def test_the_api_server_takes_each_way_under_the_restricted_standard(
    devcluster: handle.DevCluster, helm: pathlib.Path, namespace: str
) -> None:
    level = "pod-security.kubernetes.io/{}=restricted"
    devcluster.run_kubectl("label", "namespace", namespace, level.format("warn"), level.format("enforce"))
    made = [each for values in SOURCES.values() for each in charts.render(helm, values, namespace)]
    rendered = [each for index, each in enumerate(made) if each not in made[:index]]
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": rendered})
    done = devcluster.run_kubectl("apply", "--dry-run=server", "-f", "-", stdin=bundle)
    assert done.stdout.count("(server dry run)") == len(rendered)
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


def test_a_private_authority_is_mounted_for_git_alone(helm: pathlib.Path) -> None:
    pod = pod_of(helm, TRUSTED)
    operator, beside = pod["containers"]
    for container in (pod["initContainers"][0], beside):
        assert variables(container)["GIT_SSL_CAINFO"] == "/etc/git-ca/ca.crt"
        assert "/etc/git-ca" in [each["mountPath"] for each in container["volumeMounts"]]
    assert volume(pod, "git-ca")["secret"] == {"secretName": "ca"}
    assert "git-ca" not in [each["name"] for each in operator["volumeMounts"]]


def test_containers_beside_the_operator_are_as_restricted_as_it_is(helm: pathlib.Path) -> None:
    for values in (IMAGE, GIT, CONFIG_MAP):
        pod = pod_of(helm, values | {"modules.resources": {"limits": {"memory": "99Mi"}}})
        for container in (*pod["initContainers"], *pod["containers"][1:]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"] == {"memory": "99Mi"}
            assert "envFrom" not in container
        assert pod["securityContext"]["runAsNonRoot"] is True


def test_the_chart_takes_the_values_that_an_older_one_kept(helm: pathlib.Path) -> None:
    """``helm upgrade --reuse-values`` gives it the defaults of the chart before, which had no such keys."""
    newer = (
        "modules",
        "chartCache",
        "chartCredentialsSecret",
        "releaseNamespaces",
        "valuesSecret",
        "notifications",
    )
    assert charts.render(helm, dict.fromkeys(newer)) == charts.render(helm)
    assert pod_of(helm, GIT) == pod_of(helm, GIT | {"modules.git.ca": None})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, None),
        (IMAGE, ["modules.image", "-c modules\n", "A new version of the modules is a new"]),
        (GIT, ["modules.git", "-c modules-git-first\n", "-c modules-git\n"]),
        (CONFIG_MAP, ["modules.configMap", "-c modules\n", "-c modules-configmap\n"]),
    ],
    ids=["none", "image", "git", "configmap"],
)
def test_the_notes_say_where_modules_come_from_and_where_to_look(
    helm: pathlib.Path, values: dict[str, object], words: list[str] | None
) -> None:
    notes = charts.notes(helm, values)
    assert "Modules come from" in notes if words else "Modules come from" not in notes
    assert all(word in notes for word in words or ()), notes


ONLY_PRESETS: dict[str, object] = {"moduleStatus.enabled": False, "valuesConfigMap.validate": False}


def test_the_notes_of_an_installation_for_podpresets_do_not_speak_of_modules(helm: pathlib.Path) -> None:
    notes = charts.notes(helm, ONLY_PRESETS)
    assert "get podpresets" in notes
    words = ("module", "ConfigMap", "create secret")
    assert [word for word in words if word in notes] == []
    for more in ({"podPresets.enabled": False}, {"valuesConfigMap.create": True}, GIT):
        other = charts.notes(helm, ONLY_PRESETS | more)
        assert ("module list" in other, "get podpresets" in other) == (True, False)


def test_the_notes_tell_of_all_pods_and_what_their_namespace_needs(helm: pathlib.Path) -> None:
    notes = charts.notes(helm, {"admission.separate": True})
    assert "rollout status deploy/addon-operator-admission\n" in notes
    assert "enforce=restricted" in notes
    assert "enforce=privileged" in charts.notes(helm, {"hostNetwork": True})


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


@rows.each(
    ("values", "words"),
    [
        (IMAGE | GIT, ["modules.image, modules.git are all set"]),
        (
            {"modules.git.repo": "https://me:secret@git.example/x"},
            ["a user or a password", "credentialsSecret"],
        ),
        ({"modules.git.repo": "git@git.example:x"}, ["needs a key", "ssh-privatekey and known_hosts"]),
        ({"modules.git.subPath": "modules"}, ["modules.git.subPath is set and modules.git.repo is not"]),
        ({"modules.image.globalHooksSubPath": "x"}, ["and modules.image.reference is not"]),
        (SSH | {"modules.git.ca.secretName": "ca"}, ["modules.git.ca is set", "known_hosts"]),
        (TRUSTED | {"modules.git.ca.configMapName": "ca"}, ["are both set: name the one"]),
        (IMAGE | CONFIG_MAP, ["modules.image, modules.configMap are all set"]),
        ({"modules.git.repos": "x"}, ["/modules/git", "repos"]),
        (GIT | {"modules.git.period": "30"}, ["/modules/git/period"]),
        ({"modules.git.repo": "/tmp/repo"}, ["/modules/git/repo"]),
        (GIT | {"modules.git.ref": "--upload-pack=x"}, ["/modules/git/ref"]),
        (GIT | {"modules.git.subPath": "../etc"}, ["/modules/git/subPath"]),
        (CONFIG_MAP | {"modules.configMap.maxBytes": 0}, ["maxBytes"]),
        ({"releaseNamespaces": ["Edge"]}, ["/releaseNamespaces/0"]),
        ({"releaseNamespaces": ["*", "edge"]}, ['"*" alone']),
        ({"releaseNamespaces": ["*"], "rbac.modules": "namespace-admin"}, ["cluster-admin"]),
    ],
)
def test_wrong_values_are_refused(helm: pathlib.Path, values: dict[str, object], words: list[str]) -> None:
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
        self._pod = pod_of(helm, values)
        (self._container,) = self._pod["initContainers"]
        self.source, self.target = root / "source", root / "target"
        self.target.mkdir()

    @property
    def tree(self) -> pathlib.Path:
        return self.target / "tree"

    def _environment(self, container: charts.Object) -> dict[str, str]:
        here = {"SOURCE": str(self.source), "TARGET": str(self.target), "PATH": os.environ["PATH"]}
        return variables(container) | here

    def run(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        given = self._environment(self._container) | environment
        return subprocess.run(
            self._container["command"], env=given, check=False, capture_output=True, text=True, timeout=60
        )

    @contextlib.contextmanager
    def following(self, log: pathlib.Path) -> Iterator[None]:
        """What runs beside the operator, looking every moment; it ends at once when it is asked to."""
        container = self._pod["containers"][1]
        given = self._environment(container) | {"PERIOD": "0.05"}
        with log.open("w") as stream:
            process = subprocess.Popen(container["command"], env=given, stderr=stream)
        try:
            yield
            process.terminate()
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.wait()

    def names(self) -> list[str]:
        return sorted(each.name for each in (self.tree / "modules").iterdir())


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


def test_a_new_archive_is_taken_in_whole_and_a_wrong_one_not_at_all(
    helm: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    pod = pod_of(helm, CONFIG_MAP)
    assert variables(pod["containers"][0])["WATCH_MODULES"] == "yes"
    given, log = Fetching(helm, CONFIG_MAP, tmp_path), tmp_path / "log"

    def write(**files: bytes) -> None:
        """Replace the file at once, as the kubelet does."""
        archive(tmp_path / "next", **files)
        (tmp_path / "next").replace(given.source)

    write(first=b"1")
    assert given.run().returncode == 0
    with given.following(log):
        before = given.tree.resolve()
        write(second=b"2")
        operator_process.wait_until(lambda: given.names() == ["second"], "the archive is unpacked")
        operator_process.wait_until(lambda: not before.exists(), "the old tree is removed")
        (tmp_path / "next").write_text("no archive")
        (tmp_path / "next").replace(given.source)
        operator_process.wait_until(lambda: "stay as they were" in log.read_text(), "it is refused")
        assert given.names() == ["second"]
        write(third=b"3")
        operator_process.wait_until(lambda: given.names() == ["third"], "the next one mends it")
        unpacked = "key modules.tar.gz, changed: its modules are unpacked"
        operator_process.wait_until(lambda: log.read_text().count(unpacked) == 2, "it says so, too")
    assert log.read_text().count("key modules.tar.gz, is not a tar.gz archive") == 1


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
    assert not given.tree.exists()
    stored = sum(each.stat().st_size for each in given.target.rglob("*") if each.is_file())
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
