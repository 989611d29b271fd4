"""Settings of all tests."""

import gc
import os

import hypothesis
import pytest

# Enough to find a slip at once; HYPOTHESIS_PROFILE=thorough looks longer, after a change of what is tested.
hypothesis.settings.register_profile("quick", max_examples=15, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure() -> None:
    """Collect no garbage while the tests are collected: all of that lives until the end."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let the collector look at what tests make, and never again at the thousands of tests themselves.

    That takes a tenth off the unit tests. Each worker of xdist pays for its own collector.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Let pytest, which collects garbage five times at its end, find nothing left to look at."""
    gc.collect()
    gc.freeze()
