"""What a converge is made of: its order, its parallel runs, what begins it again, and what does not."""

import pathlib

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

CONFIG_PATCH = 'echo \'{"op": "add", "path": "%s", "value": %s}\' > "$CONFIG_VALUES_JSON_PATCH_PATH"\n'
VALUES_PATCH = 'echo \'{"op": "add", "path": "%s", "value": %s}\' > "$VALUES_JSON_PATCH_PATH"\n'


def module(site: operator_site.Site, directory: str) -> pathlib.Path:
    """A module that is on and shows its color."""
    name = directory.lstrip("0123456789-")
    data = {"color": f"{{{{ .Values.{name}.color }}}}"}
    return site.module(directory, data, values=f"{name}: {{color: green}}\n{name}Enabled: true\n")


def uid(site: operator_site.Site, name: str) -> str:
    uid: str = site.get("configmap", name)["metadata"]["uid"]
    return uid


def intervals(site: operator_site.Site) -> list[tuple[int, str]]:
    """Begin (+1) and end (-1) of each run that noted them, in their order."""
    lines = (site.root / "intervals").read_text().split()
    return [(1 if line.endswith("+") else -1, line[:-1]) for line in lines]


def noting(site: operator_site.Site, name: str) -> str:
    return f"echo {name}+ >> {site.root}/intervals; sleep 0.3; echo {name}- >> {site.root}/intervals"


@pytest.mark.slow
@pytest.mark.parametrize(("parallelism", "most"), [pytest.param("1", 1, marks=pytest.mark.slow), ("2", 2)])
def test_modules_of_one_order_run_side_by_side_up_to_the_setting_and_higher_ones_after_them(
    site: operator_site.Site, parallelism: str, most: int
) -> None:
    for directory in ("010-b", "010-a", "010-c", "020-d", "last", "002-e"):
        name = directory.lstrip("0123456789-")
        site.hook(module(site, directory), f"{name}.sh", {"beforeHelm": 1}, noting(site, name))
    site.start(MODULES_PARALLELISM=parallelism).wait_ready().stop()
    noted, running, highest = intervals(site), 0, 0
    for step, _ in noted:
        running += step
        highest = max(highest, running)
    assert highest == most
    begun = [name for step, name in noted if step > 0]
    assert begun[:2] == ["last", "e"], "a module without a number has order 1"
    assert sorted(begun[2:5]) == ["a", "b", "c"]
    assert sorted(begun[2 : 2 + most]) == ["a", "b"][:most], "by name within one order"
    assert noted[-2:] == [(1, "d"), (-1, "d")]


@pytest.mark.slow
def test_values_that_hooks_change_on_their_way_to_helm_make_no_runs_and_after_helm_makes_one(
    site: operator_site.Site,
) -> None:
    web = module(site, "010-web")
    data = {key: f'"{{{{ .Values.{path} }}}}"' for key, path in {
        "started": "web.started", "made": "web.made", "learned": "web.learned | default 0",
        "domain": "global.domain", "prepared": "global.prepared",
    }.items()}  # fmt: skip
    site.chart(web, data)
    site.hook(
        site.global_hooks, "g1.sh", {"onStartup": 1}, CONFIG_PATCH % ("/global/domain", '"example.org"')
    )
    site.hook(site.global_hooks, "g2.sh", {"beforeAll": 1}, VALUES_PATCH % ("/global/prepared", 1))
    site.hook(web, "w1.sh", {"onStartup": 1}, CONFIG_PATCH % ("/web/started", 1))
    site.hook(web, "w2.sh", {"beforeHelm": 1}, VALUES_PATCH % ("/web/made", 1))
    site.hook(web, "w3.sh", {"afterHelm": 1}, CONFIG_PATCH % ("/web/learned", 1))
    operator = site.start().wait_ready().wait_idle()
    every_run = ["w2.sh beforeHelm", "w3.sh afterHelm"]
    assert site.labels() == ["g1.sh onStartup", "g2.sh beforeAll", "w1.sh onStartup", *every_run, *every_run]
    assert site.data("web") == {
        "started": "1", "made": "1", "learned": "1", "domain": "example.org", "prepared": "1",
    }  # fmt: skip
    assert site.revisions() == {"web": 2}
    assert operator.metrics().total("convergence_total") <= 1
    operator.stop()


