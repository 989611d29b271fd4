"""Reading YAML values as Helm does, but refusing what Helm silently loses.

A duplicate key, a key that is a collection, an infinite number or a second document is an error with its
position, because each of them means that a chart would see something else than the file says. Keys that are
numbers or booleans become text.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

import msgspec
import yaml
from msgspec import structs

from addon_operator.documents import json_pointers, yaml_loader
from addon_operator.kernel import errors, json_types

_SHOWN_PATH: Final = 500


class YamlError(errors.ConfigurationError):
    """The text cannot be read as values: the sentence names file, line, column, key and rule."""


class Position(msgspec.Struct, frozen=True):
    """A place in a text; both numbers count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Document(msgspec.Struct, frozen=True):
    """A YAML document and where its parts stand."""

    source: str
    """What the text is called in errors."""
    value: json_types.JsonValue
    marks: Mapping[json_pointers.Path, yaml.Mark]
    """Where each key and list item stands, by its path."""
    repeated: tuple[tuple[json_pointers.Path, str], ...] = ()
    """Place and sentence of each key, or document, that there should be once, where more are allowed."""

    def where(self, path: json_pointers.Path) -> str:
        """Return ``file, line 3, column 5`` of the path, or of the nearest parent that has a position."""
        position = self.position(path)
        return self.source if position is None else f"{self.source}, {position}"

    def position(self, path: json_pointers.Path) -> Position | None:
        """Say where the path stands, or the nearest parent that has a position."""
        lengths = range(len(path), 0, -1)
        return next((_position(self.marks[path[:n]]) for n in lengths if path[:n] in self.marks), None)


def load(text: str, source: str) -> json_types.JsonValue:
    """Return the value of one YAML document; ``None`` for an empty text.

    Raises :class:`YamlError`, which names ``source`` and the position.
    """
    with _naming(text, source):
        node = yaml.compose(text, Loader=yaml_loader.Loader)
        return None if node is None else yaml_loader.Builder(repeated=_refuse).build(node)


def load_document(text: str, source: str, *, last_wins: bool = False) -> Document:
    """Load like :func:`load`, with the positions of all keys and items.

    With ``last_wins`` the last of several equal keys counts and a further document is not read, and the
    document says so.
    """
    with _naming(text, source):
        if not last_wins:
            return _document(yaml.compose(text, Loader=yaml_loader.Loader), source)
        nodes = list(yaml.compose_all(text, Loader=yaml_loader.Loader))
        document = _document(nodes[0] if nodes else None, source, last_wins=True)
    if nodes[1:]:
        more = ((), "another document follows, which is not read; write one document")
        return structs.replace(document, repeated=(*document.repeated, more))
    return document


def load_documents(text: str, source: str, *, last_wins: bool = False) -> list[Document]:
    """Return every document of a text, empty ones too; each is called ``<source>, document 2`` and so on.

    With ``last_wins`` the last of several equal keys counts, and the document says so.

    Raises :class:`YamlError`.
    """
    with _naming(text, source):
        nodes = list(yaml.compose_all(text, Loader=yaml_loader.Loader))
    documents = []
    for number, node in enumerate(nodes, start=1):
        name = f"{source}, document {number}"
        with _naming(text, name):
            documents.append(_document(node, name, last_wins=last_wins))
    return documents


def _document(node: yaml.Node | None, source: str, *, last_wins: bool = False) -> Document:
    marks: dict[json_pointers.Path, yaml.Mark] = {}
    noted: list[tuple[json_pointers.Path, str]] = []

    def note(found: yaml_loader.Repeated) -> None:
        problem = _SET_BEFORE.format(found.line_before) + ("" if found.is_same else " to something else")
        noted.append((found.path, f"{problem}; the last one counts, remove the other"))

    builder = yaml_loader.Builder(repeated=note if last_wins else _refuse, positions=marks)
    return Document(source, None if node is None else builder.build(node), marks, tuple(noted))


def _refuse(found: yaml_loader.Repeated) -> None:
    raise yaml_loader.RuleError(_SET_BEFORE.format(found.line_before), found.key.start_mark, found.path)


_SET_BEFORE: Final = "the key is already set on line {}"


def unusual_booleans(text: str, source: str) -> list[str]:
    """Return a sentence for each unquoted ``yes no on off y n`` that is read as a boolean.

    Raises :class:`YamlError` if the text cannot be read.
    """
    with _naming(text, source):
        pending = [yaml.compose(text, Loader=yaml_loader.Loader)]
    scalars: list[yaml.ScalarNode] = []
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            pending += [part for pair in node.value for part in pair]
        elif not isinstance(node, yaml.ScalarNode):
            pending += node.value
        elif node.tag == yaml_loader.PLAIN and yaml_loader.is_unusual_boolean(node.value):
            scalars.append(node)
    scalars.sort(key=lambda scalar: cast("int", scalar.start_mark.index))
    return [
        f"{source}, {_position(scalar.start_mark)}: {scalar.value!r} is read as {value}; write {value}, or "
        "quote the word"
        for scalar in scalars
        for value in [str(yaml_loader.plain(scalar.value)).lower()]
    ]


