"""Hiding sensitive values in texts that were made of them: rendered manifests, messages of Helm."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from addon_operator.kernel import json_types
from addon_operator.values.schema import schemas

MIN_LENGTH: Final = 4
"""Shorter values are left alone: they would be found everywhere, and keep no secret."""


def sensitive_texts(value: json_types.JsonValue, masked: json_types.JsonValue) -> frozenset[str]:
    """Return all texts and numbers of ``value`` that ``masked``, the same document, does not show."""
    return frozenset(_hidden(value, masked))


def redactor(texts: Iterable[str]) -> Callable[[str], str]:
    """Return a function that shows :data:`.HIDDEN` in the place of the texts.

    They are found as they are, as JSON and YAML escape them, in base64, and line by line.
    """
    forms = sorted({form for text in texts for form in _forms(text)}, key=lambda form: (-len(form), form))
    if not forms:
        return str
    pattern = re.compile("|".join(map(re.escape, forms)))
    return lambda text: pattern.sub(schemas.HIDDEN, text)


def _hidden(value: json_types.JsonValue, masked: json_types.JsonValue) -> Iterator[str]:
    if masked == schemas.HIDDEN:
        yield from _leaves(value)
    elif isinstance(value, dict) and isinstance(masked, dict):
        for key, inner in value.items():
            yield from _hidden(inner, masked.get(key))
    elif isinstance(value, list) and isinstance(masked, list):
        for inner, inner_masked in zip(value, masked, strict=False):
            yield from _hidden(inner, inner_masked)


def _leaves(value: json_types.JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _forms(text: str) -> Iterator[str]:
    lines = text.splitlines() if "\n" in text else []
    for part in (text, *(line.strip() for line in lines)):
        if len(part) >= MIN_LENGTH:
            yield part
            yield json.dumps(part)[1:-1]
            yield json.dumps(part, ensure_ascii=False)[1:-1]
            yield part.replace("'", "''")
    if len(text) >= MIN_LENGTH:
        yield base64.b64encode(text.encode()).decode()
