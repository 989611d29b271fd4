"""What becomes of the loop when the operator ends by itself."""

import contextlib
import json
import pathlib
from collections.abc import Callable, Iterator

import pytest
from typing_extensions import override

from addon_operator.commands.dev import dev_hooks, dev_loop, dev_place, dev_saves, dev_view
from addon_operator.debug import debug_client
from addon_operator.process import commands


class Operator(commands.Background):
    """An operator that writes these records, and ends."""

    def __init__(self, *records: tuple[str, str]) -> None:
        self._records = records

    @override
    def lines(self) -> Iterator[str]:
        yield from (json.dumps({"level": level, "msg": text}) for level, text in self._records)


class EnoughError(Exception):
    """The test has seen what it wants."""


class Bench:
    def __init__(self, root: pathlib.Path) -> None:
        self.told: list[tuple[str, str]] = []
        self.draws = 0
        self.on_draw: Callable[[], object] = lambda: None
        self.view = dev_view.DevView()
        self.saves = dev_saves.Saves(root, root)
        client = debug_client.DebugClient(root / "no.socket", 1.0)
        screen = dev_loop.Screen(self._tell, self._draw)
        hooks = dev_hooks.LongRuns(client, [self.saves])
        self.loop = dev_loop.Loop(self.view, client, [self.saves], hooks, screen)

    def _tell(self, line: dev_view.Line) -> None:
        self.told.append((line.topic, line.text))

    def _draw(self, _: dev_view.DevView) -> None:
        self.draws += 1
        self.on_draw()

    def keep(self, *operators: Operator) -> None:
        left = iter(operators)

        @contextlib.contextmanager
        def start() -> Iterator[commands.Background]:
            operator = next(left, None)
            if operator is None:
                raise EnoughError
            yield operator

        self.loop.keep(start)


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/hang.sh").write_text("")
    return tmp_path


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_loop, "_LOOK_SECONDS", 0.001)


def test_an_operator_that_cannot_start_with_a_file_waits_for_a_save_and_starts_again(
    root: pathlib.Path,
) -> None:
    bench, hook = Bench(root), root / "hooks/hang.sh"
    refused = f"hook {hook}: invalid configuration: --config was stopped because it ran longer than 1m"
    errors: list[list[str]] = []

    def look() -> None:
        if any(topic == "ended" for topic, _ in bench.told) and not errors:
            errors.append(bench.view.errors)
            hook.write_text("#!/bin/sh")

    bench.on_draw = look
    with pytest.raises(EnoughError):
        bench.keep(Operator(("info", "starts"), ("error", refused)))
    topics = [topic for topic, _ in bench.told]
    assert topics == ["error", "ended", "saved", "start"]
    assert bench.told[0] == ("error", refused)
    assert errors == [[refused]], "on the screen it stays until something is saved"
    assert bench.view.errors == []


def test_a_save_while_it_started_counts(root: pathlib.Path) -> None:
    bench, hook = Bench(root), root / "hooks/hang.sh"
    failing = Operator(("error", f"hook {hook}: invalid configuration: it was ended by a person"))

    class SavedMeanwhile(Operator):
        @override
        def lines(self) -> Iterator[str]:
            hook.write_text("#!/bin/sh")
            yield from failing.lines()

    with pytest.raises(EnoughError):
        bench.keep(SavedMeanwhile())
    assert bench.told[-1][0] == "start"


@pytest.mark.parametrize(
    "last", [("error", "the API server cannot be reached"), ("info", "stops"), ("warning", "{root} is odd")]
)
def test_an_operator_that_ends_for_another_reason_ends_the_loop(
    root: pathlib.Path, last: tuple[str, str]
) -> None:
    level, text = last
    operator = Operator(
        ("error", f"module web: {root}/a is wrong"), (level, text.replace("{root}", str(root)))
    )
    with pytest.raises(dev_place.DevError, match="the operator has ended") as caught:
        Bench(root).keep(operator)
    assert text.replace("{root}", str(root)) in str(caught.value)
