"""What is another one in each render of the same: random values, times, and what is made from them.

Two renders are laid over each other. What they have in common stays; where they differ stands a mark. A third
manifest asks for the same if the same is left of it.
"""

import base64
import binascii
import collections
import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import re2  # type: ignore[import-untyped]  # has no stubs
from msgspec import structs

from addon_operator.documents import json_documents, manifest_diff, text_diff

_MARK: Final = "\0varies"
"""Stands for what varies."""
_DAY: Final = r"\d{4}[-/.]\d\d[-/.]\d\d"
_TIME: Final = r"\d\d[:.-]\d\d(?:[:.-]\d\d(?:[.,]\d+)?)?"
_ZONE: Final = r"(?: ?Z| ?[+-]\d\d:?\d\d)?(?: [A-Z]{3,4}\b)?(?: m=[+-]\d+\.\d+)?"
_WEEKDAY: Final = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? +)?"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_TIMES: Final = (
    rf"{_DAY}(?:[T _-]{_TIME}{_ZONE})?",
    r"\d{8}[-_.]\d{4,6}",
    rf"{_WEEKDAY}(?:\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}},?|{_MONTH} +\d{{1,2}},?) +{_TIME}{_ZONE}(?: \d{{4}})?",
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?",
)
_WORD: Final = re2.compile("|".join([*_TIMES, "[A-Za-z0-9]+"]))
"""A time is one word: its seconds are not the only part that will be another one."""
_BY_CHANCE: Final = frozenset("+/=.-_")
"""Separators that random texts have: those of base64, its form for URLs, and bcrypt."""
_LONGEST_LINE: Final = 64 * 1024
"""How many characters a line may have that is looked at word by word."""


def steady(
    one: Sequence[manifest_diff.ManifestDocument], other: Sequence[manifest_diff.ManifestDocument]
) -> tuple[manifest_diff.ManifestDocument, ...]:
    """Return the documents of one render, with a mark in place of what another render has otherwise.

    What has another name in each render is paired with what is of the same kind. Helm's tests are left out.
    """
    ours, theirs = (
        _grouped(manifest_diff.without_tests(each), lambda each: each.key) for each in (one, other)
    )
    kept = [pair for key, found in ours.items() for pair in zip(found, theirs.get(key, ()), strict=False)]
    rest = [_grouped(_left(*each), _sort) for each in ((ours, theirs), (theirs, ours))]
    for sort in rest[0].keys() | rest[1].keys():
        unnamed, others = (sorted(each.get(sort, ()), key=lambda document: document.source) for each in rest)
        if len(unnamed) == len(others):
            kept += zip(unnamed, others, strict=True)
        else:
            mark = manifest_diff.ManifestDocument(manifest_diff.ManifestKey(""), f"{_MARK} {sort}", None)
            kept.append((mark, mark))
    return tuple(itertools.starmap(_of_documents, kept))


def same(
    applied: Sequence[manifest_diff.ManifestDocument],
    one: Sequence[manifest_diff.ManifestDocument],
    other: Sequence[manifest_diff.ManifestDocument],
) -> bool:
    """Say whether a manifest differs from two renders of the same only where those differ."""
    return manifest_diff.fingerprint(steady(one, applied)) == manifest_diff.fingerprint(steady(one, other))


_Documents: TypeAlias = dict[manifest_diff.ManifestKey, list[manifest_diff.ManifestDocument]]


def _grouped(
    documents: Iterable[manifest_diff.ManifestDocument],
    by: Callable[[manifest_diff.ManifestDocument], manifest_diff.ManifestKey],
) -> _Documents:
    groups: _Documents = {}
    for document in documents:
        groups.setdefault(by(document), []).append(document)
    return groups


def _sort(document: manifest_diff.ManifestDocument) -> manifest_diff.ManifestKey:
    return structs.replace(document.key, name="")


def _left(groups: _Documents, others: _Documents) -> Iterator[manifest_diff.ManifestDocument]:
    """Yield the documents to which the others have none of the same name."""
    for key, found in groups.items():
        yield from found[len(others.get(key, ())) :]


def _of_documents(
    one: manifest_diff.ManifestDocument, other: manifest_diff.ManifestDocument
) -> manifest_diff.ManifestDocument:
    if one.body is None or other.body is None:
        text = _MARK if one.body is not other.body else _of_texts(one.text, other.text)
        return structs.replace(one, text=text, body=None)
    ours, theirs = one.body, other.body
    if ours.get("kind") == theirs.get("kind") == "Secret":
        ours, theirs = _readable(ours, theirs)
    body = _of_mappings(ours, theirs)
    # The text stands for what has no JSON form.
    return structs.replace(one, text=repr(body), body=body)


