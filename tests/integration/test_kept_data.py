"""What holds data stays, whatever takes it out of a release, and goes on when its module comes back."""

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.helm import helm_errors, release_types, remembered
from addon_operator.helm.releases import releases
from addon_operator.kernel import names
from addon_operator.modules import manifests, model, module_config
from addon_operator.modules.patching import manifest_changes
from tests.integration.helm_site import WEB, Site

pytestmark = pytest.mark.integration

CLAIM: Final = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
SECRETS: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: {{ randAlphaNum 16 | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: plain}
stringData: {a: b}
"""
VOLUME: Final = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAMESPACE-volume}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}
"""
SPACE: Final = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-space}\n"
CLAIMED: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DATABASE: Final = f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 0
  serviceName: db
  selector: {{matchLabels: {{a: b}}}}
  template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: db, image: example.com/db}}]}}}}
  volumeClaimTemplates:
  - {json.dumps({"metadata": {"name": "store"}, "spec": CLAIMED})}
"""
CONFIG_IN: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: SPACE}\n"
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: GROUP}
spec:
  group: NAMESPACE.example
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


def kinds_of(site: Site) -> dict[str, tuple[str, str]]:
    """What holds data, by a word: its kind for kubectl, and its name."""
    return {
        "claim": ("pvc", "data"),
        "space": ("namespace", f"{site.namespace}-space"),
        "volume": ("persistentvolume", f"{site.namespace}-volume"),
        "definition": ("crd", f"things.{site.namespace}.example"),
    }


def write(site: Site) -> None:
    """A module that holds data as long as its value ``data`` is set, and fails if ``fails`` is."""
    texts = {"claim": CLAIM, "secrets": SECRETS, "space": SPACE, "volume": VOLUME, "definition": DEFINITION}
    for name, text in texts.items():
        placed = text.replace("NAMESPACE", site.namespace).replace(
            "GROUP", f"things.{site.namespace}.example"
        )
        site.write(f"templates/{name}.yaml", f"{{{{ if .Values.web.data }}}}\n{placed}{{{{ end }}}}\n")
    site.write(
        "templates/wrong.yaml",
        "{{ if .Values.web.fails }}\napiVersion: v1\nkind: Service\nmetadata: {name: wrong}\n"
        "spec: {ports: [{port: 99999}]}\n{{ end }}\n",
    )


def uids(site: Site) -> dict[str, str]:
    return {word: site.get(*which)["metadata"]["uid"] for word, which in kinds_of(site).items()}


def marks(site: Site, kind: str, name: str) -> tuple[Any, Any]:
    """The label of ours and Helm's policy on an object."""
    metadata = site.get(kind, name)["metadata"]
    label = (metadata.get("labels") or {}).get("addon-operator.io/kept-from")
    return label, (metadata.get("annotations") or {}).get("helm.sh/resource-policy")


def is_there(site: Site, kind: str, name: str) -> bool:
    return site.find(kind, name) is not None


async def failed(
    manager: releases.ReleaseManager, request: release_types.ReleaseRequest
) -> helm_errors.HelmError:
    with pytest.raises(helm_errors.HelmError) as raised:
        await manager.ensure(request)
    return raised.value


async def test_what_holds_data_outlives_all_that_takes_it_out_of_a_release(helm_site: Site) -> None:
    site = helm_site
    write(site)
    kinds = kinds_of(site)
    async with site.manager() as manager:
        await manager.ensure(site.asked(data="yes"))
        before = uids(site)
        password = site.get("secret", "password")["data"]

        # A value switches it off, and on again.
        await manager.ensure(site.asked(data=""))
        assert uids(site) == before
        for which in kinds.values():
            assert marks(site, *which) == ("web", "keep")
        assert site.get("secret", "password")["data"] == password
        assert not is_there(site, "secret", "plain")
        told = "\n".join(site.warnings)
        assert (
            f"CustomResourceDefinition {kinds['definition'][1]} with 0 objects stays: it holds data" in told
        )
        assert f"kubectl delete pvc data --namespace {site.namespace}" in told
        assert f"Namespace {kinds['space'][1]} with 0 objects stays: it holds data" in told
        await manager.ensure(site.asked(data="yes"))
        assert uids(site) == before
        for which in kinds.values():
            assert marks(site, *which) == (None, None)

        # A patch of the module takes them out, and its template goes.
        gone = tuple(
            manifest_changes.Patch(manifest_changes.Target(name=name), {"$patch": "delete"})
            for _, name in kinds.values()
        )
        patched = manifest_changes.ManifestChanges(patches=gone)
        await manager.ensure(structs.replace(site.asked(data="yes"), changes=patched))
        for which in kinds.values():
            assert marks(site, *which) == ("web", "keep")
        (site.module / "templates" / "claim.yaml").unlink()
        await manager.ensure(site.asked(data="yes"))
        assert marks(site, "pvc", "data") == ("web", "keep")
        write(site)
        await manager.ensure(site.asked(data="yes"))
        assert uids(site) == before

        # An uninstallation. What a person keeps on the live object alone stays, and is not marked.
        site.annotate("secret", "plain", {"helm.sh/resource-policy": "keep"})
        await manager.remove(WEB)
        assert marks(site, "secret", "plain") == (None, "keep")
        assert uids(site) == before
        assert site.revisions() == {}
        assert not is_there(site, "configmap", "web")
        for which in kinds.values():
            assert marks(site, *which) == ("web", "keep")
        await manager.ensure(site.asked(data="yes"))
        assert uids(site) == before
        for which in kinds.values():
            assert marks(site, *which) == (None, None)

    await under_another_name(site, before)


