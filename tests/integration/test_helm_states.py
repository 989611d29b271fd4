"""Charts and releases out of the ordinary, with helm 3 and 4: stuck, too large, slow, without rights."""

import base64
import os
import pathlib
import textwrap

import pytest
import yaml

from addon_operator.helm import helm_errors, memory, places, release_types, remembered
from addon_operator.kube import api_errors
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from tests.integration import operator_process
from tests.integration.helm_site import CONFIG, SLOW_HOOK, WEB, Site

pytestmark = pytest.mark.integration


@pytest.fixture
def site(helm_site: Site) -> Site:
    return helm_site


async def test_a_release_stuck_in_any_state_is_recovered(site: Site) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
    stuck = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling", "failed")
    for size, status in enumerate(stuck, start=2):
        site.set_status(max(site.revisions()), status)
        async with site.manager() as restarted:
            outcome = await restarted.ensure(site.asked(size))
        assert outcome.action is not release_types.ReleaseAction.SKIPPED, status
        wanted = "is taken back" if status == "uninstalling" else f"is stuck in {status}"
        told = [text for text in outcome.recovered if wanted in text]
        assert len(told) == (status != "failed"), status
        assert site.get("configmap", "web")["data"] == {"size": str(size)}, status
        assert "deployed" in site.revisions().values(), status


async def test_a_record_that_helm_cannot_use_is_told_with_what_to_do_and_that_helps(site: Site) -> None:
    record = "sh.helm.release.v1.web.v1"
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        site.patch("secret", record, {"data": {"release": base64.b64encode(b"no release").decode()}})
        for change in (manager.ensure(site.asked(2)), manager.remove(WEB)):
            with pytest.raises(
                helm_errors.HelmError, match=r"web\.v1 .* cannot be decoded.* or delete it"
            ) as told:
                await change
            assert f"the record {site.namespace}/sh.helm" in told.value.without_values
        site.delete("secret", record)
        outcome = await manager.ensure(site.asked(2, fresh=True))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.INSTALLED, 1)
        # Inside, it says something else than its label.
        site.set_status(1, "pending-upgrade")
        site.label("secret", record, {"status": "deployed"})
        with pytest.raises(helm_errors.HelmError, match=r"set the label to pending-upgrade"):
            await manager.ensure(site.asked(3))
        site.label("secret", record, {"status": "pending-upgrade"})
        outcome = await manager.ensure(site.asked(3))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 2)
        assert site.get("configmap", "web")["data"] == {"size": "3"}


async def test_releases_with_a_status_that_helm_does_not_use_or_that_two_revisions_have_are_upgraded(
    site: Site,
) -> None:
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        site.set_status(1, "unknown")
        (told,) = (await manager.ensure(site.asked(2, fresh=True))).recovered
        assert "revision 1 has the status 'unknown'" in told
        site.set_status(1, "deployed")
        outcome = await manager.ensure(site.asked(3, fresh=True))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 3)
        assert (await manager.ensure(site.asked(3, fresh=True))).action is release_types.ReleaseAction.SKIPPED
    assert site.get("configmap", "web")["data"] == {"size": "3"}


