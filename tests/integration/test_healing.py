"""Resources of releases that disappear come back; what is removed on purpose does not."""

import json
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import charts, module_objects, operator_process, operator_site

pytestmark = pytest.mark.integration

_RESOURCES: Final = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {{name: listed}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: kept
  annotations: {{helm.sh/resource-policy: keep}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: elsewhere, namespace: {namespace}-other}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}-role}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: helm-hook
  annotations: {{helm.sh/hook: pre-install}}
"""
_DELETE: Final = """
cat > "$KUBERNETES_PATCH_PATH" <<PATCH
{{"operation": "Delete", "kind": "ConfigMap", "name": "{name}", "namespace": "{namespace}"}}
PATCH
"""


def add(module: pathlib.Path, name: str, text: str) -> None:
    (module / "templates" / name).write_text(text)


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def healed(operator: operator_process.OperatorProcess, module: str) -> float:
    return operator.metrics().total("resources_healed_total", module=module)


def test_every_kind_of_resource_comes_back_and_helms_own_hooks_do_not(site: operator_site.Site) -> None:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    add(module, "more.yaml", _RESOURCES.format(namespace=site.namespace))
    other = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    site.hook(module, "before.sh", {"beforeHelm": 1})
    site.create("namespace", f"{site.namespace}-other")
    operator = site.start().wait_ready().wait_idle()
    try:
        before = site.revisions()
        site.delete("configmap", "helm-hook")
        other_namespace = f"{site.namespace}-other"
        site.delete("configmap", "elsewhere", namespace=other_namespace)
        operator.wait_metric(1, "resources_healed_total", module="web")
        operator.wait_idle()
        site.get("configmap", "elsewhere", other_namespace)
        assert site.revisions() == before
        assert site.labels().count("before.sh beforeHelm") == 1
        assert healed(operator, "db") == 0
        assert (other / "templates").is_dir()

        # A burst neither makes a revision nor a run.
        role = f"{site.namespace}-role"
        several = (("secret", "listed"), ("configmap", "kept"), ("configmap", "web"), ("clusterrole", role))
        for kind, name in several:
            site.delete(kind, name)
        operator.wait_metric(1 + len(several), "resources_healed_total", module="web")
        operator.wait_idle()
        for kind, name in several:
            site.get(kind, name)
        assert site.revisions() == before

        # What disappears while the operator is away comes back when it starts.
        operator.stop()
        site.delete("configmap", "db")
        again = site.start().wait_ready()
        again.wait_metric(1, "resources_healed_total", module="db")
        assert site.data("db") == {"a": "b"}
        assert healed(again, "web") == 0
        again.stop()
    finally:
        site.delete("namespace", f"{site.namespace}-other", waits=False)


_PASSWORD: Final = """\
apiVersion: v1
kind: Secret
metadata:
  name: password
  labels: {from: chart}
