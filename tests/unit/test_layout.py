"""The source root is called ``operator``: it must never shadow the standard library's module of that name."""

import pathlib
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
