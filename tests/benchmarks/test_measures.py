"""How samples become numbers, and numbers an exit code."""

import signal
from collections.abc import Iterator

import pytest
from click import testing

from tests.benchmarks import __main__ as command
from tests.benchmarks import measures


@pytest.fixture
def _own_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("samples", "percent", "found"),
    [([3.0, 1.0, 2.0], 50, 2.0), ([float(n) for n in range(1, 101)], 99, 99.0), ([7.0], 99, 7.0),
     ([1.0, 2.0], 50, 1.0), ([1.0, 2.0], 99, 2.0)],
    ids=["the middle", "one in a hundred is above", "one sample", "half of two", "most of two"],
)  # fmt: skip
def test_a_percentile_is_a_sample(samples: list[float], percent: float, found: float) -> None:
    assert measures.percentile(samples, percent) == found


@pytest.mark.usefixtures("_own_signals")
@pytest.mark.parametrize(
    ("met", "arguments", "code"),
    [([True, None], ["--check"], 0), ([True, False, True], ["--check"], 1), ([True, False], [], 0)],
    ids=["all are met", "one is missed", "nobody asks"],
)
def test_a_missed_target_is_the_exit_code_if_that_is_asked_for(
    met: list[bool | None], arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [measures.Row("merge", "a", "ms", 1.0, "", None, "< 2", each) for each in met]
    monkeypatch.setattr(command, "_BENCHMARKS", {"merge": lambda: rows})
    result = testing.CliRunner().invoke(command.main, ["merge", *arguments])
    assert result.exit_code == code
    assert ("MISSED" in result.stdout) == (False in met)


def row(value: float, baseline: float | None = None, quantity: str = "s") -> measures.Row:
    return measures.Row("lifecycle", "edit", quantity, value, "bare", baseline)


@pytest.mark.parametrize(
    ("before", "now", "is_worse"),
    [
        (row(1.0), row(1.05), False),
        (row(1.0), row(1.2), True),
        (row(1.0, 1.0), row(2.0, 2.0), False),
        (row(1.0, 1.0), row(1.0, 0.5), True),
        (row(10.0, quantity="releases per second"), row(8.0, quantity="releases per second"), True),
        (row(10.0, quantity="releases per second"), row(12.0, quantity="releases per second"), False),
        (row(1.0, quantity="ms"), row(9.0), False),
    ],
    ids=["little", "worse", "both slower", "baseline faster", "fewer", "more", "another figure"],
)
def test_what_got_worse_by_a_tenth_is_named(before: measures.Row, now: measures.Row, is_worse: bool) -> None:
    assert bool(measures.worse([before], [now])) is is_worse
