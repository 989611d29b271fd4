"""What modules require: the version of Kubernetes, APIs, and other modules."""

import json
import pathlib

import pytest

from addon_operator.devcluster import handle
from tests.integration import definitions, module_objects, operator_process, operator_site, requiring

pytestmark = pytest.mark.integration


def thing(group: str) -> str:
    return f"apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: {{{{ .Release.Name }}}}}}\n"


def noting(site: operator_site.Site, directory: pathlib.Path, until: str = "") -> None:
    """Let the module note when its run, and its removal, begin and end.

    Its run lasts ``until`` that has been noted, and half a minute at most.
    """
    name, notes = directory.name.lstrip("0123456789-"), site.root / "intervals"
    waits = f"for _ in {{1..300}}; do grep -q -- '{until}' {notes} && break; sleep 0.1; done"
    for binding, hook, between in (("beforeHelm", "run", waits), ("afterDeleteHelm", "delete", "sleep 0.1")):
        body = f"echo {hook}-{name}+ >> {notes}\n{between}\necho {hook}-{name}- >> {notes}"
        site.hook(directory, f"{hook}.sh", {binding: 1}, body)


def noted(site: operator_site.Site) -> list[str]:
    path = site.root / "intervals"
    return path.read_text().split() if path.exists() else []


def test_what_the_cluster_lacks_disables_a_module_and_everybody_says_so(site: operator_site.Site) -> None:
    requiring.module(site, "010-old", 'kubernetes: "<1.20"')
    requiring.module(site, "010-new", 'kubernetes: ">= 1.30, <2"')
    requiring.module(site, "010-shop", "apis: [shops.example.com/v1]")
    requiring.module(site, "020-till", "modules: [shop]")
    requiring.module(site, "030-front", "modules: [till, new]")
    operator = site.start().wait_ready().wait_idle()
    try:
        version = json.loads(site.request("GET", "/version").text)["gitVersion"]
        lacking = "requires the API shops.example.com/v1, which the cluster does not serve"
        expected = {
            "old": f"requires Kubernetes <1.20, and the cluster has {version}",
            "shop": lacking,
            "till": f"requires shop, which is disabled: {lacking}",
            "front": f"requires till, which requires shop, which is disabled: {lacking}",
        }
        found = site.module_rows()
        assert {name: row["reason"] for name, row in found.items() if name != "new"} == expected
        assert {name for name, row in found.items() if row["enabled"]} == {"new"} == set(site.revisions())
        plan = requiring.planned(site)
        assert {name: plan[name]["enabledReason"] for name in expected} == expected
        wide = site.command("module", "list", "-o", "wide").stdout
        assert "REQUIRES" in wide
        assert "Kubernetes >= 1.30, <2" in wide
        assert expected["front"] in operator.get("/").text.replace("&lt;", "<")

        def is_told() -> bool:
            modules = site.listed("module")
            told = {each["metadata"]["name"]: json.dumps(each.get("status")) for each in modules}
            return all(reason in told.get(name, "") for name, reason in expected.items())

        operator.wait_until(is_told, "Module objects have the reasons")
    finally:
        operator.stop()


