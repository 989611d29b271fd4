"""Removals: beside all runs, in their order, taken back, refused by a chart, and waiting for finalizers."""

import asyncio
import pathlib
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import helm_site, module_objects, operator_process, operator_site
from tests.integration.helm_site import WEB

pytestmark = pytest.mark.integration

HANGS: Final = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-before
  annotations: {helm.sh/hook: pre-delete, helm.sh/hook-delete-policy: before-hook-creation}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: x, image: example.com/x}]
"""
REFUSES: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: Not_a_name
  annotations: {helm.sh/hook: pre-delete}
"""
CLAIM: Final = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ .Release.Name }}-data"}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
OF_HOOKS: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: {{ .Release.Namespace }}-{{ .Release.Name }}
  annotations: {helm.sh/hook: post-install}
webhooks: []
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-by-hook
  annotations: {helm.sh/hook: post-install}
"""
HELD: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-held", finalizers: [example.com/wait]}
"""


def module(site: operator_site.Site, directory: str, *templates: str) -> None:
    """A module that shows its color, with more templates in its chart."""
    name = directory.lstrip("0123456789-")
    path = site.module(
        directory, {"color": f"{{{{ .Values.{name}.color }}}}"}, values=f"{name}: {{color: green}}\n"
    )
    for number, text in enumerate(templates):
        (path / "templates" / f"{number}.yaml").write_text(text)


def status(site: operator_site.Site, release: str) -> list[str]:
    """The statuses of a release's revisions, in their order."""
    found = site.objects("secrets", labelSelector=f"owner=helm,name={release}")
    labels = sorted((each["metadata"]["labels"] for each in found), key=lambda each: int(each["version"]))
    return [each["status"] for each in labels]


def row(site: operator_site.Site, name: str) -> dict[str, Any]:
    return site.module_rows()[name]


def uid(site: operator_site.Site, kind: str, name: str) -> str:
    return str(site.get(kind, name)["metadata"]["uid"])


