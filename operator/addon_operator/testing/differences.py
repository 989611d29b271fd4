"""How two documents differ, field by field, and whether one holds all that another asks for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.documents import patterns
from addon_operator.testing import part_words

_MISSING: Final = object()
_SHOWN_CHARS: Final = 200
_SHOWN: Final = 20
_KEYS: Final = ("name", "containerPort", "mountPath", "port", "key", "type")


class Difference(msgspec.Struct, frozen=True):
    """A field that is not as expected."""

    path: str
    """Such as ``Deployment web: spec.replicas``."""
    expected: Any
    actual: Any

    def __str__(self) -> str:
        return f"  {self.path}\n    - {_text(self.expected)}\n    + {_text(self.actual)}"


def between(expected: Any, actual: Any, *, subset: bool = False) -> list[Difference]:  # noqa: ANN401 - JSON
    """Return all fields that differ; with ``subset``, fields that ``expected`` does not name may be anything.

    There, ``null`` is for a field that is not set, ``[]`` and ``{}`` are for empty ones, and words may stand
    in place of values.

    Items of lists are compared by what names them, if something does, and else by their place.
    """
    return list(_between("", expected, actual, subset=subset))


def shown(found: Sequence[Difference]) -> str:
    """Return differences for a person: ``-`` is expected, ``+`` is there."""
    lines = [str(each) for each in found[:_SHOWN]]
    if more := len(found) - len(lines):
        lines.append(f"  and {more} more")
    return "\n".join(lines)


def _between(path: str, expected: Any, actual: Any, *, subset: bool) -> Iterator[Difference]:  # noqa: ANN401 - JSON
    if subset and part_words.are(expected):
        yield from _of_words(path, expected, actual)
    elif subset and expected in ([], {}):
        yield from _between(path, expected, actual, subset=False)
    elif isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in dict.fromkeys([*expected, *(() if subset else actual)]):
            below = f"{path}.{key}" if path and not path.endswith(": ") else f"{path}{key}"
            yield from _between(below, expected.get(key, _MISSING), actual.get(key, _MISSING), subset=subset)
    elif _is_list(expected) and _is_list(actual):
        yield from _of_lists(path, expected, actual, subset=subset)
    elif subset and expected is None and actual is _MISSING:
        return  # The API server takes null as not set, too.
    elif not _is_same(expected, actual):
        yield Difference(path.removesuffix(": ") or "the whole", expected, actual)


def _of_lists(
    path: str,
    expected: Sequence[Any],
    actual: Sequence[Any],
    *,
    subset: bool,
) -> Iterator[Difference]:
    ours, theirs = _named(expected), _named(actual)
    if ours is not None and theirs is not None:
        for name in dict.fromkeys([*ours, *(() if subset else theirs)]):
            below = f"{path}[{name}]" if path else f"{name}: "
            yield from _between(below, ours.get(name, _MISSING), theirs.get(name, _MISSING), subset=subset)
        order = [name for name in theirs if name in ours]
        if not subset and ours.keys() == theirs.keys() and order != list(ours):
            yield Difference(f"{path or 'the list'}: order", list(ours), order)
        return
    for index in range(max(len(expected), len(actual))):
        ours_now = expected[index] if index < len(expected) else _MISSING
        theirs_now = actual[index] if index < len(actual) else _MISSING
        yield from _between(f"{path}[{index}]", ours_now, theirs_now, subset=subset)


def _of_words(path: str, words: Mapping[str, Any], actual: Any) -> Iterator[Difference]:  # noqa: ANN401 - JSON
    """Yield what does not hold. For a field that is not there nothing does: a slip would pass for ever."""
    for word, wanted in words.items():
        for each in part_words.items(wanted) if word in part_words.OF_ITEMS else (wanted,):
            if actual is _MISSING or not _holds(word, each, actual):
                yield Difference(path or "the whole", part_words.said(word, each), _there(word, each, actual))


def _holds(word: str, wanted: Any, actual: Any) -> bool:  # noqa: ANN401 - JSON
    match word:
        case "$has" | "$lacks":
            return _is_in(wanted, actual) is (word == "$has")
        case "$matches":
            return isinstance(actual, str) and patterns.found(wanted, actual)
        case "$count":
            return isinstance(actual, list | Mapping) and len(actual) == wanted
        case "$type":
            return part_words.is_of(wanted, actual)
        case "$is":
            return not between(wanted, actual)
        case _:
            return bool(between(wanted, actual, subset=True))


def _there(word: str, wanted: Any, actual: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what there is: of a list the items, those first that are most like the wanted one."""
    if not _is_list(actual) or word in ("$is", "$type"):
        return actual
    if word == "$lacks":
        return part_words.listed([each for each in actual if not between(wanted, each, subset=True)])
    if word == "$has":
        actual = sorted(actual, key=lambda each: len(between(wanted, each, subset=True)))
    return part_words.listed(actual)


def _is_in(wanted: Any, actual: Any) -> bool | None:  # noqa: ANN401 - JSON
    """Say whether a list or a text has this; ``None`` if it is neither, and cannot have it."""
    if _is_list(actual):
        return any(not between(wanted, each, subset=True) for each in actual)
    if isinstance(actual, str) and isinstance(wanted, str):
        return wanted in actual
    return None


def _named(items: Sequence[Any]) -> dict[str, Any] | None:
    """Return the items by what names them; ``None`` if something does not."""
    if not all(isinstance(each, Mapping) for each in items):
        return None
    names = [_name(each) for each in items]
    if None in names or len(set(names)) < len(names):
        return None
    return dict(zip(map(str, names), items, strict=True))


def _name(item: Mapping[str, Any]) -> str | None:
    metadata = item.get("metadata")
    if isinstance(metadata, Mapping) and "kind" in item:
        place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
        return f"{item['kind']} {place}{metadata.get('name')}"
    return next((str(item[key]) for key in _KEYS if isinstance(item.get(key), str | int)), None)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_same(one: Any, other: Any) -> bool:  # noqa: ANN401 - JSON
    # Python takes true and 1 for equal.
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _text(value: object) -> str:
    if value is _MISSING:
        return "(missing)"
    if isinstance(value, part_words.Said):
        return value.replace("\n", "\n      ")
    text = value if isinstance(value, str) and "\n" in value else json.dumps(value, default=str)
    if "\n" in text:
        text = text.replace("\n", "\n      ")
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
