"""Objects written by hand: whatever is wrong with them, the error names the field."""

import contextlib
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from addon_operator import expansion
from addon_operator.kernel import errors
from tests.support import rows

Decoded: TypeAlias = Any
"""What a YAML or JSON file may hold."""


def build(
    container: Decoded, pod: Decoded = None, config_maps: Decoded = None
) -> expansion.ContainerEnvironment:
    return expansion.container_environment(
        {} if pod is None else pod,
        container,
        services=[],
        config_maps=config_maps or {"c": {"k": "v"}},
        secrets={},
        master_services=[],
    )


def source(**value_from: object) -> dict[str, Any]:
    return {"name": "web", "env": [{"name": "A", "valueFrom": value_from}]}


@rows.each(
    ("container", "text"),
    [
        (None, "container must be an object, not empty"),
        ([], "container must be an object, not a list"),
        ({"env": {}}, "container: env must be a list, not an object"),
        ({"name": "web", "env": "A=1"}, "container web: env must be a list, not a string"),
        ({"name": "web", "env": ["A=1"]}, "container web: env[0] must be an object, not a string"),
        ({"name": "web", "env": [{"value": "1"}]}, "container web: env[0].name is required"),
        ({"name": "web", "env": [None]}, "container web: env[0].name is required"),
        (
            {"name": "web", "env": [{"name": "A"}, {"name": "B", "value": 8080}]},
            "container web: env[1].value must be a string, not a number; put it in quotes",
        ),
        (
            {"name": "web", "env": [{"name": "A", "value": True}]},
            "container web: env[0].value must be a string, not true or false; put it in quotes",
        ),
        (
            {"name": "web", "args": [1]},
            "container web: args[0] must be a string, not a number; put it in quotes",
        ),
        ({"name": "web", "command": "sh"}, "container web: command must be a list, not a string"),
        ({"name": "web", "args": ["a", None]}, "container web: args[1] must be a string, not empty"),
        ({"name": "web", "envFrom": [{}]}, "container web: envFrom[0] needs one of configMapRef, secretRef"),
        ({"name": "web", "envFrom": [{"configMapRef": {}}]}, "envFrom[0].configMapRef.name is required"),
        (
            {"name": "web", "envFrom": [{"secretRef": "s"}]},
            "envFrom[0].secretRef must be an object, not a string",
        ),
        (
            {"name": "web", "envFrom": [{"prefix": 1, "secretRef": {"name": "s"}}]},
            "envFrom[0].prefix must be",
        ),
        (
            {"name": "web", "envFrom": [{"secretRef": {"name": "s", "optional": "yes"}}]},
            "envFrom[0].secretRef.optional must be true or false, not a string",
        ),
        (
            source(configmapKeyRef={}),
            "env[0].valueFrom needs one of fieldRef, resourceFieldRef, configMapKeyRef",
        ),
        (source(configMapKeyRef={"name": "c"}), "env[0].valueFrom.configMapKeyRef.key is required"),
        (source(secretKeyRef={"key": "k"}), "env[0].valueFrom.secretKeyRef.name is required"),
        (source(fileKeyRef={"path": "p"}), "env[0].valueFrom.fileKeyRef.key is required"),
        (source(fieldRef={}), "env[0].valueFrom.fieldRef.fieldPath is required"),
        (source(fieldRef="metadata.name"), "env[0].valueFrom.fieldRef must be an object, not a string"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_container_is_reported_with_the_field(container: dict[str, Any], text: str) -> None:
    with pytest.raises(expansion.MalformedObjectError) as caught:
        build(container)
    assert text in str(caught.value)


@rows.each(
    ("pod", "path", "text"),
    [
        ("pod", "metadata.name", "pod must be an object, not a string"),
        ({"spec": []}, "metadata.name", "pod: spec must be an object, not a list"),
        (
            {"metadata": {"name": "p"}, "spec": {"enableServiceLinks": 1}},
            "metadata.name",
            "pod p: spec.enable",
        ),
        ({"metadata": []}, "metadata.name", "pod: metadata must be an object, not a list"),
        ({"metadata": {"name": 5}}, "metadata.name", "pod: metadata.name must be a string, not a number"),
        ({"metadata": {"labels": {"v": 1.5}}}, "metadata.labels['v']", "metadata.labels.v must be a string"),
        (
            {"metadata": {"labels": {1: "x"}}},
            "metadata.labels",
            "metadata.labels has the key 1, which is not a string",
        ),
        ({"status": {"podIPs": ["10.0.0.1"]}}, "status.podIPs", "status.podIPs[0] must be an object"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_pod_is_reported_with_the_field(pod: dict[str, Any], path: str, text: str) -> None:
    with pytest.raises(expansion.MalformedObjectError) as caught:
        build(source(fieldRef={"fieldPath": path}), pod)
    assert text in str(caught.value)


@rows.each(
    ("data", "text"),
    [
        ({"k": 1}, "ConfigMap c: data.k must be a string, not a number; put it in quotes"),
        ({1: "v"}, "ConfigMap c: data has the key 1, which is not a string; put it in quotes"),
        (["k"], "ConfigMap c: data must be an object, not a list"),
    ],
    ids=["value", "key", "list"],
)
def test_a_malformed_config_map_is_reported_with_the_field(data: object, text: str) -> None:
    with pytest.raises(expansion.MalformedObjectError) as caught:
        build({"envFrom": [{"configMapRef": {"name": "c"}}]}, config_maps={"c": data})
    assert str(caught.value) == text


def test_the_error_carries_the_object_and_the_field() -> None:
    with pytest.raises(errors.AddonOperatorError) as caught:
        build({"name": "web", "args": [1]})
    assert isinstance(caught.value, expansion.MalformedObjectError)
    assert (caught.value.subject, caught.value.field) == ("container web", "args[0]")


KEYS = st.sampled_from(
    [
        "name",
        "value",
        "valueFrom",
        "env",
        "envFrom",
        "args",
        "command",
        "fieldRef",
        "fieldPath",
        "resourceFieldRef",
        "resource",
        "divisor",
        "configMapKeyRef",
        "configMapRef",
        "key",
        "optional",
        "prefix",
        "resources",
        "limits",
        "cpu",
        "metadata",
        "labels",
        "spec",
        "status",
        "podIPs",
        "containers",
        "containerName",
        "clusterIP",
        "ports",
    ]
)
LEAVES = st.sampled_from(
    [
        None,
        True,
        0,
        7,
        1.5,
        "",
        "c",
        "k",
        "A",
        "$(A)",
        "metadata.labels",
        "status.podIPs",
        "limits.cpu",
        "1.2.3.4",
    ]
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
ENTRY = st.fixed_dictionaries(
    {"name": st.just("A"), "valueFrom": st.dictionaries(KEYS, JSON, max_size=3) | JSON}
)
CONTAINER = JSON | st.fixed_dictionaries(
    {"env": st.lists(ENTRY, max_size=2), "resources": JSON, "envFrom": JSON}
)


@given(JSON, CONTAINER, JSON, st.dictionaries(st.just("c"), JSON))
@settings(deadline=None)
def test_any_json_gives_an_environment_or_one_clear_error(
    pod: Decoded,
    container: Decoded,
    service: Decoded,
    config_maps: Decoded,
) -> None:
    with contextlib.suppress(expansion.MalformedObjectError):
        found = expansion.container_environment(
            pod, container, services=[service], config_maps=config_maps, secrets={}, master_services=[service]
        )
        texts = [*found.env, *found.env.values(), *found.command, *found.args]
        assert all(isinstance(text, str) for text in texts)
