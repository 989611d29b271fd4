"""Reading what Helm writes to its standard error: why it failed, and what it warns of."""

import pathlib
import re
from typing import Final

import msgspec
import re2  # type: ignore[import-untyped]  # has no stubs

from addon_operator.documents import quotations, text_parts
from addon_operator.helm import fixed_fields
from addon_operator.modules import failure_causes

NOT_REGULAR: Final = "cannot be read: it is not a regular file; remove it"
"""What is said of a pipe, a socket or a device in a chart, behind its path."""
_ERROR: Final = "Error: "
_ERROR_START: Final = re.compile(rf"^{_ERROR}", re.MULTILINE)
WORDS_OF_THE_CHART: Final = "execution error at "
"""Stands before what ``fail`` and ``required`` of a chart say."""
_OF_CHANGES: Final = re.compile(r"(module\.yaml: patches\[[^\n]{1,1500})")
"""What :mod:`.post_renderer_main` says, between words of Helm."""
_FOREIGN: Final = "cannot be imported into the current release"
_ADVICE_FOR_A_TERMINAL: Final = "Use --debug flag to render out invalid YAML"
_IN_TEMPLATE: Final = "template: "
_MISSING_DEPENDENCIES: Final = "missing in charts/"
# Of the API server for the record of a release, of etcd for any request, and of both for a message.
_TOO_LARGE: Final = re.compile(
    r"sh\.helm\.release\.v1\.[^\n]{0,1000}Too long: may not be more than|"
    r"[Rr]equest (entity )?(is )?too large|trying to send message larger than max"
)
_OUTAGE: Final = re2.compile(
    r"cluster unreachable|connection (?:refused|reset)|connection lost|unexpected EOF|TLS handshake timeout|"
    r"no route to host|i/o timeout|etcdserver: |currently unable to handle the request"
)
_MISSING_NAMESPACE: Final = re.compile(r'namespaces "(?P<namespace>[-a-z0-9]+)" not found')
_REMEDIES: Final = (
    (
        re2.compile(r"is larger than the maximum file size"),
        "; leave the file out of the chart with .helmignore",
    ),
    (
        re2.compile(r"because it is being terminated"),
        "; somebody has deleted the namespace: this is tried again when that has ended",
    ),
    (
        re2.compile(r"cannot be handled as an? [A-Za-z0-9]+: "),
        "; 'addon-operator module lint' names the file and the field",
    ),
    (
        re2.compile(r"json: cannot unmarshal (?:bool|number) into Go .* of type string"),
        (
            "; put quotes around the value of that field: without them, YAML reads n, no, on, yes and 1 as "
            "something else than a text"
        ),
    ),
    (
        re2.compile(
            r"spec\.conversion\.\w+: Forbidden: should not be set when strategy is not set to Webhook"
        ),
        (
            "; hooks convert the objects of this definition, and the chart sets its spec.conversion: take "
            "that out of the chart, for example with patches in module.yaml"
        ),
    ),
    (
        re2.compile(r"chart requires kubeVersion: [^\n]{0,200} Kubernetes v[0-9.]+-"),
        (
            "; the suffix of the cluster's version makes it a pre-release, which Helm takes only for a range "
            "whose bounds have one, such as >=1.30.0-0: take a version of the chart with such a range, or "
            "write one into kubeVersion of a copy"
        ),
    ),
    (
        re2.compile(r"chart requires kubeVersion"),
        "; use a version of the chart that is made for this cluster",
    ),
    (
        re2.compile(r"<\$?\.Value\.[^>\n]*>: nil pointer"),
        "; did you mean .Values?",
    ),
    (
        re2.compile(r"<[^>\n]*\.Values\.global\.[^>\n]*>: nil pointer"),
        (
            "; neither files nor global hooks set that key of global, or this is a public chart and "
            "chart.global in module.yaml does not list it"
        ),
    ),
    (
        re2.compile(r"timed out waiting for|context deadline exceeded|resource .* not ready\. status: [^F]"),
        "; HELM_TIMEOUT says how long a step of Helm may take",
    ),
    (
        re2.compile(r"provided (?:port|IP) is already allocated"),
        "; another Service has it, as 'kubectl get services -A' shows: take another one, or leave it out",
    ),
    (
        re2.compile(r"Hook [a-z-]+ \S+ failed: .*already exists"),
        (
            "; an earlier try of the hook left it: delete it, and let its helm.sh/hook-delete-policy have "
            "before-hook-creation, for example with patches in module.yaml"
        ),
    ),
    (
        re2.compile(r"missing from spec\.versions"),
        "; keep that version in the definition, unserved if need be, as long as objects are stored in it",
    ),
)
_NOT_SERVED: Final = "no matches for kind"
_UNKNOWN_KIND: Final = re.compile(
    rf'{_NOT_SERVED} "(?P<kind>[A-Za-z0-9]+)"(?: in version "(?P<version>[^"/]+|[a-z0-9.-]+/[^"]+)")?'
)
_OF_KUBERNETES: Final = (
    r"policy|apps|batch|autoscaling|extensions|(?:admissionregistration|apiextensions|apiregistration|authentication|"
    r"authorization|certificates|coordination|discovery|events|flowcontrol\.apiserver|networking|node|"
    r"rbac\.authorization|resource|scheduling|storage|storagemigration)\.k8s\.io"
)
_BUILT_IN: Final = re.compile(rf"(?:(?:{_OF_KUBERNETES})/)?v[0-9a-z]+")
"""Versions of APIs that no definition brings."""
_IRREGULAR: Final = re.compile(
    r"cannot load irregular file (?P<path>[^\n]{1,4096}?) as it has file mode type bits set"
)
_BEFORE_CAUSE: Final = re.compile(
    r"(?:[A-Z]{1,20} FAILED: )?(?:unable to build kubernetes objects from (?:new )?release manifest: "
    r'(?:unable to decode "": |error validating "": )?'
    r"|An error occurred while checking for chart dependencies\. You may need to run "
    r"`helm dependency build` to fetch missing dependencies: )"
)
"""What Helm says at length before it says why."""
_MAPPING: Final = re.compile(
    r'resource mapping not found for name: "(?P<name>[^"]{0,253})" namespace: "[^"]{0,253}" from "": '
    rf'(?P<cause>{_NOT_SERVED} "[^"]{{1,253}}" in version "[^"]{{1,253}}")'
    r"(?: ensure CRDs are installed first)?"
)
# Helm's storage names what it was about to do before it quotes the API server.
_FORBIDDEN_RECORD: Final = re.compile(
    r"(?:query|list|get|create|update|delete): failed to [^\n]{0,1000}"
    r'cannot (?P<verb>\w+) resource "(?P<resource>secrets|configmaps)" in API group "" '
    r'in the namespace "(?P<namespace>[^"]+)"'
)
_FORBIDDEN_OBJECT: Final = re.compile(
    r'cannot \w+ resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r"(?:in the namespace|(?P<cluster>at the cluster scope))"
)
_OBJECT_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_RECORD_VERBS: Final = "get, list, create, update, patch, delete"
# Helm 3, and Helm 4 with its server-side apply, for an object that is there.
_CHANGE: Final = re.compile(
    r'cannot patch "(?P<old>[^"]+)" with kind (?P<old_kind>\w+): |'
    r"server-side apply failed for object (?:(?P<namespace>[^\s/]*)/)?(?P<name>\S+) \S+, Kind=(?P<kind>\w+): "
)
_FILE_OF_CHART: Final = re.compile(r"(?<![\w./-])[\w.-]{1,250}/(?=(?:charts/[\w.-]{1,250}/){0,9}templates/)")
"""The chart's name, where Helm says which file is wrong; subcharts are below it."""
_SHOWN_HEAD: Final = 1400
_SHOWN_END: Final = 500
_FAILED_VERB: Final = re.compile(r'"[a-z]+ failed" .*\berror=')
"""A warning of Helm 4 that says what its error says again."""

