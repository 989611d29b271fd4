"""What is removed and purged, and what stays for now, with the reason."""

import pytest

from addon_operator.engine import events
from tests.support import api_server, clocks, engine


def failures(op: engine.Operator) -> list[str]:
    """Why discoveries failed."""
    return [error for _, error, delay in op.heard.failures if delay is not None]


def removals(op: engine.Operator) -> list[str]:
    """What was told of removals, and of those that are put off; forgets it."""
    told = [event for event in op.heard if isinstance(event, events.RemovalDue | events.Warned)]
    op.heard[:] = [event for event in op.heard if event not in told]
    return [event.text for event in told]


async def with_releases(op: engine.Operator, *names: str) -> None:
    """Releases of an operator that has ended."""
    for name in names:
        op.modules.add(name)
    await op.start()
    await op.stop()
    op.heard.clear()


async def test_no_module_at_all_is_an_error_as_long_as_releases_would_be_purged(op: engine.Operator) -> None:
    await with_releases(op, "web")
    op.modules.remove("web")
    await op.start()
    (error,) = failures(op)
    assert error == (
        "MODULES_DIR holds no module, but there are releases of modules (web), and none is removed: "
        "see that the directory is mounted and that the image has the modules, or set "
        "ALLOW_EMPTY_MODULES=true to have the releases removed"
    )
    assert op.helm.statuses("web") == {1: "deployed"}


async def test_modules_that_are_all_strangers_are_an_error_before_a_script_of_them_runs(
    op: engine.Operator,
) -> None:
    await with_releases(op, "web")
    op.modules.remove("web")
    asked = op.enabled_script("db", lambda _: True)
    await op.start()
    assert asked == []
    (error,) = failures(op)
    assert "holds other modules (db) than" in error
    assert "(web)" in error


@pytest.mark.parametrize(
    ("settings", "goes"),
    [({}, False), ({"helm_purge": "off"}, False), ({"allow_empty_modules": "true"}, True)],
    ids=["by default", "purges are off", "empty is meant"],
)
async def test_a_release_whose_only_module_is_gone_is_purged_only_if_that_is_meant(
    op: engine.Operator, settings: dict[str, str], goes: bool
) -> None:
    await with_releases(op, "web")
    op.modules.remove("web")
    op.settings.update(settings)
    await op.start()
    await op.advance(60)
    assert (op.helm.statuses("web") == {}) is goes


@pytest.mark.parametrize("allowed", ["false", "true"])
async def test_a_modules_directory_that_is_empty_holds_back_what_would_be_purged_unless_that_is_meant(
    op: engine.Operator, allowed: str
) -> None:
    await with_releases(op, "web", "old")
    op.modules.remove("old")
    (op.root / "team").mkdir()
    op.settings |= {
        "modules_dirs": f"{op.modules.path}:{op.root / 'team'}",
        "allow_empty_modules": allowed,
    }
    await op.start()
    await op.advance(60)
    assert (op.helm.statuses("old") == {}) is (allowed == "true")
    (text,) = [text for text in removals(op) if "old" in text]
    stays = "release old stays for now: no module directory explains it, but something on disk is wrong: "
    assert text.startswith(stays) is (allowed == "false")


async def test_each_removal_is_told_once_with_its_reason(op: engine.Operator) -> None:
    await with_releases(op, "web", "db", "old")
    op.modules.remove("old")
    op.modules.add("web", {"values.yaml": "webEnabled: false\n"})
    op.helm.fail["uninstall"] = "no"
    await op.start()
    await op.advance(30)
    told = removals(op)
    assert [text for text in told if "deleted" in text or "purged" in text] == [
        f"module web is deleted: disabled by webEnabled in {op.modules.path}/010-web/values.yaml",
        "release old is purged: no module directory explains it, and an addon-operator made it",
    ]
    await op.edit(**{"global": {"size": 1}})
    assert removals(op) == []


async def test_a_module_that_lost_its_chart_keeps_its_release_and_is_told_until_it_is_back(
    op: engine.Operator,
) -> None:
    await with_releases(op, "web")
    op.modules.remove("web", "Chart.yaml")
    await op.start()
    (text,) = removals(op)
    assert text.startswith("release web stays as it is, because module web has no chart any more")
    assert op.row("web")["chartLost"] == text
    assert op.helm.statuses("web") == {1: "deployed"}


async def test_releases_that_cannot_be_listed_are_an_error_before_any_script_runs(
    op: engine.Operator,
) -> None:
    asked = op.enabled_script("web", lambda _: True)
    op.server.refuse(403, lambda asked: asked.is_list and asked.path.endswith("/secrets"), times=1)
    await op.start()
    assert "may not list" in failures(op)[0]
    assert asked == []


async def test_a_release_that_moves_to_another_namespace_goes_when_the_new_one_is_there(
    op: engine.Operator,
) -> None:
    await with_releases(op, "web")
    op.server.put(api_server.an_object("Namespace", "edge", None))
    op.modules.add("web", {"module.yaml": "namespace: edge\n"})
    op.helm.fail |= {"upgrade": "no", "install": "no"}
    op.settings["converge_on_failure"] = "continue"
    await op.start()
    await op.advance(30)
    assert op.helm.statuses("web") == {1: "deployed"}
    assert any("its release was addons/web and stays until" in error for _, error, _ in op.heard.failures)
    op.helm.fail.clear()
    await op.advance(60)
    assert op.helm.statuses("web", "edge")
    assert op.helm.statuses("web") == {}


async def test_a_release_that_the_setting_names_is_never_removed(op: engine.Operator) -> None:
    await with_releases(op, "web", "kept")
    op.modules.remove("kept")
    op.settings["helm_ignore_release"] = "kept"
    await op.start()
    await op.advance(60)
    await clocks.settle()
    assert op.helm.statuses("kept") == {1: "deployed"}
