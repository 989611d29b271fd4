"""Variables that stand twice in ``env``: which counts, and what is told."""

import json
from typing import Any

import yaml

from addon_operator.modules.patching import manifest_changes, repeated_variables

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
    text, told = repeated_variables.once(f"---\n{OTHERS}---\n{DEPLOYMENT}---\n{OTHERS}")
    assert told == (f"Deployment web, {TOLD}",)
    one, changed, other = yaml.safe_load_all(text)
    assert variables(changed) == ["B=2", "A=3", "A=1"]
    assert [one, other] == [yaml.safe_load(OTHERS)] * 2


def test_it_makes_no_difference_how_the_list_is_written() -> None:
    for written in (
        yaml.safe_dump(yaml.safe_load(DEPLOYMENT), default_flow_style=True),
        json.dumps(yaml.safe_load(DEPLOYMENT)),
    ):
        text, told = repeated_variables.once(written)
        assert (variables(yaml.safe_load(text)), told) == (
            ["B=2", "A=3", "A=1"],
            (f"Deployment web, {TOLD}",),
        )


def test_a_manifest_in_which_each_stands_once_stays_as_it_is() -> None:
    third = '        - name: A\n          value: "3"\n'
    assert third in DEPLOYMENT
    once = f"---\n{OTHERS}---\n{DEPLOYMENT.replace(third, '')}"
    assert repeated_variables.once(once) == (once, ())


def test_pods_of_all_workloads_are_looked_at_and_custom_resources_are_not() -> None:
    cron = yaml.safe_load(DEPLOYMENT)
    cron |= {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": cron["spec"]}}}
    assert [*repeated_variables.remove(cron)] == [f"CronJob web, {TOLD}"]
    custom = yaml.safe_load(DEPLOYMENT) | {"apiVersion": "example.com/v1"}
    assert [*repeated_variables.remove(custom)] == []


def test_the_changes_of_a_module_remove_them_only_if_they_are_to() -> None:
    documents = [yaml.safe_load(DEPLOYMENT)]
    plain = manifest_changes.ManifestChanges({"a": "b"})
    assert "once" not in plain.written()
    (kept,) = manifest_changes.changed(documents, manifest_changes.read(plain.written()), "web")
    assert variables(kept) == ["A=1", "B=2", "A=3", "A=1"]
    asked = manifest_changes.ManifestChanges(once=True)
    (changed,) = manifest_changes.changed(documents, manifest_changes.read(asked.written()), "web")
    assert variables(changed) == ["B=2", "A=3", "A=1"]
