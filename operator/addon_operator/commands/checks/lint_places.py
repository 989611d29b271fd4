"""Where findings are, and which of them a comment in a file ignores."""

import os
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.commands.checks import lint_rules, values_check
from addon_operator.helm.charts import plain_files
from addon_operator.kernel import names
from addon_operator.modules import module_config

_MOST_LETTERS: Final = 2000
_MOST_FILES: Final = 5000
_MOST_BYTES: Final = 256 * 1024
_MARK: Final = "lint: ignore"
_STARTS: Final = ("#", "/*")
_ENDS: Final = ("*/", "-->")
_PARTS: Final = frozenset({"crds", "examples", "hooks", "openapi", "templates"})
"""Directories of a module whose files may have such comments, beside those at its top."""
_PASSED: Final = frozenset({"node_modules", "venv", "__pycache__"})
_NOT_READ: Final = (".md", ".json", ".tgz", ".txt")
_WHERE_SET: Final = ("set in ", "default in ")
"""Words before the file of a wrong value; the schema is named before it."""
_AROUND: Final = r"()\[\]'\"`,;"
_ENDS_OF_NAMES: Final = re.compile(rf"[\s:{_AROUND}]|$")
_LINE: Final = re.compile(r"[)\]'\"`,;]?(?::(\d{1,9})|:?,? (?:document \d{1,9}, )?line (\d{1,9}))")
"""How a line is named behind a file."""


class Place(msgspec.Struct, frozen=True):
    """Where a finding is."""

    path: pathlib.Path
    line: int = 0
    """From 1; 0 if it is not known."""


class _Ignore(msgspec.Struct):
    """A comment that ignores a rule."""

    place: Place
    words: str
    """What stands after ``lint: ignore``."""
    module: str
    is_used: bool = False

    @property
    def rule(self) -> str:
        return self.words.partition(" ")[0]

    @property
    def reason(self) -> str:
        return self.words.partition(" ")[2].strip()

    def problem(self) -> str:
        """Say why it ignores nothing; empty if it may."""
        known = [str(each) for each in lint_rules.Rule if each is not lint_rules.Rule.LINT_IGNORE]
        if self.rule not in known:
            return f"there is no rule {self.rule!r} to ignore; the rules are {', '.join(known)}"
        if not self.reason:
            return f"a reason is missing: write '{_MARK} {self.rule} REASON'"
        return ""


class Ignored(msgspec.Struct, frozen=True):
    """Findings without those that comments ignore."""

    findings: tuple[values_check.Finding, ...]
    count: int
    """How many are ignored."""


def place_of(finding: values_check.Finding, modules: Mapping[str, pathlib.Path]) -> Place | None:
    """Return where a wrong value was set, or else the first file that is named, or the module's directory."""
    own = modules.get(finding.subject)
    text = finding.problem[:_MOST_LETTERS]
    first = None
    for start in _starts(text, [own] if own else [*modules.values()]):
        # What begins with no directory needs no look at each of its ends, of which a long text has many.
        if not os.path.isdir(text[start : text.index("/", start) + 1]):  # noqa: PTH112 - as below
            continue
        # Names of files may have blanks: the longest one that exists counts.
        ends = [match.start() for match in _ENDS_OF_NAMES.finditer(text, start)]
        end = next((each for each in reversed(ends) if _exists(text[start:each])), None)
        if end is None:
            continue
        line = _LINE.match(text, end)
        found = Place(pathlib.Path(text[start:end]), int(line.group(line.lastindex or 0)) if line else 0)
        first = first or found
        if text[:start].endswith(_WHERE_SET):
            return found
    if first is not None:
        return first
    # The subject may be a directory of modules.
    subject = own or pathlib.Path(finding.subject)
    return Place(subject) if own or subject.is_dir() else None


def _starts(text: str, roots: Sequence[pathlib.Path]) -> Iterator[int]:
    """Yield where the names of files may begin: with a directory of modules, or a word before a slash."""
    around = {str(each) for root in roots for each in (root, root.parent)}
    known = "|".join(map(re.escape, sorted(around, key=len, reverse=True)))
    for match in re.finditer(rf"(?<![^\s{_AROUND}])(?:{known}|[^\s/{_AROUND}]*)/", text):
        yield match.start()


def _exists(path: str) -> bool:
    try:
        # There are thousands in a long problem: pathlib would take each one apart.
        return "/" in path and os.path.exists(path)  # noqa: PTH110
    except (OSError, ValueError):
        return False


def without_ignored(
    findings: Sequence[values_check.Finding],
    modules: Mapping[str, pathlib.Path],
    charts: Mapping[str, pathlib.Path],
) -> Ignored:
    """Return the findings that no comment ignores, and what is wrong with the comments.

    A comment is about its own file; in ``module.yaml``, it is about all of the module. ``charts`` are those
    with a directory of their own, by module.
    """
    ignores = list(_ignores([*modules.items(), *charts.items()]))
    usable = [each for each in ignores if not each.problem()]
    kept = []
    for finding in findings:
        found = [each for each in usable if _covers(each, finding, modules)]
        for each in found:
            each.is_used = True
        if not found:
            kept.append(finding)
    wrong = (_wrong(each) for each in ignores if not each.is_used)
    return Ignored((*kept, *wrong), len(findings) - len(kept))


def _covers(ignore: _Ignore, finding: values_check.Finding, modules: Mapping[str, pathlib.Path]) -> bool:
    if ignore.rule != finding.rule:
        return False
    if ignore.place.path.name == module_config.FILE:
        return ignore.module == finding.subject
    place = place_of(finding, modules)
    return place is not None and os.path.realpath(place.path) == os.path.realpath(ignore.place.path)


def _wrong(ignore: _Ignore) -> values_check.Finding:
    problem = ignore.problem()
    said = problem or f"nothing here breaks the rule {ignore.rule}; remove the comment that ignores it"
    level = values_check.Level.ERROR if problem else values_check.Level.WARNING
    where = f"{ignore.place.path}, line {ignore.place.line}"
    return values_check.Finding(level, ignore.module, f"{where}: {said}", lint_rules.Rule.LINT_IGNORE)


def _ignores(places: Sequence[tuple[str, pathlib.Path]]) -> Iterator[_Ignore]:
    seen = set()
    for module, root in places:
        for path in _files(root, is_global=module == names.GLOBAL_KEY):
            if path not in seen:
                seen.add(path)
                yield from _of_text(_text(path), path, module)


def _files(root: pathlib.Path, *, is_global: bool) -> Iterator[pathlib.Path]:
    left = _MOST_FILES
    for directory, below, files in os.walk(root):
        is_top = pathlib.Path(directory) == root
        parts = [each for each in below if not is_top or is_global or each in _PARTS]
        below[:] = sorted(each for each in parts if each not in _PASSED and not each.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(_NOT_READ):
                yield pathlib.Path(directory, name)
                left -= 1
            if not left:
                return


def _text(path: pathlib.Path) -> str:
    try:
        content = plain_files.read_head(path, _MOST_BYTES)
    except OSError:
        return ""  # What cannot be read is told elsewhere.
    return content.decode(errors="replace") if _MARK.encode() in content else ""


def _of_text(text: str, path: pathlib.Path, module: str) -> Iterator[_Ignore]:
    for number, line in enumerate(text.splitlines(), 1):
        before, mark, words = line.partition(f"{_MARK} ")
        if mark and before.rstrip().endswith(_STARTS):
            for end in _ENDS:
                words = words.partition(end)[0]
            yield _Ignore(Place(path, number), words.strip(), module)
