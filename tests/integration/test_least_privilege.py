"""The operator under the chart's own ServiceAccount: every part works, and nothing more is asked for."""

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from addon_operator.devcluster import api, handle, layout
from tests.integration import (
    admitting,
    charts,
    module_objects,
    operator_process,
    operator_site,
    test_forged_records,
)

pytestmark = pytest.mark.integration

_FORBIDDEN: Final = re.compile(r"forbidden|may not|not permitted|no right", re.IGNORECASE)
_WIDGETS: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
_SERVICE: Final = """\
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ports: [{port: 80}]
"""
_BOTH: Final = frozenset({charts.RELEASE, charts.ADMISSION})
_QUESTIONS: Final = {
    "list podpresets.settings.k8s.io -A": {charts.ADMISSION},
    "get pods -A": {charts.ADMISSION},
    "get configmaps -A": {charts.ADMISSION},
    "list services -A": {charts.ADMISSION},
    "update mutatingwebhookconfigurations/addon-operator-NAMESPACE": {charts.ADMISSION},
    "update mutatingwebhookconfigurations": set(),
    "create mutatingwebhookconfigurations": set(),
    "create validatingwebhookconfigurations": set(),
    "create customresourcedefinitions": set(),
    "get secrets -A": set(),
    "create pods": set(),
    "get secrets/addon-operator-admission": _BOTH,
    "create secrets": {charts.RELEASE},
    "update configmaps/addon-operator": {charts.RELEASE},
    "update leases/addon-operator-leader-election": {charts.RELEASE},
    "create modules.addon-operator.io": {charts.RELEASE},
    "list modules.addon-operator.io -A": set(),
    "watch apiservices": {charts.RELEASE},
    "update apiservices": set(),
    "delete customresourcedefinitions": set(),
    "delete customresourcedefinitions/modules.addon-operator.io": {charts.RELEASE},
    "delete customresourcedefinitions/podpresets.settings.k8s.io": set(),
}
"""What may be asked of ``kubectl auth can-i``, and whose ServiceAccounts may do it."""
_LEAST: Final = {"settings.HELM_DRIVER": "configmap"}
_LEAST_QUESTIONS: Final = {
    "get secrets/addon-operator-admission": {charts.ADMISSION},
    "create secrets": set[str](),
}
_BINDING: Final[dict[str, Any]] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "door"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
}
_MAKE: Final = """\
cat > "$KUBERNETES_PATCH_PATH" <<'PATCH'
{"operation": "CreateOrUpdate", "object":
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "NAMESPACE"}}}
PATCH
echo '[{"op": "add", "path": "/web/discovered", "value": "yes"}]' > "$CONFIG_VALUES_JSON_PATCH_PATH"
"""


def write_modules(site: operator_site.Site) -> None:
    """A module that uses everything a module can."""
    site.hook(site.global_hooks, "start.sh", {"onStartup": 1})
    module = site.module(
        "010-web",
        {"size": "{{ .Values.web.size | quote }}"},
        values="webEnabled: true\nweb:\n  size: small\n",
    )
    # The operator itself may list Services everywhere, but not watch them.
    (module / "templates" / "service.yaml").write_text(_SERVICE)
    (module / "crds").mkdir()
    (module / "crds" / "widgets.yaml").write_text(_WIDGETS)
    site.hook(module, "make.sh", {"afterHelm": 1}, _MAKE.replace("NAMESPACE", site.namespace))
    watched = {
        "name": "settings",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "labelSelector": {"matchLabels": {"watched": "yes"}},
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "jqFilter": ".data",
    }
    site.hook(module, "watch.sh", {"kubernetes": [watched]})


def denials(operator: operator_process.OperatorProcess) -> list[str]:
    """Lines of the log about missing rights."""
    return [line for line in operator.log.splitlines() if _FORBIDDEN.search(line)]


def shop_of(
    operator: operator_process.OperatorProcess, cluster: handle.DevCluster, namespace: str
) -> admitting.Shop:
    """A namespace whose pods that operator admits."""
    client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
    return admitting.Shop(namespace, operator, cluster, client)