def test_an_api_that_comes_enables_the_module_and_one_that_goes_does_not_remove_it(
    site: operator_site.Site,
) -> None:
    group = f"{site.namespace}.example.com"
    shop = requiring.module(site, "010-shop", f"apis: [{group}/v1]")
    # What Helm removes in the end is of a kind that is gone then.
    (shop / "templates" / "thing.yaml").write_text(thing(group))
    site.hook(shop, "life.sh", {"beforeDeleteHelm": 1})
    requiring.module(site, "020-other")
    operator = site.start().wait_ready().wait_idle()
    try:
        assert site.revisions() == {"other": 1}
        site.apply(definitions.things(group))
        operator_process.wait_until(lambda: "shop" in site.revisions(), "the module is enabled")
        requiring.wait_for(site, "shop", "Ready")
        operator.wait_idle()
        calls = len(site.helm_calls())
        operator.stop()
        operator = site.start().wait_ready().wait_idle()
        assert len(site.helm_calls()) == calls, "nothing is run at a restart"
        assert site.labels() == []
        # A sync tool replaces it, and what it defines is there again within a second.
        site.delete("crd", f"things.{group}")
        site.apply(definitions.things(group))
        operator.wait_metric(1, "resources_healed_total", module="shop")
        operator.wait_idle()
        assert site.revisions() == {"shop": 1, "other": 1}
        assert len(site.helm_calls()) == calls
        site.delete("crd", f"things.{group}")
        lacking = f"requires the API {group}/v1, which the cluster does not serve"
        requiring.wait_for(site, "shop", "Ready", lacking)
        operator.wait_until(lambda: lacking in requires_of(site, "shop"), "its Module says so")
        assert site.revisions() == {"shop": 1, "other": 1}
        site.config(shopEnabled="false")
        operator_process.wait_until(lambda: "shop" not in site.revisions(), "it goes when it is disabled")
        assert site.labels() == ["life.sh beforeDeleteHelm"]
        assert site.revisions() == {"other": 1}
    finally:
        operator.stop()


def requires_of(site: operator_site.Site, module: str) -> str:
    """The message of the condition if it is False."""
    jsonpath = '{.status.conditions[?(@.type=="Requires")]}'
    found = json.loads(site.kubectl("get", "module", module, f"--output=jsonpath={jsonpath}"))
    return str(found["message"]) if found["status"] == "False" else ""


@pytest.mark.slow
@pytest.mark.parametrize("place", [pytest.param("crds", marks=pytest.mark.slow), "templates"])
def test_an_api_that_an_earlier_module_brings_enables_a_later_one(
    site: operator_site.Site, place: str
) -> None:
    group = f"{site.namespace}.example.com"
    certs = requiring.module(site, "010-certs")
    (certs / place).mkdir(exist_ok=True)
    (certs / place / "crd.yaml").write_text(definitions.things(group))
    shop = requiring.module(site, "020-shop", f"apis: [{group}/v1]")
    (shop / "templates" / "thing.yaml").write_text(thing(group))
    site.hook(shop, "life.sh", {"beforeDeleteHelm": 1})
    requiring.module(site, "030-till", "modules: [shop]")
    lacking = f"requires the API {group}/v1, which the cluster does not serve"
    expected = lacking + (" yet: enabled once it does; module certs brings it" if place == "crds" else "")
    plan = requiring.planned(site)
    assert plan["shop"]["enabledReason"] == expected
    assert plan["till"]["enabledReason"] == f"requires shop, which is disabled: {expected}"
    operator = site.start().wait_ready()
    everything = {"certs": 1, "shop": 1, "till": 1}
    try:
        operator_process.wait_until(lambda: site.revisions() == everything, "all are installed", deadline=20)
        operator.wait_idle()
        if place == "crds":
            site.delete("crd", f"things.{group}")
            operator.wait_metric(1, "resources_healed_total", module="shop")
            operator.wait_idle()
    finally:
        operator.stop()
    if place == "crds":
        site.delete("crd", f"things.{group}")
        assert requiring.planned(site)["shop"]["enabled"]
    calls = len(site.helm_calls())
    operator = site.start().wait_ready().wait_idle()
    try:
        operator.wait_until(lambda: site.listed(f"things.{group}"), "the object is there again")
        assert len(site.helm_calls()) == calls
        assert site.revisions() == everything
        assert site.labels() == [], "it was never deleted"
    finally:
        operator.stop()


