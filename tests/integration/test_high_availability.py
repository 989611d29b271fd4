"""Several replicas on a real control plane: one leads, another takes over, and nobody leads twice."""

import json
from typing import Any

import pytest

from tests.integration import operator_process, operator_site

pytestmark = pytest.mark.integration

LEASE = "addon-operator-leader-election"
QUICK = {
    "ADDON_OPERATOR_HA": "true",
    "LEASE_DURATION": "4s",
    "LEASE_RENEW_DEADLINE": "2500ms",
    "LEASE_RETRY_PERIOD": "500ms",
}
"""Durations that keep the tests short; those of the defaults are tested where they are the point."""


def holder(site: operator_site.Site) -> str:
    return str(lease(site)["holderIdentity"])


def lease(site: operator_site.Site) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(site.kubectl("get", "lease", LEASE, "-o", "json"))["spec"]
    return spec


def replica(site: operator_site.Site, name: str, **extra: str) -> operator_process.OperatorProcess:
    return site.start(**(QUICK | {"ADDON_OPERATOR_POD": name} | extra))


def leads(operator: operator_process.OperatorProcess) -> bool:
    return operator.metrics().total("leader") == 1


def wait_standing_by(operator: operator_process.OperatorProcess, leader: str) -> None:
    operator.wait_until(
        lambda: operator.get("/status/converge").text.startswith(f"STANDBY: {leader}"), f"{leader} leads"
    )


def test_one_replica_leads_and_another_takes_over_at_once_when_it_stops(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    site.hook(web, "look.sh", {"onStartup": 1})
    first = replica(site, "first").wait_ready()
    second = replica(site, "second").wait_ready()
    wait_standing_by(second, "first")
    assert (leads(first), leads(second)) == (True, False)
    assert second.get("/healthz").status == 200
    assert site.labels() == ["look.sh onStartup"], "a standby runs no hook"
    assert holder(site).startswith("first")
    first.terminate()
    second.wait_until(lambda: leads(second), "the second one leads", deadline=15)
    assert first.wait_end().exit_code == 0
    second.wait_ready()
    assert holder(site).startswith("second")
    second.stop()
    assert holder(site) == ""
