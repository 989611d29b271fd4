"""After a revision, objects have nothing of earlier manifests that the release no longer has."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from addon_operator.helm import helm_errors
from tests.integration import module_objects, operator_site
from tests.integration.helm_site import Site

pytestmark = pytest.mark.integration


def service(*ports: Mapping[str, Any], name: str = "dns", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    spec = {"selector": {"app": "dns"}, "ports": list(ports), **more}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def config(name: str, data: Mapping[str, str], **metadata: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": dict(data),
    }


def secret(**texts: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": texts}


def workload(container: Mapping[str, Any], **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    labels = {"app": "web"}
    pod = {"containers": [{"name": "web", "image": "example.com/web", **container}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def definition(group: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "spec": {
            "group": group,
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
    }


def thing(group: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": dict(spec)}


def write(site: Site, *objects: Mapping[str, Any]) -> None:
    site.write("templates/objects.yaml", "\n---\n".join(map(json.dumps, objects)))


def take_over_as(site: Site, manager: str, kind: str, name: str) -> None:
    """Have another manager own all fields of an object, as after a move from another operator."""
    entries = site.get(kind, name)["metadata"]["managedFields"]
    moved = [{**each, "manager": manager, "operation": "Update"} for each in entries]
    site.patch(kind, name, [{"op": "replace", "path": "/metadata/managedFields", "value": moved}])


UDP: Final = {"name": "dns", "port": 53, "protocol": "UDP"}
TCP: Final = {"name": "dns-tcp", "port": 53, "protocol": "TCP"}
METRICS: Final = {"name": "metrics", "port": 9153, "protocol": "TCP"}
ENV: Final = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]


async def test_what_leaves_the_manifests_leaves_the_objects_and_what_others_wrote_stays(
    helm_site: Site,
) -> None:
    site, group = helm_site, f"{helm_site.namespace}.example"
    things = f"things.{group}"
    site.create("crd", things, definition(group))
    while site.request("GET", f"/apis/{group}/v1").status != 200:
        pass
    before = (
        config("moved", {"a": "1", "b": "2"}, labels={"x": "1", "y": "2"}, annotations={"z": "3"}),
        service(UDP, TCP, METRICS, sessionAffinity="ClientIP"),
        service(UDP, TCP, name="two", type="NodePort"),
        secret(a="1", b="2"),
        workload({"env": ENV, "livenessProbe": {"exec": {"command": ["a"]}}}, minReadySeconds=3),
        thing(group, {"size": 1, "more": {"a": 1, "b": 2}}),
    )
    after = (
        config("moved", {"a": "1"}, labels={"x": "1"}),
        service(UDP, METRICS),
        service(UDP, name="two", type="NodePort"),
        secret(a="1"),
        workload({"env": ENV[:1]}),
        thing(group, {"size": 1, "more": {"a": 1}}),
    )
    async with site.manager() as manager:
        write(site, *before)
        await manager.ensure(site.asked(1))
        for kind, name in (("configmap", "moved"), ("deployment", "web"), (things, "one")):
            take_over_as(site, "another-operator", kind, name)
        site.patch("configmap", "moved", {"data": {"theirs": "4"}})
        site.patch(things, "one", {"spec": {"more": {"theirs": 3}}})
        address, port = site.get("service", "dns")["spec"]["clusterIP"], node_port(site)
        write(site, *after)
        await manager.ensure(site.asked(2))

        moved = site.get("configmap", "moved")["metadata"]
        assert {"x", "y"} & moved["labels"].keys() == {"x"}
        assert "z" not in moved["annotations"]
        dns = site.get("service", "dns")["spec"]
        assert (dns["sessionAffinity"], dns["clusterIP"], node_port(site)) == ("None", address, port)
        check(site, things)

        # What a failed revision added and changed.
        changed = thing(group, {"size": 7, "more": {"a": 7, "b": 7}})
        write(site, *before[:-1], changed, {**changed, "metadata": {"name": "wrong_"}})
        with pytest.raises(helm_errors.HelmError):
            await manager.ensure(site.asked(3))
        write(site, *after)
        await manager.ensure(site.asked(4))
        check(site, things)
    assert not [each for each in site.warnings if "no longer has" in each]


def node_port(site: Site) -> int:
    """What the API server allocated for the port that stays."""
    ports = site.get("service", "two")["spec"]["ports"]
    return int(next(each["nodePort"] for each in ports if each["protocol"] == "UDP"))


def check(site: Site, things: str) -> None:
    """Only what the last manifest has is there, and what others wrote."""
    web = site.get("deployment", "web")["spec"]
    (container,) = web["template"]["spec"]["containers"]
    assert site.get("configmap", "moved")["data"] == {"a": "1", "theirs": "4"}
    assert site.get("secret", "keys")["data"].keys() == {"a"}
    assert container["env"] == ENV[:1]
    assert "livenessProbe" not in container
    assert "minReadySeconds" not in web
    assert site.get(things, "one")["spec"] == {"size": 1, "more": {"a": 1, "theirs": 3}}
    ports = {
        name: {(each["port"], each["protocol"]) for each in site.get("service", name)["spec"]["ports"]}
        for name in ("dns", "two")
    }
    assert ports == {"dns": {(53, "UDP"), (9153, "TCP")}, "two": {(53, "UDP")}}


@pytest.mark.slow
def test_what_nobody_may_remove_is_drifted_until_the_object_is_made_again(
    site: operator_site.Site, devcluster: handle.DevCluster, helm4: pathlib.Path
) -> None:
    site.use_helm(helm4)
    modules = module_objects.Modules(site, devcluster)
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nimmutable: true\n"
        "stringData: {a: '1'{{ if not .Values.web.less }}, b: '2'{{ end }}}\n"
    )
    (module / "templates" / "keys.yaml").write_text(text)
    operator = site.start().wait_ready().wait_idle()
    site.config(web="less: true\n")
    modules.wait(operator, "web", Drifted="True", Ready="True")
    drifted = modules.condition("web", "Drifted")
    command = f"kubectl delete secret keys --namespace {site.namespace}"
    assert drifted["reason"] == "LeftOver"
    assert "/data/b (an earlier revision left it" in drifted["message"]
    assert command in drifted["message"]
    operator.stop()
    operator = site.start().wait_ready()
    operator.wait_logged("/data/b (an earlier revision left it")
    site.kubectl("delete", "secret", "keys")
    modules.wait(operator, "web", Drifted="False", Ready="True")
    assert site.get("secret", "keys")["data"].keys() == {"a"}
    operator.stop()


@pytest.mark.slow
def test_an_object_that_helm_3_could_not_delete_is_named_and_goes_as_soon_as_it_may(
    site: operator_site.Site,
) -> None:
    module = site.module("010-web", {"color": "{{ .Values.web.color }}"}, values="web: {color: red}\n")
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}}
    text = json.dumps(old)
    (module / "templates" / "old.yaml").write_text(
        f'{{{{ if eq .Values.web.color "red" }}}}{text}{{{{ end }}}}'
    )
    site.config(webEnabled="true")
    operator = site.start().wait_ready().wait_idle()
    policy = site.namespace
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["DELETE"]}
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    for kind, body in {
        "": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": policy}},
                "resourceRules": [rule],
            },
            "validations": [{"expression": "false", "message": "nobody deletes this"}],
        },
        "Binding": {"policyName": policy, "validationActions": ["Deny"]},
    }.items():
        manifest = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": policy},
            "spec": body,
        }
        plural = f"{path}{'ybindings' if kind else 'ies'}"
        made = site.request("POST", plural, {**manifest, "kind": f"ValidatingAdmissionPolicy{kind}"})
        assert made.is_success, made
    tried = f"/api/v1/namespaces/{site.namespace}/configmaps/old?dryRun=All"
    operator.wait_until(lambda: not site.request("DELETE", tried).is_success, "the policy is in force")

    site.config(web="color: green")
    assert "ConfigMap old" in operator.wait_logged("level=warn", "Helm could not delete")
    operator.wait_logged("level=warn", "could not be deleted", "nobody deletes this")
    operator.wait_idle()
    site.request("DELETE", f"{path}ybindings/{policy}")
    operator.wait_until(lambda: site.request("DELETE", tried).is_success, "the policy is gone")
    site.config(web="color: blue")
    operator.wait_until(lambda: site.data("old") is None, "it goes after the next run")
    operator.stop()
