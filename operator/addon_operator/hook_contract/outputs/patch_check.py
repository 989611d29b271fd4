"""Whether the API server will be able to apply a hook's JSON patch: its own error names no hook.

It is applied as API servers do it, who differ from RFC 6902: a place in a list may count from its end, a key
that a mapping lacks counts as null but for a removal, and the whole object can only be replaced or tested.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

from addon_operator.documents import json_documents, json_pointers
from addon_operator.kernel import errors, shown_texts

MAX_COPIED_BYTES: Final = 3 << 20
"""Of all copies of a patch together, as JSON: no request may be larger."""
_MAX_SHIFTED: Final = 64 << 20
"""Items of lists that operations move together; what is beyond it is left to the API server."""
_MAX_DIGITS: Final = 18
_SHOWN: Final = 200

_Container: TypeAlias = dict[str, Any] | list[Any]


class PatchError(errors.AddonOperatorError):
    """A patch does not apply; the text has operation and path, and nothing of the object."""


class _MissingError(Exception):
    """There is no such place."""


class _TooMuchError(Exception):
    """To go on would take too long."""


def check(
    sent: bytes, operations: Sequence[Mapping[str, Any]], field: str = "patch"
) -> dict[str, Any] | None:
    """Return what a patch makes of the object of an ``AdmissionReview``; raises :class:`PatchError`.

    ``field`` is what the hook calls the patch.
    ``None`` if there is no patch, or if it takes so long that it is left to the API server.
    """
    if not operations:
        return None
    document = orjson.loads(sent)["request"].get("object")
    if not isinstance(document, dict):
        raise PatchError("it has a 'patch', and there is no object that it could change: a deletion has none")
    patched, kind = _Patched(document), _kind_of(document)
    for index, operation in enumerate(operations):
        place = f"{field}[{index}] ({operation['op']} {shown_texts.shown_line(operation['path'][:_SHOWN])})"
        try:
            patched.apply(operation)
        except PatchError as error:
            raise PatchError(f"{place}: {error}") from None
        except _MissingError:
            raise PatchError(
                f"{place}: it does not apply: the object has no such place; add what leads there first"
            ) from None
        except (_TooMuchError, TypeError):
            # What nests so deep that it cannot be written cannot be compared or copied, either.
            return None
    if _kind_of(patched.document) != kind:
        raise PatchError("its patch changes 'apiVersion' or 'kind', and the object has to keep them")
    return patched.document


class _Patched:
    """An object that operations change, one after another."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._copied = self._shifted = 0

    def apply(self, operation: Mapping[str, Any]) -> None:
        """Apply one; raises :class:`PatchError` without its place, or what is above."""
        if not operation["path"] and operation["op"] in {"replace", "test"}:
            self._apply_to_all(operation)
            return
        if operation["op"] == "move":
            self._move(operation["from"], operation["path"])
            return
        parent, key = self._parent(operation["path"])
        match operation["op"]:
            case "add":
                self._add(parent, key, json_documents.copy_value(operation["value"]))
            case "remove":
                self._remove(parent, key)
            case "replace":
                _put(parent, key, json_documents.copy_value(operation["value"]))
            case "test":
                _test(_get(parent, key), operation["value"])
            case "copy":
                self._add(parent, key, self._copy(_get(*self._parent(operation["from"]))))

    def _move(self, origin: str, target: str) -> None:
        parent, key = self._parent(origin)
        value = _get(parent, key)
        self._remove(parent, key)
        # Only now: what is there, and where, may depend on what has gone.
        self._add(*self._parent(target), value)

    def _apply_to_all(self, operation: Mapping[str, Any]) -> None:
        value = operation["value"]
        if operation["op"] == "test":
            _test(self.document, value)
        elif isinstance(value, dict):
            self.document = json_documents.copy(value)
        else:
            raise PatchError("an object can only be replaced by another one")

    def _parent(self, pointer: str) -> tuple[_Container, str]:
        """Return what holds a place, and its key there."""
        if not pointer:
            raise PatchError("API servers can only replace and test a whole object; name a place in it")
        *above, key = json_pointers.parse(pointer)
        found: Any = self.document
        for token in above:
            found = _get(found, token)
        if not isinstance(found, dict | list):
            raise _MissingError
        return found, key

    def _copy(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        text = orjson.dumps(value)
        self._copied += len(text)
        if self._copied > MAX_COPIED_BYTES:
            raise PatchError(f"all copies of the patch are over {MAX_COPIED_BYTES >> 20} MiB")
        return orjson.loads(text)

    def _add(self, parent: _Container, key: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if isinstance(parent, dict):
            parent[key] = value
        elif key == "-":
            parent.append(value)
        else:
            self._shift(parent)
            parent.insert(_index(key, len(parent) + 1), value)

    def _remove(self, parent: _Container, key: str) -> None:
        if isinstance(parent, dict):
            if key not in parent:
                raise _MissingError
            del parent[key]
        else:
            self._shift(parent)
            del parent[_index(key, len(parent))]

    def _shift(self, items: list[Any]) -> None:
        self._shifted += len(items)
        if self._shifted > _MAX_SHIFTED:
            raise _TooMuchError


def _get(parent: Any, key: str) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(parent, list):
        return parent[_index(key, len(parent))]
    if isinstance(parent, dict):
        return parent.get(key)
    raise _MissingError


def _put(parent: _Container, key: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent[_index(key, len(parent))] = value


def _test(found: Any, value: Any) -> None:  # noqa: ANN401 - any JSON
    if found != value or isinstance(found, bool) is not isinstance(value, bool):
        raise PatchError("it does not apply: the object has another value there")


def _index(token: str, size: int) -> int:
    """Return the place in a list that has so many places; one below 0 counts from the end."""
    digits = token[1:] if token[:1] in {"-", "+"} else token
    number = digits.lstrip("0") or "0"
    if not (digits.isascii() and digits.isdecimal() and len(number) <= _MAX_DIGITS):
        raise _MissingError
    index = -int(number) if token.startswith("-") else int(number)
    if not -size <= index < size:
        raise _MissingError
    return index % size


def _kind_of(document: Mapping[str, Any]) -> tuple[object, object]:
    return document.get("apiVersion"), document.get("kind")
