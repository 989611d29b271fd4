"""Saves are told at once, and hooks that hang do not keep them from being tried."""

import os
import pathlib

import pytest
from typing_extensions import override

from addon_operator.commands.dev import dev_hooks, dev_saves
from addon_operator.debug import debug_client


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    for name in ("010-one", "020-two"):
        (tmp_path / name / "hooks").mkdir(parents=True)
        save(tmp_path / name / "values.yaml", 500)
    return tmp_path


def save(path: pathlib.Path, at: int) -> None:
    path.write_text("{}")
    os.utime(path, (at, at))


def told(saves: dev_saves.Saves) -> list[tuple[str, str]]:
    return [(line.topic, line.text) for line in saves.look()]


def test_a_save_is_told_at_once_and_counts_when_it_was_taken_in(root: pathlib.Path) -> None:
    saves = dev_saves.Saves(root, pathlib.Path.cwd() / "modules")
    assert told(saves) == []
    save(root / "010-one/values.yaml", 1000)
    save(root / "010-one/.values.yaml.swp", 1000)
    assert told(saves) == [("saved", "one: modules/010-one/values.yaml")]
    assert told(saves) == []
    save(root / "020-two/new.yaml", 2000)
    (root / "020-two/values.yaml").unlink()
    assert told(saves) == [
        ("saved", "two: modules/020-two/new.yaml"),
        ("removed", "two: modules/020-two/values.yaml"),
    ]
    assert saves.of("one") is None, "the operator has not read it"
    saves.take(["one", "two"])
    assert saves.of("one") == dev_saves.Saved(1000.0, ["modules/010-one/values.yaml"])
    assert saves.of("one") is None
    assert saves.of("two") == dev_saves.Saved(2000.0, ["modules/020-two/new.yaml"])


def test_values_of_all_count_for_each_module(root: pathlib.Path) -> None:
    saves = dev_saves.Saves(root, pathlib.Path.cwd() / "modules")
    save(root / "values.yaml", 1000)
    assert told(saves) == [("saved", "modules/values.yaml")]
    saves.take(["one", "two"])
    assert saves.of("one") == saves.of("two") == dev_saves.Saved(1000.0, ["modules/values.yaml"])


def test_of_many_saves_the_first_are_told_and_how_many_more(root: pathlib.Path) -> None:
    saves = dev_saves.Saves(root, root)
    for number in range(1000):
        save(root / f"010-one/{number}.yaml", 1000)
    lines = told(saves)
    assert (len(lines), lines[-1]) == (11, ("saved", "and 990 more"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Operator(debug_client.DebugClient):
    """One with a hook that hangs since the beginning, and one that is done soon."""

    def __init__(self, clock: Clock, hook: pathlib.Path) -> None:
        self.clock = clock
        self.hook = hook
        self.ended: list[str] = []

    @override
    def get(self, path: str, query: object = None) -> object:
        assert path == "/hooks/running.json"
        hangs = {"id": 7, "command": ["/venv/python3", str(self.hook), "--config"], "seconds": self.clock.now}
        return [hangs, {"id": 8, "command": [str(self.hook)], "seconds": 0.1}]

    @override
    def post(self, path: str, form: object) -> object:
        self.ended.append(path)
        return {"ended": True}


def test_a_hook_that_runs_for_long_is_told_at_times_that_double_and_ended_by_a_save(
    root: pathlib.Path,
) -> None:
    clock = Clock()
    saves = dev_saves.Saves(root, pathlib.Path.cwd() / "modules", clock)
    operator = Operator(clock, root / "010-one/hooks/a.py")
    runs = dev_hooks.LongRuns(operator, [saves], clock)
    lines = []
    for clock.now in (1.0, 4.0, 5.0, 6.0, 9.0, 11.0, 15.0):
        save(root / "020-two/values.yaml", int(clock.now))
        list(saves.look())
        lines += [line.text for line in runs.look({})]
    named = "modules/010-one/hooks/a.py --config"
    assert lines == [f"{named} runs for 5 s", f"{named} runs for 11 s"]
    assert runs.running == [f"{named} runs for 15 s"]
    assert operator.ended == [], "only another module was saved"
    save(root / "010-one/hooks/a.py", 1000)
    list(saves.look())
    told_now = [line.text for _ in range(3) for line in runs.look({})]
    assert told_now == [f"{named} is ended: its module was saved"]
    assert operator.ended == ["/hooks/running/7/end"]


def test_what_was_saved_before_a_hook_began_does_not_end_it(root: pathlib.Path) -> None:
    clock = Clock()
    clock.now = 100.0
    saves = dev_saves.Saves(root, root, clock)
    save(root / "010-one/hooks/a.py", 1000)
    list(saves.look())
    operator = Operator(clock, root / "010-one/hooks/a.py")
    runs = dev_hooks.LongRuns(operator, [saves], lambda: 220.0)
    clock.now = 110.0
    list(runs.look({}))
    assert operator.ended == []


class Hanging(Operator):
    """What hangs is a global hook, and the Helm of a module whose release has another name."""

    @override
    def get(self, path: str, query: object = None) -> object:
        words = (
            ["/usr/bin/python", str(self.hook)],
            ["/opt/helm", "upgrade", "shop", "/charts/two", "--install"],
        )
        return [{"id": number, "command": each, "seconds": 6.0} for number, each in enumerate(words)]


def test_a_global_hook_and_helm_that_hang_are_ended_by_a_save_of_what_they_belong_to(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    clock = Clock()
    shared = tmp_path / "global-hooks"
    for name in ("hooks", "openapi"):
        (shared / name).mkdir(parents=True)
    save(shared / "hooks/first.sh", 1)
    of_modules, of_global = (
        dev_saves.Saves(root, root, clock),
        dev_saves.Saves(shared, shared, clock, of_modules=False),
    )
    operator = Hanging(clock, shared / "hooks/first.sh")
    runs = dev_hooks.LongRuns(operator, [of_modules, of_global], clock)
    clock.now = 10.0
    hook = of_global.shown(shared / "hooks/first.sh")
    told_now = [line.text for line in runs.look({"shop": "two"})]
    assert told_now == [f"{hook} runs for 6 s", "helm upgrade of shop runs for 6 s"]
    save(root / "010-one/values.yaml", 1000)
    save(shared / "openapi/values.yaml", 1000)
    told_now = [line.text for saves in (of_modules, of_global) for line in saves.look()]
    assert told_now[-1] == of_global.shown(shared / "openapi/values.yaml")
    assert [line.text for line in runs.look({"shop": "two"})] == [f"{hook} is ended: global hooks were saved"]
    save(root / "020-two/values.yaml", 1000)
    list(of_modules.look())
    assert [line.text for line in runs.look({"shop": "two"})] == [
        "helm upgrade of shop is ended: its module was saved"
    ]
    assert operator.ended == ["/hooks/running/0/end", "/hooks/running/1/end"]
