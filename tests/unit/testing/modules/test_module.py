"""Modules under test: values as in the operator, real runs of hooks over given objects, verdicts."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from addon_operator.kernel import errors
from addon_operator.testing import snapshots
from addon_operator.testing.cases import case_file, case_run
from addon_operator.testing.modules import hook_runs, manifests, module, places, runtime

HOOK = """#!/bin/bash
if [[ "$1" == --config ]]; then cat <<'EOF'
configVersion: v1
beforeHelm: 1
schedule: [{name: tick, crontab: "* * * * *", includeSnapshotsFrom: [nodes]}]
kubernetes:
- name: nodes
  kind: Node
  labelSelector: {matchLabels: {role: web}}
  jqFilter: .metadata.name
  keepFullObjectsInMemory: false
- name: maps
  apiVersion: v1
  kind: ConfigMap
  executeHookOnEvent: [Added]
  namespace: {nameSelector: {matchNames: [default]}}
EOF
exit; fi
cat "$BINDING_CONTEXT_PATH"
BODY
"""
WRITES = """
echo '[{"op": "add", "path": "/web/internal", "value": 7}]' > "$VALUES_JSON_PATCH_PATH"
echo '[{"op": "add", "path": "/web/id", "value": "x"}]' > "$CONFIG_VALUES_JSON_PATCH_PATH"
echo '{"name": "runs", "add": 1, "labels": {}}' > "$METRICS_PATH"
echo '{"operation": "MergePatch", "kind": "Node", "name": "one", "mergePatch": {"spec": {"x": 1}}}' \\
  > "$KUBERNETES_PATCH_PATH"
