"""How a hook's process failed is one sentence with place and remedy."""

import pathlib

import pytest

from addon_operator.engine.hooks import hook_failures
from addon_operator.process.children import children
from tests.support import rows

TRACEBACK = """Traceback (most recent call last):
  File "{0}/hook.py", line 7, in <module>
    main()
  File "{0}/lib/values.py", line 3, in main
    yaml.load(1)
  File "/usr/lib/python3/yaml/__init__.py", line 79, in load
    loader = Loader(stream)
             ~~~~~~^^^^^^^^
"""
OF_A_SHELL = """find: '/library': No such file or directory
{0}/hook: line 4: hook::run: command not found
Traceback (most recent call last):
  File "{0}/hook", line 4, in main
    hook::run $@
Exiting with status 127
"""
SYNTAX = """  File "{0}/hook.py", line 3
    def x(:
          ^
SyntaxError: invalid syntax
"""
MISSING = "ModuleNotFoundError: No module named 'requests'"
INSTALL = "; install it into the image, or into the virtual environment hooks/venv of the module"


def failed(directory: pathlib.Path, stderr: str, name: str = "hook.py", head: str = "#!/bin/sh\n") -> str:
    program = directory / name
    program.write_text(head)
    ended = children.ChildResult(
        1, 0.0, 0.0, 0.0, 1, False, None, False, stderr.replace("{0}", str(directory))
    )
    return hook_failures.describe(ended, program)


@rows.each(
    ("stderr", "said"),
    [
        ("", ""),
        ("one\ntwo\nthree\nfour\n", ": two | three | four"),
        ("reset\n" * 795 + "gone\n", ": reset | gone"),
        (SYNTAX, ": hook.py, line 3: SyntaxError: invalid syntax"),
        (TRACEBACK + "TypeError: no\nstream\n", ": lib/values.py, line 3: TypeError: no | stream"),
        ("  File \"/etc/x.py\", line 2\nKeyError: 'a'", ": /etc/x.py, line 2: KeyError: 'a'"),
        (
            OF_A_SHELL,
            ": hook, line 4: {0}/hook: line 4: hook::run: command not found | Exiting with status 127",
        ),
        (
            TRACEBACK + MISSING,
            f": lib/values.py, line 3: {MISSING}{INSTALL}",
        ),
    ],
    ids=[
        "nothing",
        "last lines",
        "equal lines once",
        "syntax",
        "own frame",
        "other frame",
        "shell",
        "package",
    ],
)
def test_the_end_of_standard_error_is_told_with_the_place_in_the_hook(
    tmp_path: pathlib.Path, stderr: str, said: str
) -> None:
    assert failed(tmp_path, stderr) == f"failed with exit code 1{said.replace('{0}', str(tmp_path))}"


def test_a_library_that_misses_a_package_is_perhaps_no_hook(tmp_path: pathlib.Path) -> None:
    said = failed(tmp_path, TRACEBACK + MISSING, "lib.py")
    assert said.endswith(f"; if it is a library and no hook, run 'chmod -x {tmp_path}/lib.py'")


@pytest.mark.parametrize("head", ["#!/usr/bin/env bash\r\n", "#!/bin/bash -e\r\n"])
def test_lines_that_end_as_on_windows_are_the_cause_of_all_else(tmp_path: pathlib.Path, head: str) -> None:
    assert failed(tmp_path, "env: 'bash\\r': No such file\n", head=head) == (
        "failed with exit code 1: its lines end as on Windows (CR LF), so its interpreter is not found; "
        "save it with LF line ends"
    )
