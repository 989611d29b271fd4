"""Releases that the Go operator made are gone on with: no revision unless something differs."""

import hashlib
import pathlib
import shutil
from typing import Any, Final

import pytest

from tests.integration import helm_records, operator_site

pytestmark = pytest.mark.integration

DATA = {"color": "{{ .Values.web.color }}"}


def made_by_the_go_operator(site: operator_site.Site, module: pathlib.Path, values: str) -> None:
    """Install a module's release as the Go operator leaves it.

    It puts its label on each object after rendering, and the checksum of that manifest on the release.
    """
    name = module.name.lstrip("0123456789-")
    chart = site.root / "go-operator" / name
    shutil.copytree(module, chart)
    template = chart / "templates" / "configmap.yaml"
    labelled = template.read_text().replace(
        "metadata:\n", "metadata:\n  labels: {heritage: addon-operator}\n"
    )
    template.write_text(labelled)
    given = site.root / "values.yaml"
    given.write_text(values)
    checksum = hashlib.md5(labelled.encode(), usedforsecurity=False).hexdigest()
    site.cluster.run_helm(
        f"--namespace={site.namespace}", "install", name, str(chart), "--values", str(given),
        "--labels", f"moduleChecksum={checksum}",
    )  # fmt: skip


INGRESS: Final = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: "{{ .Release.Name }}"}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
"""
BUDGET: Final = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: "{{ .Release.Name }}"}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
"""
GONE: Final = """
---
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: restricted}
"""


def age(site: operator_site.Site, release: str) -> None:
    """Have a record be that of a cluster of years ago, with versions, a group and a kind that are gone."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        manifest = found["manifest"].replace("networking.k8s.io/v1", "extensions/v1beta1")
        return {**found, "manifest": manifest.replace("policy/v1", "policy/v1beta1") + GONE}

    helm_records.change(site, release, 1, change)


def labels(site: operator_site.Site, release: str) -> dict[str, Any]:
    (record,) = site.objects("secrets", labelSelector=f"owner=helm,name={release},status=deployed")
    found: dict[str, Any] = record["metadata"]["labels"]
    return found


def test_releases_of_the_go_operator_are_adopted_unchanged(
    site: operator_site.Site, helm: pathlib.Path
) -> None:
    site.use_helm(helm)
    site.values("webEnabled: true\napiEnabled: true\nbareEnabled: true\nweb: {color: green}")
    web = site.module("010-web", DATA)
    api = site.module("020-api", {"color": "green"})
    bare = site.module("030-bare", {"color": "green"})
    idle = site.module("040-idle", {"color": "green"})
    gone = site.module("050-gone", {"color": "green"})
    for module in (api, gone):
        (module / "templates" / "ingress.yaml").write_text(INGRESS)
        (module / "templates" / "budget.yaml").write_text(BUDGET)
    for module in (web, api, bare, idle, gone):
        made_by_the_go_operator(site, module, "global: {}\nweb: {color: green}\n")
    (bare / "Chart.yaml").unlink()
    site.chart(api, {"color": "red"})
    (api / "templates" / "budget.yaml").unlink()
    for release in ("api", "gone"):
        age(site, release)
    ingress = site.get("ingress", "api")["metadata"]["uid"]
    gone.rename(site.root / "elsewhere")
    site.install("foreign", site.root / "elsewhere")

    site.first_retry = operator_site.SOON
    operator = site.start().wait_ready()

    stay = {"web": 1, "api": 2, "bare": 1, "foreign": 1}
    assert site.revisions() == {**stay, "idle": 1, "gone": 1}, "what is taken over is not removed at once"
    assert operator.metrics().total("helm_upgrades_skipped_total", module="web", by="manifest") == 1
    assert labels(site, "web")["addon-operator.io/managed"] == "true"
    assert "moduleChecksum" in labels(site, "web"), "the way back is left open"
    assert site.data("api") == {"color": "red"}
    assert site.get("ingress", "api")["metadata"]["uid"] == ingress
    assert site.find("poddisruptionbudget", "api") is None, "what left the chart goes, as it is called now"
    operator.stop()

    before = site.helm_calls()
    again = site.start().wait_ready().wait_idle()
    again.wait_until(lambda: site.revisions() == stay, "what nobody has a module for goes")
    after = [each for each in site.helm_calls()[len(before) :] if not each.startswith("uninstall")]
    assert after == [], "the next start knows them as its own"
    assert (
        site.data("idle") is site.find("ingress", "gone") is site.find("poddisruptionbudget", "gone") is None
    )
    site.config(web="color: blue")
    again.wait_until(lambda: site.data("web") == {"color": "blue"}, "an edit is applied")
    assert site.revisions()["web"] == 2
    again.wait_idle().stop()

    back_and_forth(site, web)


def back_and_forth(site: operator_site.Site, web: pathlib.Path) -> None:
    """Back to the Go operator, which makes a revision, and here again."""
    template = site.root / "go-operator" / "web" / "templates" / "configmap.yaml"
    template.write_text(template.read_text() + "  by: go\n")
    site.cluster.run_helm(
        f"--namespace={site.namespace}", "upgrade", "web", str(template.parents[1]), "--values",
        str(site.root / "values.yaml"), "--labels", "moduleChecksum=another",
    )  # fmt: skip
    site.chart(web, {**DATA, "by": "go"})
    site.config(web="color: green")
    here = site.start().wait_ready().wait_idle()
    assert site.revisions()["web"] == 3, "its revision is taken over"
    assert "made or changed by others" not in here.log
