"""How ``dev`` looks: lines on a pipe, and one screen that is drawn only when something changed."""

import io

import pytest
import rich.console

from addon_operator.cli.authoring import dev_screen
from addon_operator.commands.dev import dev_view


def row(name: str, state: str = "Ready", **more: object) -> dict[str, object]:
    return {"name": name, "state": state, "health": "Healthy", "revision": 2, "lastError": "", **more}


def test_lines_tell_each_state_once_and_none_that_passes(capsys: pytest.CaptureFixture[str]) -> None:
    view = dev_view.DevView()
    with dev_screen.lines() as screen:
        for state in ("Pending", "Running", "Ready", "Ready", "Running", "Failed"):
            view.rows = [row("web", state)]
            screen.draw(view)
        screen.tell(dev_view.Line("diff", "-a\n+b"))
    assert capsys.readouterr().out.splitlines() == [
        "module   web: Ready, Healthy, revision 2",
        "module   web: Failed, Healthy, revision 2",
        "diff     -a",
        "diff     +b",
    ]


def test_the_screen_is_drawn_only_when_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        rich.console, "Console", lambda **_: CONSOLE(file=terminal, force_terminal=True, width=80, height=30)
    )
    view = dev_view.DevView()
    view.rows = [row("web")]
    with dev_screen.full("local cluster", "addon-operator module list") as screen:
        screen.draw(view)
        drawn = len(terminal.getvalue())
        for _ in range(10):
            view.rows = [row("web")]
            screen.draw(view)
        assert len(terminal.getvalue()) == drawn
        view.rows = [row("web", "Failed", lastError="it broke")]
        screen.draw(view)
        assert len(terminal.getvalue()) > drawn


CONSOLE = rich.console.Console


def test_errors_stand_above_modules_and_the_last_change_below_them() -> None:
    view = dev_view.DevView()
    view.rows = [row("web", "Failed", lastError="it [bold]broke")]
    list(view.ended(dev_view.Change("web", revision=1), {"values": {}}))
    change = dev_view.Change("web", files=["modules/010-web/values.yaml"], revision=2, seconds=0.8)
    list(view.ended(change, {"values": {}, "revisions": "\n".join(["+ a: b"] * 40)}))
    view.running = ["modules/010-web/hooks/b.sh runs for 12 s"]
    list(view.record({"msg": "hello", "hook": "a.py", "module": "web", "output": "stdout"}))
    console = rich.console.Console(file=io.StringIO(), width=80, highlight=False, markup=False)
    console.print(dev_screen.rendered("local", "addon-operator module list", view, 30))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    places = [
        text.index(each)
        for each in (
            "it [bold]broke",
            "MODULE",
            "b.sh runs for 12 s",
            "0.8 s after the save",
            "values.yaml",
            "lines more",
        )
    ]
    assert places == sorted(places)
    assert "web/a.py: hello" in "\n".join(text.splitlines()[:30]), "a long difference leaves room for it"
