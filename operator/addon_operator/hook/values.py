"""Values as a hook sees and changes them."""

from __future__ import annotations

import json

from addon_operator.hook import failures

TYPE_CHECKING = False  # To import typing takes longer than the whole library.
if TYPE_CHECKING:
    from typing import Any, Final

    from addon_operator.hook.aliases import Path, Tokens
    from addon_operator.kernel.json_types import JsonObject, JsonValue

_END: Final = "-"
_KINDS: Final = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false"}


def json_copy(value: Any, where: str) -> JsonValue:  # noqa: ANN401 - whatever the author took for JSON
    """Return a copy of ``value`` as JSON has it.

    Raises :class:`.HookError`, which begins with ``where``, for what JSON does not have.
    """
    try:
        copied: JsonValue = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise failures.HookError(f"{where}: this is not JSON: {error}") from None
    return copied


def _copied(value: Any) -> Any:  # noqa: ANN401 - JSON; the module copy takes longer to import
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


class Values:
    """Values that can be read like a mapping, and whose changes become a JSON patch.

    A path is ``someModule.replicas``, a JSON pointer, or a list of keys; in a list, a key is an index from 0.
    What was changed is read back changed. ``patch`` are the operations so far (RFC 6902).
    """

    def __init__(self, document: JsonObject, patch: list[JsonObject] | None = None) -> None:
        self._document = _copied(document)
        self.patch: list[JsonObject] = [] if patch is None else patch

    def __getitem__(self, path: Path) -> Any:  # noqa: ANN401 - the author knows what is there
        """Return the value at ``path``; raises :class:`.MissingError` if there is none."""
        keys = _tokens(path)
        found: JsonValue = self._document
        for key in keys:
            if not _has(found, key):
                raise failures.MissingError(
                    f"there is no value {_shown(keys)!r}; give it a default, or read it with get()"
                )
            found = _child(found, key)
        return _copied(found)

    def get(self, path: Path, default: Any = None) -> Any:  # noqa: ANN401 - as above
        """Return the value at ``path``, or ``default`` if there is none."""
        try:
            return self[path]
        except failures.MissingError:
            return default

    def __contains__(self, path: Path) -> bool:
        """Return whether there is a value at ``path``, be it ``None``."""
        try:
            self[path]
        except failures.MissingError:
            return False
        return True

    def set(self, path: Path, value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Put ``value`` at ``path``; mappings on the way there are made.

        Raises :class:`.HookError` when there is something else than a mapping or list on
        the way, and for what JSON cannot hold.
        """
        keys = _tokens(path)
        new = json_copy(value, _shown(keys))
        parent, depth = self._deepest(keys)
        for key in reversed(keys[depth + 1 :]):
            new = {key: new}
        kind = _put(parent, keys[: depth + 1], new)
        self._note(kind, keys[: depth + 1], value=new)

    def append(self, path: Path, value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Put ``value`` at the end of the list at ``path``, which is made if there is none."""
        if self.get(path) is None:
            self.set(path, [value])
        else:
            self.set((*_tokens(path), _END), value)

    def remove(self, path: Path) -> None:
        """Remove the value at ``path``; fine if there is none."""
        if path not in self:
            return
        keys = _tokens(path)
        parent = self._document if len(keys) == 1 else self._at(keys[:-1])
        if isinstance(parent, list):
            del parent[int(keys[-1])]
        elif isinstance(parent, dict):
            del parent[keys[-1]]
        self._note("remove", keys)

    def __setitem__(self, path: Path, value: Any) -> None:  # noqa: ANN401 - as in set
        """Do the same as :meth:`set`."""
        self.set(path, value)

    def __delitem__(self, path: Path) -> None:
        """Remove the value at ``path``, which must be there."""
        self[path]
        self.remove(path)

    def _at(self, keys: Tokens) -> JsonValue:
        found: JsonValue = self._document
        for key in keys:
            found = _child(found, key)
        return found

    def _deepest(self, keys: Tokens) -> tuple[JsonValue, int]:
        """Return the last container that is there on the way to ``keys``, and how many keys lead to it."""
        if len(keys) > 1:
            # A section always exists for the operator, even an empty one that the file does not show.
            self._document.setdefault(keys[0], {})
        found: JsonValue = self._document
        for depth, key in enumerate(keys[:-1]):
            if not _has(found, key) or _child(found, key) is None:
                return found, depth
            found = _child(found, key)
        return found, len(keys) - 1

    def _note(self, kind: str, keys: Tokens, **members: JsonValue) -> None:
        # A later change must not reach into what is written down here.
        self.patch.append({"op": kind, "path": _pointer(keys), **_copied(members)})


def _has(container: JsonValue, key: str) -> bool:
    if isinstance(container, list):
        return key.isdecimal() and int(key) < len(container)
    return isinstance(container, dict) and key in container


def _child(container: JsonValue, key: str) -> JsonValue:
    if isinstance(container, list):
        return container[int(key)]
    return container[key] if isinstance(container, dict) else None


def _put(parent: JsonValue, keys: Tokens, value: JsonValue) -> str:
    """Put ``value`` below ``parent`` under the last of ``keys``; which operation of a patch that is."""
    key = keys[-1]
    if isinstance(parent, dict):
        parent[key] = value
        return "add"
    if isinstance(parent, list) and key == _END:
        parent.append(value)
        return "add"
    if not isinstance(parent, list):
        kind = _KINDS.get(type(parent), "a number")
        raise failures.HookError(f"{_shown(keys[:-1])} is {kind}, so nothing can be put at {key!r} in it")
    if not _has(parent, key):
        raise failures.HookError(
            f"{_shown(keys[:-1])} is a list of {len(parent)}, so it has no place {key!r}; use append()"
        )
    parent[int(key)] = value
    return "replace"


def _tokens(path: Path) -> Tokens:
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


def _pointer(keys: Tokens) -> str:
    """Return the keys as a JSON pointer."""
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)


def _shown(keys: Tokens) -> str:
    """Return the keys for a message."""
    return ".".join(keys)


def _unescaped(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
