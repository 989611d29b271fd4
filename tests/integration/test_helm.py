"""Releases made with the real helm, versions 3 and 4, on a real control plane."""

import asyncio
import json
import os
import pathlib
import signal
from typing import Final

import pytest
from msgspec import structs

from addon_operator.devcluster import pytest_plugin
from addon_operator.helm import helm_errors, release_types
from addon_operator.kernel import json_types
from addon_operator.modules import release
from tests.integration.helm_site import CONFIG, SLOW_HOOK, WEB, Site
from tests.support import programs

pytestmark = pytest.mark.integration

INSTALLED, UPGRADED, SKIPPED, _ = release_types.ReleaseAction


@pytest.fixture
def site(helm_site: Site) -> Site:
    return helm_site


async def test_a_release_is_installed_upgraded_skipped_and_uninstalled(site: Site) -> None:
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked(1))).action is INSTALLED
        assert site.get("configmap", "web")["data"] == {"size": "1"}
        assert (await manager.ensure(site.asked(2))).action is UPGRADED
        assert site.get("configmap", "web")["data"] == {"size": "2"}
        assert 'size: "2"' in (await manager.manifest(WEB) or ""), "the applied manifest is read back"
        calls = len(site.verbs)
        assert (await manager.ensure(site.asked(2))).by is release.SkippedBy.INPUTS
        assert len(site.verbs) == calls
        assert (await manager.ensure(site.asked(2, unused="x"))).by is release.SkippedBy.MANIFEST
        assert site.revisions() == {1: "superseded", 2: "deployed"}
        assert await manager.remove(WEB) is True
        assert site.revisions() == {}
        assert site.find("configmap", "web") is None


@pytest.mark.slow
async def test_a_restart_with_nothing_changed_starts_no_helm_and_makes_no_revision(site: Site) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        await manager.ensure(site.asked(1, unused="x"))
    site.calls.unlink()
    async with site.manager() as restarted:
        assert (await restarted.observe_all())["web"].ours
        assert (await restarted.ensure(site.asked(1, unused="x"))).by is release.SkippedBy.INPUTS
    assert site.verbs == []
    assert site.revisions() == {1: "deployed"}


async def test_a_chart_sees_the_values_and_nothing_of_its_own_values_file(site: Site) -> None:
    own = (
        "webEnabled: true\nweb: {removed: 1, nested: {removed: 1, kept: 1}, kept: 1, list: {a: 1}, none: 1}\n"
    )
    site.write("values.yaml", own)
    site.write(
        "templates/config.yaml", CONFIG.replace('"{{ .Values.web.size }}"', "{{ toJson .Values | quote }}")
    )
    section: json_types.JsonObject = {"nested": {"kept": 2}, "kept": 2, "list": [3], "none": None}
    values: json_types.JsonObject = {"web": section, "global": {"g": 1}}
    async with site.manager() as manager:
        await manager.ensure(structs.replace(site.asked(), values=values))
    seen = json.loads(site.get("configmap", "web")["data"]["size"])
    assert seen == {"web": {"nested": {"kept": 2}, "kept": 2, "list": [3]}, "global": {"g": 1}}


@pytest.mark.slow
async def test_a_deleted_resource_comes_back(site: Site) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked())
        site.delete("configmap", "web")
        outcome = await manager.ensure(site.asked(absent=("ConfigMap web",)))
        assert outcome.action is UPGRADED
        assert site.get("configmap", "web")["data"] == {"size": "1"}


@pytest.mark.slow
async def test_an_upgrade_that_was_killed_is_recovered(site: Site) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        await manager.ensure(site.asked(2))
    site.set_status(1, "deployed")
    site.set_status(2, "pending-upgrade")
    async with site.manager() as restarted:
        outcome = await restarted.ensure(site.asked(3))
    assert outcome.recovered == ("revision 2 is stuck in pending-upgrade: it counts as failed",)
    assert outcome.action is UPGRADED
    assert site.get("configmap", "web")["data"] == {"size": "3"}
    assert site.revisions() == {1: "superseded", 2: "failed", 3: "deployed"}


@pytest.mark.slow
async def test_an_uninstallation_that_was_killed_is_taken_back(site: Site) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
    site.set_status(1, "uninstalling")
    async with site.manager() as restarted:
        outcome = await restarted.ensure(site.asked(1))
    assert outcome.action is release_types.ReleaseAction.SKIPPED
    assert "uninstall" not in site.verbs
    assert site.revisions() == {1: "deployed"}
    assert site.get("configmap", "web")["data"] == {"size": "1"}


