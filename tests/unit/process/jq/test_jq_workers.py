"""jq in worker processes."""

import asyncio
import json
import os
import pathlib
import resource
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from addon_operator.hook_contract import jq_programs
from addon_operator.process.jq import jq_workers
from tests.support import clocks

PATIENT = 30.0
TOLERANT = (0.2, 2.0, 20.0)
"""Long enough for a program that ends to end; the others on a machine that is ever busier."""
SHORT = 0.02
WIDE = "\U0001f600"
"""Four bytes, and one character for jq, which counts its time in those."""


@pytest.fixture
async def workers() -> AsyncIterator[jq_workers.JqWorkers]:
    async with jq_workers.JqWorkers(workers=1) as pool:
        yield pool


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[jq_workers.JqWorkers]:
    """One process for all tests that leave it as it is."""
    async with jq_workers.JqWorkers(workers=1) as pool:
        yield pool


def children() -> list[int]:
    tasks = pathlib.Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def processor_seconds_of_ended_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def results(answers: list[bytes | jq_programs.JqError]) -> list[object]:
    return [str(item) if isinstance(item, jq_programs.JqError) else json.loads(item) for item in answers]


@pytest.mark.asyncio(loop_scope="module")
async def test_results_come_in_the_order_of_the_documents_over_many_batches(
    shared: jq_workers.JqWorkers,
) -> None:
    documents = [b'{"n": %d}' % number for number in range(130)]
    assert results(await shared.run(".n", documents, PATIENT)) == [[number] for number in range(130)]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_document_gives_all_results_of_the_program(shared: jq_workers.JqWorkers) -> None:
    document = b'{"a": 1, "b": "x", "big": 12345678901234567890}'
    expected: dict[str, list[object]] = {
        ".a": [1],
        "empty": [],
        ".a, .b": [1, "x"],
        ".missing": [None],
        ".big": [12345678901234567890],
        "$ENV": [{}],
        ".a # with a comment": [1],
    }
    given = [results(await shared.run(program, [document], PATIENT)) for program in expected]
    assert dict(zip(expected, given, strict=True)) == {program: [all_] for program, all_ in expected.items()}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_program_that_fails_on_one_document_says_why_and_serves_the_others(
    shared: jq_workers.JqWorkers,
) -> None:
    answers = await shared.run(".a.b", [b'{"a": {"b": 1}}', b'{"a": 2}', b"{}"], PATIENT)
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
    stuck = b'{"stuck": true}'
    documents = [b'{"n": 1}', stuck, b'{"n": 3}']
    answers, seconds = list[object](), 0.0
    for seconds in TOLERANT:
        answers = results(await workers.run(program, documents, seconds))
        if answers[0] == [1] and answers[2] == [3]:
            break
    stopped = (
        f"it was stopped because it did not end within {seconds:g} s; look for endless recursion or repeat"
    )
    assert answers == [[1], stopped, [3]]
    assert results(await workers.run(".n", [b'{"n": 4}'], PATIENT)) == [[4]]


@pytest.mark.slow
async def test_a_program_that_is_stuck_on_everything_is_given_up_after_a_few_documents(
    workers: jq_workers.JqWorkers,
) -> None:
    began = processor_seconds_of_ended_children()
    answers = await workers.run("repeat(1) | empty", [b"{}"] * 40, SHORT)
    assert all(isinstance(answer, jq_programs.JqError) for answer in answers)
    assert processor_seconds_of_ended_children() - began < 40 * SHORT


@pytest.mark.slow
async def test_a_program_that_did_not_end_gets_less_time_and_more_when_it_ends(
    workers: jq_workers.JqWorkers,
) -> None:
    program, stuck = "if . then repeat(1) | empty else . end", [b"true"]
    limits = [str((await workers.run(program, stuck, 1.0))[0]).split()[9] for _ in range(3)]
    assert limits == ["1", "0.5", "0.25"]
    assert results(await workers.run(program, [b"false"] * 2, 1.0)) == [[False]] * 2
    assert " within 1 s" in str((await workers.run(program, stuck, 1.0))[0])


@pytest.mark.slow
async def test_however_many_programs_never_end_one_worker_is_left_for_those_that_do() -> None:
    endless = ["repeat(1) | empty", "repeat(2) | empty"]
    async with jq_workers.JqWorkers(workers=2) as pool:
        await asyncio.gather(*(pool.run(program, [b"{}"], SHORT) for program in endless))
        stuck = [asyncio.create_task(pool.run(program, [b"{}"], 2 * PATIENT)) for program in endless]
        await clocks.settle()
        async with asyncio.timeout(PATIENT):
            assert results(await pool.run(".n", [b'{"n": 1}'], PATIENT)) == [[1]]
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_the_event_loop_goes_on_while_a_program_is_stuck(workers: jq_workers.JqWorkers) -> None:
    await workers.run(".", [b"{}"], PATIENT)
    stuck = asyncio.create_task(workers.run("repeat(1) | empty", [b"{}"], PATIENT))
    await clocks.settle()
    assert not stuck.done()
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)


async def test_the_work_of_a_killed_worker_is_done_by_another(workers: jq_workers.JqWorkers) -> None:
    before = set(children())
    await workers.run(".", [b"{}"], PATIENT)
    for pid in set(children()) - before:
        os.kill(pid, signal.SIGKILL)
    assert results(await workers.run(".n", [b'{"n": 1}', b'{"n": 2}'], PATIENT)) == [[1], [2]]


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_result_that_is_too_large_is_not_handed_on(workers: jq_workers.JqWorkers) -> None:
    documents = [f'{{"n": "{WIDE * 2_250_000}"}}'.encode(), b'{"n": 2}']
    answers = await workers.run(".n", documents, PATIENT)
    assert results(answers) == ["it gives more than 8 MiB", [2]]


async def test_results_that_are_too_large_together_are_fetched_one_by_one(
    workers: jq_workers.JqWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jq_workers, "_ANSWER_BYTES", 1000)
    answers = await workers.run(".", [f'"{WIDE * 200}"'.encode()] * 3, PATIENT)
    assert [len(answer) for answer in answers if isinstance(answer, bytes)] == [804] * 3
