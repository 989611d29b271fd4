"""Hook configurations: every field, every mistake."""

import itertools
import json

import pytest

from addon_operator.hook_contract.configuration import bindings, hook_config
from addon_operator.hook_contract.configuration.bindings import (
    FieldRequirement,
    LabelOperator,
    LabelRequirement,
    WatchEvent,
)
from addon_operator.hook_contract.configuration.hook_config import HookKind, LifecycleBinding
from addon_operator.kernel.json_types import JsonObject
from tests.support import rows

SOURCE = "hook hooks/x.sh"
GLOBAL_BINDINGS = ["onStartup", "beforeAll", "afterAll"]
MODULE_BINDINGS = ["onStartup", "beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm"]


def parse(document: JsonObject | str, kind: HookKind = HookKind.MODULE) -> hook_config.HookConfig:
    return hook_config.parse(document if isinstance(document, str) else json.dumps(document), kind, SOURCE)


def parse_v1(kind: HookKind = HookKind.MODULE, /, **keys: object) -> hook_config.HookConfig:
    return hook_config.parse(json.dumps({"configVersion": "v1", **keys}), kind, SOURCE)


def schedule(**keys: object) -> bindings.ScheduleBinding:
    return parse_v1(schedule=[{"crontab": "@hourly", **keys}]).schedules[0]


def kubernetes(**keys: object) -> bindings.KubernetesBinding:
    return parse_v1(kubernetes=[{"kind": "Pod", **keys}]).kubernetes[0]


def mistakes(document: JsonObject | str, kind: HookKind = HookKind.MODULE) -> list[str]:
    with pytest.raises(hook_config.HookConfigError) as caught:
        parse(document, kind)
    assert str(caught.value) == f"{SOURCE}: invalid configuration: " + "; ".join(caught.value.violations)
    assert "\n" not in str(caught.value)
    return list(caught.value.violations)


def mistake_v1(kind: HookKind = HookKind.MODULE, /, **keys: object) -> str:
    (mistake,) = mistakes(json.dumps({"configVersion": "v1", **keys}), kind)
    return mistake


def mistake_in_kubernetes(**keys: object) -> str:
    return mistake_v1(kubernetes=[{"kind": "Pod", **keys}])


# Lifecycle bindings


@rows.each(
    ("kind", "name"),
    [
        *itertools.product([HookKind.GLOBAL], GLOBAL_BINDINGS),
        *itertools.product([HookKind.MODULE], MODULE_BINDINGS),
    ],
)
def test_a_hook_has_an_order_for_each_binding_of_its_kind(kind: HookKind, name: str) -> None:
    read = parse_v1(kind, **{name: 15})
    assert {binding: read.order(binding) for binding in LifecycleBinding if read.order(binding)} == {name: 15}


@rows.each("order", [0, -5, 10**12, 10.0])
def test_an_order_is_any_integer(order: float) -> None:
    read = parse_v1(onStartup=order)
    assert read.orders == {LifecycleBinding.ON_STARTUP: order}
    assert isinstance(read.orders[LifecycleBinding.ON_STARTUP], int)


def test_yaml_is_read_as_well() -> None:
    assert parse("configVersion: v1\nbeforeHelm: 10\n") == hook_config.HookConfig(
        orders={LifecycleBinding.BEFORE_HELM: 10}
    )


@rows.each(
    ("kind", "name", "owner"),
    [
        *((HookKind.MODULE, name, "global") for name in GLOBAL_BINDINGS[1:]),
        *((HookKind.GLOBAL, name, "module") for name in MODULE_BINDINGS[1:]),
    ],
)
def test_a_binding_of_the_other_kind_is_refused_with_the_reason(
    kind: HookKind, name: str, owner: str
) -> None:
    message = f"the key '{name}' is not known here; only {owner} hooks have this binding"
    assert mistake_v1(kind, **{name: 1}).startswith(message)


@rows.each("order", ["10", 1.5, True, None, [1]], ids=repr)
def test_an_order_that_is_not_an_integer_is_refused(order: object) -> None:
    assert mistake_v1(onStartup=order) == f"onStartup: {json.dumps(order)} is not an integer"


# Settings


def test_settings_are_read_in_seconds() -> None:
    read = parse_v1(
        onStartup=1,
        settings={"executionMinInterval": "1m30s", "executionBurst": 3, "executionTimeout": "1h"},
    )
    assert read.settings == hook_config.HookSettings(90.0, 3, 3600.0)


