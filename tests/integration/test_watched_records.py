"""What others do to records of releases is noticed at once, and what is gone is put in order at once."""

import functools
import pathlib
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import helm_records, module_objects, operator_site

pytestmark = pytest.mark.integration

CASES: Final = ("deleted", "older", "uninstalled", "byhand", "edited")


def record(name: str, number: int | str) -> str:
    return f"sh.helm.release.v1.{name}.v{number}"


def edit(site: operator_site.Site, driver: str, case: str, number: int | str = 1) -> str:
    """Have a record list nothing; what it said."""
    return helm_records.change(site, case, number, lambda found: {**found, "manifest": ""}, driver=driver)


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["secret", pytest.param("configmap", marks=pytest.mark.slow)])
def test_records_that_others_touch_are_noticed_without_any_run(
    site: operator_site.Site,
    devcluster: handle.DevCluster,
    helm: pathlib.Path,
    driver: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.use_helm(helm)
    monkeypatch.setenv("HELM_DRIVER", driver)
    seen = module_objects.Modules(site, devcluster)
    for case in CASES:
        site.module(f"010-{case}", {"a": f'{{{{ .Values.{case}.a | default "one" }}}}'})
    site.values("".join(f"{case}Enabled: true\n" for case in CASES))
    operator = site.start(HELM_DRIVER=driver).wait_ready().wait_idle()
    site.config(older="a: two\n")
    operator.wait_until(lambda: site.data("older") == {"a": "two"}, "a second revision")
    operator.wait_idle()
    uids = {case: site.get("configmap", case)["metadata"]["uid"] for case in CASES}
    calls = len(site.helm_calls())

    def last(case: str) -> dict[str, str]:
        found = site.listed(driver, labelSelector=f"owner=helm,name={case}")
        labels = [each["metadata"]["labels"] for each in found]
        return max(labels, key=lambda each: int(each["version"]), default={})

    def is_deployed(case: str) -> bool:
        found = last(case)
        return found.get("status") == "deployed" and "addon-operator.io/digest" in found

    # What is gone is made again over the objects as they are.
    for case, number in (("deleted", 1), ("older", 2)):
        site.delete(driver, record(case, number))
        operator.wait_until(functools.partial(is_deployed, case), f"{case} is back")
    assert "records of the release are gone, and revision 1 was deployed" in operator.log
    site.uninstall("uninstalled")
    operator.wait_until(lambda: is_deployed("uninstalled"), "it is installed again")
    assert site.data("uninstalled") == {"a": "one"}
    same = [case for case in CASES if case != "uninstalled"]
    assert {case: site.get("configmap", case)["metadata"]["uid"] for case in same} == {
        case: uids[case] for case in same
    }
    operator.wait_idle()
    assert site.helm_calls()[calls:].count("upgrade") == 3

    # What others made or changed is told, and nothing is done.
    edit(site, driver, "edited")

    def is_told(case: str) -> bool:
        return seen.condition(case, "Ready")["reason"] == "ChangedByOthers"

    operator.wait_until(lambda: is_told("edited"), "the edit is told")
    chart = site.modules / "010-byhand"
    place = f"--namespace={site.namespace}"
    site.cluster.run_helm(place, "upgrade", "byhand", str(chart), "--set", "byhand.a=three")
    operator.wait_until(lambda: is_told("byhand"), "the upgrade by hand is told")
    operator.stop()

    after_a_restart(site, seen, driver, last("uninstalled")["version"])


def after_a_restart(site: operator_site.Site, seen: module_objects.Modules, driver: str, number: str) -> None:
    """What others did while no operator ran is told, and what they put right is followed whatever runs do."""
    before = edit(site, driver, "uninstalled", number)
    (site.modules / "010-uninstalled" / "templates" / "configmap.yaml").write_text("{{ nonsense")
    operator = site.start(HELM_DRIVER=driver)

    def foreign() -> str:
        return str((seen.get("uninstalled") or {"status": {}})["status"].get("foreignRecord", ""))

    operator.wait_until(foreign, "it is told after a restart")
    site.patch(driver, record("uninstalled", number), {"data": {"release": before}})
    operator.wait_until(lambda: not foreign(), "it is put right")
    site.delete("configmap", "uninstalled")
    operator.wait_until(lambda: site.data("uninstalled") == {"a": "one"}, "it is healed")
    operator.stop()
