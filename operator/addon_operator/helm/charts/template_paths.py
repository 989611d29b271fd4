"""Which values the templates of a chart read, as far as their text alone can tell."""

import pathlib
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from addon_operator.helm.charts import plain_files

_PATH: Final = re.compile(r"\$?\.Values((?:\.[A-Za-z_][A-Za-z0-9_]*)+)", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LONGEST_WORDS: Final = 40
"""Characters of an action in which its first words are."""
_TEMPLATES: Final = "templates"
_MOST_BYTES: Final = 16 << 20
"""Of the templates of a chart that are looked at."""
_MOST_PATHS: Final = 10_000
_QUOTES: Final = "\"'`"
_OPENING: Final = frozenset({"if", "with", "range", "define", "block"})
_OWN_DOT: Final = frozenset({"with", "range"})
_OWN_ROOT: Final = frozenset({"define", "block"})
_METHODS: Final = frozenset({"AsMap", "Encode", "Table", "PathValue", "YAML"})
"""What ``.Values`` can do, beside what it holds."""


class ValuesPath(msgspec.Struct, frozen=True):
    """A chain of fields that a template reads of the values."""

    keys: tuple[str, ...]
    line: int
    """From 1."""

    def __str__(self) -> str:
        return ".Values." + ".".join(self.keys)


def of_chart(directory: pathlib.Path) -> Iterator[tuple[pathlib.Path, ValuesPath]]:
    """Yield what the templates of a chart read, with the file; of a chart beyond reason, a part."""
    left, found = _MOST_BYTES, 0
    for below, entries in plain_files.walk(directory / _TEMPLATES):
        for name in sorted(entries):
            try:
                text = plain_files.read_text(below / name, max(left, 0), errors="replace")
            except OSError:
                continue  # Helm says what is wrong with it.
            left -= len(text)
            for path in find(text):
                found += 1
                if found > _MOST_PATHS:
                    return
                yield below / name, path


def find(text: str) -> Iterator[ValuesPath]:
    """Yield the chains of fields of the values that a template reads wherever it is run.

    What ``.`` and ``$`` are in ``define`` is up to others, and ``.`` in ``with`` and ``range`` up to the
    values: such places are passed over. Takes one pass.
    """
    scopes = _Scopes()
    line, end = 1, 0
    while (start := text.find("{{", end)) >= 0:
        line += text.count("\n", end, start)
        code, after = _code(text, start + 2)
        words = _words(code)
        scopes.leave_at(words)
        if not scopes.with_own_root:
            yield from _paths(code, line, only_root=scopes.with_own_dot > 0)
        scopes.enter_at(words)
        line += text.count("\n", start, after)
        end = after


def _code(text: str, start: int) -> tuple[str, int]:
    """Return an action without what stands in quotes and comments, and where it ends."""
    parts: list[str] = []
    position = begin = start
    if text.startswith(("/*", "- /*"), start):
        closed = text.find("*/", start)
        end = text.find("}}", closed) if closed >= 0 else -1
        return "", end + 2 if end >= 0 else len(text)
    while position < len(text):
        if text.startswith("}}", position):
            return "".join([*parts, text[begin:position]]), position + 2
        if text[position] in _QUOTES:
            parts.append(text[begin:position] + '"')
            position = begin = _after_quote(text, position)
        else:
            position += 1
    return "", len(text)


def _after_quote(text: str, start: int) -> int:
    quote, position = text[start], start + 1
    while position < len(text) and text[position] != quote:
        position += 2 if text[position] == "\\" and quote != "`" else 1
    return position + 1


def _paths(code: str, line: int, *, only_root: bool) -> Iterator[ValuesPath]:
    for match in _PATH.finditer(code):
        before = code[match.start() - 1 : match.start()]
        is_root = match[0].startswith("$")
        # After these, it is a field of something else.
        if before.isalnum() or before in ("_", ")", ".", "$") or (only_root and not is_root):
            continue
        keys = tuple(match[1].split(".")[1:])
        if keys[0] not in _METHODS:
            yield ValuesPath(keys, line + code.count("\n", 0, match.start()))


def _words(code: str) -> list[str]:
    """Return the words that an action begins with, or none if it does not begin with one."""
    code = code.lstrip("- \t\r\n")
    words = _WORD.findall(code[:_LONGEST_WORDS])
    return words if words and code.startswith(words[0]) else []


class _Scopes:
    """The blocks that a place of a template lies in."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self.with_own_dot = 0
        """How many of them say what ``.`` is."""
        self.with_own_root = 0
        """How many of them are run with what others hand over."""

    def leave_at(self, words: list[str]) -> None:
        """Leave the block that an action ends; in ``else``, the dot is that of outside."""
        if words[:1] in (["end"], ["else"]) and self._open:
            self._leave()

    def enter_at(self, words: list[str]) -> None:
        """Enter the block that an action begins."""
        if words[:1] == ["else"]:
            self._enter("with" if words[1:2] == ["with"] else "if")
        elif words and words[0] in _OPENING:
            self._enter(words[0])

    def _enter(self, word: str) -> None:
        self._open.append(word)
        self.with_own_dot += word in _OWN_DOT
        self.with_own_root += word in _OWN_ROOT

    def _leave(self) -> None:
        word = self._open.pop()
        self.with_own_dot -= word in _OWN_DOT
        self.with_own_root -= word in _OWN_ROOT
