"""Whether Helm has something to do for a module: a pure function over what was observed.

It is asked before anything is rendered, and says "nothing" for a module whose inputs did not change. When it
says :class:`Render`, it is asked again with the checksum of the rendered manifest.
Source: "Releases deduplication" and "Release auto-healing" of the addon-operator documentation.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Final, NewType, TypeAlias

import msgspec

from addon_operator.kernel import names

Checksum = NewType("Checksum", str)
"""Hexadecimal digest that fits into the value of a label."""

MANAGED_LABEL: Final = "addon-operator.io/managed"
INPUTS_LABEL: Final = "addon-operator.io/inputs-checksum"
MANIFEST_LABEL: Final = "addon-operator.io/documents-checksum"
CHART_CHANGED: Final = "files of the chart changed, such as templates or values.yaml"
VALUES_CHANGED: Final = "the values, Helm or the cluster changed"
CHART_LABEL: Final = "addon-operator.io/chart-checksum"
OPERATOR_LABEL: Final = "addon-operator.io/operator"
"""On a release outside of the namespace of the operator that made it: that namespace."""
CONFIG_MAP_LABEL: Final = "addon-operator.io/config-map"
"""On a release: the values ConfigMap of the operator that made it."""
DIGEST_LABEL: Final = "addon-operator.io/digest"
"""On a revision: the keyed digest that proves that the operator, or its Helm, wrote its record."""
REVISION_LABEL: Final = "addon-operator.io/revision"
REMOVAL_LABEL: Final = "addon-operator.io/removal"
"""On a release whose record outlives its uninstallation until the hooks that follow it succeeded."""
REMOVAL_BEGUN: Final = "begun"
REJECTED_LABEL: Final = "addon-operator.io/rejected-inputs"
"""On a release that was rolled back: the checksum of the inputs that are not tried again."""
REJECTED_BECAUSE: Final = "addon-operator.io/rejected-because"
"""Annotation beside it: what failed. It names what a restarted operator waits for."""
HEALTHY_LABEL: Final = "addon-operator.io/healthy"
"""On a revision that was healthy: its number, as Helm copies labels to the next one."""
TESTED_LABEL: Final = "addon-operator.io/tested"
"""On a revision whose chart's tests succeeded: its number."""
GO_OPERATOR_LABEL: Final = "moduleChecksum"
"""What the Go operator puts on the releases that it makes."""

DEPLOYED: Final = "deployed"
SUPERSEDED: Final = "superseded"
FAILED: Final = "failed"
UNINSTALLED: Final = "uninstalled"
UNINSTALLING: Final = "uninstalling"
PENDING_PREFIX: Final = "pending-"
_ENDED: Final = frozenset({DEPLOYED, SUPERSEDED, FAILED, UNINSTALLED})
_NAMED_RESOURCES: Final = 3


class SkippedBy(enum.StrEnum):
    """What showed that there is nothing to do; the values are those of the metric's label ``by``."""

    INPUTS = "inputs"
    """Chart, values and cluster are those of the last revision: no process was started."""
    MANIFEST = "manifest"
    """The rendered manifest is that of the last revision."""


WILL_FAIL: Final = "the next revision will fail"
"""Stands in what is told of a release that stays as it is although its chart does not render any more."""


class Rendered(msgspec.Struct, frozen=True):
    """From which inputs a revision was made and what they rendered to."""

    inputs: Checksum
    manifest: Checksum
    chart: Checksum

    def labels(self, number: int) -> dict[str, str]:
        """Return the labels that save this with revision ``number`` of a release."""
        return {
            MANAGED_LABEL: "true",
            INPUTS_LABEL: self.inputs,
            MANIFEST_LABEL: self.manifest,
            CHART_LABEL: self.chart,
            REVISION_LABEL: str(number),
        }


