"""The mistakes that ``make mutants`` makes."""

import ast
import types

import pytest

from tests.unit.scripts import scripts_loaded


@pytest.fixture(scope="module")
def mutations() -> types.ModuleType:
    return scripts_loaded.load("mutations")


MISTAKES = {
    "x = a - b": {"x = (a + b)", "x = a"},
    "x = a < b": {"x = (a <= b)"},
    "x = a in b is c": {"x = (a not in b is c)", "x = (a in b is not c)"},
    "x = a and b": {"x = (a or b)", "x = a", "x = b"},
    "x = not a": {"x = a"},
    "x = 1": {"x = 2"},
    "x = True": {"x = False"},
    "x = 'a'": {"x = 'ax'"},
    "x = a if b else c": {"x = (c if b else a)", "x = a", "x = c"},
    "x = [a for a in b if c]": {"x = [a for a in b if True]"},
    "x = {**a}": {"x = a"},
    "x = [*a]": {"x = a"},
    "x = dict(a)": {"x = a"},
    "x = a.copy()": {"x = a"},
    "x = any(a)": {"x = all(a)"},
    "x = a.lstrip()": {"x = a.rstrip()"},
    "x = f(a, b, c)": {"x = f(b, a, c)"},
    "x = f(a, b=c)": {"x = f(a)"},
    "x = max(a, b)": {"x = min(a, b)"},
    "x = f(*a, b)": set(),
    "x.a = b": {"pass"},
    "f(a)": {"pass"},
    "x += a": {"pass", "x = a", "x = x - a"},
    "x = re.compile(r'a+\\.b*')": {
        "x = re.compile('a*\\\\.b*')",
        "x = re.compile('a+\\\\.b+')",
        "x = re.compile('a+\\\\.b*x')",
    },
    "def f():\n return a": {"return None"},
    "def f():\n return False": {"return True"},
    "while a:\n break": {"while not (a):", "continue", "pass"},
    "if a == b: c": {"if (a != b): c", "if a == b: pass"},
}


@pytest.mark.parametrize(("code", "after"), MISTAKES.items(), ids=repr)
def test_each_kind_of_mistake_is_made(mutations: types.ModuleType, code: str, after: set[str]) -> None:
    assert {each.after for each in mutations.of(code)} == after


@pytest.mark.parametrize(
    "code",
    [
        '"""What it is for."""',
        "import a",
        "x: Final[Literal['a']]",
        "@dataclass(frozen=True)\nclass A(Struct, frozen=True): ...",
        "__slots__ = ('a', 'b')",
        "x = 'a sentence'",
        "x = f'{a - b} of them'",
        "A = NewType('A', str)",
        "isinstance(a, b)",
    ],
)
def test_what_is_for_readers_and_the_type_checker_has_no_mistakes(
    mutations: types.ModuleType, code: str
) -> None:
    assert [each.after for each in mutations.of(code)] in ([], ["pass"])


def test_all_mistakes_of_a_file_are_python_and_have_their_line(mutations: types.ModuleType) -> None:
    source = (scripts_loaded.ROOT / "scripts" / "unit_queue.py").read_text("utf-8")
    found = mutations.of(source)
    assert len(found) > 50
    for each in found[::10]:
        ast.parse(each.source)
        lines = each.source.splitlines()
        assert lines[each.line - 1].strip() == each.after
        assert lines[: each.line - 1] == source.splitlines()[: each.line - 1]


def test_letters_of_several_bytes_do_not_move_what_is_changed(mutations: types.ModuleType) -> None:
    assert [each.after for each in mutations.of("x = a # ä\ny = ('ä b', 1)")] == ["y = ('ä b', 2)"]
