"""Which values a field of a rendered object comes from: found by renders with other values.

One render with a mark in place of each value shows what a field is made of. For what is decided or worked out
from a value, halves of the values are changed until one is left.
"""

import asyncio
import copy
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.documents import json_pointers, manifest_diff
from addon_operator.kernel import errors, json_types
from addon_operator.values import origins

RENDERS: Final = 14
"""How often a chart is rendered at most for one answer."""
MARKED: Final = 7
"""How many of these may have marks."""
SECONDS: Final = 2.0
"""So long are further renders begun, but none that would probably end later."""
LEAVES: Final = 8192
"""Values that are tried."""
_FIRST: Final = range(7_000_000, 7_990_000, LEAVES)
"""Where the numbers of the marks may begin."""
_MARK: Final = re.compile(r"why(\d{7})y|\b(7\d{6})\b|\b7\.(\d{1,6})e\+06")
"""A mark in a text. Go writes a large number in it as 7.000001e+06."""
_ABSENT: Final = "\0absent"

Render = Callable[[json_types.JsonObject], Awaitable[str]]
Pointer = tuple[str, ...]
Other = Callable[[json_types.JsonValue], json_types.JsonValue]
"""Makes another value of one."""


class Cause(msgspec.Struct, frozen=True):
    """What decides a field."""

    values: tuple[json_pointers.Path, ...] = ()
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
        self._document = next(each for each in self._documents if (each.key.kind, each.key.name) == key)
        self._key = key
        # A chart without any value has one leaf, which is at no key.
        self._leaves = [path for path, _ in origins.leaves(values) if path][:LEAVES]
        self._until = time.monotonic() + SECONDS
        self._first = self._unused()
        self._count = 0
        self._longest = 0.0
        self._seen: dict[tuple[Other, tuple[int, int]], manifest_diff.ManifestDocument | None] = {}
        self._marked: list[manifest_diff.ManifestDocument] | None = None

    async def of(self, pointer: Pointer) -> Cause:
        """Return the cause of one field."""
        if self._marked is None:
            self._marked = await self._with_marks()
        before = field_of(self._document.body, pointer)
        found = tuple(dict.fromkeys(one for each in self._marked for one in self._found(each, pointer)))
        if found:
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

    def _unused(self) -> int | None:
        """Return where the numbers of marks begin that no object has by itself; ``None`` if all are used."""
        own = (match for each in self._documents for match in _MARK.finditer(_text(each.body)))
        used = {(_number(match) - _FIRST.start) // LEAVES for match in own}
        return next((first for index, first in enumerate(_FIRST) if index not in used), None)

    async def _with_marks(self) -> list[manifest_diff.ManifestDocument]:
        """Return the object with a mark in place of each value, or of a part of them in each document.

        A chart may fail for some mark, or render the object no more: then parts of the values get theirs.
        """
        if self._first is None:
            return []
        marks = {
            path: _mark(self._first + index, value)
            for index, path in enumerate(self._leaves)
            if isinstance(value := _get(self._values, path), str | int | float)
            and not isinstance(value, bool)
            and value != ""
        }
        documents, parts = [], [list(marks)]
        while parts and self._count < MARKED:
            part = parts.pop(0)
            document = await self._rendered({path: marks[path] for path in part})
            if document is not None and document.body is not None:
                documents.append(document)
            elif len(part) > 1:
                parts += _halves(part, {path for path in part if isinstance(marks[path], str)})
        return documents

    def _found(
        self, document: manifest_diff.ManifestDocument, pointer: Pointer
    ) -> tuple[json_pointers.Path, ...]:
        text = _text(field_of(document.body, pointer))
        found = [_number(match) - (self._first or 0) for match in _MARK.finditer(text[:100_000])]
        return tuple(dict.fromkeys(self._leaves[each] for each in found if 0 <= each < len(self._leaves)))

    async def _narrowed(
        self, other: Other, pointer: Pointer, before: object
    ) -> tuple[json_pointers.Path, ...]:
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
        self, changes: Mapping[json_pointers.Path, json_types.JsonValue]
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

    def _edited(self, changes: Mapping[json_pointers.Path, json_types.JsonValue]) -> json_types.JsonObject:
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
        before, now = self._alike(self._documents), self._alike(documents)
        if len(before) == len(now):
            return next(new for old, new in zip(before, now, strict=True) if old is self._document)
        return structs.replace(self._document, body=None)

    def _alike(self, documents: list[manifest_diff.ManifestDocument]) -> list[manifest_diff.ManifestDocument]:
        """Return the objects of its kind that its template renders."""
        place = (self._document.source, self._key[0])
        return [each for each in documents if (each.source, each.key.kind) == place]


def _halves(part: list[json_pointers.Path], texts: set[json_pointers.Path]) -> list[list[json_pointers.Path]]:
    """Divide places of values: texts from numbers, which charts work with, and then each by the middle."""
    if 0 < len(texts) < len(part):
        return [[path for path in part if path in texts], [path for path in part if path not in texts]]
    middle = len(part) // 2
    return [part[:middle], part[middle:]]


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


def _number(match: re.Match[str]) -> int:
    return int(match[1] or match[2] or f"7{match[3]:0<6}")


def _mark(number: int, value: json_types.JsonValue) -> json_types.JsonValue:
    return f"why{number}y" if isinstance(value, str) else number


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


def _get(values: json_types.JsonValue, path: json_pointers.Path) -> json_types.JsonValue:
    for key in path:
        values = values[key]  # type: ignore[index]  # a path of this document
    return values


def _set(values: Any, path: json_pointers.Path, value: json_types.JsonValue) -> None:  # noqa: ANN401  # JSON
    for key in path[:-1]:
        values = values[key]
    values[path[-1]] = value
