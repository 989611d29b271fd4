"""Small charts with the patterns of published ones, made with the real helm on a real control plane."""

import base64
import json
import pathlib
import subprocess
from typing import Final

import pytest

from addon_operator.documents import yaml_reading
from addon_operator.helm import helm_errors, release_types
from addon_operator.modules import release
from tests.integration import counted_helm, definitions, operator_process
from tests.integration.helm_site import CONFIG, SLOW_HOOK, WEB, Site

pytestmark = pytest.mark.integration

INSTALLED, UPGRADED, SKIPPED, _ = release_types.ReleaseAction
MANIFEST = release.SkippedBy.MANIFEST

PASSWORD: Final = """\
{{- $known := (lookup "v1" "Secret" .Release.Namespace "password").data | default dict }}
{{- if and .Release.IsUpgrade (not $known.password) }}
{{- fail "PASSWORDS ERROR: you must provide your current password when upgrading the release" }}
{{- end }}
apiVersion: v1
kind: Secret
metadata: {name: password}
data:
  password: {{ $known.password | default (randAlphaNum 20 | b64enc) }}
"""
DEMANDED: Final = """\
{{- if .Release.IsUpgrade }}{{ $_ := required "set web.password to upgrade" .Values.web.password }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: demanded}
data: {password: {{ .Values.web.password | default (randAlphaNum 20) }}}
"""
RANDOM_HOOK: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: check-{{ randAlphaNum 5 | lower }}
  annotations: {helm.sh/hook: "EVENT"}
data: {image: app}
"""


BY_CHANCE: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: by-chance}
data:
  config: {{ printf "size=%v password=%s" .Values.web.size (randAlphaNum 20) | b64enc }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: by-chance
  annotations: {rolled-at: {{ now | date "2006-01-02T15:04:05Z07:00" | quote }}}
data:
  things: {{ .Capabilities.APIVersions.Has "SERVED" | quote }}
  monitor: {{ .Capabilities.APIVersions.Has "ANOTHER" | ternary "" "" | quote }}
"""


def define(site: Site, group: str) -> None:
    site.apply(definitions.things(group))
    operator_process.wait_until(
        lambda: site.request("GET", f"/apis/{group}/v1").is_success, f"{group} is served"
    )


def password(site: Site) -> str:
    found: str = site.get("secret", "password")["data"]["password"]
    return base64.b64decode(found).decode()


async def test_a_password_that_is_made_at_the_install_and_demanded_at_the_upgrade_is_kept(
    helm_site: Site,
) -> None:
    site = helm_site
    site.write("templates/password.yaml", PASSWORD)
    async with site.manager() as manager:
        assert "PASSWORDS ERROR" not in await manager.render(site.asked(1))
        assert (await manager.preview(site.asked(1))).action is release_types.PlannedAction.INSTALL
        assert (await manager.ensure(site.asked(1))).action is INSTALLED
        made = password(site)
        assert len(made) == 20
        # Inputs without an effect make no revision, neither in this process nor after a restart.
        assert (await manager.ensure(site.asked(1, unused="x"))).by is MANIFEST
    async with site.manager() as restarted:
        assert (await restarted.ensure(site.asked(1, unused="y"))).by is MANIFEST
        assert (await restarted.ensure(site.asked(2))).action is UPGRADED
        assert (await restarted.ensure(site.asked(2, unused="z"))).by is MANIFEST
        rendered = await restarted.render(site.asked(2))
    assert password(site) == made
    assert base64.b64encode(made.encode()).decode() in rendered
    assert site.revisions() == {1: "superseded", 2: "deployed"}
    assert site.verbs.count("upgrade") == 2


