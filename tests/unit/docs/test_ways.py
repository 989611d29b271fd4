"""What walks the paths of the page about architecture: it notices steps that nothing leads to."""

import pathlib
import textwrap

import pytest

from tests.unit.docs import ways

FILES = {
    "sources/watch.py": """
        from addon_operator.work import queues

        class Watch:
            def changed(self) -> None:
                self._put()

            def _put(self) -> None:
                self._queue.add(1)

        class Other:
            def unused(self) -> None:
                self._queue.drop()
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
        from addon_operator.work import queues

        class Worker:
            def work(self, task: queues.Task) -> None:
                task.run()
        """,
    "runs.py": """
        from addon_operator.work import queues

        class Run(queues.Task):
            def run(self) -> None: ...

        class Chance:
            def run(self) -> None: ...
        """,
}


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> ways.Sources:
    for name, text in FILES.items():
        path = tmp_path / "addon_operator" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return ways.Sources(tmp_path / "addon_operator")


def problems(sources: ways.Sources, path: str) -> list[str]:
    return list(sources.problems(ways.steps_of(path)))


def test_a_path_leads_over_calls_docstrings_and_methods_that_are_overridden(sources: ways.Sources) -> None:
    path = (
        "`sources/watch.py:Watch.changed` (a thread) → `work/queues.py:Queue.add` → `workers.py:Worker.work`"
        " → `runs.py:Run.run`"
    )
    steps = ways.steps_of(path.replace("`runs", "`./runs"))
    assert [step.file for step in steps[:3]] == ["sources/watch.py", "work/queues.py", "work/workers.py"]
    root = [*steps[:3], ways.Step("runs.py", "Run.run")]
    assert list(sources.problems(root)) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("`sources/gone.py:X`", "there is no sources/gone.py", id="no file"),
        pytest.param(
            "`work/queues.py:Queue.put`", "there is no work/queues.py:Queue.put", id="no definition"
        ),
        pytest.param("`work/queues.py`", "there is no work/queues.py:", id="nothing said"),
        pytest.param(
            "`work/queues.py:Queue.add` → `work/queues.py:Queue.drop`", "a file is entered twice", id="twice"
        ),
        pytest.param(
            "`sources/watch.py:Watch.changed` → `work/queues.py:Queue.drop`",
            "work/queues.py:Queue.drop is not reached from sources/watch.py:Watch.changed",
            id="another method names it",
        ),
        pytest.param(
            "`work/queues.py:Queue.add` → `sources/watch.py:Watch.changed`",
            "sources/watch.py:Watch.changed is not reached from work/queues.py:Queue.add",
            id="the wrong way",
        ),
    ],
)
def test_what_is_wrong_with_a_path_is_said(sources: ways.Sources, path: str, problem: str) -> None:
    assert problem in problems(sources, path)


def test_a_method_of_a_class_that_inherits_nothing_is_not_reached_by_chance(sources: ways.Sources) -> None:
    steps = [ways.Step("work/workers.py", "Worker.work"), ways.Step("runs.py", "Chance.run")]
    assert list(sources.problems(steps)) == [
        "runs.py:Chance.run is not reached from work/workers.py:Worker.work"
    ]