def test_the_documented_name_of_the_interval_is_an_alias() -> None:
    assert parse_v1(onStartup=1, settings={"executionMinPeriod": "5s"}).settings.execution_min_interval == 5


def test_every_setting_is_optional() -> None:
    assert parse_v1(onStartup=1, settings={"executionBurst": 1}).settings == hook_config.HookSettings(
        execution_burst=1
    )
    for unset in ({}, {"executionBurst": 0}):
        assert parse_v1(onStartup=1, settings=unset).settings == hook_config.HookSettings()


@rows.each(
    ("settings", "message"),
    [
        ({"executionMinInterval": "5"}, "settings.executionMinInterval: invalid duration '5'"),
        (
            {"executionMinInterval": 5},
            "settings.executionMinInterval: 5 is not a text; write a time with its unit",
        ),
        ({"executionTimeout": "0s"}, "settings.executionTimeout: '0s' is not longer than 0"),
        ({"executionBurst": -1}, "settings.executionBurst: -1 is less than the smallest allowed, 0"),
        ({"executionBurst": "1"}, 'settings.executionBurst: "1" is not an integer'),
        ({"executionMinTime": "1s"}, "settings: the key 'executionMinTime' is not known here; did you mean"),
        ({"executionMinInterval": "1s", "executionMinPeriod": "1s"}, "settings: executionMinInterval and"),
    ],
)
def test_a_wrong_setting_is_refused(settings: JsonObject, message: str) -> None:
    assert mistake_v1(onStartup=1, settings=settings).startswith(message)


# schedule


def test_a_schedule_needs_only_a_crontab() -> None:
    read = schedule()
    assert (read.name, read.queue, read.group, read.allow_failure) == ("schedule", "main", None, False)
    assert (read.crontab.text, read.crontab.timezone) == ("@hourly", "UTC")


def test_all_fields_of_a_schedule_are_read() -> None:
    pods = {"name": "pods", "kind": "Pod"}
    item = {
        "name": "nightly", "crontab": "0 0 * * *", "timezone": "Europe/Berlin", "allowFailure": True,
        "includeSnapshotsFrom": ["pods"], "queue": "slow", "group": "g",
    }  # fmt: skip
    read = parse_v1(schedule=[item], kubernetes=[pods]).schedules[0]
    assert (read.name, read.queue, read.group, read.allow_failure) == ("nightly", "slow", "g", True)
    assert (read.crontab.timezone, read.include_snapshots_from) == ("Europe/Berlin", ("pods",))


@rows.each("empty", ["name", "queue", "group"])
def test_an_empty_text_means_the_default(empty: str) -> None:
    assert schedule(**{empty: ""}) == schedule()
    assert kubernetes(**{empty: ""}) == kubernetes()


WRONG_SCHEDULES: list[tuple[object, str]] = [
    ({}, ": the key 'crontab' is missing"),
    ({"crontab": "* * *"}, ".crontab: '* * *' has 3 fields"),
    ({"crontab": "0 0 31 2 *"}, ".crontab: '0 0 31 2 *' names a time that never comes"),
    ({"crontab": "@hourly", "timezone": "Mars"}, ".timezone: 'Mars' is not a time zone"),
    ({"crontab": "TZ=UTC @hourly", "timezone": "CET"}, ": the crontab names the time zone"),
    ({"crontab": "@hourly", "cronTab": "x"}, ": the key 'cronTab' is not known here; did you"),
    ({"crontab": "@hourly", "allowFailure": "yes"}, '.allowFailure: "yes" is not true or false'),
    ({"crontab": "@hourly", "includeSnapshotsFrom": ["x"]},
     ".includeSnapshotsFrom[0]: no kubernetes binding has the name 'x'; the hook has none"),
    ({"crontab": "@hourly", "includeSnapshotsFrom": "x"},
     '.includeSnapshotsFrom: "x" is not a list'),
    ({"crontab": "@hourly", "includeSnapshotsFrom": []},
     ".includeSnapshotsFrom: it needs at least 1 item"),
    ("@hourly", ': "@hourly" is not a mapping'),
]  # fmt: skip


def test_a_wrong_schedule_is_refused() -> None:
    told = [(item, message, mistake_v1(schedule=[item])) for item, message in WRONG_SCHEDULES]
    assert [row for row in told if not row[2].startswith(f"schedule[0]{row[1]}")] == []


# kubernetes