async def test_a_chart_that_demands_a_value_at_the_upgrade_is_installed_and_says_so(helm_site: Site) -> None:
    site = helm_site
    site.write("templates/demanded.yaml", DEMANDED)
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked())).action is INSTALLED
        (warning,) = site.warnings
        assert "an upgrade of it would fail" in warning
        assert "set web.password to upgrade" in warning
        assert (await manager.ensure(site.asked())).action is SKIPPED
        assert (await manager.ensure(site.asked(password="known"))).action is UPGRADED
    assert site.get("configmap", "demanded")["data"] == {"password": "known"}


def write_by_chance(site: Site) -> str:
    """A chart with random values that asks for two APIs of the group that is given back."""
    group = f"{site.namespace}.example.com"
    site.write(
        "templates/by-chance.yaml",
        BY_CHANCE.replace("SERVED", f"{group}/v1").replace("ANOTHER", f"other.{group}/v1"),
    )
    return group


async def test_random_values_and_times_make_no_revision_until_something_else_changes(helm_site: Site) -> None:
    site = helm_site
    write_by_chance(site)
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked(1))).action is INSTALLED
        made = site.get("secret", "by-chance")["data"]
        assert (await manager.ensure(site.asked(1, unused="x"))).by is MANIFEST
        assert site.get("secret", "by-chance")["data"] == made
        assert (await manager.ensure(site.asked(2))).action is UPGRADED


@pytest.mark.slow
async def test_random_values_make_no_revision_over_restarts_until_an_api_comes_that_the_chart_asks_for(
    helm_site: Site,
) -> None:
    site = helm_site
    group = write_by_chance(site)
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked(1))).action is INSTALLED
        made = site.get("secret", "by-chance")["data"]
        assert (await manager.ensure(site.asked(1, unused="x"))).by is MANIFEST
    define(site, f"other.{group}")
    async with site.manager() as restarted:
        assert (await restarted.preview(site.asked(1))).action is release_types.PlannedAction.NOTHING
        assert (await restarted.ensure(site.asked(1))).by is MANIFEST
        assert site.get("secret", "by-chance")["data"] == made
        assert (await restarted.ensure(site.asked(2))).action is UPGRADED
        assert (await restarted.ensure(site.asked(2, unused="x"))).by is MANIFEST
    define(site, group)
    async with site.manager() as restarted:
        assert (await restarted.ensure(site.asked(2))).action is UPGRADED
    assert site.get("configmap", "by-chance")["data"]["things"] == "true"


@pytest.mark.parametrize("event", [pytest.param("test", marks=pytest.mark.slow), "post-install"])
async def test_a_hook_with_a_random_name_makes_no_revision(helm_site: Site, event: str) -> None:
    site = helm_site
    site.write("templates/hook.yaml", RANDOM_HOOK.replace("EVENT", event))
    async with site.manager() as manager:
        await manager.ensure(site.asked())
        assert (await manager.ensure(site.asked(unused="x"))).by is MANIFEST
        planned = await manager.preview(site.asked(unused="y"))
    assert planned.action is release_types.PlannedAction.NOTHING
    assert site.revisions() == {1: "deployed"}


async def test_the_other_helm_makes_no_revision(helm_site: Site, helm4: pathlib.Path) -> None:
    """Blank lines, the order of documents, and documents of comments are not the same in both."""
    site = helm_site
    site.write("templates/empty.yaml", "# nothing\n---\n\n# at all\n")
    site.write(
        "templates/text.yaml", CONFIG.replace(".Release.Name", '"text"') + "  more: |\n    a\n\n    b\n\n\n"
    )
    site.write("templates/password.yaml", PASSWORD)
    async with site.manager() as manager:
        await manager.ensure(site.asked())
    other = helm4 if site.real_helm != helm4 else site.cluster.helm
    counted_helm.write(site.helm, other, site.calls)
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked())).by is MANIFEST
    assert site.revisions() == {1: "deployed"}


