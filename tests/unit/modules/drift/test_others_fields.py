"""What others put beside the fields of a manifest: which of it counts, who did it, and what is in the way."""

import copy
import json
from typing import Any

import pytest

from addon_operator.modules.drift import corrections, field_drift, others_fields
from tests.support import rows
from tests.unit import costs

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
Object = dict[str, Any]
SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}]},
}


def live(ports: dict[str, list[Object]], **entry: str) -> Object:
    """The Service as the API server keeps it, each port owned by who wrote it."""
    entries: list[Object] = []
    spec: list[Object] = []
    for manager, items in ports.items():
        owned: Object = {}
        for item in items:
            key = json.dumps({"port": item["port"], "protocol": item.get("protocol", "TCP")})
            owned[f"k:{key}"] = {".": {}, **{f"f:{name}": {} for name in item}}
            spec.append({"protocol": "TCP", **item})
        more = {"operation": "Update", "time": EARLY if manager == "helm" else LATE}
        more |= {} if manager == "helm" else entry
        entries.append({"manager": manager, "fieldsV1": {"f:spec": {"f:ports": owned}}, **more})
    return {**SERVICE, "metadata": {"name": "web", "managedFields": entries}, "spec": {"ports": spec}}


HTTP, METRICS = copy.deepcopy(SERVICE["spec"]["ports"])
EXTRA: Object = {"name": "extra", "port": 7000}


def told(found: Object, expected: Object = SERVICE, settled: str = "") -> list[str]:
    return [
        f"{each.pointer} {each.manager}".strip()
        for each in others_fields.changes(expected, found, settled=settled)
    ]


@rows.each(
    ("ports", "expected"),
    [
        pytest.param({"helm": [HTTP, METRICS]}, [], id="none"),
        pytest.param({"helm": [HTTP, METRICS], "alice": [EXTRA]}, ["/spec/ports/2 alice"], id="added"),
        pytest.param(
            {"helm": [HTTP, METRICS], "alice": [{"name": "dns", "port": 80, "protocol": "UDP"}]},
            ["/spec/ports/2 alice"],
            id="added with the same number",
        ),
        pytest.param(
            {"helm": [HTTP], "kubectl-edit": [{"name": "metrics", "port": 9191}]},
            ["/spec/ports/1 kubectl-edit", "/spec/ports/2 kubectl-edit"],
            id="another number",
        ),
        pytest.param({"helm": [HTTP]}, ["/spec/ports/1"], id="removed, which leaves no trace of who"),
    ],
)  # fmt: skip
def test_items_that_somebody_adds_or_renumbers_count_with_who_did_it(
    ports: dict[str, list[Object]], expected: list[str]
) -> None:
    assert told(live(ports)) == expected


def test_what_somebody_applies_writes_as_status_or_wrote_while_the_chart_installed_does_not_count() -> None:
    ports = {"helm": [HTTP, METRICS], "alice": [EXTRA]}
    assert told(live(ports, operation="Apply")) == []
    assert told(live(ports, subresource="status")) == []
    assert told(live(ports), settled=LATE) == []
    assert told({**live(ports), "apiVersion": "v1"}, {**SERVICE, "apiVersion": "example.com/v1"}) == []


@rows.each("key", ["containers", "initContainers", "volumes", "env", "volumeMounts"])
def test_what_injectors_add_does_not_count(key: str) -> None:
    owned: Object = {
        "f:spec": {f"f:{key}": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
    }
    others: Object = {"f:spec": {f"f:{key}": {'k:{"name":"b"}': {".": {}, "f:name": {}}}}}
    entries = [
        {"manager": manager, "operation": "Update", "time": LATE, "fieldsV1": fields}
        for manager, fields in (("helm", owned), ("injector", others))
    ]
    found: Object = {"apiVersion": "v1", "kind": "Pod", "spec": {key: [{"name": "a"}, {"name": "b"}]}}
    found["metadata"] = {"managedFields": entries}
    expected = {"apiVersion": "v1", "kind": "Pod", "spec": {key: [{"name": "a"}]}}
    assert told(found, expected) == []
    assert [each.live_path for each in others_fields.beside(expected, found)] == [("spec", key, "1")]


def test_a_key_of_a_mapping_that_looks_like_a_number_is_no_item() -> None:
    owned: Object = {"f:data": {"f:a": {}}}
    others: Object = {"f:data": {"f:1": {}}}
    entries = [
        {"manager": manager, "operation": "Update", "time": LATE, "fieldsV1": fields}
        for manager, fields in (("helm", owned), ("alice", others))
    ]
    found: Object = {
        "kind": "ConfigMap",
        "data": {"a": "b", "1": "2"},
        "metadata": {"managedFields": entries},
    }
    assert (
        told(found | {"apiVersion": "v1"}, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})
        == []
    )


def test_a_correction_takes_added_items_away_by_number_from_the_last_one_on() -> None:
    found = live(
        {"helm": [HTTP], "kubectl-edit": [{"name": "metrics", "port": 9191}, {"name": "extra", "port": 7000}]}
    )
    operations = corrections.json_patch(found, others_fields.changes(SERVICE, found))
    assert [(each["op"], each["path"]) for each in operations if each["op"] != "test"] == [
        ("add", "/spec/ports/-"),
        ("remove", "/spec/ports/2"),
        ("remove", "/spec/ports/1"),
    ]
    assert {"op": "test", "path": "/spec/ports/1/name", "value": "metrics"} in operations


def test_what_never_changes_is_nobodys_fault_who_wrote_something_else() -> None:
    found = live({"helm": [HTTP, METRICS]})
    found["metadata"]["managedFields"].append(
        {"manager": "alice", "operation": "Update", "time": LATE, "fieldsV1": {"f:spec": {"f:paused": {}}}}
    )
    found["spec"]["paused"] = True
    beside = others_fields.beside(SERVICE, found)
    assert [each.live_path for each in beside] == [("spec", "paused")]
    said = 'Service "web" is invalid: spec.selector: Invalid value: ***: field is immutable'
    assert others_fields.blamed(beside, said) == []
    assert others_fields.blamed(beside, "spec.selector: Forbidden: not with it") == beside


@pytest.mark.slow
def test_what_a_large_list_and_a_long_refusal_cost_grows_with_their_size_alone() -> None:
    def many(count: int) -> Object:
        return live({"helm": [HTTP, METRICS], "alice": [{"name": f"p{n}", "port": n} for n in range(count)]})

    assert costs.is_linear(many, lambda found: others_fields.changes(SERVICE, found), 250)
    beside = others_fields.beside(SERVICE, many(50))
    for piece in ("spec.ports[0].name: Invalid value: ", "a." * 40, "a[", "[a]", "`a`", "spec: Forbidden: `"):
        assert costs.is_linear(piece.__mul__, lambda said: others_fields.blamed(beside, said), 100)


def test_at_most_some_differences_are_told() -> None:
    found = live({"helm": [HTTP], "alice": [{"name": f"p{n}", "port": n} for n in range(200)]})
    assert len(others_fields.changes(SERVICE, found)) == field_drift.MOST_DIFFERENCES