def test_a_kubernetes_binding_needs_only_a_kind() -> None:
    assert kubernetes() == kubernetes(apiVersion="") == bindings.KubernetesBinding("Pod")
    assert kubernetes().execute_on_event == set(WatchEvent)


def test_all_fields_of_a_kubernetes_binding_are_read() -> None:
    read = kubernetes(
        apiVersion="apps/v1",
        kind="Deployment",
        name="deployments",
        queue="apps",
        group="g",
        allowFailure=True,
        includeSnapshotsFrom=["deployments"],
        executeHookOnEvent=["Added", "Deleted"],
        executeHookOnSynchronization=False,
        waitForSynchronization=False,
        keepFullObjectsInMemory=False,
        keepOldObject=True,
        resynchronizationPeriod="10m",
        nameSelector={"matchNames": ["a", "b", "a"]},
        labelSelector={
            "matchLabels": {"z": "1", "app.kubernetes.io/name": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["x", "y"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        },
        fieldSelector={
            "matchExpressions": [
                {"field": "status.phase", "operator": "Equals", "value": "Running"},
                {"field": "spec.x", "operator": "!=", "value": ""},
            ]
        },
        namespace={"nameSelector": {"matchNames": ["default"]}, "labelSelector": {"matchLabels": {"a": "b"}}},
        jqFilter=".metadata.labels",
    )
    assert read == bindings.KubernetesBinding(
        kind="Deployment",
        api_version="apps/v1",
        name="deployments",
        queue="apps",
        group="g",
        allow_failure=True,
        include_snapshots_from=("deployments",),
        execute_on_event=frozenset({WatchEvent.ADDED, WatchEvent.DELETED}),
        execute_on_synchronization=False,
        wait_for_synchronization=False,
        keep_full_objects=False,
        keep_old_object=True,
        resynchronization_period=600.0,
        names=("a", "b"),
        labels=bindings.LabelSelector(
            (("app.kubernetes.io/name", "web"), ("z", "1")),
            (
                LabelRequirement("tier", LabelOperator.IN, ("x", "y")),
                LabelRequirement("old", LabelOperator.DOES_NOT_EXIST),
            ),
        ),
        fields=(
            FieldRequirement("status.phase", "Running"),
            FieldRequirement("spec.x", "", is_equal=False),
        ),
        namespaces=bindings.NamespaceSelector(("default",), bindings.LabelSelector((("a", "b"),))),
        jq_filter=".metadata.labels",
    )


def test_no_event_means_that_only_the_snapshot_is_kept() -> None:
    assert kubernetes(executeHookOnEvent=[]).execute_on_event == set()


def test_the_old_name_of_the_events_is_read_with_a_warning() -> None:
    read = parse_v1(kubernetes=[{"kind": "Pod", "watchEvent": ["Added"]}])
    assert read.kubernetes[0].execute_on_event == {WatchEvent.ADDED}
    assert read.warnings == (f"{SOURCE}: kubernetes[0]: watchEvent is deprecated; write executeHookOnEvent",)


def test_the_new_name_of_the_events_wins() -> None:
    assert kubernetes(watchEvent=["Added"], executeHookOnEvent=["Deleted"]).execute_on_event == {"Deleted"}


def test_not_waiting_for_synchronization_counts_only_outside_main() -> None:
    assert kubernetes(waitForSynchronization=False).wait_for_synchronization
    assert kubernetes(waitForSynchronization=False, queue="main").wait_for_synchronization
    assert not kubernetes(waitForSynchronization=False, queue="x").wait_for_synchronization


@rows.each("operator", ["=", "==", "Equals"])
def test_equality_of_a_field_has_three_spellings(operator: str) -> None:
    selector = {"matchExpressions": [{"field": "a", "operator": operator, "value": "b"}]}
    assert kubernetes(fieldSelector=selector).fields == (FieldRequirement("a", "b"),)


def test_an_equals_sign_may_stand_without_quotes_in_yaml() -> None:
    text = """
configVersion: v1
kubernetes:
- kind: Pod
  fieldSelector: {matchExpressions: [{field: a, operator: =, value: b}]}
"""
    assert parse(text).kubernetes[0].fields == (FieldRequirement("a", "b"),)


def test_a_group_shares_the_snapshots_of_its_kubernetes_bindings() -> None:
    read = parse_v1(
        schedule=[{"crontab": "@hourly", "group": "g"}],
        kubernetes=[
            {"kind": "Pod", "name": "pods", "group": "g"},
            {"kind": "Node", "name": "nodes", "group": "g", "includeSnapshotsFrom": ["others", "pods"]},
            {"kind": "Secret", "name": "others"},
        ],
    )
    assert read.schedules[0].include_snapshots_from == ("pods", "nodes")
    assert [item.include_snapshots_from for item in read.kubernetes] == [
        ("pods", "nodes"),
        ("others", "pods", "nodes"),
        (),
    ]


WRONG_BINDINGS: list[tuple[JsonObject, str]] = [
    ({"kind": ""}, ".kind: it must not be empty"),
    ({"apiversion": "v1"}, ": the key 'apiversion' is not known here; did you mean 'apiVersion'?"),
    ({"namespaceSelector": {}}, ": the key 'namespaceSelector' is not known here; write 'namespace'"),
    ({"qqq": 1}, ": the key 'qqq' is not known here; known are allowFailure, apiVersion, "),
    ({"apiVersion": "a/b/c"}, ".apiVersion: 'a/b/c' is not an apiVersion; write one such as v1"),
    ({"executeHookOnEvent": ["Update"]}, '.executeHookOnEvent[0]: "Update" is not known here'),
    ({"executeHookOnEvent": ["added"]}, '.executeHookOnEvent[0]: "added" is not known here'),
    ({"executeHookOnEvent": "Added"}, '.executeHookOnEvent: "Added" is not a list'),
    ({"executeHookOnSynchronization": "false"}, ".executeHookOnSynchronization: "),
    ({"resynchronizationPeriod": "x"}, ".resynchronizationPeriod: invalid duration 'x'"),
    ({"nameSelector": ["a"]}, '.nameSelector: ["a"] is not a mapping'),
    ({"nameSelector": {}}, ".nameSelector: the key 'matchNames' is missing"),
    ({"labelSelector": {}}, ".labelSelector: it needs at least 1 key"),
    ({"labelSelector": {"matchLabels": {"a": 1}}},
     ".labelSelector.matchLabels.a: 1 is not a text; put it in quotes"),
    ({"labelSelector": {"matchLabels": {"a b": "x"}}},
     ".labelSelector.matchLabels: 'a b' is not a label name of Kubernetes"),
    ({"labelSelector": {"matchLabels": {"a": "x" * 64}}},
     f'.labelSelector.matchLabels.a: "{"x" * 59}… has 64 characters, and may have 63'),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "in", "values": ["x"]}]}},
     '.labelSelector.matchExpressions[0].operator: "in" is not known here; write one of In, '),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
     ".labelSelector.matchExpressions[0]: the key 'values' is missing"),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]}},
     ".labelSelector.matchExpressions[0].values: it needs at least 1 item"),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}},
     ".labelSelector.matchExpressions[0].values: the operators Exists and DoesNotExist take"),
    ({"fieldSelector": {"matchExpressions": [{"field": "a", "operator": "="}]}},
     ".fieldSelector.matchExpressions[0]: the key 'value' is missing"),
    ({"fieldSelector": {"matchExpressions": [{"field": "metadata.name", "operator": "=", "value": "x"}]},
      "nameSelector": {"matchNames": ["y"]}},
     ": nameSelector and a fieldSelector on metadata.name exclude each other"),
    ({"namespace": {}}, ".namespace: it needs at least 1 key"),
    ({"namespace": {"matchNames": ["x"]}}, ".namespace: the key 'matchNames' is not known here"),
    ({"jqFilter": [1]}, ".jqFilter: [1] is not a text"),
    ({"jqFilter": ".a["}, '.jqFilter: ".a[" is not a jq expression: syntax error, unexpected end of file'),
    ({"jqFilter": ".a | frist"}, '.jqFilter: ".a | frist" is not a jq expression: frist/0 is not defined'),
    ({"includeSnapshotsFrom": ["kubernete"]},
     ".includeSnapshotsFrom[0]: no kubernetes binding has the name 'kubernete'; did you mean"),
]  # fmt: skip


