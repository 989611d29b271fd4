"""Regular expressions of users: RE2, as in Kubernetes and OpenAPI, by RE2 itself.

It takes time in proportion to the text, whatever the pattern: there is no backtracking. What a pattern may
take of memory is bounded, too.
"""

import functools
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import jsonschema
import re2  # type: ignore[import-untyped]  # has no stubs

MAX_CHARS: Final = 10_000
"""How long a pattern may be."""
MAX_MEMORY: Final = 8 << 20
"""Bytes for a pattern and its automaton; with less than it wants, RE2 is slower, but never backtracks."""
_KEPT: Final = 1024


class PatternError(ValueError):
    """A text is no pattern; the sentence says why."""


def check(pattern: str) -> None:
    """Raise :class:`PatternError` for what is no pattern."""
    _compiled(pattern)


def found(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text.

    Raises :class:`PatternError`.
    """
    return _compiled(pattern).search(text) is not None


def all_found(pattern: str, text: str) -> Iterator[str]:
    """All that the pattern matches, from left to right and without overlaps.

    Raises :class:`PatternError`.
    """
    return (str(match[0]) for match in _compiled(pattern).finditer(text))


@functools.lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Any:  # noqa: ANN401  # the library has no types
    if len(pattern) > MAX_CHARS:
        raise PatternError(
            f"the pattern has {len(pattern)} characters, and may have {MAX_CHARS}; make it shorter"
        )
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "it cannot be read"
        raise PatternError(f"{pattern!r} is no regular expression (RE2): {reason}") from None
    except UnicodeEncodeError:
        raise PatternError("the pattern is no valid Unicode") from None


def unknown_keys(instance: Collection[str], schema: Mapping[str, Any]) -> list[str]:
    """The keys that neither ``properties`` nor ``patternProperties`` of a JSON schema name."""
    known, named = schema.get("properties", {}), schema.get("patternProperties", {})
    return [key for key in instance if key not in known and not any(found(pattern, key) for pattern in named)]


_Validator = jsonschema.protocols.Validator
_Errors = Iterator[jsonschema.ValidationError]


def _pattern(validator: _Validator, pattern: str, instance: Any, _: Mapping[str, Any]) -> _Errors:  # noqa: ANN401  # any JSON
    if validator.is_type(instance, "string") and not found(pattern, instance):
        yield jsonschema.ValidationError("does not match")


def _pattern_properties(
    validator: Any,  # noqa: ANN401  # the protocol lacks descend
    patterns: Mapping[str, Any],
    instance: Any,  # noqa: ANN401  # any JSON
    _: Mapping[str, Any],
) -> _Errors:
    if validator.is_type(instance, "object"):
        for pattern, inner in patterns.items():
            for key in (key for key in instance if found(pattern, key)):
                yield from validator.descend(instance[key], inner, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any,  # noqa: ANN401  # the protocol lacks descend
    demand: Any,  # noqa: ANN401  # a schema or a boolean
    instance: Any,  # noqa: ANN401  # any JSON
    schema: Mapping[str, Any],
) -> _Errors:
    if not validator.is_type(instance, "object"):
        return
    unknown = unknown_keys(instance, schema)
    if validator.is_type(demand, "object"):
        for key in unknown:
            yield from validator.descend(instance[key], demand, path=key)
    elif not demand and unknown:
        yield jsonschema.ValidationError("unknown keys")


KEYWORDS: Final[Mapping[str, Any]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
"""The keywords of JSON schemas that look for patterns, for :func:`jsonschema.validators.extend`."""
