"""Copies and comparisons of JSON documents."""

from typing import Any, Final, cast

import orjson

from addon_operator.kernel import json_types

_CANONICAL: Final = orjson.OPT_SORT_KEYS


def encode(value: object) -> bytes:
    """The JSON text; key order is kept.

    Raises :class:`TypeError` for what has no JSON form: integers beyond 64 bits, halves of surrogate pairs,
    or nesting beyond what JSON readers take.
    """
    return orjson.dumps(value)


def canonical(value: object) -> bytes:
    """A text that is equal for documents of equal content, whatever the order of their keys.

    Python's own comparison will not do: it takes ``True`` for ``1``.
    """
    return orjson.dumps(value, option=_CANONICAL)


def copy(value: json_types.JsonObject) -> json_types.JsonObject:
    """A copy that shares nothing with the original."""
    return cast("json_types.JsonObject", orjson.loads(orjson.dumps(value)))


def copy_value(value: json_types.JsonValue) -> json_types.JsonValue:
    """A copy of any JSON value that shares nothing with the original."""
    if isinstance(value, dict | list):
        return cast("json_types.JsonValue", orjson.loads(orjson.dumps(value)))
    return value


def equal(left: object, right: object) -> bool:
    """Whether both documents have the same content."""
    return canonical(left) == canonical(right)


def decode(text: bytes | str) -> Any:  # noqa: ANN401  # JSON of any shape; callers check
    """The document of a JSON text.

    Raises :class:`ValueError`.
    """
    return orjson.loads(text)
