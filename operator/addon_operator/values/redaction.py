"""Hiding sensitive values: what the values Secret sets, and texts that were made of such values."""

import base64
import bisect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import ahocorasick_rs
from msgspec import structs

from addon_operator.kernel import json_types
from addon_operator.values.schema import schema_violations, schemas

MIN_LENGTH: Final = 4
"""Shorter values are left alone: they would be found everywhere, and keep no secret."""
_LONG: Final = 64
_HIDDEN: Final = schemas.HIDDEN.encode()


def without_secrets(value: json_types.JsonObject, secret: json_types.JsonObject) -> json_types.JsonObject:
    """Return a section without what stands at the places that ``secret``, the Secret's part of it, sets."""
    return {key: _hide(inner, secret[key]) if key in secret else inner for key, inner in value.items()}


def without_secrets_at(
    path: Sequence[str], value: json_types.JsonValue, secret: json_types.JsonObject
) -> json_types.JsonValue:
    """Do as :func:`without_secrets` with what stands, or will stand, at ``path`` below the section."""
    if not secret:
        return value
    below: json_types.JsonValue = secret
    for token in path:
        if not isinstance(below, dict) or not below:
            return schemas.HIDDEN
        if token not in below:
            return value
        below = below[token]
    return _hide(value, below)


def _hide(value: json_types.JsonValue, secret: json_types.JsonValue) -> json_types.JsonValue:
    if isinstance(value, dict) and isinstance(secret, dict) and secret:
        return without_secrets(value, secret)
    return schemas.HIDDEN


def without_secrets_in(
    violations: Sequence[schema_violations.Violation], secret: json_types.JsonObject
) -> list[schema_violations.Violation]:
    """Return what is wrong with a section, without what the values Secret sets in it.

    A rule, too, may quote a value, when it cannot be evaluated.
    """
    if not secret or not violations:
        return list(violations)
    redact, shown = redactor(leaves(secret)), []
    for one in violations:
        over = _set_at(one.keys[1:], secret)
        value = one.value if one.value is None or over is None else schemas.HIDDEN
        sees = isinstance(over, dict)
        shown.append(structs.replace(one, rule=redact(one.rule), value=value, sees_secret=sees))
    return shown


def _set_at(path: Sequence[str | int], secret: json_types.JsonObject) -> json_types.JsonValue:
    """Return what the Secret sets below a place, :data:`.HIDDEN` if the place itself, ``None`` if nothing."""
    below: json_types.JsonValue = secret
    for key in path:
        if not isinstance(below, dict) or not below:
            break
        if key not in below:
            return None
        below = below[str(key)]
    return below if isinstance(below, dict) and below else schemas.HIDDEN


def sensitive_texts(value: json_types.JsonValue, masked: json_types.JsonValue) -> frozenset[str]:
    """Return all texts and numbers of ``value`` that ``masked``, the same document, does not show."""
    return frozenset(_hidden(value, masked))


def redactor(texts: Iterable[str]) -> Callable[[str], str]:
    """Return a function that shows :data:`.HIDDEN` in the place of the texts.

    They are found as they are, as JSON and YAML escape them, in base64, and line by line. However many there
    are, a text is searched once for all that are short, once for the beginnings of the others, and once for
    each of these whose beginning it has.
    """
    forms = {form.encode(errors="surrogatepass") for text in texts for form in _forms(text)}
    long = sorted((form for form in forms if len(form) > _LONG), key=lambda form: (-len(form), form))
    lengths = [-len(form) for form in long]
    # To prepare a search takes time in proportion to the square of the longest form.
    beginnings = ahocorasick_rs.BytesAhoCorasick(sorted({form[:_LONG] for form in long}))
    short = ahocorasick_rs.BytesAhoCorasick(
        sorted(form for form in forms if len(form) <= _LONG),
        matchkind=ahocorasick_rs.MatchKind.LeftmostLongest,
    )

    def redact(text: str) -> str:
        shown = text.encode(errors="surrogatepass")
        begun = {shown[at:end] for _, at, end in beginnings.find_matches_as_indexes(shown, overlapping=True)}
        if begun:
            for form in long[bisect.bisect_left(lengths, -len(shown)) :]:
                if form[:_LONG] in begun:
                    shown = shown.replace(form, _HIDDEN)
        found, at = [], 0
        for _, start, end in short.find_matches_as_indexes(shown):
            found += [shown[at:start], _HIDDEN]
            at = end
        return b"".join([*found, shown[at:]]).decode(errors="surrogatepass")

    return redact


def _hidden(value: json_types.JsonValue, masked: json_types.JsonValue) -> Iterator[str]:
    if masked == schemas.HIDDEN:
        yield from leaves(value)
    elif isinstance(value, dict) and isinstance(masked, dict):
        for key, inner in value.items():
            yield from _hidden(inner, masked.get(key))
    elif isinstance(value, list) and isinstance(masked, list):
        for inner, inner_masked in zip(value, masked, strict=False):
            yield from _hidden(inner, inner_masked)


def leaves(value: json_types.JsonValue) -> Iterator[str]:
    """Yield all texts and numbers of a document."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _forms(text: str) -> Iterator[str]:
    lines = text.splitlines() if "\n" in text else []
    for part in (text, *(line.strip() for line in lines)):
        if len(part) >= MIN_LENGTH:
            yield part
            yield json.dumps(part)[1:-1]
            yield json.dumps(part, ensure_ascii=False)[1:-1]
            yield part.replace("'", "''")
    if len(text) >= MIN_LENGTH:
        yield base64.b64encode(text.encode(errors="surrogatepass")).decode()
