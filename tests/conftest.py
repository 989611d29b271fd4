"""Settings of all tests."""

import functools
import gc
import os
import pathlib
import shutil
import signal
import sys
import threading
from typing import Any

import hypothesis
import pytest
from _pytest import runner
from _pytest.assertion import rewrite
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

_LONG = 0.1
"""Seconds."""
_COLLECTED: dict[str, int] = {}
"""Tests of each worker that collects its own."""
_SESSIONS: list[pytest.Session] = []
pytest_plugins = ["tests.support.fixtures", "tests.support.lasting_workers"]

# Enough to find a slip at once; HYPOTHESIS_PROFILE=thorough looks longer, after a change of what is tested.
hypothesis.settings.register_profile("quick", max_examples=15, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# It would read all modules for constants to try, for seconds, and try others whenever one of them changes.
setattr(providers, "_get_local_constants", constants_ast.Constants)  # noqa: B010 - not in the stub

# pytest would compile the package of a plugin anew, as if assertions stood in it that it has to show.
for _finder in sys.meta_path:
    if isinstance(_finder, rewrite.AssertionRewritingHook):
        _finder._must_rewrite.discard("addon_operator")

# Where ``python3`` is a script that chooses one, as pyenv's, it takes longer than a hook in Python.
_PYTHON = pathlib.Path(sys.executable).resolve()
if pathlib.Path(shutil.which("python3") or "").resolve() != _PYTHON and (_PYTHON.parent / "python3").exists():
    os.environ["PATH"] = f"{_PYTHON.parent}{os.pathsep}{os.environ['PATH']}"


def pytest_configure() -> None:
    """Collect garbage seldom: thousands of tests live until the end, and each look at them takes its time.

    That takes a twentieth off the unit tests. Each worker of xdist pays for its own collector.
    """
    gc.set_threshold(100_000, 5, 100)
    gc.freeze()
    _heed_interrupts()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - xdist has no types
    """With ``--dist each``, let each worker collect files of its own: to collect all takes long in each."""
    node.workerinput["deals"] = node.config.option.dist == "each"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:  # noqa: ANN401 - as above
    """Show the progress of all tests, and not of those of the last worker that has collected its own."""
    if node.workerinput["deals"]:
        _COLLECTED[node.gateway.id] = len(ids)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport() -> None:
    """See above: xdist sets the number once a worker has collected."""
    if _COLLECTED and _SESSIONS:
        _SESSIONS[0].testscollected = sum(_COLLECTED.values())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep the session for that."""
    _SESSIONS.append(session)


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Pass over the files of other workers."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker.get("deals") or not collection_path.name.startswith("test_"):
        return None
    return True if collection_path not in _dealt(int(worker["workerid"][2:]), worker["workercount"]) else None


@functools.cache
def _dealt(number: int, workers: int) -> frozenset[pathlib.Path]:
    """Return the files of one worker: those of about one size go to all in turn."""
    files = pathlib.Path(__file__).parent.rglob("test_*.py")
    by_size = sorted(files, key=lambda path: (path.stat().st_size, path))
    return frozenset(by_size[number::workers])


def _heed_interrupts() -> None:
    """Let the programs that tests start end at SIGINT: a shell starts what runs in its background without."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Look for no garbage among the tests themselves: each run of pytest within a test looks for it."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a worker of xdist tell of a test once, and of what is around it only if it failed or took long.

    To write, send and read five messages for each takes longer than most tests.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runner.runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > _LONG:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_sessionfinish() -> None:
    """Let pytest, which collects garbage five times at its end, find nothing left to look at."""
    gc.collect()
    gc.freeze()
