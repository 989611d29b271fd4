"""First installs that fail or are cut off, with helm 3 and 4: installed until that worked once."""

import textwrap

import pytest
from msgspec import structs

from addon_operator.helm import helm_errors, release_types
from addon_operator.modules import release
from tests.integration import admitting
from tests.integration.helm_site import WEB, Site

pytestmark = pytest.mark.integration

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bells.first.example.com}
spec:
  group: first.example.com
  scope: Namespaced
  names: {plural: bells, kind: Bell}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
OBJECTS = """\
{{- $first := eq (int .Values.web.size) 1 }}
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  size: "{{ .Values.web.size }}"
  {{- if $first }}
  gone: with the first try
  {{- end }}
---
apiVersion: first.example.com/v1
kind: Bell
metadata: {name: web}
spec:
  rings: {{ .Values.web.size }}
  {{- if $first }}
  tone: low
  {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.com/web}]
      volumes:
      - name: data
        {{- if $first }}
        emptyDir: {}
        {{- else }}
        configMap: {name: web}
        {{- end }}
{{- if .Release.IsInstall }}
---
apiVersion: v1
kind: Secret
metadata: {name: made-once}
stringData: {password: {{ randAlphaNum 8 }}}
{{- end }}
{{- if $first }}
{{- range $name, $policy := dict "dropped" "none" "kept" "keep" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  annotations: {helm.sh/resource-policy: {{ $policy }}}
{{- end }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
{{- end }}
"""


@pytest.fixture
def site(helm_site: Site) -> Site:
    return helm_site


def hook(name: str, event: str, namespace: str = "") -> str:
    """What the chart makes at an event, once; nothing can be made in a namespace that is missing."""
    return textwrap.dedent(f"""\
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: {name}
          namespace: {namespace or "{{ .Release.Namespace }}"}
          annotations: {{helm.sh/hook: {event}}}
        """)


def uid(site: Site, kind: str, name: str) -> str:
    return str(site.get(kind, name)["metadata"]["uid"])


def exists(site: Site, *names: str, namespace: str = "") -> list[str]:
    kinds = {"pvc": "persistentvolumeclaim", "bell": "bells.first.example.com"}
    asked = [name.split("/") for name in names]
    return [name for kind, name in asked if site.find(kinds.get(kind, kind), name, namespace)]


async def test_a_release_is_installed_with_its_hooks_until_that_worked_once(site: Site) -> None:
    later = f"{site.namespace}-later"
    site.apply(CRD)
    admitting.wait_established(site.cluster, "bells.first.example.com")
    site.write("templates/config.yaml", OBJECTS)
    site.write("templates/migrate.yaml", hook("migrate", "pre-install"))
    site.write("templates/boot.yaml", hook("boot", "post-install", later))
    async with site.manager() as manager:
        with pytest.raises(helm_errors.HelmError, match=later):
            await manager.ensure(site.asked(1))
        before = {name: uid(site, *name.split("/")) for name in ("secret/made-once", "deployment/web")}
        migrated = uid(site, "configmap", "migrate")
        with pytest.raises(helm_errors.HelmError, match="failed post-install"):
            await manager.ensure(site.asked(2))
        assert site.revisions() == {1: "failed", 2: "failed"}
        # What was made is taken over as it should be now, and nothing is left that the chart has no more.
        assert {name: uid(site, *name.split("/")) for name in before} == before
        assert site.get("configmap", "web")["data"] == {"size": "2"}
        assert site.get("bells.first.example.com", "web")["spec"] == {"rings": 2}
        (volume,) = site.get("deployment", "web")["spec"]["template"]["spec"]["volumes"]
        assert volume["configMap"]["name"] == "web"
        assert "emptyDir" not in volume
        assert exists(site, "configmap/dropped", "configmap/kept", "pvc/data") == ["kept", "data"]
        assert any("/data stays: it holds data" in text for text in site.warnings)
        site.create("namespace", later)
    async with site.manager() as restarted:
        outcome = await restarted.ensure(site.asked(2))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.INSTALLED, 3)
        assert outcome.reason == "revision 2 is failed, and none was deployed before"
        assert uid(site, "configmap", "migrate") != migrated, "a hook that was there already runs again"
        assert exists(site, "configmap/boot", namespace=later) == ["boot"]
        booted = uid(site, "configmap", "migrate")
        assert (await restarted.ensure(site.asked(2))).action is release_types.ReleaseAction.SKIPPED
        outcome = await restarted.ensure(site.asked(3))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 4)
        assert uid(site, "configmap", "migrate") == booted
        assert await restarted.remove(WEB) is True
    assert exists(site, "configmap/web", "bell/web", "deployment/web") == []
    site.delete("namespace", later, waits=False)