@pytest.mark.slow
async def test_a_helm_that_is_cancelled_leaves_a_release_that_the_next_run_repairs(site: Site) -> None:
    site.write("templates/slow.yaml", SLOW_HOOK)
    async with site.manager() as manager:
        run = asyncio.create_task(manager.ensure(site.asked(1)))
        await site.wait_for_slow_hook()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        (site.module / "templates" / "slow.yaml").unlink()
        outcome = await manager.ensure(site.asked(1))
    assert outcome.action in (INSTALLED, UPGRADED)
    assert site.get("configmap", "web")["data"] == {"size": "1"}


@pytest.mark.parametrize(
    "is_first", [pytest.param(True, id="install", marks=pytest.mark.slow), pytest.param(False, id="upgrade")]
)
async def test_a_helm_that_was_killed_leaves_a_release_that_the_next_run_repairs(
    site: Site, is_first: bool
) -> None:
    async with site.manager() as manager:
        if not is_first:
            await manager.ensure(site.asked(1))
        site.write("templates/slow.yaml", SLOW_HOOK)
        run = asyncio.create_task(manager.ensure(site.asked(2)))
        await site.wait_for_slow_hook()
        os.kill(int(site.pid.read_text()), signal.SIGKILL)
        with pytest.raises(helm_errors.HelmError, match="signal 9"):
            await run
        stuck = site.revisions()
        assert stuck[max(stuck)].startswith("pending-")
        (site.module / "templates" / "slow.yaml").unlink()
        outcome = await manager.ensure(site.asked(2))
    assert "is stuck in pending-" in outcome.recovered[0]
    assert outcome.action is (INSTALLED if is_first else UPGRADED)
    assert site.get("configmap", "web")["data"] == {"size": "2"}


async def test_a_module_without_chart_yaml_is_a_chart_of_its_templates(site: Site) -> None:
    (site.module / "Chart.yaml").unlink()
    site.write("hooks/run.sh", "#!/bin/bash\n")
    site.write("values.yaml", "web: {size: 7}\n")
    site.write("templates/about.yaml", ABOUT)
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked(1))).action is INSTALLED
    assert site.get("configmap", "about")["data"] == {"chart": "web-0.2.0", "hook": ""}


ABOUT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: about}
data:
  chart: "{{ .Chart.Name }}-{{ .Chart.Version }}"
  hook: {{ .Files.Get "hooks/run.sh" | quote }}
