"""The mistakes that ``make mutants`` makes."""

import ast
import types

import pytest

from tests.support import rows
from tests.unit.scripts import scripts_loaded


@pytest.fixture(scope="module")
def mutations() -> types.ModuleType:
    return scripts_loaded.load("mutations")


MISTAKES = {
    "assert a - b": {"assert (a + b)", "assert a"},
    "assert a < b": {"assert (a <= b)"},
    "assert a in b is c": {"assert (a not in b is c)", "assert (a in b is not c)"},
    "assert a and b": {"assert (a or b)", "assert a", "assert b"},
    "assert not a": {"assert a"},
    "assert 1": {"assert 2"},
    "assert True": {"assert False"},
    "assert 'a'": {"assert 'ax'"},
    "assert a if b else c": {"assert (c if b else a)", "assert a", "assert c"},
    "assert [a for a in b if c]": {"assert [a for a in b if True]"},
    "assert {**a}": {"assert a"},
    "assert [*a]": {"assert a"},
    "assert dict(a)": {"assert a"},
    "assert a.copy()": {"assert a"},
    "assert any(a)": {"assert all(a)"},
    "assert a.lstrip()": {"assert a.rstrip()"},
    "assert f(a, b, c)": {"assert f(b, a, c)"},
    "assert f(a, b=c)": {"assert f(a)", "assert f(a, b=None)"},
    "assert max(a, b)": {"assert min(a, b)"},
    "assert f(*a, b)": set(),
    "x = a": {"x = None"},
    "x.a = b": {"pass", "x.a = None"},
    "f(a)": {"pass"},
    "x += a": {"pass", "x = a", "x = x - a"},
    "assert re.compile(r'a+\\.b*')": {
        "assert re.compile('a*\\\\.b*')",
        "assert re.compile('a+\\\\.b+')",
        "assert re.compile('a+\\\\.b*x')",
    },
    "def f():\n return a": {"return None"},
    "def f():\n return False": {"return True"},
    "while a:\n break": {"while not (a):", "continue", "pass"},
    "if a == b: c": {"if (a != b): c", "if a == b: pass"},
}


@rows.each(("code", "after"), MISTAKES.items(), ids=MISTAKES)
def test_each_kind_of_mistake_is_made(mutations: types.ModuleType, code: str, after: set[str]) -> None:
    assert {each.after for each in mutations.of(code)} == after


@rows.each(
    "code",
    [
        '"""What it is for."""',
        "import a",
        "x: Final[Literal['a']]",
        "@dataclass(frozen=True)\nclass A(Struct, frozen=True): ...",
        "__slots__ = ('a', 'b')",
        "x = 'a sentence'",
        "assert f'{a - b} of them'",
        "A = NewType('A', str)",
        "isinstance(a, b)",
    ],
)
def test_what_is_for_readers_and_the_type_checker_has_no_mistakes(
    mutations: types.ModuleType, code: str
) -> None:
    assert [each.after for each in mutations.of(code)] in ([], ["pass"])


@pytest.mark.slow
def test_all_mistakes_of_a_file_are_python_and_have_their_line(mutations: types.ModuleType) -> None:
    source = (scripts_loaded.ROOT / "scripts" / "manifests.py").read_text("utf-8")
    found = mutations.of(source)
    assert len(found) > 50
    for each in found[::10]:
        ast.parse(each.source)
        lines = each.source.splitlines()
        assert lines[each.line - 1].strip() == each.after
        assert lines[: each.line - 1] == source.splitlines()[: each.line - 1]


def test_letters_of_several_bytes_do_not_move_what_is_changed(mutations: types.ModuleType) -> None:
    assert [each.after for each in mutations.of("assert a # ä\nassert ('ä b', 1)")] == ["assert ('ä b', 2)"]