stringData:
  password: {{ randAlphaNum 20 }}
{{ if .Release.IsUpgrade }}
{{ $_ := lookup "v1" "Secret" .Release.Namespace "password" | required "no Secret" }}
{{ end }}
"""


def secret(site: operator_site.Site) -> dict[str, Any]:
    found: dict[str, Any] = site.get("secret", "password")
    return found


def seconds_until_it_is_back(site: operator_site.Site, uid: str) -> float:
    began = time.monotonic()
    while time.monotonic() < began + operator_process.READY_DEADLINE:
        found = site.find("secret", "password")
        if found and found["metadata"]["uid"] != uid:
            return time.monotonic() - began
    raise AssertionError("it does not come back")


@pytest.mark.slow
def test_a_random_password_comes_back_as_it_was_while_the_newest_values_are_wrong(
    site: operator_site.Site, record_property: Callable[[str, object], None]
) -> None:
    module = site.module(
        "010-web",
        {"a": '{{ .Values.web.a | required "a is missing" }}'},
        values="web: {a: b}\nwebEnabled: true",
    )
    add(module, "password.yaml", _PASSWORD)
    site.hook(module, "before.sh", {"beforeHelm": 1})
    operator = site.start().wait_ready().wait_idle()
    before, revisions = secret(site), site.revisions()
    took = []
    for number in range(10):
        uid = secret(site)["metadata"]["uid"]
        site.delete("secret", "password", waits=False)
        took.append(seconds_until_it_is_back(site, uid))
        if number == 4:
            # From here on each run of the module fails, and its hooks run again and again.
            site.config(web="a: null")
            operator.wait_logged("a is missing")
    after = secret(site)
    assert (after["data"], after["metadata"]["labels"]) == (before["data"], before["metadata"]["labels"])
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert site.revisions() == revisions, "no revision was made"
    record_property("seconds until it is back", statistics.median(took))
    operator.wait_metric(10, "resources_healed_total", module="web")
    assert "restored from the record of the release" in operator.log

    # A restart with values that are wrong still watches over the release, and the chart is not stuck.
    operator.stop()
    site.delete("secret", "password")
    again = site.start()
    again.wait_until(lambda: site.find("secret", "password"), "it is back")
    assert secret(site)["data"] == before["data"]
    site.config(web="a: c")
    again.wait_ready()
    assert site.data("web") == {"a": "c"}
    again.stop()


def test_a_release_without_a_usable_record_is_run(site: operator_site.Site) -> None:
    site.module("010-web", {"a": "b"}, values="webEnabled: true")
    operator = site.start().wait_ready().wait_idle()
    site.delete("secret", "sh.helm.release.v1.web.v1")
    site.delete("configmap", "web")
    operator.wait_until(lambda: site.data("web") == {"a": "b"}, "installed anew")
    # Who looks at objects and who looks at records may be first.
    operator.wait_logged("the module runs", "web")
    assert site.revisions() == {"web": 1}
    operator.stop()


def test_what_a_modules_hook_or_helm_removes_stays_away_and_a_global_hooks_deletion_is_healed(
    site: operator_site.Site,
) -> None:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    add(module, "mine.yaml", config_map("mine"))
    add(module, "extra.yaml", "{{ if not .Values.web.small }}\n" + config_map("extra") + "{{ end }}\n")
    site.hook(module, "after.sh", {"afterHelm": 1}, _DELETE.format(name="mine", namespace=site.namespace))
    site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    site.hook(
        site.global_hooks,
        "last.sh",
        {"afterAll": 1},
        '[[ "$config" == *remove* ]] || exit 0' + _DELETE.format(name="db", namespace=site.namespace),
    )
    operator = site.start().wait_ready().wait_idle()
    before = site.revisions()
    assert site.data("mine") is None
    # An upgrade that drops a resource is no reason, and the hook goes on to remove its own.
    site.config(web="small: true")
    operator.wait_until(lambda: site.revisions()["web"] == before["web"] + 1, "upgraded")
    operator.wait_idle()
    assert site.data("extra") is None
    assert site.data("mine") is None
    site.config(**{"global": "remove: 1"})
    operator.wait_metric(1, "resources_healed_total", module="db")
    assert site.data("db") == {"a": "b"}
    assert healed(operator, "web") == 0
    assert site.revisions()["web"] == before["web"] + 1
    operator.stop()


@pytest.mark.slow
def test_a_job_that_ended_is_made_again_by_a_revision_alone(site: operator_site.Site) -> None:
    module = site.module("010-web", {"a": '"{{ .Values.web.a }}"'}, values="webEnabled: true\nweb: {a: b}")
    for name, spec in (("quick", "ttlSecondsAfterFinished: 0, "), ("long", "suspend: true, ")):
        pod = "{spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}"
        job = (
            f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec: {{{spec}template: {pod}}}\n"
        )
        add(module, f"{name}.yaml", job)
    add(
        module,
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: once}\n"
        "spec: {containers: [{name: a, image: a}], nodeName: nowhere}\n",
    )
    operator = site.start().wait_ready().wait_idle()

    def uid(job: str) -> str | None:
        found = site.find("job", job)
        return None if found is None else found["metadata"]["uid"]

    running = uid("long")
    operator.wait_until(lambda: uid("quick") is None, "Kubernetes removes what has ended")
    site.delete("job", "long")
    operator.wait_until(lambda: uid("long") not in (None, running), "what had not ended comes back")
    site.patch("pod", "once", {"status": {"phase": "Succeeded"}}, subresource="status")
    site.delete("pod", "once")
    site.delete("configmap", "web")
    operator.wait_metric(2, "resources_healed_total", module="web")
    operator.wait_until(
        lambda: (
            json.loads(site.command("module", "list", "-o", "json").stdout)["modules"][0]["health"]
            == "Healthy"
        ),
        "nothing is missing",
    )
    assert (uid("quick"), site.find("pod", "once")) == (None, None)
    operator.stop()
    # Whether it had ended when it went is not known.
    site.delete("job", "long")
    operator = site.start().wait_ready().wait_idle()
    assert (uid("quick"), uid("long"), site.find("pod", "once")) == (None, None, None)
    assert site.revisions() == {"web": 1}
    site.config(web="a: c")
    operator.wait_until(lambda: uid("quick"), "a revision makes it again")
    assert uid("long")
    assert site.find("pod", "once")
    operator.stop()


def test_without_rights_for_the_whole_cluster_the_namespace_is_watched(site: operator_site.Site) -> None:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    add(module, "account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n")
    kubeconfig = limited(site, forbidden=("serviceaccounts",))
    operator = site.start(KUBE_CONFIG=str(kubeconfig)).wait_ready()
    warning = operator.wait_logged("ServiceAccount", "of module web", "are not watched")
    assert "serviceaccounts" in warning
    operator.wait_idle()
    site.delete("configmap", "web")
    operator.wait_metric(1, "resources_healed_total", module="web")
    assert operator.log.count("are not watched") == 1
    operator.stop()


def limited(site: operator_site.Site, forbidden: tuple[str, ...]) -> pathlib.Path:
    """A kubeconfig of somebody with all rights in the site's namespace but to list and watch some kinds."""
    names = ["configmaps", "secrets", "events", *forbidden]
    rules = [
        f"get,create,patch,update,delete{'' if name in forbidden else ',list,watch'} {name}" for name in names
    ]
    site.account("limited", *rules)
    return charts.kubeconfig_with_token(site.cluster, site, "limited")