async def test_a_first_install_of_a_plain_chart_is_one_process(helm_site: Site) -> None:
    site = helm_site
    async with site.manager() as manager:
        outcome = await manager.ensure(site.asked())
        assert site.verbs == ["upgrade"]
        assert (await manager.ensure(site.asked(unused="x"))).manifest_checksum == outcome.manifest_checksum
    labels = json.dumps(site.get("secret", "sh.helm.release.v1.web.v1")["metadata"]["labels"])
    assert outcome.manifest_checksum in labels
    assert WEB in labels


def test_keys_that_are_numbers_or_booleans_are_those_of_helm(helm_site: Site) -> None:
    words = [
        "8080",
        "-1",
        "0x1F",
        "010",
        "0b11",
        "1_000",
        "1.5",
        "1.0",
        "1e3",
        "1e5",
        "1e6",
        "123456.5",
        "1e-5",
        "0.0001",
        "-2.50",
        "1e21",
        "0",
        "true",
        "No",
        "y",
    ]
    site = helm_site
    site.write("templates/config.yaml", "found: {{ toJson .Values.web }}")
    path = site.root / "values.yaml"
    # Each in a map of its own: some words are one key.
    rows = "".join(f"  row{number}: {{{word}: default/web:80}}\n" for number, word in enumerate(words))
    path.write_text(f"web:\n{rows}")
    argv = [str(site.real_helm), "template", "web", str(site.module), "--values", str(path)]
    rendered = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    read_by_helm = json.loads(rendered.rpartition("found: ")[2])
    assert len(read_by_helm) == len(words)
    assert yaml_reading.load(path.read_text(), "values.yaml") == {"web": read_by_helm}


SERVICE: Final = """\
apiVersion: v1
kind: Service
metadata: {name: door}
spec: {ports: [{port: {{ .Values.web.port | default 80 }}}]}
"""


async def test_a_value_that_only_the_api_server_refuses_makes_one_failed_revision(helm_site: Site) -> None:
    site = helm_site
    site.write("templates/door.yaml", SERVICE)
    async with site.manager() as manager:
        await manager.ensure(site.asked())
        with pytest.raises(helm_errors.HelmError, match="99999"):
            await manager.ensure(site.asked(port="99999"))
        for _ in range(2):
            with pytest.raises(
                helm_errors.HelmError, match="revision 2 failed because of this, and no further one is made"
            ) as told:
                await manager.ensure(site.asked(port="99999", fresh=True))
            assert "Invalid value: ***: must be between" in told.value.without_values
        assert site.revisions() == {1: "deployed", 2: "failed"}
    async with site.manager() as restarted:
        with pytest.raises(helm_errors.HelmError, match="no further one is made"):
            await restarted.ensure(site.asked(port="99999"))
        assert (await restarted.ensure(site.asked(port="81"))).action is UPGRADED
    assert site.revisions() == {1: "superseded", 2: "failed", 3: "deployed"}
    assert site.get("service", "door")["spec"]["ports"][0]["port"] == 81


async def test_an_object_in_a_namespace_that_is_missing_makes_one_failed_revision_until_it_is_there(
    helm_site: Site,
) -> None:
    site = helm_site
    elsewhere = f"{site.namespace}-x"
    site.write("templates/door.yaml", SERVICE.replace("name: door", f"name: door, namespace: {elsewhere}"))
    async with site.manager() as manager:
        with pytest.raises(helm_errors.HelmError) as told:
            await manager.ensure(site.asked())
        assert f"create it with 'kubectl create namespace {elsewhere}', or add a Namespace" in str(told.value)
        for _ in range(2):
            with pytest.raises(helm_errors.HelmError, match="no further one is made") as told:
                await manager.ensure(site.asked(fresh=True))
            assert f"create it with 'kubectl create namespace {elsewhere}'" in str(told.value)
            assert "createNamespace" not in str(told.value)
        assert site.revisions() == {1: "failed"}
        site.create("namespace", elsewhere)
        assert (await manager.ensure(site.asked(fresh=True))).action is INSTALLED


