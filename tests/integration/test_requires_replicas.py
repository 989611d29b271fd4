"""Two replicas with modules that require something, and with a values Secret."""

import json

import pytest

from tests.integration import definitions, operator_process, operator_site, requiring

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def replica(site: operator_site.Site, name: str) -> operator_process.OperatorProcess:
    own = {"ADDON_OPERATOR_POD": name, "DEBUG_UNIX_SOCKET": str(site.root / f"{name}.socket")}
    return site.start(**own, **operator_site.SHORT_LEASE)


def test_the_next_leader_goes_on_where_a_killed_one_waited_for_a_required_module(
    site: operator_site.Site,
) -> None:
    """It removes nothing, and has the Secret as it was edited while nobody led."""
    group = f"{site.namespace}.example.com"
    site.apply(definitions.things(group))
    shop = requiring.module(site, "010-shop", f"apis: [{group}/v1]")
    site.hook(shop, "life.sh", {"beforeDeleteHelm": 1})
    slow = requiring.module(site, "010-slow", "modules: [shop]")
    site.hook(slow, "gate.sh", {"beforeHelm": 1}, f"[[ -e {site.root}/open ]] || exec sleep 60")
    requiring.module(site, "020-last", "modules: [slow]")
    site.secret(last="color: s3cret-one")
    first = replica(site, "first")
    first.wait_until(lambda: "gate.sh beforeHelm" in site.labels(), "the slow module runs")
    second = replica(site, "second")
    second.wait_until(lambda: "STANDBY" in second.get("/status/converge").text, "it stands by")
    assert site.revisions() == {"shop": 1}
    first.kill()
    site.secret(last="color: s3cret-two")
    (site.root / "open").touch()
    second.wait_until(lambda: "last" in site.revisions(), "the next leader goes on")
    second.wait_ready().wait_idle()
    assert site.revisions() == {"shop": 1, "slow": 1, "last": 1}
    assert json.dumps(site.data("last")) == json.dumps({"color": "s3cret-two"})
    assert "life.sh beforeDeleteHelm" not in site.labels(), "nothing was ever deleted"
    assert "s3cret" not in first.log + second.log
    site.secret(last="color: s3cret-three")
    second.wait_until(lambda: site.data("last") == {"color": "s3cret-three"}, "it follows the Secret")
    second.stop()
    site.delete("crd", f"things.{group}")
