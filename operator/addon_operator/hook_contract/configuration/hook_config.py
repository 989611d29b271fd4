"""The configuration that a hook prints when it is started with ``--config``.

A configuration without ``configVersion`` is one of v0, here called legacy: such a hook never gets a
Synchronization run, and its contexts have a shape of their own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from addon_operator.documents import document_stream
from addon_operator.hook_contract import crontab, violations
from addon_operator.hook_contract.configuration import (
    config_schemas,
    conversion_bindings,
    crosschecks,
    webhook_bindings,
)
from addon_operator.hook_contract.configuration.bindings import (
    KUBERNETES_NAME,
    MAIN_QUEUE,
    SCHEDULE_NAME,
    FieldRequirement,
    KubernetesBinding,
    LabelOperator,
    LabelRequirement,
    LabelSelector,
    LifecycleBinding,
    NamespaceSelector,
    ScheduleBinding,
    WatchEvent,
)
from addon_operator.hook_contract.configuration.config_schemas import HookKind
from addon_operator.kernel import clock, errors
from addon_operator.kernel.json_types import JsonObject

__all__ = [
    "BindingRow",
    "HookConfig",
    "HookConfigError",
    "HookKind",
    "HookSettings",
    "LifecycleBinding",
    "parse",
    "row_document",
    "rows",
]

VERSION: Final = "v1"
LEGACY_VERSION: Final = "v0"
_DEPRECATION: Final = "the configuration has no configVersion and is read as v0; write 'configVersion: v1'"
_OF_A_DOCUMENT: Final = re.compile(r"""[\s{}\[\]"',#%?&*|>-]|[\w./-]+[ \t]*:(?:\s|$)""")
"""How a line of JSON or YAML begins that is not indented."""
_SHOWN: Final = 80
_MOST: Final = 50
_MOST_CHARS: Final = 1000
"""How many mistakes are in one message, and how long each of them is."""
_EQUAL: Final = frozenset({"=", "==", "Equals"})
_LEGACY_EVENTS: Final = {
    "add": WatchEvent.ADDED,
    "update": WatchEvent.MODIFIED,
    "delete": WatchEvent.DELETED,
}

_Raw: TypeAlias = Mapping[str, Any]
"""A part of a configuration that was checked; :mod:`.config_schemas` says which keys and types it has."""


