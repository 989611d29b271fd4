"""The jq expressions that only pick fields, worked out without jq.

A third of the filters of real hooks are such: ``.spec.replicas``, ``{name: .metadata.name}``. libjq takes
twenty-five times as long, because it reads whole objects. What is made here is to the byte what jq makes;
where that is not certain, the answer is left to jq.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, Self, TypeAlias, TypedDict, cast

import msgspec
import orjson

from addon_operator.documents import json_documents
from addon_operator.kernel.json_types import JsonValue

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<field>\.[A-Za-z_][A-Za-z0-9_]*)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<text>"[^"\\\x00-\x1f\x7f]*")
      | (?P<index>-?[0-9]{1,6})
      | (?P<sign>[.()\[\]{}:,])
    )""",
    re.VERBOSE,
)
# fmt: off
_RESERVED: Final = frozenset({
    "and", "as", "catch", "def", "elif", "else", "end", "foreach", "if", "import", "include", "label",
    "module", "or", "reduce", "then", "try", "__loc__",
})
# fmt: on
_EXACT: Final = 1 << 53
"""Up to here jq writes integers as they were."""
_DEEPEST: Final = 100


class _NotPlainError(Exception):
    """Something that is left to jq: of an expression, or of an object."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Path:
    keys: tuple[str | int, ...]

    def of(self, value: JsonValue) -> JsonValue:
        for key in self.keys:
            value = _picked(value, key)
        return value


@dataclasses.dataclass(frozen=True, slots=True)
class _Text:
    text: str

    def of(self, _value: JsonValue) -> JsonValue:
        return self.text


@dataclasses.dataclass(frozen=True, slots=True)
class _List:
    items: tuple["_Expression", ...]

    def of(self, value: JsonValue) -> JsonValue:
        return [item.of(value) for item in self.items]


@dataclasses.dataclass(frozen=True, slots=True)
class _Object:
    entries: tuple[tuple[str, "_Expression"], ...]

    def of(self, value: JsonValue) -> JsonValue:
        return {key: entry.of(value) for key, entry in self.entries}


_Expression: TypeAlias = _Path | _Text | _List | _Object


@dataclasses.dataclass(frozen=True, slots=True)
class PlainFilter:
    """An expression that picks fields, and a decoder of nothing else."""

    _expression: _Expression
    _decoder: msgspec.json.Decoder[Any]

    @classmethod
    def read(cls, program: str) -> Self | None:
        """The filter for a program that jq takes; ``None`` when it does more than to pick fields."""
        try:
            expression = _Parser(program).expression()
            return cls(expression, msgspec.json.Decoder(_type_of(_paths(expression))))
        except (_NotPlainError, RecursionError):
            return None

    def result(self, document: bytes) -> bytes | None:
        """The one result for a JSON document, as JSON; ``None`` when jq has to say."""
        try:
            result = self._expression.of(self._decoder.decode(document))
            _check(result, _DEEPEST)
        except (_NotPlainError, *json_documents.BROKEN):
            return None
        return orjson.dumps(result)


class _Parser:
    def __init__(self, program: str) -> None:
        self._tokens = _tokens(program)
        self._position = 0

    def expression(self) -> _Expression:
        """All of the program."""
        found = self._value()
        if self._position < len(self._tokens):
            _not_plain()
        return found

    def _value(self) -> _Expression:
        kind, word = self._peek()
        if word == "{":
            return self._object()
        if word == "[":
            return self._list()
        if word == "(":
            return self._group()
        if kind == "text":
            self._position += 1
            return _Text(word[1:-1])
        return self._path()

    def _path(self) -> _Path:
        keys: list[str | int] = []
        kind, word = self._next()
        if kind == "field":
            keys.append(word[1:])
        elif word != ".":
            _not_plain()
        elif self._peek()[0] == "text":
            keys.append(self._next()[1][1:-1])
        while (step := self._step()) is not None:
            keys.append(step)
        return _Path(tuple(keys))

    def _step(self) -> str | int | None:
        """What comes after a dot, or in brackets."""
        kind, word = self._peek()
        if kind == "field":
            self._position += 1
            return word[1:]
        if word == ".":
            self._position += 1
            kind, word = self._next()
            return word[1:-1] if kind == "text" else _not_plain()
        if word != "[":
            return None
        self._position += 1
        kind, word = self._next()
        if kind not in {"text", "index"}:
            _not_plain()
        self._expect("]")
        return word[1:-1] if kind == "text" else int(word)

    def _group(self) -> _Expression:
        self._expect("(")
        found = self._value()
        self._expect(")")
        return found

    def _list(self) -> _List:
        self._expect("[")
        items = [self._value()]
        while self._peek()[1] == ",":
            self._position += 1
            items.append(self._value())
        self._expect("]")
        return _List(tuple(items))

    def _object(self) -> _Object:
        self._expect("{")
        entries = [self._entry()]
        while self._peek()[1] == ",":
            self._position += 1
            entries.append(self._entry())
        self._expect("}")
        return _Object(tuple(entries))

    def _entry(self) -> tuple[str, _Expression]:
        kind, word = self._next()
        if kind not in {"name", "text"} or word in _RESERVED:
            _not_plain()
        key = word[1:-1] if kind == "text" else word
        if self._peek()[1] != ":":
            return key, _Path((key,))
        self._position += 1
        return key, self._value()

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position] if self._position < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        found = self._peek()
        self._position += 1
        return found

    def _expect(self, word: str) -> None:
        if self._next()[1] != word:
            _not_plain()


def _tokens(program: str) -> list[tuple[str, str]]:
    text = program.rstrip()
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            _not_plain()
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


def _paths(expression: _Expression) -> list[tuple[str | int, ...]]:
    match expression:
        case _Path(keys):
            return [keys]
        case _List(items):
            return [path for item in items for path in _paths(item)]
        case _Object(entries):
            return [path for _, entry in entries for path in _paths(entry)]
    return []


def _type_of(paths: Sequence[tuple[str | int, ...]]) -> Any:  # noqa: ANN401 - a type made at run time
    """A type with the fields on these paths, of which msgspec decodes nothing else."""
    if not all(path and _can_be_picked(path[0]) for path in paths):
        return Any
    below: dict[str, list[tuple[str | int, ...]]] = {}
    for key, *rest in paths:
        below.setdefault(str(key), []).append(tuple(rest))
    return TypedDict("Picked", {key: _type_of(rest) for key, rest in below.items()}, total=False) | None  # type: ignore[operator]


def _can_be_picked(key: str | int) -> bool:
    # msgspec 0.22 does not find other keys of a TypedDict.
    return isinstance(key, str) and key.isascii()


def _picked(value: JsonValue, key: str | int) -> JsonValue:
    """What jq's ``.[key]`` gives; it fails for values of other types, and says so better."""
    if value is None:
        return None
    if isinstance(key, str) and isinstance(value, Mapping):
        return cast("Mapping[str, JsonValue]", value).get(key)
    if isinstance(key, int) and isinstance(value, list):
        return value[key] if -len(value) <= key < len(value) else None
    return _not_plain()


def _check(value: JsonValue, depth: int) -> None:
    """Whether jq would write it in the same way: fractions and large numbers have several."""
    if isinstance(value, str):
        # jq writes DEL as an escape.
        if "\x7f" in value:
            _not_plain()
    elif isinstance(value, float) or depth == 0:
        _not_plain()
    elif isinstance(value, int):
        if not -_EXACT < value < _EXACT:
            _not_plain()
    elif value is not None:
        _check_all([*value, *value.values()] if isinstance(value, dict) else value, depth - 1)


def _check_all(values: Sequence[JsonValue], depth: int) -> None:
    for value in values:
        _check(value, depth)


def _not_plain() -> NoReturn:
    raise _NotPlainError