async def under_another_name(site: Site, before: dict[str, str]) -> None:
    # A claim that a StatefulSet made keeps the password, too.
    site.write("templates/database.yaml", DATABASE)
    site.write("templates/claim.yaml", "")
    site.delete("secret", "plain")
    site.take_ownership = release_types.TakeOwnership.NEVER
    async with site.manager() as manager:
        await manager.ensure(site.asked(2, data="yes"))
        claim = site.create("pvc", "store-db-0", {"spec": CLAIMED})["metadata"]["uid"]
        password = site.get("secret", "password")["data"]
        await manager.remove(WEB)
        for which in (("pvc", "store-db-0"), ("secret", "password")):
            assert marks(site, *which) == ("web", "keep")

        # A release of another name has all of it then.
        site.write("templates/claim.yaml", CLAIM)
        asked = structs.replace(site.asked(3, data="yes"), module=names.ModuleName("other"))
        await manager.ensure(asked)
        # And so has one in another namespace, of what is in none.
        await manager.remove(asked.module)
        edge = f"{site.namespace}-edge"
        site.create("namespace", edge)
        config = module_config.ModuleConfig(namespace=edge)
        manager.assign([model.Module(names.ModuleName("edge"), 1, site.module, True, config=config)])
        await manager.ensure(structs.replace(asked, module=names.ModuleName("edge")))
        assert site.get("pvc", "data", edge)["metadata"]["uid"] != before["claim"]
    assert (uids(site), site.get("pvc", "store-db-0")["metadata"]["uid"]) == (before, claim)
    assert site.get("secret", "password")["data"].keys() == password.keys()
    for word, which in kinds_of(site).items():
        assert marks(site, *which) == (("other", "keep") if word == "claim" else (None, None))


class Having(release_types.Others):
    """Another module has the claim ``shared``."""

    @override
    async def give_up(
        self, dropped: Sequence[manifests.ManifestResource]
    ) -> Collection[manifests.ManifestResource]:
        return [each for each in dropped if each.name == "shared"]


async def test_data_goes_with_its_release_only_as_far_as_that_was_asked_for(helm_site: Site) -> None:
    site, group = helm_site, f"{helm_site.namespace}.example"
    spaces = [f"{site.namespace}-{word}" for word in ("empty", "used")]
    for space in spaces:
        site.write(f"templates/{space}.yaml", SPACE.replace("NAMESPACE-space", space))
    for word in ("things", "parts"):
        text = DEFINITION.replace("GROUP", f"{word}.{group}").replace("NAMESPACE", site.namespace)
        singular = word.removesuffix("s")
        named = text.replace("things", word).replace("Thing", singular.capitalize())
        site.write(f"templates/{word}.yaml", named)
    claims = [
        CLAIM.replace("name: data", f"name: {name}")
        for name in ("data", "theirs", "shared", "charts, annotations: {helm.sh/resource-policy: keep}")
    ]
    site.write("templates/data.yaml", "---\n".join(claims))
    site.write("templates/inside.yaml", CONFIG_IN.replace("SPACE", spaces[0]))
    site.write(
        "templates/earlier.yaml",
        f"{{{{ if .Values.web.earlier }}}}\n{CLAIM.replace('name: data', 'name: earlier')}{{{{ end }}}}\n",
    )

    def asked(earlier: str = "") -> release_types.ReleaseRequest:
        return structs.replace(site.asked(earlier=earlier), removal=remembered.Removal(data="delete"))

    async with site.manager() as manager:
        await manager.ensure(asked(earlier="yes"))
        await manager.ensure(asked())
        site.create("configmap", "others", namespace=spaces[1])
        site.annotate("crd", f"parts.{group}", {"addon-operator.io/applied": "x"})
        site.annotate("pvc", "theirs", {"helm.sh/resource-policy": "keep"})
        plan = await manager.preview_removal(WEB, Having())
        assert {each.name for each in plan.with_data} == {"data", spaces[0], f"things.{group}"}
        await manager.remove(WEB, others=Having())
    gone = [("pvc", "data"), ("namespace", spaces[0]), ("crd", f"things.{group}")]
    assert [which for which in gone if not is_gone(site, *which)] == []
    left = [("pvc", name) for name in ("earlier", "theirs", "shared", "charts")]
    left += [("namespace", spaces[1]), ("crd", f"parts.{group}")]
    assert [which for which in left if is_gone(site, *which)] == []
    assert marks(site, "pvc", "theirs") == marks(site, "pvc", "charts") == (None, "keep")
    told = "\n".join(site.warnings)
    assert f"{site.namespace}/theirs stays: its annotation helm.sh/resource-policy says keep" in told
    assert f"Namespace {spaces[1]} with 1 object stays: there is more in it than the release" in told
    assert f"parts.{group} with 0 objects stays: crds/ of a module has it" in told
    assert "removed with the data, as removal.data says: " in told


