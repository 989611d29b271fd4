"""Which line of a template a field of a rendered object stands in, as far as the template's text tells."""

import pathlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from addon_operator.helm.charts import plain_files

_MAX_BYTES: Final = 256 * 1024
"""In larger files no line is looked for."""
_MOST: Final = 200
"""So many fields of a chart are looked for."""
_LONGEST_KEY: Final = 300
_QUOTES: Final = "\"'"


class Field(msgspec.Struct, frozen=True):
    """A field of a rendered object, or the object itself."""

    kind: str
    name: str
    path: tuple[str | int, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    number: int
    column: int
    """Of its first character, from 0."""
    text: str
    """Without what it is indented by."""

    @property
    def is_item(self) -> bool:
        return self.text.startswith("- ")

    @property
    def key_column(self) -> int:
        return self.column + len(self.text) - len(_inner(self.text))

    @property
    def key(self) -> str:
        """The key that begins it; empty if none does."""
        key, colon, after = _inner(self.text)[:_LONGEST_KEY].partition(":")
        is_key = colon and after[:1] in ("", " ") and "{" not in key and not key.startswith("#")
        return key.strip().strip(_QUOTES) if is_key else ""

    @property
    def is_action(self) -> bool:
        """Whether it is no YAML, but says what there will be."""
        return self.text.startswith("{{") and self.text.rstrip().endswith("}}")


class Places:
    """Where in their templates fields stand; each template is read once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._left = _MOST

    def of(self, file: str, field: Field | None) -> str:
        """Return the file, with the line behind a colon if the template tells it."""
        if field is None or not self._left:
            return file
        self._left -= 1
        if file not in self._texts:
            self._texts[file] = _read(pathlib.Path(file))
        line = find(self._texts[file], field)
        return f"{file}:{line}" if line else file


def _read(path: pathlib.Path) -> str:
    """Return the text of a template; empty for one that cannot be read, or is too large to look into."""
    try:
        return plain_files.read_text(path, _MAX_BYTES, errors="replace")
    except (OSError, ValueError):
        return ""


def find(text: str, field: Field) -> int:
    """Return the line of a field, from 1, or of the nearest field around it that has one.

    0 if the template does not tell: it has no such object in its text, or several that may be meant.
    """
    block = _part(list(_lines(_without_comments(text))), field)
    found = _of_kind(block, field.kind)
    if found is None:
        return 0
    for key in field.path:
        if isinstance(key, int):
            block = _item(block, key)
            continue
        line = _outermost(block, key)
        if line is None:
            break
        found, block = line, _below(line, block)
    return found.number


def _without_comments(text: str) -> str:
    """Return a template with empty lines in place of its comments."""
    parts, position = [], 0
    while (start := text.find("{{", position)) >= 0:
        is_comment = text[start + 2 : start + 6].lstrip("- ").startswith("/*")
        closed = text.find("*/", start) if is_comment else start
        end = text.find("}}", closed) if closed >= 0 else -1
        if end < 0:
            break
        after = end + len("}}")
        inner = "\n" * text.count("\n", start, end) if is_comment else text[start:after]
        parts += [text[position:start], inner]
        position = after
    return "".join([*parts, text[position:]])


def _lines(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.splitlines(), 1):
        inner = line.lstrip()
        if inner and not inner.startswith("#"):
            yield _Line(number, len(line) - len(inner), inner)


def _part(lines: Sequence[_Line], field: Field) -> Sequence[_Line]:
    """Return the lines of the document that renders the object; none if there is not just one."""
    parts: list[list[_Line]] = [[]]
    for line in lines:
        if line.column == 0 and line.text.startswith("---"):
            parts.append([])
        else:
            parts[-1].append(line)
    likely = sorted(
        ((score, part) for part in parts if (score := _likeness(part, field)) > 0),
        key=lambda each: each[0],
        reverse=True,
    )
    if not likely or (len(likely) > 1 and likely[0][0] == likely[1][0]):
        return ()
    return likely[0][1]


def _likeness(part: Sequence[_Line], field: Field) -> int:
    """Return how much of a document is of this object; 0 if it renders another one."""
    kind = _of_kind(part, field.kind)
    if kind is None:
        return 0
    score = 1 if "{{" in kind.text else 2
    metadata = _outermost(part, "metadata")
    name = None if metadata is None else _outermost(_below(metadata, part), "name")
    if name is None:
        return score
    fixed = _fixed_texts(_value(name))
    rest = field.name
    for text in fixed:
        _, is_there, rest = rest.partition(text)
        if not is_there:
            return 0
    is_whole = "{{" not in _value(name)
    if is_whole and _value(name) != field.name:
        return 0
    return score + 2 * sum(map(len, fixed))


def _of_kind(part: Sequence[_Line], kind: str) -> _Line | None:
    """Return the line that says the kind; charts may have several, between ``if`` and ``else``."""
    first = _outermost(part, "kind")
    if first is None:
        return None
    written = [line for line in part if line.key == "kind" and line.key_column == first.key_column]
    made = [line for line in written if "{{" in line.text]
    return next(iter([*(line for line in written if _value(line) == kind), *made]), None)


def _fixed_texts(value: str) -> list[str]:
    """Return what of a value stands for itself, from left to right."""
    parts = []
    for piece in value.split("}}"):
        text = piece.partition("{{")[0]
        if text:
            parts.append(text)
    return parts


def _value(line: _Line) -> str:
    value = _inner(line.text).partition(":")[2].partition(" #")[0]
    return value.strip().strip(_QUOTES)


def _outermost(block: Sequence[_Line], key: str) -> _Line | None:
    """Return the line of the key that is indented least; the first one of several."""
    return min((line for line in block if line.key == key), key=lambda line: line.key_column, default=None)


def _below(line: _Line, block: Sequence[_Line]) -> Sequence[_Line]:
    """Return the lines of what a key holds."""
    start = block.index(line) + 1
    return [*_while_inside(block[start:], line.key_column, takes_items=True)]


def _item(block: Sequence[_Line], index: int) -> Sequence[_Line]:
    """Return the lines of an item of a list; all if it is not known which these are."""
    items = [line for line in block if line.is_item]
    column = min((line.column for line in items), default=0)
    items = [line for line in items if line.column == column]
    is_repeated = any(line.is_action and "range" in line.text for line in block)
    if not is_repeated and index < len(items):
        start = block.index(items[index])
        return [items[index], *_while_inside(block[start + 1 :], column, takes_items=False)]
    return block


def _while_inside(lines: Sequence[_Line], column: int, *, takes_items: bool) -> Iterator[_Line]:
    for line in lines:
        is_list = takes_items and line.is_item and line.column == column
        if line.column <= column and not line.is_action and not is_list:
            return
        yield line


def _inner(text: str) -> str:
    """Return what stands behind the dashes of items."""
    while text.startswith("- "):
        text = text[2:].lstrip()
    return text
