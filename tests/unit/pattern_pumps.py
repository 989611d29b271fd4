"""Texts that make a pattern of :mod:`re` go back and forth: its own pieces, again and again."""

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence

# The parser of the standard library; its types are not published.
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

_CANDIDATES: Final = "a0 A-._:\"'/\\\n\t{}[]()<>=,;#*`|~@%$&+!?\rzZ9\x01"
_LAST: Final = "\x00"
_FEW: Final = 8
_SOME: Final = 40
_MANY: Final = 100
_LENGTH: Final = 1000
_TIMES: Final = 4
_TRIES: Final = 3
_WINS: Final = 4
_SHORT_SECONDS: Final = 0.00025
"""Of processor time: what a pattern that is linear takes for a text of this length."""

USES: Final[dict[str, Callable[[re.Pattern[str], str], object]]] = {
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
    "match": lambda pattern, text: pattern.match(text),
    "findall": lambda pattern, text: pattern.findall(text),
}
_SAME: Final = {
    "search": "findall",
    "sub": "findall",
    "finditer": "findall",
    "split": "findall",
    "subn": "findall",
}


def of_package(package: types.ModuleType) -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Yield the patterns of all modules of a package: where they are, and in which ways they are used."""
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            found = list(_patterns(value))
            if not found or re.search(rf"^{name}\b.*=", source, re.MULTILINE) is None:
                continue
            said = set(re.findall(rf"\b{name}\.(\w+)", source))
            uses = {_SAME.get(use, use) for use in said} & USES.keys() or set(USES)
            for pattern in found:
                yield f"{info.name}.{name}", pattern, uses
        for call in _calls(source):
            pattern = re.compile(ast.literal_eval(call.args[0]))
            yield f"{info.name}:{call.lineno}", pattern, {_used(call)} & USES.keys()


def _calls(source: str) -> Iterator[ast.Call]:
    """Yield the calls of functions of ``re`` with a pattern that stands in the code."""
    if re.search(r"\bre\.\w+\(", source) is None:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=use), args=[ast.Constant(value=str()), *_]
            ) if use in USES or use in _SAME:
                yield node


def _used(call: ast.Call) -> str:
    use = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return _SAME.get(use, use)


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from _patterns([*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _patterns(each)


def goes_back(pattern: re.Pattern[str], uses: Iterable[str]) -> str | None:
    """Say with which text and use a pattern takes more than in proportion to the text, if there is one."""
    for text in pumped(pattern, _LENGTH):
        for use in uses:
            if _seconds(pattern, use, text) < _SHORT_SECONDS:
                continue
            if _is_quadratic(pattern, use, text):
                long = text * _TIMES
                seconds = _seconds(pattern, use, long)
                return f"{use} takes {seconds:.3f} s for {len(long)} characters of {text[:30]!r}"
    return None


def _is_quadratic(pattern: re.Pattern[str], use: str, text: str) -> bool:
    """Say whether four times the text takes far more than four times as long, more often than not."""
    verdicts = {True: 0, False: 0}
    while max(verdicts.values()) < _WINS:
        # Both at the same moment: others may have the processor's caches, for some time or for a moment.
        few = min(_seconds(pattern, use, text) for _ in range(_TRIES))
        verdicts[_seconds(pattern, use, text * _TIMES) > few * _TIMES * 2] += 1
    return verdicts[True] == _WINS


def _seconds(pattern: re.Pattern[str], use: str, text: str) -> float:
    """Return the processor time of one use, whatever else the machine does."""
    began = time.thread_time()
    USES[use](pattern, text)
    return time.thread_time() - began


def pumped(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Yield texts of about a length: pieces of what the pattern matches again and again, and an odd end."""
    pieces: set[str] = set()
    _sample(parser.parse(pattern.pattern, pattern.flags), pieces)
    pieces.discard("")
    by_length = sorted(pieces, key=lambda piece: (len(piece), piece))
    pairs = {first + second for first, second in itertools.permutations(by_length[:_FEW], 2)}
    for piece in sorted({*by_length[:_SOME], by_length[-1]} | pairs):
        body = piece * (length // len(piece) + 1)
        yield body
        yield body + _LAST
        yield by_length[-1] + body + _LAST


def _sample(parsed: Iterable[Any], pieces: set[str]) -> str:
    """Return a text that a part of a pattern matches, and note the texts of its parts."""
    text = ""
    for kind, argument in parsed:
        piece = _piece(kind, argument, pieces)
        text += piece
        pieces.update((piece, text))
    return text


def _piece(kind: object, argument: Any, pieces: set[str]) -> str:  # noqa: ANN401, PLR0911 - a kind each
    match str(kind):
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return "b" if chr(argument) == "a" else "a"
        case "ANY":
            return "a"
        case "IN":
            return _character(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, repeated = argument
            return _sample(repeated, pieces) * (max(least, 1) if least < _MANY else 1)
        case "SUBPATTERN":
            return _sample(argument[-1], pieces)
        case "ATOMIC_GROUP":
            return _sample(argument, pieces)
        case "BRANCH":
            first, *_ = [_sample(branch, pieces) for branch in argument[1]]
            return first
        case "ASSERT" | "ASSERT_NOT":
            _sample(argument[1], pieces)
    return ""


_CATEGORIES: Final[dict[str, Callable[[str], bool]]] = {
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda character: not character.isspace(),
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_NOT_DIGIT": lambda character: not character.isdigit(),
    "CATEGORY_WORD": lambda character: character.isalnum() or character == "_",
    "CATEGORY_NOT_WORD": lambda character: not (character.isalnum() or character == "_"),
}


def _character(items: Sequence[tuple[object, Any]]) -> str:
    """Return a character of a set, or of what a set leaves out."""
    is_left_out = any(str(kind) == "NEGATE" for kind, _ in items)
    for candidate in _CANDIDATES + "".join(map(chr, range(256))):
        if any(_holds(str(kind), argument, candidate) for kind, argument in items) != is_left_out:
            return candidate
    raise AssertionError(f"no character for {items}")


def _holds(kind: str, argument: Any, character: str) -> bool:  # noqa: ANN401 - the parser's own tree
    if kind == "LITERAL":
        return ord(character) == int(argument)
    if kind == "RANGE":
        first, last = argument
        return int(first) <= ord(character) <= int(last)
    return kind == "CATEGORY" and _CATEGORIES[str(argument)](character)
