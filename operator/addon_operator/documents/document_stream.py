"""Reading the JSON or YAML that a hook prints or writes."""

import json
import math
from collections.abc import Iterator
from typing import Any, Final

import yaml

from addon_operator.documents import json_documents, yaml_loader, yaml_reading
from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, JsonValue

_SPACE: Final = " \t\r\n\ufeff"
_MAX_DIGITS: Final = 1000
"""How many digits an integer may have: Python's own arithmetic on more takes quadratic time."""


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
            return _check_json(_JSON.decode(text))
        except json.JSONDecodeError as error:
            return _yaml(text, json_error=error)
        except RecursionError as error:
            raise DocumentError(yaml_loader.TOO_DEEP) from error
    return _yaml(text)


def load_json_stream(text: str) -> list[JsonValue]:
    """Return all JSON documents of a text, one after the other with any white space between them.

    Raises :class:`StreamError` with the document's index, and line and column in the whole text.
    """
    documents: list[JsonValue] = []
    try:
        for value, _, _ in json_stream(text, _JSON):
            documents.append(_check_json(value))
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
        for node in yaml.compose_all(text, Loader=yaml_loader.Loader):
            document = _built(node)
            if document is not None:
                yield document
                index += 1
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise StreamError(index, _reason(error, text)) from error


def _yaml(text: str, json_error: json.JSONDecodeError | None = None) -> JsonValue:
    try:
        node = yaml.compose(text, Loader=yaml_loader.Loader)
        return None if node is None else _built(node)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        if json_error is not None and not isinstance(error, yaml_loader.RuleError):
            raise DocumentError(f"{_NEITHER}: {json_error}") from error
        raise DocumentError(_reason(error, text)) from error


def _built(node: yaml.Node) -> JsonValue:
    """Return the value of a document of a hook, in which each key is a text with one value."""
    return yaml_loader.Builder(_plain, only_text_keys=True, repeated=_one_value).build(node)


def _plain(text: str) -> yaml_loader.Scalar:
    """Leave single letters texts, unlike Helm: coordinates have keys such as ``y``."""
    return text if text in ("y", "Y", "n", "N") else yaml_loader.plain(text)


def _one_value(found: yaml_loader.Repeated) -> None:
    if not found.is_same:
        problem = f"the key {yaml_loader.shown(str(found.path[-1]))} occurs twice, with different values"
        raise yaml_loader.RuleError(problem, found.key.start_mark, found.path)


_NEITHER: Final = "it is neither JSON nor YAML"


def _reason(error: yaml.YAMLError | UnicodeEncodeError, text: str) -> str:
    position, problem = yaml_reading.described(error, text)
    said = problem if position is None else f"{position}: {problem}"
    return said if isinstance(error, yaml_loader.RuleError) else f"{_NEITHER}: {said}"


def _check_json(document: JsonValue) -> JsonValue:
    if not json_documents.is_within_depth(document, yaml_loader.MAX_DEPTH + 1):
        raise DocumentError(yaml_loader.TOO_DEEP)
    return document


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
    if len(digits) > _MAX_DIGITS:
        raise DocumentError(f"a number has more than {_MAX_DIGITS} digits; quote it")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise DocumentError(f"{value} has no JSON form; write a finite number or quote it")
    return value


_JSON: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer, parse_float=_float
)
