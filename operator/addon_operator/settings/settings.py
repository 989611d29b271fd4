"""All settings of the operator in one table: the fields of :class:`Settings`.

A field says its type, default, help, names and flags; parsing, the flags of ``start`` and the output of
``addon-operator settings`` come from it. To add a setting, add a field here (and delete its name from
:mod:`.setting_names`, if it stands there).
"""

# ruff: noqa: RUF009 - Group.setting makes a dataclass field, as dataclasses.field does

import dataclasses
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import structs

from addon_operator.podpreset import volume_types
from addon_operator.settings import setting_resolution
from addon_operator.settings import setting_types as t

if TYPE_CHECKING:
    from addon_operator.modules import windows
    from addon_operator.modules.health import health_config

NO_SECRET: Final = "none"  # noqa: S105 - a word, not a password
"""Value of ``VALUES_SECRET`` that stands for no Secret at all."""
NAMED_LIKE_CONFIG_MAP: Final = {"values_secret": "", "notify_secret": "-notify"}
"""Secrets that have the name of the ConfigMap with this behind it, unless they have one of their own."""
_OPERATOR: Final = setting_resolution.Group("Operator")
_HTTP: Final = setting_resolution.Group("HTTP and metrics")
_ADMISSION: Final = setting_resolution.Group("Admission")
_AVAILABILITY: Final = setting_resolution.Group("Availability")
_KUBE: Final = setting_resolution.Group("Kubernetes client")
_HELM: Final = setting_resolution.Group("Helm")
_LOGGING: Final = setting_resolution.Group("Logging")
_DEBUG: Final = setting_resolution.Group("Debug")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; durations are seconds.

    Sources: "Environment variables", "Kubernetes client settings", "Helm settings" and "Logging settings" of
    the addon-operator documentation, and the options of the Go operator.
    """

    namespace: str = _OPERATOR.setting(
        t.NAMESPACE,
        None,
        "Namespace of the operator, its ConfigMap and its releases.",
        prefixed=True,
        flags=("--namespace", "-n"),
    )
    config_map: str = _OPERATOR.setting(
        t.CONFIG_MAP, "addon-operator", "Name of the ConfigMap that holds values.", prefixed=True
    )
    values_secret: str | None = _OPERATOR.setting(
        t.OPTIONAL_SECRET,
        "",
        "Name of the Secret whose values lie over those of the ConfigMap, by default the ConfigMap's; none "
        "reads no Secret.",
    )
    notify_secret: str | None = _OPERATOR.setting(
        t.OPTIONAL_SECRET,
        "",
        "Name of the Secret that says who is notified, by default the ConfigMap's with -notify; none reads "
        "no Secret.",
    )
    modules_dirs: tuple[pathlib.Path, ...] = _OPERATOR.setting(
        t.PATHS, "modules", "Directories with modules, separated by colons.", name="MODULES_DIR"
    )
    watch_modules: bool = _OPERATOR.setting(
        t.BOOLEAN, "false", "Whether changed module directories are read again while the operator runs."
    )
    watch_modules_interval: float = _OPERATOR.setting(
        t.POSITIVE_DURATION, "1s", "Time between two looks at the module directories, with WATCH_MODULES."
    )
    absence: float = _OPERATOR.setting(
        t.DURATION,
        "10s",
        "Time after which a second look decides that a kind, an API or a module directory is gone.",
    )
    config_map_missing: str = _OPERATOR.setting(
        t.choice("keep", "empty"),
        "keep",
        "What a values ConfigMap or Secret counts as that was there and is missing: as it was, or, after "
        "ABSENCE, as empty.",
    )
    removal_data: str = _OPERATOR.setting(
        t.choice("keep", "delete"),
        "keep",
        "What becomes of what holds data when a module is disabled or purged whose module.yaml does not say "
        "it with removal.data.",
    )
    allow_empty_modules: bool = _OPERATOR.setting(
        t.BOOLEAN,
        "false",
        "Whether releases are purged when none of the modules is there that have releases.",
    )
    global_hooks_dir: pathlib.Path = _OPERATOR.setting(t.PATH, "global-hooks", "Directory with global hooks.")
    unnumbered_module_order: int = _OPERATOR.setting(
        t.integer(0),
        "1",
        "Order of modules whose directory has no number.",
        flags=("--unnumbered-modules-order",),
        aliases=("UNNUMBERED_MODULES_ORDER",),
    )
    strict_check_values_mode_enabled: bool = _OPERATOR.setting(
        t.BOOLEAN, "false", "Whether a modules directory must have its values.yaml."
    )
    tmp_dir: pathlib.Path = _OPERATOR.setting(
        t.PATH,
        "/tmp/addon-operator",  # noqa: S108 - the documented default; the directory is made with mode 0700
        "Directory for temporary files.",
        prefixed=True,
    )
    modules_parallelism: int = _OPERATOR.setting(
        t.integer(1), "4", "How many modules of the same order run side by side."
    )
    converge_on_failure: str = _OPERATOR.setting(
        t.choice("wait", "continue"),
        "wait",
        "Whether modules of a higher order wait for a failing one or continue.",
    )
    health_rules: "tuple[health_config.HealthRule, ...]" = _OPERATOR.setting(
        t.HEALTH_RULES, "", "When resources of kinds without conditions are healthy, as a list of rules."
    )
    windows: "windows.Windows | None" = _OPERATOR.setting(
        t.WINDOWS,
        "",
        "When upgrades and removals of releases may be made, as a list of windows; at any time by default.",
    )
    enabled_modules_crd_names: bool = _OPERATOR.setting(
        t.BOOLEAN,
        "false",
        "Whether global.enabledModules has NAME-crd before each module with crds/, as modules of Deckhouse "
        "expect.",
    )
    hook_timeout: float = _OPERATOR.setting(
        t.POSITIVE_DURATION, "30m", "Time after which a hook is stopped and counts as failed."
    )
    hook_env: tuple[str, ...] = _OPERATOR.setting(
        t.VARIABLES,
        "*",
        "Variables that hooks inherit from the operator; * matches all but the operator's credentials.",
    )
    shutdown_grace: float = _OPERATOR.setting(
        t.DURATION, "25s", "Time that running hooks and Helm get to end at shutdown."
    )
    crd_extra_labels: Mapping[str, str] = _OPERATOR.setting(
        t.LABELS, "heritage=addon-operator", "Labels put on the CRDs of modules.", prefixed=True
    )
    crd_filter_prefixes: tuple[str, ...] = _OPERATOR.setting(
        t.LIST,
        "doc-,_",
        "Prefixes of file names in crds/; such files are skipped.",
        prefixed=True,
        flags=("--crd-filters",),
    )

    listen_address: str = _HTTP.setting(
        t.ADDRESS,
        "0.0.0.0",  # noqa: S104 - the documented default: probes come from the node
        "Address of the HTTP server with probes and metrics.",
        prefixed=True,
        flags=("--prometheus-listen-address",),
    )
    listen_port: int = _HTTP.setting(
        t.PORT,
        "9650",
        "Port of the HTTP server; 0 takes any free one.",
        prefixed=True,
        flags=("--prometheus-listen-port",),
    )
    page: bool = _HTTP.setting(
        t.BOOLEAN, "true", "Whether the page at / shows modules and queues to whoever can reach the port."
    )
    prometheus_metrics_prefix: str = _HTTP.setting(
        t.METRIC_PREFIX, "addon_operator_", "Prefix of the operator's metrics.", prefixed=True
    )
    queue_actions_metrics: bool = _HTTP.setting(
        t.BOOLEAN, "true", "Whether each operation of a queue is measured."
    )

    admission_server_enabled: str = _ADMISSION.setting(
        t.choice(
            "auto",
            "true",
            "false",
            aliases={"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"},
        ),
        "auto",
        "Whether PodPresets are applied to pods; auto means yes in a cluster or with WEBHOOK_URL.",
    )
    admission_server_listen_address: str = _ADMISSION.setting(
        t.ADDRESS,
        "0.0.0.0",  # noqa: S104 - the API server calls from outside the pod
        "Address of the admission server.",
    )
    admission_server_listen_port: int = _ADMISSION.setting(t.PORT, "9651", "Port of the admission server.")
    admission_server_certs_dir: pathlib.Path | None = _ADMISSION.setting(
        t.OPTIONAL_PATH,
        "",
        "Directory with tls.crt, tls.key and ca.crt; by default certificates are made and kept in a Secret.",
    )
    admission_only: bool = _ADMISSION.setting(
        t.BOOLEAN,
        "false",
        "Whether this process admits pods and does nothing else: no modules, hooks, Helm or Lease.",
    )
    webhook_url: str | None = _ADMISSION.setting(
        t.OPTIONAL_WEBHOOK_URL, "", "URL at which the API server reaches an operator outside the cluster."
    )
    webhook_service: str = _ADMISSION.setting(
        t.SERVICE,
        "addon-operator",
        "Service in front of the admission server, in the operator's namespace, port 443.",
    )
    webhook_configuration: str | None = _ADMISSION.setting(
        t.OPTIONAL_SUBDOMAIN,
        "",
        "Name of existing webhook configurations that the operator completes; by default it makes its own.",
    )
    webhook_hooks_parallelism: int = _ADMISSION.setting(
        t.integer(1), "8", "Hooks that answer the API server at the same time, each in a process."
    )
    webhook_client_ca: pathlib.Path | None = _ADMISSION.setting(
        t.OPTIONAL_PATH,
        "",
        "File with the CA of the API server's client certificate; by default none is needed.",
    )
    webhook_failure_policy: str = _ADMISSION.setting(
        structs.replace(t.choice("ignore", "fail"), plain=str.capitalize),
        "Ignore",
        "What happens to pods while no operator answers: created without presets, or refused.",
    )
    envfrom_sources: tuple[str, ...] = _ADMISSION.setting(
        t.choices("configmaps", "secrets"),
        "configmaps,secrets",
        "Which objects are read to know the variables of a pod's envFrom; none reads nothing.",
    )
    expansion_events: bool = _ADMISSION.setting(
        t.BOOLEAN, "true", "Whether unresolved $(VAR) references of pods are reported as Events."
    )

    podpreset_volume_types: tuple[str, ...] = _ADMISSION.setting(
        t.VOLUME_TYPES, ",".join(volume_types.USUAL), "Types of volumes that PodPresets may have, or all."
    )

    ha: bool = _AVAILABILITY.setting(
        t.BOOLEAN, "false", "Whether several replicas run, one of which leads.", prefixed=True
    )
    pod: str | None = _AVAILABILITY.setting(
        t.OPTIONAL_TEXT,
        "",
        "Name of the operator's pod, written to the Lease; by default HOSTNAME.",
        prefixed=True,
    )
    lease_name: str = _AVAILABILITY.setting(
        t.LEASE,
        "addon-operator-leader-election",
        "Lease in the operator's namespace with which the replicas elect a leader.",
    )
    lease_duration: float = _AVAILABILITY.setting(
        t.WHOLE_SECONDS, "15s", "Time after the last renewal when another replica may take over."
    )
    lease_renew_deadline: float = _AVAILABILITY.setting(
        t.POSITIVE_DURATION,
        "10s",
        "Time after the last renewal when the leader gives up; less than LEASE_DURATION.",
    )
    lease_retry_period: float = _AVAILABILITY.setting(
        t.POSITIVE_DURATION, "2s", "Time between two renewals; less than half of LEASE_RENEW_DEADLINE."
    )

    config_validation: bool = _ADMISSION.setting(
        t.BOOLEAN, "true", "Whether the admission server refuses invalid edits of the values ConfigMap."
    )
    config_writer: str | None = _ADMISSION.setting(
        t.OPTIONAL_TEXT,
        "",
        "User whose writes for hooks are not checked again; by default the operator's own.",
    )

    kube_config: pathlib.Path | None = _KUBE.setting(
        t.OPTIONAL_PATH, "", "Path of the kubeconfig.", flags=("--kube-config", "--kubeconfig")
    )
    kube_context: str | None = _KUBE.setting(
        t.OPTIONAL_TEXT, "", "Context of the kubeconfig.", flags=("--kube-context", "--context")
    )
    kube_server: str | None = _KUBE.setting(
        t.OPTIONAL_SERVER, "", "URL of the API server, instead of the kubeconfig's."
    )
    kube_client_qps: float = _KUBE.setting(
        t.RATE, "50", "Requests per second to the API server; 0 lifts the limit."
    )
    kube_client_burst: int = _KUBE.setting(t.integer(1), "100", "Requests that may be sent at once.")

    helm_bin_path: pathlib.Path | None = _HELM.setting(
        t.OPTIONAL_PATH, "", "Path of the helm binary; by default the one in PATH."
    )
    helm_history_max: int = _HELM.setting(t.integer(0), "10", "Revisions kept for each release; 0 keeps all.")
    helm_timeout: float = _HELM.setting(
        t.POSITIVE_DURATION, "20m", "Time that one operation of Helm may take."
    )
    helm_memory: int | None = _HELM.setting(
        t.OPTIONAL_MEMORY,
        "",
        "Memory that each process of Helm may have; by default three quarters of the container's, divided by "
        "MODULES_PARALLELISM.",
    )
    helm_ignore_release: tuple[str, ...] = _HELM.setting(
        t.RELEASES, "", "Releases that are never touched, separated by commas."
    )
    helm_purge: str = _HELM.setting(
        t.choice("off", "own", "all"),
        "own",
        "Which releases without a module are removed: none, those this operator made, or all.",
    )
    take_ownership: str = _HELM.setting(
        t.choice("always", "labelled", "never"),
        "always",
        "Which existing objects a release may take over: all, those with a label of Helm or an "
        "addon-operator, or none.",
    )
    common_labels: Mapping[str, str] = _HELM.setting(
        t.COMMON_LABELS, "", "Labels on every resource of all releases: name=value, separated by commas."
    )
    common_annotations: Mapping[str, str] = _HELM.setting(
        t.COMMON_ANNOTATIONS,
        "",
        "Annotations on every resource of all releases: name=value, separated by commas.",
    )
    drift_mode: str = _HELM.setting(
        t.choice("ignore", "warn", "correct"),
        "warn",
        "What happens when somebody changes resources of releases; module.yaml may say it of a module.",
    )
    chart_cache_dir: pathlib.Path | None = _HELM.setting(
        t.OPTIONAL_PATH,
        "",
        "Directory for charts from repositories; by default charts in ADDON_OPERATOR_TMP_DIR.",
    )
    chart_credentials: pathlib.Path | None = _HELM.setting(
        t.OPTIONAL_PATH, "", "Docker configuration (config.json) with credentials of chart repositories."
    )
    chart_ca_file: pathlib.Path | None = _HELM.setting(
        t.OPTIONAL_PATH, "", "CAs that chart repositories may have beside those of the system, as PEM."
    )
    helm_driver: str = _HELM.setting(
        t.choice("secret", "configmap", aliases={"secrets": "secret", "configmaps": "configmap"}),
        "secret",
        "Kind of object in which Helm keeps releases.",
    )

    log_level: str = _LOGGING.setting(
        t.choice("debug", "info", "warn", "error", aliases={"warning": "warn"}),
        "info",
        "Lowest level that is logged.",
    )
    log_type: str = _LOGGING.setting(t.choice("text", "json", "color"), "text", "Format of the log.")
    log_no_time: bool = _LOGGING.setting(t.BOOLEAN, "false", "Omit the time.")
    log_proxy_hook_json: bool = _LOGGING.setting(
        t.BOOLEAN, "false", "Merge JSON lines of hooks into the log's own fields."
    )

    debug_unix_socket: pathlib.Path = _DEBUG.setting(
        t.PATH, "/var/run/addon-operator/debug.socket", "Socket of the debug commands."
    )
    hook_debug_socket: bool = _DEBUG.setting(t.BOOLEAN, "false", "Whether hooks may use the debug socket.")
    debug_keep_tmp_files: bool = _DEBUG.setting(
        t.BOOLEAN, "false", "Keep the temporary files of hooks and Helm."
    )

    origins: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """Where each value came from, by field: ``default``, ``flag --x`` or ``variable X``."""
    warnings: tuple[str, ...] = ()
    """Sentences about names that are unknown or have no meaning; the caller logs them once."""

    def spelled(self, field: str) -> str:
        """Return the flag or variable that set a field, or those that may, for messages."""
        row, origin = TABLE[field], self.origins.get(field, setting_resolution.DEFAULT_ORIGIN)
        if origin == setting_resolution.DEFAULT_ORIGIN:
            return f"{row.documented} or {row.flags[0]}"
        return origin.partition(" ")[2]

    @property
    def values_secret_name(self) -> str | None:
        """Return the name of the Secret with values; ``None`` if there is to be none."""
        return self._secret_name("values_secret", self.values_secret)

    @property
    def notify_secret_name(self) -> str | None:
        """Return the name of the Secret that says who is notified; ``None`` if nobody is to be."""
        return self._secret_name("notify_secret", self.notify_secret)

    def _secret_name(self, field: str, named: str | None) -> str | None:
        return None if named == NO_SECRET else named or f"{self.config_map}{NAMED_LIKE_CONFIG_MAP[field]}"

    @property
    def charts(self) -> pathlib.Path:
        """Where charts from repositories lie."""
        return charts_below(self.tmp_dir, self.chart_cache_dir)


def charts_below(tmp_dir: pathlib.Path, chart_cache_dir: pathlib.Path | None) -> pathlib.Path:
    """Return where charts from repositories lie by these two settings."""
    # Helm and hooks run in directories of their own.
    return (chart_cache_dir or tmp_dir / "charts").absolute()


TABLE: Final[Mapping[str, setting_resolution.Setting]] = setting_resolution.table_of(Settings)
"""All settings by the field's name, in the order of the documentation."""
