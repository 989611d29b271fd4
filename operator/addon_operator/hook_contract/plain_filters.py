"""The jq expressions that only pick fields, worked out without jq.

A third of the filters of real hooks are such: ``.spec.replicas``, ``{name: .metadata.name}``. libjq takes
twelve times as long (benchmark ``objects``), because it reads whole objects. What is made here is to the byte
what jq makes; where that is not certain, the answer is left to jq.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, Self, TypeAlias, TypedDict, TypeVar

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


_T = TypeVar("_T")


class _NotPlainError(Exception):
    """Something that is left to jq: of an expression, or of an object."""


class _Object(msgspec.Struct, frozen=True):
    entries: list[tuple[str, "_Expression"]]
    """Of two with one key the last one counts, and both have to be right."""


_Path: TypeAlias = tuple[str | int, ...]
_Expression: TypeAlias = "_Path | str | list[_Expression] | _Object"
"""A path to pick from, a text, or a list or an object of expressions."""


def _value_of(expression: _Expression, document: JsonValue) -> JsonValue:
    if isinstance(expression, tuple):
        for key in expression:
            document = _picked(document, key)
        return document
    if isinstance(expression, _Object):
        return {key: _value_of(entry, document) for key, entry in expression.entries}
    return expression if isinstance(expression, str) else [_value_of(item, document) for item in expression]


class PlainFilter(msgspec.Struct, frozen=True):
    """An expression that picks fields, and a decoder of nothing else."""

    _expression: _Expression
    _decoder: msgspec.json.Decoder[Any]

    @classmethod
    def read(cls, program: str) -> Self | None:
        """Return the filter for a program that jq takes; ``None`` when it does more than to pick fields."""
        try:
            expression = _Parser(program).expression()
            return cls(expression, msgspec.json.Decoder(_type_of(_paths(expression))))
        except (_NotPlainError, RecursionError):
            return None

    def result(self, document: bytes) -> bytes | None:
        """Return the one result for a JSON document, as JSON; ``None`` when jq has to say."""
        try:
            result = _value_of(self._expression, self._decoder.decode(document))
            _check(result, _DEEPEST)
        except (_NotPlainError, *json_documents.BROKEN):
            return None
        return orjson.dumps(result)


class _Parser:
    def __init__(self, program: str) -> None:
        self._tokens = _tokens(program)
        self._position = 0

    def expression(self) -> _Expression:
        """Parse all of the program."""
        found = self._value()
        if self._position < len(self._tokens):
            _not_plain()
        return found

    def _value(self) -> _Expression:
        kind, word = self._peek()
        if kind == "text":
            return self._next()[1][1:-1]
        if word == "(":
            self._next()
            found = self._value()
            self._expect(")")
            return found
        if word == "[":
            return self._listed("]", self._value)
        if word == "{":
            return _Object(self._listed("}", self._entry))
        return self._path()

    def _listed(self, end: str, read: Callable[[], _T]) -> list[_T]:
        """Return what stands between brackets, with commas."""
        self._next()
        items = [read()]
        while self._peek()[1] == ",":
            self._next()
            items.append(read())
        self._expect(end)
        return items

    def _path(self) -> _Path:
        keys: list[str | int] = []
        kind, word = self._next()
        if kind == "field":
            keys.append(word[1:])
        elif word != ".":
            _not_plain()
        elif self._peek()[0] == "text":
            keys.append(self._next()[1][1:-1])
        while self._peek()[0] == "field" or self._peek()[1] in {".", "["}:
            keys.append(self._step())
        return tuple(keys)

    def _step(self) -> str | int:
        """Return what comes after a dot, or in brackets."""
        kind, word = self._next()
        if kind == "field":
            return word[1:]
        in_brackets = word == "["
        kind, word = self._next()
        if in_brackets:
            self._expect("]")
        if kind == "text":
            return word[1:-1]
        return int(word) if in_brackets and kind == "index" else _not_plain()

    def _entry(self) -> tuple[str, _Expression]:
        kind, word = self._next()
        if kind not in {"name", "text"} or word in _RESERVED:
            _not_plain()
        key = word[1:-1] if kind == "text" else word
        if self._peek()[1] != ":":
            return key, (key,)
        self._next()
        return key, self._value()

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position] if self._position < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._position += 1
        return token

    def _expect(self, word: str) -> None:
        if self._next()[1] != word:
            _not_plain()


def _tokens(program: str) -> list[tuple[str, str]]:
    text = program.rstrip()
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            _not_plain()
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


def _paths(expression: _Expression) -> list[_Path]:
    match expression:
        case tuple():
            return [expression]
        case list():
            return [path for item in expression for path in _paths(item)]
        case _Object(entries):
            return [path for _, entry in entries for path in _paths(entry)]
    return []


def _type_of(paths: Sequence[_Path]) -> Any:  # noqa: ANN401 - a type made at run time
    """Return a type with the fields on these paths, of which msgspec decodes nothing else."""
    # msgspec 0.22 does not find other keys of a TypedDict.
    if not all(path and isinstance(path[0], str) and path[0].isascii() for path in paths):
        return Any
    below: dict[str, list[_Path]] = {}
    for key, *rest in paths:
        below.setdefault(str(key), []).append(tuple(rest))
    return TypedDict("Picked", {key: _type_of(rest) for key, rest in below.items()}, total=False) | None  # type: ignore[operator]


def _picked(value: JsonValue, key: str | int) -> JsonValue:
    """Return what jq's ``.[key]`` gives; it fails for values of other types, and says so better."""
    if value is None:
        return None
    if isinstance(key, str) and isinstance(value, dict):
        return value.get(key)
    if isinstance(key, int) and isinstance(value, list):
        return value[key] if -len(value) <= key < len(value) else None
    return _not_plain()


def _check(value: JsonValue, depth: int) -> None:
    """Say whether jq would write it in the same way: fractions and large numbers have several."""
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
        for inner in [*value, *value.values()] if isinstance(value, dict) else value:
            _check(inner, depth - 1)


def _not_plain() -> NoReturn:
    raise _NotPlainError
