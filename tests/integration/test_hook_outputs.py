"""What hooks give back, applied to a real cluster: objects and metrics."""

import textwrap
from typing import Final

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

WORKLOAD: Final = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "none", "image": "none"}]},
        },
    },
}
"""The spec of a Deployment without pods."""


def write(variable: str, text: str) -> str:
    """The body of a hook that writes a text to one of its files."""
    return f"cat > \"${variable}\" <<'OUTPUT'\n{textwrap.dedent(text)}\nOUTPUT\n"


def metric_lines(operator: operator_process.OperatorProcess, *names: str) -> set[str]:
    """Series and types of these metrics."""
    lines = operator.get("/metrics").text.splitlines()
    return {line for line in lines if line.removeprefix("# TYPE ").startswith(names)}


def write_nulls(site: operator_site.Site) -> None:
    made = f"apiVersion: v1, kind: ConfigMap, metadata: {{name: nulls, namespace: {site.namespace}}}"
    objects = f"""
        operation: CreateOrUpdate
        object: {{{made}, data: {{a: "1"}}}}
        namespace: null
        subresource: null
        jqFilter: .data
        colour: red
        """
    metrics = '{"name": "from_jq", "action": "set", "value": 1, "group": null, "labels": null}'
    body = write("KUBERNETES_PATCH_PATH", objects) + write("METRICS_PATH", metrics)
    site.hook(site.global_hooks, "jq.sh", {"onStartup": 1}, body)


