"""Where values came from: which source set the value at a place."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from addon_operator.documents import json_pointers
from addon_operator.kernel import json_types

_DEFAULT: Final = "default in "
_BY: Final = "by "
BEFORE: Final = "so before the hook ran"
"""The source of a value that a hook found as it is."""


class Layer(msgspec.Struct, frozen=True):
    """What one source says of a section."""

    source: str
    """The name of the file or the ConfigMap."""
    section: json_types.JsonObject


def origin(path: json_pointers.Path, layers: Sequence[Layer]) -> str:
    """Return the source of the value at ``path`` below the section; ``layers`` come lowest first.

    Empty if none of them has it: a default of the schema, or the work of a hook.
    """
    for layer in reversed(layers):
        if json_pointers.exists(layer.section, path):
            return layer.source
    return ""


def nearest_origin(path: json_pointers.Path, layers: Sequence[Layer]) -> str:
    """Return the same as :func:`origin`, of the value or else of the nearest that contains it."""
    for length in range(len(path), 0, -1):
        if source := origin(path[:length], layers):
            return source
    return next((layer.source for layer in reversed(layers) if layer.section), "")


def setting(path: json_pointers.Path, layers: Sequence[Layer], defaults: Sequence[Layer]) -> str:
    """Return the same as :func:`nearest_origin`, but no source for a value that only a default made."""
    return (origin(path, [*defaults, *layers]) if path else "") or nearest_origin(path, layers)


def default_in(source: str) -> str:
    """Return what the defaults of a schema are called among the sources."""
    return f"{_DEFAULT}{source}"


def by(operation: str) -> str:
    """Return what an operation of a hook's patch is called among the sources."""
    return f"{_BY}{operation}"


def is_of_hook(source: str) -> bool:
    """Say whether a source is what a hook does, or found: such a one quotes no values."""
    return source == BEFORE or source.startswith(_BY)


def in_words(source: str) -> str:
    """Return a source as a part of a sentence: ``set in values.yaml``, ``default in openapi/values.yaml``."""
    return source if source.startswith(_DEFAULT) or is_of_hook(source) else f"set in {source}"


def leaves(
    value: json_types.JsonValue, path: json_pointers.Path = ()
) -> Iterator[tuple[json_pointers.Path, json_types.JsonValue]]:
    """Yield the places that sources replace as a whole, in order: scalars, lists, empty mappings."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value
