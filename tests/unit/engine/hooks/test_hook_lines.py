"""The last lines of hooks are kept, within bounds."""

import pytest

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
