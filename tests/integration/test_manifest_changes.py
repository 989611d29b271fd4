"""Labels, annotations and patches on what charts render, with both Helms."""

import json
import pathlib
import sys
import time
from typing import Final

import pytest
from msgspec import structs

from addon_operator.devcluster import handle
from addon_operator.modules.patching import manifest_changes
from tests.integration import helm_site, module_objects, operator_site

pytestmark = pytest.mark.integration

TEMPLATES: Final = """\
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data:
  word: "y"
  number: "012"
  lines: |
    one
      two
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: "post-install,post-upgrade"}}
"""
CHANGES: Final = """\
labels: {team: platform}
annotations: {example.com/owner: us}
patches:
- target: {kind: Service, name: "a*"}
  patch: {spec: {ports: [{port: 80, name: web}]}}
- target: {kind: ConfigMap, name: web}
  patch: [{op: add, path: /data/patched, value: "on"}]
"""


@pytest.fixture
def modules(site: operator_site.Site, devcluster: handle.DevCluster) -> module_objects.Modules:
    site.first_retry = operator_site.SOON
    return module_objects.Modules(site, devcluster)


def with_app(site: operator_site.Site, changes: str) -> pathlib.Path:
    module = site.module("010-web", {"a": "b"}, values="webEnabled: true\n")
    (module / "templates" / "app.yaml").write_text(TEMPLATES)
    (module / "module.yaml").write_text(changes)
    return module


def test_changes_are_in_the_release_healed_and_part_of_the_checksum(
    site: operator_site.Site, modules: module_objects.Modules, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    module = with_app(site, CHANGES)
    operator = site.start(COMMON_LABELS="zone=a,team=nobody").wait_ready()
    service = site.get("service", "app")
    assert service["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "Helm",
        "team": "platform",
        "zone": "a",
    }
    assert service["metadata"]["annotations"]["example.com/owner"] == "us"
    assert (service["spec"]["selector"], service["spec"]["ports"][0]["name"]) == ({"app": "app"}, "web")
    assert site.data("web") == {"a": "b", "patched": "on"}
    assert site.data("texts") == {"word": "y", "number": "012", "lines": "one\n  two\n"}
    hook = site.get("configmap", "hook")
    assert "team" not in hook["metadata"].get("labels", {})
    assert "patched: " in site.command("module", "render", "web").stdout
    modules.wait(operator, "web", Healthy="True", Drifted="False")

    site.delete("service", "app")
    operator.wait_metric(1, "resources_healed_total", module="web")
    healed = site.get("service", "app")
    assert healed["metadata"]["labels"]["team"] == "platform"

    # What is written while the chart's hooks may still be at work does not count.
    def is_drift() -> bool:
        site.label("service", "app", {"team": f"mine{time.monotonic()}"})
        return "Service app: /metadata/labels/team" in json.dumps(modules.get("web"))

    operator.wait_until(is_drift, "it is drift")
    operator.stop()

    # Nothing changed: nothing is rendered. Another label is another revision.
    calls, before = len(site.helm_calls()), site.revisions()
    again = site.start(COMMON_LABELS="zone=a,team=nobody").wait_ready().wait_idle()
    assert (len(site.helm_calls()), site.revisions()) == (calls, before)
    again.stop()
    (module / "module.yaml").write_text(CHANGES.replace("platform", "other"))
    planned = json.loads(site.command("plan", "--output=json", COMMON_LABELS="zone=a,team=nobody").stdout)
    assert [each["action"] for each in planned["modules"]] == ["upgrade"]
    assert "other" in json.dumps(planned["modules"][0]["changes"])


@pytest.mark.slow
def test_a_patch_that_matches_nothing_is_an_error_of_its_module_alone(
    site: operator_site.Site, modules: module_objects.Modules
) -> None:
    module = with_app(site, CHANGES.replace('name: "a*"', "name: ap"))
    site.module("020-db", {"a": "b"}, values="dbEnabled: true\n")
    operator = site.start(CONVERGE_ON_FAILURE="continue")
    status = modules.wait(operator, "web", Ready="False")
    assert "patches[0] matches nothing: there is no kind Service, name ap; " in status["lastError"]
    assert "the chart renders Service app" in status["lastError"]
    assert "Traceback" not in status["lastError"]
    modules.wait(operator, "db", Ready="True")
    linted = site.command("module", "lint", str(module))
    assert "patches[0] matches nothing" in linted.stdout
    operator.stop()


def renderers(started: pathlib.Path) -> int:
    """How many programs of those that were started change manifests."""
    return started.read_text().count("post_renderer_main") if started.exists() else 0


@pytest.mark.slow
async def test_changes_cost_one_process_for_each_call_of_helm_and_without_them_there_is_none(
    helm_site: helm_site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = helm_site.root / "started"
    counted = helm_site.root / "counted-python"
    counted.write_text(f'#!/bin/sh\necho "$*" >> {started}\nexec "{sys.executable}" "$@"\n')
    counted.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(counted))
    changes = manifest_changes.ManifestChanges(labels={"team": "platform"})
    async with helm_site.manager() as manager:
        await manager.ensure(helm_site.asked())
        assert not renderers(started)
        for size in (1, 2, 2):
            await manager.ensure(structs.replace(helm_site.asked(size), changes=changes))
    calls = helm_site.verbs[1:]
    assert calls == ["template", "upgrade"] * 2
    assert renderers(started) == len(calls)
    assert helm_site.get("configmap", "web")["metadata"]["labels"]["team"] == "platform"
