"""What was there before a release is what it was when a try of the release fails, and is not deleted."""

import asyncio
from typing import Any, Final

import pytest
from msgspec import structs
from typing_extensions import override

from addon_operator.helm import helm_errors, release_types
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


def own_marks(site: Site) -> dict[str, Any]:
    """The metadata of an object that Helm would take for the release's."""
    annotations = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": site.namespace}
    return {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": annotations}


async def failed(
    manager: releases.ReleaseManager, site: Site, *, size: int = 1, insists: bool = False
) -> str:
    asked = structs.replace(site.asked(size, fails="yes", fresh=True), insists=insists)
    with pytest.raises(helm_errors.HelmError) as raised:
        await manager.ensure(asked)
    return str(raised.value)


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

        # A first install after which the chart has it no longer. The same is not tried again by itself.
        assert "is not tried again" in await failed(restarted, site)
        called = len(site.verbs)
        assert "the first install took over objects" in await failed(restarted, site)
        assert len(site.verbs) == called
        assert "revision 1 failed because of this" in await failed(restarted, site, insists=True)
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


async def test_what_bears_the_marks_of_a_release_and_is_in_none_of_its_revisions_was_there_before(
    helm_site: Site,
) -> None:
    site = helm_site
    site.write("templates/more.yaml", CHART)
    async with site.manager() as manager:
        marked = site.create("service", "dns", {**DNS, "metadata": own_marks(site)})["metadata"]
        made_at = marked["creationTimestamp"]
        while site.create("configmap", "clock")["metadata"]["creationTimestamp"] == made_at:
            site.delete("configmap", "clock")
            await asyncio.sleep(0.1)
        planned = await manager.preview(site.asked(1, fails="yes"))
        assert "Service dns" in str(planned.adopted)
        await failed(manager, site)
        await failed(manager, site, size=2)
        assert await manager.remove(WEB)
        left = site.get("service", "dns")["metadata"]
        assert (left["uid"], left.get("annotations")) == (marked["uid"], None)

        # What the release had when its record went.
        await manager.ensure(site.asked(4))
        site.patch("service", "dns", {"metadata": {"labels": {"of": "somebody"}}})
        for each in site.listed("secret", labelSelector="owner=helm,name=web"):
            site.delete("secret", each["metadata"]["name"])
        await failed(manager, site)
        assert await manager.remove(WEB)
        left = site.get("service", "dns")["metadata"]
        assert (left["uid"], left["labels"]["of"]) == (marked["uid"], "somebody")

        # A first install that is taken back by itself is not made again by itself, either.
        error = RuntimeError(await failed(manager, site, size=5))
        await manager.roll_back(site.asked(5, fails="yes"), error, unhealthy=False)
        assert site.revisions() == {}
        assert "the first install took over objects" in await failed(manager, site, size=5)
        assert site.revisions() == {}


class Gaining(release_types.Others):
    """Other modules, of which one has yet to run."""

    @override
    async def may_gain(self) -> bool:
        return True


async def test_what_a_first_install_left_for_a_module_that_has_yet_to_run_was_not_there_before(
    helm_site: Site,
) -> None:
    site = helm_site
    site.write("templates/more.yaml", CHART)
    asked = structs.replace(site.asked(1, fresh=True, fails="yes"), others=Gaining())
    async with site.manager() as manager:
        for _ in range(3):
            with pytest.raises(helm_errors.HelmError, match="99999") as raised:
                await manager.ensure(asked)
            assert "took over" not in str(raised.value)
            await manager.roll_back(asked, raised.value, unhealthy=False)
            assert site.find("configmap", "large") is not None
        before = site.get("configmap", "large")["metadata"]["uid"]
        await manager.ensure(site.asked(1, fresh=True))
        assert site.get("configmap", "large")["metadata"]["uid"] == before
        await manager.let_go(lambda _: release_types.Others())
        assert site.get("configmap", "large")["metadata"]["uid"] == before
        assert await manager.remove(WEB)
    assert site.find("configmap", "large") is None
    assert "was there before" not in "".join(site.warnings)
