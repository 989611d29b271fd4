"""Whose hooks convert: of several operators, and of definitions that are part of a release."""

import json
import pathlib
from typing import Any, Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import admitting, definitions, operator_process, operator_site

pytestmark = pytest.mark.integration

_CONVERTS: Final = """\
#!/usr/bin/env bash
source "$ADDON_OPERATOR_SHELL_LIBRARY"
__config__() {
  cat <<'END'
@CONFIG@
END
}
__on_conversion::both() {
  conversion::convert ".size = $(context::jq '.snapshots.counted | length')"
}
hook::run "$@"
"""
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def write_hook(site: operator_site.Site, module: pathlib.Path, crd: str) -> None:
    """Write a hook that writes the number of labelled ConfigMaps into what it converts."""
    counted = {
        "name": "counted",
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
        "labelSelector": {"matchLabels": {"counted": "yes"}},
        "executeHookOnEvent": [],
        "executeHookOnSynchronization": False,
    }
    rules = [{"fromVersion": a, "toVersion": b} for a, b in (("v1", "v2"), ("v2", "v1"))]
    converts = {"name": "both", "crdName": crd, "conversions": rules, "includeSnapshotsFrom": ["counted"]}
    config = {
        "configVersion": "v1",
        "kubernetes": [counted],
        "kubernetesCustomResourceConversion": [converts],
    }
    site.script(
        module / "hooks" / "convert.sh", _CONVERTS.replace("@CONFIG@", json.dumps(config)), exact=True
    )


