"""The downward API: fields and resources, and what is known only later."""

from typing import Any

import pytest

from addon_operator import expansion
from tests.support import rows

STORED: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "11-22",
        "labels": {"app": "web", "example.org/Tier": "front", "quoted": 'a"b\\c\n\x01\u200b\U0001f600'},
        "annotations": {"example.org/note": "hi", "b": "2"},
    },
    "spec": {"nodeName": "node-1", "serviceAccountName": "robot"},
    "status": {
        "podIP": "10.1.0.5",
        "podIPs": [{"ip": "10.1.0.5"}, {"ip": "fd00::5"}],
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
    },
}
NEW: dict[str, Any] = {"metadata": {"generateName": "web-"}, "spec": {}}


def env_of(pod: dict[str, Any], container: dict[str, Any]) -> expansion.ContainerEnvironment:
    return expansion.container_environment(
        pod, container, services=[], config_maps={}, secrets={}, master_services=[]
    )


def field(pod: dict[str, Any], path: str, **ref: object) -> str:
    entry = {"name": "IT", "valueFrom": {"fieldRef": {"fieldPath": path, **ref}}}
    return env_of(pod, {"name": "web", "env": [entry]}).env["IT"]


def resource(name: str, resources: dict[str, Any], pod: dict[str, Any] | None = None, **ref: object) -> str:
    entry = {"name": "IT", "valueFrom": {"resourceFieldRef": {"resource": name, **ref}}}
    container = {"name": "web", "resources": resources, "env": [entry]}
    return env_of(pod or {"spec": {"containers": [container]}}, container).env["IT"]


KNOWN = [
    ("metadata.name", "web-0"),
    ("metadata.namespace", "shop"),
    ("metadata.uid", "11-22"),
    ("metadata.labels['app']", "web"),
    ("metadata.labels['example.org/Tier']", "front"),
    ("metadata.annotations['example.org/note']", "hi"),
    ("metadata.annotations['Example.org/NOTE']", ""),
    ("metadata.annotations['absent']", ""),
    ("metadata.annotations", 'b="2"\nexample.org/note="hi"'),
    ("spec.nodeName", "node-1"),
    ("spec.host", "node-1"),
    ("spec.serviceAccountName", "robot"),
    ("status.podIP", "10.1.0.5"),
    ("status.podIPs", "10.1.0.5,fd00::5"),
    ("status.hostIP", "192.0.2.1"),
    ("status.hostIPs", "192.0.2.1,2001:db8::1"),
]


def test_a_field_that_the_pod_knows_is_resolved() -> None:
    assert [(path, field(STORED, path)) for path, _ in KNOWN] == KNOWN


def test_all_labels_are_sorted_lines_with_values_quoted_as_in_go() -> None:
    lines = ['app="web"', 'example.org/Tier="front"', 'quoted="a\\"b\\\\c\\n\\x01\\u200b\U0001f600"']
    assert field(STORED, "metadata.labels") == "\n".join(lines)


def test_all_labels_of_a_pod_without_labels_are_empty() -> None:
    assert field(NEW, "metadata.labels") == ""


def test_a_field_known_only_later_is_a_placeholder() -> None:
    metadata = ["metadata.name", "metadata.namespace", "metadata.uid"]
    others = ["spec.nodeName", "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"]
    paths = [*metadata, *others]
    assert [field(NEW, path) for path in paths] == [f"<{path}>" for path in paths]


def test_the_old_name_of_the_node_shows_the_current_one_as_placeholder() -> None:
    assert field(NEW, "spec.host") == "<spec.nodeName>"


@rows.each(
    ("spec", "account"),
    [
        ({}, "default"),
        ({"serviceAccount": "old"}, "old"),
        ({"serviceAccountName": "a", "serviceAccount": "b"}, "a"),
    ],
    ids=["none", "old field", "both"],
)
def test_the_service_account_is_what_the_api_server_will_fill_in(spec: dict[str, Any], account: str) -> None:
    assert field({"spec": spec}, "spec.serviceAccountName") == account


def test_a_field_known_only_later_counts_as_defined() -> None:
    late = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    found = env_of(NEW, {"env": [late, {"name": "URL", "value": "http://$(IP):80"}], "args": ["$(IP)"]})
    assert found.env["URL"] == "http://<status.podIP>:80"
    assert found.args == ["<status.podIP>"]
    assert found.unresolved == []


@rows.each(
    "path",
    ["spec.restartPolicy", "metadata", "metadata.labels.app", "spec.nodeName['x']", "status.phase", "['x']"],
)
def test_a_field_that_no_container_can_see_is_refused(path: str) -> None:
    with pytest.raises(
        expansion.MalformedObjectError, match=r"env\[0\].valueFrom.fieldRef.fieldPath"
    ) as caught:
        field(STORED, path)
    assert path in str(caught.value)
    assert "status.podIP" in str(caught.value)


@rows.each("path", ["metadata.labels['']", "metadata.labels['a b']", "metadata.labels['Example.org/x']"])
def test_a_key_that_cannot_exist_is_refused(path: str) -> None:
    with pytest.raises(expansion.MalformedObjectError, match="can be no key of labels"):
        field(STORED, path)


def test_only_version_one_of_the_pod_has_fields() -> None:
    assert field(STORED, "metadata.name", apiVersion="v1") == "web-0"
    with pytest.raises(expansion.MalformedObjectError, match="apiVersion must be v1"):
        field(STORED, "metadata.name", apiVersion="v2")


