"""Changes that wait for a window: what waits, until when, and what is done when it opens."""

import datetime as dt

import pytest

from addon_operator.engine import events
from tests.support import engine

MIDNIGHT = dt.datetime(2026, 11, 24, tzinfo=dt.UTC).timestamp()
HOUR = 3600.0
NOON = "windows: [{schedule: '0 12 * * *', duration: 1h}]\n"
NIGHTS = "[{schedule: '0 22 * * *', duration: 4h}]"
WAITS = "waits for a window, which opens at 2026-11-24T"


async def installed(
    op: engine.Operator, own: str = NOON, default: str = "", at: float = 3.0, *names: str
) -> None:
    """An operator whose modules are installed, so many hours after midnight."""
    op.clock.epoch = MIDNIGHT + at * HOUR - op.clock.now
    for name in names or ("web",):
        op.modules.add(name, {"module.yaml": own} if own else None)
    if default:
        op.settings["windows"] = default
    await op.start()
    op.story  # noqa: B018 - forgets the start


def held(op: engine.Operator, name: str = "web") -> str:
    return str(op.module(name).held_back or "")


async def open_window(op: engine.Operator, hours: float) -> None:
    await op.leap(MIDNIGHT + hours * HOUR - op.clock.time())
    await op.advance(5)


@pytest.mark.parametrize(
    ("own", "default", "opens"),
    [
        (NOON, NIGHTS, "12:00:00Z"),
        ("", NIGHTS, "22:00:00Z"),
        ("windows: []\n", NIGHTS, ""),
        (NOON, "", "12:00:00Z"),
        ("", "", ""),
    ],
    ids=["both", "the setting", "an own list that is empty", "an own list", "none"],
)
async def test_the_list_of_a_module_wins_over_that_of_the_setting(
    op: engine.Operator, own: str, default: str, opens: str
) -> None:
    await installed(op, own, default)
    await op.edit(web={"size": 1})
    assert held(op).partition(": upgrade")[0] == (f"{WAITS}{opens}" if opens else "")
    assert op.story == ([] if opens else ["helm upgrade web"])
    assert op.statuses == {"web": "Ready"}


async def test_a_first_install_waits_for_no_window_and_an_open_one_lets_everything_pass(
    op: engine.Operator,
) -> None:
    await installed(op, at=12.5)
    assert op.helm.statuses("web") == {1: "deployed"}
    await op.edit(web={"size": 1})
    assert op.helm.statuses("web") == {1: "superseded", 2: "deployed"}


async def test_what_waits_is_done_when_the_window_opens_with_the_values_of_then(op: engine.Operator) -> None:
    await installed(op)
    await op.edit(web={"size": 1})
    await op.edit(web={"size": 2})
    await open_window(op, 11.9)
    assert op.story == []
    await open_window(op, 12)
    assert op.story == ["helm upgrade web"]
    assert op.helm.content("web", 2)["config"]["web"] == {"size": 2}
    assert held(op) == ""
    assert [event.held is None for event in op.heard.of(events.HeldBack)][-1]
    await open_window(op, 36)
    assert op.story == []


async def test_modules_that_wait_for_the_same_window_run_in_their_order(op: engine.Operator) -> None:
    op.modules.add("db", {"module.yaml": NOON}, order=5)
    await installed(op)
    for name in ("web", "db"):
        await op.edit(**{name: {"size": 1}})
    await open_window(op, 12)
    assert op.story == ["helm upgrade db", "helm upgrade web"]


async def test_a_removal_waits_with_its_hooks_and_is_done_when_the_window_opens(op: engine.Operator) -> None:
    op.hook("web/a.sh", {"beforeDeleteHelm": 1})
    await installed(op)
    await op.edit(webEnabled="false")
    assert op.story == []
    assert op.statuses == {"web": "Deleting"}
    assert "removal" in held(op) or "uninstall" in held(op)
    await open_window(op, 12)
    assert op.story == ["a.sh: beforeDeleteHelm", "helm uninstall web"]
    assert op.statuses == {"web": "Disabled"}


async def test_a_module_that_is_enabled_again_waits_for_no_removal(op: engine.Operator) -> None:
    await installed(op)
    await op.edit(webEnabled="false")
    await op.edit(webEnabled="true")
    assert held(op) == ""
    await open_window(op, 12)
    assert op.story == []


async def test_a_release_without_a_module_has_the_windows_of_the_setting_and_is_shown(
    op: engine.Operator,
) -> None:
    await installed(op, "", NIGHTS, 3.0, "web", "left")
    await op.stop()
    op.modules.remove("left")
    await op.start()
    await op.advance(30)
    (sentence,) = [text for text in op.graph.refusals() if "left" in text]
    assert sentence.startswith(f"release left {WAITS}22:00:00Z: ")
    assert op.story == []
    await open_window(op, 22)
    assert op.story == ["helm uninstall left"]
    assert op.graph.refusals() == []


async def test_what_waits_does_so_since_it_was_wanted_first(op: engine.Operator) -> None:
    await installed(op)
    await op.edit(web={"size": 1})
    before = op.module("web").held_back
    assert before is not None
    await op.leap(HOUR)
    await op.edit(web={"size": 2})
    after = op.module("web").held_back
    assert after is not None
    assert after.since == before.since, "what waits is the same"
    await op.edit(webEnabled="false")
    removal = op.module("web").held_back
    assert removal is not None
    assert removal.since > before.since, "a removal is something else"


async def test_a_run_past_windows_passes_them_once(op: engine.Operator) -> None:
    await installed(op)
    await op.edit(web={"size": 1})
    await op.run("web", past_windows=True)
    assert op.story == ["helm upgrade web"]
    assert held(op) == ""
    await op.edit(web={"size": 2})
    assert op.story == []


async def test_a_disabled_module_is_removed_past_its_windows_when_that_is_wanted(op: engine.Operator) -> None:
    await installed(op)
    await op.edit(webEnabled="false")
    await op.run("web", past_windows=True)
    assert op.story == ["helm uninstall web"]
