"""What the page says of each module: how it is in one word and one sentence, and what else there is to know.

Pure: rows in, texts out.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from addon_operator.engine import introspection, state
from addon_operator.engine.state import ModuleStatus
from addon_operator.modules import findings
from addon_operator.status import module_status, page_content

Group = findings.Group


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


_UNDER_WAY: Final = frozenset({ModuleStatus.PENDING, ModuleStatus.RUNNING, ModuleStatus.DELETING})


class _Module(msgspec.Struct, frozen=True):
    """One module of the content."""

    content: page_content.Content
    row: introspection.ModuleRow

    def card(self) -> Card:
        group, word, since = self._worst()
        shown, sentence = self._shown, next(filter(None, self._sentences()), "")
        return Card(
            name=self.row["name"],
            group=group,
            word=word,
            sentence=sentence,
            next=[each for each in self._next() if each],
            since=since,
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
    def _run_failed(self) -> bool:
        row = self.row
        has_failed = row["state"] in _UNDER_WAY and bool(self._error)
        return row["state"] == ModuleStatus.FAILED or has_failed

    @property
    def _found(self) -> Sequence[tuple[findings.FindingKind, findings.FindingRow]]:
        return [(findings.kind_of(each), each) for each in self.row["findings"]]

    def _worst(self) -> tuple[Group, str, str]:
        """Return the group and the word of the module, and since when it is so."""
        state = self.row["state"]
        if self._run_failed:
            return Group.FAILED, str(ModuleStatus.FAILED), self._condition("Ready")
        is_off = state == ModuleStatus.DISABLED
        # Of what is off, only newer values can be wrong.
        found = (each for each in self._found if not is_off or each[0].word == findings.WRONG_VALUES.word)
        kind, since = next(((kind, each["since"]) for kind, each in found), (None, ""))
        if kind is not None and (kind.group is not Group.WORKING or state == ModuleStatus.READY):
            return kind.group, kind.word, self._condition(kind.condition) or since
        if is_off:
            return Group.DISABLED, state, self._condition("Enabled")
        is_working = kind is not None or state in _UNDER_WAY
        return Group.WORKING if is_working else Group.READY, state, self._condition("Ready")

    def _sentences(self) -> Iterator[str]:
        """Yield what there is to say, the most important first; some may be empty."""
        yield self._error if self._run_failed else ""
        found = [(kind, self._message(kind, each)) for kind, each in self._found]
        standstill = "; ".join(message for kind, message in found if kind.is_standstill)
        yield next((standstill if kind.is_standstill else message for kind, message in found), "")
        yield self.row["reason"] if self.row["state"] != ModuleStatus.READY else ""
        yield self.row["description"]

    def _message(self, kind: findings.FindingKind, found: findings.FindingRow) -> str:
        held = self.row["heldBack"]
        # When the window opens stands elsewhere, as a moment.
        is_timed = kind is findings.HELD_BACK and held is not None and held["until"]
        return f"waits for a window: {held['what']}" if held is not None and is_timed else found["message"]

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
        wrong = [each["message"] for kind, each in self._found if kind is findings.WRONG_VALUES]
        if wrong and _STAY not in wrong[0]:
            return [f"the last good values {_STAY}"]
        if row["heldBack"] and row["heldBack"]["until"]:
            return ["the window opens ", Moment(row["heldBack"]["until"], kind="due")]
        return []

    def _facts(self, sentence: str) -> Iterator[tuple[str, Sequence[Text]]]:
        """Yield what else there is to know: what the sentence says is not said again."""
        row, shown = self.row, self._shown

        def news(text: str) -> str:
            return "" if text in sentence else text

        yield "Error", [news(self._error)]
        yield "Next try", self._next_try(sentence=False)
        if row["health"]:
            health = ": ".join(filter(None, (row["health"], news(row["healthMessage"]))))
            yield "Health", [health, *([Moment(at, "since")] if (at := self._condition("Healthy")) else ())]
        for kind, each in self._found:
            if each["message"] != row["healthMessage"]:
                yield kind.word, [news(each["message"])]
        for hook in row["runningHooks"]:
            yield "Runs", [f"{hook['hook']}, since ", Moment(hook["since"])]
        yield (
            "Answers the API server",
            [", ".join(f"{each['binding']} {each['name']}" for each in row["answering"])],
        )
        yield "Queue", [self._place()]
        verdict = row["reason"].removeprefix(row["suspended"]).removeprefix("; ")
        alone = next((each["message"] for kind, each in self._found if kind is findings.MAINTENANCE), "")
        yield "On or off", [news(verdict.removesuffix(alone).removesuffix("; "))]
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
