"""Settings: which source wins, what is allowed, what is told about wrong names."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import pytest

from addon_operator.kernel import errors
from addon_operator.modules import windows
from addon_operator.podpreset import volume_types
from addon_operator.settings import setting_names, setting_resolution, settings, settings_loading
from tests.support import rows

NAMESPACE = {"ADDON_OPERATOR_NAMESPACE": "addons"}


def load(flags: Mapping[str, str | None] | None = None, /, **environ: str) -> settings.Settings:
    return settings_loading.load(flags or {}, NAMESPACE | environ)


def problems(flags: Mapping[str, str | None] | None = None, /, **environ: str) -> tuple[str, ...]:
    with pytest.raises(setting_resolution.SettingsError) as refused:
        load(flags, **environ)
    return refused.value.problems


WINDOWS = '[{schedule: "0 22 * * 1-5", duration: 4h, timezone: Europe/Berlin}]'


def test_windows_are_a_list_as_yaml_or_json() -> None:
    assert load().windows is None
    found = load(WINDOWS=WINDOWS).windows
    assert found == windows.parse(
        [{"schedule": "0 22 * * 1-5", "duration": "4h", "timezone": "Europe/Berlin"}]
    )
    assert load({"windows": "- {schedule: '@daily', duration: 1h}"}).windows == windows.parse(
        [{"schedule": "@daily", "duration": "1h"}]
    )
    row = settings.TABLE["windows"]
    assert row.type.plain(found) == [
        {"schedule": "0 22 * * 1-5", "duration": "4h", "timezone": "Europe/Berlin"}
    ]
    assert row.type.plain(None) == []


@rows.each(
    ("text", "told"),
    [
        (
            "[{schedule: '0 22 * * *', duration: 4h, timezone: Berlin}]",
            "[0].timezone: 'Berlin' is not a time",
        ),
        ("[{schedule: '0 0 31 2 *', duration: 4h}]", "names a time that never comes"),
        (
            "[{schedule: '@every 1h', duration: 4h}]",
            "windows[0]: schedule '@every 1h' is not bound to a clock",
        ),
        ("[{schedul: '@daily', duration: 4h}]", "did you mean 'schedule'?"),
        ("nightly", '"nightly" is not a list'),
        ("[{", "the list, line 2"),
    ],
)
def test_a_wrong_window_is_told_with_its_number(text: str, told: str) -> None:
    (problem,) = problems(WINDOWS=text)
    assert problem.startswith("WINDOWS (variable WINDOWS): ")
    assert told in problem


@rows.each(
    ("environ", "value", "origin"),
    [
        ({"SHELL_OPERATOR_LISTEN_PORT": "1"}, 1, "variable SHELL_OPERATOR_LISTEN_PORT"),
        ({"SHELL_OPERATOR_LISTEN_PORT": "1", "LISTEN_PORT": "2"}, 2, "variable LISTEN_PORT"),
        ({"LISTEN_PORT": "2", "ADDON_OPERATOR_LISTEN_PORT": "3"}, 3, "variable ADDON_OPERATOR_LISTEN_PORT"),
        ({"LISTEN_PORT": "2", "ADDON_OPERATOR_LISTEN_PORT": ""}, 2, "variable LISTEN_PORT"),
    ],
    ids=["shell-operator", "plain over shell-operator", "prefixed over plain", "empty counts as not set"],
)
def test_the_variable_of_the_highest_priority_wins(environ: dict[str, str], value: int, origin: str) -> None:
    loaded = load(**environ)
    assert (loaded.listen_port, loaded.origins["listen_port"]) == (value, origin)


def test_a_flag_wins_over_every_variable() -> None:
    loaded = load({"listen_port": "4"}, ADDON_OPERATOR_LISTEN_PORT="3")
    assert loaded.listen_port == 4
    assert loaded.origins["listen_port"] == "flag --prometheus-listen-port"


def test_an_empty_flag_is_a_value() -> None:
    assert load({"crd_filter_prefixes": "", "prometheus_metrics_prefix": ""}).crd_filter_prefixes == ()


def test_every_setting_is_read_with_and_without_the_prefix() -> None:
    names = [(row.variables, name) for row in settings.TABLE.values() for name in (row.name, *row.aliases)]
    wanted = [(known, f"{prefix}{name}") for known, name in names for prefix in ("", "ADDON_OPERATOR_")]
    assert [name for known, name in wanted if name not in known] == []


@rows.each(
    "variable",
    [
        "UNNUMBERED_MODULE_ORDER",
        "UNNUMBERED_MODULES_ORDER",
        "ADDON_OPERATOR_UNNUMBERED_MODULE_ORDER",
        "ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER",
    ],
)
def test_both_spellings_of_the_order_of_unnumbered_modules_are_understood(variable: str) -> None:
    assert load(**{variable: "77"}).unnumbered_module_order == 77


def test_hooks_dir_of_the_shell_operator_is_the_directory_of_global_hooks() -> None:
    assert load(SHELL_OPERATOR_HOOKS_DIR="/hooks").global_hooks_dir == pathlib.Path("/hooks")


READ = [
    ("MODULES_DIR", "/a:/b::/c", "modules_dirs", tuple(map(pathlib.Path, ("/a", "/b", "/c")))),
    ("HELM_TIMEOUT", "1h30m", "helm_timeout", 5400.0),
    ("HELM_MEMORY", "1.5Gi", "helm_memory", 1536 << 20),
    ("SHUTDOWN_GRACE", "0", "shutdown_grace", 0.0),
    ("HELM_IGNORE_RELEASE", "a, b,,c", "helm_ignore_release", ("a", "b", "c")),
    ("CRD_EXTRA_LABELS", "heritage=my-app,a=b", "crd_extra_labels", {"heritage": "my-app", "a": "b"}),
    ("CRD_EXTRA_LABELS", "example.io/part-of=", "crd_extra_labels", {"example.io/part-of": ""}),
    ("QUEUE_ACTIONS_METRICS", "no", "queue_actions_metrics", False),
    ("LOG_NO_TIME", "TRUE", "log_no_time", True),
    ("LOG_LEVEL", "Warning", "log_level", "warn"),
    ("HELM_DRIVER", "configmaps", "helm_driver", "configmap"),
    ("KUBE_CLIENT_QPS", "0.5", "kube_client_qps", 0.5),
    ("KUBE_SERVER", "10.0.0.1:6443/", "kube_server", "https://10.0.0.1:6443"),
    ("KUBE_SERVER", "http://localhost:8001", "kube_server", "http://localhost:8001"),
    ("KUBE_CONFIG", "/etc/kube", "kube_config", pathlib.Path("/etc/kube")),
    ("LISTEN_ADDRESS", "[::1]", "listen_address", "::1"),
    ("LISTEN_ADDRESS", "localhost", "listen_address", "localhost"),
    ("LISTEN_PORT", "0", "listen_port", 0),
    ("PROMETHEUS_METRICS_PREFIX", "dev_cluster_", "prometheus_metrics_prefix", "dev_cluster_"),
    ("ENVFROM_SOURCES", "Secrets, configmaps", "envfrom_sources", ("configmaps", "secrets")),
    ("ENVFROM_SOURCES", "none", "envfrom_sources", ()),
    ("WEBHOOK_CONFIGURATION", "addons.webhooks", "webhook_configuration", "addons.webhooks"),
    ("HEALTH_RULES", "[]", "health_rules", ()),
    ("COMMON_LABELS", "team=web,team=web", "common_labels", {"team": "web"}),
    ("COMMON_ANNOTATIONS", "a.io/b=//x/? z,c=", "common_annotations", {"a.io/b": "//x/? z", "c": ""}),
]  # fmt: skip


def test_a_text_is_read_as_its_type() -> None:
    read = [
        (variable, text, field, getattr(load(**{variable: text}), field)) for variable, text, field, _ in READ
    ]
    assert read == READ


WRONG = [
    ("NAMESPACE", "Not_A_Namespace"),
    ("NAMESPACE", "a" * 64),
    ("ENVFROM_SOURCES", "secrets,services"),
    ("ENVFROM_SOURCES", "secrets,none"),
    ("WEBHOOK_CONFIGURATION", "My_Webhooks"),
    ("PODPRESET_VOLUME_TYPES", "configMap,hostpath"),
    ("PODPRESET_VOLUME_TYPES", "configMap,all"),
    ("PODPRESET_VOLUME_TYPES", ","),
    ("CONFIG_MAP", "-x"),
    ("MODULES_DIR", ":"),
    ("UNNUMBERED_MODULE_ORDER", "one"),
    ("UNNUMBERED_MODULE_ORDER", "-1"),
    ("UNNUMBERED_MODULE_ORDER", "1.5"),
    ("MODULES_PARALLELISM", "0"),
    ("MODULES_PARALLELISM", "٤"),
    ("CONVERGE_ON_FAILURE", "stop"),
    ("HOOK_TIMEOUT", "30"),
    ("HOOK_TIMEOUT", "0"),
    ("SHUTDOWN_GRACE", "-1s"),
    ("LISTEN_PORT", "65536"),
    ("LISTEN_PORT", "tcp://10.0.0.1:80"),
    ("LISTEN_ADDRESS", "0.0.0.0:9650"),
    ("LISTEN_ADDRESS", "1.2.3"),
    ("PROMETHEUS_METRICS_PREFIX", "9-"),
    ("QUEUE_ACTIONS_METRICS", "maybe"),
    ("CRD_EXTRA_LABELS", "heritage"),
    ("CRD_EXTRA_LABELS", "a b=c"),
    ("CRD_EXTRA_LABELS", "a=b,a=c"),
    ("COMMON_LABELS", "a=b,a=c"),
    ("COMMON_LABELS", "app.kubernetes.io/managed-by=me"),
    ("COMMON_LABELS", "a=https://x"),
    ("COMMON_ANNOTATIONS", "a=b,c"),
    ("COMMON_ANNOTATIONS", "helm.sh/resource-policy=keep"),
    ("COMMON_ANNOTATIONS", "a=b\nc"),
    ("HELM_IGNORE_RELEASE", "ingress shop"),
    ("HELM_IGNORE_RELEASE", "ingress-*"),
    ("HELM_IGNORE_RELEASE", "Ingress"),
    ("KUBE_SERVER", "https://"),
    ("KUBE_SERVER", "ftp://host"),
    ("KUBE_SERVER", "host:port"),
    ("KUBE_SERVER", "https://{"),
    ("KUBE_SERVER", "10.0.0"),
    ("WEBHOOK_URL", "https://a,b:9651"),
    ("KUBE_CLIENT_QPS", "nan"),
    ("KUBE_CLIENT_QPS", "-1"),
    ("KUBE_CLIENT_BURST", "0"),
    ("HELM_HISTORY_MAX", "-1"),
    ("HELM_PURGE", "some"),
    ("HELM_DRIVER", "sql"),
    ("HELM_DRIVER", "memory"),
    ("LOG_LEVEL", "loud"),
    ("LOG_TYPE", "xml"),
]


def test_a_wrong_value_is_refused_with_name_value_and_what_is_allowed() -> None:
    told = {(name, text): problems(**{f"ADDON_OPERATOR_{name}": text}) for name, text in WRONG}
    assert {row: lines for row, lines in told.items() if not tells_of(row, lines)} == {}


def tells_of(row: tuple[str, str], lines: tuple[str, ...]) -> bool:
    variable, text = row
    words = (f"ADDON_OPERATOR_{variable}", repr(text), "give ")
    return len(lines) == 1 and all(word in lines[0] for word in words)


def test_all_wrong_settings_are_reported_at_once() -> None:
    with pytest.raises(errors.ConfigurationError) as refused:
        settings_loading.load({"listen_port": "x"}, {"LOG_TYPE": "xml"})
    lines = str(refused.value).splitlines()
    assert lines[0] == "3 settings are wrong:"
    assert [line.split()[0] for line in lines[1:]] == [
        "ADDON_OPERATOR_NAMESPACE", "ADDON_OPERATOR_LISTEN_PORT:", "LOG_TYPE:",
    ]  # fmt: skip


def test_a_missing_namespace_is_one_sentence_that_names_variable_and_flag() -> None:
    with pytest.raises(setting_resolution.SettingsError) as refused:
        settings_loading.load({}, {})
    (problem,) = refused.value.problems
    assert str(refused.value) == problem
    assert "ADDON_OPERATOR_NAMESPACE" in problem
    assert "--namespace" in problem


def test_types_of_volumes_are_the_usual_ones_those_that_are_named_or_all() -> None:
    assert load().podpreset_volume_types == (
        *("configMap", "secret", "emptyDir", "projected", "downwardAPI"),
        *("persistentVolumeClaim", "csi", "ephemeral"),
    )
    assert load(PODPRESET_VOLUME_TYPES="hostPath, nfs").podpreset_volume_types == ("hostPath", "nfs")
    assert set(load(PODPRESET_VOLUME_TYPES="all").podpreset_volume_types) == volume_types.SOURCE_NAMES


def test_a_misspelt_name_is_reported_together_with_what_is_missing_because_of_it() -> None:
    with pytest.raises(setting_resolution.SettingsError) as caught:
        settings_loading.load({}, {"ADDON_OPERATOR_NAMESPCE": "addons", "HELM_HISTORY_MAX": "x"})
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 settings are wrong:"
    assert lines[-2:] == [
        "Also set:",
        "  ADDON_OPERATOR_NAMESPCE is not a setting: did you mean ADDON_OPERATOR_NAMESPACE?",
    ]


def test_a_very_long_wrong_value_is_cut() -> None:
    (problem,) = problems(LOG_TYPE="x" * 10_000)
    assert len(problem) < 300


@rows.each(
    ("name", "hint"),
    [
        ("ADDON_OPERATOR_LISTEN_PRT", "ADDON_OPERATOR_LISTEN_PORT"),
        ("ADDON_OPERATOR_NAMESPACES", "ADDON_OPERATOR_NAMESPACE"),
        ("ADDON_OPERATOR_ZZZ", "addon-operator settings"),
    ],
)
def test_an_unknown_name_is_a_warning_with_the_nearest_name(name: str, hint: str) -> None:
    (warning,) = load(**{name: "1"}).warnings
    assert name in warning
    assert hint in warning


@rows.each("prefix", ["", "ADDON_OPERATOR_"], ids=["plain", "prefixed"])
def test_a_setting_of_the_go_operator_without_meaning_says_so_once(prefix: str) -> None:
    told = {prefix + name: load(**{prefix + name: "1"}).warnings for name in setting_names.WITHOUT_MEANING}
    assert told
    assert {name: warnings for name, warnings in told.items() if not is_told_once(name, warnings)} == {}


def is_told_once(name: str, warnings: tuple[str, ...]) -> bool:
    return len(warnings) == 1 and name in warnings[0] and "no meaning" in warnings[0]


def test_a_flag_of_the_go_operator_without_meaning_says_so_once() -> None:
    told = {flag: load({flag: "1"}).warnings for flag in setting_names.FLAGS_WITHOUT_MEANING}
    assert told
    begin = {flag: [warning.partition(":")[0] for warning in warnings] for flag, warnings in told.items()}
    assert begin == {flag: [f"{flag} has no meaning here"] for flag in told}


def test_flags_of_the_go_operator_that_were_not_given_raise_no_warning() -> None:
    assert load(dict.fromkeys(setting_names.FLAGS_WITHOUT_MEANING)).warnings == ()


def test_settings_of_helm_2_are_a_warning() -> None:
    names = ["HELM2", "TILLER_MAX_HISTORY", "TILLER_BIN_PATH", "ADDON_OPERATOR_TILLER_X"]
    told = {name: load(**{name: "1"}).warnings for name in names}
    begin = {name: [warning.partition(" belongs")[0] for warning in lines] for name, lines in told.items()}
    assert begin == {name: [name] for name in names}
    assert all("belongs to Helm 2" in line for lines in told.values() for line in lines)


def test_a_name_of_a_part_to_come_raises_no_warning() -> None:
    told = {name: load(**{f"ADDON_OPERATOR_{name}": "1"}).warnings for name in setting_names.RESERVED}
    assert told == dict.fromkeys(setting_names.RESERVED, ())


def test_variables_that_kubernetes_adds_for_a_service_raise_no_warning() -> None:
    loaded = load(
        ADDON_OPERATOR_SERVICE_HOST="10.0.0.1",
        ADDON_OPERATOR_SERVICE_PORT="9650",
        ADDON_OPERATOR_SERVICE_PORT_METRICS="9650",
        ADDON_OPERATOR_PORT="tcp://10.0.0.1:9650",
        ADDON_OPERATOR_PORT_9650_TCP="tcp://10.0.0.1:9650",
        ADDON_OPERATOR_PORT_9650_TCP_ADDR="10.0.0.1",
        ADDON_OPERATOR_WEBHOOK_SERVICE_HOST="10.0.0.1",
    )
    assert loaded.warnings == ()


def test_known_names_do_not_overlap() -> None:
    names = {name for row in settings.TABLE.values() for name in (row.name, *row.aliases)}
    assert not names & setting_names.RESERVED
    assert not names & set(setting_names.WITHOUT_MEANING)
    assert not setting_names.RESERVED & set(setting_names.WITHOUT_MEANING)


def test_no_two_settings_share_a_variable_or_a_flag() -> None:
    variables = [name for row in settings.TABLE.values() for name in row.variables]
    flags = [flag for row in settings.TABLE.values() for flag in row.flags]
    assert len(set(variables)) == len(variables)
    assert len(set(flags)) == len(flags)


def test_settings_cannot_be_changed() -> None:
    loaded = load()
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.listen_port = 1  # type: ignore[misc]  # the point of the test
    with pytest.raises(TypeError):
        loaded.crd_extra_labels["a"] = "b"  # type: ignore[index]  # the point of the test


def test_every_setting_stands_in_its_documentation() -> None:
    text = (pathlib.Path(__file__).parents[3] / "docs" / "reference" / "settings.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.documented for row in settings.TABLE.values() if not stands_in(row, lines)] == []


def stands_in(row: setting_resolution.Setting, lines: Sequence[str]) -> bool:
    own = [line for line in lines if line.startswith(f"| `{row.documented}` |")]
    words = [*row.flags, *([str(row.default)] if row.default else [])]
    return len(own) == 1 and all(f"`{word}`" in own[0] for word in words)


def test_two_variables_of_one_meaning_with_different_values_are_reported() -> None:
    loaded = load(SHELL_OPERATOR_HOOKS_DIR="/hooks", GLOBAL_HOOKS_DIR="/global-hooks")
    assert loaded.global_hooks_dir == pathlib.Path("/global-hooks")
    (warning,) = loaded.warnings
    assert warning == (
        "GLOBAL_HOOKS_DIR=/global-hooks is used, not SHELL_OPERATOR_HOOKS_DIR=/hooks, which is the same "
        "setting: remove one of them"
    )


def test_two_variables_that_say_the_same_are_fine() -> None:
    assert load(LOG_LEVEL="warn", ADDON_OPERATOR_LOG_LEVEL="Warning").warnings == ()
