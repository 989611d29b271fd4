"""The queue that the processes of ``make unit`` share."""

import itertools
import pathlib
import types

import pytest

from tests.unit.scripts import scripts_loaded

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def queue() -> types.ModuleType:
    return scripts_loaded.load("unit_queue")


def test_every_file_is_taken_once(queue: types.ModuleType) -> None:
    batches = queue.batches_of(ROOT / "tests" / "unit")
    assert sorted(itertools.chain(*batches)) == sorted((ROOT / "tests" / "unit").rglob("test_*.py"))


def test_files_with_fixtures_in_common_are_taken_together(
    queue: types.ModuleType, tmp_path: pathlib.Path
) -> None:
    for name in ("one/test_a.py", "one/test_b.py", "two/test_c.py", "two/test_d.py", "two/conftest.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#" * 40_000)
    taken = [[file.name for file in batch] for batch in queue.batches_of(tmp_path)]
    assert sorted(taken) == [["test_a.py"], ["test_b.py"], ["test_c.py", "test_d.py"]]


def test_each_place_is_taken_by_one_reader_only(queue: types.ModuleType) -> None:
    with queue.filled(3) as descriptor:
        takers = [queue.Taker(descriptor, [[], [], []]) for _ in range(2)]
        session = types.SimpleNamespace(perform_collect=lambda _: None, items=["item"], testscollected=0)
        first, second = (taker._items(session) for taker in takers)
        assert [next(first, None), next(second, None), next(first, None)] == ["item"] * 3
        assert [next(first, None), next(second, None)] == [None, None]
