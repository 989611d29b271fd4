"""Programs with many hooks, as the Go SDK for modules builds them, on a real control plane."""

import json
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, module_objects, operator_site
from tests.support import batch_program

pytestmark = pytest.mark.integration

WATCHED: Final = {
    "name": "marked",
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "jqFilter": ".data",
    "keepFullObjectsInMemory": False,
    "queue": "slow",
    "labelSelector": {"matchLabels": {"marked": "yes"}},
    "namespace": {"nameSelector": {"matchNames": ["NAMESPACE"]}, "labelSelector": None},
}
"""What the SDK prints for a binding."""
RUNS: Final = """
trace = pathlib.Path(os.environ["TRACE"])
with trace.open("a") as file:
    line = {"hook": " ".join(ASKED), "contexts": read("BINDING_CONTEXT_PATH"), "values": read("VALUES_PATH")}
    file.write(json.dumps({**line, "config": read("CONFIG_VALUES_PATH")}) + "\\n")
if ASKED == ["run", "0"]:
    print(json.dumps({"level": "info", "msg": "sets the color", "module": os.environ["MODULE_NAME"]}))
    write("VALUES_JSON_PATCH_PATH", [{"op": "add", "path": "/web/color", "value": "green"}])
    # As Go writes them: labels are null, and an expiry has an empty name.
    write("METRICS_PATH", {"name": "batch_total", "action": "add", "value": 2, "labels": None},
          {"name": "batch_size", "action": "set", "value": 3, "labels": {"a": "b"}, "group": "sizes"},
          {"name": "batch_seconds", "action": "observe", "value": 1, "buckets": [1, 2], "labels": {}},
          {"name": "", "action": "expire", "group": "others", "labels": None})
    target = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE"}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "NAMESPACE"}}
    write("KUBERNETES_PATCH_PATH", {"operation": "CreateIfNotExists", "object": {**made, "data": {"a": "1"}}},
          {"operation": "MergePatch", **target, "name": "made", "mergePatch": {"data": {"b": "2"}}},
          {"operation": "JQPatch", **target, "name": "made", "jqFilter": '.data.c = "3"'},
          {"operation": "JSONPatch", **target, "name": "made",
           "jsonPatch": [{"op": "remove", "path": "/data/a"}]},
          {"operation": "MergePatch", **target, "name": "nobody", "ignoreMissingObjects": True,
           "mergePatch": {"data": {}}})
"""
BROKEN: Final = [{"metadata": {"name": "one"}, "beforeHelmm": 1}]


def hook(name: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - what a hook may have
    return {"configVersion": "v1", "metadata": {"name": name, "path": "web/hooks/"}, **members}


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    return module_objects.Modules(site, devcluster)


def in_namespace(site: operator_site.Site, given: object) -> Any:  # noqa: ANN401 - of the same shape
    return json.loads(json.dumps(given).replace("NAMESPACE", site.namespace))


def test_the_hooks_of_a_program_run_as_any_hook_under_names_of_their_own(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "{{ .Values.web.color }}"}, values="webEnabled: true")
    config = {
        "version": "v1",
        "hooks": [
            hook("colors/set", beforeHelm=1),
            hook("marks", kubernetes=[in_namespace(site, WATCHED)], afterHelm=1),
        ],
    }
    batch_program.write(web / "hooks", "batch", config, RUNS.replace("NAMESPACE", site.namespace))
    bare = site.module("030-bare", {"given": "{{ .Values.bare.given }}"}, values="bareEnabled: true")
    gives = (
        """write("VALUES_JSON_PATCH_PATH", [{"op": "add", "path": "/bare/given", "value": "by a list"}])"""
    )
    batch_program.write(bare / "hooks", "batch", [hook("give", beforeHelm=1)], gives)
    broken = site.module("020-broken", {"a": "b"}, values="brokenEnabled: true")
    batch_program.write(broken / "hooks", "batch", BROKEN)
    operator = site.start()
    operator.wait_until(lambda: site.data("web") == {"color": "green"}, "the value of the hook is released")
    assert site.data("made") == {"b": "2", "c": "3"}
    operator.wait_until(
        lambda: site.data("bare") == {"given": "by a list"}, "a bare list of hooks works, too"
    )
    operator.wait_metric(1, "module_hook_run_success_total", hook="batch:marks:1", binding="afterHelm")
    metrics = operator.get("/metrics").text.splitlines()
    assert 'batch_total{hook="batch:colors/set:0",module="web"} 2.0' in metrics
    assert 'batch_size{a="b",hook="batch:colors/set:0",module="web"} 3.0' in metrics
    assert 'batch_seconds_sum{hook="batch:colors/set:0",module="web"} 1.0' in metrics
    assert "sets the color" in operator.log

    site.create("configmap", "seen", {"data": {"a": "1"}})
    site.label("configmap", "seen", {"marked": "yes"})

    def last() -> dict[str, Any] | None:
        contexts = [run.contexts[0] for run in site.runs() if run.hook == "run 1"]
        return next((each for each in reversed(contexts) if each["snapshots"].get("marked")), None)

    seen = operator.wait_until(last, "the hook sees the object")
    assert seen == {
        "binding": "marked",
        "type": "Group",
        "groupName": "main",
        "snapshots": {"marked": [{"filterResult": {"a": "1"}}]},
    }
    described = json.loads(site.command("module", "describe", "web", "-o", "json").stdout)
    assert [each["name"] for each in described["hooks"]] == ["batch:colors/set:0", "batch:marks:1"]
    listed = json.loads(site.command("module", "list", "-o", "json").stdout)["modules"]
    (error,) = [each["lastError"] for each in listed if each["name"] == "broken"]
    assert (
        f"hook {broken / 'hooks/batch'}: invalid configuration: hooks[0] (one): the key 'beforeHelmm'"
        in error
    )
    assert "Traceback" not in operator.log
    operator.stop()


