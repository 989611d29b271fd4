"""What ``dev`` shows: from records of the operator's log, and from what it answers."""

from collections.abc import Mapping
from typing import Any

from addon_operator.app import event_log
from addon_operator.commands.dev import dev_view
from addon_operator.engine import events, state
from addon_operator.kernel import names
from tests.support import logs

WEB = names.ModuleName("web")


def told(view: dev_view.DevView, **record: object) -> list[object]:
    return list(view.record(record))


def ended(
    view: dev_view.DevView,
    revision: int,
    values: Mapping[str, Any],
    **more: Any,  # noqa: ANN401  # fields of Change
) -> list[tuple[str, str]]:
    change = dev_view.Change("web", revision=revision, **more)
    details = {"values": values, "revisions": f"revision {revision - 1} → {revision}\n-a\n+b\n"}
    return [(line.topic, line.text) for line in view.ended(change, details)]


def test_a_save_is_told_with_its_values_differences_revision_and_time() -> None:
    view = dev_view.DevView()
    assert ended(view, 1, {"size": 1, "old": True}, run_seconds=0.5) == [
        ("done", "web: revision 1 (run 0.5 s)")
    ]
    lines = ended(view, 2, {"size": 2, "new": [1]}, files=["values.yaml"], seconds=0.94, run_seconds=0.44)
    assert lines == [
        ("values", "web: size: 1 -> 2"),
        ("values", "web: old: True -> (none)"),
        ("values", "web: new: (none) -> [1]"),
        ("diff", "revision 1 → 2"),
        ("diff", "-a"),
        ("diff", "+b"),
        ("done", "web: revision 2, 0.9 s after the save (run 0.4 s)"),
    ]


def test_a_save_that_changes_nothing_shows_no_old_differences() -> None:
    view = dev_view.DevView()
    ended(view, 2, {})
    assert ended(view, 2, {}, seconds=0.5) == [
        ("done", "web: revision 2, as before, 0.5 s after the save (run 0.0 s)")
    ]
    assert view.last is not None
    assert view.last.is_as_before


def test_a_run_that_failed_is_not_called_done() -> None:
    view = dev_view.DevView()
    ended(view, 2, {})
    assert ended(view, 2, {}, has_failed=True) == [("failed", "web: failed; revision 2 stays (run 0.0 s)")]


def test_the_end_of_a_run_and_a_reload_are_to_be_looked_at() -> None:
    view = dev_view.DevView()
    assert told(view, level="info", reason="ModuleRan", module="web", seconds=0.2) == [
        dev_view.Ran("web", 0.2)
    ]
    assert told(view, level="info", reason="ModulesReloaded", modules="shop, web") == [
        dev_view.Reloaded(["shop", "web"])
    ]
    assert told(view, level="info", msg="converge done") == []


def test_errors_are_those_of_this_moment() -> None:
    view = dev_view.DevView({"/tmp/links/": "/home/me/modules/"})
    wrong = "files stay as they were: /tmp/links/010-web/values.yaml: no YAML"
    assert told(view, level="error", msg=wrong) == [
        dev_view.Line("error", "files stay as they were: /home/me/modules/010-web/values.yaml: no YAML")
    ]
    view.rows = [
        {"name": "web", "lastError": "it broke", "wrongValues": ""},
        {"name": "shop", "lastError": "", "wrongValues": "size"},
        {"name": "fine", "lastError": "", "wrongValues": ""},
    ]
    view.refusals = [f"{state.REFUSED}: /tmp/links/020-shop/values.yaml, line 1: size"]
    assert view.errors == [
        "web: it broke",
        f"{state.REFUSED}: /home/me/modules/020-shop/values.yaml, line 1: size",
        "files stay as they were: /home/me/modules/010-web/values.yaml: no YAML",
    ]
    told(view, level="info", reason="ModulesReloaded", modules="web")
    view.rows = []
    assert len(view.errors) == 1, "what another module has refused is still wrong"
    view.refusals = []
    assert view.errors == []


def test_a_refusal_is_told_and_so_is_its_end() -> None:
    view = dev_view.DevView()
    text = "values.yaml is wrong"
    assert told(view, level="error", msg=text, reason="ReloadRefused") == [dev_view.Line("error", text)]
    assert view.errors == [], "it is shown for as long as the operator says so"
    assert told(view, level="info", msg="all is right", reason="NothingRefused") == [
        dev_view.Line("right", "all is right")
    ]


def test_what_the_loop_of_edits_follows_is_named_in_the_log() -> None:
    log = logs.Records()
    tell = event_log.EventLog(log.logger)
    followed = [
        (events.ModuleRan(WEB, "onStartup", 0.2), dev_view.Ran("web", 0.2)),
        (events.ModulesReloaded([WEB], []), dev_view.Reloaded(["web"])),
        (events.ReloadRefused("no YAML"), dev_view.Line("error", f"{state.REFUSED}: no YAML")),
        (events.NothingRefused(), dev_view.Line("right", "nothing that changed on disk is refused any more")),
    ]
    for event, _ in followed:
        tell(event)

    view = dev_view.DevView()
    records = [{**record, "msg": record["event"]} for record in log]
    assert [each for record in records for each in view.record(record)] == [each for _, each in followed]


def test_the_last_lines_of_each_hook_are_kept_and_of_the_last_hooks_only() -> None:
    view = dev_view.DevView()
    for number in range(50):
        told(view, level="info", msg=f"line {number}", module="web", hook="a.py", output="stdout")
    assert list(view.hooks["web/a.py"]) == [f"line {n}" for n in range(50 - dev_view.LINES_OF_HOOK, 50)]
    for number in range(dev_view.MOST_HOOKS):
        told(view, level="info", msg="x", module="web", hook=f"{number}.py", output="stderr")
    assert "web/a.py" not in view.hooks
    assert len(view.hooks) == dev_view.MOST_HOOKS
    assert told(view, level="error", msg="oh", hook="g.sh", output="stderr") == [
        dev_view.Line("hook", "g.sh: oh")
    ]


def test_many_changes_are_cut() -> None:
    view = dev_view.DevView()
    ended(view, 1, {})
    lines = ended(view, 1, {f"k{number}": "x" * 1000 for number in range(1000)})
    assert [topic for topic, _ in lines] == ["values"] * (dev_view.MOST_CHANGES + 1) + ["done"]
    assert all(len(text) < 200 for _, text in lines)
