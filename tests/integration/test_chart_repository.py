"""Charts that are pulled from a registry, or from a repository with an ``index.yaml``."""

import json
import os
import pathlib
import re
import shutil
import signal
import time
from concurrent import futures
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import (
    chart_repositories,
    charts,
    crash_points,
    definitions,
    operator_process,
    operator_site,
    pulling,
    stock,
)

pytestmark = pytest.mark.integration


def test_a_chart_of_a_registry_is_pulled_once_and_used_offline_from_then_on(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    registry.push(archive)
    pulling.write_module(site, registry.address)
    operator = site.start().wait_ready().wait_idle()
    try:
        assert stock.seen(site) == {"replicas": 2}
        assert pulling.pulls(site) == 1
    finally:
        operator.stop()
    registry.stop()
    calls = len(site.helm_calls())
    operator = site.start().wait_ready().wait_idle()
    try:
        assert len(site.helm_calls()) == calls
        site.config(web="replicas: 3")
        operator_process.wait_until(lambda: stock.seen(site) == {"replicas": 3}, "the edit is released")
        assert "replicas" in site.command("module", "render", "web").stdout
    finally:
        operator.stop()
    assert (pulling.pulls(site), site.revisions()) == (1, {"web": 2})


def test_a_registry_that_is_away_holds_up_only_modules_whose_chart_is_not_in_the_cache(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    registry.push(archive)
    registry.stop()
    pulling.write_module(site, registry.address)
    pulling.write_neighbour(site)
    operator = site.start()
    try:
        operator_process.wait_until(lambda: "Ready" in pulling.state(site, "db"), "the other module runs")
        found = pulling.state(site)
        assert "Failed" in found
        assert f"cannot pull chart upstream 1.2.3 of {registry.address}: " in found
        assert "refuses connections; check that the repository can be reached from here" in found
        assert (site.revisions(), pulling.cached(site)) == ({"db": 1}, [])
    finally:
        operator.kill()


@pytest.mark.slow
def test_a_module_runs_as_soon_as_its_chart_is_there(
    site: operator_site.Site, gate: chart_repositories.Gate
) -> None:
    pulling.write_module(site, gate.address)
    pulling.write_neighbour(site)
    operator = site.start()
    try:
        operator_process.wait_until(lambda: gate.requests, "the pull hangs")
        operator_process.wait_until(lambda: "Ready" in pulling.state(site, "db"), "the other module runs")
        assert "still being pulled; the module runs when it is there" in pulling.state(site)
        gate.opened.set()
        operator.wait_ready()
        assert site.revisions() == {"web": 1, "db": 1}
        assert pulling.pulls(site) == 1
    finally:
        operator.kill()


@pytest.mark.slow
def test_a_pull_that_is_killed_leaves_nothing_that_is_used(
    site: operator_site.Site, gate: chart_repositories.Gate
) -> None:
    pulling.write_module(site, gate.address)
    operator = site.start()
    operator_process.wait_until(lambda: gate.requests, "the pull hangs")
    operator.kill()
    assert pulling.cached(site) == []
    gate.opened.set()
    site.start().wait_ready().wait_idle().stop()
    assert (site.revisions(), len(pulling.cached(site))) == ({"web": 1}, 1)


_CLAIM: Final = (
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: NAME}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
)


def test_a_new_version_is_pulled_and_upgrades_and_plan_says_so_before(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    """What holds data stays, when the next version has it no more and when the module is disabled."""
    of_both = {"templates/data.yaml": _CLAIM.replace("NAME", "data")}
    of_first = {**of_both, "templates/old.yaml": _CLAIM.replace("NAME", "old")}
    for version, files in (("1.2.3", of_first), ("2.0.0", of_both)):
        registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, version, files))
    pulling.write_module(site, registry.address)
    site.start().wait_ready().wait_idle().stop()
    claims = {name: site.get("pvc", name)["metadata"]["uid"] for name in ("data", "old")}
    pulling.write_module(site, registry.address, version="2.0.0")
    assert site.command("values", "check").returncode == 0
    assert pulling.pulls(site) == 1
    planned = site.command("plan", "-o", "json")
    assert json.loads(planned.stdout)["modules"], "no word of the pull is in the way"
    assert (pulling.pulls(site), planned.returncode) == (2, 3), planned
    assert "upgrade" in planned.stdout
    assert "PersistentVolumeClaim" in planned.stdout
    registry.stop()
    operator = site.start().wait_ready().wait_idle()
    data = site.data("web-seen")
    assert data is not None
    assert (data["version"], site.revisions(), pulling.pulls(site)) == ("2.0.0", {"web": 2}, 2)
    site.config(webEnabled="false")
    operator.wait_until(lambda: site.revisions() == {} and site.data("web-seen") is None, "it is removed")
    operator.stop()
    assert {name: site.get("pvc", name)["metadata"]["uid"] for name in claims} == claims


@pytest.mark.slow
def test_a_new_version_is_pulled_while_the_operator_runs(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    archive: pathlib.Path,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    site.first_retry = operator_site.SOON
    registry.push(archive)
    pulling.write_module(site, registry.address)
    operator = site.start(WATCH_MODULES="true").wait_ready().wait_idle()
    try:
        operator.wait_logged("chart upstream 1.2.3 of", "pulled")
        pulling.write_module(site, registry.address, version="2.0.0")
        operator_process.wait_until(
            lambda: "Failed" in pulling.state(site), "the new version is not there yet"
        )
        assert "does not have it in version 2.0.0, but in 1.2.3" in pulling.state(site)
        assert "correct chart.name or chart.version in module.yaml" in pulling.state(site)
        assert site.revisions() == {"web": 1}
        registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, "2.0.0"))
        operator_process.wait_until(lambda: site.deployed() == {"web": 2}, "the new version is released")
    finally:
        operator.stop()