def test_every_part_works_with_the_rights_that_the_chart_gives(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    write_modules(site)
    values = {
        "rbac.modules": "namespace-admin",
        "rbac.moduleCRDs": True,
        "podPresets.readSecrets": True,
    }
    namespace = devcluster.namespace("shop")
    with (
        charts.installed(devcluster, site, values) as installation,
        charts.operating(installation) as operator,
    ):
        operator.wait_ready()
        see_modules_at_work(site, operator)
        see_reactions(site, operator)
        see_pods_admitted(shop_of(operator, devcluster, namespace))
        see_wrong_edits_refused(site)
        see_webhooks_restored(site, operator)
        see_status(site, operator)
        assert denials(operator) == []
        # The one is the question whether ConfigMaps, of which a release has some, may be listed everywhere.
        assert refusals(operator) <= 1
        operator.stop()
    devcluster.delete_namespace(namespace)


def refusals(operator: operator_process.OperatorProcess) -> float:
    """How often the API server has refused a request."""
    return operator.metrics().total("kubernetes_client_request_result_total", code="403")


def test_secrets_are_neither_read_nor_asked_for_unless_the_chart_says_so(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    namespace = devcluster.namespace("shop")
    with charts.installed(devcluster, site, {}) as installation, charts.operating(installation) as operator:
        operator.wait_ready()
        see_secrets_left_alone(shop_of(operator, devcluster, namespace))
        assert (denials(operator), refusals(operator)) == ([], 0)
    devcluster.delete_namespace(namespace)


@pytest.mark.slow
def test_definitions_that_are_missing_are_created_by_a_right_that_is_held_to_their_names(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    names = ("podpresets.settings.k8s.io", "modules.addon-operator.io")

    def found() -> int:
        return len([name for name in names if site.find("crd", name)])

    site.delete("crd", *names)
    with charts.installed(devcluster, site, {}, "--skip-crds") as installation:
        assert found() == 0
        with charts.operating(installation) as operator:
            operator.wait_until(lambda: found() == 2, "the definitions are there")
            for name in names:
                admitting.wait_established(devcluster, name)
            operator.wait_ready()
            assert denials(operator) == []


@pytest.mark.slow
def test_the_definition_of_an_older_version_is_replaced_by_the_same_rights(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    modules = module_objects.Modules(site, devcluster)
    modules.leave_definition("addon-operator")
    modules.add(10, "web")
    with charts.installed(devcluster, site, {}) as installation, charts.operating(installation) as operator:
        modules.wait(operator, "web", Ready="True")
        assert (modules.scope, denials(operator)) == ("Namespaced", [])


def see_secrets_left_alone(shop: admitting.Shop) -> None:
    """A conflict that only a Secret would show passes; a reference to a single key of one is no riddle."""
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"DB_PORT": "1"},
    }  # fmt: skip
    shop.request("POST", f"/api/v1/namespaces/{shop.namespace}/secrets", secret)
    shop.preset()
    shop.operator.wait_until(lambda: admitting.is_injected(shop, shop.operator), "a pod was injected")
    from_secret = {"secretRef": {"name": "db"}}
    given = shop.pod(admitting.container(args=["$(NOWHERE)"], envFrom=[from_secret]))
    assert given["spec"]["containers"][0]["env"] == [{"name": "DB_PORT", "value": "6379"}]
    key = {"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "DB_PORT"}}}
    shop.pod(admitting.container(args=["$(P) $(ELSEWHERE)"], env=[key]))
    (told,) = shop.wait_events("UnresolvedVariable", 1)
    assert "$(ELSEWHERE)" in told["message"]
    assert "$(P)" not in told["message"]


@pytest.mark.slow
def test_admission_apart_from_the_operator_works_with_rights_of_its_own(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    write_modules(site)
    values = {"rbac.modules": "namespace-admin", "rbac.moduleCRDs": True, "admission.separate": True}
    namespace = devcluster.namespace("shop")
    other_socket = str(site.root / "other.socket")
    with (
        charts.installed(devcluster, site, values) as installation,
        charts.operating(
            # No Helm is on its way, and nothing is there that could be started.
            installation, charts.ADMISSION, DEBUG_UNIX_SOCKET=other_socket, PATH="/nonexistent"
        ) as admission,
        charts.operating(installation) as operator,
    ):  # fmt: skip
        admission.wait_ready()
        operator.wait_ready()
        see_modules_at_work(site, operator)
        see_pods_admitted(shop_of(admission, devcluster, namespace))
        see_wrong_edits_refused(site)
        see_webhooks_restored(site, admission)
        see_status(site, operator)
        see_one_part_each(operator, admission)
        assert denials(operator) + denials(admission) == []
        # The questions whether ConfigMaps and Services, as a release has some, may be listed everywhere.
        assert (refusals(operator) <= 2, refusals(admission)) == (True, 0)
        admission.stop()
        operator.stop()
    devcluster.delete_namespace(namespace)


def see_one_part_each(
    operator: operator_process.OperatorProcess, admission: operator_process.OperatorProcess
) -> None:
    """The one admits and runs no module; the other has never heard of a pod."""
    assert admission.get("/readyz/admission").status == 200
    assert admission.get("/status/converge").text.strip() == "ADMISSION_ONLY"
    assert admission.metrics().total("podpreset_admissions_total") >= 1
    assert (operator.metrics().total("leader"), admission.metrics().total("leader")) == (1, 0)
    asked = re.findall(r'url="([^"]+)"', operator.get("/metrics").text)
    assert [url for url in asked if "podpresets" in url or "webhook" in url] == []


def test_neither_part_has_rights_of_the_other_where_they_are_apart(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    # Helm's records as Secrets have the operator read and make all Secrets of its namespace.
    for more, other in ({}, {}), (_LEAST, _LEAST_QUESTIONS):
        rendered = charts.render(devcluster.helm, {"admission.separate": True, **more}, site.namespace)
        of_users = charts.user_roles(rendered)
        rules = [each for each in rendered if "rbac." in each["apiVersion"] and each not in of_users]
        site.apply(*rules)

        def holders() -> dict[str, set[str]]:
            return {
                question: {account for account in _BOTH if is_allowed(site, account, question)}
                for question in _QUESTIONS
            }

        wanted = {**_QUESTIONS, **other}
        # The API server hears of roles a moment after they are made.
        operator_process.wait_until(
            lambda: holders() == wanted,  # noqa: B023 - it is asked at once
            "each account has its rights and no others",
            explain=lambda: str(sorted(holders().items() ^ wanted.items())),  # noqa: B023 - as above
        )
        for each in rules:
            site.delete(each["kind"].lower(), charts.name_of(each))


def test_no_hook_and_no_chart_reaches_beyond_the_rights_of_the_installation_with_the_least(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    site.module("010-web", {"size": "small"}, values="webEnabled: true\n")
    for name, operation in doors(site.namespace).items():
        module = site.module(f"020-{name}", values=f"{name}Enabled: true\n")
        written = f"cat > \"$KUBERNETES_PATCH_PATH\" <<'PATCH'\n{json.dumps(operation)}\nPATCH"
        site.hook(module, "open.sh", {"beforeHelm": 1}, written)
    chart = site.module("030-chart", {}, values="chartEnabled: true\n")
    (chart / "templates" / "more.yaml").write_text(json.dumps(_BINDING))
    values = {"admission.separate": True, **_LEAST}
    with (
        charts.installed(devcluster, site, values) as installation,
        charts.operating(installation, CONVERGE_ON_FAILURE="continue") as operator,
    ):
        for name in doors(site.namespace):
            operator.wait_logged(f'"module":"{name}"', "addon-operator may not")
        operator.wait_logged('"module":"chart"', "forbidden")
        operator.wait_until(lambda: site.data("web") == {"size": "small"}, "what has the rights works")
        for kind in ("pod", "rolebinding", "secret"):
            assert site.find(kind, "door") is None
        path = f"mutatingwebhookconfiguration/addon-operator-{site.namespace}"
        assert "door" not in site.kubectl("get", path, "-o", "yaml")
        operator.stop()


@pytest.mark.slow
def test_who_edits_a_release_namespace_makes_nothing_of_the_installation_with_the_least(
    devcluster: handle.DevCluster, site: operator_site.Site
) -> None:
    attack = test_forged_records.Attack(site, "configmap")
    site.kubectl("create", "namespace", attack.edge)
    attack.module("010-web", {"a": '{{ .Values.web.a | default "one" }}'}, createNamespace=False)
    attack.module("010-gone", {"a": "one"}, createNamespace=False)
    attack.leave_unused()
    values = {"admission.separate": True, **_LEAST, "releaseNamespaces": [attack.edge]}

    def data(name: str) -> str | None:
        found = site.find("configmap", name, attack.edge)
        return None if found is None else str(found["data"]["a"])

    with (
        charts.installed(devcluster, site, values) as installation,
        charts.operating(installation, CONVERGE_ON_FAILURE="continue") as operator,
    ):
        operator.wait_until(lambda: data("web") == data("gone") == "one", "both are installed")
        operator.wait_idle()
        account = f"system:serviceaccount:{site.namespace}:addon-operator"
        for question in (("create", "pods"), ("get", "secrets"), ("create", "rolebindings")):
            assert not site.may(account, *question, namespace=attack.edge), question
        attackable = ("web", "gone", "guest", *test_forged_records.UNUSED)
        victims = {each: attack.victim(f"victim-{each}") for each in attackable}
        own = attack.uid("web", attack.edge)
        for case in ("web", "gone"):
            attack.edit(case)
        attack.forge_of_nobody()
        site.config(web="a: two\n", goneEnabled="false")
        operator.wait_until(lambda: data("web") == "two", "it goes on from chart and values")
        operator.wait_until(lambda: data("gone") is None, "it is removed")
        operator.wait_idle().stop()
    attack.check_nothing_came_of_it(victims)
    assert attack.uid("web", attack.edge) == own


def doors(namespace: str) -> dict[str, dict[str, object]]:
    """What would give a hook more rights than its operator has, by the names of modules that try it."""
    account = charts.ADMISSION
    token = {"annotations": {"kubernetes.io/service-account.name": account}}
    pod = {"serviceAccountName": account, "containers": [{"name": "door", "image": "door"}]}
    labels = {"metadata": {"labels": {"door": "open"}}}
    configuration = {"kind": "MutatingWebhookConfiguration", "name": f"addon-operator-{namespace}"}
    certificates = {"kind": "Secret", "name": "addon-operator-admission", "namespace": namespace}
    copied = ".metadata.labels.door = (.data | tostring)"

    def create(kind: str, more: Mapping[str, object], **body: object) -> dict[str, object]:
        metadata = {"name": "door", "namespace": namespace, **more}
        made = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}
        return {"operation": "Create", "object": made}

    return {
        "token": create("Secret", token, type="kubernetes.io/service-account-token"),
        "pod": create("Pod", {}, spec=pod),
        "role": {"operation": "Create", "object": {**_BINDING, "metadata": {
            "name": "door", "namespace": namespace,
        }}},
        "pods": {"operation": "MergePatch", "mergePatch": labels, **configuration,
                 "apiVersion": "admissionregistration.k8s.io/v1"},
        "key": {"operation": "JQPatch", "jqFilter": copied, "apiVersion": "v1", **certificates},
    }  # fmt: skip


def is_allowed(site: operator_site.Site, account: str, question: str) -> bool:
    """Whether RBAC lets a ServiceAccount do it."""
    verb, resource, *everywhere = question.replace("NAMESPACE", site.namespace).split()
    resource, _, name = resource.partition("/")
    group = {
        "mutatingwebhookconfigurations": ".admissionregistration.k8s.io",
        "validatingwebhookconfigurations": ".admissionregistration.k8s.io",
        "customresourcedefinitions": ".apiextensions.k8s.io",
        "leases": ".coordination.k8s.io",
        "apiservices": ".apiregistration.k8s.io",
    }.get(resource, "")
    return site.may(
        f"system:serviceaccount:{site.namespace}:{account}",
        verb,
        resource + group,
        name=name,
        everywhere=bool(everywhere),
        groups=[
            "system:serviceaccounts",
            f"system:serviceaccounts:{site.namespace}",
            "system:authenticated",
        ],
    )


def see_modules_at_work(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """Hooks, a release, a definition, an object made by a hook."""
    assert site.revisions()["web"] >= 1
    assert site.data("made") is not None
    assert site.listed("widgets.example.com") == []
    config = site.data(operator_site.CONFIG_MAP)
    assert config is not None
    assert "discovered" in config["web"]
    operator.wait_until(lambda: "watch.sh settings" in site.labels(), "the Synchronization run")


def see_reactions(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """An edit, an event of a watched object, an object of a release that somebody deletes."""
    operator.wait_idle()
    site.config(web="size: large\n")
    operator.wait_until(lambda: (site.data("web") or {}).get("size") == "large", "the edit is in the release")
    site.create("configmap", "watched", {"data": {"a": "1"}})
    site.label("configmap", "watched", {"watched": "yes"})
    operator.wait_until(lambda: site.labels().count("watch.sh settings") >= 2, "the run for the event")
    operator.wait_idle()
    site.delete("configmap", "web")
    operator.wait_until(lambda: site.data("web") is not None, "what was deleted is there again")
    operator.wait_idle()
    site.delete("service", "web")
    operator.wait_until(lambda: site.find("service", "web"), "and the Service")


def see_pods_admitted(shop: admitting.Shop) -> None:
    """Presets, conflicts and references."""
    shop.preset()
    shop.preset("other", env=[{"name": "DB_PORT", "value": "1"}], selector={"matchLabels": {"role": "odd"}})
    shop.operator.wait_until(lambda: admitting.is_injected(shop, shop.operator), "a pod was injected")
    shop.pod(admitting.container(env=[{"name": "DB_PORT", "value": "other"}]))
    shop.wait_events("conflict", 1)
    shop.pod(admitting.container(args=["$(NOWHERE)"]))
    shop.wait_events("UnresolvedVariable", 1)
    shop.operator.wait_until(
        lambda: shop.stored_preset().get("status", {}).get("injected", 0) >= 1, "the preset's status"
    )


def see_wrong_edits_refused(site: operator_site.Site) -> None:
    """The validating webhook of the values ConfigMap."""
    with pytest.raises(operator_site.RefusedError, match="web"):
        site.config(web="size: [\n")


def see_webhooks_restored(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """At once, by a watch that is held to names: the regular look comes every half minute."""
    kind, name = "mutatingwebhookconfiguration", f"addon-operator-{site.namespace}"
    site.patch(kind, name, {"webhooks": []})
    operator.wait_until(
        lambda: site.get(kind, name).get("webhooks"), "the webhook is there again", deadline=20
    )


def see_status(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """The Lease, the Module object and its Events."""
    assert site.get("lease", "addon-operator-leader-election")["spec"]["holderIdentity"]
    site.kubectl("wait", "--for=condition=Ready", "module/web", "--timeout=30s")
    told = "involvedObject.kind=Module,involvedObject.name=web"
    operator.wait_until(lambda: site.objects("events", fieldSelector=told), "an Event about the module")


def test_without_rights_for_modules_a_release_fails_with_the_right_that_is_missing(
    devcluster: handle.DevCluster, site: operator_site.Site, tmp_path: pathlib.Path
) -> None:
    site.module("010-web", {"size": "small"}, values="webEnabled: true\n")
    site.hook(site.module("020-plain", values="plainEnabled: true\n"), "run.sh", {"beforeHelm": 1})
    with (
        charts.installed(devcluster, site, {"podPresets.enabled": False}) as installation,
        charts.operating(
            installation, CONVERGE_ON_FAILURE="continue", ADMISSION_SERVER_ENABLED="false"
        ) as operator,
    ):
        line = operator.wait_logged("web", "forbidden", "configmaps")
        assert "addon-operator" in line
        operator.wait_until(lambda: "run.sh beforeHelm" in site.labels(), "the other module runs")
        operator.stop()
