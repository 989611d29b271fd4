"""Lines of hooks are logged, and the last ones kept, within bounds."""

import pytest
import structlog
from structlog.testing import capture_logs

from addon_operator.engine.hooks import hook_lines


def test_the_last_lines_of_the_last_run_are_kept_by_hook() -> None:
    kept = hook_lines.LastOutputs()
    kept.begin("web", "a.sh")("of an earlier run")
    write = kept.begin("web", "a.sh")
    for number in range(hook_lines.LINES + 5):
        write(f"line {number}")
    kept.begin("", "global.sh")("global")
    assert kept.of("web") == {"a.sh": [f"line {number}" for number in range(5, hook_lines.LINES + 5)]}
    assert kept.of("") == {"global.sh": ["global"]}
    assert kept.of("other") == {}


def test_long_lines_and_many_hooks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_lines, "HOOKS", 2)
    kept = hook_lines.LastOutputs()
    for name in ("a", "b", "a", "c"):
        kept.begin("web", name)("x" * 10_000)
    assert list(kept.of("web")) == ["a", "c"], "the one that ran longest ago is forgotten"
    assert {len(line) for lines in kept.of("web").values() for line in lines} == {hook_lines.LINE_CHARS}


def logged(*lines: str) -> list[str]:
    """What the log has of a run that wrote these."""
    with capture_logs() as records, hook_lines.HookLog(structlog.get_logger()).run({"hook": "a.sh"}) as log:
        write = log.handler("stdout")
        for line in lines:
            write(line)
    assert {record["hook"] for record in records} <= {"a.sh"}
    return [record["event"] for record in records]


def test_a_run_that_writes_as_much_as_is_logged_is_logged_as_it_is() -> None:
    lines = [f"line {number}" for number in range(hook_lines.LOGGED_FIRST)]
    assert logged(*lines) == lines


def test_lines_that_are_held_back_and_fit_are_logged_at_the_end() -> None:
    lines = [f"line {number}" for number in range(hook_lines.LOGGED_FIRST + hook_lines.LOGGED_LAST)]
    found = logged(*lines)
    del found[hook_lines.LOGGED_FIRST]
    assert found == lines


def test_long_lines_are_bounded_by_their_characters_and_stay_in_their_order() -> None:
    long = "x" * 10_000
    found = logged(*[long] * 100, *["short"] * 3, *[long] * 100)
    assert sum(map(len, found)) < 2 * hook_lines.LOGGED_CHARS + 1000
    assert "short" not in found, "it would stand before what was written before it"
    left_out = next(int(line.split()[1]) for line in found if line.startswith("and "))
    assert found.count(long) + left_out == 203
