"""Texts that programs give for people: what a terminal would obey instead of showing it is taken out."""

from collections.abc import Mapping
from typing import Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_KEPT: Final = "\n\t"
_CONTROLS: Final = [*range(0x20), *range(0x7F, 0xA0)]
# They change the order in which letters are shown.
_DIRECTIONS: Final = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SURROGATES: Final = range(0xD800, 0xE000)
_TABLE: Final[Mapping[int, str]] = {
    code: _REPLACEMENT for code in (*_CONTROLS, *_DIRECTIONS, *_SURROGATES) if chr(code) not in _KEPT
}


def shown(text: str) -> str:
    """Return a text with what is neither a letter, a space nor the end of a line replaced."""
    return text.translate(_TABLE)


def shown_line(text: str) -> str:
    """Return the same in one line, as headers of HTTP need it."""
    return " ".join(shown(text).split())
