"""What the cluster knows of the cause is told, for each kind of trouble; and a restart asks for little."""

import json
import time
from collections.abc import Callable
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

IMAGE: Final = "registry.example.com/web:1.2"


def workload(kind: str, name: str, **spec: object) -> str:
    """A workload whose pods run on the simulated node."""
    pods = {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": IMAGE}]},
    }
    body = {"selector": {"matchLabels": {"app": name}}, "template": pods, **spec}
    return document("apps/v1", kind, name, spec=body)


def document(version: str, kind: str, name: str, **more: object) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more})


JOB: Final = document(
    "batch/v1",
    "Job",
    "once",
    spec={
        "activeDeadlineSeconds": 1,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"on": "the-moon"},
                "containers": [{"name": "main", "image": IMAGE}],
            }
        },
    },
)


def claim(name: str, storage_class: str) -> str:
    body = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return document("v1", "PersistentVolumeClaim", name, spec=body)


LATER: Final = document(
    "storage.k8s.io/v1",
    "StorageClass",
    "later-{{ .Release.Namespace }}",
    provisioner="example.com/none",
    volumeBindingMode="WaitForFirstConsumer",
)
SERVICE: Final = document("v1", "Service", "front", spec={"ports": [{"port": 80}]})
RULE: Final = '[{apiVersion: v1, kind: Service, healthy: \'self.metadata.annotations["up"] == "yes"\'}]'
MODULES: Final = {
    "crash": workload("Deployment", "crash"),
    "image": workload("Deployment", "image"),
    "job": JOB,
    "claim": claim("data", "nowhere"),
    "later": f"{LATER}\n---\n{claim('later', 'later-{{ .Release.Namespace }}')}",
    "zero": "\n---\n".join(
        (
            workload("Deployment", "none", replicas=0),
            workload("StatefulSet", "set", serviceName="set", replicas=2),
            workload("DaemonSet", "each"),
        )
    ),
    "held": workload("Deployment", "held"),
    "front": SERVICE,
}


class Watched:
    """Modules of an operator, and what is told of their health."""

    def __init__(self, site: operator_site.Site, cluster: handle.DevCluster) -> None:
        self.site = site
        self.modules = module_objects.Modules(site, cluster)
        self.operator: operator_process.OperatorProcess

    def is_told(self, name: str, *words: str) -> None:
        def told() -> bool:
            return all(word in self.modules.condition(name, "Healthy")["message"] for word in words)

        self.operator.wait_until(
            told, f"of {name} is told {words}, not {self.modules.condition(name, 'Healthy')['message']}"
        )

    def hurt(self, name: str, status: dict[str, object]) -> None:
        """Have the container of the one pod of a Deployment be in trouble, as a kubelet would tell."""
        (pod,) = self.site.objects("pods", labelSelector=f"app={name}")
        container = {"name": "main", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 3}
        conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
        body = {"status": {"conditions": conditions, "containerStatuses": [container | status]}}
        self.site.patch("pod", pod["metadata"]["name"], body, subresource="status")


@pytest.fixture
def watched(site: operator_site.Site, devcluster: handle.DevCluster) -> Watched:
    return Watched(site, devcluster)


@pytest.mark.slow
def test_each_kind_of_trouble_is_told_with_its_cause(site: operator_site.Site, watched: Watched) -> None:
    for order, (name, text) in enumerate(MODULES.items()):
        module = watched.modules.add(order, name, data={"a": "b"})
        (module / "templates" / "more.yaml").write_text(text)
    operator = watched.operator = site.start(HEALTH_RULES=RULE).wait_ready()
    for name in ("crash", "image", "zero", "held"):
        watched.modules.wait(operator, name, Ready="True", Healthy="True")

    killed = {"exitCode": 137, "reason": "OOMKilled"}
    crash = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": killed}}
    watched.hurt("crash", crash)
    watched.hurt("image", {"state": {"waiting": {"reason": "ImagePullBackOff"}}})
    site.patch("deployment", "held", {"metadata": {"finalizers": ["example.com/held"]}})
    site.delete("deployment", "held", waits=False)

    watched.is_told("crash", ": Deployment crash, ", "CrashLoopBackOff, exit code 137 (OOMKilled)")
    watched.is_told("image", f'ImagePullBackOff "{IMAGE}" (pod image-')
    watched.is_told("claim", "PersistentVolumeClaim data, has no volume yet (Pending)", '"nowhere" not found')
    watched.is_told("later", "waits for its first consumer: PersistentVolumeClaim later")
    watched.modules.wait(operator, "later", Ready="True", Healthy="True")
    watched.is_told("held", "is being deleted, waits for example.com/held: Deployment held")
    watched.is_told("front", "Service front", "does not meet self.metadata.annotations")
    watched.modules.wait(operator, "job", Ready="True", Healthy="False")
    watched.is_told("job", "Job once, failed", "was active longer than specified deadline")
    for name in ("crash", "image", "claim", "held", "front"):
        assert watched.modules.conditions(name)["Healthy"] == "Unknown", name
    assert operator.metrics().total("module_health", module="job", state="Failed") == 1

    # What was in trouble, and is not any more, is healthy again.
    site.annotate("service", "front", {"up": "yes"})
    site.patch("deployment", "held", {"metadata": {"finalizers": None}})
    for pod in site.listed("pod", labelSelector="app in (crash,image)"):
        site.delete("pod", pod["metadata"]["name"])
    for name in ("front", "held", "crash", "image"):
        watched.modules.wait(operator, name, Healthy="True")
    operator.stop()


def shown_healthy(site: operator_site.Site) -> int:
    """How many Module objects say that the module is healthy."""
    conditions = [one for each in site.listed("module") for one in each["status"]["conditions"]]
    return [one["status"] for one in conditions if one["type"] == "Healthy"].count("True")


@pytest.mark.slow
@pytest.mark.parametrize(("count", "resources"), [(5, 30), pytest.param(500, 6, marks=pytest.mark.slow)])
def test_after_a_restart_all_modules_are_healthy_without_a_request_for_each_resource(
    site: operator_site.Site, record_property: Callable[[str, object], None], count: int, resources: int
) -> None:
    names = [f"m{number}" for number in range(count)]
    for name in names:
        module = site.module(f"010-{name}", {"a": "b"}, values=f"{name}Enabled: true\n")
        services = [
            document("v1", "Service", f"{name}-{number}", spec={"ports": [{"port": 80}]})
            for number in range(resources - 2)
        ]
        texts = (workload("Deployment", name, replicas=0), *services)
        (module / "templates" / "more.yaml").write_text("\n---\n".join(texts))
    deadline = 30.0 + 2 * count

    def healthy(operator: operator_process.OperatorProcess) -> float:
        return operator.metrics().total("module_health", state="Healthy")

    first = site.start().wait_ready(deadline)
    first.wait_until(lambda: healthy(first) == count, "all are healthy", deadline=deadline)
    first.stop()

    calls = len(site.helm_calls())
    operator = site.start().wait_ready(deadline)
    began = time.monotonic()
    operator.wait_until(lambda: healthy(operator) == count, "all are healthy again", deadline=deadline)
    record_property("seconds from ready to healthy", time.monotonic() - began)
    operator.wait_until(lambda: shown_healthy(site) == count, "all objects say so", deadline=deadline)
    record_property("seconds from ready to shown", time.monotonic() - began)
    asked = operator.metrics().total("kubernetes_client_request_latency_seconds_count", verb="get")
    # The record of each release, and objects of kinds that have few; all others are listed.
    assert count <= asked < 2 * count + 30 < resources * count
    assert site.helm_calls()[calls:] == []
    operator.stop()