_UNKNOWN_FIELD: Final = re.compile(r'(?:unknown|duplicate) field "(?P<path>[^"]{1,1000})"')
_WARNINGS: Final = (
    re.compile(r"^WARNING: (?P<text>.+)$"),
    # klog, by which client-go passes on warnings of the API server, quoted and as information since 2026:
    # I1120 10:15:01.123456    42 warnings.go:107] "Warning: text"
    re.compile(r'^[IWE][0-9]{4} [0-9:.]+ +[0-9]+ warnings\.go:[0-9]+\] (?:"Warning: )?(?P<text>.+?)"?$'),
    re.compile(r"^[WE][0-9]{4} [0-9:.]+ +[0-9]+ [^\]]+\] (?P<text>.+)$"),
    # Go's log package with and without a file name: 2026/11/20 10:15:01 coalesce.go:286: warning: text
    re.compile(r"^(?:[0-9/]+ [0-9:]+ )?(?:\S+\.go:[0-9]+: )?warning: (?P<text>.+)$"),
    re.compile(r'^level=INFO msg="warning: (?P<text>.+)"$'),
    # slog, since Helm 4: time=… level=WARN msg="text" key=value
    re.compile(r"^(?:time=\S+ )?level=WARN msg=(?P<text>.+)$"),
)


