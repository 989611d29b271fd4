"""Which fields of a live object count as changed."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addon_operator.hook_contract import conversions
from addon_operator.modules.drift import corrections, drift_report, field_drift, not_ours
from tests.support import rows
from tests.unit import costs

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
Object = dict[str, Any]

DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"team": "a"}},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "hostNetwork": False,
                "containers": [
                    {
                        "name": "web",
                        "image": "web:1",
                        "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}},
                        "env": [{"name": "A", "value": "1"}],
                    }
                ],
            }
        },
    },
}
CONTAINER = ("spec", "template", "spec", "containers", "0")


def fields(value: Any, keys: tuple[str, ...] = ("name",)) -> Object:  # noqa: ANN401
    """The fields of a value, as managedFields write them."""
    if isinstance(value, dict):
        return {f"f:{key}": fields(each) for key, each in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        named = [
            {key: item[key] for key in (keys if "name" in item else ("containerPort", "protocol"))}
            for item in value
        ]
        return {f"k:{json.dumps(key)}": fields(item) for key, item in zip(named, value, strict=True)}
    return {}


def entry(manager: str, owned: Object, time: str = EARLY, **more: str) -> Object:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": owned, **more}


def deployed(manifest: Object) -> Object:
    """The object as the API server keeps it, with its defaults."""
    live = copy.deepcopy(manifest)
    container = live["spec"]["template"]["spec"]["containers"][0]
    del live["spec"]["template"]["spec"]["hostNetwork"]
    container["ports"][0]["protocol"] = "TCP"
    container["resources"] = {"limits": {"cpu": "500m", "memory": "1Gi"}}
    container["imagePullPolicy"] = "IfNotPresent"
    owned = {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": fields(live["spec"])}
    live["metadata"]["managedFields"] = [entry("helm", owned)]
    live["status"] = {"replicas": 9}
    return live


def put(live: Object, path: tuple[str, ...], value: Any) -> None:  # noqa: ANN401
    place: Any = live
    for step in path[:-1]:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[path[-1]] = value


def edited(path: tuple[str, ...], value: Any, by: Object | None = None) -> Object:  # noqa: ANN401
    """Somebody writes one field of it: the field is theirs then."""
    live = deployed(DEPLOYMENT)
    put(live, path, value)
    theirs: Object = {}
    place, helm = theirs, live["metadata"]["managedFields"][0]["fieldsV1"]
    steps = [f"k:{json.dumps({'name': 'web'})}" if step == "0" else f"f:{step}" for step in path]
    for step in steps[:-1]:
        place, helm = place.setdefault(step, {}), helm[step]
    place[steps[-1]] = {}
    helm.pop(steps[-1], None)
    live["metadata"]["managedFields"].append(entry("kubectl-edit", theirs, LATE) | (by or {}))
    return live


def told(live: Object, expected: Object = DEPLOYMENT, **more: Any) -> list[str]:  # noqa: ANN401
    found = field_drift.differences(expected, live, **more)
    return [f"{each.pointer} {each.manager}".strip() for each in found]


def test_what_the_api_server_made_of_the_manifest_is_no_drift() -> None:
    assert told(deployed(DEPLOYMENT)) == []


@rows.each(
    ("path", "value"),
    [
        (("spec", "replicas"), 5),
        (("metadata", "labels", "team"), "b"),
        ((*CONTAINER, "image"), "web:2"),
        ((*CONTAINER, "resources", "limits", "cpu"), "600m"),
    ],
    ids=lambda value: str(value[-1]) if isinstance(value, tuple) else "",
)
def test_an_edit_is_told_with_its_path_and_manager(path: tuple[str, ...], value: object) -> None:
    assert told(edited(path, value)) == [f"/{'/'.join(path)} kubectl-edit"]


@rows.each(
    "by",
    [
        {"operation": "Apply"},
        {"subresource": "status"},
        {"manager": "helm"},
        {"manager": "helm4"},
    ],
    ids=str,
)
def test_what_others_are_meant_to_write_and_what_helm_wrote_do_not_count(by: Object) -> None:
    live = edited(("spec", "replicas"), 5, by)
    assert told(live) == []
    assert told(live, whoever=True) != []


@rows.each("by", [{}, {"subresource": "scale", "time": ""}], ids=str)
def test_replicas_are_drift_unless_an_autoscaler_scales_them(by: Object) -> None:
    live = edited(("spec", "replicas"), 5, by)
    assert told(live) == ["/spec/replicas kubectl-edit"]
    for name, is_drift in (("web", False), ("other", True)):
        around = not_ours.Surroundings("x", frozenset({("x", "Deployment", name)}))
        assert bool(told(live, around=around)) is is_drift


def test_what_was_written_during_the_installation_belongs_to_it() -> None:
    live = edited(("spec", "replicas"), 5)
    assert told(live, settled=LATE) == []
    assert told(live, settled=EARLY) != []


def test_what_is_not_in_the_manifest_does_not_count() -> None:
    live = deployed(DEPLOYMENT)
    live["spec"]["paused"] = True
    live["metadata"]["labels"]["other"] = "x"
    live["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    assert told(live) == []


def test_items_are_found_by_their_keys_in_any_order() -> None:
    live = deployed(DEPLOYMENT)
    containers = live["spec"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "sidecar", "image": "proxy"})
    assert told(live) == []
    containers.pop(1)
    owned = live["metadata"]["managedFields"][0]["fieldsV1"]
    assert owned["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert told(live) == ["/spec/template/spec/containers/0"]


def test_a_field_that_somebody_removed_is_missed() -> None:
    live = deployed(DEPLOYMENT)
    del live["metadata"]["labels"]
    assert told(live) == ["/metadata/labels/team"]


@rows.each(
    ("expected", "live"),
    [
        ({"kind": "ConfigMap", "data": {"a": "1"}}, {"data": {"a": "1", "b": "2"}}),
        ({"kind": "Secret", "stringData": {"a": "x"}}, {"data": {"a": "eA=="}}),
        ({"kind": "Secret", "data": {"a": "eA==\n"}}, {"data": {"a": "eA=="}}),
        ({"kind": "ClusterRole", "aggregationRule": {"x": 1}, "rules": []}, {"aggregationRule": {"x": 1}}),
        (
            {"kind": "ClusterRole", "aggregationRule": {"x": 1}, "rules": [{"verbs": ["a"]}]},
            {"aggregationRule": {"x": 1}, "rules": [{"verbs": ["b"]}]},
        ),
        ({"kind": "ServiceAccount", "secrets": [{"name": "a"}]}, {"secrets": [{"name": "a"}, {"name": "b"}]}),
        (
            {"webhooks": [{"clientConfig": {"caBundle": "a"}}]},
            {"webhooks": [{"clientConfig": {"caBundle": "b"}}]},
        ),
        ({"spec": {"duration": "60m"}}, {"spec": {"duration": "1h0m0s"}}),
        ({"spec": {"size": "1024Mi"}}, {"spec": {"size": "1Gi"}}),
        ({"spec": {"port": "80"}}, {"spec": {"port": 80}}),
        ({"spec": {"a": None, "b": {}, "c": [], "d": {"e": ""}}}, {"spec": {}}),
        ({"status": {"a": 1}}, {"status": {"a": 2}}),
        ({"metadata": {"annotations": {"kubectl.kubernetes.io/last": "x"}}}, {}),
        ({"spec": {"rules": [{"port": 1}]}}, {"spec": {"rules": [{"port": 1, "protocol": "TCP"}]}}),
    ],
    ids=str,
)  # fmt: skip
def test_what_means_the_same_is_no_drift(expected: Object, live: Object) -> None:
    assert told(live, expected) == []


@rows.each(
    ("expected", "live", "path"),
    [
        ({"kind": "ConfigMap", "data": {"a": "1"}}, {"data": {"a": "1.0"}}, "/data/a"),
        ({"kind": "ConfigMap", "data": {"a": "1h"}}, {"data": {"a": "60m"}}, "/data/a"),
        ({"kind": "Secret", "stringData": {"a": "x"}}, {"data": {"a": "eQ=="}}, "/data/a"),
        ({"spec": {"on": True}}, {"spec": {"on": "true"}}, "/spec/on"),
        ({"spec": {"on": True}}, {"spec": {}}, "/spec/on"),
        ({"spec": {"on": False}}, {"spec": {"on": True}}, "/spec/on"),
        ({"rules": [{"verbs": ["a"]}]}, {"rules": [{"verbs": ["a"]}, {"verbs": ["b"]}]}, "/rules"),
        ({"spec": {"a": {"b": 1}}}, {"spec": {"a": 1}}, "/spec/a"),
    ],
    ids=str,
)
def test_what_means_something_else_is(expected: Object, live: Object, path: str) -> None:
    assert told(live, expected) == [path]


def test_a_correction_puts_exactly_the_changed_fields_back() -> None:
    live = edited((*CONTAINER, "image"), "web:2")
    live["spec"]["template"]["spec"]["containers"].insert(0, {"name": "sidecar", "image": "proxy"})
    del live["metadata"]["labels"]
    assert corrections.json_patch(live, field_drift.differences(DEPLOYMENT, live)) == [
        {"op": "test", "path": "/spec/template/spec/containers/1/image", "value": "web:2"},
        {"op": "test", "path": "/spec/template/spec/containers/1/name", "value": "web"},
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/team", "value": "a"},
        {"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "web:1"},
    ]


def test_what_is_applied_by_force_leaves_out_what_others_may_write() -> None:
    live = edited(("spec", "replicas"), 5, {"subresource": "scale"})
    body = corrections.kept_to(DEPLOYMENT, live, [])
    assert body == DEPLOYMENT | {"spec": {"template": DEPLOYMENT["spec"]["template"]}}
    assert DEPLOYMENT["spec"]["replicas"] == 2


@rows.each("by_hooks", [True, False])
def test_a_conversion_that_hooks_do_is_no_drift_and_is_never_taken_back(*, by_hooks: bool) -> None:
    kind = {"kind": "CustomResourceDefinition", "metadata": {"name": "x.y"}}
    expected: Object = {**kind, "spec": {"group": "y", "conversion": {"strategy": "None"}}}
    annotations = {conversions.NOTE: "{}"} if by_hooks else {}
    live = {
        **kind,
        "metadata": {"name": "x.y", "annotations": annotations},
        "spec": {"group": "y", "conversion": {"strategy": "Webhook", "webhook": {}}},
    }
    assert told(live, expected) == ([] if by_hooks else ["/spec/conversion/strategy"])
    kept = corrections.kept_to(expected, live, field_drift.differences(expected, live))
    assert ("conversion" in kept["spec"]) is not by_hooks
    assert expected["spec"]["conversion"]


def test_a_difference_does_not_show_its_values_by_itself() -> None:
    (found,) = field_drift.differences(
        {"kind": "Secret", "stringData": {"a": "geheim"}}, {"data": {"a": "eA=="}}
    )
    assert "geheim" not in repr(found)
    assert "eA" not in repr(found)


def test_a_number_of_more_digits_than_python_writes_is_compared_and_not_shown() -> None:
    long: Object = {"a": 10**5000}
    for expected, live in ((long, {"a": 1}), ({"a": 1}, long), ({"a": "x"}, long), (long, {})):
        found = field_drift.differences({"spec": expected}, {"spec": live})
        (row,) = drift_report.rows({"Widget web": found})
        assert "(a number with too many digits to be shown)" in (row["expected"], row["live"])
    same = {"spec": {"a": 10**5000, "items": [{"name": "x", "n": 10**5000}]}}
    assert field_drift.differences(same, copy.deepcopy(same)) == []


def many(count: int) -> tuple[Object, Object]:
    items = [{"name": f"v{number}", "value": "x"} for number in range(count)]
    owned: Object = {
        "f:spec": {"f:env": {f'k:{{"name":"v{number}"}}': {"f:value": {}} for number in range(count)}}
    }
    live = {"spec": {"env": items}, "metadata": {"managedFields": [entry("helm", owned)]}}
    return {"spec": {"env": copy.deepcopy(items)}}, live


@pytest.mark.slow
def test_what_a_large_list_costs_grows_with_its_size_alone() -> None:
    assert costs.is_linear(many, lambda both: field_drift.differences(*both), 1000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


OBJECTS = st.dictionaries(st.sampled_from(["spec", "data", "metadata", "kind"]), JSON)


@given(OBJECTS, OBJECTS)
def test_whatever_objects_hold_they_are_compared(expected: Object, live: Object) -> None:
    assert len(field_drift.differences(expected, live)) <= field_drift.MOST_DIFFERENCES
    assert field_drift.differences({"spec": expected}, {"spec": expected}) == []
