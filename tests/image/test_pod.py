"""The image as the pod of the chart: everything a user does with it, through the API server only."""

import dataclasses
import json
import pathlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator.devcluster import handle
from addon_operator.process import commands
from tests.image import conftest, pod
from tests.integration import operator_process

WHERE = ("-n", conftest.NAMESPACE)
PRESET = {
    "apiVersion": "settings.k8s.io/v1alpha1",
    "kind": "PodPreset",
    "metadata": {"name": "database"},
    "spec": {
        "selector": {"matchLabels": {"role": "frontend"}},
        "env": [{"name": "DB_PORT", "value": "6379"}],
    },
}


def is_served(path: str) -> bool:
    """Whether that path of the container's port says yes, as a probe asks."""
    try:
        with urllib.request.urlopen(f"http://{conftest.ADDRESS}:9650{path}", timeout=3) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def running(
    image: pod.Image,
    installed: pod.Spec,
    account: dict[str, str],
    environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[pod.Pod]:
    """The pod, after its first converge."""
    log = tmp_path_factory.mktemp("pod") / "log"
    with (
        pod.prepared(image, installed, account) as root,
        pod.running(image, root, environment, installed.user, log) as started,
    ):
        operator_process.wait_until(
            lambda: is_served("/readyz") and is_served("/readyz/admission"), "ready", explain=log.read_text
        )
        yield started


@pytest.fixture(scope="module")
def cluster(devcluster: handle.DevCluster) -> handle.DevCluster:
    return devcluster


def stored(cluster: handle.DevCluster, what: str, *where: str) -> dict[str, Any]:
    found = json.loads(cluster.run_kubectl("get", what, *(where or WHERE), "-o", "json").stdout)
    assert isinstance(found, dict)
    return found


def edit(cluster: handle.DevCluster, key: str, text: str) -> None:
    """Write a key of the values ConfigMap, which is made if there is none."""
    made = ("create", "configmap", "addon-operator", *WHERE, "--dry-run=client", "-o", "json")
    empty = cluster.run_kubectl(*made).stdout
    cluster.run_kubectl("apply", "--server-side", "-f", "-", stdin=empty)
    patch = json.dumps({"data": {key: text}})
    cluster.run_kubectl("patch", "configmap", "addon-operator", *WHERE, "-p", patch)


def test_hooks_have_the_images_python_and_what_a_user_installs_and_nothing_of_the_operators(
    running: pod.Pod, cluster: handle.DevCluster, image: pod.Image
) -> None:
    report = stored(cluster, "configmap/image-report")["data"]
    python, shell = json.loads(report["python"]), json.loads(report["shell"])
    assert python["imports"] == ["a_package_for_hooks", "addon_operator"]
    assert not python["prefix"].startswith("/opt")
    assert python["uid"] == 64535
    programs = ["addon-operator", "helm", "jq", "kubectl"]
    assert shell["found"] == [*(f"/usr/local/bin/{name}" for name in programs), python["executable"]]
    assert "/opt" not in shell["path"]
    assert running.exec("/addon-operator", "version").returncode == 0


def test_an_edit_reaches_the_release(running: pod.Pod, cluster: handle.DevCluster) -> None:
    edit(cluster, "imageReport", "note: edited")
    operator_process.wait_until(
        lambda: stored(cluster, "configmap/image-report")["data"]["note"] == "edited",
        "the edit is seen",
        explain=running.log.read_text,
    )
    edit(cluster, "web", "replicas: 3")
    operator_process.wait_until(
        lambda: stored(cluster, "deployment/web")["spec"]["replicas"] == 3, "the example module is upgraded"
    )


def test_a_wrong_edit_is_refused_through_the_service(running: pod.Pod, cluster: handle.DevCluster) -> None:
    with pytest.raises(commands.CommandError, match=r"web\.replicas: must be an integer"):
        edit(cluster, "web", "replicas: many")
    assert stored(cluster, "configmap/addon-operator")["data"]["web"] == "replicas: 3"
    assert is_served("/readyz")


def test_a_pod_gets_its_preset_through_the_service(running: pod.Pod, cluster: handle.DevCluster) -> None:
    cluster.run_kubectl("create", "namespace", "shop")
    cluster.run_kubectl("apply", "-n", "shop", "-f", "-", stdin=json.dumps(PRESET))

    def preset() -> bool:
        # The preset has to reach the operator first.
        cluster.run_kubectl(
            "run", "web", "-n", "shop", "--image=registry.example/web", "--labels=role=frontend",
            "--restart=Never",
        )  # fmt: skip
        (container,) = stored(cluster, "pod/web", "-n", "shop")["spec"]["containers"]
        cluster.run_kubectl("delete", "pod", "web", "-n", "shop", "--now")
        return {"name": "DB_PORT", "value": "6379"} in container.get("env", [])

    operator_process.wait_until(preset, "the pod has its preset", explain=running.log.read_text)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["module", "list"], "image-report"),
        (["queue", "list"], "main"),
        (["global", "values"], "highAvailability"),
        (["module", "values", "image-report"], "edited"),
        (["settings"], "MODULES_DIR"),
    ],
    ids=["modules", "queues", "global values", "values", "settings"],
)
def test_debug_commands_answer_in_the_pod(running: pod.Pod, argv: list[str], said: str) -> None:
    done = running.exec("addon-operator", *argv)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_the_root_file_system_cannot_be_written_to(running: pod.Pod) -> None:
    for path in ("/modules/x", "/opt/addon-operator/x", "/x"):
        done = running.exec("touch", path)
        assert done.returncode != 0
        assert "Read-only file system" in done.stderr
    assert running.exec("id", "-u").stdout.strip() == "64535"


def test_it_ends_in_time_and_has_warned_of_nothing(running: pod.Pod) -> None:
    code, seconds = running.terminate()
    assert code == 0
    assert seconds < 10
    unlike = [record for record in running.records() if record["level"] not in {"debug", "info"}]
    assert unlike == []


def test_an_edit_is_seen_under_a_uid_that_the_cluster_chose(
    image: pod.Image,
    installed: pod.Spec,
    account: dict[str, str],
    environment: dict[str, str],
    cluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    assert "1000660000" not in (image.root / "etc/passwd").read_text("utf-8")
    log = tmp_path / "log"
    user = (1_000_660_000, 0)
    with (
        pod.prepared(image, dataclasses.replace(installed, name="addon-operator-1"), account) as root,
        pod.running(image, root, environment, user, log) as again,
    ):
        operator_process.wait_until(lambda: is_served("/readyz"), "ready", explain=log.read_text)
        edit(cluster, "imageReport", "note: seen by another uid")
        operator_process.wait_until(
            lambda: stored(cluster, "configmap/image-report")["data"]["note"] == "seen by another uid",
            "the edit is seen",
            explain=log.read_text,
        )
        assert again.terminate()[0] == 0
        assert [record for record in again.records() if record["level"] not in {"debug", "info"}] == []
