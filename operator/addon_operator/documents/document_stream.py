"""Reading the JSON or YAML that a hook prints or writes."""

import json
import math
import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final, cast

import yaml

from addon_operator.documents import bounded_yaml
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, JsonValue

_SPACE: Final = " \t\r\n\ufeff"


class DocumentError(errors.ConfigurationError):
    """A text is no JSON and no YAML, or holds something that is ambiguous."""


class StreamError(DocumentError):
    """A document in a stream cannot be read; ``index`` counts documents from 0."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(f"document [{index}]: {message}")
        self.index = index
        self.reason = message


def load(text: str) -> JsonValue:
    """The one document in a text; ``None`` for an empty one.

    Keys are strings. One may stand twice in a mapping with the same text, number or flag, since the Go
    operator takes hooks that do that. Dates stay text.

    Raises :class:`DocumentError` with line and column where there is one.
    """
    if text.lstrip().startswith("{"):
        try:
            document: JsonValue = _JSON.decode(text)
        except json.JSONDecodeError as error:
            document = _yaml(text, json_error=error)
        except RecursionError as error:
            raise DocumentError(bounded_yaml.TOO_DEEP) from error
    else:
        document = _yaml(text)
    _check(document)
    return document


def load_json_stream(text: str) -> list[JsonValue]:
    """All JSON documents of a text, one after the other with any white space between them.

    Raises :class:`StreamError` with the document's index, and line and column in the whole text.
    """
    found: list[JsonValue] = []
    position = _skip_space(text, 0)
    while position < len(text):
        try:
            value, end = _JSON.raw_decode(text, position)
            _check(value)
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise StreamError(len(found), f"invalid JSON in {place}: {error.msg}") from error
        except RecursionError as error:
            raise StreamError(len(found), bounded_yaml.TOO_DEEP) from error
        except DocumentError as error:
            raise StreamError(len(found), str(error)) from error
        found.append(value)
        position = _skip_space(text, end)
    return found


def load_stream(text: str) -> list[JsonValue]:
    """All documents of a text: JSON one after the other, or YAML between lines of ``---``; not empty ones.

    Raises :class:`StreamError` with the document's index, and line and column where there are some.
    """
    start = text.lstrip(_SPACE)
    if not start.startswith(("{", "[")):
        return list(_yaml_stream(text)) if start else []
    try:
        return load_json_stream(text)
    except StreamError as json_error:
        # A flow mapping of YAML begins like JSON; what is neither is most likely meant as JSON.
        try:
            return list(_yaml_stream(text))
        except StreamError:
            raise json_error from None


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _yaml_stream(text: str) -> Iterator[JsonValue]:
    index = 0
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            if document is not None:
                _check(document)
                yield cast("JsonValue", document)
                index += 1
    except yaml.YAMLError as error:
        raise StreamError(index, _reason(error)) from error
    except (DocumentError, ValueError) as error:
        raise StreamError(index, str(error)) from error
    except RecursionError as error:
        raise StreamError(index, bounded_yaml.TOO_DEEP) from error


def _check(document: object) -> None:
    """Refuse what JSON cannot say, and what nests too deep."""
    level, depth = [document], 0
    while level:
        if depth > bounded_yaml.MAX_DEPTH + 1:
            raise DocumentError(bounded_yaml.TOO_DEEP)
        for value in level:
            _check_scalar(value)
        level = [item for value in level for item in _inner(value)]
        depth += 1


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_scalar(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DocumentError(f"{value} has no JSON form; write a finite number or quote it")
    if value is not None and not isinstance(value, bool | int | float | str | list | dict):
        raise DocumentError(f"a {type(value).__name__} has no JSON form; write a text")


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    mapping: JsonObject = {}
    for key, value in pairs:
        if key in mapping and (type(mapping[key]), mapping[key]) != (type(value), value):
            raise DocumentError(
                f"the key {bounded_yaml.shown(key)} stands twice in one mapping, with different values"
            )
        mapping[key] = value
    return mapping


def _no_constant(name: str) -> JsonValue:
    raise DocumentError(f"{name} is no JSON number")


def _integer(digits: str) -> int:
    if len(digits) > bounded_yaml.MAX_DIGITS:
        raise DocumentError(f"a number has more than {bounded_yaml.MAX_DIGITS} digits; quote it")
    return int(digits)


_JSON: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer)


def _yaml(text: str, json_error: json.JSONDecodeError | None = None) -> JsonValue:
    try:
        return cast("JsonValue", yaml.load(text, Loader=_Loader))  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        if json_error is not None and not isinstance(error, bounded_yaml.BoundError):
            raise DocumentError(f"{_NEITHER}: {json_error}") from error
        raise DocumentError(_reason(error)) from error
    except (RecursionError, ValueError) as error:
        raise DocumentError(f"{_NEITHER}: {error}") from error


_NEITHER: Final = "it is neither JSON nor YAML"


def _reason(error: yaml.YAMLError) -> str:
    is_yaml = isinstance(error, bounded_yaml.BoundError)
    return _one_line(error) if is_yaml else f"{_NEITHER}: {_one_line(error)}"


def _one_line(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    if error.problem_mark is None:
        return str(error.problem)
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"


class _Loader(bounded_yaml.Loader):
    """The bounded loader without dates; a key with two values, or one that is no text, is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if not _same(seen.setdefault(key, value_node), value_node):
                line = key_node.start_mark.line + 1
                raise DocumentError(
                    f"line {line}: the key {bounded_yaml.shown(key)} stands twice, with different values"
                )
        return super().construct_mapping(node, deep=deep)

    def _key(self, node: yaml.Node) -> str:
        if node.tag in {_TEXT, _MERGE}:
            return str(node.value)
        raise DocumentError(
            f"line {node.start_mark.line + 1}: the key {_shown_key(node)} is no text; quote it"
        )


def _shown_key(node: yaml.Node) -> str:
    return bounded_yaml.shown(node.value) if isinstance(node, yaml.ScalarNode) else "of a collection"


def _same(one: yaml.Node, other: yaml.Node) -> bool:
    """Whether two nodes are one, or scalars of the same value."""
    is_scalar = isinstance(one, yaml.ScalarNode)
    return one is other or (is_scalar and (one.tag, one.value) == (other.tag, other.value))


_TEXT: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
_INTEGER: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
# Dates stay text, and so does "=", an operator of field selectors.
_UNWANTED: Final = frozenset(
    {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value", _INTEGER, _FLOAT},
)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _UNWANTED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
# Numbers as kubectl reads them: 12:30 is a text and 1e3 a number, against PyYAML; 0755 stays octal.
_Loader.add_implicit_resolver(
    _INTEGER, re.compile(r"[-+]?(0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9_]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)
