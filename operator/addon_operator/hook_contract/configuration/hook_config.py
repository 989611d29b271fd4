"""The configuration that a hook prints when it is started with ``--config``.

A configuration without ``configVersion`` is one of v0, here called legacy: such a hook never gets a
Synchronization run, and its contexts have a shape of their own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from addon_operator.documents import document_stream
from addon_operator.hook_contract import violations
from addon_operator.hook_contract.configuration import (
    binding_types,
    bindings,
    conversion_bindings,
    crosschecks,
    webhook_bindings,
)
from addon_operator.hook_contract.configuration.bindings import BindingRow, LifecycleBinding
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
_DEPRECATION: Final = "the configuration has no configVersion and is read as v0; write 'configVersion: v1'"
_OF_A_DOCUMENT: Final = re.compile(r"""[\s{}\[\]"',#%?&*|>-]|[\w./-]+[ \t]*:(?:\s|$)""")
"""How a line of JSON or YAML begins that is not indented."""
_SHOWN: Final = 80
_MOST: Final = 50
_MOST_CHARS: Final = 1000
"""How many mistakes are in one message, and how long each of them is."""
MAX_BINDINGS: Final = 500
"""Of each type. All may be of one group: then each of them has the snapshots of all of them."""
MAX_CONVERSIONS: Final = 500
"""Of all conversion bindings of a hook together."""


class HookConfigError(errors.ConfigurationError):
    """A hook's configuration cannot be read or is wrong; ``violations`` has each mistake on its own."""

    def __init__(self, source: str, *found: str) -> None:
        shown = [text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…" for text in found[:_MOST]]
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        super().__init__(f"{source}: invalid configuration: {'; '.join(shown)}{more}")
        self.source = source
        """Whose configuration it is."""
        self.violations = found


class HookSettings(msgspec.Struct, frozen=True):
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
    schedules: tuple[bindings.ScheduleBinding, ...] = ()
    kubernetes: tuple[bindings.KubernetesBinding, ...] = ()
    webhooks: tuple[webhook_bindings.WebhookBinding, ...] = ()
    """Bindings that answer requests of the API server."""
    conversions: tuple[conversion_bindings.ConversionBinding, ...] = ()
    settings: HookSettings = field(default_factory=HookSettings)
    warnings: tuple[str, ...] = ()
    """What is allowed and yet hardly meant, one sentence each."""

    @property
    def answering(
        self,
    ) -> tuple[webhook_bindings.WebhookBinding | conversion_bindings.ConversionBinding, ...]:
        """All bindings by which the API server asks the hook."""
        return (*self.webhooks, *self.conversions)

    @property
    def queued(self) -> tuple[bindings.ScheduleBinding | bindings.KubernetesBinding, ...]:
        """All bindings whose runs wait in queues, but for steps of life."""
        return (*self.schedules, *self.kubernetes)

    def order(self, binding: LifecycleBinding) -> int | None:
        """Return the ORDER of a lifecycle binding, ``None`` if the hook does not have it."""
        return self.orders.get(binding)


_CURRENT: Final = {kind: violations.Checker(schema) for kind, schema in binding_types.CURRENT.items()}
_LEGACY: Final = {kind: violations.Checker(schema) for kind, schema in binding_types.LEGACY.items()}


def parse(text: str, kind: HookKind, source: str) -> HookConfig:
    """Read a configuration in JSON or YAML; ``source`` names the hook in errors and warnings.

    Raises :class:`HookConfigError` with everything that is wrong.
    """
    return read(_document(text, source), kind, source)


def read(document: JsonObject, kind: HookKind, source: str) -> HookConfig:
    """Read a configuration that is a document already; otherwise the same as :func:`parse`."""
    is_legacy = "configVersion" not in document
    types = binding_types.LEGACY_TYPES if is_legacy else binding_types.TYPES
    checker = (_LEGACY if is_legacy else _CURRENT)[kind]
    wrong = [*_too_many(document, types)]
    around = crosschecks.Around.of({} if wrong else document)
    wrong = wrong or [*checker.find(document), *_contradictions(document, types, around)]
    if wrong:
        raise HookConfigError(source, *dict.fromkeys(wrong))
    warnings = _warnings(document, types, around, is_legacy=is_legacy)
    raw = cast("binding_types.Raw", document)
    groups = binding_types.group_snapshots(raw.get("kubernetes", ()))
    read_ones: dict[str, Any] = {each.field: () for each in types}
    for each in types:
        read_ones[each.field] += tuple(each.read(item, groups) for item in raw.get(each.key, ()))
    settings: binding_types.Raw = raw.get("settings", {})
    interval = settings.get("executionMinInterval", settings.get("executionMinPeriod"))
    return HookConfig(
        version=LEGACY_VERSION if is_legacy else VERSION,
        orders={binding: int(raw[binding]) for binding in LifecycleBinding if binding in raw},
        settings=HookSettings(
            execution_min_interval=binding_types.period(interval),
            execution_burst=settings.get("executionBurst") or None,
            execution_timeout=binding_types.period(settings.get("executionTimeout")),
        ),
        warnings=tuple(f"{source}: {warning}" for warning in warnings),
        **read_ones,
    )


def _too_many(document: JsonObject, types: Iterable[binding_types.BindingType]) -> Iterator[str]:
    """Yield which types of bindings are too many to look at each of them."""
    for each in types:
        listed = document.get(each.key)
        if isinstance(listed, list) and len(listed) > MAX_BINDINGS:
            yield f"{each.key}: it has {len(listed)} bindings, and may have {MAX_BINDINGS}; use several hooks"
    key = conversion_bindings.KEY
    found = (item.get("conversions") for _, item in crosschecks.items(document, key))
    rules = sum(len(listed) for listed in found if isinstance(listed, list))
    if rules > MAX_CONVERSIONS:
        yield f"{key}: it has {rules} conversions, and may have {MAX_CONVERSIONS}; use several hooks"


def _contradictions(
    document: JsonObject, types: Iterable[binding_types.BindingType], around: crosschecks.Around
) -> Iterator[str]:
    for each in types:
        listed = list(crosschecks.items(document, each.key))
        for check in each.checks:
            yield from check(listed, around)
    settings = document.get("settings")
    if isinstance(settings, dict) and {"executionMinInterval", "executionMinPeriod"} <= settings.keys():
        yield "settings: executionMinInterval and executionMinPeriod are two names of one thing; remove one"
    if not document.keys() - {"configVersion"}:
        yield "it binds the hook to nothing; add a binding such as 'onStartup: 10'"


def _warnings(
    document: JsonObject,
    types: Iterable[binding_types.BindingType],
    around: crosschecks.Around,
    *,
    is_legacy: bool,
) -> Iterator[str]:
    if is_legacy:
        yield _DEPRECATION
    if not document.keys() - {"configVersion", "settings"}:
        yield "there is no binding, so the hook never runs"
    for each in types:
        listed = list(crosschecks.items(document, each.key))
        for check in each.warnings:
            yield from check(listed, around)


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


def rows(read: HookConfig) -> Iterator[BindingRow]:
    """Yield all bindings, a row each: lifecycle steps first."""
    for step in LifecycleBinding:
        if (order := read.order(step)) is not None:
            yield BindingRow(step.value, order=order, queue=bindings.MAIN_QUEUE)
    yield from (each.row for each in (*read.queued, *read.answering))


def row_document(found: BindingRow) -> JsonObject:
    """Return the binding for other programs, without what it does not have."""
    return cast("JsonObject", msgspec.to_builtins(found))