class Revision(msgspec.Struct, frozen=True):
    """The last revision of a release, as its record tells."""

    release: str
    number: int
    status: str
    """Helm's name of the status: ``deployed``, ``failed``, ``pending-upgrade``, …"""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether an addon-operator made the release, this one or the Go one."""
        return self.labels.get(MANAGED_LABEL) == "true" or GO_OPERATOR_LABEL in self.labels

    @property
    def operator(self) -> str:
        """Namespace of the operator that made the release, if the release is in another one; else empty."""
        return self.labels.get(OPERATOR_LABEL, "")

    @property
    def config_map(self) -> str:
        """The values ConfigMap of the operator that made the release; empty if that is not known."""
        return self.labels.get(CONFIG_MAP_LABEL, "")

    @property
    def by_go_operator(self) -> bool:
        """Whether the Go operator made this revision."""
        return GO_OPERATOR_LABEL in self.labels and self.labels.get(MANAGED_LABEL) != "true"

    @property
    def exists(self) -> bool:
        """Whether there is something to uninstall, or at least to finish."""
        return self.status != UNINSTALLED

    @property
    def half_removed(self) -> bool:
        """Whether it is uninstalled, and its record only says that hooks of the module have yet to run."""
        return not self.exists and self.labels.get(REMOVAL_LABEL) == REMOVAL_BEGUN

    def is_marked(self, label: str) -> bool:
        """Say whether a label is about this revision: Helm copies labels to the next one."""
        return self.labels.get(label) == str(self.number)

    @property
    def is_busy(self) -> bool:
        """Whether Helm is at work on the release, or was ended while it was."""
        return self.status == UNINSTALLING or self.status.startswith(PENDING_PREFIX)

    @property
    def saved(self) -> Rendered | None:
        """What the labels tell, or ``None`` if they do not speak of this revision.

        Helm copies labels from one revision to the next: after a ``helm upgrade`` or ``helm rollback`` by
        hand they describe another revision, which the revision label shows.
        """
        inputs, manifest = self.labels.get(INPUTS_LABEL), self.labels.get(MANIFEST_LABEL)
        if not inputs or not manifest or self.labels.get(REVISION_LABEL) != str(self.number):
            return None
        return Rendered(Checksum(inputs), Checksum(manifest), Checksum(self.labels.get(CHART_LABEL, "")))


class ReleaseState(msgspec.Struct, frozen=True):
    """Everything that a decision about a release depends on."""

    revision: Revision | None
    """The last revision; ``None`` if there is no release."""
    inputs: Checksum
    """Of chart files, values, Helm's version and what the chart may see of the cluster."""
    chart: Checksum
    """Of the chart's files alone."""
    rendered: Rendered | None = None
    """What this process itself rendered for exactly this revision, if it did."""
    absent: tuple[str, ...] = ()
    """Resources of the release that are missing in the cluster, as a person would name them."""
    manifest: Checksum | None = None
    """Of the rendered manifest; ``None`` as long as it is not rendered."""
    was_deployed: bool = True
    """Whether a revision of the release worked once, so that Helm upgrades."""
    lost: int = 0
    """Without a release: the revision that was deployed last, if nobody here uninstalled it."""
    is_foreign: bool = False
    """Whether others made or changed the last revision: nothing is concluded from it."""
    applied: bool = False
    """Whether the rendered manifest is that of the last revision, as its record shows: asked only if
    checksums of ours do not show it, or a chart may render to something else each time."""

    @property
    def known(self) -> Rendered | None:
        """From what the last revision was made, as far as that is known."""
        return self.rendered or (self.revision.saved if self.revision else None)


class Recover(msgspec.Struct, frozen=True):
    """The release is stuck: let its record say that the revision failed, look again, decide again."""

    reason: str


class Render(msgspec.Struct, frozen=True):
    """Render the manifest to find out more."""

    reason: str


class Skip(msgspec.Struct, frozen=True):
    """Make no revision."""

    by: SkippedBy
    reason: str


class Install(msgspec.Struct, frozen=True):
    """Make the first revision that works, with the hooks that the chart has for an installation."""

    reason: str
    is_again: bool = False
    """Whether earlier tries failed: objects of theirs may be there."""


