"""What the page says of each module: how it is in one word and one sentence, and what else there is to know.

Pure: rows in, texts out.
"""

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from addon_operator.engine import introspection, state
from addon_operator.engine.state import ModuleStatus
from addon_operator.modules.health import resource_health
from addon_operator.status import module_status, page_content


class Group(enum.StrEnum):
    """How modules are, as people sort them; the worst first. Each module is in one."""

    FAILED = "Failed"
    """Its last run or its removal failed, or a resource does not work."""
    ATTENTION = "Needs attention"
    """It runs, but somebody has to do something, or has asked to leave it alone."""
    WORKING = "In progress"
    READY = "Ready"
    DISABLED = "Disabled"


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """A point in time among texts; RFC 3339, UTC."""

    at: str
    kind: Literal["", "due", "since"] = ""
    """``due``: something begins then, as soon as it can; ``since``: something is so from then on."""


Text = str | Moment


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One module."""

    name: str
    group: Group
    word: str
    """Its state, or what is worse than that."""
    sentence: str
    """What a person has to know first."""
    next: Sequence[Text] = ()
    """What happens next by itself, one text behind the other; empty if nothing does."""
    since: str = ""
    """RFC 3339, UTC; empty if that is not known."""
    facts: Sequence[tuple[str, Sequence[Text]]] = ()
    """Labels, and what they say."""
    events: Sequence[module_status.ToldEvent] = ()


def cards(content: page_content.Content) -> list[Card]:
    """Return all modules, the worst group first, in run order within each."""
    found = [_Module(content, row).card() for row in content.modules]
    return [card for group in Group for card in found if card.group is group]


_FAILED: Final = str(resource_health.HealthState.FAILED)
_PROGRESSING: Final = str(resource_health.HealthState.PROGRESSING)
_CONDITIONS: Final = {
    "Unhealthy": "Healthy",
    "Progressing": "Healthy",
    "Not in force": "ConfigValid",
    "Requirement not met": "Requires",
    "Not registered": "WebhooksRegistered",
    "Hook fails": "HooksWork",
    "Hook left out": "HooksWork",
    "Binding waits": "HooksWork",
    "Definition left out": "DefinitionsInForce",
    "Chart lost": "",
    "In maintenance": "Healthy",
    "Drifted": "Drifted",
    "Suspended": "Suspended",
    "Warned": "Warnings",
    "Disabled": "Enabled",
}
"""Which condition says since when a module is so, if one does; ``Ready`` for all other words."""
_UNDER_WAY: Final = frozenset({ModuleStatus.PENDING, ModuleStatus.RUNNING, ModuleStatus.DELETING})


class _Module(msgspec.Struct, frozen=True):
    """One module of the content."""

    content: page_content.Content
    row: introspection.ModuleRow

    def card(self) -> Card:
        group = self._group()
        shown, sentence = self._shown, next(filter(None, self._sentences()), "")
        return Card(
            name=self.row["name"],
            group=group,
            word=self._word(group),
            sentence=sentence,
            next=[each for each in self._next() if each],
            since=self._since(group),
            facts=[(label, texts) for label, texts in self._facts(sentence) if any(texts)],
            events=shown["events"] if shown else (),
        )

    @property
    def _error(self) -> str:
        return self.content.errors.get(self.row["name"], "")

    @property
    def _shown(self) -> module_status.Shown | None:
        return self.content.objects.get(self.row["name"])

    @property
    def _is_unregistered(self) -> bool:
        """Whether a run that registers everything has ended, and something is not."""
        return self.row["state"] not in _UNDER_WAY and bool(self.row["notRegistered"])

    @property
    def _run_failed(self) -> bool:
        row = self.row
        has_failed = row["state"] in _UNDER_WAY and bool(self._error)
        return row["state"] == ModuleStatus.FAILED or has_failed

    def _group(self) -> Group:
        row = self.row
        if self._run_failed or row["health"] == _FAILED:
            return Group.FAILED
        if row["state"] == ModuleStatus.DISABLED:
            return Group.ATTENTION if row["wrongValues"] else Group.DISABLED
        if any(holds for holds, _ in self._attention()):
            return Group.ATTENTION
        if row["state"] in _UNDER_WAY or row["waitsFor"] or row["health"] == _PROGRESSING:
            return Group.WORKING
        return Group.READY

    def _word(self, group: Group) -> str:
        row = self.row
        if group is Group.FAILED:
            return str(ModuleStatus.FAILED) if self._run_failed else "Unhealthy"
        if group is Group.ATTENTION:
            return next(word for holds, word in self._attention() if holds)
        if group is Group.WORKING and row["state"] == ModuleStatus.READY:
            return "Waits" if row["waitsFor"] else "Progressing"
        return row["state"]

    def _attention(self) -> Iterator[tuple[bool, str]]:
        """Yield what calls for somebody, in the order in which the condition ``Ready`` has it."""
        row = self.row
        yield bool(row["foreignRecord"]), "Changed by others"
        yield bool(row["chartLost"]), "Chart lost"
        yield bool(row["wrongValues"]), "Not in force"
        yield bool(row["editWaits"]), "Edit waits"
        yield bool(row["unmet"]), "Requirement not met"
        yield self._is_unregistered, "Not registered"
        yield bool(row["hooksFail"]), "Hook fails"
        yield bool(row["drift"]), "Drifted"
        yield row["heldBack"] is not None, "Held back"
        yield bool(row["suspended"]), "Suspended"
        yield bool(row["maintenance"]), "In maintenance"
        yield bool(row["definitionsLeftOut"]), "Definition left out"
        yield bool(row["bindingsWait"]), "Binding waits"
        yield bool(row["hooksLeftOut"]), "Hook left out"
        yield bool(row["warnings"]), "Warned"

    def _sentences(self) -> Iterator[str]:
        """Yield what there is to say, the most important first; some may be empty."""
        row, is_progressing = self.row, self.row["health"] == _PROGRESSING
        yield self._error if self._run_failed else ""
        yield row["healthMessage"] if row["health"] == _FAILED else ""
        yield row["foreignRecord"]
        yield row["chartLost"]
        yield row["wrongValues"]
        yield row["editWaits"]
        yield row["unmet"]
        yield row["notRegistered"] if self._is_unregistered else ""
        yield from row["hooksFail"]
        yield row["drift"] and f"changed by others: {row['drift']}"
        # None of them hides that the others are so, too.
        held = _held_back(row["heldBack"])
        suspended = row["suspended"] if held or row["waitsFor"] else ""
        yield "; ".join(filter(None, (suspended, held, introspection.waiting_text(row["waitsFor"]))))
        yield self._suspended
        yield self._maintenance
        yield row["definitionsLeftOut"]
        yield from row["bindingsWait"]
        yield state.left_out_text(row["hooksLeftOut"])
        yield state.warnings_text(row["warnings"])
        yield row["healthMessage"] if is_progressing else ""
        yield row["reason"] if row["state"] != ModuleStatus.READY else ""
        yield row["description"]

    def _next(self) -> Sequence[Text]:
        """Say what comes next for a module that is not as it should be."""
        row = self.row
        if self._run_failed:
            under_way = row["state"] in (ModuleStatus.RUNNING, ModuleStatus.DELETING)
            return (
                ["it is tried again now"]
                if under_way and not row["nextTry"]
                else self._next_try(sentence=True)
            )
        if row["wrongValues"] and _STAY not in row["wrongValues"]:
            return [f"the last good values {_STAY}"]
        if row["heldBack"] and row["heldBack"]["until"]:
            return ["the window opens ", Moment(row["heldBack"]["until"], kind="due")]
        return []

    def _since(self, group: Group) -> str:
        return self._condition(_CONDITIONS.get(self._word(group), "Ready"))

    @property
    def _maintenance(self) -> str:
        return state.maintenance_text(self.row["maintenance"])

    @property
    def _suspended(self) -> str:
        return self.row["suspended"].removeprefix("suspended: ")

    def _facts(self, sentence: str) -> Iterator[tuple[str, Sequence[Text]]]:
        """Yield what else there is to know: what the sentence says is not said again."""

        def news(text: str) -> str:
            return "" if text in sentence else text

        row, shown = self.row, self._shown
        yield "Error", [news(self._error)]
        yield "Next try", self._next_try(sentence=False)
        if row["health"]:
            health = ": ".join(filter(None, (row["health"], news(row["healthMessage"]))))
            yield "Health", [health, *([Moment(at, "since")] if (at := self._condition("Healthy")) else ())]
        yield "Changed by others", [news(row["drift"])]
        yield "Record", [news(row["foreignRecord"])]
        yield "Chart", [news(row["chartLost"])]
        yield "Not in force", [news(row["wrongValues"])]
        yield "Edit", [news(row["editWaits"])]
        yield "Warnings", ["; ".join(filter(news, row["warnings"]))]
        for hook in row["runningHooks"]:
            yield "Runs", [f"{hook['hook']}, since ", Moment(hook["since"])]
        yield (
            "Answers the API server",
            [", ".join(f"{each['binding']} {each['name']}" for each in row["answering"])],
        )
        yield "Not met", [news(row["unmet"])]
        yield "Not registered", [news(row["notRegistered"])]
        yield "Waits for", [", ".join(row["waitsFor"])]
        yield "Held back", [introspection.held_back_text(row["heldBack"])]
        yield "Suspended", [news(self._suspended)]
        yield "Maintenance", [news(self._maintenance)]
        yield "Failing hooks", ["; ".join(filter(news, row["hooksFail"]))]
        yield "Waiting bindings", ["; ".join(filter(news, row["bindingsWait"]))]
        yield "Left out hooks", [news(state.left_out_text(row["hooksLeftOut"]))]
        yield "Left out definitions", [news(row["definitionsLeftOut"])]
        yield "Queue", [self._place()]
        verdict = row["reason"].removeprefix(row["suspended"]).removeprefix("; ")
        yield "On or off", [news(verdict.removesuffix(self._maintenance).removesuffix("; "))]
        yield "Requires", [", ".join(row["requires"])]
        yield "About", [news(row["description"])]
        yield "Order", [str(row["order"])]
        yield "Release", [row["release"] if row["release"] != row["name"] else ""]
        if shown is not None and shown["revision"]:
            yield "Revision", [str(shown["revision"])]
        if row["lastRun"]:
            yield "Last run", [Moment(row["lastRun"])]

    def _condition(self, type_: str) -> str:
        return "" if self._shown is None else self._shown["since"].get(type_, "")

    def _next_try(self, *, sentence: bool) -> list[Text]:
        row = self.row
        if not row["nextTry"]:
            return []
        due = Moment(row["nextTry"], kind="due")
        before, behind = state.next_try(row["cure"])
        if sentence:
            return [before, due, behind]
        tries = f"after {row['tries']} that failed" if row["tries"] else ""
        return [due, *filter(None, (tries, behind.removeprefix(", ")))]

    def _place(self) -> str:
        place = self.content.places.get(self.row["name"])
        if place is None:
            return ""
        number = "first" if place["index"] == 1 else f"number {place['index']}"
        return f"{number} in main: {place['doing']}, {task_state(place['state'])}"


def _held_back(held: introspection.HeldBackRow | None) -> str:
    """Say what waits; when a window opens stands elsewhere."""
    if held is None or not held["until"]:
        return introspection.held_back_text(held)
    return f"waits for a window: {held['what']}"


_STAY: Final = "stay"
_TASK_STATES: Final = {
    introspection.RUNNING: "under way",
    introspection.WAITING: "waits for its turn",
    introspection.BACKOFF: "waits for its next try",
    introspection.POSTPONED: "waits, as it runs too often",
}


def task_state(state: str) -> str:
    """Say what becomes of a task of a queue."""
    return _TASK_STATES.get(state, state)