@pytest.mark.slow
def test_a_program_that_says_whether_its_module_is_ready_counts_for_the_health(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    web = site.module("010-web", {"a": "b"}, values="webEnabled: true")
    config = {"version": "v1", "hooks": [], "readiness": hook("readiness")}
    flag = site.root / "is-ready"
    body = f"pathlib.Path({str(flag)!r}).exists() or fail('the database has no leader')"
    batch_program.write(web / "hooks", "batch", config, body)
    operator = site.start().wait_ready()
    operator.wait_until(lambda: "the database has no leader" in operator.log, "the program is asked")

    told = "failed with exit code 1; the operator's log shows what it wrote: Readiness batch:readiness"
    operator.wait_until(
        lambda: modules.condition("web", "Healthy")["message"] == told,
        "the module says what the program said",
    )
    modules.wait(operator, "web", Ready="True", Healthy="Unknown")
    flag.touch()
    modules.wait(operator, "web", Ready="True", Healthy="True")
    operator.stop()


SETTINGS: Final = {"version": "v1", "hooks": [], "has_settings_check": True}
CHECK: Final = """
replicas = read("SETTINGS_PATH").get("replicas", 1)
if replicas == 7:
    time.sleep(100)
said = {"valid": replicas <= 3, "message": "", "warnings": None}
if replicas > 3:
    said["message"] = f"replicas cannot be {replicas}"
if replicas == 2:
    said["warnings"] = ["an even number has no majority"]
if said["message"] or said["warnings"]:
    sys.stderr.write(json.dumps(said))
    sys.exit(1)
"""


def with_check(site: operator_site.Site) -> None:
    data = {"replicas": "{{ .Values.web.replicas | quote }}"}
    web = site.module("010-web", data, values="webEnabled: true\nweb: {replicas: 1}")
    batch_program.write(web / "hooks", "batch", SETTINGS, CHECK)


def test_settings_that_a_program_refuses_never_come_into_force(site: operator_site.Site) -> None:
    with_check(site)
    site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    site.config(web="replicas: 9")
    operator = site.start()
    operator.wait_logged("replicas cannot be 9")
    assert site.revisions() == {}
    site.config(web="replicas: 3")
    operator.wait_until(lambda: site.data("web") == {"replicas": "3"}, "the corrected settings are released")
    site.config(web="replicas: 4")
    operator.wait_logged("replicas cannot be 4")
    assert operator.metrics().total("config_values_errors_total") > 0
    site.config(web="replicas: 2")
    operator.wait_until(lambda: site.data("web") == {"replicas": "2"}, "settings with a warning are released")
    operator.wait_logged("an even number has no majority")
    told = site.objects("events", fieldSelector="reason=InvalidValues")
    assert any("last good values stay in force. Wrong: web." in each["message"] for each in told)
    assert site.data("db") == {"a": "b"}
    operator.stop()


@pytest.mark.slow
def test_the_webhook_asks_the_program_and_a_program_that_hangs_refuses_an_edit(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    with_check(site)
    site.config(web="replicas: 1")

    def refusal(text: str) -> str:
        try:
            site.config(web=text)
        except operator_site.RefusedError as error:
            return str(error)
        return ""

    with admitting.admitting(site, devcluster) as running:
        running.wait_until(
            lambda: "cannot be 9" in refusal("replicas: 9"), "edits are checked by the program"
        )
        assert "gave no answer: it was stopped because it ran longer" in refusal("replicas: 7")
        site.config(web="replicas: 3")
        running.wait_until(lambda: site.data("web") == {"replicas": "3"}, "a good edit is released")


def test_a_binding_that_wants_it_is_told_what_an_object_was_before(site: operator_site.Site) -> None:
    web = site.module("010-web", values="webEnabled: true")
    watched = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "nameSelector": {"matchNames": ["seen"]},
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "executeHookOnSynchronization": False,
        "jqFilter": ".data.a",
    }
    for name, more in {
        "full.sh": {"keepOldObject": True},
        "filtered.sh": {"keepOldObject": True, "keepFullObjectsInMemory": False},
        "plain.sh": {},
    }.items():
        site.hook(web, name, {"kubernetes": [{**watched, **more}]})
    operator = site.start().wait_ready()
    site.create("configmap", "seen", {"data": {"a": "1"}})
    for number in (2, 3):
        site.patch("configmap", "seen", {"data": {"a": str(number)}})

    def told(hook: str) -> list[dict[str, Any]]:
        contexts = [each for run in site.runs() if run.hook == hook for each in run.contexts]
        return [each for each in contexts if each.get("watchEvent") == "Modified"]

    for hook in ("full.sh", "filtered.sh", "plain.sh"):
        operator.wait_until(lambda name=hook: told(name)[1:], f"{hook} runs for both changes")  # type: ignore[misc]
    assert [each["oldFilterResult"] for each in told("full.sh")] == ["1", "2"]
    assert [each["oldObject"]["data"] for each in told("full.sh")] == [{"a": "1"}, {"a": "2"}]
    assert [each["oldFilterResult"] for each in told("filtered.sh")] == ["1", "2"]
    assert "oldObject" not in told("filtered.sh")[0]
    assert not told("plain.sh")[0].keys() & {"oldObject", "oldFilterResult"}
    operator.stop()
