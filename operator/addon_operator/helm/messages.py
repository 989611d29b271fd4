"""Reading what Helm writes to its standard error: why it failed, and what it warns of."""

import re
from typing import Final

from addon_operator.kube import errors as kube_errors

_ERROR_START: Final = re.compile(r"^Error: ", re.MULTILINE)
_ADVICE_FOR_A_TERMINAL: Final = "Use --debug flag to render out invalid YAML"
_MISSING_DEPENDENCIES: Final = "missing in charts/"
# Of the API server for the record of a release, of etcd for any request, and of both for a message.
_TOO_LARGE: Final = re.compile(
    r"sh\.helm\.release\.v1\..*Too long: may not be more than|[Rr]equest (entity )?(is )?too large|"
    r"trying to send message larger than max"
)
_TIMED_OUT: Final = re.compile(r"timed out waiting for|context deadline exceeded|resource .* not ready")
# Helm's storage names what it was about to do before it quotes the API server.
_FORBIDDEN_RECORD: Final = re.compile(
    r"(?:query|list|get|create|update|delete): failed to .*"
    r'cannot (?P<verb>\w+) resource "(?P<resource>secrets|configmaps)" in API group "" '
    r'in the namespace "(?P<namespace>[^"]+)"'
)
_FORBIDDEN_OBJECT: Final = re.compile(
    r'cannot \w+ resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r"(?:in the namespace|(?P<cluster>at the cluster scope))"
)
_OBJECT_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_RECORD_VERBS: Final = "get, list, create, update, patch, delete"
_SHOWN_LENGTH: Final = 2000

_WARNINGS: Final = (
    re.compile(r"^WARNING: (?P<text>.+)$"),
    # klog, by which client-go passes on warnings of the API server, quoted and as information since 2026:
    # I1120 10:15:01.123456    42 warnings.go:107] "Warning: text"
    re.compile(r'^[IWE][0-9]{4} [0-9:.]+ +[0-9]+ warnings\.go:[0-9]+\] (?:"Warning: )?(?P<text>.+?)"?$'),
    re.compile(r"^[WE][0-9]{4} [0-9:.]+ +[0-9]+ [^\]]+\] (?P<text>.+)$"),
    # Go's log package with and without a file name: 2026/11/20 10:15:01 coalesce.go:286: warning: text
    re.compile(r"^[0-9/]+ [0-9:]+ (?:\S+\.go:[0-9]+: )?warning: (?P<text>.+)$"),
    # slog, since Helm 4: time=… level=WARN msg="text" key=value
    re.compile(r"^(?:time=\S+ )?level=WARN msg=(?P<text>.+)$"),
)


def error_text(stderr: str, exit_code: int) -> str:
    """Helm's own explanation on one line."""
    starts = list(_ERROR_START.finditer(stderr))
    explanation = stderr[starts[-1].end() :] if starts else stderr
    text = " ".join(explanation.replace(_ADVICE_FOR_A_TERMINAL, "").split())
    if "Secret" in text:
        text = kube_errors.without_values(text)
    if not text:
        ended = f"ended by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        return f"helm failed without a message ({ended})"
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


def advice(text: str, chart: str) -> str:
    """What to do about an error whose text does not say it itself, to be put behind it; else nothing."""
    if _MISSING_DEPENDENCIES in text:
        return f"; run 'helm dependency build {chart}'"
    if _TOO_LARGE.search(text):
        return (
            "; a release can hold about 1 MiB, compressed: leave files out of the chart with .helmignore, "
            "or split the module"
        )
    if _TIMED_OUT.search(text):
        return "; HELM_TIMEOUT says how long a step of Helm may take"
    if (denied := _FORBIDDEN_RECORD.search(text)) is not None:
        return (
            f"; Helm keeps its releases in {denied['resource']}: allow the operator to {_RECORD_VERBS} them "
            f"in namespace {denied['namespace']}"
        )
    if (denied := _FORBIDDEN_OBJECT.search(text)) is not None:
        return _rule_for(denied)
    return ""


def _rule_for(denied: re.Match[str]) -> str:
    """All that Helm and healing do with objects of the kind: else one verb would be missing after another."""
    kind = "ClusterRole" if denied["cluster"] else "Role"
    verbs = ", ".join(f'"{verb}"' for verb in _OBJECT_VERBS)
    return (
        f"; add to the operator's {kind} the rule "
        f'apiGroups: ["{denied["group"]}"], resources: ["{denied["resource"]}"], verbs: [{verbs}]'
    )


def warning_text(line: str) -> str | None:
    """The text of a line that is a warning of Helm or of the API server; ``None`` for any other line."""
    for pattern in _WARNINGS:
        match = pattern.match(line)
        if match is not None:
            return match["text"].strip().replace('\\"', '"')
    return None
