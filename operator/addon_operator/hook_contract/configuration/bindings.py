"""What a hook can be bound to, as its configuration says it."""

import enum
from typing import Final

import msgspec

from addon_operator.hook_contract import crontab

MAIN_QUEUE: Final = "main"
SCHEDULE_NAME: Final = "schedule"
"""Name of a schedule binding that has none."""
KUBERNETES_NAME: Final = "kubernetes"
"""Name of a kubernetes binding that has none."""


class LifecycleBinding(enum.StrEnum):
    """A step of the operator's or a module's life; the value is the key in the configuration."""

    ON_STARTUP = "onStartup"
    BEFORE_ALL = "beforeAll"
    AFTER_ALL = "afterAll"
    BEFORE_HELM = "beforeHelm"
    AFTER_HELM = "afterHelm"
    BEFORE_DELETE_HELM = "beforeDeleteHelm"
    AFTER_DELETE_HELM = "afterDeleteHelm"


class WatchEvent(enum.StrEnum):
    """What happened to a Kubernetes object."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"


class LabelOperator(enum.StrEnum):
    """How a label is compared; the meaning is that of ``LabelSelector`` in the Kubernetes API."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelRequirement(msgspec.Struct, frozen=True):
    """One item of ``matchExpressions``."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()

    def to_query(self) -> str:
        """Return the requirement as the API server's ``labelSelector`` parameter writes it."""
        match self.operator:
            case LabelOperator.EXISTS:
                return self.key
            case LabelOperator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case _:
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


class LabelSelector(msgspec.Struct, frozen=True):
    """Selects objects by their labels; all parts must match, and no part matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    """Label and value, sorted."""
    match_expressions: tuple[LabelRequirement, ...] = ()

    def to_query(self) -> str:
        """Return the API server's ``labelSelector`` parameter."""
        labels = [f"{key}={value}" for key, value in self.match_labels]
        return ",".join(labels + [requirement.to_query() for requirement in self.match_expressions])


class FieldRequirement(msgspec.Struct, frozen=True):
    """One item of ``fieldSelector.matchExpressions``."""

    field: str
    value: str
    is_equal: bool = True
    """Whether the field has to have the value, or must not have it."""

    def to_query(self) -> str:
        """Return the requirement as the API server's ``fieldSelector`` parameter writes it."""
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.is_equal else '!='}{escaped}"


class NamespaceSelector(msgspec.Struct, frozen=True):
    """The namespaces of a binding: those named, and those with the labels."""

    names: tuple[str, ...] = ()
    labels: LabelSelector | None = None


class BindingRow(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One binding, as people and other programs see it."""

    binding: str
    """The key in the configuration."""
    name: str = ""
    """Name of any other than a lifecycle step."""
    crontab: str = ""
    api_version: str = ""
    kind: str = ""
    resources: str = ""
    """What requests a webhook answers: ``CREATE,UPDATE ingresses.networking.k8s.io``."""
    order: int | None = None
    """ORDER of a lifecycle step."""
    queue: str = ""
    crd_name: str = ""
    """The CustomResourceDefinition whose objects a hook converts."""
    conversions: list[str] = []
    """The steps that it converts by: ``v1alpha1 to v1``."""


class ScheduleBinding(msgspec.Struct, frozen=True):
    """One item of ``schedule``."""

    crontab: crontab.Crontab
    name: str = SCHEDULE_NAME
    queue: str = MAIN_QUEUE
    group: str | None = None
    allow_failure: bool = False
    include_snapshots_from: tuple[str, ...] = ()
    """Names of the kubernetes bindings whose snapshots a run gets, those of its group included."""

    @property
    def row(self) -> BindingRow:
        """The binding as people see it."""
        return BindingRow("schedule", self.name, self.crontab.text, queue=self.queue)


class KubernetesBinding(msgspec.Struct, frozen=True):
    """One item of ``kubernetes``: the objects it is about and when they make the hook run."""

    kind: str
    api_version: str | None = None
    """``group/version`` or ``version``; ``None`` leaves it to the API server's preferred one."""
    name: str = KUBERNETES_NAME
    queue: str = MAIN_QUEUE
    group: str | None = None
    allow_failure: bool = False
    include_snapshots_from: tuple[str, ...] = ()
    """Names of the kubernetes bindings whose snapshots a run gets, those of its group included."""
    execute_on_event: frozenset[WatchEvent] = frozenset(WatchEvent)
    """Events that make the hook run; with none the binding only keeps a snapshot."""
    execute_on_synchronization: bool = True
    """Whether the hook runs once with all objects when the binding starts."""
    wait_for_synchronization: bool = True
    """Whether the module's (or the global hooks') next step waits for that run."""
    keep_full_objects: bool = True
    """Whether snapshots hold the objects, or only the results of ``jq_filter``."""
    keep_old_object: bool = False
    """Whether contexts of Modified show what was kept of the object before, too."""
    resynchronization_period: float | None = None
    """Seconds between further Synchronization runs."""
    names: tuple[str, ...] = ()
    """Names of the objects; with none every name will do."""
    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()
    namespaces: NamespaceSelector | None = None
    """``None``: the whole cluster."""
    jq_filter: str | None = None
    """The jq expression as text."""

    @property
    def row(self) -> BindingRow:
        """The binding as people see it."""
        version = self.api_version or ""
        return BindingRow("kubernetes", self.name, kind=self.kind, api_version=version, queue=self.queue)
