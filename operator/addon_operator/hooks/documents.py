"""Reading the JSON or YAML that a hook prints."""

import json
from collections.abc import Hashable
from typing import Any, Final, cast

import yaml

from addon_operator.kernel import errors
from addon_operator.kernel.json_types import JsonObject, JsonValue


class DocumentError(errors.ConfigurationError):
    """A text is no JSON and no YAML, or holds something that is ambiguous."""


def load(text: str) -> JsonValue:
    """The one document in a text; ``None`` for an empty one.

    Keys are strings and stand once in their mapping; dates stay text.

    Raises :class:`DocumentError` with line and column where there is one.
    """
    if text.lstrip().startswith("{"):
        try:
            return cast("JsonValue", json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant))
        except json.JSONDecodeError as error:
            return _yaml(text, json_error=error)
    return _yaml(text)


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    mapping: JsonObject = {}
    for key, value in pairs:
        if key in mapping:
            raise DocumentError(f"the key {key!r} stands twice in one mapping")
        mapping[key] = value
    return mapping


def _no_constant(name: str) -> JsonValue:
    raise DocumentError(f"{name} is no JSON number")


def _yaml(text: str, json_error: json.JSONDecodeError | None = None) -> JsonValue:
    try:
        return cast("JsonValue", yaml.load(text, Loader=_Loader))  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        reason = str(json_error) if json_error else _one_line(error)
        raise DocumentError(f"it is neither JSON nor YAML: {reason}") from error
    except (RecursionError, ValueError) as error:
        raise DocumentError(f"it is neither JSON nor YAML: {error}") from error


def _one_line(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"


class _Loader(yaml.CSafeLoader):
    """The safe loader without dates; a key that stands twice, or is no text, is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self._key(key_node)
            if key in seen:
                raise DocumentError(f"line {key_node.start_mark.line + 1}: the key {key!r} stands twice")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def _key(self, node: yaml.Node) -> str:
        if node.tag in {_TEXT, _MERGE}:
            return str(node.value)
        raise DocumentError(f"line {node.start_mark.line + 1}: the key {node.value!r} is no text; quote it")


_TEXT: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
# Dates stay text, and so does "=", an operator of field selectors.
_UNWANTED: Final = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _UNWANTED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
