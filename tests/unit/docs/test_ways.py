"""The paths through the code that ``docs/architecture.md`` shows are the ones that an editor walks."""

import pathlib
import textwrap
from collections.abc import Iterator

import jedi
import pytest

from tests.support import rows
from tests.unit.docs import ways

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = ROOT / "operator" / "addon_operator"
SOURCES = ways.Sources(PACKAGE)
PATHS = ways.paths((ROOT / "docs" / "architecture.md").read_text("utf-8"))
MOST_FILES = 10
"""Nobody keeps a longer path in mind."""
FILES = {
    "sources/watch.py": """
        from ..work import queues

        class Watch:
            def __init__(self, queue: queues.Queue) -> None:
                self._queue = queue

            def changed(self) -> None:
                self._put()

            def _put(self) -> None:
                self._queue.add(1)
        """,
    "work/queues.py": '''
        class Task:
            def run(self) -> None: ...

        class Queue:
            def add(self, number: int) -> None:
                """Put it in; :meth:`.Worker.work` takes it out."""

            def drop(self) -> None: ...
        ''',
    "work/workers.py": """
        from ..work import queues

        class Worker:
            def work(self, task: queues.Task) -> None:
                task.run()
        """,
    "runs.py": """
        from .work import queues

        class Run(queues.Task):
            def run(self) -> None: ...

        class Chance:
            def run(self) -> None: ...
        """,
}


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> ways.Sources:
    for name, text in FILES.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return ways.Sources(tmp_path / "house")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what jedi has parsed in memory: files are written by others, too, and take longer than parsing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jedi.settings, "cache_directory", tmp_path_factory.mktemp("jedi"))
        patch.setattr("parso.cache._save_to_file_system", lambda *_, **__: None)
        yield


def steps(*names: str) -> list[ways.Step]:
    return [ways.Step(*name.split(":")) for name in names]


def test_the_page_shows_six_paths() -> None:
    assert len(PATHS) == 6


@rows.each("title", PATHS)
def test_each_step_of_a_path_is_there_and_no_file_is_entered_twice(title: str) -> None:
    assert SOURCES.problems(PATHS[title]) == []


@pytest.mark.slow
@pytest.mark.parametrize("title", PATHS)
def test_each_step_of_a_path_leads_to_the_next(title: str) -> None:
    assert SOURCES.gaps(PATHS[title]) == []


@rows.each("title", PATHS)
def test_a_path_has_few_files(title: str) -> None:
    assert 1 < len({step.file for step in PATHS[title]}) <= MOST_FILES


def test_a_path_leads_over_calls_docstrings_and_methods_that_are_overridden(sources: ways.Sources) -> None:
    path = steps(
        "sources/watch.py:Watch",
        "sources/watch.py:Watch.changed",
        "sources/watch.py:Watch._put",
        "work/queues.py:Queue.add",
        "work/workers.py:Worker.work",
        "runs.py:Run.run",
    )
    assert sources.problems(path) + sources.gaps(path) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param(["sources/gone.py:X"], "there is no sources/gone.py: X", id="no file"),
        pytest.param(
            ["work/queues.py:Queue.put"], "there is no work/queues.py: Queue.put", id="no definition"
        ),
        pytest.param(
            ["work/queues.py:Queue.add", "work/workers.py:Worker.work", "work/queues.py:Task.run"],
            "work/queues.py is entered twice",
            id="twice",
        ),
        pytest.param(
            ["sources/watch.py:Watch.changed", "work/queues.py:Queue.drop"],
            "sources/watch.py: Watch.changed does not lead to work/queues.py: Queue.drop",
            id="nothing names it",
        ),
        pytest.param(
            ["work/queues.py:Queue.add", "sources/watch.py:Watch.changed"],
            "work/queues.py: Queue.add does not lead to sources/watch.py: Watch.changed",
            id="the wrong way",
        ),
        pytest.param(
            ["work/workers.py:Worker.work", "runs.py:Chance.run"],
            "work/workers.py: Worker.work does not lead to runs.py: Chance.run",
            id="a method of the same name that overrides nothing",
        ),
    ],
)
def test_what_is_wrong_with_a_path_is_said(sources: ways.Sources, path: list[str], problem: str) -> None:
    assert (sources.problems(steps(*path)) or sources.gaps(steps(*path))) == [problem]