def test_a_wrong_kubernetes_binding_is_refused() -> None:
    told = [(keys, message, mistake_in_kubernetes(**keys)) for keys, message in WRONG_BINDINGS]
    assert [row for row in told if not row[2].startswith(f"kubernetes[0]{row[1]}")] == []


def test_an_empty_filter_is_none() -> None:
    (read,) = parse_v1(kubernetes=[{"kind": "Pod", "jqFilter": ""}]).kubernetes
    assert read.jq_filter is None


def test_snapshots_of_a_name_that_two_bindings_have_are_refused() -> None:
    twins = [{"kind": "Pod", "name": "x"}, {"kind": "Node", "name": "x"}]
    message = mistake_v1(kubernetes=twins, schedule=[{"crontab": "@hourly", "includeSnapshotsFrom": ["x"]}])
    assert message.startswith("schedule[0].includeSnapshotsFrom[0]: 2 kubernetes bindings have the name 'x'")


def test_two_bindings_of_one_name_are_a_warning() -> None:
    (warning,) = parse_v1(kubernetes=[{"kind": "Pod"}, {"kind": "Node"}]).warnings
    assert "2 bindings share the name 'kubernetes'" in warning


# The document as a whole


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    assert mistake_v1(beforeHelmm=1) == "the key 'beforeHelmm' is not known here; did you mean 'beforeHelm'?"


