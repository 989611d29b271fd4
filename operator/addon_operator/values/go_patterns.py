r"""Regular expressions of schemas, written for Go (RE2), as Python's.

Differences that matter: ``$`` is the very end of the text, ``\d \w \s \b`` mean ASCII only, and flags such
as ``(?i)`` may stand anywhere in a group.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN: Final = re.compile(
    r"""
    \\Q(?P<literal>.*?)(?:\\E|\Z)
    | (?P<class>\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\])
    | (?P<escape>\\.)
    | \(\?(?P<flags>[imsU]+|[imsU]*-[imsU]+)\)
    | (?P<open>\((?:\?(?:P?<[A-Za-z_]\w*>|[imsU-]*:))?)
    | (?P<close>\))
    | (?P<bar>\|)
    | (?P<end>\$)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_POSIX_CLASS: Final = re.compile(r"\[:([a-z]+):\]")


def translate(pattern: str) -> str:
    """The same expression for :mod:`re`.

    Raises :class:`ValueError` with the reason if it is none, or uses what Python cannot do.
    """
    translated = "(?a)" + "".join(_Translator(pattern).parts())
    try:
        re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return translated


class _Translator:
    """Rewrites token by token; a flag in a group wraps the rest of each branch of that group."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._flags: list[list[str]] = [[]]

    def parts(self) -> Iterator[str]:
        for match in _TOKEN.finditer(self._pattern):
            kind = match.lastgroup or "literal"
            yield self._part(kind, match[kind] if match[kind] is not None else match[0])
        yield ")" * len(self._flags[-1])

    def _part(self, kind: str, text: str) -> str:
        if kind == "flags":
            return self._open_flags(text)
        if kind == "open":
            self._flags.append([])
            return text.replace("(?<", "(?P<")
        if kind == "close":
            return ")" * len(self._flags.pop() if len(self._flags) > 1 else []) + ")"
        if kind == "bar":
            return ")" * len(self._flags[-1]) + "|" + "".join(self._flags[-1])
        if kind == "end":
            return text if self._is_multiline() else r"\Z"
        return _SIMPLE[kind](text)

    def _open_flags(self, flags: str) -> str:
        if "U" in flags:
            raise ValueError(f"{self._pattern!r} uses the flag U, which is not supported")
        self._flags[-1].append(f"(?{flags}:")
        return self._flags[-1][-1]

    def _is_multiline(self) -> bool:
        return any("m" in flags.partition("-")[0] for group in self._flags for flags in group)


def _escape(text: str) -> str:
    if text[1] in "pP":
        raise ValueError(f"the Unicode class {text}… is not supported in a pattern; write a range instead")
    return r"\Z" if text == r"\z" else text


def _class(text: str) -> str:
    if "[:^" in text:
        raise ValueError(f"the negated class in {text} is not supported in a pattern; write [^…] instead")
    expanded = _POSIX_CLASS.sub(lambda match: _POSIX.get(match[1], match[0]), text)
    # Python warns of a bracket in a class, Go takes it for itself.
    return expanded[0] + re.sub(r"(?<!\\)\[", r"\\[", expanded[1:])


_SIMPLE: Final[Mapping[str, Callable[[str], str]]] = {
    "literal": re.escape,
    "class": _class,
    "escape": _escape,
    "other": str,
}
