"""Every setting of the Go operator, and of its documentation, is a known name here."""

import pytest

from addon_operator.kernel import errors
from addon_operator.loading import preflight
from addon_operator.settings import setting_names, settings

# Facts of addon-operator v1.24.6 and of its documentation: variables as they are written there.
VARIABLES = (
    "ADDON_OPERATOR_MODULES_DIR ADDON_OPERATOR_GLOBAL_HOOKS_DIR ADDON_OPERATOR_TMP_DIR "
    "ADDON_OPERATOR_NAMESPACE ADDON_OPERATOR_LISTEN_ADDRESS ADDON_OPERATOR_LISTEN_PORT "
    "ADDON_OPERATOR_CONFIG_MAP ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX "
    "ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER ADDON_OPERATOR_SHELL_CHROOT_DIR "
    "ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS "
    "ADDON_OPERATOR_CRD_EXTRA_LABELS ADDON_OPERATOR_CRD_FILTER_PREFIXES "
    "ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR "
    "ADDON_OPERATOR_ADMISSION_SERVER_ENABLED ADDON_OPERATOR_HA ADDON_OPERATOR_POD MODULES_DIR "
    "GLOBAL_HOOKS_DIR UNNUMBERED_MODULE_ORDER STRICT_CHECK_VALUES_MODE_ENABLED QUEUE_ACTIONS_METRICS "
    "HELM_BIN_PATH HELM3 HELM_HISTORY_MAX HELM_TIMEOUT HELM_IGNORE_RELEASE "
    "HELM_MONITOR_KUBE_CLIENT_QPS HELM_MONITOR_KUBE_CLIENT_BURST HELM_DRIVER USE_NELM "
    "NELM_DEPENDENCY_GRAPH_ENABLED KUBE_CONTEXT KUBE_CONFIG KUBE_SERVER KUBE_CLIENT_QPS "
    "KUBE_CLIENT_BURST OBJECT_PATCHER_KUBE_CLIENT_QPS OBJECT_PATCHER_KUBE_CLIENT_BURST "
    "OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT DEBUG_UNIX_SOCKET DEBUG_HTTP_SERVER_ADDR "
    "DEBUG_KEEP_TMP_FILES DEBUG_KUBERNETES_API LOG_LEVEL LOG_TYPE LOG_NO_TIME LOG_PROXY_HOOK_JSON "
    "JQ_LIBRARY_PATH TRACING_OTLP_ENDPOINT TRACING_OTLP_AUTH_TOKEN SHELL_OPERATOR_HOOKS_DIR "
    "SHELL_OPERATOR_TMP_DIR SHELL_OPERATOR_LISTEN_ADDRESS SHELL_OPERATOR_LISTEN_PORT "
    "SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX SHELL_OPERATOR_NAMESPACE "
)
FLAGS = (
    "modules-dir unnumbered-modules-order global-hooks-dir tmp-dir namespace "
    "prometheus-listen-address prometheus-listen-port prometheus-metrics-prefix config-map "
    "shell-chroot-dir strict-check-values-mode-enabled applied-module-extenders crd-extra-labels "
    "crd-filters helm-history-max helm-timeout helm-ignore-release helm-monitor-kube-client-qps "
    "helm-monitor-kube-client-burst admission-server-listen-port admission-server-certs-dir "
    "admission-server-enabled kube-context kube-config kube-server kube-client-qps kube-client-burst "
    "object-patcher-kube-client-qps object-patcher-kube-client-burst "
    "object-patcher-kube-client-timeout log-level log-type log-no-time log-proxy-hook-json "
    "debug-unix-socket debug-http-addr debug-keep-tmp-files debug-kubernetes-api "
)

_KNOWN_VARIABLES = {variable for row in settings.TABLE.values() for variable in row.variables}
_KNOWN_FLAGS = {flag for row in settings.TABLE.values() for flag in row.flags}


def test_every_variable_sets_something_or_says_that_it_has_no_meaning() -> None:
    unknown = set(VARIABLES.split()) - _KNOWN_VARIABLES
    assert {
        name.removeprefix("ADDON_OPERATOR_") for name in unknown
    } - setting_names.WITHOUT_MEANING.keys() == set()


def test_every_flag_sets_something_or_says_that_it_has_no_meaning() -> None:
    unknown = {f"--{name}" for name in FLAGS.split()} - _KNOWN_FLAGS
    assert unknown - setting_names.FLAGS_WITHOUT_MEANING.keys() == set()


def test_no_flag_is_both_a_setting_and_without_meaning() -> None:
    assert not _KNOWN_FLAGS & set(setting_names.FLAGS_WITHOUT_MEANING)


def test_the_strict_mode_demands_values_yaml_of_every_modules_directory(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    good, bad = tmp_path_factory.mktemp("good"), tmp_path_factory.mktemp("bad")
    (good / "values.yaml").write_text("")
    strict = settings.Settings(
        namespace="addons", modules_dirs=(good, bad), strict_check_values_mode_enabled=True
    )
    with pytest.raises(errors.ConfigurationError, match="STRICT_CHECK_VALUES_MODE_ENABLED") as refused:
        preflight.load_modules(strict)
    assert str(bad / "values.yaml") in str(refused.value)
    relaxed = settings.Settings(namespace="addons", modules_dirs=(good, bad))
    assert preflight.load_modules(relaxed).modules == ()
