"""The chart, installed in a control plane of the tests' own network, and the image that runs as its pod."""

import json
from typing import Any

import pytest
import yaml

from addon_operator.devcluster import handle, pytest_plugin
from addon_operator.devcluster.pytest_plugin import devcluster, devcluster_options
from tests.image import pod
from tests.integration import charts

__all__ = ["devcluster", "devcluster_options"]

NAMESPACE = "addons"
ADDRESS = "10.99.0.1"
"""Of this network namespace; an EndpointSlice may not name loopback."""
VALUES = {"replicas": 1, "rbac.modules": "namespace-admin", "image.repository": "registry.example/my-addons"}


@pytest.fixture(scope="session")
def image() -> pod.Image:
    """What ``make image-test`` has built."""
    found = pod.built()
    if found is None:
        pytest.skip("'make image-test' builds the image and runs this")
    return found


@pytest.fixture(scope="session")
def installed(image: pod.Image, devcluster: pytest_plugin.DevCluster) -> pod.Spec:
    """The chart without its Deployment, whose pod runs here; the webhooks' Service leads to this network."""
    cluster = devcluster
    cluster.run_kubectl("create", "namespace", NAMESPACE)
    cluster.run_kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    cluster.run_kubectl("apply", "--server-side", "-f", str(charts.CHART / "crds"))
    objects = charts.render(cluster.helm, VALUES, NAMESPACE)
    deployment = charts.only(objects, "Deployment")
    rest = [found for found in objects if found is not deployment]
    cluster.run_kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(rest))
    cluster.run_kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(_endpoints(deployment)))
    return pod.Spec(deployment["spec"]["template"]["spec"], NAMESPACE)


def _endpoints(deployment: dict[str, Any]) -> dict[str, Any]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "image-test",
            "labels": {
                "kubernetes.io/service-name": environment["WEBHOOK_SERVICE"],
                "endpointslice.kubernetes.io/managed-by": "image-test",
            },
        },
        "addressType": "IPv4",
        "ports": [{"name": "webhook", "port": int(environment["ADMISSION_SERVER_LISTEN_PORT"])}],
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
    }


@pytest.fixture(scope="session")
def account(installed: pod.Spec, devcluster: handle.DevCluster) -> dict[str, str]:
    """The files of the chart's ServiceAccount."""
    where = ("-n", NAMESPACE)
    authority = devcluster.run_kubectl("get", "configmap", "kube-root-ca.crt", *where, "-o", "json").stdout
    token = devcluster.run_kubectl("create", "token", installed.pod["serviceAccountName"], *where).stdout
    return {
        "token": token.strip(),
        "ca.crt": json.loads(authority)["data"]["ca.crt"],
        "namespace": NAMESPACE,
    }


@pytest.fixture(scope="session")
def environment(image: pod.Image, installed: pod.Spec, devcluster: handle.DevCluster) -> dict[str, str]:
    """All variables of the container."""
    host, _, port = devcluster.url.removeprefix("https://").partition(":")
    return installed.environment(image) | {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
    }
