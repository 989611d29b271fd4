"""Bindings that answer requests of the API server, as their hook's configuration says them."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from addon_operator.hook_contract.configuration import bindings

DEFAULT_TIMEOUT: Final = 10
"""Seconds that the API server waits if the binding does not say it."""

FailurePolicy: TypeAlias = Literal["Ignore", "Fail"]
SideEffects: TypeAlias = Literal["None", "NoneOnDryRun"]
_Raw: TypeAlias = Mapping[str, Any]
"""A part of a configuration that was checked; :mod:`.webhook_schemas` says which keys and types it has."""


class ReviewType(enum.StrEnum):
    """What the API server asks; the value is the ``type`` of the hook's context."""

    VALIDATING = "Validating"
    MUTATING = "Mutating"

    @property
    def key(self) -> str:
        """The key in the configuration."""
        return f"kubernetes{self.value}"


def is_wide(groups: Sequence[object], resources: Sequence[object]) -> bool:
    """Say whether a rule with these does not name its resources."""
    return "*" in groups or "*" in resources or "*/*" in resources


@dataclass(frozen=True, slots=True)
class WebhookRule:
    """Operations on resources; the meaning is that of ``RuleWithOperations`` in the Kubernetes API."""

    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    scope: str = "*"

    @property
    def is_wide(self) -> bool:
        """Whether it does not name its resources, and so stands for what clusters live by, too."""
        return is_wide(self.api_groups, self.resources)


@dataclass(frozen=True, slots=True)
class WebhookBinding:
    """One item of ``kubernetesValidating`` or ``kubernetesMutating``."""

    type: ReviewType
    name: str
    """A domain of at least three segments, by which users know the webhook."""
    rules: tuple[WebhookRule, ...] = ()
    include_snapshots_from: tuple[str, ...] = ()
    """Names of the kubernetes bindings whose snapshots a run gets, those of its group included."""
    objects: bindings.LabelSelector | None = None
    """Selects objects by their labels; ``None``: all."""
    namespaces: bindings.LabelSelector | None = None
    """Selects namespaces by their labels; ``None``: all."""
    failure_policy: FailurePolicy = "Fail"
    """What the API server does when it gets no answer."""
    side_effects: SideEffects = "None"
    timeout_seconds: int = DEFAULT_TIMEOUT
    """How long the API server waits."""
    match_conditions: tuple[tuple[str, str], ...] = ()
    """Names and CEL expressions; all have to hold."""

    @property
    def key(self) -> str:
        """The key in the configuration."""
        return self.type.key


ReadLabels: TypeAlias = Callable[[_Raw | None], bindings.LabelSelector | None]


def read(document: _Raw, groups: Mapping[str, Sequence[str]], labels: ReadLabels) -> Iterator[WebhookBinding]:
    """Yield the bindings of a checked configuration.

    ``groups`` are the names of kubernetes bindings by their group; ``labels`` reads a label selector.
    """
    for asked in ReviewType:
        for item in document.get(asked.key, ()):
            yield _binding(asked, item, groups, labels)


def _binding(
    asked: ReviewType, item: _Raw, groups: Mapping[str, Sequence[str]], labels: ReadLabels
) -> WebhookBinding:
    snapshots = [*item.get("includeSnapshotsFrom", ()), *groups.get(item.get("group", ""), ())]
    return WebhookBinding(
        type=asked,
        name=item["name"],
        rules=tuple(map(_rule, item["rules"])),
        include_snapshots_from=tuple(dict.fromkeys(snapshots)),
        objects=labels(item.get("labelSelector")),
        namespaces=labels(item.get("namespace", {}).get("labelSelector")),
        failure_policy=item.get("failurePolicy", "Fail"),
        side_effects=item.get("sideEffects", "None"),
        timeout_seconds=int(item.get("timeoutSeconds", DEFAULT_TIMEOUT)),
        match_conditions=tuple(
            (each["name"], each["expression"]) for each in item.get("matchConditions", ())
        ),
    )


def _rule(raw: _Raw) -> WebhookRule:
    return WebhookRule(
        api_groups=tuple(raw["apiGroups"]),
        api_versions=tuple(raw["apiVersions"]),
        resources=tuple(raw["resources"]),
        operations=tuple(raw["operations"]),
        scope=raw.get("scope", "*"),
    )
