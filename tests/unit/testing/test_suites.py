"""Which tests ``module test`` runs, and what it says where it cannot."""

import pathlib
import subprocess
import sys

import pytest

from addon_operator.testing import suites

WITHOUT_PYTEST = """\
import sys
sys.modules["pytest"] = None  # As if it was not installed.
sys.argv[1:] = ["module", "test", sys.argv[1]]
from addon_operator.cli import main
main.main()
"""


@pytest.fixture
def repository(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    for directory in ("modules/010-web/tests", "global-hooks/hooks", "global-hooks/tests"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "modules/010-web/values.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("directories", "found"),
    [
        ([], ["global-hooks", "010-web"]),
        (["."], ["global-hooks", "010-web"]),
        (["modules"], ["010-web"]),
        (["modules/010-web"], ["010-web"]),
        (["global-hooks"], ["global-hooks"]),
        (["modules", "global-hooks/"], ["global-hooks", "010-web"]),
    ],
)
def test_tests_of_global_hooks_are_those_of_a_repository_or_named(
    repository: pathlib.Path, directories: list[str], found: list[str]
) -> None:
    assert [path.name for path in suites.chosen(directories, {})] == found
    assert all(path.is_relative_to(repository) for path in suites.chosen(directories, {}))


def test_global_hooks_without_tests_are_not_listed(repository: pathlib.Path) -> None:
    (repository / "global-hooks" / "tests").rmdir()
    assert [path.name for path in suites.chosen(["."], {})] == ["010-web"]


def test_without_pytest_one_sentence_says_what_to_install(repository: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTEST, str(repository)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: tests of modules need pytest; install it: pip install 'pytest>=9.1'\n"


@pytest.mark.slow
def test_ctrl_c_ends_the_run_and_says_nothing_of_tests_that_are_missing(repository: pathlib.Path) -> None:
    text = "def test_it():\n    raise KeyboardInterrupt\n"
    (repository / "modules/010-web/tests/test_web.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "addon_operator", "module", "test", "modules"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (130, "")
    assert "write some into tests/" not in done.stdout