"""
SCHEMA = (
    "type: object\nadditionalProperties: false\nproperties: {size: {type: integer}, id: {type: string}}\n"
)
ONE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one", "labels": {"role": "web"}}}
TWO = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "two"}}


@pytest.fixture(scope="module")
def running() -> Iterator[runtime.Runtime]:
    with runtime.Runtime(
        {"PATH": "/usr/local/bin:/usr/bin:/bin", "KUBECONFIG": "/of/a/real/cluster"}
    ) as made:
        yield made


def executable(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def web(running: runtime.Runtime, tmp_path: pathlib.Path) -> module.Module:
    """A module with a hook that writes everything, and one beside it that needs it."""
    own, other = tmp_path / "modules" / "010-web", tmp_path / "modules" / "020-guard"
    executable(own / "hooks" / "all.sh", HOOK.replace("BODY", WRITES))
    executable(own / "hooks" / "fail.sh", HOOK.replace("BODY", "echo dreadful >&2\nexit 3"))
    (own / "openapi").mkdir()
    (own / "openapi" / "config-values.yaml").write_text(SCHEMA)
    (own / "values.yaml").write_text("web: {size: 1}\n")
    executable(
        other / "enabled",
        '#!/bin/bash\ngrep -q \'"web"\' <(grep -o \'enabledModules":[^]]*\' "$VALUES_PATH") && echo true '
        '> "$MODULE_ENABLED_RESULT" || echo false > "$MODULE_ENABLED_RESULT"\n',
    )
    (tmp_path / "modules" / "values.yaml").write_text("webEnabled: true\nguardEnabled: true\n")
    return module.Modules(running, places.of_module(own))("010-web")


def contexts(run: hook_runs.HookRun) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run.log)
    return found


def test_values_are_files_and_an_edit(web: module.Module) -> None:
    assert web.values()["web"] == {"size": 1}
    assert web.values(web={"size": 2}, global_={"zone": "a"}) == {"global": {"zone": "a"}, "web": {"size": 2}}


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"web": {"size": "big"}}, r"web\.size"),
        ({"web": {"sise": 1}}, "sise"),
        ({"wep": {"size": 1}}, "did you mean 'web'"),
        ({"webEnabled": "maybe"}, "a switch must be"),
    ],
)
def test_an_edit_that_the_operator_refuses_is_an_error(
    web: module.Module, edits: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.AddonOperatorError, match=said):
        web.values(edits)


def test_a_binding_sees_the_objects_that_it_selects_filtered_by_its_jq(web: module.Module) -> None:
    run = web.hook("all.sh").run(binding="nodes", objects=[ONE, TWO])

    assert contexts(run)[0]["objects"] == [{"filterResult": "one"}]


def test_a_schedule_sees_the_snapshots_that_it_asks_for(web: module.Module) -> None:
    run = web.hook("all.sh").run(binding="tick", objects=[ONE, TWO])

    assert contexts(run) == [
        {"binding": "tick", "type": "Schedule", "snapshots": {"nodes": [{"filterResult": "one"}]}}
    ]


def test_events_happen_to_the_objects_before_the_run(web: module.Module) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    run = web.hook("all.sh").run(objects=[ONE], binding="maps", events=[{"type": "Added", "object": made}])

    assert (contexts(run)[0]["watchEvent"], contexts(run)[0]["object"]["metadata"]["name"]) == (
        "Added",
        "new",
    )
    assert run.objects.names == ["Node one", "ConfigMap new"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"type": "Deleted", "object": {**ONE, "kind": "ConfigMap"}}, "does not run for Deleted events"),
        (
            {
                "type": "Added",
                "object": {**ONE, "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "b"}},
            },
            "does not see ConfigMap x: it selects ConfigMap of v1 in namespace default",
        ),
        ({"type": "Add", "object": ONE}, "did you mean 'Added'"),
    ],
)
def test_an_event_that_the_hook_would_not_get_is_an_error(
    web: module.Module, event: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=said):
        web.hook("all.sh").run(binding="maps", events=[event])


def test_everything_that_a_hook_writes_is_in_the_result(web: module.Module) -> None:
    given = web.values(web={"size": 4})
    run = web.hook("all.sh").run(binding="beforeHelm", objects=[ONE], values=given)

    assert run.values["web"] == {"size": 4, "id": "x", "internal": 7}
    assert run.config_values["web"] == {"size": 4, "id": "x"}
    assert run.objects.one("Node", "one")["spec"] == {"x": 1}
    assert [each["operation"] for each in run.patches] == ["MergePatch"]
    assert [each["name"] for each in run.metrics] == ["runs"]
    assert run.exit_code == 0
    assert given["web"] == {"size": 4}


def test_a_hook_that_fails_fails_the_test_with_what_it_printed(web: module.Module) -> None:
    with pytest.raises(hook_runs.HookFailedError, match=r"(?s)failed with exit code 3.*dreadful"):
        web.hook("fail.sh").run(binding="beforeHelm")


def test_a_failure_that_is_expected_is_a_result(web: module.Module) -> None:
    run = web.hook("fail.sh").run(binding="beforeHelm", check=False)

    assert (run.exit_code, "dreadful" in run.log) == (3, True)


def test_an_output_that_the_operator_refuses_is_a_failure(web: module.Module) -> None:
    # The Node is not given, so there is nothing to patch.
    run = web.hook("all.sh").run(binding="beforeHelm", objects=[TWO], check=False)

    assert 'nodes "one" not found' in run.error
    assert "internal" not in run.values["web"]


@pytest.mark.parametrize(
    ("hook", "binding", "said"),
    [
        ("al.sh", None, "did you mean 'all.sh'"),
        ("all.sh", None, "has several bindings.*beforeHelm, tick, nodes, maps"),
        ("all.sh", "node", "did you mean 'nodes'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    web: module.Module, hook: str, binding: str | None, said: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=said):
        web.hook(hook).run(binding=binding)


def test_a_hook_never_reaches_a_real_cluster(web: module.Module, running: runtime.Runtime) -> None:
    executable(web.path / "hooks" / "env.sh", HOOK.replace("BODY", 'echo "at $KUBECONFIG"'))

    assert f"at {running.workspace}" in web.hook("env.sh").run(binding="tick").log


def test_a_module_is_enabled_as_the_operator_would_decide(
    web: module.Module, running: runtime.Runtime
) -> None:
    guard = module.Modules(running, places.of_module(web.path))("guard")

    assert guard.enabled()
    assert not guard.enabled({"webEnabled": False})
    assert not guard.enabled({"guardEnabled": False})


def test_one_object_is_found_or_the_candidates_are_told() -> None:
    found = manifests.Manifests([ONE, TWO])

    assert found.one("Node", "one") is ONE
    with pytest.raises(manifests.NoSuchObjectError, match=r"did you mean Node one.*: Node one, Node two"):
        found.one("Node", "onne")
    with pytest.raises(manifests.NoSuchObjectError, match="2 objects are Node: Node one, Node two"):
        found.one("Node")


def test_a_chart_with_tests_of_its_own_is_not_taken_for_a_module(tmp_path: pathlib.Path) -> None:
    chart, numbered = tmp_path / "redis", tmp_path / "010-redis"
    for path in (chart, numbered):
        (path / "templates").mkdir(parents=True)
        (path / "Chart.yaml").write_text("name: redis\n")

    assert not places.is_module(chart)
    assert places.is_module(numbered)


def test_a_version_of_kubernetes_that_is_none_is_an_error(
    web: module.Module, running: runtime.Runtime
) -> None:
    modules = module.Modules(running, places.of_module(web.path))

    with pytest.raises(errors.ConfigurationError, match=r"'latest' is not the version.*such as v1\.34\.0"):
        modules.kubernetes = "latest"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"upgrade": {"web": {}}}, "upgrade must be True or False"),
        ({"objects": ONE}, "objects must be a list of objects"),
        ({"given": ["web"]}, "values must be a mapping"),
    ],
)
def test_an_argument_of_another_type_is_an_error(
    web: module.Module, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=said):
        web.render(**arguments)


def test_what_hooks_set_is_written_without_the_key_of_the_section(web: module.Module) -> None:
    with pytest.raises(errors.ConfigurationError, match="section 'web' already; write it without that key"):
        web.values().with_section({"web": {"size": 2}})


def test_values_beside_their_section_are_an_error_that_says_where_they_stand(web: module.Module) -> None:
    with pytest.raises(
        errors.ConfigurationError, match="below the key of their module: that of web is 'web'"
    ):
        web.values(size=2)


def verdict(web: module.Module, running: runtime.Runtime, directory: pathlib.Path, expected: str) -> str:
    """What a case says that expects this of a run of the hook over one node."""
    objects = "objects: [{apiVersion: v1, kind: Node, metadata: {name: one}}]"
    hook = f"hook: {{name: all.sh, binding: tick}}\n  {objects}"
    (directory / "cases.yaml").write_text(f"- name: x\n  {hook}\n  expect: {{hook: {{{expected}}}}}\n")
    (case,) = case_file.read(directory / "cases.yaml")
    modules = module.Modules(running, places.of_module(web.path))
    try:
        case_run.run(case, modules, modules("web"), snapshots.Snapshot(directory, "x", update=False))
    except case_run.CaseFailedError as failed:
        return str(failed)
    return "nothing fails"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Ingres", "Ingres is not a kind that is known; did you mean 'Ingress'"),
        ("ServiceMonitor", "nothing fails"),
    ],
)
def test_a_misspelt_kind_is_not_taken_for_one_that_is_absent(
    web: module.Module, running: runtime.Runtime, tmp_path: pathlib.Path, kind: str, said: str
) -> None:
    assert said in verdict(web, running, tmp_path, f"absent: [{{kind: {kind}}}]")


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("metrics: [{name: runs, add: 1}]", "nothing fails"),
        ("metrics: [{name: runs, add: 2}]", "no metric is {'name': 'runs', 'add': 2}; the hook wrote: [{"),
        ("objects: [{kind: Node, name: one, spec: {x: 1}}]", "nothing fails"),
        ("objects: [{kind: Node, name: one, spec: {x: 2}}]", "Node one differs (- expected, + now):"),
        ("count: {Node: 1, Pod: 0}", "nothing fails"),
        ("count: {Node: 2}", "count: 2 of the kind Node are expected, but there are 1: Node one"),
    ],
)
def test_what_a_hook_writes_is_compared_with_what_its_case_expects(
    web: module.Module, running: runtime.Runtime, tmp_path: pathlib.Path, expected: str, said: str
) -> None:
    assert said in verdict(web, running, tmp_path, expected)


def test_global_hooks_are_tested_without_modules(tmp_path: pathlib.Path, running: runtime.Runtime) -> None:
    patch = '[{"op": "add", "path": "/global/id", "value": "y"}]'
    body = f"""cat "$VALUES_PATH"; echo '{patch}' > "$VALUES_JSON_PATCH_PATH\""""
    hooks = tmp_path / "global-hooks"
    executable(hooks / "hooks" / "id.sh", HOOK.replace("beforeHelm", "beforeAll").replace("BODY", body))
    tested = module.GlobalHooks(module.Modules(running, places.of_global_hooks(hooks)))

    run = tested.hook("id.sh").run(binding="beforeAll", values={"global": {"zone": "a"}})

    assert '{"global":{"zone":"a"}}' in run.log
    assert run.values == {"global": {"zone": "a", "id": "y"}}
    with pytest.raises(errors.ConfigurationError, match="webb"):
        tested.values(webb={})
