"""How hooks find their libraries."""

import os
import pathlib
import subprocess
import sys

import pytest

from addon_operator.app import hook_environment
from addon_operator.kernel import errors

# -S: nothing of this environment, like the Python of a module's own.
BARE_PYTHON = [sys.executable, "-S", "-c"]


def test_a_python_of_any_origin_finds_the_library_and_nothing_else_of_the_operator(
    tmp_path: pathlib.Path,
) -> None:
    look = "from addon_operator import hook; import importlib.util as u; print(hook.run, u.find_spec('kopf'))"
    environ = hook_environment.offered({"PATH": os.environ["PATH"]}, tmp_path)
    said = subprocess.run([*BARE_PYTHON, look], env=environ, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("<function run")
    assert said.stdout.endswith("None\n")
    assert [path.name for path in (tmp_path / "python").iterdir()] == ["addon_operator"]


def test_the_library_comes_after_what_is_in_the_path_of_python_already(tmp_path: pathlib.Path) -> None:
    environ = hook_environment.offered({"PYTHONPATH": "/mine:/yours", "A": "b"}, tmp_path)
    assert environ["PYTHONPATH"] == f"/mine:/yours:{tmp_path}/python"
    assert environ["A"] == "b"


def test_the_variable_names_the_library_for_bash(tmp_path: pathlib.Path) -> None:
    library = pathlib.Path(hook_environment.offered({}, tmp_path)["ADDON_OPERATOR_SHELL_LIBRARY"])
    assert library.is_absolute()
    assert library.is_file()


def test_the_link_may_be_there_already(tmp_path: pathlib.Path) -> None:
    assert hook_environment.offered({}, tmp_path) == hook_environment.offered({}, tmp_path)


def test_a_directory_that_takes_no_link_is_an_error_that_says_what_to_do(tmp_path: pathlib.Path) -> None:
    (tmp_path / "python").write_text("")
    with pytest.raises(errors.ConfigurationError, match=r"python: .*; name another .*OR_TMP_DIR"):
        hook_environment.offered({}, tmp_path)
