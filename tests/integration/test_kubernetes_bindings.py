"""Hooks bound to objects of the cluster: real hooks, real control plane."""

import pathlib
from typing import Any

import pytest

from tests.integration import admitting, operator_process, operator_site

pytestmark = pytest.mark.integration


def config_maps(
    site: operator_site.Site, name: str = "maps", bound: str = "yes", **more: object
) -> dict[str, object]:
    """A binding to the ConfigMaps of the test that carry this label ``bound``."""
    return {
        "name": name,
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "labelSelector": {"matchLabels": {"bound": bound}},
        **more,
    }


def config_map(name: str, bound: str = "yes", **data: str) -> dict[str, object]:
    metadata = {"name": name, "labels": {"bound": bound}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def apply(site: operator_site.Site, *manifests: dict[str, object]) -> None:
    site.apply(*manifests)


def put(site: operator_site.Site, name: str, bound: str = "yes", **data: str) -> None:
    apply(site, config_map(name, bound, **data))


def contexts(site: operator_site.Site, hook: str) -> list[dict[str, Any]]:
    """All contexts that the hook was given, run after run."""
    return [context for run in site.runs() if run.hook == hook for context in run.contexts]


def brief(context: dict[str, Any]) -> str:
    """``maps Synchronization a b``, ``maps Added c``."""
    words = [context["binding"], context.get("watchEvent") or context.get("type", "")]
    listed = [item for item in context.get("objects", [context]) if "object" in item]
    return " ".join([*words, *(item["object"]["metadata"]["name"] for item in listed)]).strip()


def reported(site: operator_site.Site, hook: str) -> list[str]:
    return [brief(context) for context in contexts(site, hook)]


def module(site: operator_site.Site) -> pathlib.Path:
    site.values("webEnabled: true")
    return site.module("010-web")


def write_hooks(site: operator_site.Site) -> None:
    """Hooks of one module, with ConfigMaps of their own: all, some, those of groups, and of namespaces."""
    web = module(site)
    every = {"kubernetes": [config_maps(site, bound="every")], "onStartup": 1, "beforeHelm": 1}
    site.hook(web, "every.sh", every)

    phase = {"field": "metadata.name", "operator": "NotEquals", "value": "b"}
    some: dict[str, dict[str, object]] = {
        "named.sh": config_maps(site, nameSelector={"matchNames": ["a", "c"]}),
        "fields.sh": config_maps(site, fieldSelector={"matchExpressions": [phase]}),
        "others.sh": config_maps(site, bound="no"),
        "deleted.sh": config_maps(site, executeHookOnEvent=["Deleted"]),
        "jq.sh": config_maps(site, jqFilter=".data.x", keepFullObjectsInMemory=False),
    }
    for name, binding in some.items():
        site.hook(web, name, {"kubernetes": [binding]})

    secrets = config_maps(site, "secrets", bound="grouped", kind="Secret")
    grouped = [config_maps(site, bound="grouped", group="all"), {**secrets, "group": "all"}]
    site.hook(web, "group.sh", {"kubernetes": grouped, "beforeHelm": 1})
    included = config_maps(site, bound="grouped", includeSnapshotsFrom=["secrets"])
    site.hook(web, "include.sh", {"kubernetes": [included, {**secrets, "executeHookOnEvent": []}]})

    team: dict[str, Any] = {"namespace": {"labelSelector": {"matchLabels": {"team": site.namespace}}}}
    site.hook(web, "team.sh", {"kubernetes": [config_maps(site, bound="team", **team)]})


def see_every_change(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """A hook gets all objects first, and then every change."""
    assert reported(site, "every.sh") == ["onStartup", "maps Synchronization d e", "beforeHelm"]
    put(site, "f", "every", x="1")
    put(site, "d", "every", x="2")
    site.delete("configmap", "e")
    operator.wait_until(lambda: len(reported(site, "every.sh")) >= 6, "three events")
    assert reported(site, "every.sh")[3:] == ["maps Added f", "maps Modified d", "maps Deleted e"]


def see_snapshots(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """A later run of the module has what is there by then."""
    before = len(reported(site, "every.sh"))
    site.config(web="x: 1")
    operator.wait_until(lambda: len(reported(site, "every.sh")) > before, "another run of the module")
    last = contexts(site, "every.sh")[-1]
    assert last["binding"] == "beforeHelm"
    assert [item["object"]["metadata"]["name"] for item in last["snapshots"]["maps"]] == ["d", "f"]


def see_selected(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """Only what a binding selects makes a run."""
    put(site, "b", x="1")
    put(site, "a", x="1", y="2")
    put(site, "a", x="2", y="2")
    put(site, "c", x="1")
    site.delete("configmap", "a")
    hooks = ("named.sh", "fields.sh", "deleted.sh")
    operator.wait_until(
        lambda: all(reported(site, hook)[-1].endswith("Deleted a") for hook in hooks), "deletions"
    )
    changes = ["maps Modified a", "maps Modified a", "maps Added c", "maps Deleted a"]
    assert reported(site, "named.sh") == ["maps Synchronization a", *changes]
    assert reported(site, "fields.sh") == ["maps Synchronization a", *changes]
    assert reported(site, "others.sh") == ["maps Synchronization"]
    assert reported(site, "deleted.sh") == ["maps Synchronization a", "maps Deleted a"]
    operator.wait_until(lambda: len(reported(site, "jq.sh")) >= 5, "the filtered changes")
    first, *events = contexts(site, "jq.sh")
    assert first["objects"] == [{"filterResult": "1"}]
    assert [(event["watchEvent"], event["filterResult"]) for event in events] == [
        ("Added", "1"),
        ("Modified", "2"),
        ("Added", "1"),
        ("Deleted", "2"),
    ]
    assert not any("object" in event for event in events)


def see_groups(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """Bindings of a group make one run, and others have snapshots of those that they name."""
    put(site, "h", "grouped", x="1")
    operator.wait_until(
        lambda: len(reported(site, "group.sh")) + len(reported(site, "include.sh")) >= 6, "events"
    )
    assert reported(site, "group.sh") == ["secrets Group", "beforeHelm", "maps Group"]
    last = contexts(site, "group.sh")[-1]
    assert sorted(last) == ["binding", "groupName", "snapshots", "type"]
    assert last["groupName"] == "all"
    assert [item["object"]["metadata"]["name"] for item in last["snapshots"]["maps"]] == ["g", "h"]
    assert last["snapshots"]["secrets"] == []
    start, silent, event = contexts(site, "include.sh")
    assert brief(start) == "maps Synchronization g"
    assert (brief(silent), "snapshots" in silent) == ("secrets Synchronization", False)
    assert brief(event) == "maps Added h"
    assert start["snapshots"] == event["snapshots"] == {"secrets": []}


def see_namespaces(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    """Namespaces come and go with their labels."""
    assert reported(site, "team.sh") == ["maps Synchronization"]
    site.label("namespace", site.namespace, {"team": site.namespace})
    operator.wait_until(lambda: len(reported(site, "team.sh")) >= 2, "the namespace comes")
    put(site, "j", "team", x="1")
    operator.wait_until(lambda: len(reported(site, "team.sh")) >= 3, "an object in it comes")
    site.label("namespace", site.namespace, {"team": None})
    operator.wait_until(lambda: len(reported(site, "team.sh")) >= 5, "the namespace goes")
    seen = reported(site, "team.sh")
    assert seen[1:3] == ["maps Added i", "maps Added j"]
    assert sorted(seen[3:]) == ["maps Deleted i", "maps Deleted j"]


def test_hooks_get_all_objects_first_and_then_every_change_that_their_bindings_select(
    site: operator_site.Site,
) -> None:
    write_hooks(site)
    for name, bound in (("e", "every"), ("d", "every"), ("a", "yes"), ("g", "grouped"), ("i", "team")):
        put(site, name, bound, x="1")
    operator = site.start().wait_ready()
    see_every_change(site, operator)
    see_selected(site, operator)
    see_groups(site, operator)
    see_namespaces(site, operator)
    see_snapshots(site, operator)
    operator.stop()


def test_a_kind_that_comes_later_is_followed_then_and_holds_up_nothing(site: operator_site.Site) -> None:
    web = module(site)
    group = f"{site.namespace}.example.org"
    shops = {"name": "shops", "apiVersion": f"{group}/v1", "kind": "Shop"}
    site.hook(web, "shops.sh", {"kubernetes": [shops, config_maps(site)], "beforeHelm": 1})
    operator = site.start().wait_ready()
    assert reported(site, "shops.sh") == ["maps Synchronization", "beforeHelm"]
    assert "shops (Shop) of hook shops.sh waits" in operator.log
    assert operator.metrics().total("kube_binding_waiting", binding="shops") == 1
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    crd: dict[str, object] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shops.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "shops", "singular": "shop", "kind": "Shop"},
            "versions": [version],
        },
    }
    try:
        apply(site, crd)
        operator.wait_until(
            lambda: "shops Synchronization" in reported(site, "shops.sh"), "the kind is followed"
        )
        shop: dict[str, object] = {"apiVersion": f"{group}/v1", "kind": "Shop", "metadata": {"name": "north"}}
        admitting.wait_established(site.cluster, f"shops.{group}")
        apply(site, shop)
        operator.wait_until(
            lambda: "shops Added north" in reported(site, "shops.sh"), "its objects make events"
        )
        assert operator.metrics().total("kube_binding_waiting", binding="shops") == 0
    finally:
        site.delete("crd", f"shops.{group}")


@pytest.mark.slow
def test_a_queue_that_is_stuck_holds_up_nobody_else_merges_what_comes_and_ends_with_its_module(
    site: operator_site.Site,
) -> None:
    web = module(site)
    gate = site.root / "gate"
    site.hook(
        web,
        "stuck.sh",
        {"kubernetes": [config_maps(site, queue="stuck", executeHookOnSynchronization=False)]},
        body=f"test -e {gate} || exit 1",
    )
    site.hook(web, "free.sh", {"kubernetes": [config_maps(site, queue="free")]})
    site.config(webEnabled="true")
    operator = site.start().wait_ready()
    names = [f"m{number:03}" for number in range(300)]
    put(site, "first", x="1")
    operator.wait_until(lambda: reported(site, "stuck.sh"), "the first, failing run")
    apply(site, *(config_map(name, x="1") for name in names))
    operator.wait_until(lambda: len(reported(site, "free.sh")) >= 302, "the other queue works")
    assert operator.metrics().total("tasks_queue_length", queue="stuck") <= 2
    tries = len([run for run in site.runs() if run.hook == "stuck.sh"])
    gate.touch()
    operator.wait_until(lambda: reported(site, "stuck.sh").count("maps Added m299") >= 1, "the queue goes on")
    operator.wait_idle()
    later = [run for run in site.runs() if run.hook == "stuck.sh"][tries:]
    assert len(later) <= 3
    seen = [brief(context) for run in later for context in run.contexts]
    assert [name for name in seen if name != "maps Added first"] == [f"maps Added {name}" for name in names]
    assert operator.metrics().total("module_hook_run_errors_total", hook="stuck.sh", queue="stuck") >= 1

    site.config(webEnabled="false")
    operator.wait_until(
        lambda: 'queue="stuck"} ' not in _queue_lengths(operator.get("/metrics").text), "gone"
    )
    runs = len(site.runs())
    put(site, "late", x="1")
    site.config(webEnabled="true")
    operator.wait_until(lambda: len(reported(site, "free.sh")) > 302, "the module is back")
    assert reported(site, "free.sh")[302].startswith("maps Synchronization first late m000")
    assert [run.hook for run in site.runs()[runs:]].count("stuck.sh") == 0


def _queue_lengths(exposition: str) -> str:
    return "".join(line for line in exposition.splitlines() if "tasks_queue_length{" in line)


def test_values_changed_on_events_run_the_module_and_those_of_global_hooks_converge(
    site: operator_site.Site,
) -> None:
    web = module(site)
    site.chart(web, {"seen": "{{ .Values.web.seen | default 0 | quote }}"})
    count = "[0] | .snapshots.maps | length"
    patch = 'jq -c \'{op: "add", path: "%s", value: (.' + count + ' | tostring)}\' "$BINDING_CONTEXT_PATH" > '
    binding = config_maps(site, includeSnapshotsFrom=["maps"])
    site.hook(
        web, "maps.sh", {"kubernetes": [binding]}, body=patch % "/web/seen" + '"$VALUES_JSON_PATCH_PATH"'
    )
    site.hook(
        site.global_hooks,
        "all.sh",
        {"kubernetes": [{**binding, "nameSelector": {"matchNames": ["g"]}}], "beforeAll": 1, "onStartup": 1},
        body='if [[ "$contexts" != *beforeAll* && "$contexts" != *onStartup* ]]; then\n'
        + patch % "/global/seen"
        + '"$VALUES_JSON_PATCH_PATH"\nfi',
    )
    operator = site.start().wait_ready()
    assert site.labels() == ["all.sh onStartup", "all.sh maps", "all.sh beforeAll", "maps.sh maps"]
    assert site.data("web") == {"seen": "0"}
    put(site, "a", x="1")
    operator.wait_until(lambda: site.data("web") == {"seen": "1"}, "the chart has the new value")
    assert site.labels().count("all.sh beforeAll") == 1, "a module's values are no reason to converge"
    put(site, "g", x="1")
    operator.wait_until(lambda: site.labels().count("all.sh beforeAll") == 2, "a converge")
    operator.wait_idle()
    assert site.revisions()["web"] >= 3