class Upgrade(msgspec.Struct, frozen=True):
    """Make another revision."""

    reason: str
    validate: bool
    """Whether Helm checks the manifest against the cluster's OpenAPI schemas: two thirds of its time."""
    heals: bool = False
    """Whether all that it changes is that resources of the last revision are there again."""


Decision: TypeAlias = Recover | Skip | Install | Render | Upgrade


def decide(state: ReleaseState) -> Decision:
    """Decide what is to be done for a release; :class:`Render` only as long as nothing is rendered."""
    revision = state.revision
    if revision is None and state.lost:
        return Install(f"the records of the release are gone, and revision {state.lost} was deployed")
    if revision is None or revision.status == UNINSTALLED:
        # A render as an upgrade would fail for charts that demand then what they make at the install.
        return Install("first revision")
    stuck = _recovery(revision)
    if stuck is not None:
        return stuck
    if revision.status == FAILED and not state.was_deployed:
        return Install(f"revision {revision.number} is failed, and none was deployed before", is_again=True)
    if state.manifest is None:
        return _before_render(state, revision)
    return _after_render(state, revision, state.manifest)


def _before_render(state: ReleaseState, revision: Revision) -> Skip | Render:
    cause = cause_whatever_the_inputs(state, revision) or _changed_input(state)
    if cause is not None:
        return Render(cause)
    return Skip(SkippedBy.INPUTS, f"chart and values are those of revision {revision.number}")


def _after_render(state: ReleaseState, revision: Revision, manifest: Checksum) -> Skip | Upgrade:
    cause = cause_whatever_the_inputs(state, revision)
    is_other = state.known is not None and state.known.manifest != manifest and not state.applied
    if cause is None and is_other:
        cause = _changed_input(state) or "the rendered manifest changed"
    if cause is None:
        return Skip(SkippedBy.MANIFEST, f"the manifest is that of revision {revision.number}")
    heals = revision.status == DEPLOYED and bool(state.absent) and _is_known(state) and not is_other
    heals = heals and not state.is_foreign
    return Upgrade(cause, validate=_needs_validation(state, revision), heals=heals)


def removal_taken_back(revision: Revision) -> str:
    """Say that a removal that had begun is taken back."""
    return f"the removal of revision {revision.number} is taken back"


def _recovery(revision: Revision) -> Recover | None:
    if revision.is_busy:
        return Recover(f"revision {revision.number} is stuck in {revision.status}: it counts as failed")
    if revision.status not in _ENDED:
        told = f"revision {revision.number} has the status {revision.status!r}, with which Helm does nothing"
        return Recover(f"{told}: it counts as failed")
    return None


def cause_whatever_the_inputs(state: ReleaseState, revision: Revision) -> str | None:
    """Return why a revision is due although nothing that it is made from changed; ``None`` if none is."""
    if revision.status != DEPLOYED:
        return f"revision {revision.number} is {revision.status}"
    if state.is_foreign and revision.ours:
        return f"revision {revision.number} was made or changed by others"
    if state.absent:
        return absence(state.absent)
    if not _is_known(state):
        if revision.labels.get(MANAGED_LABEL) == "true" and not _is_by_hand(revision):
            return f"from what revision {revision.number} was made is not known"
        return f"revision {revision.number} was not made by this operator"
    return None


def _is_known(state: ReleaseState) -> bool:
    """Say whether what the last revision consists of is known."""
    return state.known is not None or state.applied


def _is_by_hand(revision: Revision) -> bool:
    """Say whether the labels were copied from the revision before, as Helm does."""
    return revision.labels.get(REVISION_LABEL, str(revision.number)) != str(revision.number)


def absence(resources: Sequence[str]) -> str:
    """Name a few absent resources and count the others."""
    return f"absent in the cluster: {names.listed(resources, _NAMED_RESOURCES)}"


def _changed_input(state: ReleaseState) -> str | None:
    known = state.known
    if known is None or known.inputs == state.inputs:
        return None
    return CHART_CHANGED if known.chart != state.chart else VALUES_CHANGED


def _needs_validation(state: ReleaseState, revision: Revision) -> bool:
    known = state.known
    return revision.status != DEPLOYED or known is None or known.chart != state.chart