def _position(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)


@contextlib.contextmanager
def _naming(text: str, source: str) -> Iterator[None]:
    """Turn errors of parser and builder into sentences that begin with the source."""
    try:
        yield
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        position, problem = described(error, text)
        path = error.path if isinstance(error, yaml_loader.RuleError) else ()
        place = "" if position is None else f", {position}"
        key = f", key {json_pointers.format_path(path)[:_SHOWN_PATH]}" if path else ""
        is_of_parser = isinstance(error, yaml.MarkedYAMLError) and not isinstance(
            error, yaml_loader.RuleError
        )
        said = f"invalid YAML: {problem}" if is_of_parser and problem != _SECOND else problem
        raise YamlError(f"{source}{place}{key}: {said}") from None


_SECOND: Final = "a second document begins here; write one document"


def described(error: yaml.YAMLError | UnicodeEncodeError, text: str) -> tuple[Position | None, str]:
    """Return where a text is wrong, and what is wrong there in the words of somebody who writes values.

    The sentence quotes nothing of the text but names of keys: values may be secrets.
    """
    if isinstance(error, UnicodeEncodeError):
        return None, f"character {error.start + 1} is half of a surrogate pair"
    if isinstance(error, yaml.reader.ReaderError):
        before = text.encode()[: cast("int", error.position)].decode(errors="replace")
        place = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        return place, f"{error.reason}; remove it"
    if not isinstance(error, yaml.MarkedYAMLError):
        return None, " ".join(str(error).split())
    mark = error.problem_mark
    position = None if mark is None else _position(mark)
    if isinstance(error, yaml_loader.RuleError) or mark is None:
        return position, str(error.problem)
    if isinstance(error, yaml.composer.ComposerError) and "single document" in str(error.context):
        return position, _SECOND
    return position, _explained(error, mark, text)


_ALIGN: Final = "give keys that belong together the same number of spaces"
_IN_WORDS: Final = {
    "found character that cannot start any token": "a value cannot begin with {at}; put it in quotes",
    "did not find expected node content": "a value is missing here; complete it, or put the text in quotes",
    "found undefined alias": (
        "a value that begins with '*' names an anchor, and there is none of that name; put it in quotes"
    ),
    "found unknown escape character": (
        r"a '\' in a text between double quotes begins nothing known; write '\\', or use single quotes"
    ),
    "found unexpected end of stream": "the quote that begins in line {began} does not end; close it",
    "did not find expected key": (
        f"the line is indented like none of the lines above it that it could belong to; {_ALIGN}"
    ),
    "did not find expected '-' indicator": (
        "the line is no item of the list above it; begin it with '- ', or indent it otherwise"
    ),
    "did not find expected <document start>": f"the line is indented less than the first one; {_ALIGN}",
}
_OPENING: Final = {"}": "{", "]": "["}
_KEY: Final = re.compile(r"[^\s#][^:]*+:(?:\s|$)")
_KEY_WITH_VALUE: Final = re.compile(r"[\s-]*+[^\s#:-][^:]*+:[ \t]+[^\s#]")


def _explained(error: yaml.MarkedYAMLError, mark: yaml.Mark, text: str) -> str:
    """Return what is wrong where the parser stopped, and what to do; its own words where nothing is known."""
    problem, lines = str(error.problem), text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "a tab stands where the line begins; indent with spaces"
    began = 0 if error.context_mark is None else error.context_mark.line + 1
    above = range(min(mark.line, len(lines)) - 1, -1, -1)
    content = (at for at in above if lines[at].strip() and not lines[at].lstrip().startswith("#"))
    number, before = next(((at + 1, lines[at]) for at in content), (0, ""))
    if problem.startswith("mapping values are not allowed"):
        begins_with_key = _KEY.match(line[: mark.column + 1].lstrip() + " ")
        if not (begins_with_key and before) or ": " in line[: mark.column]:
            return "a second ': ' stands in the value; put the value in quotes"
        if _KEY_WITH_VALUE.match(before):
            return (
                f"the line is indented more than line {number}, which has a value already; "
                f"give both the same number of spaces"
            )
        problem = "could not find expected ':'"
    if problem == "could not find expected ':'":
        return f"line {number} has no ':' behind its key; write 'key: value'"
    if problem in ("did not find expected ',' or '}'", "did not find expected ',' or ']'"):
        bracket = problem[-2]
        return f"{_OPENING[bracket]!r} in line {began} is followed by neither ',' nor {bracket!r}; close it"
    otherwise = f"{problem} ({error.context})" if error.context else problem
    at = repr(line[mark.column : mark.column + 1])
    return _IN_WORDS[problem].format(at=at, began=began) if problem in _IN_WORDS else otherwise