def see_nulls(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """Null is absent, and keys of other operations and unknown ones are warnings."""
    assert site.data("nulls") == {"a": "1"}
    assert "from_jq" in operator.get("/metrics").text
    for key in ("colour", "jqFilter"):
        operator.wait_logged(f"the key '{key}' is not known here")
    assert "the key 'namespace'" not in operator.log


def write_operations(site: operator_site.Site) -> None:
    for name, data in (
        ("replace", "old=1"),
        ("keep", "old=1"),
        ("merge", "a=1"),
        ("json", "a=1"),
        ("jq", "n=1"),
    ):
        key, _, value = data.partition("=")
        site.create("configmap", name, {"data": {key: value}})
    for name in ("gone", "gone-in-background", "gone-alone"):
        site.create("configmap", name)
    site.create("deployment", "scaled", WORKLOAD)
    target = f"apiVersion: v1, kind: ConfigMap, namespace: {site.namespace}"
    made = "apiVersion: v1, kind: ConfigMap"
    meta = f"namespace: {site.namespace}"
    site.hook(site.global_hooks, "all.sh", {"onStartup": 1}, write("KUBERNETES_PATCH_PATH", f"""
        operation: Create
        object: {{{made}, metadata: {{name: made, {meta}}}, data: {{at: "12:30"}}}}
        ---
        operation: CreateOrUpdate
        object: {{{made}, metadata: {{name: replace, {meta}}}, data: {{new: "1"}}}}
        ---
        operation: CreateIfNotExists
        object: {{{made}, metadata: {{name: keep, {meta}}}, data: {{new: "1"}}}}
        ---
        operation: Apply
        object: |
          {{"apiVersion": "v1", "kind": "ConfigMap", "data": {{"b": "2"}},
            "metadata": {{"name": "merge", "namespace": "{site.namespace}"}}}}
        ---
        {{operation: MergePatch, {target}, name: merge, mergePatch: {{data: {{a: null, c: "3"}}}}}}
        ---
        operation: JSONPatch
        kind: ConfigMap
        namespace: {site.namespace}
        name: json
        jsonPatch:
        - {{op: test, path: /data/a, value: "1"}}
        - {{op: move, from: /data/a, path: /data/b}}
        - {{op: add, path: /metadata/labels, value: {{touched: "yes"}}}}
        - {{op: remove, path: /metadata/labels/touched}}
        ---
        {{operation: JQPatch, {target}, name: jq, jqFilter: '.data.n |= (tonumber + 1 | tostring)'}}
        ---
        {{operation: MergePatch, kind: Deployment, namespace: {site.namespace}, name: scaled,
          subresource: scale, mergePatch: {{spec: {{replicas: 2}}}}}}
        ---
        {{operation: JQPatch, kind: Deployment, namespace: {site.namespace}, name: scaled,
          subresource: /scale, jqFilter: .spec.replicas += 1}}
        ---
        {{operation: MergePatch, {target}, name: nobody, mergePatch: {{}}, ignoreMissingObject: true}}
        ---
        {{operation: Delete, {target}, name: gone}}
        ---
        {{operation: DeleteInBackground, {target}, name: gone-in-background}}
        ---
        {{operation: DeleteNonCascading, {target}, name: gone-alone}}
        ---
        {{operation: Delete, {target}, name: nobody}}
    """))  # fmt: skip


def see_operations(site: operator_site.Site) -> None:
    """Every operation changes the cluster."""
    assert {name: site.data(name) for name in ("made", "replace", "keep", "merge", "json", "jq")} == {
        "made": {"at": "12:30"},
        "replace": {"new": "1"},
        "keep": {"old": "1"},
        "merge": {"b": "2", "c": "3"},
        "json": {"b": "1"},
        "jq": {"n": "2"},
    }
    assert site.get("deployment", "scaled")["spec"]["replicas"] == 3
    assert [site.data(name) for name in ("gone", "gone-in-background", "gone-alone")] == [None] * 3


@pytest.mark.slow
def test_a_definition_and_an_object_of_it_come_in_one_run(site: operator_site.Site) -> None:
    plural, group = f"gadgets{site.namespace.replace('-', '')}", "outputs.example.org"
    meta = f"namespace: {site.namespace}"
    site.hook(site.global_hooks, "crd.sh", {"onStartup": 1}, write("KUBERNETES_PATCH_PATH", f"""
        operation: CreateIfNotExists
        object:
          apiVersion: apiextensions.k8s.io/v1
          kind: CustomResourceDefinition
          metadata: {{name: {plural}.{group}}}
          spec:
            group: {group}
            names: {{plural: {plural}, kind: Gadget{plural}}}
            scope: Namespaced
            versions:
            - name: v1
              served: true
              storage: true
              subresources: {{status: {{}}}}
              schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
        ---
        operation: CreateIfNotExists
        object: {{apiVersion: {group}/v1, kind: Gadget{plural}, metadata: {{name: g, {meta}}}}}
        ---
        {{operation: MergePatch, kind: Gadget{plural}, {meta}, name: g, subresource: status,
          mergePatch: {{status: {{phase: Good}}, ignored: true}}}}
    """))  # fmt: skip
    try:
        site.start().wait_ready()
        found = site.get(f"{plural}.{group}", "g")
        assert (found["status"], "ignored" in found) == ({"phase": "Good"}, False)
    finally:
        site.delete("crd", f"{plural}.{group}")


def test_a_foreground_deletion_holds_up_what_comes_after_it(site: operator_site.Site) -> None:
    site.create("configmap", "held")
    site.patch("configmap", "held", {"metadata": {"finalizers": ["example.org/held"]}})
    patch = write(
        "KUBERNETES_PATCH_PATH",
        f'{{"operation": "Delete", "kind": "ConfigMap", "namespace": "{site.namespace}", "name": "held"}}',
    )
    site.hook(site.global_hooks, "wait.sh", {"onStartup": 1}, patch)
    site.hook(site.global_hooks, "then.sh", {"onStartup": 2})
    operator = site.start()

    def is_asked_to_go() -> bool:
        (held,) = site.objects("configmaps", fieldSelector="metadata.name=held")
        return "deletionTimestamp" in held["metadata"]

    operator.wait_until(is_asked_to_go, "the deletion has begun")
    assert site.labels() == ["wait.sh onStartup"]
    site.patch("configmap", "held", {"metadata": {"finalizers": None}})
    operator.wait_ready()
    assert site.labels() == ["wait.sh onStartup", "then.sh onStartup"]


def test_a_deletion_that_a_finalizer_holds_up_holds_up_its_module_alone(site: operator_site.Site) -> None:
    for name in ("held", "done"):
        site.create("configmap", name)
    site.patch("configmap", "held", {"metadata": {"finalizers": ["example.org/held"]}})
    site.values("oneEnabled: true\notherEnabled: true")
    one, other = (site.module(name, {"a": "b"}) for name in ("010-one", "020-other"))
    site.hook(one, "one.sh", {"beforeHelm": 1}, write("KUBERNETES_PATCH_PATH", f"""
        {{operation: Delete, kind: ConfigMap, namespace: {site.namespace}, name: held}}
        ---
        operation: MergePatch
        kind: ConfigMap
        namespace: {site.namespace}
        name: done
        mergePatch: {{data: {{later: "yes"}}}}
    """))  # fmt: skip
    site.hook(other, "other.sh", {"afterHelm": 1})
    operator = site.start()
    operator.wait_until(lambda: site.labels() == ["one.sh beforeHelm", "other.sh afterHelm"], "others go on")
    assert (site.data("one"), site.data("done")) == (None, {})
    listed = site.command("queue", "list").stdout
    assert f"waits for ConfigMap {site.namespace}/held to be gone: the finalizers " in listed
    assert "example.org/held" in listed
    site.patch("configmap", "held", {"metadata": {"finalizers": None}})
    operator.wait_ready()
    assert (site.data("one"), site.data("done")) == ({"a": "b"}, {"later": "yes"})
    assert operator.metrics().total("module_hook_errors_total") == 0


@pytest.mark.slow
def test_a_deletion_that_is_held_up_for_longer_than_the_time_limit_is_an_error(
    site: operator_site.Site,
) -> None:
    site.first_retry = operator_site.SOON
    site.create("configmap", "held")
    site.patch("configmap", "held", {"metadata": {"finalizers": ["example.org/held"]}})
    limited = {"onStartup": 1, "settings": {"executionTimeout": "2s"}}
    patch = f"{{operation: Delete, kind: ConfigMap, namespace: {site.namespace}, name: held}}"
    site.hook(site.global_hooks, "held.sh", limited, write("KUBERNETES_PATCH_PATH", patch))
    operator = site.start()
    operator.wait_logged("held.sh", "is still there 2s after its deletion", "example.org/held hold it")
    site.patch("configmap", "held", {"metadata": {"finalizers": None}})
    operator.wait_ready()


def write_appliers(site: operator_site.Site) -> None:
    site.create("configmap", "seen", {"data": {"old": "1"}})
    watched = {"kind": "ConfigMap", "apiVersion": "v1", "nameSelector": {"matchNames": ["seen"]}}
    watched |= {"namespace": {"nameSelector": {"matchNames": [site.namespace]}}}
    site.hook(site.global_hooks, "back.sh", {"kubernetes": [watched]}, """
        jq -c '.[0].objects[]?.object | .data.new = "2"
               | {operation: "CreateOrUpdate", object: .}' "$BINDING_CONTEXT_PATH" > "$KUBERNETES_PATCH_PATH"
    """)  # fmt: skip
    for name in ("one", "other"):
        site.hook(site.global_hooks, f"{name}.sh", {"onStartup": 1}, write("KUBERNETES_PATCH_PATH", f"""
            operation: Apply
            object:
              apiVersion: v1
              kind: ConfigMap
              metadata: {{name: shared, namespace: {site.namespace}}}
              data: {{{name}: "1"}}
        """))  # fmt: skip


def see_applied(site: operator_site.Site) -> None:
    """Hooks write snapshots back, and keep what others applied."""
    assert site.data("seen") == {"old": "1", "new": "2"}
    assert site.data("shared") == {"one": "1", "other": "1"}
    managers = site.get("configmap", "shared")["metadata"]["managedFields"]
    assert {each["manager"] for each in managers} == {"addon-operator:one.sh", "addon-operator:other.sh"}


def test_a_failure_at_the_objects_leaves_values_and_metrics_alone_until_it_is_mended(
    site: operator_site.Site,
) -> None:
    site.first_retry = operator_site.SOON
    site.values("webEnabled: true\nweb: {color: grey}")
    web = site.module("010-web", {"color": "{{ .Values.web.color }}"})
    outputs = (
        write("VALUES_JSON_PATCH_PATH", '{"op": "add", "path": "/web/color", "value": "red"}')
        + write("METRICS_PATH", '{"name": "painted", "add": 1}')
        + write(
            "KUBERNETES_PATCH_PATH",
            f"""
            operation: MergePatch
            kind: ConfigMap
            namespace: {site.namespace}
            name: late
            mergePatch: {{data: {{seen: "yes"}}}}
            """,
        )
    )
    site.hook(web, "paint.sh", {"beforeHelm": 1}, outputs)
    operator = site.start()
    operator.wait_logged("paint.sh", "KUBERNETES_PATCH_PATH, document [0] (MergePatch)", "late", "404")
    assert metric_lines(operator, "painted") == set()
    assert site.data("web") is None
    site.create("configmap", "late")
    operator.wait_ready()
    assert site.data("late") == {"seen": "yes"}
    assert site.data("web") == {"color": "red"}
    assert metric_lines(operator, "painted") == {
        "# TYPE painted counter",
        'painted{hook="paint.sh",module="web"} 1.0',
    }


def test_outputs_that_are_wrong_or_of_a_hook_that_failed_are_told_and_not_applied(
    site: operator_site.Site,
) -> None:
    for name in ("half", "place", "fail"):
        site.module(f"010-{name}", values=f"{name}Enabled: true")
    for name in ("scaled", "told"):
        site.create("deployment", name, WORKLOAD)
    site.hook(site.modules / "010-half", "half.sh", {"beforeHelm": 1}, write("KUBERNETES_PATCH_PATH", f"""
        operation: Create
        object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made, namespace: {site.namespace}}}}}
        ---
        operation: JSONPatch
        kind: ConfigMap
        name: made
        jsonPatch: [{{op: replace, path: /data/a}}]
    """))  # fmt: skip
    entries = (
        '{"op": "add", "path": "/metadata/labels/a", "value": "b"}, '
        '{"op": "add", "path": "/spec/nowhere/at/all", "value": 3}'
    )
    text = f"{{operation: JSONPatch, kind: Deployment, name: scaled, jsonPatch: [{entries}], "
    text += f"namespace: {site.namespace}}}"
    site.hook(site.modules / "010-place", "place.sh", {"beforeHelm": 1}, write("KUBERNETES_PATCH_PATH", text))
    told = f"""
        {{"operation": "MergePatch", "kind": "Deployment", "namespace": "{site.namespace}",
          "name": "told", "subresource": "status", "ignoreHookError": true,
          "mergePatch": {{"status": {{"collisionCount": 7}}}}}}
        {{"operation": "Create", "object": {{"apiVersion": "v1", "kind": "ConfigMap",
          "metadata": {{"name": "made", "namespace": "{site.namespace}"}}}}}}
    """
    fails = write("KUBERNETES_PATCH_PATH", told) + "exit 4"
    site.hook(site.modules / "010-fail", "fail.sh", {"beforeHelm": 1}, fails)
    operator = site.start()
    # One wrong document keeps all outputs from being applied.
    operator.wait_logged("half.sh", "document [1] (JSONPatch), jsonPatch[0]: the key 'value' is missing")
    # A patch that does not apply is told with its entry: the server says nothing of it.
    operator.wait_logged("place.sh", "jsonPatch[1] (add /spec/nowhere/at/all): it does not apply")
    # A failed hook may tell so in a status, and nothing else.
    operator.wait_logged("fail.sh", "exit code 4")
    assert site.get("deployment", "told")["status"]["collisionCount"] == 7
    assert site.data("made") is None
    assert "Traceback" not in operator.log


HOOK_1 = """
    {"group":"hook1", "name":"hook_metric", "action":"add", "value":1, "labels":{"kind":"pod"}}
    {"group":"hook1", "name":"hook_metric", "action":"add", "value":1, "labels":{"kind":"replicaset"}}
    {"group":"hook1", "name":"hook_metric", "action":"add", "value":1, "labels":{"kind":"deployment"}}
    {"group":"hook1", "name":"hook1_special_metric", "action":"set", "value":12, "labels":{"label1":"value1"}}
    {"group":"hook1", "name":"common_metric", "action":"set", "value":300, "labels":{"source":"source3"}}
    {"name":"common_metric", "action":"set", "value":100, "labels":{"source":"source1"}}
"""
HOOK_1_AGAIN = """
    {"group":"hook1", "name":"hook_metric", "action":"add", "value":1, "labels":{"kind":"pod"}}
"""
HOOK_2 = """
    {"group":"hook2", "name":"hook_metric","action":"add", "value":1, "labels":{"kind":"configmap"}}
    {"group":"hook2", "name":"hook_metric","action":"add", "value":1, "labels":{"kind":"secret"}}
    {"group":"hook2", "name":"hook2_special_metric", "action":"set", "value":42}
    {"name":"common_metric", "action":"set", "value":200, "labels":{"source":"source2"}}
"""


def test_outputs_of_hooks_change_the_cluster_and_metrics(site: operator_site.Site) -> None:
    write_nulls(site)
    write_operations(site)
    write_appliers(site)
    first, second = write("METRICS_PATH", HOOK_1), write("METRICS_PATH", HOOK_1_AGAIN)
    body = f'if [[ -e "$0.ran" ]]; then\n{second}else\n{first}fi\ntouch "$0.ran"'
    site.hook(site.global_hooks, "hook1.sh", {"beforeAll": 1}, body)
    site.hook(site.global_hooks, "hook2.sh", {"onStartup": 1}, write("METRICS_PATH", HOOK_2))
    operator = site.start().wait_ready()
    see_nulls(site, operator)
    see_operations(site)
    see_applied(site)
    # The groups of the documentation's example.
    names = ("hook_metric", "hook1_special", "hook2_special", "common_metric")
    types = {"# TYPE hook_metric counter", "# TYPE hook2_special_metric gauge", "# TYPE common_metric gauge"}
    stays = {
        'hook_metric{hook="hook2.sh",kind="configmap"} 1.0',
        'hook_metric{hook="hook2.sh",kind="secret"} 1.0',
        'hook2_special_metric{hook="hook2.sh"} 42.0',
        'common_metric{hook="hook1.sh",source="source1"} 100.0',
        'common_metric{hook="hook2.sh",source="source2"} 200.0',
    }
    expires = {
        "# TYPE hook1_special_metric gauge",
        'hook_metric{hook="hook1.sh",kind="pod"} 1.0',
        'hook_metric{hook="hook1.sh",kind="replicaset"} 1.0',
        'hook_metric{hook="hook1.sh",kind="deployment"} 1.0',
        'hook1_special_metric{hook="hook1.sh",label1="value1"} 12.0',
        'common_metric{hook="hook1.sh",source="source3"} 300.0',
    }
    assert metric_lines(operator, *names) == types | stays | expires
    site.config(**{"global": "round: 2"})
    counted = {'hook_metric{hook="hook1.sh",kind="pod"} 2.0'}
    operator.wait_until(lambda: counted <= metric_lines(operator, *names), "hook1.sh has run again")
    assert metric_lines(operator, *names) == types | stays | counted


def test_a_metric_that_clashes_is_a_failure_of_the_hook_that_came_later(site: operator_site.Site) -> None:
    site.hook(
        site.global_hooks, "a.sh", {"onStartup": 1}, write("METRICS_PATH", '{"name": "size", "set": 1}')
    )
    site.hook(
        site.global_hooks, "b.sh", {"onStartup": 2}, write("METRICS_PATH", '{"name": "size", "add": 1}')
    )
    operator = site.start()
    operator.wait_logged("metric size of hook b.sh", "is a counter, but that of hook a.sh is a gauge")
    assert metric_lines(operator, "size") == {"# TYPE size gauge", 'size{hook="a.sh"} 1.0'}
    assert operator.metrics().total("global_hook_run_errors_total", hook="b.sh") >= 1