def count(site: operator_site.Site, number: int) -> None:
    """Make so many ConfigMaps that conversions count."""
    for each in range(number):
        metadata = {"name": f"counted-{each}", "labels": {"counted": "yes"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        assert site.request("POST", f"/api/v1/namespaces/{site.namespace}/configmaps", body).is_success


class Kind:
    """Objects of a definition, stored as ``v2``."""

    def __init__(self, site: operator_site.Site, plural: str) -> None:
        self._site = site
        self.group = f"{site.namespace}.example"
        self.plural = plural
        self.crd = f"{plural}.{self.group}"
        self.text = definitions.definition(self.group, plural, "v1", "v2")

    def create(self) -> None:
        kind = self.plural[:-1].capitalize()
        body = {"apiVersion": f"{self.group}/v2", "kind": kind, "metadata": {"name": "a"}, "size": 99}
        answer = self._site.request("POST", self._path("v2"), body)
        assert answer.is_success, answer

    def read(self, version: str = "v1") -> object:
        """Its size, or what the API server says instead."""
        answer = self._site.request("GET", f"{self._path(version)}/a")
        return json.loads(answer.text)["size"] if answer.is_success else answer.text

    def live(self) -> dict[str, Any]:
        answer = self._site.request("GET", f"{_CRDS}/{self.crd}")
        assert answer.is_success, answer
        found: dict[str, Any] = json.loads(answer.text)
        return found

    @property
    def strategy(self) -> str:
        return str(self.live()["spec"]["conversion"]["strategy"])

    def _path(self, version: str) -> str:
        return f"/apis/{self.group}/{version}/namespaces/{self._site.namespace}/{self.plural}"


@pytest.mark.slow
def test_two_operators_convert_each_its_own_with_their_snapshots_and_never_the_same_definition(
    site: operator_site.Site, devcluster: handle.DevCluster, tmp_path: pathlib.Path
) -> None:
    other = operator_site.Site(devcluster, devcluster.namespace("other"), tmp_path / "other")
    other.first_retry = operator_site.SOON
    things, parts = Kind(site, "things"), Kind(other, "parts")
    for number, (here, kind) in enumerate(((site, things), (other, parts)), start=1):
        module = here.module("010-own", values="ownEnabled: true\n")
        definitions.write(module, "own.yaml", kind.text)
        write_hook(here, module, kind.crd)
        here.config()
        count(here, number)
    second = other.module("020-second", values="secondEnabled: false\n")
    write_hook(other, second, things.crd)
    try:
        with (
            admitting.admitting(site, devcluster) as first_operator,
            admitting.admitting(other, devcluster) as operator,
        ):
            for kind in (things, parts):
                operator.wait_until(lambda: kind.strategy == "Webhook", "it is converted")  # noqa: B023
                kind.create()
            assert (things.read(), parts.read()) == (1, 2)
            before = things.live()["spec"]["conversion"]
            other.config(secondEnabled="true")
            operator.wait_logged(f"{things.crd} is converted by the operator in namespace {site.namespace}")
            told = other.command("module", "describe", "second").stdout
            assert "disable the module there" in " ".join(told.split()), told
            assert things.live()["spec"]["conversion"] == before
            assert parts.read() == 2
            site.config(ownEnabled="false")
            first_operator.wait_until(lambda: things.live()["spec"]["conversion"] != before, "it was let go")
            operator.wait_until(lambda: things.read() == 2, "the second operator converts now")
            other.config(ownEnabled="false", secondEnabled="false")
            operator.wait_until(lambda: {things.strategy, parts.strategy} == {"None"}, "both are set back")
    finally:
        other.close()


def write_chart(
    site: operator_site.Site, module: pathlib.Path, kind: Kind, label: str, spec: str = ""
) -> None:
    """Write the chart anew, with the definition as one of its templates."""
    site.chart(module, {"label": label})
    text = kind.text.replace("metadata:\n", f"metadata:\n  labels: {{color: {label}}}\n", 1)
    (module / "templates" / "definition.yaml").write_text(text + spec)


@pytest.mark.slow
def test_a_definition_of_a_chart_stays_converted_over_upgrades_and_is_not_seen_as_drift(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    module = site.module("010-own", values="ownEnabled: true\n")
    kind = Kind(site, "things")
    write_chart(site, module, kind, "red")
    write_hook(site, module, kind.crd)
    site.config()
    count(site, 1)
    with admitting.admitting(site, devcluster, DRIFT_MODE="correct", WATCH_MODULES="true") as operator:
        operator.wait_until(lambda: kind.strategy == "Webhook", "it is converted")
        kind.create()
        assert kind.read() == 1
        before = kind.live()["spec"]["conversion"]
        write_chart(site, module, kind, "blue")
        wait_upgraded(site, operator, kind, "blue")
        assert kind.live()["spec"]["conversion"] == before
        assert "spec.conversion was changed by somebody" not in operator.log
        assert kind.read() == 1
        see_no_drift(site, operator, "blue")
        assert site.deployed() == {"own": 2}


@pytest.mark.slow
def test_a_chart_that_sets_the_conversion_itself_is_told_what_to_do_and_converted_meanwhile(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    site.first_retry = operator_site.SOON
    module = site.module("010-own", values="ownEnabled: true\n")
    kind = Kind(site, "things")
    write_chart(site, module, kind, "red", "  conversion: {strategy: None}\n")
    write_hook(site, module, kind.crd)
    site.config()
    count(site, 1)
    with admitting.admitting(site, devcluster, DRIFT_MODE="correct", WATCH_MODULES="true") as operator:
        operator.wait_until(lambda: kind.strategy == "Webhook", "it is converted")
        kind.create()
        see_no_drift(site, operator, "red")
        before = kind.live()["spec"]["conversion"]
        write_chart(site, module, kind, "blue", "  conversion: {strategy: None}\n")
        operator.wait_logged("UPGRADE FAILED")
        operator.wait_until(lambda: operator.log.count("next try in") > 1, "it is tried again")
        told = " ".join(site.command("module", "describe", "own").stdout.split())
        assert "take that out of the chart, for example with patches in module.yaml" in told, told
        assert kind.live()["spec"]["conversion"] == before
        assert kind.read() == 1
        patch = {"kind": "CustomResourceDefinition", "name": kind.crd}
        (module / "module.yaml").write_text(
            json.dumps({"patches": [{"target": patch, "patch": {"spec": {"conversion": None}}}]})
        )
        wait_upgraded(site, operator, kind, "blue")
        operator.wait_until(lambda: kind.live()["spec"]["conversion"] == before, "it is converted again")
        assert kind.read() == 1
        see_no_drift(site, operator, "blue")


def wait_upgraded(
    site: operator_site.Site, operator: operator_process.OperatorProcess, kind: Kind, label: str
) -> None:
    operator.wait_until(lambda: (site.data("own") or {}).get("label") == label, "it is upgraded")
    operator.wait_idle()
    assert kind.live()["metadata"]["labels"]["color"] == label


def see_no_drift(site: operator_site.Site, operator: operator_process.OperatorProcess, label: str) -> None:
    """Change something else, which is put back: drift has been looked for by then."""
    site.patch("configmap", "own", {"data": {"label": "odd"}})
    operator.wait_until(lambda: (site.data("own") or {}).get("label") == label, "it is put back")
    assert operator.metrics().total("module_drifted_resources") == 0
    assert not [line for line in operator.log.splitlines() if "/spec/conversion" in line]
