"""Modules that change on disk while the operator runs, with ``WATCH_MODULES=yes``."""

import shutil

import pytest

from tests.integration import module_objects, operator_site

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_changes_on_disk_are_applied_one_module_at_a_time(site: operator_site.Site) -> None:
    web = site.module(
        "010-web", {"size": '"{{ .Values.web.size }}"'}, values="webEnabled: true\nweb: {size: 1}"
    )
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    site.hook(web, "before.sh", {"beforeHelm": 1})
    site.hook(db, "before-db.sh", {"beforeHelm": 1})
    operator = site.start(WATCH_MODULES="yes").wait_ready().wait_idle()
    converges = operator.metrics().total("convergence_total")

    # Values, chart and hooks: a run of that module alone.
    (web / "values.yaml").write_text("webEnabled: true\nweb: {size: 2}")
    operator.wait_until(lambda: site.data("web") == {"size": "2"}, "the new values are released")
    site.chart(web, {"size": '"{{ .Values.web.size }}"', "more": '"yes"'})
    operator.wait_until(lambda: (site.data("web") or {}).get("more"), "the new chart is released")
    site.hook(web, "start.sh", {"onStartup": 1})
    operator.wait_until(lambda: "start.sh onStartup" in site.labels(), "the new hook runs")
    operator.wait_idle()
    assert operator.metrics().total("convergence_total") == converges
    assert site.labels().count("before-db.sh beforeHelm") == 1

    # What is wrong stays as it was, and the rest goes on.
    (web / "values.yaml").write_text("webEnabled: true\nweb: [")
    assert "values.yaml, line" in operator.wait_logged("is refused, and", "010-web")
    operator.wait_until(
        lambda: "010-web/values.yaml, line" in operator.get("/readyz?verbose").text, "people see it"
    )
    # So does what came new and is wrong, and what fails.
    shop = site.module("030-shop", {"a": "b"}, values="shopEnabled: true\nshop: [")
    operator.wait_until(
        lambda: "030-shop/values.yaml, line" in operator.get("/readyz?verbose").text, "people see it, too"
    )
    assert "module shop " in operator.get("/readyz?verbose").text
    shutil.rmtree(shop)
    site.config(web="colour: red")
    operator.wait_until(
        lambda: {"size": 2, "colour": "red"} in [run.values.get("web") for run in site.runs()],
        "the last good values count",
    )
    (web / "values.yaml").write_text("webEnabled: true\nweb: {size: 3}")
    operator.wait_until(lambda: (site.data("web") or {}).get("size") == "3", "the mended file counts")
    operator.stop()


@pytest.mark.slow
def test_module_directories_come_and_go(site: operator_site.Site) -> None:
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    site.hook(db, "tick.sh", {"schedule": [{"crontab": "* * * * * *", "name": "tick"}]})
    site.config(laterEnabled="true", later="size: 5")
    operator = site.start(WATCH_MODULES="yes").wait_ready().wait_idle()
    operator.wait_until(lambda: "tick.sh tick" in site.labels(), "the schedule ticks")

    later = site.module("030-later", {"size": '"{{ .Values.later.size }}"'})
    site.hook(later, "before.sh", {"beforeHelm": 1})
    operator.wait_until(lambda: site.data("later") == {"size": "5"}, "the new module is released")
    assert operator.metrics().total("module_enabled", module="later") == 1
    operator.wait_idle()

    shutil.rmtree(db)
    operator.wait_until(lambda: "db" not in site.revisions(), "the release of the gone module is purged")
    operator.wait_idle()
    assert site.data("db") is None
    ticks = site.labels().count("tick.sh tick")
    assert operator.metrics().total("module_enabled", module="db") == 0
    # A schedule of a gone module ticks no more: another run of the other module gives it its second.
    site.config(later="size: 6")
    operator.wait_until(lambda: site.data("later") == {"size": "6"}, "the other module goes on")
    assert site.labels().count("tick.sh tick") == ticks
    assert "Traceback" not in operator.log
    operator.stop()


def test_templates_that_are_written_anew_delete_nothing(site: operator_site.Site) -> None:
    web = site.module(
        "010-web", {"color": "{{ .Values.web.color }}"}, values="webEnabled: true\nweb: {color: red}"
    )
    site.first_retry = operator_site.SOON
    operator = site.start(WATCH_MODULES="yes", ABSENCE="120s").wait_ready()
    before = site.get("configmap", "web")["metadata"]["uid"]
    away = (web / "templates").rename(site.root / "away")
    site.config(web="color: blue")
    operator.wait_logged("010-web/templates is gone: put it back")
    away.rename(web / "templates")
    operator.wait_until(lambda: site.data("web") == {"color": "blue"}, "the edit is applied")
    assert site.get("configmap", "web")["metadata"]["uid"] == before
    operator.stop()


@pytest.mark.slow
def test_a_module_that_goes_and_comes_back_is_installed_again(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    site.module("020-db", {"color": "green"}, values="dbEnabled: true")
    site.config(web="color: red")
    operator = site.start(WATCH_MODULES="yes").wait_ready()
    away = web.rename(site.root / "away")
    operator.wait_until(lambda: "web" not in site.revisions(), "its release is purged")
    operator.wait_logged("level=warn", "release web is purged: no module directory explains it")
    operator.wait_until(
        lambda: any(
            event["reason"] == "Removed" and event["message"].startswith("Release web is purged: ")
            for event in site.objects("events")
        ),
        "an Event on the ConfigMap says so",
    )
    away.rename(web)
    operator.wait_until(lambda: "web" in site.revisions(), "it is back")
    operator.wait_logged("changed on disk and reloaded: web")


@pytest.mark.slow
def test_a_change_that_is_refused_purges_nothing(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    site.module("020-db", {"color": "green"}, values="dbEnabled: true")
    operator = site.start(WATCH_MODULES="yes").wait_ready()
    renamed = web.rename(web.parent / "010-shop")
    (renamed / "values.yaml").write_text("shopEnabled: true\nshop: [")
    operator.wait_logged("a change on disk is refused", "010-shop")
    operator.wait_logged("run of the module failed: module shop: ")
    assert site.revisions() == {"web": 1, "db": 1}
    operator.wait_until(lambda: site.find("module", "web") is None, "its object is gone")
    (renamed / "values.yaml").write_text("webEnabled: true\n")
    renamed.rename(web)
    operator.wait_logged("changed on disk and reloaded: web")
    modules = module_objects.Modules(site, site.cluster)
    modules.wait(operator, "web", Healthy="True", Drifted="False")
    web.rename(renamed)
    (renamed / "values.yaml").write_text("shopEnabled: true\n")
    operator.wait_until(lambda: site.deployed() == {"shop": 1, "db": 1}, "the rename is taken in")
