"""A watch that has ended for good is noticed."""

import itertools
import threading
from collections.abc import Iterable, Sized

import kopf
import pytest

from addon_operator.engine import kopf_thread


async def no_login() -> kopf.ConnectionInfo:
    raise AssertionError("nobody logs in here")


def fails(_: kopf.OperatorRegistry) -> None:
    raise RuntimeError("it cannot be set up")


# The thread is meant to die of an error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_is_gone_has_ended() -> None:
    gone = threading.Event()

    def end_thread(_reason: str, _delay: float) -> None:
        gone.set()
        raise SystemExit

    watch = kopf_thread.KopfThread("test", kopf_thread.Scope(fails), no_login, end_thread)
    ended_before = watch.ended
    assert not ended_before, "it has not begun"
    watch.start()
    assert gone.wait(10)
    assert watch._thread is not None
    watch._thread.join(10)
    assert watch.ended
    assert not watch.alive


def test_a_request_is_tried_without_end_and_with_bounded_pauses() -> None:
    pauses = kopf_thread._settings(kopf_thread.Scope(fails)).networking.error_backoffs
    assert isinstance(pauses, Iterable)
    assert not isinstance(pauses, Sized), "Kopf would count the tries"
    for _ in range(2):
        tried = list(itertools.islice(pauses, 100))
        assert tried == sorted(tried)
        assert (len(tried), tried[0], tried[-1]) == (100, 1.0, 30.0)


async def test_a_watch_that_was_stopped_has_not_ended_by_itself() -> None:
    told = threading.Event()
    watch = kopf_thread.KopfThread("test", kopf_thread.Scope(fails), no_login, lambda *_: told.set())
    watch.start()
    assert told.wait(10)
    assert not watch.ended
    await watch.stop()
    assert not watch.alive
    assert not watch.ended
