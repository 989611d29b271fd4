"""Reading the JSON or YAML that a hook prints or writes."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import yaml

from addon_operator.documents import yaml_loader, yaml_problems
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, JsonValue

_SPACE: Final = " \t\r\n\ufeff"


class DocumentError(errors.ConfigurationError):
    """A text is neither JSON nor YAML, or holds something that is ambiguous."""


class StreamError(DocumentError):
    """A document in a stream cannot be read; ``index`` counts documents from 0."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(f"document [{index}]: {message}")
        self.index = index
        self.reason = message


def load(text: str) -> JsonValue:
    """Return the one document in a text; ``None`` for an empty one.

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
            raise DocumentError(yaml_loader.TOO_DEEP) from error
    else:
        document = _yaml(text)
    _check(document)
    return document


def load_json_stream(text: str) -> list[JsonValue]:
    """Return all JSON documents of a text, one after the other with any white space between them.

    Raises :class:`StreamError` with the document's index, and line and column in the whole text.
    """
    documents: list[JsonValue] = []
    try:
        for value, _, _ in json_stream(text, _JSON):
            _check(value)
            documents.append(value)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise StreamError(len(documents), f"invalid JSON in {place}: {error.msg}") from error
    except RecursionError as error:
        raise StreamError(len(documents), yaml_loader.TOO_DEEP) from error
    except DocumentError as error:
        raise StreamError(len(documents), str(error)) from error
    return documents


def load_stream(text: str) -> list[JsonValue]:
    """Return the documents of a text, without empty ones: JSON one after another, or YAML between ``---``.

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


def json_stream(text: str, decoder: json.JSONDecoder) -> Iterator[tuple[Any, int, int]]:
    """Yield each JSON document of a text, with where it begins and ends; white space may stand between.

    Raises :class:`json.JSONDecodeError` with the place in the whole text, and what the decoder raises.
    """
    position = _skip_space(text, 0)
    while position < len(text):
        value, end = decoder.raw_decode(text, position)
        yield value, position, end
        position = _skip_space(text, end)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _yaml_stream(text: str) -> Iterator[JsonValue]:
    index = 0
    try:
        for document in yaml.load_all(text, Loader=_HookLoader):
            if document is not None:
                _check(document)
                yield cast("JsonValue", document)
                index += 1
    except yaml.YAMLError as error:
        raise StreamError(index, _reason(error, text)) from error
    except (DocumentError, ValueError) as error:
        raise StreamError(index, str(error)) from error
    except RecursionError as error:
        raise StreamError(index, yaml_loader.TOO_DEEP) from error


def _check(document: object) -> None:
    """Refuse what JSON cannot say, and what nests too deep."""
    level, depth = [document], 0
    while level:
        if depth > yaml_loader.MAX_DEPTH + 1:
            raise DocumentError(yaml_loader.TOO_DEEP)
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
                f"the key {yaml_loader.shown(key)} occurs twice in one mapping, with different values"
            )
        mapping[key] = value
    return mapping


def _no_constant(name: str) -> JsonValue:
    raise DocumentError(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits) > yaml_loader.MAX_DIGITS:
        raise DocumentError(f"a number has more than {yaml_loader.MAX_DIGITS} digits; quote it")
    return int(digits)


_JSON: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer)


def _yaml(text: str, json_error: json.JSONDecodeError | None = None) -> JsonValue:
    try:
        return cast("JsonValue", yaml.load(text, Loader=_HookLoader))  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        if json_error is not None and not isinstance(error, yaml_loader.BoundError):
            raise DocumentError(f"{_NEITHER}: {json_error}") from error
        raise DocumentError(_reason(error, text)) from error
    except (RecursionError, ValueError) as error:
        raise DocumentError(f"{_NEITHER}: {error}") from error


_NEITHER: Final = "it is neither JSON nor YAML"


def _reason(error: yaml.YAMLError, text: str) -> str:
    is_yaml = isinstance(error, yaml_loader.BoundError)
    return _one_line(error, text) if is_yaml else f"{_NEITHER}: {_one_line(error, text)}"


def _one_line(error: yaml.YAMLError, text: str) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    if error.problem_mark is None:
        return str(error.problem)
    mark = error.problem_mark
    said = (
        str(error.problem)
        if isinstance(error, yaml_loader.BoundError)
        else yaml_problems.explained(error, text)
    )
    return f"line {mark.line + 1}, column {mark.column + 1}: {said}"


_LETTERS: Final = frozenset("yYnN")


class _HookLoader(yaml_loader.Loader):
    """The reader of hooks' files: a key with two values, or one that is not a text, is an error."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ANN401  # PyYAML's
        """Leave single letters texts, unlike Helm: coordinates have keys such as ``y``."""
        tag = super().resolve(kind, value, implicit)
        return yaml_loader.STRING if tag == yaml_loader.PLAIN and value in _LETTERS else tag

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if not _same(seen.setdefault(key, value_node), value_node):
                line = key_node.start_mark.line + 1
                raise DocumentError(
                    f"line {line}: the key {yaml_loader.shown(key)} occurs twice, with different values"
                )
        return super().construct_mapping(node, deep=deep)

    def _key(self, node: yaml.Node) -> str:
        is_plain_text = node.tag == yaml_loader.PLAIN and isinstance(yaml_loader.plain(node.value), str)
        if is_plain_text or node.tag in {yaml_loader.STRING, yaml_loader.MERGE}:
            return str(node.value)
        raise DocumentError(
            f"line {node.start_mark.line + 1}: the key {_shown_key(node)} is not a text; quote it"
        )


def _shown_key(node: yaml.Node) -> str:
    return yaml_loader.shown(node.value) if isinstance(node, yaml.ScalarNode) else "of a collection"


def _same(one: yaml.Node, other: yaml.Node) -> bool:
    """Say whether two nodes are one, or scalars of the same value."""
    is_scalar = isinstance(one, yaml.ScalarNode)
    return one is other or (is_scalar and (one.tag, one.value) == (other.tag, other.value))
