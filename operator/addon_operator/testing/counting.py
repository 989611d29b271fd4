"""Counts the tests of several modules as pytest runs them, and keeps what breaks in one from the others."""

import pathlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import pytest

# It has no public name; what it is caught for is what pytest itself does for --help.
from _pytest.config import ConftestImportFailure

_OF_ASYNCIO: Final = 'The configuration option "asyncio_default_fixture_loop_scope" is unset'
"""Begins a warning of pytest-asyncio for want of a setting that tests of modules have no use for."""


class Counts(msgspec.Struct):
    """The tests of one module by what became of them."""

    module: pathlib.Path
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def has_tests(self) -> bool:
        """Whether it has any."""
        return bool(self.passed or self.failed or self.skipped)


class Counter:
    """A plugin of pytest that counts."""

    def __init__(self, counts: Sequence[Counts]) -> None:
        """Add to ``counts``, one for each module."""
        self.counts = counts
        self.is_interrupted = False
        """Whether somebody pressed Ctrl-C: what has not run is no test that is missing."""
        self._root = pathlib.Path()

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Note where paths begin, and keep plugins from warning of what no author has a part in."""
        self._root = config.rootpath
        # pytest drops its own filters while it calls this, and these as soon as it has.
        warnings.filterwarnings("ignore", _OF_ASYNCIO)

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self) -> Iterator[None]:
        """Let no ``conftest.py`` that cannot be read end the run: it will fail with its own tests."""
        try:
            yield
        except ConftestImportFailure as error:
            # What is half imported would pass for the whole when its tests ask for it.
            for name, imported in list(sys.modules.items()):
                if getattr(imported, "__file__", None) == str(error.path):
                    del sys.modules[name]

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note Ctrl-C; pytest calls an end for other reasons, such as ``-x``, an interrupt, too."""
        self.is_interrupted = excinfo.type is KeyboardInterrupt

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what became of a test; an error in a fixture counts as a failure."""
        if report.when == "call" or report.outcome != "passed":
            self._count(report.fspath, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be read as a failure."""
        if report.failed:
            self._count(str(report.fspath), "failed")

    def _count(self, path: str, outcome: str) -> None:
        absolute = (self._root / path).absolute()
        for each in self.counts:
            if absolute.is_relative_to(each.module):
                setattr(each, outcome, getattr(each, outcome) + 1)
