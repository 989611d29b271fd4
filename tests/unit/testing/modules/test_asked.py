"""What the API server asks hooks under test: reviews, and conversions."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator.kernel import errors
from addon_operator.testing import snapshots
from addon_operator.testing.cases import case_file, case_run
from addon_operator.testing.modules import hook_runs, module, places, runtime
from tests.support import rows

HOOK = """#!/usr/bin/env python3
from addon_operator import hook

CONFIG = '''
configVersion: v1
kubernetes:
- {name: quotas, kind: ResourceQuota, jqFilter: .metadata.name}
kubernetesValidating:
- name: owner.web.example
  includeSnapshotsFrom: [quotas]
  sideEffects: NoneOnDryRun
  labelSelector: {matchLabels: {app: web}}
  rules:
  - {apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, DELETE]}
kubernetesMutating:
- name: label.web.example
  rules:
  - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}
kubernetesCustomResourceConversion:
- name: things
  crdName: things.web.example
  conversions: [{fromVersion: v1alpha1, toVersion: v1}]
'''


@hook.convert("v1alpha1", "v1")
def up(obj):
    if obj["spec"]["size"] < 0:
        raise hook.HookError("a size is not negative")
    obj["spec"] = {"replicas": obj["spec"]["size"]}


def main(run):
    ctx = run.contexts[0]
    if ctx.type == "Validating":
        request = ctx.review
        if request["operation"] == "DELETE":
            hook.deny(f"{request['oldObject']['metadata']['name']} stays")
        elif request["userInfo"]["username"] == "values":
            run.values["web.size"] = 5
            hook.allow()
        else:
            run.kubernetes.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}})
            hook.allow([f"there is {each.filter_result}" for each in ctx.snapshots["quotas"]])
    elif ctx.type == "Mutating":
        path = "/metadata/labels" if "wrong" not in ctx.review["name"] else "/no/such"
        hook.patch_object([{"op": "add", "path": path, "value": {"team": "a"}}])


if __name__ == "__main__":
    hook.run(CONFIG, main)
"""
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": "default"}}
OLD = {
    "apiVersion": "web.example/v1alpha1",
    "kind": "Thing",
    "metadata": {"name": "one"},
    "spec": {"size": 2},
}
CASES = """
- name: a deployment stays
  hook:
    name: asked.py
    binding: owner.web.example
    review:
      oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: web}}}
  expect: {hook: {allowed: ALLOWED, message: MESSAGE}}
- name: maps get a team
  hook:
    name: asked.py
    binding: label.web.example
    review: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: m}}}
  expect: {hook: {allowed: true, patched: {metadata: {labels: {team: TEAM}}}}}
- name: things get replicas
  hook:
    name: asked.py
    to: v1
    convert: [{apiVersion: web.example/v1alpha1, kind: Thing, metadata: {name: one}, spec: {size: 2}}]
  expect: {hook: {converted: [{apiVersion: web.example/v1, spec: {replicas: REPLICAS}}]}}
