"""An operator that admits pods, and what tests do with it."""

import base64
import contextlib
import dataclasses
import json
from collections.abc import Iterator
from typing import Any, Final

from addon_operator.devcluster import api, handle, layout
from tests.integration import cluster_objects, operator_process, operator_site

PRESETS: Final = "/apis/settings.k8s.io/v1alpha1/namespaces/{}/podpresets"
PODS: Final = "/api/v1/namespaces/{}/pods"
EVENTS: Final = "/api/v1/namespaces/{}/events"
CONFIGURATIONS: Final = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
)
LABELS: Final = {"role": "frontend"}
_SOURCES: Final = "podpreset.admission.kubernetes.io/podpreset-"

Object = dict[str, Any]


def container(name: str = "app", **fields: object) -> Object:
    """A container; its image is never pulled."""
    return {"name": name, "image": "registry.example/app", **fields}


@dataclasses.dataclass(frozen=True, slots=True)
class Shop:
    """A namespace whose pods are admitted by an operator of another one."""

    namespace: str
    operator: operator_process.OperatorProcess
    cluster: handle.DevCluster
    client: api.ApiClient

    def request(self, method: str, path: str, body: Object | None = None) -> Object:
        """A request that has to succeed, and its answer."""
        answer = self.client.request(method, path, body)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        found: Object = json.loads(answer.text)
        return found

    def preset(self, name: str = "allow-database", **spec: object) -> Object:
        """Create a preset; without anything else it sets ``DB_PORT``."""
        given = spec or {"env": [{"name": "DB_PORT", "value": 6379}]}
        body = {
            "apiVersion": "settings.k8s.io/v1alpha1",
            "kind": "PodPreset",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": LABELS}, **given},
        }
        return self.request("POST", PRESETS.format(self.namespace), body)

    def stored_preset(self, name: str = "allow-database") -> Object:
        """The preset as it is now."""
        return self.request("GET", f"{PRESETS.format(self.namespace)}/{name}")

    def delete_preset(self, name: str = "allow-database") -> None:
        """Delete it."""
        self.request("DELETE", f"{PRESETS.format(self.namespace)}/{name}")

    def pod(
        self,
        *containers: Object,
        annotations: Object | None = None,
        dry_run: bool = False,
        metadata: Object | None = None,
        **spec: object,
    ) -> Object:
        """Create a pod; what the API server has made of it."""
        given = {
            "generateName": "web-",
            "labels": LABELS,
            "annotations": annotations or {},
            **(metadata or {}),
        }
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": given,
            "spec": {"containers": list(containers) or [container()], **spec},
        }
        query = "?dryRun=All" if dry_run else ""
        return self.request("POST", PODS.format(self.namespace) + query, body)

    def apply(self, *manifests: Object) -> None:
        """Apply manifests as a user would."""
        cluster_objects.Objects(self.client, self.namespace).apply(*manifests)

    def items(self, path: str, query: str = "") -> list[Object]:
        """What a collection of the namespace holds."""
        found: list[Object] = self.request("GET", path.format(self.namespace) + query)["items"]
        return found

    def events(self, reason: str) -> list[Object]:
        """Events of that reason."""
        return self.items(EVENTS, f"?fieldSelector=reason={reason}")

    def wait_events(self, reason: str, count: int) -> list[Object]:
        """Wait until there are so many Events of that reason."""
        return self.operator.wait_until(
            lambda: found if len(found := self.events(reason)) >= count else None, f"{count} Events {reason}"
        )


@contextlib.contextmanager
def admitting(
    site: operator_site.Site, cluster: handle.DevCluster, until_ready: bool = True, /, **environment: str
) -> Iterator[operator_process.OperatorProcess]:
    """An operator that is called by URL and has registered its webhooks; they are removed at the end."""
    client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
    operator = site.start(**(webhook_environment(operator_process.free_port()) | environment))
    paths = [f"{path}/addon-operator-{site.namespace}" for path in CONFIGURATIONS]
    try:
        if until_ready:
            operator.wait_ready()
        operator.wait_until(
            lambda: all(client.request("GET", path).is_success for path in paths), "the webhooks are there"
        )
        yield operator
    finally:
        for path in paths:
            client.request("DELETE", path)
        operator.kill()


def webhook_environment(port: int) -> dict[str, str]:
    """Settings of an operator outside the cluster."""
    return {
        "ADMISSION_SERVER_LISTEN_ADDRESS": "127.0.0.1",
        "ADMISSION_SERVER_LISTEN_PORT": str(port),
        "WEBHOOK_URL": f"https://127.0.0.1:{port}",
    }


def path_key(site: operator_site.Site) -> str:
    """The random part of the paths at which the API server asks now."""
    keys = base64.b64decode(site.secret_data("addon-operator-admission").get("path-keys", ""))
    return keys.decode().partition(" ")[0]


@contextlib.contextmanager
def opened(
    site: operator_site.Site, cluster: handle.DevCluster, until_ready: bool = True, /, **environment: str
) -> Iterator[Shop]:
    """An operator and a shop of its own."""
    client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
    with admitting(site, cluster, until_ready, **environment) as operator:
        namespace = cluster.namespace("shop")
        try:
            yield Shop(namespace, operator, cluster, client)
        finally:
            cluster.delete_namespace(namespace)


def is_injected(shop: Shop, operator: operator_process.OperatorProcess) -> bool:
    """Create one more pod; whether it is injected, by a webhook of that operator as far as it was needed.

    An operator of another test may have been asked first: then nothing is left to inject.
    """
    annotations = shop.pod()["metadata"].get("annotations", {})
    asked = operator.metrics().total("podpreset_admissions_total", namespace=shop.namespace)
    return asked >= 1 and any(name.startswith(_SOURCES) for name in annotations)


def wait_established(cluster: handle.DevCluster, crd: str) -> None:
    """Wait until the API server serves the resources of a definition.

    ``kubectl wait`` is of no use here: it fails at once where the object has no conditions yet.
    """
    client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}"

    def established() -> bool:
        found: Object = client.request("GET", path).document()
        conditions = (found.get("status") or {}).get("conditions") or []
        return {"Established": "True"}.items() <= {c["type"]: c["status"] for c in conditions}.items()

    operator_process.wait_until(established, f"{crd} is established")
