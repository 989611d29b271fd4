"""APIs that modules require and whose servers do not answer, or that go: nothing is removed."""

import json

import pytest

from tests.integration import definitions, operator_process, operator_site, requiring

pytestmark = pytest.mark.integration


def break_api(site: operator_site.Site, api: str) -> None:
    """Register a server for the API that does not answer, in the place of who serves it."""
    group, _, version = api.partition("/")
    name, kind = f"{version}.{group}", ("apiservice.apiregistration.k8s.io",)
    spec = {
        "group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100,
        "insecureSkipTLSVerify": True, "service": {"name": "nobody", "namespace": site.namespace},
    }  # fmt: skip
    if site.kubectl("get", *kind, name, "--ignore-not-found"):
        # Not the label is left by which the API server knows those that it makes for definitions.
        labels = {"kube-aggregator.kubernetes.io/automanaged": None}
        patch = json.dumps({"metadata": {"labels": labels}, "spec": spec})
        site.kubectl("patch", *kind, name, "--type=merge", f"--patch={patch}")
        return
    found = {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip
    site.cluster.run_kubectl("create", "-f", "-", stdin=json.dumps(found))


def answers(site: operator_site.Site, api: str) -> bool:
    """Whether the API is available."""
    group, _, version = api.partition("/")
    path = "--output=jsonpath={.status.conditions[0].status}"
    return site.kubectl("get", "apiservice", f"{version}.{group}", "--ignore-not-found", path) == "True"


@pytest.mark.slow
def test_an_api_whose_server_stops_answering_and_that_goes_then_removes_nothing(
    site: operator_site.Site,
) -> None:
    group = f"{site.namespace}.example.com"
    api = f"{group}/v1"
    requiring.module(site, "010-shop", f"apis: [{api}]")
    requiring.module(site, "020-till", "modules: [shop]")
    everything = {"shop": 1, "till": 1}
    break_api(site, api)
    operator = site.start().wait_ready()
    try:
        silent = f"requires the API {api}, whose server does not answer"
        requiring.wait_for(site, "shop", "Disabled", silent)
        site.delete("apiservice", f"v1.{group}")
        site.apply(definitions.things(group))
        operator.wait_until(lambda: site.revisions() == everything, "both are installed")
        operator.wait_idle()
        break_api(site, api)
        operator_process.wait_until(lambda: not answers(site, api), "it does not answer")
        # This is looked at after the change of the API, which is then known.
        site.config(till="color: blue")
        operator.wait_until(lambda: site.deployed() == {"shop": 1, "till": 2}, "all goes on")
        operator.stop()
        calls = len(site.helm_calls())
        operator = site.start().wait_ready().wait_idle()
        assert len(site.helm_calls()) == calls, "nothing is removed, and nothing runs"
        assert site.revisions() == {"shop": 1, "till": 2}
        site.delete("crd", f"things.{group}")
        site.delete("apiservice", f"v1.{group}")
        requiring.wait_for(site, "shop", "Ready", f"requires the API {api}, which the cluster does not serve")
        operator.wait_idle()
        assert site.revisions() == {"shop": 1, "till": 2}
        operator.stop()
    finally:
        site.delete("apiservice", f"v1.{group}")
        operator.kill()
