"""Tests of several modules in one run: what breaks in one is told in a sentence, and stays with that one."""

import contextlib
import dataclasses
import io
import pathlib
import warnings

import pytest

from addon_operator.testing import counting, suites
from tests.support import rows

pytestmark = pytest.mark.usefixtures("nothing_to_collect")
FILES = {
    "010-good": {"tests/good.yaml": "- {name: runs, expect: {enabled: true}}\n"},
    "020-syntax": {"tests/test_a.py": "def test_a(module):\n    assert module.values(\n"},
    "030-import": {
        "tests/test_b.py": "import helpers_of_nobody\n",
        "tests/conftest.py": "import pathlib\n",
    },
    "040-conftest": {
        "tests/conftest.py": "\nfrom pathlib import Pathh\n",
        "tests/test_c.py": "def test_c():\n    pass\n",
    },
    "050-values": {"tests/test_d.py": "def test_d(module):\n    module.values(value={'size': 1})\n"},
    "060-broken": {
        "tests/test_e.py": "def test_e(module):\n    module.render()\n",
        "module.yaml": "description: [\n",
    },
    "070-hook": {"tests/test_f.py": "def test_f(module):\n    module.hook('x')\n"},
    "080-none": {},
    "090-old": {
        "module.yaml": "requires: {kubernetes: '>=1.30'}\n",
        "values.yaml": "oldEnabled: true\n",
        "tests/test_g.py": "def test_g(modules, module):\n"
        "    assert module.enabled()\n"
        "    modules.kubernetes = 'v1.20.0'\n"
        "    assert not module.enabled()\n",
    },
    "094-operator": {
        "tests/test_i.py": "import pytest\n\n@pytest.fixture\ndef operator():\n    return 'mine'\n\n"
        "def test_i(operator):\n    assert operator == 'yours'\n"
    },
    "095-beside": {"tests/test_h.py": "import beside\n", "tests/beside.py": "\n"},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """A run of the tests of all these modules."""

    printed: str
    counts: list[counting.Counts]
    has_passed: bool
    warned: list[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, nothing_to_collect: None) -> Ran:
    modules = tmp_path_factory.mktemp("suites") / "modules"
    for module, files in FILES.items():
        for name, text in ({"module.yaml": "", "values.yaml": ""} | files).items():
            path = modules / module / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    (modules / "values.yaml").write_text("goodEnabled: true\n")
    printed = io.StringIO()
    with (
        contextlib.chdir(modules),
        contextlib.redirect_stdout(printed),
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(record=True) as warned,
    ):
        patch.setattr("sys.dont_write_bytecode", True)
        outcome = suites.run(suites.chosen(["."]), ["--capture=no"])
    told = [str(each.message) for each in warned]
    return Ran(printed.getvalue(), list(outcome.counts), outcome.has_passed, told)


def test_what_is_broken_in_one_module_takes_no_other_with_it(ran: Ran) -> None:
    found = {each.module.name: (each.passed, each.failed) for each in ran.counts}

    assert found == {
        "010-good": (1, 0),
        "020-syntax": (0, 1),
        "030-import": (0, 1),
        "040-conftest": (0, 1),
        "050-values": (0, 1),
        "060-broken": (0, 1),
        "070-hook": (0, 1),
        "080-none": (0, 0),
        "090-old": (1, 0),
        "094-operator": (0, 1),
        "095-beside": (0, 1),
    }
    assert not ran.has_passed


@pytest.mark.parametrize(
    "said",
    [
        (
            "020-syntax/tests/test_a.py, line 2: '(' was never closed; correct it\n\n"
            "    assert module.values(\n"
            "                        ^\n"
        ),
        "030-import/tests/test_b.py, line 1: No module named 'helpers_of_nobody'; correct the name",
        "095-beside/tests/test_h.py, line 1: No module named 'beside'; files beside a test are not imported",
        "040-conftest/tests/conftest.py, line 2: cannot import name 'Pathh' from 'pathlib'",
        (
            ">       module.values(value={'size': 1})\n"
            "E       values of the test: key 'value' is unknown and ignored; did you mean 'values'?"
        ),
    ],
)
def test_a_failure_says_file_line_and_what_is_wrong(ran: Ran, said: str) -> None:
    assert said in ran.printed


def test_a_fixture_operator_of_the_authors_own_is_left_alone(ran: Ran) -> None:
    assert "AssertionError: assert 'mine' == 'yours'" in ran.printed
    assert "INTERNALERROR" not in ran.printed


def test_nobody_reads_code_of_pytest_or_of_the_operator(ran: Ran) -> None:
    assert "site-packages" not in ran.printed
    assert "testing/modules" not in ran.printed


def test_a_summary_has_the_sentence_and_not_the_name_of_a_class(ran: Ran) -> None:
    (line,) = [line for line in ran.printed.splitlines() if line.startswith("FAILED 050-values")]

    assert "::test_d - values of " in line


def test_no_plugin_warns_of_settings_that_no_author_has_a_part_in(ran: Ran) -> None:
    assert [each for each in ran.warned if "asyncio_default" in each] == []


@rows.each("mode", ["prepend", "append", "importlib"])
def test_files_of_several_modules_may_have_one_name_for_pytest_itself(
    tmp_path: pathlib.Path, mode: str
) -> None:
    for module in ("010-one", "web", "global-hooks"):
        (tmp_path / module / "tests").mkdir(parents=True)
        (tmp_path / module / "module.yaml").touch()
        (tmp_path / module / "tests" / "test_web.py").write_text("def test_web():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    arguments = ["-q", "-p", "no:cacheprovider", f"--import-mode={mode}", str(tmp_path)]
    printed = io.StringIO()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(printed):
        code = pytest.main(arguments)

    assert (code, "3 passed" in printed.getvalue()) == (0, True), printed.getvalue()
