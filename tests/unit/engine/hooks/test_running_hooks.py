"""Programs of hooks that run are known, and one of them can be ended."""

import asyncio
import os

import pytest

from addon_operator.engine.hooks import running_hooks
from addon_operator.process.children import children
from tests.support import programs

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture
def running() -> running_hooks.RunningHooks:
    return running_hooks.RunningHooks(programs.programs())


def started(running: running_hooks.RunningHooks, *words: str) -> "asyncio.Task[object]":
    return asyncio.create_task(running.run(words, env=ENVIRONMENT, kill_grace=1.0))


async def test_what_runs_is_listed_until_it_ends(running: running_hooks.RunningHooks) -> None:
    work = started(running, "sh", "-c", "exit 3")
    await asyncio.sleep(0)
    assert [row["command"] for row in running.rows] == [["sh", "-c", "exit 3"]]
    result = await work
    assert getattr(result, "exit_code", None) == 3
    assert running.rows == []


async def test_what_answers_without_leading_is_known_and_ended_like_the_others(
    running: running_hooks.RunningHooks,
) -> None:
    hangs, fenced = started(running.unfenced, "sleep", "1000"), started(running, "sleep", "1001")
    await asyncio.sleep(0)
    assert [row["command"][1] for row in running.rows] == ["1000", "1001"]
    for row in running.rows:
        assert running.end(row["id"])
    for work in (hangs, fenced):
        with pytest.raises(children.ChildEndedError):
            await work


async def test_one_that_hangs_is_ended_alone_and_says_so(running: running_hooks.RunningHooks) -> None:
    hangs, other = started(running, "sleep", "1000"), started(running, "sleep", "1001")
    await asyncio.sleep(0)
    number = running.rows[0]["id"]
    assert running.end(number)
    with pytest.raises(children.ChildEndedError, match=r"^sleep 1000 was ended after 0 s$"):
        await hangs
    assert not running.end(number), "it is gone"
    assert [row["command"] for row in running.rows] == [["sleep", "1001"]]
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other
    assert running.rows == []
