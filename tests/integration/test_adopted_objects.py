"""What was there before a release is what it was when a try of the release fails, and is not deleted."""

from typing import Any, Final

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.releases import releases
from tests.integration.helm_site import WEB, Site

pytestmark = pytest.mark.integration

CHART: Final = """\
{{ if not .Values.web.without }}
apiVersion: v1
kind: Service
metadata: {name: dns, labels: {of: chart}}
spec: {selector: {app: web}, ports: [{port: 53, protocol: UDP, name: dns}]}
{{ end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: large}
data: {of: chart}
{{ if .Values.web.fails }}
---
apiVersion: v1
kind: Service
metadata: {name: wrong}
spec: {ports: [{port: 99999}]}
{{ end }}
"""
DNS: Final = {
    "metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm", "of": "platform"}},
    "spec": {"selector": {"app": "dns"}, "ports": [{"port": 53, "protocol": "TCP", "name": "tcp"}]},
}


def seen(found: dict[str, Any]) -> tuple[object, ...]:
    """What an object is, without what the API server counts."""
    metadata = found["metadata"]
    content = found.get("spec"), found.get("data")
    return (metadata["uid"], metadata.get("labels"), metadata.get("annotations"), *content)


async def failed(manager: releases.ReleaseManager, site: Site) -> None:
    with pytest.raises(helm_errors.HelmError):
        await manager.ensure(site.asked(1, fails="yes"))


async def test_what_a_failed_try_took_over_is_given_back_and_what_worked_is_the_releases_own(
    helm_site: Site,
) -> None:
    site = helm_site
    site.write("templates/more.yaml", CHART)
    dns = seen(site.create("service", "dns", DNS))
    large = seen(site.create("configmap", "large", {"data": {"of": "x" * 300_000}}))

    # A first install, which is removed.
    async with site.manager() as manager:
        await failed(manager, site)
        assert site.get("service", "dns")["metadata"]["labels"]["of"] == "chart"
    async with site.manager() as restarted:
        assert await restarted.remove(WEB)
        assert seen(site.get("service", "dns")) == dns
        left = site.get("configmap", "large")["metadata"]
        assert left["uid"] == large[0]
        assert "meta.helm.sh/release-name" not in (left.get("annotations") or {})
        assert any("ConfigMap large is taken over, and too large" in text for text in site.warnings)

        # A first install after which the chart has it no longer.
        await failed(restarted, site)
        assert (await restarted.ensure(site.asked(1, without="yes"))).revision
        assert seen(site.get("service", "dns")) == dns

        # An upgrade that adds it, and is taken back by the next one.
        await failed(restarted, site)
        await restarted.ensure(site.asked(2, without="yes"))
        assert seen(site.get("service", "dns")) == dns

        # The same, taken back by a rollback.
        await failed(restarted, site)
        told = await restarted.roll_back(site.asked(1, fails="yes"), RuntimeError("no"), unhealthy=False)
        assert "is taken back to revision" in str(told)
        assert seen(site.get("service", "dns")) == dns

        # A revision that works makes it the release's own.
        await restarted.ensure(site.asked(3))
        assert await restarted.remove(WEB)
        assert site.find("service", "dns") is None
    assert [each for each in site.listed("secret") if "adopted" in each["metadata"]["name"]] == []
