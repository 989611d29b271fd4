"""The API server away for a while, and a long life: nothing is dropped, and memory does not grow."""

import concurrent.futures
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from addon_operator.devcluster import (
    api,
    cluster,
    handle,
    layout,
    locations,
    reporters,
    state,
)
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.process import daemons
from tests.integration import admitting, operator_process, operator_site

pytestmark = [pytest.mark.integration, pytest.mark.slow]

AWAY_SECONDS: Final = 75.0
NAME: Final = layout.ClusterName("outage")
MIB: Final = 1 << 20


class Outage:
    """A control plane of the test's own, whose API server it takes away and brings back."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self._manager = cluster.ClusterManager(root, reporters.Reporter())

    def up(self) -> handle.DevCluster:
        where = locations.locate(os.environ)
        request = cluster.ClusterRequest(NAME, components.DEFAULT_VERSION, nodes=False)
        with binaries.workshop(where, os.environ, reporters.Reporter()) as store:
            found = self._manager.up(request, store)
        return handle.DevCluster(found.name, found.version, found.url, found.kubeconfig, found.bin)

    def take_away(self) -> None:
        known = state.load(self._root / NAME / "state.json")
        assert known is not None
        daemons.ProcessTable().kill([known.components[components.KUBE_APISERVER].process])

    def down(self) -> None:
        self._manager.down(NAME)


@pytest.fixture
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    made = Outage(tmp_path_factory.mktemp("clusters"))
    try:
        yield made
    finally:
        made.down()


def memory(operator: operator_process.OperatorProcess) -> int:
    """Resident bytes that are not shared files."""
    lines = pathlib.Path(f"/proc/{operator.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("RssAnon:")]
    return int(line.split()[1]) * 1024


def wait_while(seconds: float, look: Callable[[], None]) -> None:
    """Look once a second; an outage has to last, whatever is done meanwhile."""
    pause = threading.Event()
    for _ in range(int(seconds)):
        look()
        pause.wait(1)


def test_an_api_server_that_was_away_for_minutes_changes_nothing(
    outage: Outage, tmp_path: pathlib.Path
) -> None:
    own = outage.up()
    site = operator_site.Site(own, own.namespace(), tmp_path)
    gate = _two_modules(site)
    try:
        with_admission = admitting.webhook_environment(operator_process.free_port())
        operator = site.start(**with_admission)
        operator.wait_until(site.labels, "the first module runs")
        operator.wait_until(lambda: operator.get("/readyz/admission").status == 200, "pods are admitted")
        shop = admitting.Shop(
            own.namespace("shop"), operator, own, api.ApiClient(layout.Layout(own.kubeconfig.parent), own.url)
        )
        shop.preset()
        operator.wait_until(lambda: admitting.is_injected(shop, operator), "pods are injected")

        outage.take_away()
        gate.touch()
        operator.wait_logged("run of the module failed", "web")
        before, waiting = memory(operator), operator.metrics().total("tasks_queue_length")

        def still_there() -> None:
            metrics = operator.metrics()
            assert metrics.total("tasks_queue_length") == waiting, "no task is dropped, and none piles up"
            assert operator.get("/healthz").status == 200
            assert operator.get("/readyz").status == 503

        wait_while(AWAY_SECONDS, still_there)
        assert memory(operator) - before < 10 * MIB
        tries = operator.metrics().total("module_run_errors_total", module="web")
        assert 2 <= tries <= 10, "it is tried again, less and less often"
        assert len(operator.log.splitlines()) < 150, "and the log is not flooded"

        assert outage.up().url == own.url
        operator.wait_ready(deadline=90)
        assert site.revisions() == {"web": 1, "api": 1}
        site.config(web="color: red")
        operator.wait_until(lambda: site.data("web") == {"color": "red"}, "an edit is taken", deadline=90)
        pod = shop.pod()
        assert pod["spec"]["containers"][0]["env"], "pods are admitted as before"
        operator.wait_idle()
        assert memory(operator) - before < 20 * MIB
        operator.stop()
    finally:
        site.close()


def _two_modules(site: operator_site.Site) -> pathlib.Path:
    """The second waits for the first, whose hook waits for the file that is given back."""
    gate = site.root / "open"
    site.values("webEnabled: true\napiEnabled: true\nweb: {color: green}")
    web = site.module("010-web", {"color": "{{ .Values.web.color }}"})
    site.module("020-api", {"color": "green"})
    site.hook(web, "gate.sh", {"beforeHelm": 1}, f"until [[ -e {gate} ]]; do sleep 0.1; done")
    return gate


def test_memory_does_not_grow_with_edits_and_pods(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    """What grows by a kilobyte with each of them would show."""
    site.values("webEnabled: true\nweb: {color: green}")
    web = site.module("010-web", {"color": "fixed"})
    site.hook(web, "look.sh", {"beforeHelm": 1})
    with admitting.opened(site, devcluster) as shop:
        shop.preset()
        shop.operator.wait_until(lambda: admitting.is_injected(shop, shop.operator), "pods are injected")
        _live(site, shop, edits=40, pods=1500)
        before = memory(shop.operator)
        _live(site, shop, edits=80, pods=3000)
        grown = memory(shop.operator) - before
        assert grown < 4 * MIB, f"{grown} bytes"
        shop.operator.wait_idle()


def _live(site: operator_site.Site, shop: admitting.Shop, *, edits: int, pods: int) -> None:
    """Edits, each of which makes a run, beside pods that are admitted and not kept."""
    path = f"/api/v1/namespaces/{site.namespace}/configmaps/{operator_site.CONFIG_MAP}"
    if site.data(operator_site.CONFIG_MAP) is None:
        site.config()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        admitted = [pool.submit(shop.pod, dry_run=True) for _ in range(pods)]
        for number in range(edits):
            known = len(site.runs())
            current = shop.request("GET", path)
            shop.request("PUT", path, {**current, "data": {"web": f"color: c{known}-{number}"}})
            shop.operator.wait_until(lambda known=known: len(site.runs()) > known, "the edit made a run")  # type: ignore[misc]  # mypy cannot infer the lambda's default
        for each in admitted:
            assert each.result()["spec"]["containers"][0]["env"]
    shop.operator.wait_idle()
