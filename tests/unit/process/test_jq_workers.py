"""jq in worker processes."""

import asyncio
import json
import os
import pathlib
import signal
import time
from collections.abc import AsyncIterator

import pytest

from addon_operator.hooks import jq_programs
from addon_operator.process import jq_workers

PATIENT = 30.0
SHORT = 0.5


@pytest.fixture
async def workers() -> AsyncIterator[jq_workers.JqWorkers]:
    async with jq_workers.JqWorkers(workers=1) as pool:
        yield pool


def children() -> list[int]:
    tasks = pathlib.Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def results(answers: list[bytes | jq_programs.JqError]) -> list[object]:
    return [str(item) if isinstance(item, jq_programs.JqError) else json.loads(item) for item in answers]


async def test_results_come_in_the_order_of_the_documents_over_many_batches(
    workers: jq_workers.JqWorkers,
) -> None:
    documents = [b'{"n": %d}' % number for number in range(130)]
    assert results(await workers.run(".n", documents, PATIENT)) == [[number] for number in range(130)]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (".a", [1]),
        ("empty", []),
        (".a, .b", [1, "x"]),
        (".missing", [None]),
        (".big", [12345678901234567890]),
        ("$ENV", [{}]),
        (".a # with a comment", [1]),
    ],
    ids=["one", "none", "several", "null", "a-big-integer", "no-environment", "a-comment"],
)
async def test_a_document_gives_all_results_of_the_program(
    workers: jq_workers.JqWorkers, program: str, expected: list[object]
) -> None:
    document = b'{"a": 1, "b": "x", "big": 12345678901234567890}'
    assert results(await workers.run(program, [document], PATIENT)) == [expected]


async def test_a_program_that_fails_on_one_document_says_why_and_serves_the_others(
    workers: jq_workers.JqWorkers,
) -> None:
    answers = await workers.run(".a.b", [b'{"a": {"b": 1}}', b'{"a": 2}', b"{}"], PATIENT)
    assert results(answers) == [[1], 'Cannot index number with string ("b")', [None]]


async def test_no_process_is_started_before_there_is_work() -> None:
    before = children()
    async with jq_workers.JqWorkers() as pool:
        assert children() == before
        await pool.run(".", [b"{}"], PATIENT)
        assert len(children()) == len(before) + 1
    assert children() == before


async def test_a_program_that_never_ends_is_stopped_and_costs_only_its_own_documents(
    workers: jq_workers.JqWorkers,
) -> None:
    program = "if .stuck then repeat(1) | empty else .n end"
    documents = [b'{"n": 1}', b'{"stuck": true}', b'{"n": 3}']
    first, second, third = results(await workers.run(program, documents, SHORT))
    assert (first, third) == ([1], [3])
    assert second == (
        "it was stopped because it did not end within 0.5 s; look for endless recursion or repeat"
    )
    assert results(await workers.run(".n", [b'{"n": 4}'], PATIENT)) == [[4]]


async def test_a_program_that_is_stuck_on_everything_is_given_up_after_a_few_documents(
    workers: jq_workers.JqWorkers,
) -> None:
    began = time.monotonic()
    answers = await workers.run("repeat(1) | empty", [b"{}"] * 40, 0.05)
    assert all(isinstance(answer, jq_programs.JqError) for answer in answers)
    assert time.monotonic() - began < 40 * 0.05


async def test_the_event_loop_goes_on_while_a_program_is_stuck(workers: jq_workers.JqWorkers) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    await workers.run("repeat(1) | empty", [b"{}"], SHORT)
    turning.cancel()
    assert turns > 100


async def test_the_work_of_a_killed_worker_is_done_by_another(workers: jq_workers.JqWorkers) -> None:
    before = set(children())
    await workers.run(".", [b"{}"], PATIENT)
    for pid in set(children()) - before:
        os.kill(pid, signal.SIGKILL)
    assert results(await workers.run(".n", [b'{"n": 1}', b'{"n": 2}'], PATIENT)) == [[1], [2]]


async def test_a_program_that_takes_too_much_memory_fails_on_that_document_alone() -> None:
    program = 'def grow: . + . | grow; if .big then "x" | grow else .n end'
    async with jq_workers.JqWorkers(workers=1, memory_bytes=100 << 20) as pool:
        answers = await pool.run(program, [b'{"big": true}', b'{"n": 2}'], PATIENT)
    assert results(answers) == [
        "the process that ran it was killed twice; does it need too much memory?",
        [2],
    ]


async def test_a_cancelled_run_leaves_no_process_behind() -> None:
    before = children()
    async with jq_workers.JqWorkers() as pool:
        run = asyncio.create_task(pool.run("repeat(1) | empty", [b"{}"], PATIENT))
        while children() == before:  # noqa: ASYNC110 - nothing tells of a started process
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert children() == before