def test_required_modules_are_ready_first_and_others_of_the_order_run_side_by_side(
    site: operator_site.Site,
) -> None:
    """a requires z, both of order 10; b of order 10 requires nothing, and ends after a."""
    noting(site, requiring.module(site, "010-a", "modules: [z]"))
    noting(site, requiring.module(site, "010-b"), until="run-a-")
    noting(site, requiring.module(site, "010-z"), until="run-b+")
    noting(site, requiring.module(site, "020-last", "modules: [a]"))
    plan = requiring.planned(site)
    assert [name for name, row in plan.items() if row["enabled"]] == ["b", "z", "a", "last"]
    assert plan["a"]["waitsFor"] == ["z"]
    assert "waits for z" in site.command("plan").stdout
    operator = site.start(MODULES_PARALLELISM="3").wait_ready().wait_idle()
    try:
        found = noted(site)
        place = {what: found.index(what) for what in found}
        assert place["run-z-"] < place["run-a+"] < place["run-a-"] < place["run-b-"] < place["run-last+"]
        assert place["run-b+"] < place["run-z-"]
        site.config(z="color: blue")
        operator_process.wait_until(lambda: site.data("z") == {"color": "blue"}, "the edit is there")
        operator.wait_idle()
        assert noted(site)[len(found) :] == ["run-z+", "run-z-"], "what requires it does not run again"
        site.config(zEnabled="false")
        operator_process.wait_until(lambda: set(site.revisions()) == {"b"}, "all that need it are gone")
        operator.wait_idle()
        assert [line for line in noted(site) if line.startswith("delete")] == [
            "delete-last+", "delete-last-", "delete-a+", "delete-a-", "delete-z+", "delete-z-"
        ]  # fmt: skip
        assert site.module_rows()["last"]["reason"].startswith(
            "requires a, which requires z, which is disabled by zEnabled in ConfigMap "
        )
    finally:
        operator.stop()


@pytest.mark.parametrize("on_failure", [pytest.param("wait", marks=pytest.mark.slow), "continue"])
def test_what_requires_a_failing_module_waits_and_others_go_on(
    site: operator_site.Site, devcluster: handle.DevCluster, on_failure: str
) -> None:
    shown = module_objects.Modules(site, devcluster)
    site.first_retry = operator_site.SOON
    requiring.module(site, "010-a", "modules: [z]")
    requiring.module(site, "010-b")
    site.hook(requiring.module(site, "010-z"), "fail.sh", {"beforeHelm": 1}, f"test -e {site.root}/fixed")
    requiring.module(site, "020-last", "modules: [a]")
    requiring.module(site, "020-free")
    # What is of a higher order waits, too, unless the setting says otherwise.
    free = {"b", "free"} if on_failure == "continue" else {"b"}
    operator = site.start(CONVERGE_ON_FAILURE=on_failure)
    try:
        operator.wait_metric(1, "module_run_errors_total", module="z")
        operator_process.wait_until(lambda: set(site.revisions()) == free, "the module without an edge runs")
        requiring.wait_for(site, "a", "Pending", "waits for z")
        operator.wait_until(
            lambda: shown.condition("a", "Ready")["reason"] == "WaitsForModules", "its object says so"
        )
        site.config(a="color: blue", last="color: blue")
        operator.wait_metric(3, "module_run_errors_total", module="z")
        assert set(site.revisions()) == free
        (site.root / "fixed").touch()
        site.config(z="color: blue")
        operator_process.wait_until(lambda: "last" in site.revisions(), "all run in the end")
        assert site.data("a") == {"color": "blue"}
        requiring.wait_for(site, "last", "Ready")
        assert "waits" not in site.module_rows()["a"]["reason"]
    finally:
        operator.kill()