@pytest.mark.slow
@helm_site.ANY_HELM
def test_removals_hold_up_only_those_below_them_and_can_be_taken_back(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    module(site, "005-low")
    module(site, "010-web", HANGS, CLAIM)
    module(site, "010-side")
    module(site, "015-refusing", REFUSES)
    module(site, "025-hooked", OF_HOOKS)
    module(site, "030-new")
    on = ("low", "web", "side", "refusing", "hooked")
    site.config(**{f"{name}Enabled": "true" for name in on})
    operator = site.start(HELM_BIN_PATH=str(helm)).wait_ready()
    before = [
        (kind, name, uid(site, kind, name)) for kind, name in (("configmap", "web"), ("pvc", "web-data"))
    ]

    # One hangs; those above it went, the one below it waits, and nothing else does.
    site.config(lowEnabled="false", webEnabled="false")
    operator.wait_until(lambda: site.find("job", "web-before"), "the removal hangs")
    site.config(side="color: red", newEnabled="true")
    operator.wait_until(lambda: site.data("side") == {"color": "red"}, "an edit waits for no removal")
    operator.wait_until(lambda: site.data("new") == {"color": "green"}, "a new module neither")
    operator.wait_until(
        lambda: (
            operator.get("/status/converge").text
            == "STARTUP_CONVERGE_DONE\nCONVERGE_WAIT_TASK\nREMOVALS_UNDER_WAY: 2\n"
        ),
        "the converge is done, and the removals are counted",
    )
    assert "removals under way: 2" in site.command("module", "list").stdout
    waited = site.command("wait", "--timeout", "30s", "--listen-port", str(operator.port))
    assert "removals under way: 2" in waited.stdout, waited
    assert row(site, "low")["state"] == "Deleting"
    assert row(site, "low")["waitsFor"] == ["web (Deleting)"]
    assert status(site, "low") == ["deployed"]

    # It is wanted again: Helm ends, and the module goes on as it was.
    site.config(webEnabled="true")
    operator.wait_until(lambda: row(site, "web")["state"] == "Ready", "it is taken back")
    assert status(site, "web") == ["deployed"]
    assert [(kind, name, uid(site, kind, name)) for kind, name, _ in before] == before
    claim = site.get("pvc", "web-data")["metadata"]
    assert "addon-operator.io/kept-from" not in (claim.get("labels") or {})
    operator.wait_logged("taken back, and what hooks of the chart did is not: Job web-before")
    operator.wait_until(lambda: "low" not in site.revisions(), "the one below it goes now")

    # What is gone by then comes back from the record.
    site.config(webEnabled="false")
    operator.wait_until(lambda: status(site, "web") == ["uninstalling"], "the removal hangs again")
    site.delete("configmap", "web")
    site.config(webEnabled="true")
    operator.wait_until(lambda: row(site, "web")["state"] == "Ready", "it is taken back again")
    assert status(site, "web") == ["deployed"]
    assert site.data("web") == {"color": "green"}

    with_hooks_of_charts(site, operator)


def with_hooks_of_charts(site: operator_site.Site, operator: operator_process.OperatorProcess) -> None:
    # A chart that refuses to go stays, with the reason, and is whole when it is enabled again.
    site.config(refusingEnabled="false")
    operator.wait_until(lambda: "Not_a_name" in row(site, "refusing")["lastError"], "its hook refuses")
    assert row(site, "refusing")["state"] == "Deleting"
    site.config(refusingEnabled="true")
    operator.wait_until(lambda: row(site, "refusing")["state"] == "Ready", "it is whole")
    calls = site.helm_calls().count("uninstall")
    operator.wait_idle()
    assert status(site, "refusing") == ["deployed"]
    assert site.helm_calls().count("uninstall") == calls

    # What Helm leaves of its hooks goes if it stands in everybody's way, and is named otherwise.
    webhooks = f"{site.namespace}-hooked"
    assert site.find("validatingwebhookconfiguration", webhooks) is not None
    site.config(hookedEnabled="false")
    operator.wait_logged("hooks of the chart made objects that Helm leaves: ConfigMap hooked-by-hook")
    assert site.find("validatingwebhookconfiguration", webhooks) is None
    assert site.data("hooked-by-hook") is not None


ASKED: Final = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {space}-made{more}}}
webhooks: []
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {{name: {space}-made{more}}}
webhooks: []
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.made.{space}.example{more}}}
spec:
  group: made.{space}.example
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {{name: nobody, namespace: {space}}}
"""
"""What the API server asks, and who answers goes with the release."""


def asked_for(space: str, event: str, word: str = "made") -> str:
    more = f", annotations: {{helm.sh/hook: {event}}}" if event else ""
    return ASKED.format(space=space, more=more).replace("made", word)


async def test_of_what_hooks_made_only_goes_what_asks_who_went_with_the_release(
    helm_site: helm_site.Site,
) -> None:
    site, space = helm_site, helm_site.namespace
    kinds = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration", "apiservice")

    def there(word: str) -> tuple[str, ...]:
        names = dict.fromkeys(kinds, f"{space}-{word}") | {"apiservice": f"v1.{word}.{space}.example"}
        return tuple(kind for kind in kinds if site.find(kind, names[kind]))

    # An upgrade would make them; no upgrade comes.
    for word in ("older", "taken", "shared"):
        site.write(f"templates/{word}.yaml", asked_for(space, "post-upgrade", word))
    site.write("templates/made.yaml", asked_for(space, "post-install"))
    site.write("templates/role.yaml", OF_HOOKS.partition("---\n")[2])
    for document in asked_for(space, "", "older").split("---\n"):
        site.apply(document)
    made_at = site.get(kinds[0], f"{space}-older")["metadata"]["creationTimestamp"]
    while site.create("configmap", "clock")["metadata"]["creationTimestamp"] == made_at:
        site.delete("configmap", "clock")
        await asyncio.sleep(0.1)
    other = site.root / "other"
    for name, text in {
        "Chart.yaml": "apiVersion: v2\nname: other\nversion: 0.0.1\n",
        "templates/taken.yaml": asked_for(space, "", "taken"),
        "templates/shared.yaml": asked_for(space, "post-install", "shared"),
    }.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(text)
    stays = dict.fromkeys(("older", "taken", "shared"), kinds)
    try:
        async with site.manager() as manager:
            await manager.ensure(site.asked())
            site.run_helm("install", "other", str(other))
            await manager.observe_all()
            assert {word: there(word) for word in stays} == stays
            assert there("made") == kinds
            await manager.remove(WEB)
        assert there("made") == ()
        assert {word: there(word) for word in stays} == stays
    finally:
        site.delete("apiservice", *(f"v1.{word}.{space}.example" for word in ("made", *stays)), waits=False)
    (told,) = (each for each in site.warnings if "hooks of the chart made objects that Helm leaves" in each)
    assert "ConfigMap web-by-hook" in told


def test_a_removed_module_waits_for_finalizers_without_a_task(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    shown = module_objects.Modules(site, devcluster)
    module(site, "010-held", HELD)
    module(site, "010-side")
    site.config(heldEnabled="true", sideEnabled="true")
    operator = site.start().wait_ready()
    first = uid(site, "configmap", "held-held")
    waits = "waits for finalizers: ConfigMap held-held (example.com/wait)"
    try:
        site.config(heldEnabled="false")
        operator.wait_until(lambda: waits in row(site, "held")["reason"], "it waits")
        operator.wait_idle()
        assert row(site, "held")["state"] == "Deleting"
        assert site.revisions().keys() == {"side"}
        operator.wait_until(
            lambda: shown.condition("held", "Enabled")["reason"] == "Removing", "its object says so"
        )

        # Enabled again it waits for that object, and for nothing else does anybody wait.
        site.config(heldEnabled="true")
        operator.wait_until(lambda: row(site, "held")["state"] == "Running", "its run waits")
        site.config(side="color: red")
        operator.wait_until(lambda: site.data("side") == {"color": "red"}, "others go on")
        assert waits in row(site, "held")["reason"]
        finish(site)
        operator.wait_until(lambda: row(site, "held")["state"] == "Ready", "it is installed anew")
        assert uid(site, "configmap", "held-held") != first

        site.config(heldEnabled="false")
        operator.wait_until(lambda: waits in row(site, "held")["reason"], "it waits once more")
        operator.stop()
        operator = site.start().wait_ready().wait_idle()
        assert row(site, "held")["state"] == "Deleting", "a restart forgets nothing of it"
        assert waits in row(site, "held")["reason"]
        finish(site)
        operator.wait_until(lambda: row(site, "held")["state"] == "Disabled", "it is gone")
    finally:
        finish(site)


@pytest.mark.slow
def test_what_stays_is_told_and_shown_as_long_as_it_does(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    modules = module_objects.Modules(site, devcluster)
    module(site, "010-web", CLAIM)
    module(site, "020-gone", CLAIM)
    module(site, "030-side")
    site.config(webEnabled="true", goneEnabled="true", sideEnabled="true")
    operator = site.start(WATCH_MODULES="yes").wait_ready()
    site.config(webEnabled="false")
    (site.modules / "020-gone").rename(site.root / "away")
    operator.wait_until(lambda: site.revisions().keys() == {"side"}, "both are removed")

    (entry,) = operator.wait_until(lambda: kept(modules, "web"), "it is shown")
    assert entry.pop("since")
    assert entry == {
        "kind": "PersistentVolumeClaim",
        "namespace": site.namespace,
        "name": "web-data",
        "release": "web",
    }
    told = operator.wait_until(lambda: told_of(site), "Events say so")
    assert f"kubectl delete pvc web-data --namespace {site.namespace}" in told["Module"]
    assert f"kubectl delete pvc gone-data --namespace {site.namespace}" in told["ConfigMap"]

    # The module has it again, also after a restart; what is deleted is not shown any more.
    operator.stop()
    operator = site.start().wait_ready().wait_idle()
    assert kept(modules, "web")[0]["name"] == "web-data"
    site.config(webEnabled="true")
    operator.wait_until(lambda: row(site, "web")["state"] == "Ready", "it is installed again")
    operator.wait_until(lambda: not kept(modules, "web"), "it is the module's again")
    site.config(webEnabled="false")
    operator.wait_until(lambda: kept(modules, "web"), "it stays once more")
    site.patch("pvc", "web-data", {"metadata": {"finalizers": None}})
    site.delete("pvc", "web-data")
    operator.wait_until(lambda: not kept(modules, "web"), "a person has deleted it")


def test_a_removal_that_somebody_has_to_confirm_waits_with_what_requires_it(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    modules = module_objects.Modules(site, devcluster)
    module(site, "010-db", CLAIM)
    module(site, "020-web")
    module(site, "030-gone")
    module(site, "040-side")
    said = {"db": "removal: {data: delete, confirm: true}", "gone": "removal: {confirm: true}"}
    said["web"] = "requires: {modules: [{name: db, until: ready}]}"
    for name, text in said.items():
        next(site.modules.glob(f"*-{name}")).joinpath("module.yaml").write_text(f"{text}\n")
    on = ("db", "web", "gone", "side")
    site.config(**{f"{name}Enabled": "true" for name in on})
    operator = site.start(WATCH_MODULES="yes").wait_ready()
    claim = uid(site, "pvc", "db-data")

    # Disabling it, and removing a directory, wait; a converge is done, and other modules go on.
    site.config(dbEnabled="false")
    operator.wait_until(lambda: is_held(modules, "db") and is_held(modules, "web"), "both wait")
    operator.wait_idle()
    assert row(site, "web")["heldBack"]["confirm"] == "db"
    next(site.modules.glob("*-gone")).rename(site.root / "away")
    operator.wait_until(lambda: is_held(modules, "gone"), "the purge waits, and its Module is there")
    assert site.revisions().keys() == set(on)

    # It waits also after a restart, and goes on without a revision if it is enabled again.
    operator.stop()
    operator = site.start(WATCH_MODULES="yes").wait_ready()
    operator.wait_until(lambda: is_held(modules, "gone") and is_held(modules, "db"), "they still wait")
    site.config(dbEnabled="true")
    operator.wait_until(lambda: row(site, "web")["state"] == "Ready", "both go on as before")
    assert site.deployed() == dict.fromkeys(on, 1)
    site.config(dbEnabled="false")
    operator.wait_until(lambda: is_held(modules, "db"), "it waits once more")

    # A command confirms it, and an annotation with the revision of the release. After a restart, a directory
    # has to be missing for some time again.
    operator.wait_logged("held back", "module remove gone --confirm")
    refused = site.command("module", "remove", "web", "--confirm")
    assert refused.returncode == 1
    assert "module remove db --confirm" in refused.stderr
    assert site.command("module", "remove", "gone", "--confirm").returncode == 0
    operator.wait_until(lambda: site.revisions().keys() == {"db", "web", "side"}, "it is purged")
    operator.wait_until(lambda: modules.get("gone") is None, "its Module goes with the release")
    for revision in ("2", "1"):
        annotation = f"addon-operator.io/confirm-removal={revision}"
        site.kubectl("annotate", "--overwrite", "modules.addon-operator.io", "db", annotation)
    operator.wait_until(lambda: site.revisions().keys() == {"side"}, "both are removed")
    found = site.find("pvc", "db-data")
    assert found is None or (found["metadata"]["uid"] == claim and "deletionTimestamp" in found["metadata"])
    operator.wait_until(
        lambda: "confirm-removal" not in str(modules.get("db")), "the annotation goes with it"
    )


def is_held(modules: module_objects.Modules, name: str) -> bool:
    """Whether the Module says that the removal waits for somebody."""
    found = modules.condition(name, "Ready"), modules.condition(name, "Enabled")
    return {each["reason"] for each in found} == {"WaitsForConfirmation"}


def kept(modules: module_objects.Modules, name: str) -> list[dict[str, Any]]:
    """What the Module says that stays."""
    found: list[dict[str, Any]] = ((modules.get(name) or {}).get("status") or {}).get("kept", [])
    return found


def told_of(site: operator_site.Site) -> dict[str, str]:
    """What Events say that stays, by the kinds of what they are about, once there are two."""
    found = site.objects("events", fieldSelector="reason=Kept")
    told = {each["involvedObject"]["kind"]: each["message"] for each in found}
    return told if len(told) == 2 else {}


def finish(site: operator_site.Site) -> None:
    if site.find("configmap", "held-held") is not None:
        site.patch("configmap", "held-held", {"metadata": {"finalizers": None}})
