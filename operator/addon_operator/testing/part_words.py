"""Words in parts of documents: what a field has to be where no single value can say it, as ``{$has: x}``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from addon_operator.documents import patterns
from addon_operator.kernel import json_types, names

_MARK: Final = "$"
_SHOWN: Final = 20
_SHOWN_CHARS: Final = 200
_Problem: TypeAlias = tuple[tuple[str | int, ...], str]
DESCRIPTIONS: Final = {
    "$has": "An item of the list, or a text in the text; or several. A part of an item is enough.",
    "$lacks": "An item that must not be in the list, or a text that must not be in the text; or several.",
    "$matches": "A regular expression (RE2) that is found in the text.",
    "$count": "How many items the list or the mapping has.",
    "$type": "What kind of value it is: string, integer, number, boolean, array or object.",
    "$is": "Exactly this: a mapping has no more fields, a list no more items.",
    "$not": "What the field must not be; null: it is there, whatever it is.",
}
"""Each word, and what stands behind it."""
TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
"""What ``$type`` knows, as schemas call it."""
OF_ITEMS: Final = ("$has", "$lacks")
"""Words behind which a list is one thing after another."""


class Said(str):
    """What is expected or there, in words; it is not shown as JSON."""

    __slots__ = ()


def are(expected: object) -> bool:
    """Say whether a mapping of a part holds words in place of fields."""
    return isinstance(expected, Mapping) and any(map(_is_word, expected))


def mistakes(
    part: json_types.JsonValue, budget: patterns.PatternBudget, place: tuple[str | int, ...] = ()
) -> Iterator[_Problem]:
    """Yield the place of each word that is not known or not used right, and a sentence.

    ``budget`` is what all patterns of the file may take together.
    """
    below: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(part, Mapping):
        if are(part):
            yield from _misused(part, budget, place)
        below = iter(part.items())
    elif isinstance(part, list):
        below = iter(enumerate(part))
    for key, value in below:
        if key != "$is":
            yield from mistakes(value, budget, (*place, key))


def _misused(
    words: Mapping[str, Any], budget: patterns.PatternBudget, place: tuple[str | int, ...]
) -> Iterator[_Problem]:
    for word, wanted in words.items():
        if not _is_word(word):
            yield (*place, word), f"it stands beside {_first(words)}; write either fields, or words with '$'"
        elif word not in DESCRIPTIONS:
            hint = names.did_you_mean(word, DESCRIPTIONS, f"known are {', '.join(DESCRIPTIONS)}")
            yield (*place, word), f"the word {word!r} is not known; {hint}"
        elif problem := _misfit(word, wanted, budget):
            yield (*place, word), problem


def _misfit(word: str, wanted: Any, budget: patterns.PatternBudget) -> str | None:  # noqa: ANN401 - JSON
    """Return what is wrong with what stands behind a word."""
    match word:
        case "$count":
            is_count = isinstance(wanted, int) and not isinstance(wanted, bool) and wanted >= 0
            return None if is_count else f"{_short(wanted)} is not a count; write a number such as 2"
        case "$type" if wanted not in tuple(TYPES):
            return f"{_short(wanted)} is not a type; write one of {', '.join(TYPES)}"
        case "$matches":
            return _wrong_pattern(wanted, budget)
        case "$has" | "$lacks" if wanted in (None, "", []) or "" in items(wanted):
            return "it names nothing; write an item, a text, or a list of them"
        case _:
            return None


def _wrong_pattern(pattern: object, budget: patterns.PatternBudget) -> str | None:
    if not isinstance(pattern, str) or not pattern:
        return f"{_short(pattern)} is not a pattern; write a regular expression (RE2), in quotes"
    try:
        budget.check(pattern)
    except patterns.PatternError as error:
        return str(error)
    return None


def _is_word(key: object) -> bool:
    return isinstance(key, str) and key.startswith(_MARK)


def _first(words: Mapping[str, Any]) -> str:
    return next(filter(_is_word, words))


def items(wanted: Any) -> Sequence[Any]:  # noqa: ANN401 - JSON
    """Return what stands behind ``$has`` or ``$lacks``, one by one."""
    return wanted if isinstance(wanted, list) else [wanted]


def is_of(kind: str, value: object) -> bool:
    """Say whether a value is of this type; Python takes ``true`` for a number."""
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def said(word: str, wanted: Any) -> Said:  # noqa: ANN401 - JSON
    """Return what a word asks for."""
    if word == "$not" and wanted is None:
        return Said("anything")
    if word == "$not" and are(wanted):
        return Said("not " + " and ".join(said(each, value) for each, value in wanted.items()))
    verb = {"$count": "count", "$is": "exactly"}.get(word, word.removeprefix(_MARK))
    return Said(f"{verb} {_short(wanted)}")


def listed(there: Sequence[Any]) -> Said:
    """Return items of a list below each other, so that the one that was meant is found."""
    lines = [f"{len(there)} item{'' if len(there) == 1 else 's'}", *map(_short, there[:_SHOWN])]
    if len(there) > _SHOWN:
        lines.append(f"and {len(there) - _SHOWN} more")
    return Said("\n".join(lines))


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
