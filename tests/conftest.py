"""Settings of all tests."""

import gc
import os
import pathlib
import shutil
import signal
import sys
import threading

import hypothesis
import pytest
from _pytest import runner
from _pytest.assertion import rewrite
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

# Each look at what is imported from here on, and at thousands of tests, takes time. Each worker of xdist pays
# for its own collector.
gc.set_threshold(100_000, 5, 100)

_LONG = 0.1
"""Seconds."""
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
    """Look for no garbage among what was imported."""
    gc.freeze()
    _heed_interrupts()


def _heed_interrupts() -> None:
    """Let the programs that tests start end at SIGINT: a shell starts what runs in its background without."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of xdist compile a share of the tests, and read what the others compiled.

    In a fresh clone each would compile all of them, which takes twice as long as all the rest of collecting.
    """
    config = session.config
    if hasattr(config, "workerinput") and not sys.dont_write_bytecode:
        own = int(config.workerinput["workerid"].removeprefix("gw"))
        files = [path for each in config.args for path in sorted(pathlib.Path(each).rglob("test_*.py"))]
        for path in files[own :: config.workerinput["workercount"]]:
            _compile(path, config)


def _compile(path: pathlib.Path, config: pytest.Config) -> None:
    cache = rewrite.get_cache_dir(path)
    compiled = cache / (path.stem + rewrite.PYC_TAIL)
    if rewrite.try_makedirs(cache) and rewrite._read_pyc(path, compiled) is None:
        digest, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, compiled)


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
