"""Bindings that answer requests of the API server, as their hook's configuration says them."""

import enum
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from addon_operator.hook_contract.configuration import bindings

DEFAULT_TIMEOUT: Final = 10
"""Seconds that the API server waits if the binding does not say it."""

FailurePolicy: TypeAlias = Literal["Ignore", "Fail"]
SideEffects: TypeAlias = Literal["None", "NoneOnDryRun"]


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
    # By their status nodes are ready.
    return "*" in groups or any(each in resources for each in ("*", "*/*", "*/status"))


class WebhookRule(msgspec.Struct, frozen=True):
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


class WebhookBinding(msgspec.Struct, frozen=True):
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

    @property
    def row(self) -> bindings.BindingRow:
        """The binding as people see it."""
        resources = "; ".join(
            f"{','.join(rule.operations)} "
            + ",".join(
                f"{resource}.{group}" if group else resource
                for resource in rule.resources
                for group in rule.api_groups
            )
            for rule in self.rules
        )
        return bindings.BindingRow(self.key, self.name, resources=resources)
