"""Places in JSON documents: JSON Pointers (RFC 6901) as tuples of tokens, and paths of keys and indexes."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import jsonpointer

Tokens = tuple[str, ...]
Path = tuple[str | int, ...]
"""Keys of mappings, and indexes of lists."""
ABSENT: Final = object()
"""What :func:`find` may return where there is nothing, not even ``null``."""

PATCH_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "add": ("path", "value"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "move": ("from", "path"),
    "copy": ("from", "path"),
    "test": ("path", "value"),
}
"""Members that each ``op`` of a JSON patch (RFC 6902) needs besides; any others are ignored."""
_INDEX: Final = re.compile(r"-|0|[1-9][0-9]*")
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_STEP: Final = re.compile(r"(?:\A|(?!\A)\.)((?:\\.|[^.\\\[\]])+)|\[([0-9]+)\]")


def parse(pointer: str) -> Tokens:
    """Return the tokens of a pointer: ``/a~1b/0`` is ``("a/b", "0")``.

    Raises :class:`ValueError` with the reason.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError("a path must begin with '/'")
    if _BAD_ESCAPE.search(pointer):
        raise ValueError("'~' in a path must be written '~0' (and '/' in a key '~1')")
    return tuple(map(jsonpointer.unescape, pointer.split("/")[1:]))


def of_path(path: str) -> Tokens:
    r"""Return the tokens of a path with dots, ``spec.containers[0].image``, or of a pointer.

    ``\.`` is a dot within a key. Raises :class:`ValueError` with the reason.
    """
    if path.startswith("/"):
        return parse(path)
    tokens, end = list[str](), 0
    while end < len(path) or not tokens:
        step = _STEP.match(path, end)
        if step is None:
            raise ValueError(
                f"{path[end:] or path!r} names no key; write it as a.b[0], and a dot in a key as '\\.'"
            )
        tokens.append(step[2] or step[1].replace("\\.", "."))
        end = step.end()
    return tuple(tokens)


def render(tokens: Iterable[str]) -> str:
    """Return the pointer of the tokens."""
    return "".join("/" + jsonpointer.escape(token) for token in tokens)


def find(document: Any, path: Iterable[str | int], otherwise: object = None) -> Any:  # noqa: ANN401  # any JSON
    """Return what the document has at a place; an index may be a token."""
    for key in path:
        if isinstance(document, Mapping):
            if key not in document:
                return otherwise
            document = document[key]
        elif isinstance(document, list) and (isinstance(key, int) or (key != "-" and is_index(key))):
            index = int(key)
            if index >= len(document):
                return otherwise
            document = document[index]
        else:
            return otherwise
    return document


def exists(document: Any, path: Iterable[str | int]) -> bool:  # noqa: ANN401  # any JSON
    """Say whether the document has a value at that place, ``null`` included."""
    return find(document, path, ABSENT) is not ABSENT


def format_path(path: Iterable[str | int]) -> str:
    """Return a path for people: ``("a", "b", 0)`` is ``a.b[0]``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def is_index(token: str) -> bool:
    """Say whether the token could be a place in a list."""
    return _INDEX.fullmatch(token) is not None


def in_order(tokens: Tokens) -> list[tuple[int, str]]:
    """Return what places are sorted by, so that items of a list stand by their numbers."""
    # A number with more digits is longer: a key of a mapping may be any text.
    return [(len(token), token) if is_index(token) else (0, token) for token in tokens]


def is_prefix(prefix: Tokens, tokens: Tokens) -> bool:
    """Say whether the second place is the first one or inside it."""
    return tokens[: len(prefix)] == prefix


def overlap(left: Tokens, right: Tokens) -> bool:
    """Say whether one of the places contains the other."""
    return is_prefix(left, right) or is_prefix(right, left)


def stable_prefix(tokens: Tokens) -> Tokens:
    """Return the longest beginning that means the same place even if items of a list come or go.

    The first token is the section's key and never an index.
    """
    for position, token in enumerate(tokens[1:], start=1):
        if is_index(token):
            return tokens[:position]
    return tokens