def is_gone(site: Site, kind: str, name: str) -> bool:
    """Whether it is deleted, or is about to be."""
    found = site.find(kind, name)
    return found is None or "deletionTimestamp" in found["metadata"]


async def test_what_a_failed_try_brought_outlives_what_undoes_it(helm_site: Site) -> None:
    site = helm_site
    write(site)
    kinds = kinds_of(site)
    async with site.manager() as manager:
        # A first install that fails, is taken back, and works then.
        wrong = site.asked(data="yes", fails="yes")
        told = await manager.roll_back(wrong, await failed(manager, wrong), unhealthy=False)
        assert isinstance(told, helm_errors.RolledBackError), told
        before = uids(site)
        assert site.revisions() == {}
        for which in kinds.values():
            assert marks(site, *which) == ("web", "keep")
        await manager.ensure(site.asked(data=""))

        # An upgrade that fails, and is taken back.
        wrong = site.asked(data="yes", fails="yes", size=2)
        told = await manager.roll_back(wrong, await failed(manager, wrong), unhealthy=False)
        assert isinstance(told, helm_errors.RolledBackError), told
        assert uids(site) == before
        for which in kinds.values():
            assert marks(site, *which) == ("web", "keep")

        # One that fails, and is followed by another one that does not have it.
        await failed(manager, wrong)
        await manager.ensure(site.asked(data="", size=3))
        assert uids(site) == before

        # One that fails, and the release goes.
        await failed(manager, wrong)
        await manager.remove(WEB)
        assert uids(site) == before
        assert site.revisions() == {}
    # Helm itself is never asked to clean up.
    flags = {word.partition("=")[0] for word in site.calls.read_text().split() if word.startswith("--")}
    assert "--namespace" in flags
    assert not flags & {
        "--atomic",
        "--rollback-on-failure",
        "--cleanup-on-fail",
        "--force",
        "--force-replace",
    }


@pytest.mark.parametrize("event", ["pre-upgrade", "pre-install"])
async def test_what_becomes_a_hook_of_helm_is_not_deleted_as_what_left_the_chart(
    helm_site: Site, event: str
) -> None:
    site = helm_site
    texts = {
        "configmap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked}\n",
        "secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: hooked}\n",
        "pvc": CLAIM.replace("name: data", "name: hooked"),
    }
    hook = f"{{{{ if .Values.web.hook }}}}, annotations: {{helm.sh/hook: {event}}}{{{{ end }}}}"
    for kind, text in texts.items():
        site.write(f"templates/{kind}.yaml", text.replace("name: hooked", f"name: hooked{hook}"))
    site.write(
        "templates/leaving.yaml",
        "{{ if not .Values.web.hook }}\n" + texts["configmap"].replace("hooked", "leaving") + "{{ end }}\n",
    )
    async with site.manager() as manager:
        await manager.ensure(site.asked(hook=""))
        before = {kind: site.get(kind, "hooked")["metadata"]["uid"] for kind in texts}
        await manager.ensure(site.asked(hook="yes"))
        assert not is_there(site, "configmap", "leaving")
        now = {kind: site.get(kind, "hooked")["metadata"]["uid"] for kind in texts}
        # Helm deletes what its hook makes before it makes that: no hook, no deletion.
        assert {kind for kind in texts if now[kind] == before[kind]} == (
            set(texts) if event == "pre-install" else set()
        )
        assert marks(site, "pvc", "hooked") == (None, None)

    # And back: what a hook made is the release's again, also where nothing is taken over.
    site.take_ownership = release_types.TakeOwnership.NEVER
    async with site.manager() as manager:
        await manager.ensure(site.asked(hook=""))
        assert {kind: site.get(kind, "hooked")["metadata"]["uid"] for kind in texts} == now
        await manager.ensure(site.asked(hook="yes", size=2))
        assert all(is_there(site, kind, "hooked") for kind in texts)
        await manager.ensure(site.asked(hook="yes", size=3))
        assert all(is_there(site, kind, "hooked") for kind in texts)