"""


@pytest.mark.slow
async def test_random_values_do_not_loop(site: Site) -> None:
    site.write("templates/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: r}\n"
               "stringData: {password: {{ randAlphaNum 20 | quote }}, now: {{ now | quote }}}\n")  # fmt: skip
    async with site.manager() as manager:
        await manager.ensure(site.asked())
        for _ in range(3):
            assert (await manager.ensure(site.asked())).action is SKIPPED
    async with site.manager() as restarted:
        assert (await restarted.ensure(site.asked())).action is SKIPPED
    assert site.revisions() == {1: "deployed"}


@pytest.mark.slow
async def test_a_password_that_is_looked_up_survives_and_other_values_may_change(site: Site) -> None:
    site.write("templates/secret.yaml", LOOKED_UP)
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        password = site.get("secret", "kept")["data"]["password"]
        # The render before the first install made up another password than the install itself.
        await manager.ensure(site.asked(2))
        assert site.get("secret", "kept")["data"]["password"] == password
        assert (await manager.ensure(site.asked(2, unused="x"))).by is release.SkippedBy.MANIFEST


LOOKED_UP = """\
{{- $found := lookup "v1" "Secret" .Release.Namespace "kept" }}
apiVersion: v1
kind: Secret
metadata: {name: kept}
data:
  password: {{ if $found }}{{ $found.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
"""


async def test_existing_resources_are_taken_over(site: Site) -> None:
    site.create("configmap", "web", {"data": {"size": "old", "mine": "kept"}})
    async with site.manager() as manager:
        outcome = await manager.ensure(site.asked(1))
        assert (outcome.action, outcome.adopted) == (INSTALLED, ("ConfigMap web",))
    found = site.get("configmap", "web")
    assert found["data"]["size"] == "1"
    assert found["metadata"]["annotations"]["meta.helm.sh/release-name"] == "web"


@pytest.mark.slow
async def test_a_field_that_somebody_edited_is_the_charts_again_after_an_upgrade(site: Site) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        site.patch("configmap", "web", {"data": {"size": "edited"}})
        assert (await manager.ensure(site.asked(3))).action is UPGRADED
    assert site.get("configmap", "web")["data"]["size"] == "3"


@pytest.mark.slow
async def test_an_upgrade_by_hand_is_seen_and_undone(site: Site, helm: pathlib.Path) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        by_hand = ["upgrade", "web", str(site.module), "--set", "web.size=99", "--namespace", site.namespace]
        environ = {**os.environ, "KUBECONFIG": str(site.cluster.kubeconfig)}
        assert (await programs.programs().run([helm, *by_hand], env=environ)).exit_code == 0
        outcome = await manager.ensure(site.asked(1, fresh=True))
    assert outcome.reason == "revision 2 was not made by this operator"
    assert site.get("configmap", "web")["data"]["size"] == "1"


async def test_crds_of_a_chart_are_left_alone(site: Site) -> None:
    site.write("crds/broken.yaml", "this: is not a CRD\n")
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked())).action is INSTALLED


async def test_history_is_limited(site: Site) -> None:
    async with site.manager() as manager:
        for size in range(1, 5):
            await manager.ensure(site.asked(size))
    assert site.revisions() == {2: "superseded", 3: "superseded", 4: "deployed"}


WRONG: Final = {
    '{{ fail "size is wrong" }}': (
        r"size is wrong, says the chart at .*/templates/broken.yaml:1:3 \(helm install\)"
    ),
    "a: [": r"helm install: YAML parse error on /.*/templates/broken.yaml",
    "apiVersion: no.such/v1\nkind: Thing\nmetadata: {name: x}": (
        r"no matches for kind .*, says helm install; is the"
    ),
    "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 99999999}]}": (
        r"helm install: .*99999999"
    ),
}
"""Templates, and what is said of each; only of the last one does Helm leave a revision."""


async def test_an_error_is_helms_own_message_on_one_line(site: Site) -> None:
    async with site.manager() as manager:
        for template, sentence in WRONG.items():
            site.write("templates/broken.yaml", template)
            with pytest.raises(helm_errors.HelmError, match=f"^module web: {sentence}") as raised:
                await manager.ensure(site.asked())
            assert "\n" not in str(raised.value)
        (site.module / "templates" / "broken.yaml").unlink()
        assert (await manager.ensure(site.asked())).action in (INSTALLED, UPGRADED)


async def test_a_missing_dependency_says_which_command_brings_it(site: Site) -> None:
    chart = (site.module / "Chart.yaml").read_text()
    dependency = "dependencies:\n- {name: dep, version: 1.0.0, repository: 'https://example.com'}\n"
    site.write("Chart.yaml", chart + dependency)
    async with site.manager() as manager:
        with pytest.raises(helm_errors.HelmError, match=f"run 'helm dependency build {site.module}'$"):
            await manager.ensure(site.asked())


async def test_a_typo_of_a_field_is_reported_by_helm_3_and_refused_by_helm_4(site: Site) -> None:
    site.write("templates/config.yaml", CONFIG.replace("metadata:", "metadate: {}\nmetadata:"))
    told = site.warnings
    async with site.manager() as manager:
        try:
            await manager.ensure(site.asked())
        except helm_errors.HelmError as error:
            told = [str(error)]
    assert any("metadate" in text for text in told)


async def test_warnings_of_the_api_server_are_passed_on(site: Site) -> None:
    site.write("templates/endpoints.yaml", "apiVersion: v1\nkind: Endpoints\nmetadata: {name: old}\n")
    async with site.manager() as manager:
        await manager.ensure(site.asked())
    about = [warning for warning in site.warnings if "Endpoints" in warning]
    assert len(about) == 1, "told once for each call"
    assert about[0].startswith("v1 Endpoints is deprecated in v1.33+")
    assert about[0].endswith("EndpointSlice")


async def test_releases_may_be_kept_in_config_maps(site: Site) -> None:
    async with site.manager(HELM_DRIVER="configmap") as manager:
        await manager.ensure(site.asked(1))
        await manager.ensure(site.asked(1, unused="x"))
        assert 'size: "1"' in (await manager.manifest(WEB) or "")
    assert site.revisions() == {}, "nothing in Secrets"
    async with site.manager(HELM_DRIVER="configmap") as restarted:
        assert (await restarted.ensure(site.asked(1, unused="x"))).by is release.SkippedBy.INPUTS


@pytest.mark.slow
async def test_a_release_of_helm_3_goes_on_with_helm_4(
    devcluster: pytest_plugin.DevCluster, helm4: pathlib.Path, namespace: str, tmp_path: pathlib.Path
) -> None:
    written = []
    for binary_path in (devcluster.helm, helm4, devcluster.helm):
        site = Site(devcluster, binary_path, namespace, tmp_path)
        site.write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.0.1\n")
        site.write("templates/config.yaml", CONFIG)
        async with site.manager() as manager:
            await manager.ensure(site.asked(len(site.revisions()) + 1))
        written.append(site.get("configmap", "web")["data"])
    assert written == [{"size": "1"}, {"size": "2"}, {"size": "3"}]


@pytest.mark.slow
async def test_another_helm_alone_makes_no_revision(
    devcluster: pytest_plugin.DevCluster, helm4: pathlib.Path, namespace: str, tmp_path: pathlib.Path
) -> None:
    outcomes = []
    for binary_path in (devcluster.helm, helm4, devcluster.helm):
        site = Site(devcluster, binary_path, namespace, tmp_path)
        site.write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.0.1\n")
        site.write("templates/config.yaml", CONFIG)
        site.write("templates/other.yaml", CONFIG.replace("name: {{ .Release.Name }}", "name: other"))
        async with site.manager() as manager:
            outcomes.append(await manager.ensure(site.asked(1)))
    assert [outcome.by for outcome in outcomes[1:]] == [release.SkippedBy.MANIFEST] * 2


TWICE: Final = {
    "Deployment web, container app: env has A 2": [
        {"name": "B", "value": "2"},
        {"name": "A", "value": "two"},
    ],
    "Deployment web, container app: ports has 80/TCP 2": [
        {"containerPort": 80, "protocol": "TCP", "name": "http"}
    ],
    "Deployment web: imagePullSecrets has pull 2": [{"name": "pull"}],
    "Deployment web: hostAliases has 10.0.0.1 2": [{"ip": "10.0.0.1", "hostnames": ["two"]}],
    "ServiceAccount web: secrets has own 2": [{"name": "own"}],
    "ServiceAccount web: finalizers has example.com/held 2": ["example.com/held"],
}
"""What a warning says of lists in which an item stands twice, and what is in them then."""


async def test_what_stands_twice_in_a_list_counts_once_where_helm_refuses_it(site: Site) -> None:
    env = "[{name: A, value: one}, {name: B, value: '{{ .Values.web.size }}'}, {name: A, value: two}]"
    ports = "[{containerPort: 80}, {containerPort: 80, name: http, protocol: TCP}]"
    aliases = "[{ip: 10.0.0.1, hostnames: [one]}, {ip: 10.0.0.1, hostnames: [two]}]"
    pod = f"{{containers: [{{name: app, image: a, env: {env}, ports: {ports}}}], hostAliases: {aliases}, "
    pod += "imagePullSecrets: [{name: pull}, {name: pull}]}"
    site.write(
        "templates/twice.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
        "spec:\n  replicas: 0\n  selector: {matchLabels: {a: b}}\n"
        f"  template: {{metadata: {{labels: {{a: b}}}}, spec: {pod}}}\n"
        "---\napiVersion: v1\nkind: ServiceAccount\n"
        "metadata: {name: web, finalizers: [example.com/held, example.com/held]}\n"
        "secrets: [{name: own}, {name: own}]\n",
    )
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        await manager.ensure(site.asked(2))
        skipped = await manager.ensure(site.asked(2))
        assert skipped.action is release_types.ReleaseAction.SKIPPED
    account = site.get("serviceaccount", "web")
    site.patch("serviceaccount", "web", {"metadata": {"finalizers": None}})
    spec = site.get("deployment", "web")["spec"]["template"]["spec"]
    (app,) = spec["containers"]
    assert {each["name"]: each["value"] for each in app["env"]} == {"A": "two", "B": "2"}
    if site.real_helm.parent.name.startswith("helm4"):
        there = [app["env"], app["ports"], spec["imagePullSecrets"], spec["hostAliases"]]
        assert [*there, account["secrets"], account["metadata"]["finalizers"]] == [*TWICE.values()]
        told = {
            each for each in TWICE if any(f"{each} times, and the last" in text for text in site.warnings)
        }
        assert told == TWICE.keys()


THING: Final = """\
apiVersion: GROUP/v1
kind: Thing
metadata: {name: one}
spec:
  volumes:
  size: {{ .Values.web.size }}
  unknown: {any: null}
"""


async def test_keys_without_a_value_are_left_out_of_custom_resources(site: Site) -> None:
    group = f"{site.namespace}.example"
    things = f"things.{group}"
    unknown = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = {
        "volumes": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "integer"},
        "unknown": unknown,
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    site.create(
        "crd",
        things,
        {"spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}},
    )
    while site.request("GET", f"/apis/{group}/v1").status != 200:
        pass
    site.write("templates/thing.yaml", THING.replace("GROUP", group))
    async with site.manager() as manager:
        for size in (1, 2):
            await manager.ensure(site.asked(size))
            assert site.get(things, "one")["spec"]["size"] == size
            assert "volumes" not in site.get(things, "one")["spec"]
        skipped = await manager.ensure(site.asked(2))
        assert skipped.action is release_types.ReleaseAction.SKIPPED
    warned = [text for text in site.warnings if "keys without a value are left out (spec.volumes)" in text]
    assert bool(warned) is (site.real_helm.parent.name.startswith("helm4"))