@pytest.mark.slow
def test_a_module_that_fails_before_its_first_hook_can_be_disabled_and_mended(
    site: operator_site.Site,
) -> None:
    bad = module(site, "010-bad")
    site.script(bad / "hooks" / "bad.sh", "echo no configuration\n")
    crd = module(site, "010-crd")
    (crd / "crds").mkdir()
    (crd / "crds" / "wrong.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n")
    site.hook(crd, "never.sh", {"onStartup": 1})
    module(site, "020-late")
    operator = site.start()
    operator.wait_until(lambda: site.deployed() == {"late": 1}, "others do not wait for these two")
    assert operator.get("/readyz").status == 503
    site.config(badEnabled="false", crdEnabled="false")
    operator.wait_ready().wait_idle()
    assert site.labels() == []
    (crd / "crds" / "wrong.yaml").unlink()
    site.hook(bad, "bad.sh", {"beforeHelm": 1})
    site.config(badEnabled="true", crdEnabled="true")
    operator.wait_until(lambda: set(site.revisions()) == {"late", "bad", "crd"}, "mended")
    operator.wait_idle()
    assert sorted(site.labels()) == ["bad.sh beforeHelm", "never.sh onStartup"]
    operator.stop()


def test_a_renamed_module_is_a_new_one_whose_objects_are_there_in_the_end(site: operator_site.Site) -> None:
    web = site.module("010-web", {"color": "green"}, values="webEnabled: true")
    template = web / "templates" / "shared.yaml"
    template.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: b}\n")
    site.hook(web, "life.sh", {"onStartup": 1, "beforeDeleteHelm": 1, "afterDeleteHelm": 1})
    site.module("020-stays", {"color": "green"}, values="staysEnabled: true")
    site.start().wait_ready().stop()
    kept = uid(site, "shared")
    renamed = web.rename(site.modules / "010-site")
    (renamed / "values.yaml").write_text("siteEnabled: true")
    assert "module site takes over ConfigMap shared from release web" in site.command("plan").stderr
    gate = site.root / "gate"
    asked = (
        """if [[ "${1-}" == --config ]]; then echo '{"configVersion": "v1", "onStartup": 0}'; exit; fi\n"""
    )
    site.script(renamed / "hooks" / "gate.sh", f"{asked}[[ -e {gate} ]]\n")
    site.first_retry = operator_site.SOON
    operator = site.start(CONVERGE_ON_FAILURE="continue")
    operator.wait_logged("release web stays until module site is installed")
    assert "web" in site.revisions()
    gate.touch()
    operator.wait_until(lambda: set(site.revisions()) == {"site", "stays"}, "the old release is purged")
    operator.wait_idle()
    assert uid(site, "shared") == kept, "it is the same object"
    assert site.data("web") is None
    assert site.labels() == ["life.sh onStartup"] * 2, "there is no module any more that could run hooks"
    operator.stop()


def test_failing_global_hooks_hold_up_the_converge_and_are_reported_until_they_are_mended(
    site: operator_site.Site,
) -> None:
    site.hook(module(site, "010-web"), "web.sh", {"beforeHelm": 1})
    gate = site.root / "gate"
    fails = f'[[ -e {gate} ]] || {{ echo "not yet" >&2; exit 1; }}'
    site.hook(site.global_hooks, "before.sh", {"beforeAll": 1}, fails)
    site.hook(site.global_hooks, "after.sh", {"afterAll": 1})
    operator = site.start()
    operator.wait_logged("before.sh", "not yet")
    operator.wait_until(lambda: "before.sh" in operator.get("/readyz").text, "the hook is the reason")
    assert site.labels() == ["before.sh beforeAll"]
    site.config(web="color: red")
    operator.wait_logged("values ConfigMap changed")
    gate.touch()
    operator.wait_ready().wait_idle()
    assert site.data("web") == {"color": "red"}
    assert site.revisions() == {"web": 1}
    assert site.labels()[-2:] == ["web.sh beforeHelm", "after.sh afterAll"]
    operator.stop()


@pytest.mark.slow
def test_an_edit_during_the_after_all_hooks_is_applied_before_the_converge_is_done(
    site: operator_site.Site,
) -> None:
    module(site, "010-web")
    gate = site.root / "gate"
    site.hook(site.global_hooks, "after.sh", {"afterAll": 1}, f"while [[ ! -e {gate} ]]; do sleep 0.05; done")
    operator = site.start()
    operator.wait_until(lambda: site.labels() == ["after.sh afterAll"], "the modules ran")
    site.config(web="color: red")
    operator.wait_logged("values ConfigMap changed")
    assert operator.get("/readyz").status == 503
    gate.touch()
    operator.wait_ready()
    assert site.data("web") == {"color": "red"}
    operator_process.wait_until(lambda: site.labels().count("after.sh afterAll") == 2, "and after it, again")
    operator.stop()
