"""Hooks of two replicas behind one address answer bursts of requests, whichever of the two goes meanwhile."""

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any, Final

import pytest

from addon_operator.devcluster import api, handle, layout
from tests.integration import admitting, balancing, guarded, operator_process, operator_site

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BURST: Final = 500
AT_ONCE: Final = 64
PATIENCE: Final = 60.0
"""Seconds for one request: on a busy machine hundreds of them wait for each other."""
FORBIDDEN_EACH: Final = 10
NOTICED: Final = 2.0
"""Seconds until the API server knows, through the balancer, that its connections have ended."""
SNAPSHOT: Final = {
    "name": "all",
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "labelSelector": {"matchLabels": {"seen": "yes"}},
    "executeHookOnEvent": [],
    "executeHookOnSynchronization": False,
}
VALIDATES: Final = """
if [[ $contexts != *'"the-seen-one"'* ]]; then
  echo '{"allowed": false, "message": "without its snapshot"}' > "$VALIDATING_RESPONSE_PATH"
elif [[ $contexts == *'"forbidden"'* ]]; then
  echo '{"allowed": false, "message": "not this one"}' > "$VALIDATING_RESPONSE_PATH"
else
  echo '{"allowed": true}' > "$VALIDATING_RESPONSE_PATH"
fi
"""
MUTATES: Final = """
echo '{"allowed": true, "patch": [{"op": "add", "path": "/data/color", "value": "green"}]}' \\
  > "$VALIDATING_RESPONSE_PATH"
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Created:
    """What became of one request."""

    number: int
    began: float
    answer: api.ApiAnswer

    @property
    def is_right(self) -> bool:
        """Whether both hooks have answered."""
        if self.number % FORBIDDEN_EACH:
            return self.answer.is_success and '"color":"green"' in self.answer.text
        return "denied the request: not this one" in self.answer.text

    def told(self, since: float = 0.0) -> str:
        """What it got instead, and when."""
        return (
            f"{self.number} at {self.began - since:.2f}: {self.answer.document().get('message', self.answer)}"
        )


class Pair:
    """Two replicas whose hooks are asked at one address; the first one leads."""

    def __init__(
        self, site: operator_site.Site, cluster: handle.DevCluster, stack: contextlib.ExitStack
    ) -> None:
        self.site = site
        self._client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url, PATIENCE)
        ports = [operator_process.free_port() for _ in range(2)]
        balancer = stack.enter_context(contextlib.closing(balancing.Balancer(ports)))
        shared = {**operator_site.SHORT_LEASE, "WEBHOOK_URL": f"https://127.0.0.1:{balancer.port}"}
        first, second = (
            {**admitting.webhook_environment(port), **shared, "ADDON_OPERATOR_POD": name}
            | {"DEBUG_UNIX_SOCKET": str(site.root / f"{name}.socket")}
            for port, name in zip(ports, ("first", "second"), strict=True)
        )
        self.first = stack.enter_context(admitting.admitting(site, cluster, **first))
        self.second = site.start(**second)
        stack.callback(self.second.kill)
        self.second.wait_logged("standing by")
        self.second.wait_until(self._both_answer, "both replicas answer")

    def create(self, number: int) -> Created:
        """Create a ConfigMap; each tenth is forbidden."""
        kind = "fine" if number % FORBIDDEN_EACH else "forbidden"
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"generateName": f"{kind}-", "labels": dict(guarded.LABELS)},
            "data": {"kind": kind},
        }
        began = time.monotonic()
        path = f"/api/v1/namespaces/{self.site.namespace}/configmaps"
        return Created(number, began, self._client.request("POST", path, body))

    def burst(self, pool: futures.Executor) -> "list[futures.Future[Created]]":
        """Begin to create many of them."""
        return [pool.submit(self.create, number) for number in range(BURST)]

    def _both_answer(self) -> bool:
        """The API server keeps connections: only what is created side by side reaches both replicas."""
        with futures.ThreadPoolExecutor(8) as pool:
            created = list(pool.map(self.create, range(16)))
        asked = [each.metrics().total("webhook_hook_requests_total") for each in (self.first, self.second)]
        return all(each.is_right for each in created) and all(asked)


@pytest.fixture
def pair(site: operator_site.Site, devcluster: handle.DevCluster) -> Iterator[Pair]:
    module = site.module("010-shop", values="shopEnabled: true\n")
    slow = {"timeoutSeconds": 30}
    site.hook(
        module,
        "guard.sh",
        {
            "kubernetes": [SNAPSHOT],
            "kubernetesValidating": [
                guarded.binding(site, "guard.shop.example", includeSnapshotsFrom=["all"], **slow)
            ],
        },
        VALIDATES,
    )
    site.hook(
        module,
        "paint.sh",
        {"kubernetesMutating": [guarded.binding(site, "paint.shop.example", **slow)]},
        MUTATES,
    )
    site.config()
    site.create("configmap", "the-seen-one")
    site.label("configmap", "the-seen-one", {"seen": "yes"})
    with contextlib.ExitStack() as stack:
        yield Pair(site, devcluster, stack)


def wait_answered(created: "list[futures.Future[Created]]", count: int) -> None:
    done = iter(futures.as_completed(created))
    for _ in range(count):
        next(done)


def leads(operator: operator_process.OperatorProcess) -> bool:
    return operator.get("/metrics").status == 200 and operator.metrics().total("leader") == 1


@pytest.mark.parametrize("who", ["leader", "standby"])
def test_a_burst_is_answered_to_the_last_request_while_a_replica_stops(pair: Pair, who: str) -> None:
    stops, stays = (pair.first, pair.second) if who == "leader" else (pair.second, pair.first)
    with futures.ThreadPoolExecutor(AT_ONCE) as pool:
        created = pair.burst(pool)
        wait_answered(created, BURST // 10)
        stops.stop()
        results = [each.result() for each in created]
    assert [each.told() for each in results if not each.is_right] == []
    stays.wait_until(lambda: leads(stays), "the other one leads")
    stays.wait_ready()
    assert pair.create(1).is_right
    assert pair.create(0).is_right


def test_a_burst_is_answered_but_for_what_the_leader_has_in_its_hands_when_it_is_killed(pair: Pair) -> None:
    with futures.ThreadPoolExecutor(AT_ONCE) as pool:
        created = pair.burst(pool)
        wait_answered(created, BURST // 10)
        pair.first.kill()
        killed = time.monotonic()
        wait_answered(created, BURST)
        pair.second.wait_until(lambda: leads(pair.second), "the second one leads")
        meanwhile = pair.burst(pool)
        wait_answered(meanwhile, BURST)
    wrong = [each.result() for each in (*created, *meanwhile) if not each.result().is_right]
    # Those are out of anybody's reach; nothing that begins later is lost.
    assert [each.told(killed) for each in wrong if each.began > killed + NOTICED] == []
    assert all("failed calling webhook" in each.answer.text for each in wrong)
    assert len(wrong) <= AT_ONCE


def test_a_burst_is_answered_by_both_while_the_module_is_disabled_and_enabled(pair: Pair) -> None:
    with futures.ThreadPoolExecutor(AT_ONCE) as pool:
        created = pair.burst(pool)
        wait_answered(created, BURST // 10)
        pair.site.config(shopEnabled="false")
        results = [each.result().answer for each in created]
        assert [each for each in results if not each.is_success and "not this one" not in each.text] == []
        pair.first.wait_until(lambda: pair.create(0).answer.is_success, "nobody is asked any more")
        pair.site.config(shopEnabled="true")
        pair.first.wait_until(lambda: pair.create(0).is_right, "both are asked again")
        results_again = [each.result() for each in pair.burst(pool)]
    assert [each for each in results_again if not each.is_right] == []


def test_a_burst_is_answered_while_somebody_edits_and_deletes_what_asks_the_hooks(pair: Pair) -> None:
    path = f"{admitting.CONFIGURATIONS[1]}/addon-operator-{pair.site.namespace}-hooks"
    with futures.ThreadPoolExecutor(AT_ONCE) as pool:
        created = pair.burst(pool)
        wait_answered(created, BURST // 10)
        live = json.loads(pair.site.request("GET", path).text)
        live["webhooks"][0]["failurePolicy"] = "Ignore"
        assert pair.site.request("PUT", path, live).is_success
        wait_answered(created, BURST // 5)
        assert pair.site.request("DELETE", path).is_success
        results = [each.result() for each in created]
    # Whoever comes while nobody is asked is not denied; none fails, and all are painted by the other webhook.
    failed = [
        each for each in results if not each.answer.is_success and "not this one" not in each.answer.text
    ]
    assert [each.told() for each in failed] == []
    assert all('"color":"green"' in each.answer.text for each in results if each.answer.is_success)
    pair.first.wait_until(lambda: pair.create(0).is_right, "it is registered again")
    assert [each.told() for each in (pair.create(number) for number in range(20)) if not each.is_right] == []
