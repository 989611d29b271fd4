"""The values Secret without the right to read it, or to watch it, which comes and goes."""

import pathlib
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import charts, cluster_objects, operator_site

pytestmark = pytest.mark.integration

ACCOUNT = "limited"


def rule(groups: str, resources: str, verbs: str = "*", **more: object) -> dict[str, object]:
    return {
        "apiGroups": groups.split(","),
        "resources": resources.split(","),
        "verbs": verbs.split(","),
        **more,
    }


ITS_OWN: Final = [
    rule("", "secrets", "get,patch", resourceNames=[f"{operator_site.CONFIG_MAP}-state"]),
    rule("", "secrets", "create"),
]
"""What the operator needs to remember its releases."""


def limited(site: operator_site.Site, cluster: handle.DevCluster) -> pathlib.Path:
    """A kubeconfig of somebody who may do everything that is needed, but nothing with Secrets."""
    rules = [
        rule("", "configmaps,events,namespaces,services"),
        rule("apps,addon-operator.io,coordination.k8s.io,apiextensions.k8s.io", "*"),
    ]
    group = "rbac.authorization.k8s.io"
    name = f"{site.namespace}-{ACCOUNT}"
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": site.namespace}
    own = {"name": ACCOUNT, "namespace": site.namespace}
    objects: list[cluster_objects.Object] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "subjects": [subject], "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        },
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": own, "rules": ITS_OWN},
        {
            "apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": own,
            "subjects": [subject], "roleRef": {"apiGroup": group, "kind": "Role", "name": ACCOUNT},
        },
    ]  # fmt: skip
    site.apply(*objects)
    return charts.kubeconfig_with_token(cluster, site, ACCOUNT)


def allow(site: operator_site.Site, verbs: str) -> None:
    """Allow exactly this with the values Secret; nothing if it is empty."""
    values = [rule("", "secrets", verbs, resourceNames=[operator_site.CONFIG_MAP])] if verbs else []
    rules = [*ITS_OWN, *values]
    site.patch("role", ACCOUNT, {"rules": rules})


def module(site: operator_site.Site) -> None:
    site.module(
        "010-web",
        {"seen": "{{ toJson .Values.web | quote }}"},
        values="webEnabled: true\nweb: {color: green, password: none}\n",
    )


def sees(site: operator_site.Site, *words: str) -> bool:
    return all(word in str(site.data("web")) for word in words)


def test_the_right_to_read_the_secret_comes_and_goes(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    module(site)
    site.secret(web="password: s3cret-one")
    own = {"KUBE_CONFIG": str(limited(site, devcluster)), "HELM_DRIVER": "configmap"}
    operator = site.start(**own).wait_ready()
    assert sees(site, "green", "none")
    named = f"Secret {site.namespace}/{operator_site.CONFIG_MAP}"
    line = operator.wait_logged(f"{named} counts as empty, because it must not be read")
    assert "allow that, or set VALUES_SECRET to none" in line
    site.config(web="color: red")
    operator.wait_until(lambda: sees(site, "red", "none"), "the ConfigMap is followed all the same")
    allow(site, "get,list,watch")
    operator.wait_until(lambda: sees(site, "red", "s3cret-one"), "the Secret counts")
    site.secret(web="password: s3cret-two")
    operator.wait_until(lambda: sees(site, "s3cret-two"), "its edits count")
    allow(site, "")
    site.config(web="color: blue")
    operator.wait_until(lambda: sees(site, "blue"), "the ConfigMap is followed all the same")
    assert sees(site, "s3cret-two"), "what was read once stays"
    assert "s3cret" not in operator.log
    operator.stop()


@pytest.mark.slow
def test_a_secret_that_a_setting_names_is_waited_for_without_the_right(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    module(site)
    site.secret(web="password: s3cret-one")
    named = {"KUBE_CONFIG": str(limited(site, devcluster)), "HELM_DRIVER": "configmap"}
    named["VALUES_SECRET"] = operator_site.CONFIG_MAP
    ended = site.start(**named).wait_end()
    assert ended.exit_code == 1
    output = ended.output.replace('\\"', '"')
    assert 'may not get secrets "addon-operator"' in output
    assert 'resources: ["secrets"], verbs: ["get"]' in output
    assert site.data("web") is None, "nothing runs without its password"
    allow(site, "get")
    operator = site.start(**named)
    operator.wait_until(lambda: sees(site, "s3cret-one"), "it is read")
    operator.wait_until(
        lambda: "the watch of the values Secret" in operator.get("/readyz").text, "it says what is missing"
    )
    allow(site, "get,list,watch")
    operator.wait_ready()
    assert "s3cret" not in operator.log
    operator.stop()
