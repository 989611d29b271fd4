"""What programs with many hooks print of themselves, in the words of the Go SDK."""

import json
import re
from typing import Any

import pytest

from addon_operator.hook_contract.configuration import (
    batch_config,
    binding_types,
    bindings,
    hook_config,
)
from tests.support import rows

SOURCE = "hook batch"
MODULE = hook_config.HookKind.MODULE


def hook(name: str = "main", **members: object) -> dict[str, Any]:
    return {"configVersion": "v1", "metadata": {"name": name, "path": "x/hooks/"}, **members}


def parse(document: object, kind: hook_config.HookKind = MODULE) -> batch_config.BatchConfig:
    return batch_config.parse(json.dumps(document), kind, SOURCE)


def of_one(**members: Any) -> hook_config.HookConfig:  # noqa: ANN401 - what a hook may have
    (nested,) = parse({"version": "v1", "hooks": [hook(**members)]}).hooks
    return nested.config


def refused(document: object) -> str:
    with pytest.raises(hook_config.HookConfigError) as caught:
        parse(document)
    text = str(caught.value)
    assert text.startswith(f"{SOURCE}: invalid configuration: ")
    assert "\n" not in text
    return text


@rows.each(
    ("text", "is_list"),
    [
        ("Found 2 items:\n0 - a\n1 - b\n", True),
        ("Found 0 items:", True),
        ("Found 12 items:\r\n", True),
        ("Found items:\n", False),
        ("usage: hook [list]\nFound 2 items:\n", False),
        ("", False),
    ],
)
def test_a_program_is_known_by_the_first_line_of_its_list(text: str, is_list: bool) -> None:
    assert batch_config.is_list(text) is is_list


def test_both_forms_of_the_configuration_are_read_and_the_index_is_the_number() -> None:
    hooks = [hook("a", beforeHelm=1), hook("b/c", onStartup=0)]
    older, newer = parse(hooks), parse({"version": "v1", "hooks": hooks})
    assert older == newer
    assert [(each.number, each.name) for each in newer.hooks] == [(0, "a"), (1, "b/c")]
    assert newer.hooks[1].config.order(bindings.LifecycleBinding.ON_STARTUP) == 0
    assert (newer.has_readiness, newer.has_settings_check) == (False, False)
    whole = parse({"version": "v1", "hooks": [], "readiness": hook("readiness"), "has_settings_check": True})
    assert (whole.hooks, whole.has_readiness, whole.has_settings_check) == ((), True, True)


def test_hooks_may_share_a_name_as_those_of_one_file_do() -> None:
    assert [each.number for each in parse([hook("a", onStartup=1), hook("a", onStartup=2)]).hooks] == [0, 1]


def test_bindings_are_in_one_group_and_keep_no_full_objects_unless_said() -> None:
    read = of_one(
        schedule=[{"crontab": "*/5 * * * *", "queue": "slow"}],
        kubernetes=[
            {"name": "pods", "apiVersion": "v1", "kind": "Pod", "jqFilter": ".metadata.name"},
            {"name": "nodes", "kind": "Node", "keepFullObjectsInMemory": True, "executeHookOnEvent": False},
        ],
        allowFailure=True,
    )
    (schedule,), (pods, nodes) = read.schedules, read.kubernetes
    assert {each.group for each in (schedule, pods, nodes)} == {"main"}
    assert {each.include_snapshots_from for each in (schedule, pods)} == {("pods", "nodes")}
    assert all(each.allow_failure for each in (schedule, pods, nodes))
    assert (pods.keep_full_objects, nodes.keep_full_objects) == (False, True)
    assert (pods.execute_on_event, nodes.execute_on_event) == (frozenset(bindings.WatchEvent), frozenset())
    assert pods.execute_on_synchronization
    assert pods.wait_for_synchronization
    assert schedule.queue == "slow"


def test_what_go_writes_for_what_is_not_set_selects_everything() -> None:
    binding = {
        "name": "pods",
        "kind": "Pod",
        "apiVersion": "",
        "queue": "",
        "jqFilter": "",
        "nameSelector": {"matchNames": None},
        "labelSelector": {},
        "fieldSelector": {"matchExpressions": []},
        "namespace": {"nameSelector": {"matchNames": None}, "labelSelector": None},
    }
    (read,) = of_one(kubernetes=[binding], schedule=None, settings=None).kubernetes
    assert (read.names, read.labels, read.fields, read.namespaces) == ((), None, (), None)
    assert (read.queue, read.jq_filter, read.api_version) == ("main", None, None)


def test_selectors_mean_what_they_mean_in_any_hook() -> None:
    labels = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    binding = {"kind": "Pod", "labelSelector": labels, "namespace": {"nameSelector": {"matchNames": ["x"]}}}
    (read,) = of_one(kubernetes=[binding]).kubernetes
    assert read.labels is not None
    assert read.labels.to_query() == "a=b,c"
    assert read.namespaces == bindings.NamespaceSelector(("x",))


