"""What there is to know of a module beside its runs: one table of its kinds, the worst first.

Whatever shows modules shows findings: the condition ``Ready``, the page, ``module list``, Module objects and
notifications loop over them. A new one is a row here, the rule that finds it, and the call that notes it.
"""

import dataclasses
import enum
from collections.abc import Iterable
from typing import Final, TypedDict

import msgspec

from addon_operator.kernel import clock
from addon_operator.modules.news import NewsKind


class Group(enum.StrEnum):
    """How modules are, as people sort them; the worst first. Each module is in one."""

    FAILED = "Failed"
    """Its last run or its removal failed, or a resource does not work."""
    ATTENTION = "Needs attention"
    """It runs, but somebody has to do something, or has asked to leave it alone."""
    WORKING = "In progress"
    READY = "Ready"
    DISABLED = "Disabled"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindingKind:
    """A row of the table."""

    type: str
    """What it is called in ``findings``."""
    word: str
    """What the page calls a module of which this is the worst."""
    reason: str = ""
    """Of the condition ``Ready`` then; empty if it is the type."""
    group: Group = Group.ATTENTION
    sentence: str = "{}"
    """How a text of it is a sentence."""
    joint: str = ""
    """What stands between its texts in one sentence; empty if each has a sentence of its own."""
    begins: str = ""
    """What stands before the sentence, unless the word stands beside it."""
    remedy: str = ""
    """What stands behind it then: what to do for the ``{module}``."""
    condition: str = ""
    """Which condition says since when; empty if the finding knows better."""
    condition_reason: str = ""
    """Of that condition, if findings make it; empty if it is that of ``Ready``."""
    key: str = ""
    """Under which the debug socket has its texts, too."""
    stored: str = ""
    """Under which the status of Module objects has them, too."""
    is_list: bool = False
    """Whether both have a list."""
    is_standstill: bool = False
    """Whether it is why nothing happens; of these, none hides the others."""
    news: NewsKind | None = None
    """As what people are told of it; ``None`` if nobody is."""
    is_unready: bool = False
    """Whether a module is not Ready because of it, although its last run succeeded."""


UNHEALTHY: Final = FindingKind(
    type="Unhealthy",
    word="Unhealthy",
    group=Group.FAILED,
    begins="it is not healthy: ",
    condition="Healthy",
    news=NewsKind(
        key="unhealthy",
        began="is unhealthy",
        over="is healthy again",
        no_longer="is no longer unhealthy",
        since="Its resources have not been healthy since",
        follows="The operator goes on watching them",
        is_usual=True,
    ),
)
CHANGED_BY_OTHERS: Final = FindingKind(
    type="ChangedByOthers",
    word="Changed by others",
    condition="Ready",
    key="foreignRecord",
    stored="foreignRecord",
    is_unready=True,
)
CHART_LOST: Final = FindingKind(
    type="ChartLost",
    word="Chart lost",
    key="chartLost",
    stored="chartLost",
    news=NewsKind(
        key="chartLost",
        began="has lost its chart",
        over="has its chart again",
        no_longer="no longer lacks a chart",
        since="It has had no chart since",
        is_usual=True,
    ),
)
WRONG_VALUES: Final = FindingKind(
    type="WrongValues",
    word="Not in force",
    begins="what is newer is not in force: ",
    condition="ConfigValid",
    condition_reason="InvalidValues",
    key="wrongValues",
)
WRONG_FILES: Final = dataclasses.replace(
    WRONG_VALUES, type="WrongFiles", reason="NotInForce", condition_reason="InvalidFiles"
)
WRONG_HOOKS: Final = dataclasses.replace(WRONG_FILES, type="WrongHooks")
EDIT_WAITS: Final = FindingKind(type="EditWaits", word="Edit waits", key="editWaits", stored="editWaits")
REQUIRES_NOT_MET: Final = FindingKind(
    type="RequiresNotMet",
    word="Requirement not met",
    condition="Requires",
    condition_reason="NotMet",
    key="unmet",
)
_OF_HOOKS: Final = NewsKind(
    key="hookFails",
    began="has trouble with its hooks",
    over="has no trouble with its hooks any more",
    since="Its hooks have not worked since",
    follows="It goes on by itself when that is mended",
    is_usual=True,
)
NOT_REGISTERED: Final = FindingKind(
    type="NotRegistered",
    word="Not registered",
    condition="WebhooksRegistered",
    key="notRegistered",
    news=_OF_HOOKS,
)
HOOK_FAILS: Final = FindingKind(
    type="HookFails",
    word="Hook fails",
    condition="HooksWork",
    key="hooksFail",
    stored="failingHooks",
    is_list=True,
    news=_OF_HOOKS,
)
DRIFTED: Final = FindingKind(
    type="Drifted",
    word="Drifted",
    begins="others changed it: ",
    remedy="'addon-operator module run {module}' puts it back",
    condition="Drifted",
    key="drift",
    news=NewsKind(
        key="drifted",
        began="was changed by others",
        over="is as its chart says again",
        no_longer="is no longer changed by others",
        since="Others changed its resources, seen at",
        follows="That stays until somebody undoes it, or it is corrected",
        command="diff",
    ),
)
LEFT_OVER: Final = dataclasses.replace(DRIFTED, type="LeftOver", reason="Drifted", begins="", remedy="")
HELD_BACK: Final = FindingKind(
    type="WaitsForWindow",
    word="Held back",
    is_standstill=True,
    news=NewsKind(
        key="heldBack",
        began="waits for a window",
        over="no longer waits for a window",
        since="It has waited since",
    ),
)
SUSPENDED: Final = FindingKind(
    type="Suspended",
    word="Suspended",
    condition="Suspended",
    begins="Helm and healing leave it alone: suspended: ",
    remedy="'addon-operator module resume {module}' ends that",
    is_standstill=True,
)
MAINTENANCE: Final = FindingKind(
    type="Maintenance",
    word="In maintenance",
    condition="Healthy",
    sentence="in maintenance ({}): Helm and healing leave it alone",
    key="maintenance",
    stored="maintenance",
)
DEFINITIONS_LEFT_OUT: Final = FindingKind(
    type="DefinitionsLeftOut",
    word="Definition left out",
    condition="DefinitionsInForce",
    condition_reason="OfAnotherModule",
    key="definitionsLeftOut",
)
BINDING_WAITS: Final = FindingKind(
    type="BindingWaits",
    word="Binding waits",
    condition="HooksWork",
    key="bindingsWait",
    stored="waitingBindings",
    is_list=True,
    news=_OF_HOOKS,
)
HOOK_LEFT_OUT: Final = FindingKind(
    type="HookLeftOut",
    word="Hook left out",
    sentence="Go hooks never run here: {}: write them anew in another language, or remove them",
    joint=", ",
    condition="HooksWork",
    key="hooksLeftOut",
    stored="leftOutHooks",
    is_list=True,
)
WARNED: Final = FindingKind(
    type="Warned",
    word="Warned",
    begins="with warnings: ",
    condition="Warnings",
    key="warnings",
    stored="warnings",
    is_list=True,
)
MISSPELT: Final = dataclasses.replace(WARNED, type="Misspelt", reason="Warned", stored="")
WAITS: Final = FindingKind(
    type="WaitsForModules",
    word="Waits",
    group=Group.WORKING,
    sentence="waits for {}",
    joint=", ",
    condition="Ready",
    key="waitsFor",
    stored="waitsFor",
    is_list=True,
    is_standstill=True,
)
PROGRESSING: Final = FindingKind(
    type="Progressing",
    word="Progressing",
    group=Group.WORKING,
    begins="it is not healthy yet: ",
    condition="Healthy",
)

