"""Watches that do not come up: the operator is not ready and says which, until they do."""

import json
import pathlib
from collections.abc import Iterator

import pytest
import yaml

from addon_operator.devcluster import handle
from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration

ALL_BUT_WATCH = ("get", "list", "create", "update", "patch", "delete")


class Account:
    """A ServiceAccount whose rights grow."""

    def __init__(self, cluster: handle.DevCluster, site: operator_site.Site) -> None:
        self._cluster = cluster
        self._site = site
        self._name = f"watcher-{site.namespace}"
        self._roles: list[str] = []
        site.create("serviceaccount", self._name)

    def may(self, *verbs: str, group: str = "*", resource: str = "*") -> None:
        """Grant one more rule in the whole cluster."""
        name = f"{self._name}-{len(self._roles)}"
        self._roles.append(name)
        rule = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        kinds: dict[str, dict[str, object]] = {
            "ClusterRole": {"rules": [rule]},
            "ClusterRoleBinding": self._binding(name),
        }
        for kind, fields in kinds.items():
            body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
            self._site.apply({**body, **fields})

    def _binding(self, role: str) -> dict[str, object]:
        subject = {"kind": "ServiceAccount", "name": self._name, "namespace": self._site.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        return {"subjects": [subject], "roleRef": reference}

    def kubeconfig(self) -> pathlib.Path:
        """A kubeconfig with the account's token."""
        document = yaml.safe_load(pathlib.Path(self._site.environment()["KUBE_CONFIG"]).read_text())
        token = self._site.token(self._name)
        document["users"] = [{"name": entry["name"], "user": {"token": token}} for entry in document["users"]]
        path = self._site.root / "kubeconfig"
        path.write_text(json.dumps(document))
        return path

    def close(self) -> None:
        """Remove what is not in the test's namespace."""
        for name in self._roles:
            for kind in ("clusterrole", "clusterrolebinding"):
                self._site.delete(kind, name)
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            self._site.delete(kind, f"addon-operator-{self._site.namespace}")


@pytest.fixture
def account(devcluster: handle.DevCluster, site: operator_site.Site) -> Iterator[Account]:
    made = Account(devcluster, site)
    yield made
    made.close()


def up(operator: operator_process.OperatorProcess, watch: str) -> float:
    return operator.metrics().total("watch_up", watch=watch)


@pytest.mark.slow
def test_a_replica_without_a_certificate_does_not_say_that_it_admits_pods(
    site: operator_site.Site, account: Account
) -> None:
    for resource in ("customresourcedefinitions", "podpresets", "configmaps"):
        account.may("*", resource=resource)
    environment = admitting.webhook_environment(operator_process.free_port())
    operator = site.start(KUBE_CONFIG=str(account.kubeconfig()), **environment)
    operator.wait_until(
        lambda: "has no certificate: " in operator.get("/readyz/admission").text, "the reason is told"
    )
    answer = operator.get("/readyz/admission")
    assert answer.status == 503
    assert "secrets" in answer.text
    account.may("*")
    operator.wait_until(lambda: operator.get("/readyz/admission").status == 200, "pods are admitted")
    operator.stop()


@pytest.mark.slow
def test_a_watch_that_is_forbidden_keeps_the_operator_from_being_ready_until_it_is_granted(
    site: operator_site.Site, account: Account
) -> None:
    account.may(*ALL_BUT_WATCH)
    environment = admitting.webhook_environment(operator_process.free_port())
    operator = site.start(KUBE_CONFIG=str(account.kubeconfig()), **environment)
    for path in ("/readyz", "/readyz/admission"):
        operator.wait_until(
            lambda: "add to its ClusterRole the rule" in operator.get(path).text,  # noqa: B023
            f"{path} names the rule",
        )
        answer = operator.get(path)
        assert answer.status == 503
        assert "the watch of PodPresets has not come up" in answer.text
    assert operator.get("/healthz").status == 200
    account.may("watch", group="settings.k8s.io", resource="podpresets")
    operator.wait_until(lambda: operator.get("/readyz/admission").status == 200, "pods are admitted")
    operator.wait_until(
        lambda: "the watch of the values ConfigMap has not come up" in operator.get("/readyz").text,
        "/readyz tells of the other watch",
    )
    assert (up(operator, "podpresets"), up(operator, "config_map")) == (1, 0)
    account.may("watch")
    operator.wait_ready()
    assert up(operator, "config_map") == 1
    site.config(a="1")
    operator.wait_logged("key 'a' is unknown")
    operator.stop()