class ObjectName(msgspec.Struct, frozen=True):
    """An object as Helm's errors name it."""

    kind: str
    name: str
    namespace: str | None
    """``None`` where Helm does not tell."""


class Explanation(msgspec.Struct, frozen=True):
    """Why Helm failed, on one line."""

    text: str
    """For the log: without objects, and without any value if it may be one of a Secret."""
    without_values: str | None
    """For everybody: names only. ``None`` if the form of the text is not known: nothing of it is shown."""


def explanation(stderr: str, exit_code: int) -> Explanation:
    """Return Helm's own explanation; ``stderr`` is all that it wrote: quotations need their beginning.

    Takes a moment for texts of many megabytes.
    """
    start = _ERROR_START.search(stderr)
    said = stderr[start.end() :] if start else stderr
    said = said.replace(_ADVICE_FOR_A_TERMINAL, "")
    if (ours := _OF_CHANGES.search(said)) is not None:
        return Explanation(ours[1], ours[1])
    if (irregular := _IRREGULAR.search(said)) is not None:
        text = f"{irregular['path']} {NOT_REGULAR}"
        return Explanation(text, text)
    if not said.strip():
        ended = f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        text = f"helm failed without a message ({ended})"
        return Explanation(text, text)
    if not quotations.is_known(said):
        return Explanation(_on_one_line(quotations.without_contents(said)), None)
    return Explanation(
        _on_one_line(quotations.without_contents(said)), _on_one_line(quotations.without_values(said))
    )


def _on_one_line(text: str) -> str:
    """Put the lines behind each other, each once; of a long text head and end."""
    lines = dict.fromkeys(" ".join(line.split()) for line in text.splitlines())
    shown = " ".join(filter(None, lines))
    if len(shown) <= _SHOWN_HEAD + _SHOWN_END:
        return shown
    return f"{shown[:_SHOWN_HEAD]} … {shown[-_SHOWN_END:]}"


def in_module(text: str, chart: pathlib.Path) -> str:
    """Return the text with the files of the chart as they lie on disk; Helm begins them with its name.

    What the chart says itself stays as it is.
    """
    head, mark, rest = text.partition(WORDS_OF_THE_CHART)
    place, end, words = rest.partition(")")
    return _on_disk(head, chart) + mark + _on_disk(place, chart) + end + words


def _on_disk(text: str, chart: pathlib.Path) -> str:
    return _FILE_OF_CHART.sub(lambda _: f"{chart}/", text)


def cause_first(verb: str, text: str) -> str:
    """Return what a verb of Helm failed with; of an error in a template the cause before its places."""
    if (of_chart := _of_chart(verb, text)) is not None:
        return of_chart
    if (before := _BEFORE_CAUSE.match(text)) is not None:
        return f"{_MAPPING.sub(_of_mapping, text[before.end() :])}, says helm {verb}"
    head, mark, last = text.rpartition(_IN_TEMPLATE)
    place, said, rest = last.partition(': executing "')
    _, begins, rest = rest.partition('" at <')
    field, ends, cause = rest.partition(">: ")
    # Before the first one stands at most that an installation or an upgrade failed.
    is_known = _IN_TEMPLATE in head or not head.rpartition("FAILED: ")[2].strip()
    if not (mark and said and begins and ends and cause and is_known):
        return f"helm {verb}: {text}"
    return f"{cause} at <{field}> in {place}, says helm {verb}"


def _of_mapping(found: re.Match[str]) -> str:
    return f"{found['cause']} (object {found['name']!r})"


def _of_chart(verb: str, text: str) -> str | None:
    """Return what a chart says with ``fail`` or ``required`` before where; ``None`` if it says nothing."""
    head, mark, rest = text.partition(f"{WORDS_OF_THE_CHART}(")
    place, ends, words = rest.partition("): ")
    is_first = not head.rpartition("FAILED: ")[2].strip()
    return (
        f"{words}{failure_causes.SAID_BY_THE_CHART}{place} (helm {verb})"
        if mark and ends and words and is_first
        else None
    )


def refused_changes(description: str) -> list[tuple[ObjectName, str]]:
    """Return the objects that Helm could not change, by its error, and what the API server says of each."""
    return [
        (
            ObjectName(start["kind"] or start["old_kind"], start["name"] or start["old"], start["namespace"]),
            said,
        )
        for start, said in text_parts.after_each(_CHANGE, description)
    ]


def unchangeable(description: str) -> frozenset[ObjectName]:
    """Return the objects that Helm could not change, by its error, because fields of them never change."""
    return frozenset(name for name, said in refused_changes(description) if fixed_fields.is_told(said))


