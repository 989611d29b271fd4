"""Reading YAML values as Helm does, but refusing what Helm silently loses.

A duplicate key, a key that is a collection, an infinite number or a second document is an error with its
position, because each of them means that a chart would see something else than the file says. Keys that are
numbers or booleans become text.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn, cast

import yaml

from addon_operator.documents import yaml_loader, yaml_problems
from addon_operator.kernel import errors, json_types

_CORE: Final = yaml_loader.CORE
_BINARY_TAG: Final = _CORE + "binary"
_SHOWN_PATH: Final = 500

Path = tuple[str | int, ...]


class YamlError(errors.ConfigurationError):
    """The text cannot be read as values: the sentence names file, line, column, key and rule."""


@dataclasses.dataclass(frozen=True, slots=True)
class Position:
    """A place in a text; both numbers count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A YAML document and where its parts stand."""

    source: str
    """What the text is called in errors."""
    value: json_types.JsonValue
    positions: Mapping[Path, Position]
    """Position of each key and list item by its path."""
    repeated: tuple[tuple[Path, str], ...] = ()
    """Place and sentence of each key, or document, that there should be once, where more are allowed."""

    def where(self, path: Path) -> str:
        """Return ``file, line 3, column 5`` of the path, or of the nearest parent that has a position."""
        position = self.position(path)
        return self.source if position is None else f"{self.source}, {position}"

    def position(self, path: Path) -> Position | None:
        """Say where the path stands, or the nearest parent that has a position."""
        lengths = range(len(path), 0, -1)
        return next((self.positions[path[:n]] for n in lengths if path[:n] in self.positions), None)


def load(text: str, source: str) -> json_types.JsonValue:
    """Return the value of one YAML document; ``None`` for an empty text.

    Raises :class:`YamlError`, which names ``source`` and the position.
    """
    node = _compose(text, source)
    return None if node is None else _ValueBuilder(source, positions=None).build(node, ())


def load_document(text: str, source: str, *, last_wins: bool = False) -> Document:
    """Load like :func:`load`, with the positions of all keys and items.

    With ``last_wins`` the last of several equal keys counts and a further document is not read, and the
    document says so.
    """
    if not last_wins:
        return _document(_compose(text, source), source)
    with _telling(text, source):
        nodes = list(yaml.compose_all(text, Loader=yaml_loader.Loader))
    document = _document(nodes[0] if nodes else None, source, last_wins=True)
    if nodes[1:]:
        more = ((), "another document follows, which is not read; write one document")
        return dataclasses.replace(document, repeated=(*document.repeated, more))
    return document


def load_documents(text: str, source: str, *, last_wins: bool = False) -> list[Document]:
    """Return every document of a text, empty ones too; each is called ``<source>, document 2`` and so on.

    With ``last_wins`` the last of several equal keys counts, and the document says so.

    Raises :class:`YamlError`.
    """
    with _telling(text, source):
        nodes = list(yaml.compose_all(text, Loader=yaml_loader.Loader))
    return [
        _document(node, f"{source}, document {number}", last_wins=last_wins)
        for number, node in enumerate(nodes, start=1)
    ]


def unusual_booleans(text: str, source: str) -> list[str]:
    """Return a sentence for each unquoted ``yes no on off y n`` that is read as a boolean.

    Raises :class:`YamlError` if the text cannot be read.
    """
    node = _compose(text, source)
    return [] if node is None else [_boolean_warning(scalar, source) for scalar in _unusual(node)]


def format_path(path: Path) -> str:
    """Return a path for people: ``("a", "b", 0)`` is ``a.b[0]``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _boolean_warning(node: yaml.ScalarNode, source: str) -> str:
    value = str(yaml_loader.plain(node.value)).lower()
    return f"{source}, {_position(node)}: {node.value!r} is read as {value}; write {value}, or quote the word"


def _unusual(root: yaml.Node) -> list[yaml.ScalarNode]:
    scalars: list[yaml.ScalarNode] = []
    seen: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            if node.tag == yaml_loader.PLAIN and yaml_loader.is_unusual_boolean(node.value):
                scalars.append(node)
        else:
            pending.extend(_children(node))
    return sorted(scalars, key=lambda scalar: cast("int", scalar.start_mark.index))


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value)


def _compose(text: str, source: str) -> yaml.Node | None:
    with _telling(text, source):
        return yaml.compose(text, Loader=yaml_loader.Loader)


def _document(node: yaml.Node | None, source: str, *, last_wins: bool = False) -> Document:
    positions: dict[Path, Position] = {}
    repeated: list[tuple[Path, str]] | None = [] if last_wins else None
    value = None if node is None else _ValueBuilder(source, positions, repeated).build(node, ())
    return Document(source, value, positions, tuple(repeated or ()))


