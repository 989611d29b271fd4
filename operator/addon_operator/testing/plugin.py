"""The pytest plugin: fixtures for tests of modules, in their directories alone, and tests in YAML.

pytest loads it in every run of an environment, so it imports what it needs when that is needed.
"""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pytest

from addon_operator.kernel import errors
from addon_operator.testing import fixtures, session

if TYPE_CHECKING:
    from addon_operator.testing.live.running_operator import OperatorMaker

_GROUP: Final = "addon-operator modules"
_TESTS: Final = "tests"
_GLOBAL: Final = "global-hooks"
_PARTS: Final = ("module.yaml", "hooks", "openapi", "enabled")
_SUFFIXES: Final = (".yaml", ".yml")
_PASSED: Final = pytest.StashKey[bool]()
_TESTS_OF_MODULES: Final = pytest.StashKey[list[pytest.Item]]()
_LEFT_OUT: Final = pytest.StashKey[set[pathlib.Path]]()
"""Files of which not all tests run."""
_OPTIONS: Final = {
    session.UPDATE: "Write snapshots anew.",
    session.KEEP: "Keep the namespace and files of an operator whose test failed, and the control plane if "
    "the run has one of its own, and say where.",
}


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Iterator[None]:
    """Add the options once everybody else has added theirs; who has one of them means the same by it."""
    try:
        yield
    finally:
        for option in parser.parse_known_and_unknown_args(list(_OPTIONS))[1]:
            group = parser.getgroup(_GROUP)
            group.addoption(option, action="store_true", default=False, help=_OPTIONS[option])


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the tests in YAML of modules and of global hooks."""
    if file_path.suffix not in _SUFFIXES or file_path.parent.name != _TESTS:
        return None
    from addon_operator.testing.cases import collecting
    from addon_operator.testing.modules import places

    owner = file_path.parent.parent
    if not places.is_module(owner) and not places.is_global_hooks(owner):
        return None
    return collecting.CaseFile.from_parent(parent, path=file_path)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what ran for tests."""
    session.close(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was kept, and where, and what became of snapshots."""
    for kept in config.stash.get(session.KEPT, []):
        terminalreporter.write_line(kept)
    if not (tests := config.stash.get(_TESTS_OF_MODULES, [])):
        return
    record = session.record_of(config)
    left_out = config.stash.get(_LEFT_OUT, set())
    for item in tests:
        # A test that did not come to its end may have had more to compare.
        has_passed = item.stash.get(_PASSED, False) and item.path not in left_out
        record.complete[item.path] = has_passed and record.complete.get(item.path, True)
    for line in record.lines():
        terminalreporter.write_line(line)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which tests of modules are about to run; who names single ones wants nothing said of others."""
    from addon_operator.testing import failures

    if not any("::" in argument for argument in session.config.args):
        # Others have thousands of tests in few files.
        files = {path for path in {item.path for item in session.items} if failures.is_test(path)}
        session.config.stash[_TESTS_OF_MODULES] = [item for item in session.items if item.path in files]


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that not all tests of these files run."""
    for item in items:
        item.config.stash.setdefault(_LEFT_OUT, set()).add(item.path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> "Iterator[None] | pytest.CollectReport":
    """Give tests of modules their fixtures, and say in one sentence why a file cannot be read.

    A ``conftest.py`` of the tests is read afterwards, so its fixtures win.
    """
    if isinstance(collector, pytest.Directory) and _is_tests(collector.path):
        fixtures.provide(collector)
    with _imported_apart(collector):
        report: pytest.CollectReport = yield  # type: ignore[misc, assignment]
    if report.failed:
        from addon_operator.testing import failures

        excinfo = report.call.excinfo
        report.longrepr = failures.of_collection(excinfo, collector.path) or report.longrepr
    return report


@contextlib.contextmanager
def _imported_apart(collector: pytest.Collector) -> Iterator[None]:
    """Import a file of a module's tests as ``module test`` does, whatever the mode of the run is.

    Else pytest takes ``tests/test_web.py`` of the second module for that of the first, and refuses it.
    """
    option = collector.config.option
    mode = option.importmode
    if isinstance(collector, pytest.Module) and _may_be_of_module(collector.path):
        from addon_operator.testing import failures

        if failures.is_test(collector.path):
            option.importmode = "importlib"
    try:
        yield
    finally:
        option.importmode = mode


def _is_tests(path: pathlib.Path) -> bool:
    if path.name != _TESTS or not _may_be_of_module(path / _TESTS):
        return False
    from addon_operator.testing.modules import places

    return places.is_module(path.parent) or places.is_global_hooks(path.parent)


def _may_be_of_module(path: pathlib.Path) -> bool:
    # A look that costs nothing, before what it takes to be sure is imported.
    owners = [above.parent for above in path.parents if above.name == _TESTS]
    return any(
        each.name[:1].isdigit() or each.name == _GLOBAL or any((each / part).exists() for part in _PARTS)
        for each in owners
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> "Iterator[None] | pytest.TestReport":
    """Say what users got wrong in one sentence, and let fixtures know whether their test failed."""
    error = None if call.excinfo is None else _error_of_user(item, call.excinfo)
    report: pytest.TestReport = yield  # type: ignore[misc, assignment]
    if error is not None:
        from addon_operator.testing import failures

        failures.say(report, item, error)
    if call.when == "call":
        item.stash[session.FAILED], item.stash[_PASSED] = report.failed, report.passed
        # What the operator itself failed with has it already.
        is_told = call.excinfo is not None and "--- modules" in str(call.excinfo.value)
        if report.failed and not is_told and (maker := _maker(item)) is not None:
            report.sections.append(("addon-operator", maker.report()))
    return report


def _maker(item: pytest.Item) -> "OperatorMaker | None":
    """Return what makes the operators of a test; a fixture of that name may be anybody's."""
    found = getattr(item, "funcargs", {}).get("operator")
    if found is None:
        return None
    from addon_operator.testing.live import running_operator

    return found if isinstance(found, running_operator.OperatorMaker) else None


def _error_of_user(
    item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]
) -> "errors.AddonOperatorError | None":
    """Return what a user got wrong in a test of a module, with the way to it cut short."""
    if not isinstance(excinfo.value, errors.AddonOperatorError):
        return None
    from addon_operator.testing import failures

    if not failures.is_test(item.path):
        return None
    failures.shorten(excinfo)
    return excinfo.value