"""


@pytest.fixture(scope="module")
def running() -> Iterator[runtime.Runtime]:
    with runtime.Runtime() as made:
        yield made


@pytest.fixture(scope="module")
def modules(running: runtime.Runtime, tmp_path_factory: pytest.TempPathFactory) -> module.Modules:
    own = tmp_path_factory.mktemp("asked") / "modules" / "010-web"
    (own / "hooks").mkdir(parents=True)
    (own / "hooks" / "asked.py").write_text(HOOK)
    (own / "hooks" / "asked.py").chmod(0o755)
    (own / "values.yaml").write_text("web: {size: 1}\n")
    return module.Modules(running, places.of_module(own))


@pytest.fixture(scope="module")
def asked(modules: module.Modules) -> module.Hook:
    """A hook that reviews, changes and converts."""
    return modules("web").hook("asked.py")


def test_a_review_is_answered_with_snapshots_and_outputs_are_applied(asked: module.Hook) -> None:
    run = asked.run(binding="owner.web.example", review={"object": WEB}, objects=[QUOTA])

    assert (run.allowed, run.message, list(run.warnings)) == (True, "", ["there is small"])
    assert run.patched is not None
    assert run.patched["metadata"]["namespace"] == "default"
    assert run.objects.one("Namespace", "made")


def test_a_dry_run_changes_nothing_besides(asked: module.Hook) -> None:
    run = asked.run(binding="owner.web.example", review={"object": WEB, "dryRun": True})

    assert run.allowed
    assert not run.objects


def test_what_a_hook_denies_is_a_result(asked: module.Hook) -> None:
    run = asked.run(binding="owner.web.example", review={"oldObject": WEB})

    assert (run.allowed, run.message, run.patched, run.error) == (False, "web stays", None, "")


def test_a_changed_object_is_there_as_it_is_afterwards(asked: module.Hook) -> None:
    run = asked.run(binding="label.web.example", review={"object": MAP, "oldObject": MAP})

    assert run.patched == {
        **MAP,
        "metadata": {"name": "map", "namespace": "default", "labels": {"team": "a"}},
    }


def test_objects_are_converted_or_the_message_says_why_not(asked: module.Hook) -> None:
    run = asked.run(convert=[OLD], to="v1")
    refused = asked.run(convert=[{**OLD, "spec": {"size": -1}}], to="web.example/v1")

    assert run.converted == [{**OLD, "apiVersion": "web.example/v1", "spec": {"replicas": 2}}]
    assert (list(refused.converted), refused.message) == ([], "a size is not negative")


@pytest.mark.parametrize(
    ("binding", "review", "said"),
    [
        ("label.web.example", {"object": {**MAP, "metadata": {"name": "wrong"}}}, "does not apply"),
        ("owner.web.example", {"object": WEB, "userInfo": {"username": "values"}}, "only reviews"),
    ],
)
def test_an_answer_that_the_operator_refuses_fails(
    asked: module.Hook, binding: str, review: dict[str, Any], said: str
) -> None:
    with pytest.raises(hook_runs.HookFailedError, match=said):
        asked.run(binding=binding, review=review)


OWNER = "owner.web.example"


@rows.each(
    ("arguments", "said"),
    [
        ({"binding": OWNER}, "give what it asks with review="),
        ({"binding": "things"}, "convert=, and their new version with to="),
        ({"review": {"object": WEB}}, "name one with binding=: owner.web.example, label.web.example"),
        ({"binding": "quotas", "review": {"object": WEB}}, "name such a binding"),
        ({"binding": OWNER, "review": {"objekt": WEB}}, "did you mean 'object'"),
        ({"binding": OWNER, "review": {}}, "a review of CREATE has object"),
        ({"binding": OWNER, "review": {"object": WEB, "operation": "DELETE"}}, "DELETE has oldObject"),
        ({"binding": OWNER, "review": {"object": WEB, "operation": "create"}}, "write one of|did you mean"),
        ({"binding": OWNER, "review": {"object": MAP}}, "not asked about CREATE of configmaps of v1"),
        ({"binding": OWNER, "review": {"object": WEB, "oldObject": WEB}}, "UPDATE of deployments"),
        ({"binding": OWNER, "review": {"object": WEB, "subResource": "scale"}}, "of deployments/scale"),
        (
            {"binding": OWNER, "review": {"object": {**WEB, "metadata": {"name": "web"}}}},
            "its labelSelector selects app=web",
        ),
        ({"binding": OWNER, "review": {"object": {"kind": "Deployment"}}}, "'apiVersion' is missing"),
        ({"binding": OWNER, "review": {"object": WEB, "dryRun": "yes"}}, '"yes" is not true or false'),
        ({"binding": OWNER, "review": {"object": WEB, "userInfo": {"name": "a"}}}, "userInfo.*did you mean"),
        ({"binding": OWNER, "review": [WEB]}, r"a review is \{'object'"),
        ({"convert": OLD, "to": "v1"}, "convert must be a list of objects, not"),
        ({"convert": [OLD], "to": 1}, "to must be a version, not 1"),
        ({"objects": QUOTA}, "objects must be a list of objects"),
        ({"binding": 5}, "binding must be the name of a binding"),
        ({"convert": [OLD]}, "the version that is wanted"),
        ({"convert": [], "to": "v1"}, "there are none"),
        ({"convert": [OLD], "to": "v2"}, "does not convert web.example/v1alpha1 to web.example/v2"),
        ({"convert": [OLD], "to": "v1", "review": {"object": WEB}}, "one of events, review and convert"),
    ],
)
def test_a_question_that_the_hook_would_not_get_is_an_error(
    asked: module.Hook, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=said):
        asked.run(**arguments)


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"ALLOWED": "false", "MESSAGE": "web stays", "TEAM": "a", "REPLICAS": "2"}, []),
        (
            {"ALLOWED": "true", "MESSAGE": "goes", "TEAM": "b", "REPLICAS": "3"},
            [
                "the hook denies it: web stays",
                "patched differs (- expected, + now):",
                "converted[0] differs (- expected, + now):",
            ],
        ),
    ],
)
def test_cases_expect_answers(
    modules: module.Modules, tmp_path: pathlib.Path, replaced: dict[str, str], said: list[str]
) -> None:
    text = CASES
    for word, value in replaced.items():
        text = text.replace(word, value)
    (tmp_path / "asked.yaml").write_text(text)
    found = []
    for case in case_file.read(tmp_path / "asked.yaml"):
        try:
            case_run.run(case, modules, modules("web"), snapshots.Snapshot(tmp_path, "x", update=False))
        except case_run.CaseFailedError as failed:
            found.append(str(failed).splitlines()[0])

    assert found == said
