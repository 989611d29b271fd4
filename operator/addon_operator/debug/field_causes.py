"""Which values a field of a rendered object comes from: found by renders with other values.

One render with a mark in place of each value shows what a field is made of. For what is decided or worked out
from a value, halves of the values are changed until one is left.
"""

import asyncio
import copy
import dataclasses
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from addon_operator.documents import manifest_diff
from addon_operator.kernel import errors, json_types
from addon_operator.values import origins

RENDERS: Final = 14
"""How often a chart is rendered at most for one answer."""
SECONDS: Final = 2.0
"""So long are further renders begun, but none that would probably end later."""
LEAVES: Final = 8192
"""Values that are tried."""
_FIRST: Final = 7_000_000
_MARK: Final = re.compile(r"why(\d{7})y|\b(7\d{6})\b")
_ABSENT: Final = "\0absent"

Render = Callable[[json_types.JsonObject], Awaitable[str]]
Pointer = tuple[str, ...]
Other = Callable[[json_types.JsonValue], json_types.JsonValue]
"""Makes another value of one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """What decides a field."""

    values: tuple[origins.Path, ...] = ()
    """Places of values; empty if none was found."""
    is_constant: bool = False
    """Whether it stays as it is whatever the values are."""
    is_derived: bool = False
    """Whether it is worked out from the values, and does not contain them."""
    renders: int = 0


class FieldCauses:
    """Looks for the causes of fields of one object; used once."""

    def __init__(
        self, render: Render, values: json_types.JsonObject, key: tuple[str, str], base: str
    ) -> None:
        """``key``: kind and name of the object in ``base``, what the chart renders to with the values."""
        self._render = render
        self._values = values
        self._documents = list(manifest_diff.objects(manifest_diff.parse(base)))
        self._at = next(
            index for index, each in enumerate(self._documents) if (each.key.kind, each.key.name) == key
        )
        self._key = key
        self._leaves = [path for path, _ in origins.leaves(values)][:LEAVES]
        self._until = time.monotonic() + SECONDS
        self._count = 0
        self._longest = 0.0
        self._seen: dict[tuple[Other, tuple[int, int]], manifest_diff.ManifestDocument | None] = {}
        self._has_marks = False
        self._marked: manifest_diff.ManifestDocument | None = None

    async def of(self, pointer: Pointer) -> Cause:
        """Return the cause of one field."""
        if not self._has_marks:
            self._has_marks = True
            self._marked = await self._with_marks()
        before = field_of(self._documents[self._at].body, pointer)
        if self._marked is not None and (found := self._found(self._marked, pointer)):
            return Cause(found, renders=self._count)
        is_same = False
        for other in _OTHERS:
            if other is _scalar and is_same:
                continue
            changed = await self._changed(other, (0, len(self._leaves)), pointer, before)
            if changed:
                found = await self._narrowed(other, pointer, before)
                return Cause(found, is_derived=True, renders=self._count)
            # Some charts cannot do with nothing: that says nothing of the field.
            is_same = is_same or (changed is False and other is not _nothing)
        return Cause(is_constant=is_same and len(self._leaves) < LEAVES, renders=self._count)

    async def _with_marks(self) -> manifest_diff.ManifestDocument | None:
        """Return the object with a mark in place of each value; only texts are marked if that fails."""
        for kinds in ((str, int, float), (str,)):
            changes = {
                path: _mark(index, value)
                for index, path in enumerate(self._leaves)
                if isinstance(value := _get(self._values, path), kinds)
                and not isinstance(value, bool)
                and value != ""
            }
            if (document := await self._rendered(changes)) is not None:
                return document
        return None

    def _found(self, document: manifest_diff.ManifestDocument, pointer: Pointer) -> tuple[origins.Path, ...]:
        text = _text(field_of(document.body, pointer))
        numbers = [int(match[1] or match[2]) - _FIRST for match in _MARK.finditer(text[:100_000])]
        return tuple(dict.fromkeys(self._leaves[number] for number in numbers if number < len(self._leaves)))

    async def _narrowed(self, other: Other, pointer: Pointer, before: object) -> tuple[origins.Path, ...]:
        """Return the one value that changes the field; nothing if several together do, or time is up."""
        start, end = 0, len(self._leaves)
        while end - start > 1:
            middle = (start + end) // 2
            changed = await self._changed(other, (start, middle), pointer, before)
            if changed is None:
                return ()
            start, end = (start, middle) if changed else (middle, end)
        is_it = await self._changed(other, (start, end), pointer, before)
        return tuple(self._leaves[start:end]) if is_it else ()

    async def _changed(
        self, other: Other, part: tuple[int, int], pointer: Pointer, before: object
    ) -> bool | None:
        """Say whether other values in a part of the places change it; ``None`` if that is not known."""
        document = await self._with_others(other, part)
        return None if document is None else bool(field_of(document.body, pointer) != before)

    async def _with_others(
        self, other: Other, part: tuple[int, int]
    ) -> manifest_diff.ManifestDocument | None:
        """Return the object with other values; fields of one object share the renders."""
        key = (other, part)
        if key not in self._seen:
            changes = {path: other(_get(self._values, path)) for path in self._leaves[slice(*part)]}
            self._seen[key] = await self._rendered(changes)
        return self._seen[key]

    @property
    def _is_over(self) -> bool:
        """Whether no further render may begin: one that would probably end too late counts."""
        return self._count >= RENDERS or time.monotonic() + self._longest > self._until

    async def _rendered(
        self, changes: Mapping[origins.Path, json_types.JsonValue]
    ) -> manifest_diff.ManifestDocument | None:
        if self._is_over:
            return None
        self._count += 1
        began = time.monotonic()
        # Values and manifests may be large.
        values = await asyncio.to_thread(self._edited, changes)
        try:
            manifest = await self._render(values)
        except errors.AddonOperatorError:
            return None
        finally:
            self._longest = max(self._longest, time.monotonic() - began)
        return await asyncio.to_thread(self._same_object, manifest)

    def _edited(self, changes: Mapping[origins.Path, json_types.JsonValue]) -> json_types.JsonObject:
        values = copy.deepcopy(self._values)
        for path, value in changes.items():
            _set(values, path, value)
        return values

    def _same_object(self, manifest: str) -> manifest_diff.ManifestDocument:
        """Return the object, whose name may be another one; an empty one if it is gone."""
        documents = list(manifest_diff.objects(manifest_diff.parse(manifest)))
        for each in documents:
            if (each.key.kind, each.key.name) == self._key:
                return each
        if len(documents) == len(self._documents) and documents[self._at].key.kind == self._key[0]:
            return documents[self._at]
        return dataclasses.replace(self._documents[self._at], body=None)


def field_of(body: Any, pointer: Pointer) -> Any:  # noqa: ANN401  # YAML
    """Return what an object has at a place."""
    for token in pointer:
        if isinstance(body, dict) and token in body:
            body = body[token]
        elif isinstance(body, list) and token.isdecimal() and int(token) < len(body):
            body = body[int(token)]
        else:
            return _ABSENT
    return body


def is_absent(found: object) -> bool:
    """Say whether :func:`field_of` found nothing."""
    return found == _ABSENT


def _text(value: Any) -> str:  # noqa: ANN401  # YAML
    if isinstance(value, dict):
        return " ".join(f"{key} {_text(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return " ".join(map(_text, value))
    # A large number may be written as 7.000001e+06.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _mark(index: int, value: json_types.JsonValue) -> json_types.JsonValue:
    return f"why{_FIRST + index}y" if isinstance(value, str) else _FIRST + index


def _other(value: json_types.JsonValue) -> json_types.JsonValue:
    """Return another value that a chart treats in another way, but as one of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    if value is None:
        return "x"
    return ["x"] if isinstance(value, list) and not value else type(value)()


def _scalar(value: json_types.JsonValue) -> json_types.JsonValue:
    """Return another value of a text, a number or a switch; charts are particular about lists."""
    return value if value is None or isinstance(value, list | dict) else _other(value)


def _nothing(value: json_types.JsonValue) -> json_types.JsonValue:
    """Return the least of a kind: a chart may compare a number, or look whether a text is empty."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return -1 if value == 0 else 0
    return "x" if value is None or value == "" else type(value)()


_OTHERS: Final[tuple[Other, ...]] = (_other, _scalar, _nothing)


def _get(values: json_types.JsonValue, path: origins.Path) -> json_types.JsonValue:
    for key in path:
        values = values[key]  # type: ignore[index]  # a path of this document
    return values


def _set(values: Any, path: origins.Path, value: json_types.JsonValue) -> None:  # noqa: ANN401  # JSON
    for key in path[:-1]:
        values = values[key]
    values[path[-1]] = value
