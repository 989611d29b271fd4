"""The source root is called ``operator``: it must never shadow the standard library's module of that name."""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "addon_operator"
LIBRARIES = ("hook", "shell")
"""Their pages of documentation tell about them."""


def test_the_source_root_is_not_a_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not (ROOT / "operator" / "__init__.pyi").exists()


def test_an_interpreter_started_in_the_checkout_gets_the_standard_operator_module() -> None:
    command = [sys.executable, "-c", "import operator; print(operator.__file__)"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert not pathlib.Path(found.strip()).is_relative_to(ROOT / "operator")


def test_the_page_about_architecture_tells_of_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("\n## Packages\n")[1]
    first_cells = re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE)
    told = {package for cell in first_cells for package in re.findall(r"`(\w+)`", cell)}
    sources = (ROOT / "operator" / "addon_operator").iterdir()
    assert told == {path.name for path in sources if path.is_dir() and any(path.glob("*.[ps][yh]"))}


def rooms() -> dict[str, pathlib.Path]:
    """Every folder with modules, by its path in the package."""
    folders = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE}
    return {path.relative_to(PACKAGE).as_posix(): path for path in sorted(folders)}


def sentence(room: pathlib.Path) -> str:
    return str(ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8")))).splitlines()[0]


def test_every_room_has_one_sentence_which_the_page_about_architecture_repeats() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    told = dict(re.findall(r"^\| (?:&nbsp;| )*`([\w/]+)` \| (.+?) \|", page, flags=re.MULTILINE))
    own = {name: sentence(room).replace("``", "`") for name, room in rooms().items() if name not in LIBRARIES}
    assert {name: told.get(name) for name in own} == own


def test_no_test_file_is_imported_by_another() -> None:
    named = re.compile(
        r"^(?:from tests\S*\.test_|from tests\S* import .*\btest_|import tests\S*\.test_)", re.MULTILINE
    )
    tests = (ROOT / "tests").rglob("*.py")
    assert [path.name for path in tests if named.search(path.read_text("utf-8"))] == []


def test_no_test_tells_the_type_checker_that_one_thing_is_another() -> None:
    """A fake is a subclass of the class whose place it takes: a cast would hide that they differ."""
    cast = re.compile(r"^from typing import (?:\([^)]*|.*)\bcast\b|\btyping\.cast\(", re.MULTILINE)
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert [str(path.relative_to(ROOT)) for path in tests if cast.search(path.read_text("utf-8"))] == []
