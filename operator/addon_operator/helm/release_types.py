"""What is asked of the release manager, and what it answers."""

import dataclasses
import enum
import pathlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from addon_operator.aio import absences
from addon_operator.documents import manifest_diff
from addon_operator.helm import command, messages, places, remembered
from addon_operator.kernel import json_types, names
from addon_operator.modules import manifests, release
from addon_operator.modules.patching import manifest_changes


class Others:
    """The releases beside one, as far as it shares objects with them; here there are none."""

    async def give_up(
        self, dropped: Sequence[manifests.ManifestResource]
    ) -> Collection[manifests.ManifestResource]:
        """Return what others have, too, of what the release drops; from now on it does not have it any more.

        Raises what the client raises.
        """
        del dropped
        return ()

    def made(self, revision: int) -> None:
        """Note that this release has another revision: from now on others see what it has."""

    def written(self) -> Collection[manifests.Identity]:
        """Return which objects of this release others are known to have written."""
        return ()

    def is_known(self, place: places.ReleaseLocation) -> bool:
        """Say whether :meth:`give_up` knows what the release of that place has."""
        del place
        return False

    async def may_gain(self) -> bool:
        """Say whether another module is new or changed, and has yet to run: it may gain what this one loses.

        Raises what the client raises.
        """
        return False

    async def later(
        self, resources: Sequence[manifests.ManifestResource]
    ) -> Collection[manifests.ManifestResource]:
        """Return which of the objects belong to a module that runs after this one.

        Raises what the client raises.
        """
        del resources
        return ()

    async def bodies(
        self, resources: Collection[manifests.ManifestResource]
    ) -> Mapping[manifests.ManifestResource, manifests.Object]:
        """Return what releases say of those of the objects that they have, this one among them.

        Raises what the client raises.
        """
        del resources
        return {}


class ReleaseAction(enum.StrEnum):
    """What was done to a release."""

    INSTALLED = "installed"
    UPGRADED = "upgraded"
    SKIPPED = "skipped"
    HELD_BACK = "held back"
    """The revision that is due is not made yet."""


class Operation(enum.StrEnum):
    """Parts of the work whose time is measured; the values are those of the metric's label ``operation``."""

    CHECK = "check-upgrade"
    TEMPLATE = "template"
    UPGRADE = "upgrade"


class TakeOwnership(enum.StrEnum):
    """Which objects that exist already become a release's."""

    ALWAYS = "always"
    LABELLED = "labelled"
    """Those that Helm or an addon-operator put its label on."""
    NEVER = "never"


class Options(msgspec.Struct, frozen=True):
    """Settings of all releases."""

    history_max: int = 10
    """Revisions that are kept; 0 for all (``HELM_HISTORY_MAX``)."""
    timeout: float = 20 * 60.0
    """Seconds for each single step of Helm (``HELM_TIMEOUT``)."""
    go_operator_labels: Mapping[str, str] = msgspec.field(
        default_factory=lambda: {"heritage": "addon-operator"}
    )
    """Labels that the Go operator puts on each object (``CRD_EXTRA_LABELS``): they make no difference."""
    take_ownership: TakeOwnership = TakeOwnership.ALWAYS
    common_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Labels on every resource of all releases (``COMMON_LABELS``)."""
    common_annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Annotations likewise (``COMMON_ANNOTATIONS``)."""
    removal_data: str = "keep"
    """What becomes of data when a release is removed whose module does not say it (``REMOVAL_DATA``)."""
    absence: float = absences.SECONDS
    """Seconds after which a part of a chart that is gone counts as removed (``ABSENCE``)."""


async def nothing() -> None:
    """Do nothing."""


