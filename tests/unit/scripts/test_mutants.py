"""What ``make mutants`` says of a file and its tests."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.unit.scripts import scripts_loaded

FILE = "operator/addon_operator/room/sizes.py"
CODE = """
def larger(a, b):
    return a > b
"""
TEST = """
from addon_operator.room import sizes

def test_larger():
    assert sizes.larger(2, 1)
    assert not sizes.larger(1, 2)
"""
EQUIVALENT = f"""
[[mutant]]
file = "{FILE}"
after = "return (a >= b)"
reason = "as the test says"
"""
ENDLESS = """
def counted(a):
    while a < 3:
        a += 1
    return a
"""
ENDLESS_TEST = """
from addon_operator.room import sizes

def test_counted():
    assert sizes.counted(1) == 3
    assert sizes.counted(2) == 3
"""


def project(root: pathlib.Path, code: str = CODE, test: str = TEST) -> None:
    """A project of one room."""
    for path, text in {
        "operator/addon_operator/__init__.py": "",
        "operator/addon_operator/room/__init__.py": "",
        "operator/addon_operator/room/sizes.py": code,
        "tests/unit/room/test_sizes.py": test,
        "tests/equivalent_mutants.toml": "",
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['operator']\n",
    }.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("mutants.py", "mutations.py"):
        (root / "scripts").mkdir(exist_ok=True)
        shutil.copy(scripts_loaded.ROOT / "scripts" / name, root / "scripts")


def tried(root: pathlib.Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    command = (sys.executable, "scripts/mutants.py", *arguments)
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.slow  # it runs pytest three times
def test_what_survives_is_shown(tmp_path: pathlib.Path) -> None:
    project(tmp_path)
    code, output = tried(tmp_path, FILE)
    assert code == 1
    assert f"SURVIVED {FILE}:3: return (a >= b)" in output
    assert "-    return a > b\n+    return (a >= b)\n" in output
    assert f"killed   {FILE}:3: return None" in output
    assert output.endswith("\n1 of 2 mutants killed (50%); the file has 2 in all\n")
    assert (tmp_path / FILE).read_text() == CODE, "the work tree stays as it is"


@pytest.mark.slow
def test_what_nobody_could_notice_does_not_count(tmp_path: pathlib.Path) -> None:
    project(tmp_path)
    (tmp_path / "tests/equivalent_mutants.toml").write_text(EQUIVALENT)
    code, output = tried(tmp_path, FILE)
    assert (code, output.splitlines()[-1]) == (0, "1 of 1 mutants killed (100%); the file has 1 in all")


@pytest.mark.slow
def test_nothing_is_tried_while_the_tests_fail_or_an_entry_is_out_of_date(tmp_path: pathlib.Path) -> None:
    project(tmp_path, test=TEST.replace("assert not", "assert"))
    code, output = tried(tmp_path, FILE)
    assert (code, output.splitlines()[0]) == (2, "the tests fail without a mistake, too:")

    (tmp_path / "tests/equivalent_mutants.toml").write_text(EQUIVALENT.replace(">=", "!="))
    assert tried(tmp_path, FILE) == (
        2,
        f"tests/equivalent_mutants.toml: {FILE} has no mutant 'return (a != b)' any more: remove it\n",
    )


@pytest.mark.slow
def test_a_mistake_with_which_the_tests_never_end_is_noticed(tmp_path: pathlib.Path) -> None:
    project(tmp_path, ENDLESS, ENDLESS_TEST)
    code, output = tried(tmp_path, FILE)
    assert f"killed   {FILE}:4: pass" in output
    assert code == 0
