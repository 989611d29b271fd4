"""The last lines of hooks are kept, within bounds."""

import pytest

from addon_operator.engine.hooks import last_outputs


def test_the_last_lines_of_the_last_run_are_kept_by_hook() -> None:
    kept = last_outputs.LastOutputs()
    kept.begin("web", "a.sh")("of an earlier run")
    write = kept.begin("web", "a.sh")
    for number in range(last_outputs.LINES + 5):
        write(f"line {number}")
    kept.begin("", "global.sh")("global")
    assert kept.of("web") == {"a.sh": [f"line {number}" for number in range(5, last_outputs.LINES + 5)]}
    assert kept.of("") == {"global.sh": ["global"]}
    assert kept.of("other") == {}


def test_long_lines_and_many_hooks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_outputs, "HOOKS", 2)
    kept = last_outputs.LastOutputs()
    for name in ("a", "b", "a", "c"):
        kept.begin("web", name)("x" * 10_000)
    assert list(kept.of("web")) == ["a", "c"], "the one that ran longest ago is forgotten"
    assert {len(line) for lines in kept.of("web").values() for line in lines} == {last_outputs.LINE_CHARS}