class ReleaseRequest(msgspec.Struct, frozen=True):
    """A module as it should be released."""

    module: names.ModuleName
    directory: pathlib.Path
    values: json_types.JsonObject
    """What the chart gets."""
    absent: tuple[str, ...] = ()
    """Resources of the release that are missing in the cluster, as a person would name them."""
    fresh: bool = False
    """Whether the release's record is read now, not taken from the last list."""
    redact: command.Redact = str
    """Hides sensitive values in messages of Helm."""
    before_change: Callable[[], Awaitable[None]] = nothing
    """Called before anything is rendered for a release that is there: charts may look at its objects."""
    others: Others = msgspec.field(default_factory=Others)
    has_own_values: bool = True
    """Whether its ``values.yaml`` is a source of :attr:`values`, and must not lie below them once more."""
    create_namespace: bool = False
    """Whether the namespace of the release is created if it is missing."""
    is_stock: bool = False
    """Whether a release that no operator made is taken over with a revision, and only as
    :attr:`Options.take_ownership` allows it."""
    hook_places: str = ""
    """Where hooks wrote to in the values, to be saved with the revision; empty for nowhere."""
    enabled_modules: Sequence[json_types.JsonValue] | None = None
    """What the chart gets as ``global.enabledModules`` if it reads that; ``None`` if it never does."""
    changes: manifest_changes.ManifestChanges = manifest_changes.NOTHING
    """What the module changes of what its chart renders."""
    insists: bool = False
    """Whether it is tried although the last try of the same was taken back."""
    waits: bool = False
    """Whether a revision that would change what runs is held back."""
    removal: remembered.Removal = msgspec.field(default_factory=remembered.Removal)
    """How it is removed once it is deployed."""
    skips_schemas: bool = False
    """Whether Helm leaves the schemas of the chart to the operator, because it would fetch what they name."""

    @property
    def call(self) -> command.Call:
        """For whom Helm runs."""
        return command.Call(
            self.module,
            self.redact,
            self.directory,
            self.values,
            self.create_namespace,
            self.skips_schemas,
        )


class ReleaseOutcome(msgspec.Struct, frozen=True):
    """What was done to a release, and why."""

    action: ReleaseAction
    reason: str
    """For a person."""
    revision: int
    manifest_checksum: release.Checksum
    by: release.SkippedBy | None = None
    """What showed that nothing was to be done, when nothing was done."""
    recovered: tuple[str, ...] = ()
    """What was repaired first, for a person."""
    adopted: tuple[str, ...] = ()
    """Objects that existed and became the release's, for a person."""
    held_back: str = ""
    """The revision that is due and was not made, for a person; empty if none was held back."""
    is_broken: bool = False
    """Whether the last revision, to which nothing was done, is one that failed."""
    seconds: Mapping[Operation, float] = msgspec.field(default_factory=dict)
    """What took place and how long it took."""


@dataclasses.dataclass(frozen=True, slots=True)
class RevisionInputs:
    """What the last revision of a release was made with."""

    revision: int
    by_go_operator: bool
    """Whether the Go operator made it: it does not tell where hooks wrote to."""
    values: Mapping[str, Any] = dataclasses.field(repr=False)
    """What the chart was given."""
    hook_places: str | None
    """:attr:`ReleaseRequest.hook_places` of then."""
    made_at: int
    """When it was made or changed, in seconds since the epoch; 0 if that is not known."""
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    """What Helm laid below the values: the chart's own ``values.yaml``."""


class Deployed(msgspec.Struct, frozen=True):
    """What a release consists of, as the record of its deployed revision tells."""

    revision: int
    manifest: str
    """What Helm applied, without its hooks."""
    hooks: Sequence[str] = ()
    """Manifests of Helm's hooks."""
    is_server_side: bool = False
    """Whether Helm made the objects by server-side apply."""
    is_busy: bool = False
    """Whether a later revision is being made, or the release is being uninstalled."""
    settled: float = 0.0
    """When the last of its hooks ended, in seconds since the epoch; 0 if none ran."""
    left: Sequence[remembered.LeftField] = ()
    """What objects still have of earlier revisions, as the API server does not let go of it."""
    unchangeable: frozenset[messages.ObjectName] = frozenset()
    """Objects that the last revision failed to change, since the API server lets nobody change them so."""


class PlannedAction(enum.StrEnum):
    """What would be done to a release."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    NOTHING = "nothing"


@dataclasses.dataclass(frozen=True, slots=True)
class ReleasePreview:
    """What would be done to a release, and why, for a person: the plan of a run, and what it would change."""

    action: PlannedAction
    reason: str
    """For a person."""
    revision: int | None
    """The last revision; ``None`` if there is no release."""
    recoveries: tuple[str, ...] = ()
    """What would have to be repaired first, for a person."""
    changes: tuple[manifest_diff.ManifestChange, ...] = ()
    """Of the manifest, hooks included."""
    adopted: tuple[str, ...] = ()
    """Objects that exist and would become the release's, for a person."""
    by_chance: frozenset[manifest_diff.ManifestKey] = frozenset()
    """Objects that the chart fills with something else at each render."""
    may_wait: bool = False
    """Whether it is a revision that :attr:`ReleaseRequest.waits` holds back."""
    before: str = dataclasses.field(default="", repr=False)
    """What Helm applied with the last revision, if the release would change."""
    manifest: str = dataclasses.field(default="", repr=False)
    """What the release would consist of then, if it would change."""