def test_a_module_that_cannot_be_removed_holds_what_it_requires(site: operator_site.Site) -> None:
    site.first_retry = operator_site.SOON
    a = requiring.module(site, "010-a", "modules: [z]")
    site.hook(a, "fail.sh", {"beforeDeleteHelm": 1}, f"test -e {site.root}/fixed")
    requiring.module(site, "010-z")
    requiring.module(site, "020-b")
    operator = site.start().wait_ready().wait_idle()
    try:
        site.config(zEnabled="false", b="color: blue")
        operator.wait_metric(1, "module_delete_errors_total", module="a")
        operator_process.wait_until(lambda: site.data("b") == {"color": "blue"}, "other modules go on")
        assert set(site.revisions()) == {"a", "z", "b"}
        (site.root / "fixed").touch()
        operator_process.wait_until(lambda: set(site.revisions()) == {"b"}, "both are gone")
    finally:
        operator.kill()


@pytest.mark.slow
def test_the_verdict_of_a_script_counts_for_what_requires_the_module(site: operator_site.Site) -> None:
    site.script(requiring.module(site, "010-z") / "enabled", 'echo false > "$MODULE_ENABLED_RESULT"')
    a = requiring.module(site, "010-a", "modules: [z]")
    requiring.module(site, "010-c")
    site.chart(a, {"never": "rendered"})
    body = f'cp "$VALUES_PATH" {site.root}/seen'
    site.hook(requiring.module(site, "010-b", "modules: [c]"), "look.sh", {"beforeHelm": 1}, body)
    operator = site.start().wait_ready().wait_idle()
    try:
        assert site.module_rows()["a"]["reason"] == "requires z, which is disabled by its enabled script"
        seen = json.loads((site.root / "seen").read_text())
        assert seen["global"]["enabledModules"] == ["c", "b"]
    finally:
        operator.stop()


@pytest.mark.slow
def test_cycles_and_modules_that_cannot_come_first_fail_these_modules_alone(site: operator_site.Site) -> None:
    one = requiring.module(site, "010-one", "modules: [two]")
    requiring.module(site, "010-two")
    requiring.module(site, "010-good")
    site.start().wait_ready().wait_idle().stop()
    requiring.require(site.modules / "010-two", "modules: [one]")
    lost = requiring.module(site, "010-lost", "modules: [goood]")
    early = requiring.module(site, "010-early", "modules: [late]")
    requiring.module(site, "020-late")
    odd = requiring.module(site, "010-odd", 'kubernetes: "the newest"')
    operator = site.start()
    try:
        for name, path, words in (
            ("one", one, "one → two → one: modules cannot wait for each other"),
            ("lost", lost, "lost → goood: there is no module 'goood'; did you mean 'good'?"),
            ("early", early, "early → late: late has the higher number, 20"),
        ):
            requiring.wait_for(site, name, "Failed", f"{path / 'module.yaml'}, line 2", words)
        requiring.wait_for(
            site, "odd", "Failed", f"{odd / 'module.yaml'}, line 2", "'the newest' is not a range"
        )
        requiring.wait_for(site, "good", "Ready")
        requiring.wait_for(site, "late", "Ready")
        assert site.revisions() == {"one": 1, "two": 1, "good": 1, "late": 1}
        assert "Traceback" not in operator.log
    finally:
        operator.kill()


@pytest.mark.slow
def test_with_watched_modules_requirements_change_while_the_operator_runs(site: operator_site.Site) -> None:
    a, b = requiring.module(site, "010-a"), requiring.module(site, "010-b", is_on=False)
    operator = site.start(WATCH_MODULES="true").wait_ready().wait_idle()
    try:
        requiring.require(a, "modules: [b]")
        requiring.wait_for(site, "a", "Disabled", "requires b, which is disabled")
        requiring.require(b, "modules: [a]")
        line = operator.wait_logged("b → a → b")
        assert "modules cannot wait for each other" in line
        site.config(bEnabled="true")
        operator_process.wait_until(lambda: set(site.revisions()) == {"a", "b"}, "what stays is in force")
        (a / "module.yaml").unlink()
        site.config(bEnabled="false")
        operator_process.wait_until(lambda: set(site.revisions()) == {"a"}, "a does not require b any more")
    finally:
        operator.kill()
