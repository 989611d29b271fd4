"""The source root is called ``operator``: it must never shadow the standard library's module of that name."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_the_source_root_is_no_package() -> None:
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
