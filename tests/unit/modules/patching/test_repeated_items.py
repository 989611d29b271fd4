"""Variables that stand twice in ``env``: which counts, and what is told."""

import json
from typing import Any

import yaml

from addon_operator.modules.patching import manifest_changes, repeated_items

POD = """\
    spec:
      containers:
      - name: app
        image: a
        env:
        - name: A
          value: "1"
        - {name: B, value: "2"}
        - name: A
          value: "3"
      - name: beside
        env:
        - name: A
          value: "1"
"""
DEPLOYMENT = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  template:\n{POD}"
OTHERS = "# Source: a.yaml\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  env: |\n    - name: x\n"
TOLD = "container app: env has A 2 times, and the last one counts; remove the others from the chart"


def variables(document: dict[str, Any]) -> list[str]:
    containers = document["spec"]["template"]["spec"]["containers"]
    return [f"{each['name']}={each['value']}" for container in containers for each in container["env"]]


def test_the_last_variable_of_a_name_stays_at_its_own_place_and_is_told() -> None:
    text, told = repeated_items.once(f"---\n{OTHERS}---\n{DEPLOYMENT}---\n{OTHERS}")
    assert told == (f"Deployment web, {TOLD}",)
    one, changed, other = yaml.safe_load_all(text)
    assert variables(changed) == ["B=2", "A=3", "A=1"]
    assert [one, other] == [yaml.safe_load(OTHERS)] * 2


def test_it_makes_no_difference_how_the_list_is_written() -> None:
    for written in (
        yaml.safe_dump(yaml.safe_load(DEPLOYMENT), default_flow_style=True),
        json.dumps(yaml.safe_load(DEPLOYMENT)),
    ):
        text, told = repeated_items.once(written)
        assert (variables(yaml.safe_load(text)), told) == (
            ["B=2", "A=3", "A=1"],
            (f"Deployment web, {TOLD}",),
        )


def test_a_manifest_in_which_each_stands_once_stays_as_it_is() -> None:
    third = '        - name: A\n          value: "3"\n'
    assert third in DEPLOYMENT
    once = f"---\n{OTHERS}---\n{DEPLOYMENT.replace(third, '')}"
    assert repeated_items.once(once) == (once, ())


def test_pods_of_all_workloads_are_looked_at_and_custom_resources_are_not() -> None:
    cron = yaml.safe_load(DEPLOYMENT)
    cron |= {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": cron["spec"]}}}
    assert [*repeated_items.remove(cron)] == [f"CronJob web, {TOLD}"]
    custom = yaml.safe_load(DEPLOYMENT) | {"apiVersion": "example.com/v1"}
    assert [*repeated_items.remove(custom)] == []


def test_all_lists_of_which_the_api_server_takes_an_item_twice_are_looked_at() -> None:
    pod = yaml.safe_load(DEPLOYMENT)
    pod["spec"]["template"]["spec"] = {
        "imagePullSecrets": [{"name": "p"}, {"name": "q"}, {"name": "p"}],
        "hostAliases": [{"ip": "::1", "hostnames": ["a"]}, {"ip": "::1", "hostnames": ["b"]}],
        "initContainers": [{"name": "i", "ports": [{"containerPort": 1}, {"containerPort": 1, "name": "b"}]}],
        "containers": [
            {"name": "c", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]}
        ],
    }
    account: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "secrets": [{"name": "a"}, {"name": "a"}],
    }
    account["metadata"] = {"name": "web", "finalizers": ["a", "b", "a"]}
    text, told = repeated_items.once("---\n".join(map(yaml.safe_dump, (pod, account))))
    assert [each.partition(" 2 times")[0] for each in told] == [
        "Deployment web: imagePullSecrets has p",
        "Deployment web: hostAliases has ::1",
        "Deployment web, container i: ports has 1/TCP",
        "ServiceAccount web: finalizers has a",
        "ServiceAccount web: secrets has a",
    ]
    changed, other = yaml.safe_load_all(text)
    spec = changed["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["imagePullSecrets"]] == ["q", "p"]
    assert [each["hostnames"] for each in spec["hostAliases"]] == [["b"]]
    assert spec["initContainers"][0]["ports"] == [{"containerPort": 1, "name": "b"}]
    assert len(spec["containers"][0]["ports"]) == 2
    assert (other["secrets"], other["metadata"]["finalizers"]) == ([{"name": "a"}], ["b", "a"])


def test_the_changes_of_a_module_remove_them_only_if_they_are_to() -> None:
    documents = [yaml.safe_load(DEPLOYMENT)]
    plain = manifest_changes.ManifestChanges({"a": "b"})
    assert "once" not in plain.written()
    (kept,) = manifest_changes.changed(documents, manifest_changes.read(plain.written()), "web")
    assert variables(kept) == ["A=1", "B=2", "A=3", "A=1"]
    asked = manifest_changes.ManifestChanges(once=True)
    (changed,) = manifest_changes.changed(documents, manifest_changes.read(asked.written()), "web")
    assert variables(changed) == ["B=2", "A=3", "A=1"]