@pytest.mark.slow
async def test_tries_of_an_upgrade_whose_hook_does_not_end_leave_one_failed_revision(
    helm_site: Site,
) -> None:
    site = helm_site
    async with site.manager(timeout=1.0) as manager:
        await manager.ensure(site.asked())
        site.write("templates/slow.yaml", SLOW_HOOK)
        for _ in range(3):
            with pytest.raises(helm_errors.HelmError, match="HELM_TIMEOUT"):
                await manager.ensure(site.asked(fresh=True))
            assert site.revisions() == {1: "deployed", 2: "failed"}
        (site.module / "templates" / "slow.yaml").unlink()
        await manager.ensure(site.asked(fresh=True))
    assert max(site.revisions()) == 3


BUDGET: Final = """\
{{- if .Values.web.least }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {maxUnavailable: 1, selector: {matchLabels: {{ .Values.web.least }}}}
{{- end }}
"""


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("{app: web}", id="an object that is there"),
        pytest.param("", id="a new object", marks=pytest.mark.slow),
    ],
)
async def test_a_value_of_another_type_than_the_api_server_reads_makes_one_failed_revision(
    helm_site: Site, before: str
) -> None:
    site = helm_site
    site.write("templates/budget.yaml", BUDGET)
    async with site.manager() as manager:
        await manager.ensure(site.asked(least=before))
        with pytest.raises(helm_errors.HelmError):
            await manager.ensure(site.asked(least="words"))
        for _ in range(2):
            with pytest.raises(
                helm_errors.HelmError, match="revision 2 failed because of this, and no further one is made"
            ):
                await manager.ensure(site.asked(least="words"))
        assert site.revisions() == {1: "deployed", 2: "failed"}
        assert (await manager.ensure(site.asked(least="{app: other}"))).action is UPGRADED


@pytest.mark.slow
async def test_a_first_install_that_the_api_server_refuses_makes_one_failed_revision(helm_site: Site) -> None:
    site = helm_site
    site.write("templates/door.yaml", SERVICE)
    async with site.manager() as manager:
        for _ in range(3):
            with pytest.raises(helm_errors.HelmError, match="99999"):
                await manager.ensure(site.asked(port="99999"))
        assert site.revisions() == {1: "failed"}
        assert (await manager.ensure(site.asked(port="80"))).action is INSTALLED


async def test_an_object_that_exists_is_taken_over_as_the_setting_says_and_that_is_reported(
    helm_site: Site,
) -> None:
    site = helm_site
    site.write("templates/more.yaml", CONFIG.replace("{{ .Release.Name }}", "more"))
    both, label = ("web", "more"), {"heritage": "addon-operator"}
    for name in both:
        site.create("configmap", name, {"data": {"mine": "1"}})
    # Without a label; with one, which is nothing where the setting is never.
    for policy, labels in (
        (release_types.TakeOwnership.LABELLED, {}),
        (release_types.TakeOwnership.NEVER, label),
    ):
        for name in both if labels else ():
            site.label("configmap", name, labels)
        site.take_ownership = policy
        async with site.manager() as manager:
            with pytest.raises(
                helm_errors.HelmError, match=f"TAKE_OWNERSHIP={policy} does not allow .*ConfigMap web"
            ):
                await manager.ensure(site.asked())
        assert site.revisions() == {}
        assert site.get("configmap", "web")["data"] == {"mine": "1"}
    site.take_ownership = release_types.TakeOwnership.LABELLED
    async with site.manager() as manager:
        planned = await manager.preview(site.asked())
        assert sorted(planned.adopted) == ["ConfigMap more", "ConfigMap web"]
        outcome = await manager.ensure(site.asked())
        assert outcome.adopted == planned.adopted
        assert (await manager.ensure(site.asked(2))).adopted == ()
    assert site.get("configmap", "web")["data"] == {"mine": "1", "size": "2"}
