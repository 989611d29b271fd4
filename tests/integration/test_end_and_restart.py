"""The operator ends, and another one takes up what it left."""

import pytest

from addon_operator.process import daemons, workspaces
from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration


def restart(
    site: operator_site.Site, before: operator_process.OperatorProcess
) -> operator_process.OperatorProcess:
    before.stop()
    return site.start().wait_ready()


def test_a_restart_takes_up_what_was_left_and_what_changed_while_the_operator_was_away(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true\napiEnabled: true\ngoneEnabled: true\nweb: {color: green}")
    web = site.module("010-web", {"color": "{{ .Values.web.color }}"})
    site.hook(web, "look.sh", {"onStartup": 1})
    api = site.module("020-api", {"color": "blue"})
    site.hook(api, "delete.sh", {"beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    gone = site.module("030-gone", {"color": "green"})
    first = site.start().wait_ready()
    site.config(web="note: nobody reads this")
    first.wait_metric(1, "helm_upgrades_skipped_total", module="web", by="manifest")
    first.wait_idle()
    before = site.helm_calls()
    second = restart(site, first)
    assert site.helm_calls() == before, "neither a restart nor an edit before it had an effect"
    assert site.revisions() == {"web": 1, "api": 1, "gone": 1}
    assert site.labels() == ["look.sh onStartup", "look.sh onStartup"], "hooks run at each start"
    assert second.metrics().total("helm_upgrades_skipped_total", by="inputs") == 3
    second.stop()
    assert [path for path in (site.root / "tmp").rglob("*") if path.is_file()] == []

    site.install("foreign", gone)
    gone.rename(site.root / "elsewhere")
    site.chart(web, {"color": "red"})
    site.config(apiEnabled="false")
    third = site.start().wait_ready()
    third.wait_until(lambda: site.deployed() == {"web": 2, "foreign": 1}, "all has changed")
    assert (site.data("web"), site.data("api"), site.data("gone")) == ({"color": "red"}, None, None)
    third.wait_logged("module api is deleted: ", f"ConfigMap {site.namespace}/addon-operator")
    deletions = [label for label in site.labels() if label.startswith("delete.sh")]
    assert deletions == ["delete.sh beforeDeleteHelm", "delete.sh afterDeleteHelm"]


def test_nothing_is_purged_when_there_is_no_module_at_all(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    site.start().wait_ready().stop()
    web.rename(site.root / "elsewhere")
    operator = site.start()
    line = operator.wait_logged("MODULES_DIR holds no module", "(web)", "ALLOW_EMPTY_MODULES=true")
    assert "next try in 5.0 s" in line
    assert not operator.get("/readyz").text.startswith("ok")
    assert site.command("plan").returncode == 1
    operator.stop()
    assert site.data("web") == {"color": "green"}
    assert site.revisions() == {"web": 1}
    operator = site.start(ALLOW_EMPTY_MODULES="true").wait_ready()
    operator.wait_idle()
    operator.wait_logged(
        "release web is purged: no module directory explains it, and an addon-operator made it"
    )
    operator.wait_until(lambda: site.revisions() == {}, "it is purged")
    operator.stop()


@pytest.mark.slow
def test_nothing_is_removed_by_a_start_with_a_wrong_directory(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    site.hook(web, "run.sh", {"beforeHelm": 1})
    site.start().wait_ready().stop()
    below = site.start("--modules-dir", str(web)).wait_end()
    assert below.exit_code == 1
    assert f"modules directory {web} is a module itself: it holds hooks/, templates/" in below.output
    for path in ("deploy/chart/operator/Chart.yaml", "charts/web/Chart.yaml", "api/values.yaml"):
        (site.root / path).parent.mkdir(parents=True)
        (site.root / path).touch()
    above = site.start("--modules-dir", str(web.parent.parent)).wait_end()
    assert above.exit_code == 1
    inside = site.start("--modules-dir", str(web / "templates")).wait_end()
    assert inside.exit_code == 1
    assert f"lies in module 010-web; set MODULES_DIR={web.parent}, or --modules-dir" in inside.output
    assert f"is one level too high: the modules are below it; set MODULES_DIR={web.parent}," in above.output
    web.joinpath("values.yaml").rename(web / "values.yml")
    renamed = site.start()
    renamed.wait_logged("values.yml is not read; rename it to values.yaml", "web")
    renamed.stop()
    assert site.revisions() == {"web": 1}
    project = site.root / "another" / "modules"
    project.mkdir(parents=True)
    web.rename(project / "010-other")
    (project / "010-other" / "values.yaml").write_text("otherEnabled: true")
    operator = site.start("--modules-dir", str(project))
    operator.wait_logged("MODULES_DIR holds other modules (other) than those that have releases here (web)")
    operator.wait_until(lambda: "ALLOW_EMPTY_MODULES" in operator.get("/readyz").text, "it is not ready")
    operator.stop()
    assert site.revisions() == {"web": 1}


@pytest.mark.slow
def test_a_killed_operator_is_taken_up_where_it_was(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    site.module("010-web", {"color": "green"})
    api = site.module("020-api", {"color": "green"})
    site.hook(api, "gate.sh", {"beforeHelm": 1}, f"[[ -e {site.root}/open ]] || exec sleep 20")
    first = site.start()
    first.wait_until(lambda: site.labels() == ["gate.sh beforeHelm"], "the second module runs")
    (left,) = (site.root / "tmp").iterdir()
    neighbour = workspaces.Workspace(site.root / "tmp", "run-")
    first.kill()
    (site.root / "open").touch()
    second = site.start().wait_ready()
    assert site.revisions() == {"web": 1, "api": 1}
    assert not left.exists(), "it holds values"
    assert neighbour.path.exists(), "its process lives"
    neighbour.close()
    second.stop()
    assert list((site.root / "tmp").iterdir()) == []


def test_sigterm_lets_a_running_hook_end_and_begins_no_new_step_of_a_module_run(
    site: operator_site.Site,
) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "slow.sh", {"onStartup": 1}, f"sleep 0.5; touch {site.root}/done")
    operator = site.start()
    operator.wait_until(site.labels, "the hook runs")
    operator.stop()
    assert (site.root / "done").exists()
    assert site.revisions() == {}


def test_sigterm_ends_a_hook_that_takes_longer_than_the_grace_period(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "slow.sh", {"onStartup": 1}, f"sleep 60 & echo $! > {site.root}/pid; wait")
    operator = site.start(SHUTDOWN_GRACE="500ms")
    pid = site.root / "pid"
    operator.wait_until(lambda: pid.exists() and pid.read_text().strip(), "the hook runs")
    operator.stop()
    sleeper, processes = int(pid.read_text()), daemons.ProcessTable()
    operator_process.wait_until(lambda: processes.identify(sleeper) is None, "the hook's child has ended")


@pytest.mark.slow
def test_sigterm_before_anything_is_ready_ends_it_cleanly(site: operator_site.Site) -> None:
    site.hook(site.global_hooks, "slow.sh", {"onStartup": 1}, "sleep 60")
    operator = site.start(SHUTDOWN_GRACE="0s")
    operator.wait_until(site.labels, "the hook runs")
    operator.stop()


def test_sigterm_while_a_global_hook_is_asked_for_its_configuration_ends_it_cleanly(
    site: operator_site.Site,
) -> None:
    asked = site.root / "asked"
    site.script(site.global_hooks / "hooks" / "stuck.sh", f"touch {asked}; exec sleep 60")
    operator = site.start()
    operator.wait_until(asked.exists, "the hook is asked")
    operator.stop()