@contextlib.contextmanager
def _telling(text: str, source: str) -> Iterator[None]:
    """Turn errors of the parser into sentences."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise YamlError(f"{source}: character {error.start + 1} is half of a surrogate pair") from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"{source}, {_reader_position(text, error)}: {error.reason}; remove it") from None
    except yaml_loader.BoundError as error:
        raise YamlError(f"{source}{_mark_text(error)}{_key_text(error.path)}: {error.problem}") from None
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"{source}{_mark_text(error)}: {_problem(error, text)}") from None


def _reader_position(text: str, error: yaml.reader.ReaderError) -> Position:
    offset = cast("int", error.position)
    before = text.encode()[:offset].decode(errors="replace")
    return Position(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _mark_text(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return "" if mark is None else f", {Position(mark.line + 1, mark.column + 1)}"


def _problem(error: yaml.MarkedYAMLError, text: str) -> str:
    if (
        isinstance(error, yaml.composer.ComposerError)
        and error.context
        and "single document" in error.context
    ):
        return "a second document begins here; write one document"
    return f"invalid YAML: {yaml_problems.explained(error, text)}"


def _key_text(path: Path) -> str:
    return f", key {format_path(path)[:_SHOWN_PATH]}" if path else ""


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


class _ValueBuilder:
    """Turns nodes into JSON values."""

    def __init__(
        self,
        source: str,
        positions: dict[Path, Position] | None,
        repeated: list[tuple[Path, str]] | None = None,
    ) -> None:
        """``positions`` and ``repeated`` are filled; without ``repeated`` no key may stand twice."""
        self._source = source
        self._positions = positions
        self._repeated = repeated

    def build(self, node: yaml.Node, path: Path) -> json_types.JsonValue:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return self._sequence(node, path)

    def _sequence(self, node: yaml.Node, path: Path) -> list[json_types.JsonValue]:
        items: list[json_types.JsonValue] = []
        for index, item in enumerate(node.value):
            item_path = (*path, index)
            self._note(item_path, item)
            items.append(self.build(item, item_path))
        return items

    def _mapping(self, node: yaml.MappingNode, path: Path) -> json_types.JsonObject:
        result: json_types.JsonObject = {}
        written: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            if key_node.tag == yaml_loader.MERGE:
                self._merge(result, value_node, path)
                continue
            key = self._key(key_node, path)
            self._note((*path, key), key_node)
            value = self.build(value_node, (*path, key))
            if key in written:
                self._repeat(key_node, (*path, key), written[key], is_same=result[key] == value)
            written[key] = key_node
            result[key] = value
        return result

    def _repeat(self, node: yaml.Node, path: Path, before: yaml.Node, *, is_same: bool) -> None:
        problem = f"the key is already set on line {_position(before).line}"
        if self._repeated is None:
            self._fail(node, path, problem)
        elsewise = "" if is_same else " to something else"
        self._repeated.append((path, f"{problem}{elsewise}; the last one counts, remove the other"))

    def _note(self, path: Path, node: yaml.Node) -> None:
        if self._positions is not None:
            self._positions[path] = _position(node)

    def _merge(self, result: json_types.JsonObject, node: yaml.Node, path: Path) -> None:
        # As in Helm, later wins: a merge key overrides what stands above it, and what follows overrides it.
        sources = reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                self._fail(source, path, "a merge key '<<' takes a mapping or a list of mappings")
            result.update(self._mapping(source, path))

    def _key(self, node: yaml.Node, path: Path) -> str:
        value = self._scalar(node, path) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(value, str):
            return value
        key = None if value is None else yaml_loader.key(node.value)
        if key is not None:
            return key
        written = (
            f"{yaml_loader.shown(node.value)} ({_kind(value)})"
            if isinstance(node, yaml.ScalarNode)
            else "a collection"
        )
        return self._fail(
            node, path, f"a key must be a string, a number or a boolean, not {written}; quote it"
        )

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> json_types.JsonValue:
        text: str = node.value
        if node.tag == yaml_loader.PLAIN:
            value = yaml_loader.plain(text)
        elif node.tag in _TAGGED:
            value = self._tagged(node, path)
        elif node.tag == _BINARY_TAG:
            value = self._binary(node, path)
        else:
            return text
        if isinstance(value, float) and not math.isfinite(value):
            self._fail(node, path, f"{text[:_SHOWN_PATH]} has no JSON form; use a finite number or quote it")
        return value

    def _tagged(self, node: yaml.ScalarNode, path: Path) -> yaml_loader.Scalar:
        value = yaml_loader.plain(node.value)
        if not isinstance(value, _TAGGED[node.tag]) or (
            isinstance(value, bool) and node.tag != _CORE + "bool"
        ):
            name = node.tag.removeprefix(_CORE)
            self._fail(node, path, f"{yaml_loader.shown(node.value)} is not a !!{name}")
        return value

    def _binary(self, node: yaml.ScalarNode, path: Path) -> str:
        try:
            return yaml_loader.base64_bytes(node.value).decode()
        except ValueError:
            return self._fail(node, path, "!!binary takes the base64 form of a UTF-8 text")

    def _fail(self, node: yaml.Node, path: Path, problem: str) -> NoReturn:
        raise YamlError(f"{self._source}, {_position(node)}{_key_text(path)}: {problem}")


_TAGGED: Final[Mapping[str, tuple[type, ...]]] = {
    _CORE + "int": (int,),
    _CORE + "float": (int, float),
    _CORE + "bool": (bool,),
    _CORE + "null": (type(None),),
}


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return "a boolean" if isinstance(value, bool) else "a number"