def is_of_the_chart(text: str) -> bool:
    """Return whether the chart itself says so, by ``fail`` or ``required``."""
    return failure_causes.SAID_BY_THE_CHART in text or WORDS_OF_THE_CHART in text


def is_foreign(text: str) -> bool:
    """Return whether Helm refuses to make an object its own that exists already."""
    return _FOREIGN in text


def is_not_served(text: str) -> bool:
    """Return whether the cluster does not know a kind of the chart's objects."""
    return _NOT_SERVED in text


def is_outage(text: str) -> bool:
    """Say whether Helm failed because the API server gave no answer, not a webhook that it asks."""
    return _OUTAGE.search(text) is not None and "failed calling webhook" not in text


def is_too_large(text: str) -> bool:
    """Return whether a release has no room in its record."""
    return _TOO_LARGE.search(text) is not None


def advice(text: str, chart: str, namespace: str, *, creates: bool = False) -> str:
    """Say what to do about an error whose text does not say it itself, to be put behind it; else nothing.

    ``chart`` is the chart's directory, ``namespace`` that of the release, and ``creates`` says whether it is
    created if it is missing.
    """
    if _MISSING_DEPENDENCIES in text:
        return f"; run 'helm dependency build {chart}'"
    if is_too_large(text):
        return (
            "; a release can hold about 1 MiB, compressed: leave files out of the chart with .helmignore, "
            "or split the module"
        )
    for pattern, remedy in _REMEDIES:
        if pattern.search(text):
            return remedy
    if fixed := fixed_fields.advice(text, namespace):
        return fixed
    return _of_rights(text) or _of_namespace(text, namespace, creates=creates) or _of_kind(text)


def _of_kind(text: str) -> str:
    unknown = _UNKNOWN_KIND.search(text)
    if unknown is None:
        return ""
    version = unknown["version"] or ""
    if _BUILT_IN.fullmatch(version):
        return (
            f"; this cluster does not serve {unknown['kind']} of {version}: 'kubectl api-resources' shows "
            "what it serves; change the chart, or take a newer version of it"
        )
    return (
        f"; is the CustomResourceDefinition of {unknown['kind']} installed? Put it into crds/ of the module, "
        "or enable the module that brings it"
    )


def missing_namespace(text: str) -> str:
    """Return the namespace that is missing, by an error; empty if it is about something else."""
    missing = _MISSING_NAMESPACE.search(text)
    return "" if missing is None else missing["namespace"]


def _of_namespace(text: str, namespace: str, *, creates: bool) -> str:
    if not (missing := missing_namespace(text)):
        return ""
    command = f"kubectl create namespace {missing}"
    if missing == namespace and creates:
        return "; somebody has deleted the namespace meanwhile: it is created when this is tried again"
    if missing == namespace:
        return f"; create it with '{command}', or set createNamespace: true in module.yaml"
    return (
        f"; objects of the chart are in namespace {missing}: create it with '{command}', or add a Namespace "
        "to the templates"
    )


def _of_rights(text: str) -> str:
    if (denied := _FORBIDDEN_RECORD.search(text)) is not None:
        return (
            f"; Helm keeps its releases in {denied['resource']}: allow the operator to {_RECORD_VERBS} them "
            f"in namespace {denied['namespace']}"
        )
    if (denied := _FORBIDDEN_OBJECT.search(text)) is not None:
        return _rule_for(denied)
    return ""


def _rule_for(denied: re.Match[str]) -> str:
    """Return all verbs of Helm and healing for the kind: else one would be missing after another."""
    kind = "ClusterRole" if denied["cluster"] else "Role"
    verbs = ", ".join(f'"{verb}"' for verb in _OBJECT_VERBS)
    return (
        f"; add to the operator's {kind} the rule "
        f'apiGroups: ["{denied["group"]}"], resources: ["{denied["resource"]}"], verbs: [{verbs}]'
    )


def unknown_field(warning: str) -> str | None:
    """Return the path of the field that the API server does not know, or was given twice, if that is said."""
    found = _UNKNOWN_FIELD.fullmatch(warning)
    return found["path"] if found else None


def warning_text(line: str) -> str | None:
    """Return the text of a line that is a warning of Helm or the API server; ``None`` for other lines."""
    for pattern in _WARNINGS:
        match = pattern.match(line)
        if match is not None:
            text = match["text"].strip()
            if _FAILED_VERB.match(text):
                return None
            text = text.replace('\\"', '"')
            # A path is none of the values that quotations may hold, whatever characters it has.
            return text if unknown_field(text) is not None else quotations.without_contents(text)
    return None