class HookConfigError(errors.ConfigurationError):
    """A hook's configuration cannot be read or is wrong; ``violations`` has each mistake on its own."""

    def __init__(self, source: str, *found: str) -> None:
        shown = [text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…" for text in found[:_MOST]]
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        super().__init__(f"{source}: invalid configuration: {'; '.join(shown)}{more}")
        self.source = source
        """Whose configuration it is."""
        self.violations = found


@dataclass(frozen=True, slots=True)
class HookSettings:
    """How often and how long a hook may run."""

    execution_min_interval: float | None = None
    """Seconds within which ``execution_burst`` runs are allowed."""
    execution_burst: int | None = None
    execution_timeout: float | None = None
    """Seconds after which a run is ended; ``None``: the operator's default."""


@dataclass(frozen=True, slots=True)
class HookConfig:
    """All that a hook is bound to."""

    version: str = VERSION
    """``v1``, or ``v0`` for a configuration without ``configVersion``."""
    orders: Mapping[LifecycleBinding, int] = field(default_factory=dict, hash=False)
    """The hook's ORDER in each lifecycle binding that it has."""
    schedules: tuple[ScheduleBinding, ...] = ()
    kubernetes: tuple[KubernetesBinding, ...] = ()
    webhooks: tuple[webhook_bindings.WebhookBinding, ...] = ()
    """Bindings that answer requests of the API server."""
    conversions: tuple[conversion_bindings.ConversionBinding, ...] = ()
    settings: HookSettings = field(default_factory=HookSettings)
    warnings: tuple[str, ...] = ()
    """What is allowed and yet hardly meant, one sentence each."""

    def order(self, binding: LifecycleBinding) -> int | None:
        """Return the ORDER of a lifecycle binding, ``None`` if the hook does not have it."""
        return self.orders.get(binding)


_CURRENT: Final = {kind: violations.Checker(schema) for kind, schema in config_schemas.CURRENT.items()}
_LEGACY: Final = {kind: violations.Checker(schema) for kind, schema in config_schemas.LEGACY.items()}


def parse(text: str, kind: HookKind, source: str) -> HookConfig:
    """Read a configuration in JSON or YAML; ``source`` names the hook in errors and warnings.

    Raises :class:`HookConfigError` with everything that is wrong.
    """
    return read(_document(text, source), kind, source)


def read(document: JsonObject, kind: HookKind, source: str) -> HookConfig:
    """Read a configuration that is a document already; otherwise the same as :func:`parse`."""
    is_legacy = "configVersion" not in document
    checker = (_LEGACY if is_legacy else _CURRENT)[kind]
    wrong = [*crosschecks.too_many(document)]
    wrong = wrong or [*checker.find(document), *crosschecks.violations_of(document)]
    if wrong:
        raise HookConfigError(source, *dict.fromkeys(wrong))
    warnings = tuple(f"{source}: {warning}" for warning in _warnings(document, is_legacy=is_legacy))
    raw = cast("_Raw", document)
    watched = raw.get("kubernetes", ())
    groups = _group_snapshots(watched)
    return HookConfig(
        version=LEGACY_VERSION if is_legacy else VERSION,
        orders={binding: int(raw[binding]) for binding in LifecycleBinding if binding in raw},
        schedules=tuple(
            ScheduleBinding(
                **_common(item, SCHEDULE_NAME, groups),
                crontab=crontab.parse(item["crontab"], item.get("timezone")),
            )
            for item in raw.get("schedule", ())
        ),
        kubernetes=(
            *(_kubernetes(item, groups) for item in watched),
            *(_legacy_kubernetes(item) for item in raw.get("onKubernetesEvent", ())),
        ),
        webhooks=tuple(webhook_bindings.read(raw, groups, _label_selector)),
        conversions=tuple(conversion_bindings.read(raw, groups)),
        settings=_settings(raw.get("settings", {})),
        warnings=warnings,
    )


def _stray(text: str) -> str:
    """Say which line beside a configuration is a message; empty if there is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if line and not _OF_A_DOCUMENT.match(line):
            shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
            return (
                f"--config printed {shown!r} in line {number}, which is no part of a configuration; write "
                "messages to standard error, such as with >&2"
            )
    return ""


def _document(text: str, source: str) -> JsonObject:
    try:
        document = document_stream.load(text)
    except document_stream.DocumentError as error:
        raise HookConfigError(source, _stray(text) or str(error)) from error
    if document is None:
        raise HookConfigError(source, "--config printed nothing; print a configuration in JSON or YAML")
    if not isinstance(document, dict):
        said = _stray(text) or "--config printed no mapping; print a configuration in JSON or YAML"
        raise HookConfigError(source, said)
    if document.get("configVersion", VERSION) != VERSION:
        raise HookConfigError(
            source,
            f"configVersion {document['configVersion']!r} is not known; write 'configVersion: {VERSION}'",
        )
    return document


def _warnings(document: JsonObject, *, is_legacy: bool) -> Iterator[str]:
    if is_legacy:
        yield _DEPRECATION
    yield from crosschecks.warnings_of(document)


def _settings(raw: _Raw) -> HookSettings:
    return HookSettings(
        execution_min_interval=_period(raw.get("executionMinInterval", raw.get("executionMinPeriod"))),
        execution_burst=raw.get("executionBurst") or None,
        execution_timeout=_period(raw.get("executionTimeout")),
    )


def _group_snapshots(items: Iterable[_Raw]) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = {}
    for item in items:
        if name := item.get("group"):
            groups.setdefault(name, []).append(item.get("name") or KUBERNETES_NAME)
    return groups


def _common(item: _Raw, default_name: str, groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what schedule and kubernetes bindings have in common."""
    listed = [*item.get("includeSnapshotsFrom", ()), *groups.get(item.get("group", ""), ())]
    return {
        "name": item.get("name") or default_name,
        "queue": item.get("queue") or MAIN_QUEUE,
        "group": item.get("group") or None,
        "allow_failure": item.get("allowFailure", False),
        "include_snapshots_from": tuple(dict.fromkeys(listed)),
    }


def _kubernetes(item: _Raw, groups: Mapping[str, Sequence[str]]) -> KubernetesBinding:
    common = _common(item, KUBERNETES_NAME, groups)
    return KubernetesBinding(
        **common,
        kind=item["kind"],
        api_version=item.get("apiVersion") or None,
        execute_on_event=_events(item),
        execute_on_synchronization=item.get("executeHookOnSynchronization", True),
        # In "main" the next step waits behind the Synchronization run in any case.
        wait_for_synchronization=item.get("waitForSynchronization", True) or common["queue"] == MAIN_QUEUE,
        keep_full_objects=item.get("keepFullObjectsInMemory", True),
        keep_old_object=item.get("keepOldObject", False),
        resynchronization_period=_period(item.get("resynchronizationPeriod")),
        names=_names(item.get("nameSelector")),
        labels=_label_selector(item.get("labelSelector")),
        fields=_fields(item),
        namespaces=_namespaces(item.get("namespace")),
        jq_filter=item.get("jqFilter") or None,
    )


def _events(item: _Raw) -> frozenset[WatchEvent]:
    names = item.get("executeHookOnEvent", item.get("watchEvent"))
    return frozenset(WatchEvent) if names is None else frozenset(map(WatchEvent, names))


def _names(raw: _Raw | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(raw["matchNames"])) if raw else ()


def _fields(item: _Raw) -> tuple[FieldRequirement, ...]:
    return tuple(
        FieldRequirement(raw["field"], raw["value"], is_equal=raw["operator"] in _EQUAL)
        for raw in item.get("fieldSelector", {}).get("matchExpressions", ())
    )


def _namespaces(raw: _Raw | None) -> NamespaceSelector | None:
    if raw is None:
        return None
    return NamespaceSelector(_names(raw.get("nameSelector")), _label_selector(raw.get("labelSelector")))


def _legacy_kubernetes(item: _Raw) -> KubernetesBinding:
    name = item.get("objectName")
    return KubernetesBinding(
        kind=item["kind"],
        name=item.get("name") or "onKubernetesEvent",
        allow_failure=item.get("allowFailure", False),
        execute_on_event=frozenset(_LEGACY_EVENTS[event] for event in item.get("event", _LEGACY_EVENTS)),
        execute_on_synchronization=False,
        wait_for_synchronization=False,
        names=(name,) if name else (),
        labels=_label_selector(item.get("selector")),
        namespaces=_legacy_namespaces(item.get("namespaceSelector")),
        jq_filter=item.get("jqFilter") or None,
    )


def _legacy_namespaces(raw: _Raw | None) -> NamespaceSelector | None:
    if raw is None or raw.get("any") or not raw.get("matchNames"):
        return None
    return NamespaceSelector(tuple(dict.fromkeys(raw["matchNames"])))


def _label_selector(raw: _Raw | None) -> LabelSelector | None:
    if raw is None:
        return None
    return LabelSelector(
        match_labels=tuple(sorted(raw.get("matchLabels", {}).items())),
        match_expressions=tuple(
            LabelRequirement(item["key"], LabelOperator(item["operator"]), tuple(item.get("values", ())))
            for item in raw.get("matchExpressions", ())
        ),
    )


def _period(text: str | None) -> float | None:
    return None if text is None else clock.parse_duration(text)


@dataclass(frozen=True, slots=True)
class BindingRow:
    """One binding, as people see it."""

    binding: str
    """The key in the configuration."""
    name: str = ""
    """Name of any other than a lifecycle step."""
    crontab: str = ""
    kind: str = ""
    api_version: str = ""
    resources: str = ""
    """What requests a webhook answers: ``CREATE,UPDATE ingresses.networking.k8s.io``."""
    order: int | None = None
    """ORDER of a lifecycle step."""
    queue: str = MAIN_QUEUE
    crd: str = ""
    """The CustomResourceDefinition whose objects a hook converts."""
    conversions: tuple[str, ...] = ()
    """The steps that it converts by: ``v1alpha1 to v1``."""


def rows(read: HookConfig) -> Iterator[BindingRow]:
    """Yield all bindings, a row each: lifecycle steps first."""
    for step in LifecycleBinding:
        if (order := read.order(step)) is not None:
            yield BindingRow(step.value, order=order)
    for schedule in read.schedules:
        yield BindingRow("schedule", schedule.name, schedule.crontab.text, queue=schedule.queue)
    for watched in read.kubernetes:
        yield BindingRow(
            "kubernetes",
            watched.name,
            kind=watched.kind,
            api_version=watched.api_version or "",
            queue=watched.queue,
        )
    for webhook in read.webhooks:
        yield BindingRow(webhook.type.key, webhook.name, resources=_resources(webhook), queue="")
    for converting in read.conversions:
        steps = tuple(f"{rule.from_version} to {rule.to_version}" for rule in converting.rules)
        yield BindingRow(
            conversion_bindings.KEY, converting.name, queue="", crd=converting.crd_name, conversions=steps
        )


def _resources(webhook: webhook_bindings.WebhookBinding) -> str:
    return "; ".join(
        f"{','.join(rule.operations)} "
        + ",".join(
            f"{resource}.{group}" if group else resource
            for resource in rule.resources
            for group in rule.api_groups
        )
        for rule in webhook.rules
    )


def row_document(found: BindingRow) -> JsonObject:
    """Return the binding for other programs, without what it does not have."""
    members: JsonObject = {
        "binding": found.binding,
        "name": found.name,
        "crontab": found.crontab,
        "apiVersion": found.api_version,
        "kind": found.kind,
        "resources": found.resources,
        "order": found.order,
        "queue": found.queue,
        "crdName": found.crd,
        "conversions": list(found.conversions),
    }
    return {key: value for key, value in members.items() if value not in ("", None, [])}
