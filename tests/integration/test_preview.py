"""``addon-operator preview pod`` against a real cluster, with no operator running."""

import json
import os
import pathlib
import subprocess
from typing import Any, Final

import pytest
import yaml

from addon_operator.devcluster import pytest_plugin
from tests.integration import admitting, operator_forks

pytestmark = pytest.mark.integration

CRD: Final = pathlib.Path(__file__).parents[2] / "crds" / "podpresets.yaml"
POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"role": "frontend"}},
    "spec": {
        "containers": [
            {
                "name": "app",
                "image": "i",
                "args": ["$(USER):$(PASSWORD)@$(DATABASE_SERVICE_HOST)", "$(MODE)", "$(NOPE)"],
            }
        ]
    },
}
PRESET: Final[dict[str, Any]] = {
    "apiVersion": "settings.k8s.io/v1alpha1",
    "kind": "PodPreset",
    "metadata": {"name": "database"},
    "spec": {
        "selector": {"matchLabels": {"role": "frontend"}},
        "env": [
            {"name": "USER", "value": "shop"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
    },
}
OBJECTS: Final = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "stringData": {"password": "hunter2"},
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"MODE": "fast"}},
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "database"},
        "spec": {"ports": [{"port": 5432}]},
    },
]


@pytest.fixture(scope="module")
def cluster(devcluster: pytest_plugin.DevCluster) -> pytest_plugin.DevCluster:
    devcluster.run_kubectl("apply", "-f", str(CRD))
    admitting.wait_established(devcluster, "podpresets.settings.k8s.io")
    return devcluster


@pytest.fixture
def stored(cluster: pytest_plugin.DevCluster, namespace: str) -> str:
    """A namespace with the preset and all that it refers to."""
    cluster.run_kubectl("apply", "-n", namespace, "-f", "-", stdin=manifests(PRESET, *OBJECTS))
    return namespace


def manifests(*objects: object) -> str:
    return yaml.safe_dump_all(objects)


def preview(
    kubeconfig: pathlib.Path, *args: str, stdin: str = manifests(POD), code: int = 0
) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ADDON_OPERATOR_")}
    environ |= {"KUBECONFIG": str(kubeconfig)}
    ended = operator_forks.run(("preview", "pod", "-f", "-", *args), environ, kubeconfig.parent, stdin)
    assert ended.returncode == code, ended.stderr
    return ended


def found(kubeconfig: pathlib.Path, *args: str, stdin: str = manifests(POD)) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(preview(kubeconfig, "-o", "json", *args, stdin=stdin).stdout)
    return document


def test_everything_comes_from_the_cluster(cluster: pytest_plugin.DevCluster, stored: str) -> None:
    document = found(cluster.kubeconfig, "-n", stored)
    get = ("-n", stored, "-o", "json")
    version = json.loads(cluster.run_kubectl("get", "pp", "database", *get).stdout)["metadata"][
        "resourceVersion"
    ]
    address = json.loads(cluster.run_kubectl("get", "service", "database", *get).stdout)["spec"]["clusterIP"]
    assert document["applied"] == [{"name": "database", "resourceVersion": version}]
    [container] = document["containers"]
    assert container["args"] == [f"shop:hunter2@{address}", "fast", "$(NOPE)"]
    assert container["unresolved"] == [{"name": "NOPE", "where": "args[2]"}]
    assert container["missing"] == []
    assert "KUBERNETES_SERVICE_HOST" in container["env"]


def test_the_api_server_takes_the_pod_as_it_is_shown(cluster: pytest_plugin.DevCluster, stored: str) -> None:
    shown = found(cluster.kubeconfig, "-n", stored)["pod"]
    answer = cluster.run_kubectl(
        "create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-", stdin=json.dumps(shown)
    )
    created = json.loads(answer.stdout)
    assert created["spec"]["containers"][0]["envFrom"] == PRESET["spec"]["envFrom"]
    assert "podpreset.admission.kubernetes.io/podpreset-database" in created["metadata"]["annotations"]


def test_a_conflict_with_a_configmap_of_the_cluster_is_found(
    cluster: pytest_plugin.DevCluster, stored: str
) -> None:
    pod = json.loads(json.dumps(POD))
    pod["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "slow"}]
    document = found(cluster.kubeconfig, "-n", stored, stdin=manifests(pod))
    message = "Conflict on pod preset. Env MODE is also set by envFrom ConfigMap settings."
    assert document["conflicts"] == [{"preset": "database", "message": message}]
    assert document["pod"]["spec"] == pod["spec"]


def test_files_go_before_the_cluster(
    cluster: pytest_plugin.DevCluster, stored: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "settings.yaml").write_text(manifests({**OBJECTS[1], "data": {"MODE": "careful"}}))
    document = found(cluster.kubeconfig, "-n", stored, "--objects", str(tmp_path / "settings.yaml"))
    assert document["containers"][0]["env"]["MODE"] == "careful"
    assert document["containers"][0]["env"]["PASSWORD"] == "hunter2"


def test_a_workload_that_is_stored_is_previewed_in_its_namespace(
    cluster: pytest_plugin.DevCluster, stored: str
) -> None:
    template = {
        "metadata": {"labels": {"role": "frontend"}},
        "spec": {**POD["spec"], "restartPolicy": "Never"},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}},
    }
    cluster.run_kubectl("apply", "-n", stored, "-f", "-", stdin=manifests(job))
    text = cluster.run_kubectl("get", "-n", stored, "cronjob", "nightly", "-o", "yaml").stdout
    document = found(cluster.kubeconfig, stdin=text)
    assert [one["name"] for one in document["applied"]] == ["database"]
    assert document["pod"]["metadata"]["namespace"] == stored


def test_the_namespace_is_that_of_the_context(
    cluster: pytest_plugin.DevCluster, stored: str, tmp_path: pathlib.Path
) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = stored
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    document = found(tmp_path / "kubeconfig")
    assert document["pod"]["metadata"]["namespace"] == stored
    assert len(document["applied"]) == 1


def test_with_all_files_the_cluster_need_not_be_there(tmp_path: pathlib.Path) -> None:
    (tmp_path / "presets.yaml").write_text(manifests(PRESET))
    (tmp_path / "objects.yaml").write_text(manifests(*OBJECTS))
    files = ("--presets", str(tmp_path / "presets.yaml"), "--objects", str(tmp_path / "objects.yaml"))
    document = found(tmp_path / "no-kubeconfig", *files)
    assert document["containers"][0]["env"]["PASSWORD"] == "hunter2"


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_one_sentence(
    cluster: pytest_plugin.DevCluster, tmp_path: pathlib.Path
) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for one in config["clusters"]:
        one["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    ended = preview(tmp_path / "kubeconfig", code=1)
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert "give --presets and --objects, or --no-cluster" in ended.stderr
