"""Entries of module.yaml that name what the chart does not render."""

from addon_operator.commands.checks import unmatched_entries
from addon_operator.modules import module_config
from addon_operator.modules.drift import drift_config
from addon_operator.modules.health import health_config
from tests.support import rows

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 1, template: {spec: {containers: [{name: main}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
"""


def found(key: str, entry: dict[str, object]) -> list[str]:
    section, _, part = key.partition(".")
    if section == "health":
        config = module_config.ModuleConfig(health=health_config.read({part: [entry]}))
    else:
        config = module_config.ModuleConfig(drift=drift_config.read({part: [entry]}))
    return list(unmatched_entries.find(config, MANIFEST))


@rows.each(
    ("key", "entry", "said"),
    [
        ("health.ignore", {"kind": "Deploymnet"}, "there is no kind Deploymnet, name *"),
        ("health.ignore", {"kind": "Job", "name": "hook"}, "there is no kind Job, name hook"),
        ("drift.ignore", {"kind": "Deployment", "name": "wbe"}, "there is no kind Deployment, name wbe"),
        (
            "health.rules",
            {"apiVersion": "apps/v2", "kind": "Deployment", "healthy": "true"},
            "there is no Deployment of apps/v2",
        ),
    ],
)
def test_an_entry_that_means_no_resource_is_told_with_what_there_is(
    key: str, entry: dict[str, object], said: str
) -> None:
    expected = f"module.yaml: {key}[0] matches nothing: {said}; the chart renders Deployment web"
    assert found(key, entry) == [expected]


def test_a_rule_that_gives_no_verdict_over_what_the_chart_renders_is_told() -> None:
    kind: dict[str, object] = {"apiVersion": "apps/v1", "kind": "Deployment"}
    (said,) = found("health.rules", {**kind, "healthy": "self.spec.replicas"})
    assert said.startswith(
        "module.yaml: health.rules[0].healthy gives a number, not true or false, over the "
    )
    for rule in ("self.spec.replicas == 1", "self.status.phase", "self.spec.replicas.x"):
        assert found("health.rules", {**kind, "healthy": rule, "failed": rule}) == []


def test_a_path_of_no_field_is_told_with_the_resources_that_lack_it() -> None:
    entry: dict[str, object] = {
        "kind": "Deployment",
        "name": "*",
        "paths": ["/spec/replicas", "/spec/replica"],
    }
    (said,) = found("drift.ignore", entry)
    where, _, what = said.partition(" matches nothing: ")
    assert where == "module.yaml: drift.ignore[0].paths[1]"
    assert what == "Deployment web has no field /spec/replica in the manifest"


@rows.each(
    ("key", "entry"),
    [
        ("health.ignore", {"kind": "Deployment", "name": "w*"}),
        ("health.ignore", {"kind": "Readiness"}),
        ("drift.ignore", {"kind": "Deployment", "paths": ["/spec/template/spec/containers/0/name"]}),
        ("health.rules", {"apiVersion": "apps/v1", "kind": "Deployment", "healthy": "true"}),
    ],
)
def test_an_entry_that_means_something_is_not_told(key: str, entry: dict[str, object]) -> None:
    assert found(key, entry) == []
