"""Nothing is removed that nobody asked to remove, and what is removed is told."""

import pathlib

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration


def test_a_start_with_a_wrong_directory_removes_nothing(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "look.sh", {"beforeHelm": 1})
    site.module("020-api", {"color": "green"})
    site.start().wait_ready().stop()
    before = {"web": 1, "api": 1}

    # One level too deep.
    ended = site.start(MODULES_DIR=str(web)).wait_end()
    assert ended.exit_code == 1
    assert f"modules directory {web} is a module itself: it has Chart.yaml" in ended.output
    assert f"name the directory that holds the modules, {site.modules}, with MODULES_DIR" in ended.output
    assert site.command("plan", MODULES_DIR=str(web)).returncode == 1

    # Directories of a module without a file that says so, and another project.
    for directory, name in ((web / "hooks", "hooks"), (None, "other")):
        other = site.root / f"project-{name}"
        other.mkdir()
        if directory is None:
            (other / "010-other").mkdir()
            site.chart(other / "010-other", {"color": "blue"})
            (other / "values.yaml").write_text("otherEnabled: true")
        else:
            (other / name).symlink_to(directory)
        operator = site.start(MODULES_DIR=str(other))
        line = operator.wait_logged(f"no module in {other} ({name}) has a release", "(api, web)")
        assert "nothing is installed or removed" in line
        assert "ALLOW_EMPTY_MODULES=true" in line
        assert operator.get("/readyz").status == 503
        operator.stop()
        assert site.revisions() == before

    site.start().wait_ready().stop()
    assert site.revisions() == before


def test_a_purge_and_a_delete_are_warnings_and_events(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    site.module("010-web", {"color": "green"})
    api = site.module("020-api", {"color": "green"})
    site.config(**{"global": "a: 1"})
    site.start().wait_ready().stop()
    api.rename(site.root / "elsewhere")
    operator = site.start().wait_ready().wait_idle()
    assert site.revisions() == {"web": 1}
    line = operator.wait_logged("release api is purged: no module directory explains it")
    assert "level=warn" in line
    selector = "reason=ReleasePurged,type=Warning,involvedObject.kind=ConfigMap"
    (event,) = operator.wait_until(lambda: site.objects("events", fieldSelector=selector), "an Event")
    assert event["message"].startswith("Release api is purged: no module directory explains it, and")
    assert "Release api is purged" in site.kubectl("describe", "configmap", "addon-operator")
    site.config(webEnabled="false")
    operator.wait_until(lambda: site.revisions() == {}, "the module is deleted")
    assert "level=warn" in operator.wait_logged("module web is deleted: ")
    selector = selector.replace("ReleasePurged", "ModuleDeleted")
    operator.wait_until(lambda: site.objects("events", fieldSelector=selector), "another Event")
    operator.stop()


def test_modules_that_come_back_are_installed_again_and_a_refused_change_purges_nothing(
    site: operator_site.Site,
) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    db = site.module("020-db", {"color": "green"}, values="dbEnabled: true")
    operator = site.start(WATCH_MODULES="yes").wait_ready().wait_idle()

    # It goes and comes back as it was.
    away = move(db, site.root / "away")
    operator.wait_until(lambda: site.revisions() == {"web": 1}, "the release is purged")
    assert "level=warn" in operator.wait_logged(f"module db: {db} is gone")
    operator.wait_idle()
    move(away, db)
    operator.wait_until(lambda: site.data("db"), "it is installed again")
    operator.wait_logged("new on disk: db")
    assert site.revisions() == {"web": 1, "db": 1}
    operator.wait_idle()

    # Renamed, and wrong: the old release stays until the new directory can be read.
    new = move(web, web.with_name("010-shop"))
    (new / "values.yaml").write_text("shopEnabled: true\nshop: [")
    line = operator.wait_logged("release web stays for now: no module directory explains it, but")
    assert "010-shop/values.yaml, line" in line
    assert site.data("web") == {"color": "green"}
    site.config(dbEnabled="true", db="note: another converge")
    operator.wait_logged("module run ended", "module=db activation=ConfigMapChanged")
    assert site.revisions()["web"] == 1
    site.chart(new, {"color": "green"})
    (new / "values.yaml").write_text("shopEnabled: true")
    operator.wait_until(lambda: set(site.revisions()) == {"shop", "db"}, "the new one takes its place")
    operator.wait_idle()

    # All of them go, as with a mount, and one comes back.
    aways = [move(path, site.root / f"away-{path.name}") for path in (new, db)]
    operator.wait_logged("MODULES_DIR holds no module", "(db, shop)")
    move(aways[0], new)
    operator.wait_logged("new on disk: shop")
    operator.wait_until(lambda: set(site.revisions()) == {"shop"}, "it is the only one that is meant now")
    operator.wait_ready()
    operator.stop()


def test_a_second_operator_waits_until_the_first_one_has_ended(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "look.sh", {"onStartup": 1})
    first = site.start(ADDON_OPERATOR_POD="first").wait_ready()
    second = site.start(ADDON_OPERATOR_POD="second", DEBUG_UNIX_SOCKET=str(site.root / "second.socket"))
    line = second.wait_logged(f"another operator works for ConfigMap {site.namespace}/addon-operator: first;")
    assert "level=warn" in line
    assert "first leads" in second.get("/status/converge").text
    assert site.labels() == ["look.sh onStartup"]

    assert site.command("plan").returncode == 0, "who only asks does not wait"

    first.stop()
    runs(site, second, 2)
    second.kill()
    third = site.start()
    runs(site, third, 3)
    third.wait_ready()
    assert "another operator" not in third.log, "one that was killed is not waited for"
    third.stop()
    assert site.revisions() == {"web": 1}


def move(path: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    path.rename(to)
    return to


def runs(site: operator_site.Site, operator: operator_process.OperatorProcess, count: int) -> None:
    operator.wait_until(lambda: len(site.labels()) == count, "it works")