@pytest.mark.slow
def test_two_processes_may_pull_into_one_cache_at_the_same_time(
    site: operator_site.Site, gate: chart_repositories.Gate
) -> None:
    pulling.write_module(site, gate.address)
    shared = str(site.root / "shared")
    with futures.ThreadPoolExecutor() as threads:
        plans = [threads.submit(site.command, "plan", CHART_CACHE_DIR=shared) for _ in range(2)]
        operator_process.wait_until(lambda: len(gate.requests) == 2, "both pull")
        gate.opened.set()
        assert [plan.result().returncode for plan in plans] == [3, 3]
    (chart,) = (site.root / "shared").iterdir()
    assert (chart / "Chart.yaml").is_file()


@pytest.mark.slow
def test_definitions_of_a_pulled_chart_are_updated_with_its_version(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    group = f"pulled.{site.namespace}.example.com"
    more = {"crds/things.yaml": definitions.things(group)}
    registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, more=more))
    pulling.write_module(site, registry.address)
    changed = definitions.things(group).replace("plural: things,", "plural: things, shortNames: [th],")
    more = {"crds/things.yaml": changed}
    registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, "2.0.0", more=more))
    operator = site.start(WATCH_MODULES="true").wait_ready().wait_idle()
    try:
        assert "shortNames" not in site.get("crd", f"things.{group}")["spec"]["names"]
        pulling.write_module(site, registry.address, version="2.0.0")
        operator_process.wait_until(lambda: site.deployed() == {"web": 2}, "the version is released")
        assert site.get("crd", f"things.{group}")["spec"]["names"]["shortNames"] == ["th"]
    finally:
        operator.stop()


@pytest.mark.slow
def test_a_kill_while_a_chart_is_unpacked_leaves_nothing_for_ever_and_what_is_used_stays(
    site: operator_site.Site, registry: chart_repositories.Registry, archive: pathlib.Path
) -> None:
    registry.push(archive)
    pulling.write_module(site, registry.address)
    crash = site.root / "crash"
    crash.mkdir()
    dying = site.start_with((), crash_points.prelude(crash, "kill_while_unpacking", site.environment()))
    operator_process.wait_until(lambda: pulling.cached(site), "the chart is unpacked")
    assert dying.wait_end().exit_code == -signal.SIGKILL
    (half,) = pulling.cached(site)
    assert half.startswith(".pull-"), "nothing that anybody uses"
    cache = site.root / "tmp" / "charts"

    def age(path: pathlib.Path, seconds: float) -> None:
        then = time.time() - seconds
        os.utime(path, (then, then))

    age(cache / half, 7200)
    site.start().wait_ready().wait_idle().stop()
    (chart,) = pulling.cached(site)
    assert (site.revisions(), pulling.pulls(site)) == ({"web": 1}, 2)
    assert list((site.root / "tmp").rglob("*pull-*")) == []
    shutil.copytree(cache / chart, cache / "unused-1.0.0")
    for name, days in ((chart, 90), ("unused-1.0.0", 31)):
        age(cache / name, days * 24 * 3600)
    operator = site.start().wait_ready().wait_idle()
    try:
        operator.wait_logged("unused-1.0.0 removed: no operator has used it for long")
        assert pulling.cached(site) == [chart]
        assert pulling.pulls(site) == 2
    finally:
        operator.stop()


@pytest.mark.slow
def test_the_schema_of_a_pulled_chart_checks_edits_plans_and_files(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    more = {"values.schema.json": json.dumps({"properties": {"replicas": {"minimum": 1}}})}
    registry.push(chart_repositories.package(tmp_path / "upstream", devcluster.helm, more=more))
    pulling.write_module(site, registry.address)
    site.config(web="replicas: 0")
    told = "web.replicas: must be at least 1, not 0"
    assert told in site.command("plan").stdout
    assert pulling.pulls(site) == 1
    site.config(web="replicas: 3")
    operator = site.start().wait_ready().wait_idle()
    try:
        site.config(web="replicas: 0")
        operator.wait_logged(told)
        assert stock.seen(site) == {"replicas": 3}
    finally:
        operator.stop()
    (site.modules / "010-web" / "values.yaml").write_text("webEnabled: true\nweb: {replicas: 0}")
    checked = site.command("values", "check")
    assert told in checked.stdout + checked.stderr
    assert pulling.pulls(site) == 1


@pytest.mark.slow
def test_the_example_of_a_public_chart_is_off_and_installs_it_when_it_is_switched_on(
    site: operator_site.Site,
    registry: chart_repositories.Registry,
    devcluster: handle.DevCluster,
    tmp_path: pathlib.Path,
) -> None:
    example = charts.ROOT / "modules" / "040-podinfo"
    assert "podinfoEnabled: false" in (example.parent / "values.yaml").read_text()
    module = site.modules / example.name
    shutil.copytree(example, module)
    text = (module / "module.yaml").read_text()
    assert chart_repositories.PODINFO_ADDRESS in text
    (module / "module.yaml").write_text(text.replace(chart_repositories.PODINFO_ADDRESS, registry.address))
    version = re.search(r"version: (\S+)", text)
    assert version is not None
    registry.push(chart_repositories.podinfo(tmp_path / "public", devcluster.helm, version[1]))
    site.config(podinfoEnabled="true", podinfo="replicaCount: 3")
    operator = site.start().wait_ready().wait_idle()
    try:
        spec = site.get("deployment", "podinfo")["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        assert (spec["replicas"], container["env"][0]["value"]) == (3, "Installed by addon-operator")
    finally:
        operator.stop()
