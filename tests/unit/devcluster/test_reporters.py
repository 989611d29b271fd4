"""What a person sees of long work."""

import io

import pytest
import rich.console

from addon_operator.devcluster import reporters
from tests.support import rows

from . import fakes


def test_a_plain_line_comes_at_the_beginning_and_every_fifteen_seconds() -> None:
    lines: list[str] = []
    clock = fakes.Clock()
    reporter = reporters.PlainReporter(lines.append, clock)
    with reporter.phase("kubernetes", "compiling", "packages", 100) as phase:
        for _ in range(40):
            clock.now += 1
            phase.advance()
    assert lines == [
        "kubernetes: compiling",
        "kubernetes: compiling: 15 of 100 packages, 0:15, about 1:25 left",
        "kubernetes: compiling: 30 of 100 packages, 0:30, about 1:10 left",
    ]


def test_a_plain_phase_says_what_is_done_now() -> None:
    lines: list[str] = []
    clock = fakes.Clock()
    with reporters.PlainReporter(lines.append, clock).phase("etcd", "compiling", "packages") as phase:
        phase.describe("linking")
        clock.now += 20
        phase.advance()
    assert lines[-1] == "etcd: linking: 1 packages, 0:20"


def test_bytes_are_shown_in_mebibytes() -> None:
    lines: list[str] = []
    clock = fakes.Clock()
    with reporters.PlainReporter(lines.append, clock).phase("helm", "downloading", "MiB", 20 << 20) as phase:
        clock.now += 15
        phase.advance(5 << 20)
    assert lines[-1] == "helm: downloading: 5 of 20 MiB, 0:15, about 0:45 left"


def test_the_bar_shows_the_component_the_packages_and_the_time() -> None:
    stream = io.StringIO()
    console = rich.console.Console(file=stream, force_terminal=True, width=120)
    with reporters.BarReporter(console).phase("kubernetes", "compiling", "packages", 2029) as phase:
        phase.advance(812)
        phase.describe("linking [all]")
    shown = stream.getvalue()
    assert "kubernetes" in shown
    assert "linking [all]" in shown
    assert "812 of 2029 packages" in shown
    assert "0:00:0" in shown
    assert "left" in shown


def test_the_bar_prints_messages_as_they_are() -> None:
    stream = io.StringIO()
    console = rich.console.Console(file=stream, width=20)
    reporters.BarReporter(console).say("a [bold]long[/bold] line that is wider than the terminal")
    assert stream.getvalue() == "a [bold]long[/bold] line that is wider than the terminal\n"


def test_a_silent_reporter_only_does_the_work() -> None:
    reporter = reporters.Reporter()
    reporter.say("nothing")
    with reporter.phase("etcd", "compiling", "packages", 3) as phase:
        phase.advance()
        phase.describe("linking")


@rows.each(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (187, "3:07"), (3600, "60:00")])
def test_times_are_minutes_and_seconds(seconds: float, text: str) -> None:
    assert reporters.clock_time(seconds) == text


@rows.each(
    ("done", "total"),
    [
        pytest.param(0, 10, id="nothing done"),
        pytest.param(5, None, id="no total"),
        pytest.param(11, 10, id="more"),
    ],
)
def test_no_time_is_guessed_from_nothing(done: int, total: int | None) -> None:
    assert reporters.time_left(done, total, 10.0) == ""