TABLE: Final = tuple(each for each in list(globals().values()) if isinstance(each, FindingKind))
"""All kinds, the worst first, as they stand above."""
_RANKS: Final = {kind: rank for rank, kind in enumerate(TABLE)}
_BY_TYPE: Final = {
    **{kind.reason: kind for kind in reversed(TABLE) if kind.reason},
    **{kind.type: kind for kind in TABLE},
}


class FindingRow(TypedDict):
    """A sentence of a finding as JSON has it."""

    type: str
    message: str
    since: str
    """RFC 3339, UTC; empty if a condition says it."""


class Finding(msgspec.Struct, frozen=True):
    """What there is to know of a module, without values."""

    kind: FindingKind
    texts: tuple[str, ...]
    since: float | None = None
    """Since when it is so, in seconds since the epoch; ``None`` if that is not known here."""

    @property
    def reason(self) -> str:
        """Of the condition ``Ready``, if this is the worst."""
        return self.kind.reason or self.kind.type

    @property
    def messages(self) -> list[str]:
        """What it says where the word stands beside it, in one sentence or several."""
        texts = (self.kind.joint.join(self.texts),) if self.kind.joint else self.texts
        return [self.kind.sentence.format(text) for text in texts]

    @property
    def rows(self) -> list[FindingRow]:
        """The finding as JSON has it: a row for each sentence."""
        since = "" if self.kind.condition or self.since is None else clock.rfc3339(self.since)
        return [{"type": self.kind.type, "message": each, "since": since} for each in self.messages]


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Return those that say something, the worst first."""
    return sorted((each for each in found if any(each.texts)), key=lambda each: _RANKS[each.kind])


def kind_of(row: FindingRow) -> FindingKind:
    """Return the kind of a row by type or reason; of one of another version, what the row says itself."""
    return _BY_TYPE.get(row["type"]) or FindingKind(type=row["type"], word=row["type"])


def said(rows: Iterable[FindingRow], module: str) -> list[str]:
    """Return what the rows of a module say where no word stands beside them."""
    texts, before = list[str](), ""
    for row in rows:
        kind = kind_of(row)
        # What begins alike says so once.
        begins, before = "" if kind.begins == before else kind.begins, kind.begins
        remedy = f"; {kind.remedy.format(module=module)}" if kind.remedy else ""
        texts.append(f"{begins}{row['message']}{remedy}")
    return texts


def by_key(found: Iterable[Finding]) -> dict[str, str | list[str]]:
    """Return what the debug socket has beside the findings: texts of all kinds, which may be none."""
    texts: dict[str, list[str]] = {kind.key: [] for kind in TABLE if kind.key}
    for each in found:
        if each.kind.key:
            texts[each.kind.key] += each.texts
    are_lists = {kind.key: kind.is_list for kind in TABLE}
    return {key: each if are_lists[key] else "; ".join(each) for key, each in texts.items()}
