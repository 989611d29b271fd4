"""Nothing is removed that nobody asked to remove, and what is removed is told."""

import pathlib

import pytest

from tests.integration import definitions, operator_process, operator_site

pytestmark = pytest.mark.integration

CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ .Release.Name }}-data"}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
PASSWORD = """\
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-password"}
stringData: {password: {{ randAlphaNum 16 | quote }}}
"""


def test_a_purge_and_a_delete_are_warnings_and_events(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    web, group = site.module("010-web", {"color": "green"}), f"{site.namespace}.example.com"
    (web / "templates" / "claim.yaml").write_text(CLAIM)
    (web / "templates" / "things.yaml").write_text(definitions.definition(group, "things", "v1"))
    api = site.module("020-api", {"color": "green"})
    (api / "module.yaml").write_text("removal: {data: delete}\n")
    (api / "templates" / "claim.yaml").write_text(f"{CLAIM}---\n{PASSWORD}")
    # A chart as its authors publish it.
    (api / "chart").mkdir()
    for part in ("Chart.yaml", "templates"):
        (api / part).rename(api / "chart" / part)
    site.config(**{"global": "a: 1"})
    site.start().wait_ready().stop()
    kind = site.get("crd", f"things.{group}")["metadata"]["uid"]
    # The chart moves its definition to crds/, and another name is no wish that its data goes.
    (web / "crds").mkdir()
    (web / "templates" / "things.yaml").rename(web / "crds" / "things.yaml")
    api.rename(site.modules / "030-backend")
    site.values("webEnabled: true\nbackendEnabled: true")
    operator = site.start(REMOVAL_DATA="delete").wait_ready().wait_idle()
    operator.wait_until(lambda: site.revisions() == {"web": 2, "backend": 1}, "it is purged")
    assert "deletionTimestamp" not in site.get("pvc", "api-data")["metadata"]
    assert site.get("secret", "api-password")["metadata"]["labels"]["addon-operator.io/kept-from"] == "api"
    operator.wait_logged("its directory is gone while another module is new")
    line = operator.wait_logged("release api is purged: no module directory explains it")
    assert "level=warn" in line
    selector = "reason=Removed,type=Warning,involvedObject.kind=ConfigMap"
    (event,) = operator.wait_until(lambda: site.objects("events", fieldSelector=selector), "an Event")
    assert event["message"].startswith("Release api is purged: no module directory explains it, and")
    assert "Release api is purged" in site.kubectl("describe", "configmap", "addon-operator")
    site.config(webEnabled="false")
    operator.wait_until(lambda: site.revisions() == {"backend": 1}, "the module is deleted")
    assert "level=warn" in operator.wait_logged("module web is deleted: ")
    operator.wait_until(
        lambda: len(site.objects("events", fieldSelector=selector)) == 2, "the deletion is an Event, too"
    )
    operator.wait_until(lambda: site.find("pvc", "web-data") is None, "its data goes, as the setting says")
    assert site.get("crd", f"things.{group}")["metadata"]["uid"] == kind
    operator.stop()


def test_a_directory_that_is_missing_at_a_start_has_its_release_until_a_second_look(
    site: operator_site.Site,
) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    site.module("020-db", {"color": "green"}, values="dbEnabled: true")
    site.start().wait_ready().stop()
    before = site.get("configmap", "web")["metadata"]["uid"]
    away = move(web, site.root / "away")
    operator = site.start(WATCH_MODULES="yes", ABSENCE="10m").wait_ready().wait_idle()
    assert site.deployed() == {"web": 1, "db": 1}, "nothing waits for the second look"
    move(away, web)
    operator.wait_logged("changed on disk and reloaded: web")
    operator.wait_idle().wait_ready()
    assert site.deployed() == {"web": 1, "db": 1}
    assert site.get("configmap", "web")["metadata"]["uid"] == before
    operator.stop()


@pytest.mark.slow
def test_what_a_change_hides_is_removed_when_it_is_right_and_all_modules_may_come_back(
    site: operator_site.Site,
) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    db = site.module("020-db", {"color": "green"}, values="dbEnabled: true")
    operator = site.start(WATCH_MODULES="yes").wait_ready().wait_idle()

    # Something else is wrong while a module goes.
    good = (db / "values.yaml").read_text()
    (db / "values.yaml").write_text("dbEnabled: true\ndb: [")
    away = move(web, site.root / "away")
    assert "level=warn" in operator.wait_logged(f"module web: {web} is gone")
    line = operator.wait_logged("release web stays for now: no module directory explains it, but")
    assert f"{db}/values.yaml, line" in line
    assert site.data("web") == {"color": "green"}
    (db / "values.yaml").write_text(good)
    operator.wait_until(lambda: set(site.revisions()) == {"db"}, "it is purged then")
    operator.wait_idle()

    # The only one goes, as with a mount, and comes back.
    aside = move(db, site.root / "aside")
    operator.wait_logged("MODULES_DIR holds no module", "(db)")
    move(aside, db)
    operator.wait_logged("changed on disk and reloaded: db")
    operator.wait_idle().wait_ready()
    assert site.revisions() == {"db": 1}
    move(away, web)
    operator.wait_until(lambda: set(site.revisions()) == {"db", "web"}, "it is back, too")
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