def test_an_object_of_two_modules_is_reported_and_stays_when_one_of_them_goes(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown = module_objects.Modules(site, devcluster)
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    for module in (web, db):
        add(module, "shared.yaml", config_map("shared") + "data: {a: b}\n")
    operator = site.start().wait_ready()
    operator.wait_logged("modules web and db both have ConfigMap", "which belongs to db")
    planned = site.command("plan")
    assert "modules web and db both have ConfigMap" in planned.stderr
    listed = site.command("module", "list", "-o", "wide").stdout
    assert f"ConfigMap {site.namespace}/shared (also of db; belongs to db)" in listed
    described = site.command("module", "describe", "db").stdout
    assert f"Shared objects:\n  ConfigMap {site.namespace}/shared (also of web; belongs to db)\n" in described
    assert "Release:     revision 1\n" in described
    uid = site.get("configmap", "shared")["metadata"]["uid"]
    site.kubectl("patch", "configmap", "shared", "-p", '{"data": {"a": "other"}}')
    operator.wait_until(
        lambda: shown.condition("db", "Drifted")["reason"] == "SharedObject", "both may have written it"
    )
    # After a restart, too, when nothing is followed yet.
    operator.stop()
    site.config(webEnabled="false")
    again = site.start().wait_ready().wait_idle()
    assert site.revisions() == {"db": 1}
    assert site.data("web") is None
    assert site.get("configmap", "shared")["metadata"]["uid"] == uid
    site.config(dbEnabled="false")
    again.wait_until(lambda: site.revisions() == {}, "uninstalled")
    assert site.data("shared") is None
    again.stop()


@pytest.mark.slow
def test_an_object_of_two_modules_stays_as_it_is_until_the_last_of_their_charts_drops_it(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    db = site.module("010-db", {"a": "b"}, values="dbEnabled: true")
    for module in (web, db):
        for name in ("shared", "both"):
            add(module, f"{name}.yaml", config_map(name))

    def uid() -> str:
        return str(site.get("configmap", "shared")["metadata"]["uid"])

    site.use_helm(helm)
    site.start().wait_ready().wait_idle().stop()
    # Installed side by side, both may create an object: Helm refuses the second one, and its try is repeated.
    before, made = uid(), site.revisions()
    (web / "templates" / "shared.yaml").unlink()
    for module in (web, db):
        (module / "templates" / "both.yaml").unlink()
    operator = site.start().wait_ready().wait_idle()
    assert site.revisions() == {name: revision + 1 for name, revision in made.items()}
    assert uid() == before
    # Both dropped it side by side: who was last to have it removes it.
    assert site.data("both") is None
    operator.stop()
    (db / "templates" / "shared.yaml").unlink()
    operator = site.start().wait_ready().wait_idle()
    assert site.data("shared") is None
    operator.stop()


def test_a_password_that_is_deleted_while_the_operator_is_away_survives_a_change_of_values(
    site: operator_site.Site,
) -> None:
    module = site.module("010-web", {"a": "{{ .Values.web.a }}"}, values="web: {a: b}\nwebEnabled: true\n")
    add(module, "password.yaml", _LOOKED_UP)
    site.start().wait_ready().wait_idle().stop()
    before = secret(site)["data"]
    site.delete("secret", "password")
    site.config(web="a: c")
    operator = site.start().wait_ready()
    assert site.data("web") == {"a": "c"}
    assert secret(site)["data"] == before
    assert site.revisions() == {"web": 2}
    operator.stop()


_LOOKED_UP: Final = """\
{{ $known := (lookup "v1" "Secret" .Release.Namespace "password").data | default dict }}
apiVersion: v1
kind: Secret
metadata: {name: password}
data:
  password: {{ $known.password | default (randAlphaNum 20 | b64enc) }}
"""
_STATEFUL: Final = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 0
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: {{ .Values.db.size }}}}}
"""


def claimed(site: operator_site.Site) -> str:
    found = site.find("statefulset", "db")
    claims = found["spec"]["volumeClaimTemplates"] if found else []
    return "".join(each["spec"]["resources"]["requests"]["storage"] for each in claims)


@pytest.mark.slow
def test_what_nobody_may_change_is_made_anew_by_helm_once_it_is_deleted_and_a_password_is_kept(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    module = site.module("010-db", {"a": "b"}, values="db: {size: 1Gi}\ndbEnabled: true")
    add(module, "password.yaml", _LOOKED_UP)
    add(module, "stateful.yaml", _STATEFUL)
    site.use_helm(helm)
    operator = site.start().wait_ready().wait_idle()
    before = secret(site)["data"]
    # While nothing has failed it comes back as it was.
    site.delete("statefulset", "db")
    operator.wait_metric(1, "resources_healed_total", module="db")
    site.config(db="size: 2Gi")
    operator.wait_logged("field is immutable")
    assert claimed(site) == "1Gi"
    site.delete("statefulset", "db")
    site.delete("secret", "password")
    operator.wait_logged("Helm creates it again")
    operator.wait_until(lambda: claimed(site) == "2Gi", "the new StatefulSet is there")
    operator.wait_ready().wait_idle()
    assert secret(site)["data"] == before
    # From now on it is an object as any other.
    revisions = site.revisions()
    site.delete("statefulset", "db")
    operator.wait_until(lambda: claimed(site) == "2Gi", "it is restored")
    operator.wait_idle()
    assert site.revisions() == revisions
    operator.stop()
