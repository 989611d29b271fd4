"""JSON documents as text: encoded, read, copied, compared, and kept compressed."""

import json
import zlib
from collections.abc import Sequence
from typing import Any, Final, cast, overload

import msgspec
import orjson

from addon_operator.kernel import json_types

_CANONICAL: Final = orjson.OPT_SORT_KEYS
BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for JSON with a mistake or of another shape, not in UTF-8, or nested too deep."""
_SHOWN: Final = 60
_LEVELS_AROUND: Final = 10
"""In how many mappings and lists of ours a document of somebody else may stand."""
_PACKED_FROM_BYTES: Final = 1024
_FASTEST: Final = 1
_ZLIB_BEGINNING: Final = b"\x78"
_SIZE_BYTES: Final = 4
"""At the end of a compressed entry stands how long it is."""


def encode(value: object) -> bytes:
    """Return the JSON text; key order is kept.

    Raises :class:`TypeError` for what has no JSON form: integers beyond 64 bits, halves of surrogate pairs,
    or nesting beyond what JSON readers take.
    """
    return orjson.dumps(value)


def canonical(value: object) -> bytes:
    """Return a text that is equal for documents of equal content, whatever the order of their keys.

    Python's own comparison will not do: it takes ``True`` for ``1``.
    """
    return orjson.dumps(value, option=_CANONICAL)


def copy(value: json_types.JsonObject) -> json_types.JsonObject:
    """Copy an object; nothing is shared with the original."""
    return cast("json_types.JsonObject", orjson.loads(orjson.dumps(value)))


def copy_value(value: json_types.JsonValue) -> json_types.JsonValue:
    """Copy any JSON value; nothing is shared with the original."""
    if isinstance(value, dict | list):
        return cast("json_types.JsonValue", orjson.loads(orjson.dumps(value)))
    return value


def equal(left: object, right: object) -> bool:
    """Say whether both documents have the same content."""
    # What Python finds different is different, and it stops there; to sort the keys takes longest.
    return left is right or (
        left == right and (encode(left) == encode(right) or canonical(left) == canonical(right))
    )


def is_within_depth(value: json_types.JsonValue, levels: int) -> bool:
    """Say whether mappings and lists nest so deep at most; a document may be made so that recursion ends."""
    level: list[json_types.JsonValue] = [value]
    for _ in range(levels + 1):
        inner: list[json_types.JsonValue] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        if not inner:
            return True
        level = inner
    return not any(isinstance(each, dict | list) for each in level)


def decode(text: bytes | str) -> Any:  # noqa: ANN401  # JSON of any shape; callers check
    """Return the document of a JSON text.

    Raises :class:`ValueError`.
    """
    return orjson.loads(text)


class AmbiguousError(ValueError):
    """A valid JSON text that readers do not read alike."""


def decode_unambiguous(text: bytes | str) -> Any:  # noqa: ANN401  # JSON of any shape; callers check
    """Return the document of a JSON text in which no key stands twice with different values.

    It can be written again as a part of another. Raises :class:`AmbiguousError` that names the key, or says
    that it nests too deep, and :class:`ValueError` for what is not JSON.
    """
    document = decode(text)
    if not can_be_written(document):
        raise AmbiguousError("it nests too deep")
    check_keys(text)
    return document


def can_be_written(document: json_types.JsonValue) -> bool:
    """Say whether a document nests so little that it can be written as a part of another.

    What can be read may nest four times as deep as what can be written.
    """
    for _ in range(_LEVELS_AROUND):
        document = [document]
    try:
        encode(document)
    except TypeError:
        return False
    return True


def check_keys(text: bytes | str) -> None:
    """Raise :class:`AmbiguousError` if a mapping in valid JSON has a key twice, with different values.

    Takes about as long as to decode the text, and holds little.
    """
    try:
        _KEYS.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise AmbiguousError("it nests too deep") from None


def _unique_keys(pairs: list[tuple[str, object]]) -> object:
    """Look at the keys of a mapping, and give something that equals nothing else in its place."""
    values = dict(pairs)
    if len(values) < len(pairs):
        for key, value in pairs:
            if values[key] != value:
                shown = repr(key[:_SHOWN])
                raise AmbiguousError(f"the key {shown} occurs twice in one mapping, with different values")
    return object()


# Numbers become bytes, as those equal no text.
_KEYS: Final = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_int=str.encode, parse_float=str.encode)


def key_with_two_values(text: str) -> str:
    """Say which key a mapping in valid JSON has twice, with different values; empty if none does."""
    try:
        check_keys(text)
    except AmbiguousError as error:
        return str(error)
    return ""


def pack(entry: bytes) -> bytes:
    """Pack an entry to keep it; a Pod of 9 KB takes 40 microseconds and shrinks to a fourth.

    What is packed already stays as it is: no JSON text begins as compressed data does.
    """
    if len(entry) < _PACKED_FROM_BYTES or entry.startswith(_ZLIB_BEGINNING):
        return entry
    return zlib.compress(entry, _FASTEST) + len(entry).to_bytes(_SIZE_BYTES)


def unpack(kept: bytes) -> bytes:
    """Unpack an entry."""
    return zlib.decompress(kept) if kept.startswith(_ZLIB_BEGINNING) else kept


def size_of(kept: bytes) -> int:
    """Return the bytes of the entry, without unpacking it."""
    return int.from_bytes(kept[-_SIZE_BYTES:]) if kept.startswith(_ZLIB_BEGINNING) else len(kept)


class LazyEntries(Sequence[bytes]):
    """Entries that are unpacked when they are read; nothing changes them, so threads may read."""

    def __init__(self, kept: Sequence[bytes]) -> None:
        self._kept = kept

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes of all entries, none of which is unpacked for that."""
        return sum(map(size_of, self._kept))

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> "LazyEntries": ...

    def __getitem__(self, index: int | slice) -> "bytes | LazyEntries":
        if isinstance(index, slice):
            return LazyEntries(self._kept[index])
        return unpack(self._kept[index])