def test_all_mistakes_are_reported_at_once() -> None:
    found = mistakes(
        {
            "configVersion": "v1",
            "onStartup": "1",
            "shedule": [],
            "schedule": [{"crontab": "x"}, {"crontab": "@hourly", "includeSnapshotsFrom": ["pods"]}],
            "kubernetes": [{"name": "pod"}],
            "settings": {"executionBurst": -1},
        }
    )
    assert [mistake.partition(";")[0] for mistake in found] == [
        "the key 'shedule' is not known here",
        "kubernetes[0]: the key 'kind' is missing",
        'onStartup: "1" is not an integer',
        "schedule[0].crontab: 'x' has 1 field",
        "settings.executionBurst: -1 is less than the smallest allowed, 0",
        "schedule[1].includeSnapshotsFrom[0]: no kubernetes binding has the name 'pods'",
    ]


WRONG_DOCUMENTS = [
    ("", "--config printed nothing"),
    ("usage: hook.sh", "the key 'usage' is not known here; known are afterDeleteHelm, "),
    ("hello", "--config printed 'hello' in line 1, which is no part of a configuration; write messages to"),
    ("configVersion: v1\nonStartup: 1\ndone\n", "--config printed 'done' in line 3, which is no part"),
    ("x" * 100, f"--config printed '{'x' * 80}…' in line 1"),
    ("'a'", "--config printed no mapping"),
    ("[1]", "--config printed no mapping"),
    ("a: b: c", "it is neither JSON nor YAML: line 1, column 5"),
    ("configVersion: v1\nconfigVersion: v2", "line 2, column 1: the key 'configVersion' occurs twice, with"),
    ("configVersion: v2\nonStartup: 1", "configVersion 'v2' is not known; write 'configVersion: v1'"),
    ("configVersion: 1\nonStartup: 1", "configVersion 1 is not known; write 'configVersion: v1'"),
    ("configVersion: v1", "it binds the hook to nothing"),
    ("{}", "it binds the hook to nothing"),
    ("configVersion: v1\nschedule: []", "schedule: it needs at least 1 item"),
    ("configVersion: v1\nkubernetes: {}", "kubernetes: {} is not a list"),
    ("configVersion: v1\nonKubernetesEvent: []", "the key 'onKubernetesEvent' is not known here"),
]  # fmt: skip


def test_a_document_that_is_not_a_configuration_is_refused() -> None:
    told = [(text, message, mistakes(text)) for text, message in WRONG_DOCUMENTS]
    assert [row for row in told if len(row[2]) != 1 or not row[2][0].startswith(row[1])] == []


def test_a_hook_with_settings_only_is_a_warning() -> None:
    (warning,) = parse_v1(settings={}).warnings
    assert "the hook never runs" in warning


# Without configVersion


def test_a_configuration_without_version_is_read_with_a_warning() -> None:
    read = parse({"onStartup": 5, "beforeHelm": 6})
    assert read.version == "v0"
    assert read.orders == {LifecycleBinding.ON_STARTUP: 5, LifecycleBinding.BEFORE_HELM: 6}
    assert read.warnings == (
        f"{SOURCE}: the configuration has no configVersion and is read as v0; write 'configVersion: v1'",
    )


def test_a_legacy_schedule_is_read() -> None:
    (read,) = parse({"schedule": [{"name": "x", "crontab": "*/5 * * * * *", "allowFailure": True}]}).schedules
    assert (read.name, read.crontab.fields, read.allow_failure) == ("x", "*/5 * * * * *", True)


