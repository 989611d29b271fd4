"""A plan says what would wait for a window."""

import datetime as dt
import pathlib

from addon_operator.commands.plan import plan_report, plan_windows
from addon_operator.kernel.names import ModuleName
from addon_operator.modules import model, module_config, windows
from tests.support import rows

WEB, DB, BASE = ModuleName("web"), ModuleName("db"), ModuleName("base")
NOW = dt.datetime(2026, 11, 24, 3, tzinfo=dt.UTC)
NOON = windows.parse([{"schedule": "0 12 * * *", "duration": "1h"}])
NIGHTS = windows.parse([{"schedule": "0 22 * * *", "duration": "4h"}])
UPGRADE = plan_report.ReleaseReport(plan_report.PlanStep.UPGRADE, "templates changed", 1)
DELETE = plan_report.ReleaseReport(plan_report.PlanStep.DELETE, "the module is disabled")
OLD = plan_report.Purge("old", "no module directory explains it")


def module(name: ModuleName, own: windows.Windows | None, *required: ModuleName) -> model.Module:
    needs = module_config.Requirements(modules=required)
    return model.Module(
        name, 1, pathlib.Path(name), config=module_config.ModuleConfig(windows=own, requires=needs)
    )


MODULES = {
    WEB: module(WEB, NIGHTS, DB),
    DB: module(DB, None, BASE),
    BASE: module(BASE, windows.Windows()),
}


def seen(default: windows.Windows | None = NOON, moment: dt.datetime = NOW) -> plan_windows.PlanWindows:
    return plan_windows.PlanWindows(MODULES, default, moment)


def test_an_upgrade_outside_of_its_window_waits() -> None:
    made = seen().upgrade(MODULES[DB], UPGRADE)
    assert made.step is plan_report.PlanStep.WAIT
    assert made.reason == ("waits for a window, which opens at 2026-11-24T12:00:00Z: templates changed")
    assert made.revision == 1


@rows.each(
    ("planned", "name"),
    [(seen(None), DB), (seen(), BASE), (seen(moment=NOW.replace(hour=12)), DB)],
    ids=["no windows", "an own list that is empty", "an open window"],
)
def test_an_upgrade_that_need_not_wait_stays_one(planned: plan_windows.PlanWindows, name: ModuleName) -> None:
    assert planned.upgrade(MODULES[name], UPGRADE) == UPGRADE


def test_a_removal_waits_for_the_windows_of_all_that_go_before_it() -> None:
    def reason(*there: str) -> str:
        return seen().removal(MODULES[BASE], DELETE, there.__contains__).reason

    assert reason() == "the module is disabled"
    assert "T12:00:00Z" in reason("db")
    assert "T22:00:00Z" in reason("db", "web")


def test_a_purge_waits_for_the_windows_of_the_setting_or_of_the_module_that_moved() -> None:
    assert seen().purge(OLD, None).reason == (
        "waits for a window, which opens at 2026-11-24T12:00:00Z: no module directory explains it"
    )
    assert "T22:00:00Z" in seen().purge(OLD, "web").reason
    assert seen(None).purge(OLD, None) == OLD