@pytest.mark.slow
async def test_an_install_that_was_cut_off_is_repeated_and_what_it_made_is_not_forgotten(site: Site) -> None:
    site.write("templates/migrate.yaml", hook("migrate", "pre-install"))
    site.write("templates/old.yaml", hook("old", "'x'").replace("helm.sh/hook", "note"))
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
    migrated = uid(site, "configmap", "migrate")
    site.set_status(1, "pending-install")
    # What is saved when all is done was not, then.
    site.label("secret", "sh.helm.release.v1.web.v1", {release.REVISION_LABEL: None})
    (site.module / "templates" / "old.yaml").unlink()
    site.write("templates/bad.yaml", "{{ fail `not now` }}")
    async with site.manager() as manager:
        with pytest.raises(helm_errors.HelmError, match="not now"):
            await manager.ensure(site.asked(2))
        assert site.revisions() == {1: "failed"}, "what there is stays known"
        (site.module / "templates" / "bad.yaml").unlink()
        planned = await manager.preview(site.asked(2))
        assert (planned.action, planned.revision) == (release_types.PlannedAction.INSTALL, 1)
        shown = {str(each.key): each.kind for each in planned.changes}
        assert shown == {"ConfigMap web": "changed", f"ConfigMap {site.namespace}/old": "removed"}
        outcome = await manager.ensure(site.asked(2))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.INSTALLED, 2)
    assert uid(site, "configmap", "migrate") != migrated
    assert exists(site, "configmap/old", "configmap/web") == ["web"]
    assert site.get("configmap", "web")["data"] == {"size": "2"}


@pytest.mark.slow
async def test_a_release_that_worked_once_is_upgraded_and_failed_tries_leave_nothing(site: Site) -> None:
    site.write("templates/migrate.yaml", hook("migrate", "pre-install"))
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        migrated = uid(site, "configmap", "migrate")
        site.write("templates/more.yaml", hook("more", "'x'").replace("helm.sh/hook", "note"))
        site.write("templates/late.yaml", hook("late", "post-upgrade", f"{site.namespace}-missing"))
        with pytest.raises(helm_errors.HelmError, match="post-upgrade"):
            await manager.ensure(site.asked(2))
        for name in ("more", "late"):
            (site.module / "templates" / f"{name}.yaml").unlink()
        outcome = await manager.ensure(site.asked(3))
    assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.UPGRADED, 3)
    assert uid(site, "configmap", "migrate") == migrated
    assert exists(site, "configmap/more", "configmap/web") == ["web"]


@pytest.mark.slow
async def test_after_a_removal_a_release_begins_anew_and_tries_do_not_pile_up(site: Site) -> None:
    site.write("templates/migrate.yaml", hook("migrate", "pre-install"))
    async with site.manager() as manager:
        await manager.ensure(site.asked(1))
        await manager.remove(WEB, keep_record=True)
        assert site.revisions() == {1: "uninstalled"}
        site.write("templates/boot.yaml", hook("boot", "post-install", f"{site.namespace}-missing"))
        for _ in range(5):
            with pytest.raises(helm_errors.HelmError, match="post-install"):
                await manager.ensure(site.asked(2))
        assert site.revisions() == {1: "superseded", 4: "failed", 5: "failed", 6: "failed"}
        (site.module / "templates" / "boot.yaml").unlink()
        outcome = await manager.ensure(structs.replace(site.asked(2), fresh=True))
        assert (outcome.action, outcome.revision) == (release_types.ReleaseAction.INSTALLED, 7)
        assert (await manager.ensure(site.asked(2))).action is release_types.ReleaseAction.SKIPPED