async def test_a_record_whose_last_write_is_refused_is_put_right_although_helm_says_nothing(
    site: Site,
) -> None:
    """The API server takes no record of Helm that is deployed, but one of the operator."""
    group, name = "/apis/admissionregistration.k8s.io/v1", f"records-{site.namespace}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"]}
    denied = (
        "object.metadata.labels.status != 'deployed' || 'addon-operator.io/digest' in object.metadata.labels"
    )
    spec = {
        "matchConstraints": {
            "resourceRules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}},
        },
        "matchConditions": [{"name": "records", "expression": "has(object.metadata.labels)"}],
        "validations": [{"expression": denied}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    for plural, body in (("ies", spec), ("ybindings", binding)):
        made = {"metadata": {"name": name}, "spec": body}
        assert site.request("POST", f"{group}/validatingadmissionpolic{plural}", made).is_success
    site.create("secret", "probe", {"metadata": {"labels": {"status": "pending"}}})
    path = f"/api/v1/namespaces/{site.namespace}/secrets/probe?dryRun=All"
    patch = {"metadata": {"labels": {"status": "deployed"}}}
    while site.request("PATCH", path, patch, "application/merge-patch+json").is_success:
        pass
    async with site.manager() as manager:
        # Helm exits with 0 after such an installation. An upgrade is an error, and is tried again.
        assert (await manager.ensure(site.asked(1))).action is release_types.ReleaseAction.INSTALLED
        assert site.revisions() == {1: "deployed"}
        assert (await manager.ensure(site.asked(1, fresh=True))).action is release_types.ReleaseAction.SKIPPED
        assert await manager.deployed(WEB) is not None


@pytest.mark.slow
async def test_a_release_stuck_in_any_state_can_be_removed(site: Site) -> None:
    for status in ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling", "failed"):
        async with site.manager() as manager:
            await manager.ensure(site.asked(1))
            site.set_status(max(site.revisions()), status)
            assert await manager.remove(WEB) is True, status
        assert site.revisions() == {}, status
        assert site.find("configmap", "web") is None, status


async def test_what_a_failed_upgrade_was_to_remove_goes_with_the_release(site: Site) -> None:
    kept = "  annotations: {helm.sh/resource-policy: keep}\n"
    for name, more in (("old", ""), ("kept", kept)):
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{more}"
        site.write(f"templates/{name}.yaml", text)
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        for name in ("old", "kept"):
            (site.module / "templates" / f"{name}.yaml").unlink()
        site.write("templates/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad}\n")
        with pytest.raises(helm_errors.HelmError, match="is invalid"):
            await manager.ensure(site.asked(2))
        assert site.revisions() == {1: "deployed", 2: "failed"}
        assert await manager.remove(WEB) is True
    assert site.revisions() == {}
    assert [name for name in ("web", "old", "kept") if site.find("configmap", name)] == ["kept"]


async def test_a_thousand_releases_are_remembered_in_one_secret(site: Site) -> None:
    access = auth.load_access(site.cluster.kubeconfig, None, None, os.environ)
    async with client.KubeClient(access) as api:
        first = memory.Memory(api, site.namespace, "addon-operator", site.warnings.append)
        await first.load()
        for number in range(1000):
            objects = tuple(
                remembered.RememberedObject(
                    api_version="v1",
                    kind="PersistentVolumeClaim",
                    name=f"data-some-module-{number}-{index}",
                    namespace=f"namespace-{number}",
                    uid=first.digest([f"{number}/{index}"])[:36],
                    since=1_700_000_000.5 + number,
                )
                for index in range(8)
            )
            entry = remembered.RememberedRelease(
                last=number,
                deployed=number,
                life="abcdefgh",
                digests=(first.digest([str(number)]),),
                first=1_700_000_000.25 + number,
                adopted=objects[:3],
                kept=objects[3:5],
                ended=objects[5:],
            )
            first.put(places.ReleaseLocation(f"namespace-{number}", f"some-module-{number}"), entry)
        await first.write()
        again = memory.Memory(api, site.namespace, "addon-operator", site.warnings.append)
        await again.read()
    assert len(again.locations) == 1000
    data = site.get("secret", "addon-operator-state")["data"]
    assert sum(len(base64.b64decode(text)) for text in data.values()) < 700_000


async def test_an_object_that_may_not_be_deleted_is_named_with_the_reason(site: Site) -> None:
    matched = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["DELETE"],
        "resources": ["configmaps"],
    }
    policy, path = f"{site.namespace}-held", f"/api/v1/namespaces/{site.namespace}/configmaps/web?dryRun=All"
    spec = {
        "matchConstraints": {
            "resourceRules": [matched | {"resourceNames": ["web"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}},
        },
        "validations": [{"expression": "false", "message": "it is held"}],
    }
    bound = {"policyName": policy, "validationActions": ["Deny"]}

    def is_allowed() -> bool:
        return site.request("DELETE", path).is_success

    site.create("validatingadmissionpolicy", policy, {"spec": spec})
    try:
        site.create("validatingadmissionpolicybinding", policy, {"spec": bound})
        async with site.manager() as manager:
            await manager.ensure(site.asked(1))
            operator_process.wait_until(lambda: not is_allowed(), "the policy holds it")
            with pytest.raises(helm_errors.HelmError, match=r"ConfigMap web cannot be deleted: .*it is held"):
                await manager.remove(WEB)
            assert site.revisions() != {}
            site.delete("validatingadmissionpolicybinding", policy)
            operator_process.wait_until(is_allowed, "the policy holds nothing")
            assert await manager.remove(WEB)
        assert site.revisions() == {}
        assert site.find("configmap", "web") is None
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            site.delete(kind, policy)


async def test_a_hook_that_takes_too_long_is_an_error_and_the_next_try_recovers(site: Site) -> None:
    site.write("templates/slow.yaml", SLOW_HOOK)
    async with site.manager(timeout=2.0) as manager:
        with pytest.raises(helm_errors.HelmError, match="HELM_TIMEOUT"):
            await manager.ensure(site.asked(1))
        (site.module / "templates" / "slow.yaml").unlink()
        await manager.ensure(site.asked(1))
    assert site.get("configmap", "web")["data"] == {"size": "1"}


async def test_a_release_that_is_too_large_is_refused_with_what_to_do(site: Site) -> None:
    blob = site.module / "files" / "blob.txt"
    blob.parent.mkdir()
    blob.write_text(base64.b64encode(os.urandom(1_200_000)).decode())
    async with site.manager() as manager:
        with pytest.raises(helm_errors.HelmError, match=r"about 1 MiB, compressed: .*\.helmignore"):
            await manager.ensure(site.asked(1))
        site.write(".helmignore", "files/\n")
        assert (await manager.ensure(site.asked(1))).action is release_types.ReleaseAction.INSTALLED


async def test_subcharts_in_charts_are_part_of_the_chart(site: Site) -> None:
    chart = (site.module / "Chart.yaml").read_text()
    site.write(
        "Chart.yaml",
        chart
        + textwrap.dedent("""\
        dependencies:
        - {name: dep, version: 1.0.0, repository: 'https://example.com', condition: web.withDep}
        """),
    )
    site.write("charts/dep/Chart.yaml", "apiVersion: v2\nname: dep\nversion: 1.0.0\n")
    site.write("charts/dep/templates/config.yaml", CONFIG.replace("{{ .Release.Name }}", "dep")
               .replace("{{ .Values.web.size }}", "{{ .Values.size }}"))  # fmt: skip
    site.write("charts/dep/values.yaml", "size: of the subchart\n")
    async with site.manager() as manager:
        assert (await manager.ensure(site.asked(1))).action is release_types.ReleaseAction.INSTALLED
        assert site.get("configmap", "dep")["data"] == {"size": "of the subchart"}
        site.write("charts/dep/values.yaml", "size: changed\n")
        outcome = await manager.ensure(site.asked(1))
        assert outcome.reason == "files of the chart changed, such as templates or values.yaml"
        assert site.get("configmap", "dep")["data"] == {"size": "changed"}


async def test_missing_rights_in_the_namespace_are_reported_with_what_to_allow(site: Site) -> None:
    site.account("weak", "get,create,update,patch secrets")
    token = site.token("weak")
    weak = kubeconfig(site, token)
    async with site.manager(kubeconfig=weak) as manager:
        with pytest.raises(api_errors.Forbidden, match=r'add to its Role the rule .*"secrets".*"list"'):
            await manager.observe_all()
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}
    site.create("role", "reads", {"rules": [rule]})
    site.bind("weak", "Role", "reads")
    async with site.manager(kubeconfig=weak) as manager:
        with pytest.raises(
            helm_errors.HelmError,
            match=r"add to the operator's Role the rule apiGroups: \[\"\"\], resources: \[\"configmaps\"\]",
        ):
            await manager.ensure(site.asked(1))


def kubeconfig(site: Site, token: str) -> pathlib.Path:
    """That of the cluster, with a token."""
    config = yaml.safe_load(site.cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = site.root / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
