"""Every pattern of the operator takes time in proportion to the text that it reads, whatever that text is.

``re`` holds the interpreter's lock while it searches: what takes long there stops the whole operator. What
users write is read by RE2, which takes no longer by its construction.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from typing import Final

import addon_operator
from tests.support import rows
from tests.unit import backtracking

BOUNDED: Final = {
    "documents.quotations._SCALAR": "ends at the end of the line, which it goes to only once",
    "documents.quotations._AGAINST": "tried at one place: where it fails, the rest of the text is hidden",
    "documents.quotations._VALUES": "the same two",
    "expansion.references._TOKEN": "applied up to the last closing bracket: each opening one finds an end",
    "documents.text_parts._AFTER_DOLLAR": "the same",
    "helm.repositories.chart_pull._QUERY": "reads 1000 characters",
    "helm.repositories.chart_pull._NO_INDEX": "reads 1000 characters",
    "podpreset.crd._MATCHES": "reads the definition that this project writes",
    "settings.setting_names._SERVICE_LINK": "reads the names of the operator's own variables",
}
"""Patterns that go back over their text, and what bounds it."""
_USES: Final = {
    **dict.fromkeys(("search", "findall", "finditer", "sub", "subn", "split"), "search"),
    "match": "match",
    "fullmatch": "fullmatch",
}


def patterns_of(package: types.ModuleType) -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Yield the patterns of all modules of a package: where they are, and in which ways they are used."""
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        source = inspect.getsource(module)
        # What it imports is another module's.
        own = set(re.findall(r"^(\w+)\b.*=", source, re.MULTILINE))
        for name in own & vars(module).keys():
            found = list(_patterns(getattr(module, name)))
            if not found:
                continue
            said = re.findall(rf"\b{name}\.(\w+)", source)
            uses = {_USES[use] for use in said if use in _USES} or set(_USES.values())
            for pattern in found:
                yield f"{info.name}.{name}", pattern, uses
        for use, call in _calls(source):
            yield f"{info.name}:{call.lineno}", re.compile(ast.literal_eval(call.args[0])), {use}


def _calls(source: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of functions of ``re`` with a pattern that stands in the code, and their uses."""
    if re.search(rf"\bre\.(?:{'|'.join(_USES)})\(\s*r?f?[\"']", source) is None:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=use), args=[ast.Constant(value=str()), *_]
            ) if use in _USES:
                yield _USES[use], node


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from _patterns([*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _patterns(each)


def test_each_pattern_is_linear_in_the_text_that_it_reads() -> None:
    found = {
        where.removeprefix("addon_operator."): said
        for where, pattern, uses in patterns_of(addon_operator)
        if (said := backtracking.goes_back(pattern, uses)) is not None
    }
    problems = [f"{where}: {said}" for where, said in found.items() if where not in BOUNDED]
    assert not problems, "\n".join(problems)
    assert BOUNDED.keys() - found.keys() == set(), "these are linear"


@rows.each(
    ("use", "pattern"),
    [
        ("search", r"a*b"),
        ("search", r"\$\(([^)]*)\)"),
        ("search", r"\s+-"),
        ("search", r"(?:x*y)?"),
        ("search", r"(?m)^\s*b"),
        ("search", r"'.*?'(?= is)"),
        ("search", r"\w(?!.*y)"),
        ("match", r"(?:a|b|ab)*c"),
        ("match", r"(a+)+b"),
        ("match", r"(?:a*b*)*c"),
        ("match", r"(?:(?:a|b|ab)*c)?+"),
        ("match", r"(?:\w*,?)*;"),
        ("fullmatch", r"\w+\d+x"),
        ("fullmatch", r"a*a*"),
    ],
)
def test_a_pattern_that_goes_back_is_found(use: str, pattern: str) -> None:
    assert backtracking.goes_back(re.compile(pattern), [use]) is not None


@rows.each(
    ("use", "pattern"),
    [
        ("search", r"a*"),
        ("search", r"[ab]{1,100}c"),
        ("search", r'"[^"]*"'),
        ("search", r"(?<!\w)\w+;"),
        ("search", r"\bx\w*\b"),
        ("search", r"^a*b"),
        ("search", r"(?m)^[ \t]*b"),
        ("search", r'(?s)"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'),
        ("search", r"[A-Z]+(?![a-z])"),
        ("match", r"(?:a|b)*c"),
        ("match", r"(?>a*a*)b"),
        ("match", r"a*+a*b"),
        ("match", r"a*a*"),
        ("fullmatch", r"(?:\w+,)*\w+"),
        ("fullmatch", r"([\"'])[^\"']*\1"),
    ],
)
def test_a_pattern_that_does_not_go_back_is_let_be(use: str, pattern: str) -> None:
    assert backtracking.goes_back(re.compile(pattern), [use]) is None
