"""What the loop of edits shows: taken from records of the operator's log, and from what it answers.

Pure: records and documents in, lines and a picture of the moment out.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.documents import json_pointers
from addon_operator.engine import events

LINES_OF_HOOK: Final = 8
MOST_HOOKS: Final = 20
MOST_ERRORS: Final = 8
MOST_CHANGES: Final = 12
MOST_DIFF: Final = 200
ENDING: Final = "the operator is being stopped, and what it runs"
LONG_SECONDS: Final = 5.0
"""A hook that runs for so long is told, and ended when its module is saved."""
_MISSING: Final = object()


class Line(msgspec.Struct, frozen=True):
    """One line of what happened."""

    topic: str
    text: str


class Change(msgspec.Struct, frozen=True):
    """What a save led to."""

    module: str
    files: Sequence[str] = ()
    values: Sequence[str] = ()
    diff: Sequence[str] = ()
    revision: int | None = None
    seconds: float | None = None
    """From the save to the end of the run; ``None`` if nothing was saved."""
    run_seconds: float = 0.0
    """Of these, those of the module's run: its hooks, and Helm."""
    has_failed: bool = False
    """Whether the run failed; why is among the errors."""
    is_as_before: bool = False
    """Whether the revision is the one of the run before."""

    @property
    def summary(self) -> str:
        """Say how it ended, in one sentence."""
        what = "no release" if self.revision is None else f"revision {self.revision}"
        if self.has_failed:
            what = "failed" if self.revision is None else f"failed; {what} stays"
        elif self.is_as_before and self.revision is not None:
            what += ", as before"
        took = f"run {self.run_seconds:.1f} s"
        if self.seconds is None:
            return f"{self.module}: {what} ({took})"
        return f"{self.module}: {what}, {self.seconds:.1f} s after the save ({took})"


class Ran(msgspec.Struct, frozen=True):
    """A module has run."""

    module: str
    seconds: float


class Reloaded(msgspec.Struct, frozen=True):
    """Modules were read again."""

    modules: Sequence[str]


class DevView:
    """Keeps what there is to show; all of it is bounded."""

    def __init__(self, replaced: Mapping[str, str] | None = None) -> None:
        """Show ``replaced`` otherwise: texts that only the operator knows, with what stands for them."""
        self._replaced = dict(replaced or {})
        self.rows: Sequence[Mapping[str, Any]] = ()
        """Modules, as ``module list`` has them."""
        self.hooks: collections.OrderedDict[str, collections.deque[str]] = collections.OrderedDict()
        """The last lines of hooks; the one that wrote last is the last."""
        self.last: Change | None = None
        """The last change."""
        self.running: Sequence[str] = ()
        """What runs for long, as a person says it."""
        self.refusals: Sequence[str] = ()
        """What is not in force of files and ConfigMap, and why."""
        self.is_ending = False
        """Whether somebody ends it."""
        self._told: list[str] = []
        self._values: dict[str, Mapping[str, Any]] = {}
        self._revisions: dict[str, int | None] = {}

    def record(self, record: Mapping[str, Any]) -> Iterator[Line | Ran | Reloaded]:
        """Take a record of the operator's log; yield what is to be told, and what is to be looked at."""
        text, module = self._text(record.get("msg", "")), str(record.get("module", ""))
        reason = record.get("reason")
        if "output" in record:
            yield self._of_hook(str(record.get("hook", "?")), module, text)
        elif reason == events.ModulesReloaded.__name__:
            self._told.clear()
            yield Reloaded(str(record["modules"]).split(", "))
        elif reason == events.ModuleRan.__name__:
            yield Ran(module, float(record.get("seconds", 0.0)))
        elif reason == events.NothingRefused.__name__:
            self._told.clear()
            yield Line("right", text)
        elif record.get("level") in ("error", "warning", "warn", "critical"):
            # What is refused is shown as long as the operator says so.
            if not module and reason != events.ReloadRefused.__name__:
                self._told = [*self._told[1 - MOST_ERRORS :], text]
            level = "error" if record["level"] in ("error", "critical") else "warning"
            yield Line(level, f"{module}: {text}" if module else text)

    def forget_told(self) -> None:
        """Forget the errors of an operator that has ended."""
        self._told.clear()

    def _text(self, message: object) -> str:
        text = str(message)
        for unknown, known in self._replaced.items():
            text = text.replace(unknown, known)
        return text

    def _of_hook(self, hook: str, module: str, text: str) -> Line:
        name = f"{module}/{hook}" if module else hook
        lines = self.hooks.setdefault(name, collections.deque(maxlen=LINES_OF_HOOK))
        lines.append(text)
        self.hooks.move_to_end(name)
        if len(self.hooks) > MOST_HOOKS:
            self.hooks.popitem(last=False)
        return Line("hook", f"{name}: {text}")

    @property
    def errors(self) -> list[str]:
        """What is wrong now, of modules and of files."""
        failed = [f"{row['name']}: {row['lastError']}" for row in self.rows if row.get("lastError")]
        return [self._text(each) for each in dict.fromkeys((*failed, *self.refusals, *self._told))][
            -MOST_ERRORS:
        ]

    def ended(self, change: Change, details: Mapping[str, Any]) -> Iterator[Line]:
        """Take the end of a run with what the operator tells of the module, and yield what it changed."""
        module = change.module
        values = details.get("values", {})
        before = self._values.get(module)
        changed = [] if before is None else list(_changed(before, values))
        shown = [*changed[:MOST_CHANGES], *(["…"] if len(changed) > MOST_CHANGES else [])]
        is_first = module not in self._revisions
        is_new = self._revisions.get(module) != change.revision
        diff = details.get("revisions", "").splitlines() if is_new and not is_first else []
        self._values[module], self._revisions[module] = values, change.revision
        self.last = structs.replace(change, values=shown, diff=diff[:MOST_DIFF], is_as_before=not is_new)
        yield from (Line("values", f"{module}: {text}") for text in shown)
        yield from (Line("diff", text) for text in self.last.diff)
        yield Line("failed" if change.has_failed else "done", self.last.summary)


def _changed(before: Any, now: Any, path: tuple[str | int, ...] = ()) -> Iterator[str]:  # noqa: ANN401  # JSON
    """Yield each value that differs; both were read from JSON, whose depth is bounded."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            yield from _changed(before.get(key, _MISSING), now.get(key, _MISSING), (*path, key))
    elif before != now:
        yield f"{json_pointers.format_path(path)}: {_shown(before)} -> {_shown(now)}"


def _shown(value: Any) -> str:  # noqa: ANN401  # JSON
    if value is _MISSING:
        return "(none)"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
