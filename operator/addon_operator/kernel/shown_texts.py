"""Texts that programs give for people: what a terminal would obey instead of showing it is taken out."""

import html
from collections.abc import Mapping
from typing import Any, Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_KEPT: Final = "\n\t"
_CONTROLS: Final = [*range(0x20), *range(0x7F, 0xA0)]
# They change the order in which letters are shown.
_DIRECTIONS: Final = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SURROGATES: Final = range(0xD800, 0xE000)
OBEYED: Final = "".join(each for each in map(chr, (*_CONTROLS, *_DIRECTIONS)) if each not in _KEPT)
"""What a terminal would obey, and what changes the order in which it shows letters."""
_TABLE: Final[Mapping[int, str]] = dict.fromkeys([*map(ord, OBEYED), *_SURROGATES], _REPLACEMENT)


def shown(text: str) -> str:
    """Return a text with what is neither a letter, a space nor the end of a line replaced."""
    return text.translate(_TABLE)


def shown_line(text: str) -> str:
    """Return the same in one line, as headers of HTTP need it."""
    return shown(" ".join(text.split()))


def shown_within(document: Any) -> Any:  # noqa: ANN401 - decoded JSON
    """Return the same of all texts in a document, also of keys."""
    if isinstance(document, str):
        return shown(document)
    if isinstance(document, list):
        return [shown_within(each) for each in document]
    if isinstance(document, dict):
        return {shown(str(key)): shown_within(value) for key, value in document.items()}
    return document


def as_html(text: str) -> str:
    """Return the same as HTML."""
    return html.escape(shown(text))