RESOURCES = {
    "limits": {"cpu": "1250m", "memory": "1Gi", "ephemeral-storage": "5M", "hugepages-2Mi": "4Mi"},
    "requests": {"cpu": 0.5, "memory": "100Mi"},
}
COUNTED: list[tuple[str, object, str]] = [
    ("limits.cpu", None, "2"),
    ("limits.cpu", "0", "2"),
    ("limits.cpu", 0, "2"),
    ("limits.cpu", "1", "2"),
    ("limits.cpu", "1m", "1250"),
    ("requests.cpu", None, "1"),
    ("requests.cpu", "1m", "500"),
    ("limits.memory", None, "1073741824"),
    ("limits.memory", "1Mi", "1024"),
    ("limits.memory", "1M", "1074"),
    ("limits.memory", "1Gi", "1"),
    ("requests.memory", "1Gi", "1"),
    ("limits.ephemeral-storage", "1k", "5000"),
    ("limits.hugepages-2Mi", "1Mi", "4"),
    ("requests.hugepages-2Mi", "1Mi", "4"),
]


def test_a_resource_is_counted_in_divisors_and_rounded_up() -> None:
    found = [(name, divisor, resource(name, RESOURCES, divisor=divisor)) for name, divisor, _ in COUNTED]
    assert found == COUNTED


@rows.each("quantity", [2, 2.0, "2", "2000m"], ids=repr)
def test_a_quantity_may_be_written_as_a_number(quantity: object) -> None:
    assert resource("limits.cpu", {"limits": {"cpu": quantity}}) == "2"


def test_spaces_around_a_quantity_do_not_count() -> None:
    assert resource("limits.memory", {"limits": {"memory": " 1Gi "}}) == str(2**30)


@rows.each("name", ["limits.cpu", "limits.memory", "limits.ephemeral-storage"])
@rows.each("amount", [None, "0"], ids=["absent", "zero"])
def test_a_limit_that_the_node_decides_is_known_only_later(name: str, amount: str | None) -> None:
    assert resource(name, {"limits": {name.removeprefix("limits."): amount}}) == f"<{name}>"


def test_huge_pages_without_a_limit_are_none_since_no_node_gives_them_away() -> None:
    assert resource("limits.hugepages-1Gi", {}) == "0"


@rows.each("name", ["requests.cpu", "requests.memory", "requests.hugepages-2Mi"])
def test_without_request_and_limit_the_request_is_zero(name: str) -> None:
    assert resource(name, {}) == "0"


def test_a_missing_request_is_the_limit_as_the_api_server_fills_it_in() -> None:
    assert resource("requests.cpu", {"limits": {"cpu": "3"}}) == "3"


def test_a_request_of_zero_stays_zero() -> None:
    assert resource("requests.cpu", {"limits": {"cpu": "3"}, "requests": {"cpu": "0"}}) == "0"


def test_a_limit_of_the_pod_stands_in_for_a_missing_one() -> None:
    pod = {"spec": {"resources": {"limits": {"cpu": "4", "memory": "0", "ephemeral-storage": "1G"}}}}
    assert resource("limits.cpu", {}, pod) == "4"
    assert resource("limits.cpu", {"limits": {"cpu": "1"}}, pod) == "1"
    assert resource("limits.memory", {}, pod) == "<limits.memory>"
    assert resource("limits.ephemeral-storage", {}, pod) == "<limits.ephemeral-storage>"


def test_a_resource_may_be_that_of_another_container() -> None:
    pod = {
        "spec": {
            "containers": [{"name": "web"}, {"name": "side", "resources": {"limits": {"cpu": "7"}}}],
            "initContainers": [{"name": "first", "resources": {"requests": {"cpu": "5"}}}],
        }
    }
    assert resource("limits.cpu", {}, pod, containerName="side") == "7"
    assert resource("limits.memory", {}, pod, containerName="side") == "<limits.memory>"
    assert resource("requests.cpu", {}, pod, containerName="first") == "5"


def test_the_kubelet_fills_in_no_limit_for_an_init_container_that_is_named() -> None:
    pod = {"spec": {"initContainers": [{"name": "first"}]}}
    assert resource("limits.cpu", {}, pod, containerName="first") == "0"


@rows.each(
    ("ref", "text"),
    [
        (
            {"resource": "limits.gpu"},
            "env[0].valueFrom.resourceFieldRef.resource is 'limits.gpu'; use one of",
        ),
        ({"resource": "cpu"}, "resourceFieldRef.resource is 'cpu'; use one of"),
        ({}, "resourceFieldRef.resource is required"),
        (
            {"resource": "limits.cpu", "divisor": "many"},
            "divisor must be a quantity such as 500m, 2 or 1Gi, not 'many'",
        ),
        ({"resource": "limits.cpu", "divisor": True}, "or 1Gi, not true or false"),
        ({"resource": "limits.cpu", "containerName": "x"}, "containerName names the container 'x'"),
        ({"resource": "limits.memory"}, "container web: resources.limits.memory must be a quantity"),
        ({"resource": "requests.memory"}, "container web: resources.requests.memory must be a quantity"),
        ({"resource": "limits.ephemeral-storage"}, "not '1000000000000000000000000000000000000000'"),
    ],
    ids=str,
)
def test_a_resource_that_cannot_be_worked_out_names_its_field(ref: dict[str, Any], text: str) -> None:
    resources = {
        "limits": {"memory": "lots", "ephemeral-storage": 10**5000},
        "requests": {"memory": float("inf")},
    }
    entry = {"name": "IT", "valueFrom": {"resourceFieldRef": ref}}
    with pytest.raises(expansion.MalformedObjectError) as caught:
        env_of({}, {"name": "web", "resources": resources, "env": [entry]})
    assert text in str(caught.value)
