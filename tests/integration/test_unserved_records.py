"""What a release's record names and the cluster serves no more stops no call of Helm."""

import json
import pathlib
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from addon_operator.helm import helm_errors
from tests.integration import cluster_objects, module_objects, operator_site, requiring
from tests.integration.helm_site import WEB, Site

pytestmark = pytest.mark.integration

BOTH: Final = ("v1beta1", "v1")
NEW: Final = ("v1",)
HOOK: Final = "annotations: {helm.sh/hook: 'pre-delete,pre-rollback'}"
THING: Final = "apiVersion: {group}/{version}\nkind: Thing\nmetadata: {{name: one}}\nspec: {{size: {size}}}\n"
WRONG: Final = (
    "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: wrong}\nspec: {ports: [{port: 99999}]}\n"
)


def definition(group: str, served: tuple[str, ...]) -> dict[str, Any]:
    """One whose last version is that in which objects are stored."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "scope": "Namespaced",
            "versions": [
                {"name": each, "served": each in served, "storage": each == served[-1], "schema": schema}
                for each in BOTH
            ],
        },
    }


def until_served(site: cluster_objects.Objects, group: str, served: tuple[str, ...]) -> None:
    """Wait until the API server lists these versions of the group, and no others."""
    while True:
        answer = site.request("GET", f"/apis/{group}")
        if answer.is_success and {each["version"] for each in json.loads(answer.text)["versions"]} == {
            *served
        }:
            return


@pytest.mark.parametrize("driver", ["secret", pytest.param("configmap", marks=pytest.mark.slow)])
async def test_a_release_goes_on_from_objects_in_a_version_that_is_served_no_more(
    helm_site: Site, driver: str
) -> None:
    site, group = helm_site, f"{helm_site.namespace}.example"
    kind = f"things.{group}"

    def chart(version: str, size: int, more: str = "") -> None:
        site.write("templates/thing.yaml", THING.format(group=group, version=version, size=size) + more)
        hook = THING.format(group=group, version=version, size=size).replace(
            "name: one", f"name: asked, {HOOK}"
        )
        site.write("templates/hook.yaml", hook)

    def serve(served: tuple[str, ...]) -> None:
        site.patch("crd", kind, {"spec": definition(group, served)["spec"]})
        until_served(site, group, served)

    async def leave_behind(size: int) -> None:
        """Make a revision in the version that is served no more then."""
        serve(BOTH)
        chart("v1beta1", size)
        await manager.ensure(site.asked(size))
        serve(NEW)

    site.create("crd", kind, definition(group, BOTH))
    async with site.manager(HELM_DRIVER=driver) as manager:
        await leave_behind(1)
        before = site.get(kind, "one")["metadata"]["uid"]
        chart("v1", 2)
        await manager.ensure(site.asked(2))
        assert site.get(kind, "one")["spec"] == {"size": 2}

        # A failed upgrade, and its rollback to a revision in the old version.
        await leave_behind(3)
        chart("v1", 4, WRONG)
        with pytest.raises(helm_errors.HelmError) as failed:
            await manager.ensure(site.asked(4))
        told = await manager.roll_back(site.asked(4), failed.value, unhealthy=False)
        assert isinstance(told, helm_errors.RolledBackError)
        assert site.get(kind, "one")["spec"] == site.get(kind, "asked")["spec"] == {"size": 3}
        assert site.get(kind, "one")["metadata"]["uid"] == before

        # What leaves the chart, and what is uninstalled.
        await leave_behind(5)
        site.write("templates/thing.yaml", "")
        await manager.ensure(site.asked(6))
        assert site.find(kind, "one") is None
        await leave_behind(7)
        assert await manager.remove(WEB)
        assert site.find(kind, "one") is None
        assert site.get(kind, "asked")["spec"] == {"size": 7}, "its hook ran"


def test_a_kind_that_is_away_for_a_moment_is_waited_for_by_name(site: operator_site.Site) -> None:
    group = f"{site.namespace}.example"
    kind = f"things.{group}"
    site.create("crd", kind, definition(group, NEW))
    until_served(site, group, NEW)
    site.first_retry = operator_site.SOON
    for directory in ("010-web", "020-gone"):
        name = directory.partition("-")[2]
        module = site.module(directory, {"a": f'{{{{ .Values.{name}.a | default "one" }}}}'})
        thing = THING.format(group=group, version="v1", size=1).replace("name: one", f"name: {name}")
        (module / "templates" / "thing.yaml").write_text(thing)
    site.config(webEnabled="true", goneEnabled="true")
    operator = site.start(ABSENCE="60s").wait_ready().wait_idle()

    def both_wait(told: str) -> None:
        operator.wait_until(
            lambda: all(told in row["lastError"] for row in site.module_rows().values()), "both wait"
        )
        assert site.deployed() == {"web": 1, "gone": 1}

    # The server of an APIService does not answer.
    requiring.break_api(site, f"{group}/v1")
    operator.wait_until(lambda: not requiring.answers(site, f"{group}/v1"), "it does not answer")
    site.config(web="a: two\n", goneEnabled="false")
    both_wait(f"the API server did not get {kind} ")
    site.delete("crd", kind)
    site.delete("apiservice", f"v1.{group}")
    both_wait(f"the kind Thing ({group}/v1) is not served just now")
    site.create("crd", kind, definition(group, NEW))
    operator.wait_until(lambda: site.deployed() == {"web": 2}, "both go on when it is back")
    operator.wait_until(lambda: site.find(kind, "web"), "its object comes back")
    assert site.data("web") == {"a": "two"}
    operator.stop()


@pytest.mark.slow
def test_definitions_and_objects_move_in_one_step_and_what_has_no_kind_any_more_is_left_out(
    site: operator_site.Site, devcluster: handle.DevCluster, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    site.first_retry = operator_site.SOON
    modules = module_objects.Modules(site, devcluster)
    group, other = f"{site.namespace}.example", f"{site.namespace}.other"
    module = site.module("010-web", {"a": '{{ .Values.web.a | default "one" }}'}, values="webEnabled: true\n")
    (module / "crds").mkdir()
    (module / "crds" / "things.yaml").write_text(json.dumps(definition(group, BOTH[::-1])))
    things = module / "templates" / "things.yaml"
    things.write_text(THING.format(group=group, version="v1beta1", size=1))
    leaving = site.module("020-left", {"a": "one"}, values="leftEnabled: true\n")
    site.create("crd", f"things.{other}", definition(other, BOTH))
    until_served(site, other, BOTH)
    (leaving / "templates" / "thing.yaml").write_text(THING.format(group=other, version="v1", size=1))
    operator = site.start().wait_ready().wait_idle()
    before = site.get(f"things.{group}", "one")["metadata"]["uid"]
    operator.stop()

    (module / "crds" / "things.yaml").write_text(json.dumps(definition(group, NEW)))
    things.write_text(THING.format(group=group, version="v1", size=2))
    (leaving / "templates" / "thing.yaml").unlink()
    site.delete("crd", f"things.{other}")
    again = site.start().wait_ready()
    for name in ("web", "left"):
        modules.wait(again, name, Ready="True")
    assert site.deployed() == {"web": 2, "left": 2}
    thing = site.get(f"things.{group}", "one")
    assert (thing["metadata"]["uid"], thing["spec"]) == (before, {"size": 2})
    again.stop()