def _readable(
    one: manifest_diff.Object, other: manifest_diff.Object
) -> tuple[manifest_diff.Object, manifest_diff.Object]:
    """Return both Secrets with the texts that their data encodes, where those differ."""
    data, others = one.get("data"), other.get("data")
    if not isinstance(data, dict) or not isinstance(others, dict):
        return one, other
    texts = {
        key: pair
        for key in data.keys() & others.keys()
        if data[key] != others[key] and None not in (pair := (_decoded(data[key]), _decoded(others[key])))
    }
    ours, theirs = ({key: pair[at] for key, pair in texts.items()} for at in (0, 1))
    return {**one, "data": {**data, **ours}}, {**other, "data": {**others, **theirs}}


def _decoded(text: object) -> str | None:
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode(text, validate=True).decode() if isinstance(text, str) else None
    return None


def _common(one: Any, other: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(one, dict) and isinstance(other, dict):
        return _of_mappings(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return _of_lists(one, other)
    if isinstance(one, str) and isinstance(other, str):
        return _of_texts(one, other)
    return one if type(one) is type(other) and one == other else _MARK


def _of_mappings(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the keys of both; what has another key in each is compared without it."""
    common = {key: _common(value, other[key]) for key, value in one.items() if key in other}
    ours, theirs = ([each[key] for key in each if key not in common] for each in (one, other))
    if ours or theirs:
        common[_MARK] = _of_lists(ours, theirs)
    return common


def _of_lists(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Compare item by item; of lists in another order or of another length stays what is in both."""
    if len(one) == len(other) and one == other:
        return list(map(_common, one, other))
    ours, theirs = ([_canonical(item) for item in each] for each in (one, other))
    both = collections.Counter(ours) & collections.Counter(theirs)
    if len(one) == len(other) != both.total():
        return list(map(_common, one, other))
    return [*sorted(both.elements()), _MARK]


def _canonical(value: object) -> str:
    try:
        return json_documents.canonical(value).decode()
    except TypeError:  # what has no JSON form
        return repr(value)


def _of_texts(one: str, other: str) -> str:
    if one == other:
        return one
    before, after = one.split("\n"), other.split("\n")
    lines: list[str] = []
    for _, begin, end, other_begin, other_end in text_diff.opcodes(before, after):
        ours, theirs = before[begin:end], after[other_begin:other_end]
        lines += map(_of_lines, ours, theirs) if len(ours) == len(theirs) else [_MARK]
    # How many lines a certificate has is chance.
    return "\n".join(_once(lines))


def _of_lines(one: str, other: str) -> str:
    if one == other:
        return one
    ours, theirs = _words(one), _words(other)
    if len(ours) == len(theirs):
        words = [word if word == others else _MARK for word, others in zip(ours, theirs, strict=True)]
    else:
        begin = _in_common(ours, theirs)
        end = _in_common(ours[begin:][::-1], theirs[begin:][::-1])
        words = [*ours[:begin], _MARK, *ours[len(ours) - end :]]
    return "".join(_once(_widened(words)))


def _words(line: str) -> list[str]:
    """Return words and, one by one, the characters between them."""
    if len(line) > _LONGEST_LINE:
        return [line]
    words: list[str] = []
    at = 0
    for match in _WORD.finditer(line):
        words += [*line[at : match.start()], match[0]]
        at = match.end()
    return [*words, *line[at:]]


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words are the same from the beginning on."""
    shortest = min(len(one), len(other))
    return next((at for at in range(shortest) if one[at] != other[at]), shortest)


def _widened(words: list[str]) -> list[str]:
    """Mark the separators beside a mark, too, that random texts have by chance, and all between marks."""
    for order in (range(1, len(words)), range(len(words) - 2, -1, -1)):
        for at in order:
            if words[at] in _BY_CHANCE and words[at - order.step] == _MARK:
                words[at] = _MARK
    marked: list[str] = []
    since = 0
    for word in words:
        if word == _MARK and marked[since - 1 : since] == [_MARK]:
            del marked[since:]
        marked.append(word)
        if len(word) > 1 or word.isalnum():
            since = len(marked)
    return marked


def _once(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts with one mark for those that follow each other: how many they are is chance."""
    last = ""
    for part in parts:
        if not part == last == _MARK:
            yield part
        last = part
