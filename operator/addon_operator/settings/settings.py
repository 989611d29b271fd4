"""All settings of the operator in one table: the fields of :class:`Settings`.

A field says its type, default, help, names and flags; parsing, the flags of ``start`` and the output of
``addon-operator settings`` come from it. To add a setting, add a field here (and delete its name from
:mod:`.setting_names`, if it stands there).
"""

# ruff: noqa: RUF009 - fields.setting makes a dataclass field, as dataclasses.field does

import dataclasses
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from addon_operator.podpreset import volume_types
from addon_operator.settings import setting_fields as fields
from addon_operator.settings import setting_names, setting_resolution
from addon_operator.settings import setting_types as t

_OPERATOR: Final = "Operator"
_HTTP: Final = "HTTP and metrics"
_ADMISSION: Final = "Admission"
_AVAILABILITY: Final = "Availability"
_KUBE: Final = "Kubernetes client"
_HELM: Final = "Helm"
_LOGGING: Final = "Logging"
_DEBUG: Final = "Debug"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; durations are seconds.

    Sources: "Environment variables", "Kubernetes client settings", "Helm settings" and "Logging settings" of
    the addon-operator documentation, and the options of the Go operator.
    """

    namespace: str = fields.setting(
        "NAMESPACE",
        t.NAMESPACE,
        None,
        "Namespace of the operator, its ConfigMap and its releases.",
        _OPERATOR,
        prefixed=True,
    )
    config_map: str = fields.setting(
        "CONFIG_MAP",
        t.CONFIG_MAP,
        "addon-operator",
        "Name of the ConfigMap that holds values.",
        _OPERATOR,
        prefixed=True,
    )
    modules_dirs: tuple[pathlib.Path, ...] = fields.setting(
        "MODULES_DIR", t.PATHS, "modules", "Directories with modules, separated by colons.", _OPERATOR
    )
    watch_modules: bool = fields.setting(
        "WATCH_MODULES",
        t.BOOLEAN,
        "false",
        "Whether changes of module directories are taken in while the operator runs.",
        _OPERATOR,
    )
    allow_empty_modules: bool = fields.setting(
        "ALLOW_EMPTY_MODULES",
        t.BOOLEAN,
        "false",
        "Whether releases are purged when there is no module at all.",
        _OPERATOR,
    )
    global_hooks_dir: pathlib.Path = fields.setting(
        "GLOBAL_HOOKS_DIR",
        t.PATH,
        "global-hooks",
        "Directory with global hooks.",
        _OPERATOR,
    )
    unnumbered_module_order: int = fields.setting(
        "UNNUMBERED_MODULE_ORDER",
        t.integer(0),
        "1",
        "Order of modules whose directory has no number.",
        _OPERATOR,
        flags=("--unnumbered-modules-order",),
        aliases=("UNNUMBERED_MODULES_ORDER",),
    )
    strict_check_values_mode_enabled: bool = fields.setting(
        "STRICT_CHECK_VALUES_MODE_ENABLED",
        t.BOOLEAN,
        "false",
        "Whether a modules directory must have its values.yaml.",
        _OPERATOR,
    )
    tmp_dir: pathlib.Path = fields.setting(
        "TMP_DIR",
        t.PATH,
        "/tmp/addon-operator",  # noqa: S108 - the documented default; the directory is made with mode 0700
        "Directory for temporary files.",
        _OPERATOR,
        prefixed=True,
    )
    modules_parallelism: int = fields.setting(
        "MODULES_PARALLELISM",
        t.integer(1),
        "4",
        "How many modules of the same order run side by side.",
        _OPERATOR,
    )
    converge_on_failure: str = fields.setting(
        "CONVERGE_ON_FAILURE",
        t.choice("wait", "continue"),
        "wait",
        "Whether modules of a higher order wait for a failing one or go on.",
        _OPERATOR,
    )
    hook_timeout: float = fields.setting(
        "HOOK_TIMEOUT",
        t.POSITIVE_DURATION,
        "30m",
        "Time after which a hook is ended and counts as failed.",
        _OPERATOR,
    )
    hook_env: tuple[str, ...] = fields.setting(
        "HOOK_ENV",
        t.VARIABLES,
        "*",
        "Variables of the operator that hooks inherit; * stands for anything but the operator's credentials.",
        _OPERATOR,
    )
    shutdown_grace: float = fields.setting(
        "SHUTDOWN_GRACE",
        t.DURATION,
        "25s",
        "Time that running hooks and Helm get to end at shutdown.",
        _OPERATOR,
    )
    crd_extra_labels: Mapping[str, str] = fields.setting(
        "CRD_EXTRA_LABELS",
        t.LABELS,
        "heritage=addon-operator",
        "Labels put on the CRDs of modules.",
        _OPERATOR,
        prefixed=True,
    )
    crd_filter_prefixes: tuple[str, ...] = fields.setting(
        "CRD_FILTER_PREFIXES",
        t.LIST,
        "doc-,_",
        "Files in crds/ whose name starts so are left out.",
        _OPERATOR,
        prefixed=True,
        flags=("--crd-filters",),
    )

    listen_address: str = fields.setting(
        "LISTEN_ADDRESS",
        t.ADDRESS,
        "0.0.0.0",  # noqa: S104 - the documented default: probes come from the node
        "Address of the HTTP server with probes and metrics.",
        _HTTP,
        prefixed=True,
        flags=("--prometheus-listen-address",),
    )
    listen_port: int = fields.setting(
        "LISTEN_PORT",
        t.PORT,
        "9650",
        "Port of the HTTP server; 0 takes any free one.",
        _HTTP,
        prefixed=True,
        flags=("--prometheus-listen-port",),
    )
    prometheus_metrics_prefix: str = fields.setting(
        "PROMETHEUS_METRICS_PREFIX",
        t.METRIC_PREFIX,
        "addon_operator_",
        "Prefix of the operator's metrics.",
        _HTTP,
        prefixed=True,
    )
    queue_actions_metrics: bool = fields.setting(
        "QUEUE_ACTIONS_METRICS", t.BOOLEAN, "true", "Whether single operations of queues are measured.", _HTTP
    )

    admission_server_enabled: str = fields.setting(
        "ADMISSION_SERVER_ENABLED",
        t.choice(
            "auto",
            "true",
            "false",
            aliases={"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"},
        ),
        "auto",
        "Whether pods are admitted with PodPresets; auto is yes in a cluster and with WEBHOOK_URL.",
        _ADMISSION,
    )
    admission_server_listen_address: str = fields.setting(
        "ADMISSION_SERVER_LISTEN_ADDRESS",
        t.ADDRESS,
        "0.0.0.0",  # noqa: S104 - the API server calls from outside the pod
        "Address of the admission server.",
        _ADMISSION,
    )
    admission_server_listen_port: int = fields.setting(
        "ADMISSION_SERVER_LISTEN_PORT", t.PORT, "9651", "Port of the admission server.", _ADMISSION
    )
    admission_server_certs_dir: pathlib.Path | None = fields.setting(
        "ADMISSION_SERVER_CERTS_DIR",
        t.OPTIONAL_PATH,
        "",
        "Directory with tls.crt, tls.key and ca.crt; without it certificates are made and kept in a Secret.",
        _ADMISSION,
    )
    admission_only: bool = fields.setting(
        "ADMISSION_ONLY",
        t.BOOLEAN,
        "false",
        "Whether this process admits pods and does nothing else: no modules, hooks, Helm or Lease.",
        _ADMISSION,
    )
    webhook_url: str | None = fields.setting(
        "WEBHOOK_URL",
        t.OPTIONAL_WEBHOOK_URL,
        "",
        "URL at which the API server reaches an operator outside the cluster.",
        _ADMISSION,
    )
    webhook_service: str = fields.setting(
        "WEBHOOK_SERVICE",
        t.SERVICE,
        "addon-operator",
        "Service in front of the admission server, in the operator's namespace, port 443.",
        _ADMISSION,
    )
    webhook_configuration: str | None = fields.setting(
        "WEBHOOK_CONFIGURATION",
        t.OPTIONAL_SUBDOMAIN,
        "",
        "Name of webhook configurations that others make and the operator only fills; else it makes its own.",
        _ADMISSION,
    )
    webhook_client_ca: pathlib.Path | None = fields.setting(
        "WEBHOOK_CLIENT_CA",
        t.OPTIONAL_PATH,
        "",
        "File with the authority of the API server's client certificate; without one anybody may ask.",
        _ADMISSION,
    )
    webhook_failure_policy: str = fields.setting(
        "WEBHOOK_FAILURE_POLICY",
        t.choice("ignore", "fail"),
        "Ignore",
        "What becomes of pods while no operator answers: created without presets, or refused.",
        _ADMISSION,
    )
    envfrom_sources: tuple[str, ...] = fields.setting(
        "ENVFROM_SOURCES",
        t.choices("configmaps", "secrets"),
        "configmaps,secrets",
        "What is read to know the variables of a pod's envFrom; none reads nothing.",
        _ADMISSION,
    )
    expansion_events: bool = fields.setting(
        "EXPANSION_EVENTS",
        t.BOOLEAN,
        "true",
        "Whether unresolved $(VAR) references of pods are told as Events.",
        _ADMISSION,
    )

    podpreset_volume_types: tuple[str, ...] = fields.setting(
        "PODPRESET_VOLUME_TYPES",
        t.VOLUME_TYPES,
        ",".join(volume_types.USUAL),
        "Types of volumes that PodPresets may have, or all.",
        _ADMISSION,
    )

    ha: bool = fields.setting(
        "HA",
        t.BOOLEAN,
        "false",
        "Whether several replicas run, of which one leads.",
        _AVAILABILITY,
        prefixed=True,
    )
    pod: str | None = fields.setting(
        "POD",
        t.OPTIONAL_TEXT,
        "",
        "Name of the operator's pod, which stands in the Lease; else HOSTNAME.",
        _AVAILABILITY,
        prefixed=True,
    )
    lease_name: str = fields.setting(
        "LEASE_NAME",
        t.LEASE,
        "addon-operator-leader-election",
        "Lease in the operator's namespace by which replicas agree on who leads.",
        _AVAILABILITY,
    )
    lease_duration: float = fields.setting(
        "LEASE_DURATION",
        t.WHOLE_SECONDS,
        "15s",
        "Time after the last renewal when another replica may lead.",
        _AVAILABILITY,
    )
    lease_renew_deadline: float = fields.setting(
        "LEASE_RENEW_DEADLINE",
        t.POSITIVE_DURATION,
        "10s",
        "Time after the last renewal when the leader gives up; less than LEASE_DURATION.",
        _AVAILABILITY,
    )
    lease_retry_period: float = fields.setting(
        "LEASE_RETRY_PERIOD",
        t.POSITIVE_DURATION,
        "2s",
        "Time between two renewals; less than half of LEASE_RENEW_DEADLINE.",
        _AVAILABILITY,
    )

    config_validation: bool = fields.setting(
        "CONFIG_VALIDATION",
        t.BOOLEAN,
        "true",
        "Whether wrong edits of the values ConfigMap are refused by the admission server.",
        _ADMISSION,
    )
    config_writer: str | None = fields.setting(
        "CONFIG_WRITER",
        t.OPTIONAL_TEXT,
        "",
        "User, as the API server names it, whose writes for hooks are not checked again; by default the own.",
        _ADMISSION,
    )

    kube_config: pathlib.Path | None = fields.setting(
        "KUBE_CONFIG", t.OPTIONAL_PATH, "", "Path of the kubeconfig.", _KUBE
    )
    kube_context: str | None = fields.setting(
        "KUBE_CONTEXT", t.OPTIONAL_TEXT, "", "Context of the kubeconfig.", _KUBE
    )
    kube_server: str | None = fields.setting(
        "KUBE_SERVER", t.OPTIONAL_SERVER, "", "URL of the API server, instead of the kubeconfig's.", _KUBE
    )
    kube_client_qps: float = fields.setting(
        "KUBE_CLIENT_QPS", t.RATE, "50", "Requests per second to the API server; 0 lifts the limit.", _KUBE
    )
    kube_client_burst: int = fields.setting(
        "KUBE_CLIENT_BURST", t.integer(1), "100", "Requests that may go out at once.", _KUBE
    )

    helm_bin_path: pathlib.Path | None = fields.setting(
        "HELM_BIN_PATH", t.OPTIONAL_PATH, "", "Path of the helm binary; else it is looked up in PATH.", _HELM
    )
    helm_history_max: int = fields.setting(
        "HELM_HISTORY_MAX", t.integer(0), "10", "Revisions kept for each release; 0 keeps all.", _HELM
    )
    helm_timeout: float = fields.setting(
        "HELM_TIMEOUT", t.POSITIVE_DURATION, "20m", "Time that one operation of Helm may take.", _HELM
    )
    helm_ignore_release: tuple[str, ...] = fields.setting(
        "HELM_IGNORE_RELEASE", t.LIST, "", "Releases that are never touched, separated by commas.", _HELM
    )
    helm_purge: str = fields.setting(
        "HELM_PURGE",
        t.choice("off", "own", "all"),
        "own",
        "Which releases without a module are removed: none, those this operator made, or all.",
        _HELM,
    )
    take_ownership: str = fields.setting(
        "TAKE_OWNERSHIP",
        t.choice("always", "labelled", "never"),
        "always",
        "Which objects that exist already become a release's: all, those with a label of Helm or an "
        "addon-operator, or none.",
        _HELM,
    )
    helm_driver: str = fields.setting(
        "HELM_DRIVER",
        t.choice("secret", "configmap", aliases={"secrets": "secret", "configmaps": "configmap"}),
        "secret",
        "Kind of object in which Helm keeps releases.",
        _HELM,
    )

    log_level: str = fields.setting(
        "LOG_LEVEL",
        t.choice("debug", "info", "warn", "error", aliases={"warning": "warn"}),
        "info",
        "Lowest level that is logged.",
        _LOGGING,
    )
    log_type: str = fields.setting(
        "LOG_TYPE", t.choice("text", "json", "color"), "text", "Format of the log.", _LOGGING
    )
    log_no_time: bool = fields.setting(
        "LOG_NO_TIME", t.BOOLEAN, "false", "Leave the time out of the log.", _LOGGING
    )
    log_proxy_hook_json: bool = fields.setting(
        "LOG_PROXY_HOOK_JSON",
        t.BOOLEAN,
        "false",
        "Merge JSON lines of hooks into the log's own fields.",
        _LOGGING,
    )

    debug_unix_socket: pathlib.Path = fields.setting(
        "DEBUG_UNIX_SOCKET",
        t.PATH,
        "/var/run/addon-operator/debug.socket",
        "Socket of the debug commands.",
        _DEBUG,
    )
    hook_debug_socket: bool = fields.setting(
        "HOOK_DEBUG_SOCKET", t.BOOLEAN, "false", "Whether hooks may use the debug socket.", _DEBUG
    )
    debug_keep_tmp_files: bool = fields.setting(
        "DEBUG_KEEP_TMP_FILES", t.BOOLEAN, "false", "Keep the temporary files of hooks and Helm.", _DEBUG
    )

    origins: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """Where each value came from, by field: ``default``, ``flag --x`` or ``variable X``."""
    warnings: tuple[str, ...] = ()
    """Sentences about names that are unknown or have no meaning; the caller logs them once."""


TABLE: Final[Mapping[str, fields.Setting]] = fields.table_of(Settings)
"""All settings by the field's name, in the order of the documentation."""


def load(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Settings:
    """The settings from flags (by field name) and variables: flag, variable, default, in this order.

    ``ADDON_OPERATOR_X`` goes before ``X``, and that before ``SHELL_OPERATOR_X`` where that is understood.
    An empty variable counts as not set; an empty flag is a value.

    Raises :class:`.SettingsError` with one line for each setting that is
    wrong or missing.
    """
    return settings_of(setting_resolution.resolve(TABLE, flags, environ), environ, flags)


def log_type(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> str:
    """``LOG_TYPE``, whatever else is wrong; the default if it is wrong itself."""
    row = {"log_type": TABLE["log_type"]}
    found = setting_resolution.resolve(row, flags, environ).values
    return str(found.get("log_type") or row["log_type"].default)


def settings_of(
    resolution: setting_resolution.Resolution, environ: Mapping[str, str], flags: Mapping[str, str | None]
) -> Settings:
    """The settings of a resolution without problems; raises ``SettingsError`` otherwise."""
    warnings = setting_names.warnings(TABLE.values(), environ, flags)
    resolution.check(warnings)
    return Settings(**resolution.values, origins=resolution.origins, warnings=warnings)