def test_a_legacy_kubernetes_binding_never_gets_a_synchronization() -> None:
    (read,) = parse({"onKubernetesEvent": [{"kind": "Pod"}]}).kubernetes
    assert read == bindings.KubernetesBinding(
        "Pod", name="onKubernetesEvent", execute_on_synchronization=False, wait_for_synchronization=False
    )


def test_all_fields_of_a_legacy_kubernetes_binding_are_read() -> None:
    item: JsonObject = {
        "name": "x", "kind": "Pod", "event": ["add", "delete"], "objectName": "p", "jqFilter": ".spec",
        "selector": {"matchLabels": {"a": "b"}}, "allowFailure": True,
        "namespaceSelector": {"matchNames": ["n"]}, "disableDebug": True,
    }  # fmt: skip
    (read,) = parse({"onKubernetesEvent": [item]}).kubernetes
    assert (read.name, read.names, read.jq_filter, read.allow_failure) == ("x", ("p",), ".spec", True)
    assert read.execute_on_event == {WatchEvent.ADDED, WatchEvent.DELETED}
    assert read.labels == bindings.LabelSelector((("a", "b"),))
    assert read.namespaces == bindings.NamespaceSelector(("n",))


def test_any_namespace_is_the_whole_cluster_in_a_legacy_binding() -> None:
    item: JsonObject = {"kind": "Pod", "namespaceSelector": {"any": True, "matchNames": ["n"]}}
    assert parse({"onKubernetesEvent": [item]}).kubernetes[0].namespaces is None


@rows.each(
    ("document", "message"),
    [
        ({"kubernetes": []}, "the key 'kubernetes' is not known here; this needs 'configVersion: v1'"),
        ({"configversion": "v1"}, "the key 'configversion' is not known here; did you mean 'configVersion'?"),
        ({"onKubernetesEvent": [{"kind": "Pod", "event": ["Added"]}]}, "onKubernetesEvent[0].event[0]: "),
        ({"onKubernetesEvent": [{}]}, "onKubernetesEvent[0]: the key 'kind' is missing"),
        ({"schedule": [{"crontab": "x"}]}, "schedule[0].crontab: 'x' has 1 field"),
        ({"onKubernetesEvent": [{"kind": "Pod", "jqFilter": "1 +"}]}, 'onKubernetesEvent[0].jqFilter: "1 +"'),
        ({"beforeAll": 1}, "the key 'beforeAll' is not known here; only global hooks have this binding"),
    ],
)
def test_a_wrong_legacy_configuration_is_refused(document: JsonObject, message: str) -> None:
    assert mistakes(document)[0].startswith(message)


@rows.each(
    ("key", "version"),
    [("kubernetes", {"configVersion": "v1"}), ("schedule", {}), ("onKubernetesEvent", {})],
)
def test_more_bindings_than_anybody_needs_are_refused(key: str, version: JsonObject) -> None:
    binding = {"kind": "Pod", "crontab": "@hourly", "group": "all"}
    with pytest.raises(hook_config.HookConfigError, match=f"{key}: it has 501 bindings, and may have 500"):
        hook_config.parse(json.dumps({**version, key: [binding] * 501}), hook_config.HookKind.MODULE, "hook")


def test_a_message_names_the_first_mistakes_and_cuts_them() -> None:
    text = json.dumps({"configVersion": "v1", **{"k" * 5000 + str(number): 1 for number in range(200)}})
    with pytest.raises(hook_config.HookConfigError, match="; and 150 more") as caught:
        hook_config.parse(text, hook_config.HookKind.MODULE, "hook")
    assert len(str(caught.value)) < 60_000
    assert len(caught.value.violations) == 200


def test_an_old_object_has_to_be_kept_somehow_and_means_nothing_in_a_group() -> None:
    assert kubernetes(keepOldObject=True, keepFullObjectsInMemory=False, jqFilter=".a").keep_old_object
    wanted = {"kind": "Pod", "keepOldObject": True}
    text = json.dumps({"configVersion": "v1", "kubernetes": [{**wanted, "keepFullObjectsInMemory": False}]})
    with pytest.raises(hook_config.HookConfigError, match="keepOldObject has nothing to show"):
        hook_config.parse(text, hook_config.HookKind.MODULE, "x")
    grouped = json.dumps({"configVersion": "v1", "kubernetes": [{**wanted, "group": "g"}]})
    (warning,) = hook_config.parse(grouped, hook_config.HookKind.MODULE, "x").warnings
    assert warning.startswith("x: kubernetes[0]: keepOldObject has no effect in a group")
