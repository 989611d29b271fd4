"""Names of variables that are no settings here but known, and warnings about those that are not."""

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from addon_operator.kernel import errors, names
from addon_operator.settings import setting_resolution

_SHOWN_LENGTH: Final = 80

RESERVED: Final = frozenset({"DEVCLUSTER_CACHE", "DEVCLUSTER_STATE"})
"""Names without prefix that the local control plane reads, not the operator."""

_DEDUP: Final = (
    "DEDUP_CLIENT_ENABLED",
    "DEDUP_CLIENT_GC_INTERVAL",
    "DEDUP_CLIENT_HELM_RESOURCES_CACHE",
    "DEDUP_CLIENT_NAMESPACES",
    "DEDUP_CLIENT_RECONSTRUCT_LRU_SIZE",
    "DEDUP_CLIENT_SNAPSHOT_STORE",
    "DEDUP_CLIENT_WATCH_GVKS",
)
WITHOUT_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(_DEDUP, "all bindings share their watches, and objects are kept reduced")
    | {
        "APPLIED_MODULE_EXTENDERS": "the sources of a module's switch and their order are fixed",
        "DEBUG_HTTP_SERVER_ADDR": "the debug endpoint is only on its unix socket, which checks who connects",
        "DEBUG_KUBERNETES_API": "LOG_LEVEL=debug logs the requests",
        "HELM3": "the version of Helm is detected by running it",
        "HELM_MONITOR_KUBE_CLIENT_BURST": "resources are watched, not polled",
        "HELM_MONITOR_KUBE_CLIENT_QPS": "resources are watched, not polled",
        "JQ_LIBRARY_PATH": "jq filters have no library path",
        "NELM_DEPENDENCY_GRAPH_ENABLED": "releases are made by the helm binary",
        "OBJECT_PATCHER_KUBE_CLIENT_BURST": "KUBE_CLIENT_BURST holds for all requests",
        "OBJECT_PATCHER_KUBE_CLIENT_QPS": "KUBE_CLIENT_QPS holds for all requests",
        "OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT": "every request has its own time limit",
        "SHELL_CHROOT_DIR": "hooks run without chroot",
        "TRACING_OTLP_AUTH_TOKEN": "there is no tracing",
        "TRACING_OTLP_ENDPOINT": "there is no tracing",
        "USE_NELM": "releases are made by the helm binary",
    }
)
"""Settings of the Go operator that do nothing here, and why."""

FLAGS_WITHOUT_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {"--" + name.lower().replace("_", "-"): reason for name, reason in WITHOUT_MEANING.items()}
    | {
        "--debug-http-addr": WITHOUT_MEANING["DEBUG_HTTP_SERVER_ADDR"],
        "--dedup-client-namespace": WITHOUT_MEANING["DEDUP_CLIENT_NAMESPACES"],
        "--dedup-client-watch-gvk": WITHOUT_MEANING["DEDUP_CLIENT_WATCH_GVKS"],
    }
)
"""The same as flags of ``start``: known, so that the arguments of a Go operator are understood."""

_HELM2: Final = re.compile(rf"({setting_resolution.PREFIX})?(HELM2|TILLER_[A-Z0-9_]*)")
# Kubernetes puts variables into every pod for each Service of the namespace: a Service "addon-operator" gives
# ADDON_OPERATOR_SERVICE_HOST, ADDON_OPERATOR_PORT_9650_TCP_ADDR and so on.
_SERVICE_LINK: Final = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_URL: Final = re.compile(r"(tcp|udp|sctp)://.*")


def warnings(
    rows: Iterable[setting_resolution.Setting], environ: Mapping[str, str], flags: Mapping[str, str | None]
) -> tuple[str, ...]:
    """Return a sentence for each variable that looks like a setting, for each flag without meaning,
    and for variables of one meaning with different values.

    ``flags`` has the texts of :data:`FLAGS_WITHOUT_MEANING` that were given, beside those of settings.
    """
    rows = tuple(rows)
    variables = {variable for row in rows for variable in row.variables}
    checks = (
        _helm2(name) or _without_meaning(name) or _unknown(name, value, variables)
        for name, value in environ.items()
    )
    contradictions = (_contradiction(row, environ) for row in rows)
    flagged = (
        f"{flag} has no meaning here: {reason}"
        for flag, reason in FLAGS_WITHOUT_MEANING.items()
        if flags.get(flag) is not None
    )
    return tuple(sorted([*filter(None, checks), *filter(None, contradictions), *flagged]))


def _contradiction(row: setting_resolution.Setting, environ: Mapping[str, str]) -> str | None:
    """Say which of two variables of one meaning counts, if they say different things."""
    variables = [(variable, environ[variable]) for variable in row.variables if environ.get(variable)]
    if not variables:
        return None
    (winner, taken), *others = variables
    ignored = [f"{name}={_shown(text)}" for name, text in others if not _same(row, taken, text)]
    if not ignored:
        return None
    return (
        f"{winner}={_shown(taken)} is used, not {' or '.join(ignored)}, which is the same setting: "
        "remove one of them"
    )


def _same(row: setting_resolution.Setting, one: str, other: str) -> bool:
    try:
        return bool(row.type.parse(one) == row.type.parse(other))
    except (ValueError, errors.ConfigurationError):
        return one == other


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


def _helm2(name: str) -> str | None:
    if _HELM2.fullmatch(name) is None:
        return None
    return (
        f"{name} belongs to Helm 2, which is not supported: remove it, "
        "and make sure that helm is version 3 or 4"
    )


def _without_meaning(name: str) -> str | None:
    reason = WITHOUT_MEANING.get(name.removeprefix(setting_resolution.PREFIX))
    return f"{name} has no meaning here: {reason}" if reason else None


def _unknown(name: str, value: str, known: Collection[str]) -> str | None:
    bare = name.removeprefix(setting_resolution.PREFIX)
    if bare == name or name in known or bare in RESERVED or _is_service_link(name, value):
        return None
    prefixed = (other for other in known if other.startswith(setting_resolution.PREFIX))
    # Without the prefix, which would make any two names alike.
    candidates = sorted(other.removeprefix(setting_resolution.PREFIX) for other in prefixed)
    nearest = names.nearest(bare, candidates)
    hint = (
        f"did you mean {setting_resolution.PREFIX}{nearest}?"
        if nearest
        else "'addon-operator settings' lists all settings"
    )
    return f"{name} is not a setting: {hint}"


def _is_service_link(name: str, value: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_URL.fullmatch(value)))
