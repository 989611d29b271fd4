"""APIs that modules require and whose servers do not answer, or that go: nothing is removed."""

import pytest

from tests.integration import definitions, operator_process, operator_site, requiring

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_an_api_whose_server_stops_answering_and_that_goes_then_removes_nothing(
    site: operator_site.Site,
) -> None:
    group = f"{site.namespace}.example.com"
    api = f"{group}/v1"
    requiring.module(site, "010-shop", f"apis: [{api}]")
    requiring.module(site, "020-till", "modules: [shop]")
    everything = {"shop": 1, "till": 1}
    requiring.break_api(site, api)
    operator = site.start().wait_ready()
    try:
        silent = f"requires the API {api}, whose server does not answer"
        requiring.wait_for(site, "shop", "Disabled", silent)
        site.delete("apiservice", f"v1.{group}")
        site.apply(definitions.things(group))
        operator.wait_until(lambda: site.revisions() == everything, "both are installed")
        operator.wait_idle()
        requiring.break_api(site, api)
        operator_process.wait_until(lambda: not requiring.answers(site, api), "it does not answer")
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