def test_an_interval_is_in_nanoseconds_and_0_is_none() -> None:
    limited = of_one(onStartup=1, settings={"executionMinInterval": 1_500_000_000, "executionBurst": 3})
    assert limited.settings == hook_config.HookSettings(1.5, 3)
    free = of_one(onStartup=1, settings={"executionMinInterval": 0, "executionBurst": 0})
    assert free.settings == hook_config.HookSettings()
    odd = of_one(onStartup=1, logLevel="INFO", settings={"enableSchedulesOnStartup": True})
    told = "settings.enableSchedulesOnStartup has no effect: schedules begin after the first converge"
    assert odd.warnings == (f"hook batch, hooks[0] (main): {told}",)


def test_a_hook_without_bindings_is_odd_and_not_wrong() -> None:
    assert of_one().warnings == ("hook batch, hooks[0] (main): there is no binding, so the hook never runs",)


@rows.each(
    ("document", "reason"),
    [
        ({"version": "v1", "hoks": []}, "the key 'hoks' is not known here; did you mean 'hooks'"),
        ({"version": "v2", "hooks": []}, 'version: "v2" is not known here'),
        ("text", "'hook config' printed neither a mapping nor a list"),
        ([1], "hooks[0]: 1 is not a mapping"),
        ([{"beforeHelm": 1}], "hooks[0]: the key 'metadata' is missing"),
        ([hook(beforeHelmm=1)], "hooks[0] (main): the key 'beforeHelmm' is not known here; did you mean"),
        ([hook(beforeHelm=-1)], "hooks[0] (main): beforeHelm: -1 is less than the smallest allowed, 0"),
        ([hook(kubernetes=[{"name": "x"}])], "hooks[0] (main): kubernetes[0]: the key 'kind' is missing"),
        (
            [hook("ok", onStartup=1), hook("b", kubernetes=[{"kind": "Pod", "jqFilter": "("}])],
            'hooks[1] (b): kubernetes[0].jqFilter: "(" is not a jq expression',
        ),
        ([hook(schedule=[{"crontab": "nonsense"}])], "hooks[0] (main): schedule[0].crontab: "),
        ([hook(kubernetes=[{"kind": "Pod", "executeHookOnEvent": ["Added"]}])], "is not true or false"),
        ([hook()] * 501, "hooks: it has 501 hooks, and may have 500; use several programs"),
    ],
)
def test_each_mistake_is_named_with_its_place(document: object, reason: str) -> None:
    assert reason in refused(document)


OTHERS = binding_types.CURRENT[MODULE]["properties"]
KEYS = [("", key) for key in OTHERS] + [("settings", key) for key in OTHERS["settings"]["properties"]]
KEYS += [(outer, key) for outer in ("schedule", "kubernetes") for key in OTHERS[outer]["items"]["properties"]]


@rows.each(("outer", "key"), KEYS, ids=lambda key: key or "hook")
def test_a_key_that_only_other_hooks_have_is_not_taken_for_a_slip(outer: str, key: str) -> None:
    inner: dict[str, object] = {key: 7}
    fields = inner if not outer else {outer: inner if outer == "settings" else [inner]}
    try:
        parse([hook(**fields)])
    except hook_config.HookConfigError as error:
        said = str(error).partition(f"the key '{key}' is not known here; ")[2]
        assert not said.startswith("did you mean")
        assert said == "" or re.match("a program cannot have it|all bindings of a program|write '", said)


def test_what_belongs_to_a_hook_is_not_looked_for_in_the_program() -> None:
    assert "the key 'beforeHelm' is not known here; it belongs to a hook, in the list 'hooks'" in refused(
        {"version": "v1", "beforeHelm": 1}
    )


def test_all_hooks_that_are_wrong_are_named_at_once() -> None:
    text = refused([hook("a", onStart=1), hook("b", onStartup=1), hook("c", onStart=1)])
    assert "hooks[0] (a)" in text
    assert "hooks[2] (c)" in text
    assert "(b)" not in text


@rows.each(("text", "reason"), [("", "printed nothing"), ("{", "printed no JSON: ")])
def test_what_is_not_json_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(hook_config.HookConfigError, match=reason):
        batch_config.parse(text, MODULE, SOURCE)


def test_a_step_of_modules_is_wrong_in_a_global_program() -> None:
    with pytest.raises(hook_config.HookConfigError, match="only module hooks have this binding"):
        parse([hook(beforeHelm=1)], hook_config.HookKind.GLOBAL)
    assert len(parse([hook(onStartup=1)], hook_config.HookKind.GLOBAL).hooks) == 1
