"""The configuration that a hook prints when it is started with ``--config``."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from addon_operator.documents import document_stream
from addon_operator.hook_contract import violations
from addon_operator.hook_contract.configuration import (
    config_schemas,
    crosschecks,
    reading,
)
from addon_operator.hook_contract.configuration.bindings import (
    MAIN_QUEUE,
    KubernetesBinding,
    LifecycleBinding,
    ScheduleBinding,
)
from addon_operator.hook_contract.configuration.config_schemas import HookKind
from addon_operator.kernel import errors
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


class HookConfigError(errors.ConfigurationError):
    """A hook's configuration cannot be read or is wrong; ``violations`` has each mistake on its own."""

    def __init__(self, source: str, *found: str) -> None:
        super().__init__(f"{source}: the configuration is not usable: {'; '.join(found)}")
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
    """All that a hook is bound to. The lifecycle bindings hold the hook's ORDER, or ``None`` if not bound."""

    version: str = VERSION
    """``v1``, or ``v0`` for a configuration without ``configVersion``."""
    on_startup: int | None = None
    before_all: int | None = None
    after_all: int | None = None
    before_helm: int | None = None
    after_helm: int | None = None
    before_delete_helm: int | None = None
    after_delete_helm: int | None = None
    schedules: tuple[ScheduleBinding, ...] = ()
    kubernetes: tuple[KubernetesBinding, ...] = ()
    settings: HookSettings = field(default_factory=HookSettings)
    warnings: tuple[str, ...] = ()
    """What is allowed and yet hardly meant, one sentence each."""

    def order(self, binding: LifecycleBinding) -> int | None:
        """The ORDER of a lifecycle binding, ``None`` if the hook does not have it."""
        return cast("int | None", getattr(self, _ATTRIBUTES[binding]))


_ATTRIBUTES: Final = {
    LifecycleBinding.ON_STARTUP: "on_startup",
    LifecycleBinding.BEFORE_ALL: "before_all",
    LifecycleBinding.AFTER_ALL: "after_all",
    LifecycleBinding.BEFORE_HELM: "before_helm",
    LifecycleBinding.AFTER_HELM: "after_helm",
    LifecycleBinding.BEFORE_DELETE_HELM: "before_delete_helm",
    LifecycleBinding.AFTER_DELETE_HELM: "after_delete_helm",
}
_CURRENT: Final = {kind: violations.Checker(schema) for kind, schema in config_schemas.CURRENT.items()}
_LEGACY: Final = {kind: violations.Checker(schema) for kind, schema in config_schemas.LEGACY.items()}


def parse(text: str, kind: HookKind, source: str) -> HookConfig:
    """Read a configuration in JSON or YAML; ``source`` names the hook in errors and warnings.

    Raises :class:`HookConfigError` with everything that is wrong.
    """
    document = _document(text, source)
    is_legacy = "configVersion" not in document
    checker = (_LEGACY if is_legacy else _CURRENT)[kind]
    found = [*checker.find(document), *crosschecks.violations_of(document)]
    if found:
        raise HookConfigError(source, *dict.fromkeys(found))
    warnings = tuple(f"{source}: {warning}" for warning in _warnings(document, is_legacy=is_legacy))
    orders = _orders(document)
    return _legacy(document, orders, warnings) if is_legacy else _current(document, orders, warnings)


def _document(text: str, source: str) -> JsonObject:
    try:
        document = document_stream.load(text)
    except document_stream.DocumentError as error:
        raise HookConfigError(source, str(error)) from error
    if document is None:
        raise HookConfigError(source, "--config printed nothing; print a configuration in JSON or YAML")
    if not isinstance(document, dict):
        raise HookConfigError(source, "--config printed no mapping; print a configuration in JSON or YAML")
    if document.get("configVersion", VERSION) != VERSION:
        raise HookConfigError(
            source,
            f"configVersion {document['configVersion']!r} is not known; write 'configVersion: {VERSION}'",
        )
    return document


def _warnings(document: JsonObject, *, is_legacy: bool) -> Iterator[str]:
    if is_legacy:
        yield reading.DEPRECATION
    yield from crosschecks.warnings_of(document)


def _orders(document: JsonObject) -> dict[str, Any]:
    return {
        attribute: int(cast("int", document[binding]))
        for binding, attribute in _ATTRIBUTES.items()
        if binding in document
    }


def _current(document: JsonObject, orders: dict[str, Any], warnings: tuple[str, ...]) -> HookConfig:
    raw = cast("reading.RawConfig", document)
    return HookConfig(
        **orders,
        version=VERSION,
        schedules=reading.schedules(raw),
        kubernetes=reading.kubernetes(raw),
        settings=_settings(raw.get("settings", {})),
        warnings=warnings,
    )


def _legacy(document: JsonObject, orders: dict[str, Any], warnings: tuple[str, ...]) -> HookConfig:
    raw = cast("reading.RawLegacyConfig", document)
    return HookConfig(
        **orders,
        version=LEGACY_VERSION,
        schedules=reading.legacy_schedules(raw),
        kubernetes=reading.legacy_kubernetes(raw),
        warnings=warnings,
    )


def _settings(raw: reading.RawSettings) -> HookSettings:
    return HookSettings(
        execution_min_interval=reading.period(raw.get("executionMinInterval", raw.get("executionMinPeriod"))),
        execution_burst=raw.get("executionBurst"),
        execution_timeout=reading.period(raw.get("executionTimeout")),
    )


@dataclass(frozen=True, slots=True)
class BindingRow:
    """One binding, as people see it."""

    binding: str
    """The key in the configuration."""
    name: str = ""
    """Name of a schedule or kubernetes binding."""
    crontab: str = ""
    kind: str = ""
    api_version: str = ""
    order: int | None = None
    """ORDER of a lifecycle step."""
    queue: str = MAIN_QUEUE


def rows(read: HookConfig) -> Iterator[BindingRow]:
    """All bindings, a row each: lifecycle steps first."""
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


def row_document(found: BindingRow) -> JsonObject:
    """The binding for other programs, without what it does not have."""
    members: JsonObject = {
        "binding": found.binding,
        "name": found.name,
        "crontab": found.crontab,
        "apiVersion": found.api_version,
        "kind": found.kind,
        "order": found.order,
        "queue": found.queue,
    }
    return {key: value for key, value in members.items() if value not in ("", None)}
