"""A plan as a comment on a pull request: Markdown of a bounded length, with diffs that open."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from addon_operator.kernel import names

if TYPE_CHECKING:
    # Imported when a plan is made: the client of the cluster takes time to load.
    from addon_operator.commands.plan import plan_report

MAX_CHARS: Final = 60_000
"""How long a comment may be; GitHub takes 65 536 characters."""
_MAX_CELL: Final = 300
_MAX_TABLE: Final = 20_000
_MAX_NOTES: Final = 8_000
_MAX_DIFF: Final = 12_000
"""Of one object."""
PENDING: Final = "not by this change"
_SIGNS: Final = {
    "install": "🟢",
    "upgrade": "🟡",
    "wait": "🟡",
    "restore": "🟡",
    "delete": "🔴",
    "purge": "🔴",
    "unknown": "❓",
}
_NAMED: Final = 10
_TITLE: Final = "### Plan of addon-operator"


def comment(report: "plan_report.PlanReport", summary: str) -> str:
    """Return the comment: a table, a diff for each release that would change, and what is not known.

    What has no room is left out, and the end says how much that is.
    """
    head = f"{_TITLE}\n\n{summary}{_recorded(report)}\n\n"
    table, left_out = _bounded(_rows(report), _MAX_TABLE)
    losses, losses_left_out = _bounded(_listed(report.losses), _MAX_NOTES)
    parts = [f"{head}{losses}\n" if losses else head]
    if losses_left_out:
        parts.append(f"{losses_left_out} more lines on what is deleted have no room here.\n\n")
    if table:
        parts.append(f"| module | action | because |\n|---|---|---|\n{table}\n")
    if left_out:
        parts.append(f"{left_out} more rows have no room here.\n\n")
    notes, notes_left_out = _bounded(_listed(report.notes), _MAX_NOTES)
    end = f"<details><summary>Notes</summary>\n\n{notes}\n</details>\n" if notes else ""
    if notes_left_out:
        end += f"\n{notes_left_out} more notes have no room here.\n"
    room = MAX_CHARS - len("".join(parts)) - len(end) - _MAX_CELL
    diffs, cut = _diffs(report, room)
    parts.append(diffs)
    if cut:
        parts.append(
            f"\nCut: the diffs of {names.listed(cut, _NAMED)} have no room here, or not all of it; run the "
            "same command with `-o text`.\n\n"
        )
    return "".join([*parts, end])[:MAX_CHARS]


def _recorded(report: "plan_report.PlanReport") -> str:
    if report.recorded_at is None:
        return ""
    moment = dt.datetime.fromtimestamp(report.recorded_at, dt.UTC)
    return f" The state of the cluster is of {moment:%Y-%m-%d %H:%M} UTC."


def _rows(report: "plan_report.PlanReport") -> Iterator[str]:
    for module in report.modules:
        if not (module.is_change or module.release.step == "unknown"):
            continue
        pending = [PENDING] if module.is_pending else []
        because = [*pending, *module.release.recoveries, module.release.reason]
        unknown = [f"not known: {each}" for each in module.unknown]
        if module.release.step in ("delete", "install"):
            because.append(module.verdict)
        yield _row(module.name, str(module.release.step), "; ".join([*because, *unknown]))
    for purge in report.purges:
        yield _row(
            purge.release, "purge", "; ".join([*([PENDING] if purge.is_pending else []), purge.reason])
        )


def _row(name: str, step: str, because: str) -> str:
    return f"| `{_cell(name)}` | {_SIGNS.get(step, '')} {step} | {_cell(because)} |\n"


def _cell(text: str) -> str:
    """Return a text that stays within its cell, and is a text whatever stands in it."""
    line = " ".join(text.split())
    line = line if len(line) <= _MAX_CELL else f"{line[: _MAX_CELL - 1]}…"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    for mark in "\\|*_[]`":
        escaped = escaped.replace(mark, f"\\{mark}" if mark != "`" else "'")
    return escaped


def _listed(sentences: Iterable[str]) -> Iterator[str]:
    for each in sentences:
        yield f"- {_cell(each)}\n"


def _bounded(lines: Iterator[str], room: int) -> tuple[str, int]:
    """Return as many lines as have room, and how many have none."""
    taken: list[str] = []
    left_out = 0
    for line in lines:
        if left_out or len(line) > room:
            left_out += 1
            continue
        taken.append(line)
        room -= len(line)
    return "".join(taken), left_out


def _diffs(report: "plan_report.PlanReport", room: int) -> tuple[str, list[str]]:
    """Return the diffs that have room, those of the change first, and what is cut."""
    taken: list[str] = []
    cut: list[str] = []
    changed = [module for module in report.modules if module.release.changes]
    for module in sorted(changed, key=lambda each: each.is_pending):
        block, is_whole = _block(module, room)
        if block:
            taken.append(block)
            room -= len(block)
        if not is_whole:
            cut.append(f"`{_cell(module.name)}`")
    return "".join(taken), cut


def _block(module: "plan_report.ModuleReport", room: int) -> tuple[str, bool]:
    changes = module.release.changes
    count = f"{len(changes)} object{'' if len(changes) == 1 else 's'}"
    start = f"<details><summary><b>{_cell(module.name)}</b>: {count}</summary>\n\n"
    end = "\n</details>\n\n"
    room -= len(start) + len(end)
    texts, is_whole = [], True
    for change in changes:
        text, is_all = _fenced(change.diff, min(room, _MAX_DIFF))
        is_whole = is_whole and is_all
        if not text:
            break
        texts.append(text)
        room -= len(text)
    return (f"{start}{''.join(texts)}{end}", is_whole) if texts else ("", False)


def _fenced(diff: Sequence[str], room: int) -> tuple[str, bool]:
    """Return a diff in a block of code that nothing in it can end, as far as there is room."""
    bodies = (line.lstrip(" +-") for line in diff)
    longest = max((len(body) - len(body.lstrip("`")) for body in bodies), default=0)
    fence = "`" * max(3, longest + 1)
    room -= 2 * len(fence) + len("diff\n\n")
    text, left_out = _bounded((f"{line}\n" for line in diff), room)
    return (f"{fence}diff\n{text}{fence}\n", not left_out) if text else ("", False)
