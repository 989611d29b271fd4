"""Places in values: ``someModule.replicas``, ``/someModule/replicas`` or ``["someModule", "replicas"]``."""

from collections.abc import Sequence
from typing import TypeAlias

from addon_operator.hook import failures

Path: TypeAlias = str | Sequence[str | int]
"""Keys with dots between them, a JSON pointer (RFC 6901), or the keys one by one."""
Tokens: TypeAlias = tuple[str, ...]


def tokens(path: Path) -> Tokens:
    """Return the keys of a path.

    Raises :class:`.HookError` for a path without a key, or an empty one between dots.
    """
    if not isinstance(path, str):
        found = tuple(str(key) for key in path)
    elif path.startswith("/"):
        found = tuple(_unescaped(token) for token in path[1:].split("/"))
    else:
        found = tuple(path.split("."))
        if "" in found:
            raise failures.HookError(
                f"{path!r} is not a path of values; write one such as 'someModule.replicas'"
            )
    if not found:
        raise failures.HookError("a path of values needs a key; write one such as 'someModule.replicas'")
    return found


def pointer(keys: Tokens) -> str:
    """Return the keys as a JSON pointer."""
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)


def shown(keys: Tokens) -> str:
    """Return the keys for a message."""
    return ".".join(keys)


def _unescaped(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
