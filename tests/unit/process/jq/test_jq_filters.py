"""jqFilters that only pick fields need no worker."""

import json
from collections.abc import Sequence

from typing_extensions import override

from addon_operator.hook_contract import jq_programs
from addon_operator.process.jq import jq_filters, jq_workers


class Workers(jq_workers.JqWorkers):
    def __init__(self) -> None:
        self.asked: list[tuple[str, list[bytes], float]] = []

    @override
    async def run(
        self, program: str, documents: Sequence[bytes], timeout: float
    ) -> list[bytes | jq_programs.JqError]:
        self.asked.append((program, list(documents), timeout))
        return [b'["by jq", %b]' % document for document in documents]


def filters_of(workers: Workers) -> jq_filters.JqFilters:
    return jq_filters.JqFilters(workers)


async def test_fields_are_picked_without_a_worker() -> None:
    workers = Workers()
    answers = await filters_of(workers).run(".a", [b'{"a": {"b": 1}}', b"{}"], 5.0)
    assert answers == [b'[{"b":1}]', b"[null]"]
    assert workers.asked == []


async def test_other_programs_are_run_by_the_workers() -> None:
    workers = Workers()
    assert await filters_of(workers).run(".a[]", [b"1", b"2"], 5.0) == [
        b'["by jq", 1]',
        b'["by jq", 2]',
    ]
    assert workers.asked == [(".a[]", [b"1", b"2"], 5.0)]


async def test_documents_from_which_nothing_can_be_picked_go_to_the_workers_and_keep_their_place() -> None:
    workers = Workers()
    documents = [b'{"a": 1}', b'{"a": 1.5}', b'{"a": 2}', b'"text"']
    answers = await filters_of(workers).run(".a", documents, 5.0)
    assert answers == [b"[1]", b'["by jq", {"a": 1.5}]', b"[2]", b'["by jq", "text"]']
    assert workers.asked == [(".a", [b'{"a": 1.5}', b'"text"'], 5.0)]


async def test_many_large_documents_keep_their_order() -> None:
    documents = [json.dumps({"n": number, "rest": "x" * 20_000}).encode() for number in range(100)]
    answers = await filters_of(Workers()).run("{n}", documents, 5.0)
    assert answers == [b'[{"n":%d}]' % number for number in range(100)]


async def test_only_so_many_programs_are_remembered() -> None:
    filters = filters_of(Workers())
    for number in range(1500):
        assert await filters.run(f".a{number}", [b"{}"], 5.0) == [b"[null]"]
    assert await filters.run(".a0", [b'{"a0": 1}'], 5.0) == [b"[1]"]
