"""The plugin beside others: it takes nothing from a run that has no tests of modules."""

import contextlib
import io
import pathlib
import sys
from typing import Final

import pytest

pytestmark = pytest.mark.usefixtures("nothing_to_collect")
MODULE_TEST = (
    "def test_it(snapshot, module, modules, global_hooks):\n    snapshot({'name': module.path.name})\n"
)
OF_SYRUPY = "def test_it(snapshot):\n    assert {'name': 'web'} == snapshot\n"
OWN_OPTION = (
    "def pytest_addoption(parser):\n"
    "    parser.addoption('--snapshot-update', action='store_true', dest='own')\n"
)


def run(directory: pathlib.Path, *arguments: str) -> str:
    """What pytest prints that somebody starts there."""
    printed = io.StringIO()
    with (
        contextlib.chdir(directory),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        pytest.main(["-q", "-p", "no:cacheprovider", "--import-mode=importlib", *arguments])
    # The next run has other files of these names.
    for name, imported in list(sys.modules.items()):
        if str(getattr(imported, "__file__", None)).startswith(str(directory)):
            del sys.modules[name]
    return printed.getvalue()


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A project with tests of its own, and a module."""
    # syrupy leaves its work to the run above it if it sees that it is in a worker.
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    module = tmp_path / "modules" / "010-web"
    (module / "tests").mkdir(parents=True)
    (module / "module.yaml").touch()
    (module / "tests" / "test_web.py").write_text(MODULE_TEST)
    (tmp_path / "tests").mkdir()
    return tmp_path


def test_snapshots_of_modules_and_of_syrupy_are_written_and_compared_in_one_run(
    project: pathlib.Path,
) -> None:
    (project / "tests" / "test_own.py").write_text(OF_SYRUPY)
    assert "2 failed" in run(project)
    assert "2 passed" in run(project, "--snapshot-update")
    assert "2 passed" in run(project)
    written = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert written >= {
        "modules/010-web/tests/snapshots/test_web/test_it.yaml",
        "tests/__snapshots__/test_own.ambr",
    }


def test_an_option_of_that_name_may_be_anybodys(project: pathlib.Path) -> None:
    (project / "conftest.py").write_text(OWN_OPTION)
    assert "1 passed" in run(project, "--snapshot-update", "-p", "no:syrupy")
    assert "1 passed" in run(project, "-p", "no:syrupy")


NAMES: Final = ("module", "modules", "global_hooks", "snapshot", "cluster", "operator")


def test_fixtures_are_there_for_tests_of_modules_or_where_they_are_named(project: pathlib.Path) -> None:
    tests = (f"def test_{name}({name}):\n    assert {name} == 'mine'\n" for name in NAMES)
    (project / "tests" / "test_own.py").write_text("".join(tests))
    arguments = ("-p", "no:syrupy", "tests")
    missing = run(project, *arguments)
    assert [name for name in NAMES if f"fixture '{name}' not found" in missing] == list(NAMES)
    own = "".join(f"@pytest.fixture\ndef {name}():\n    return 'mine'\n" for name in NAMES)
    (project / "conftest.py").write_text(f"import pytest\n{own}")
    assert "6 passed" in run(project, *arguments)
    (project / "conftest.py").write_text("pytest_plugins = ['addon_operator.testing.fixtures']\n")
    (project / "tests" / "test_own.py").write_text("def test_own(module):\n    pass\n")
    assert "is not in the directory 'tests' of a module" in run(project, *arguments)


def test_a_fixture_of_the_conftest_beside_a_test_wins(project: pathlib.Path) -> None:
    tests = project / "modules" / "010-web" / "tests"
    (tests / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef module():\n    return 'mine'\n")
    (tests / "test_web.py").write_text("def test_it(module):\n    assert module == 'mine'\n")
    assert "1 passed" in run(project)
