"""Several replicas on a real control plane: one leads, another takes over, and nobody leads twice."""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any, Final

import pytest

from addon_operator.devcluster import api, handle, layout
from addon_operator.process import daemons
from tests.integration import admitting, balancing, definitions, operator_process, operator_site

pytestmark = pytest.mark.integration

LEASE: Final = "addon-operator-leader-election"
LONG_LEASE: Final = {"LEASE_DURATION": "10m", "LEASE_RENEW_DEADLINE": "5m"}
"""Who takes over from such a leader has not waited for the end of its Lease."""
AT_A_TIME: Final = 4
"""Pods that are created side by side."""


def lease(site: operator_site.Site) -> dict[str, Any]:
    spec: dict[str, Any] = site.get("lease", LEASE)["spec"]
    return spec


def replica(site: operator_site.Site, name: str, **extra: str) -> operator_process.OperatorProcess:
    own = {"ADDON_OPERATOR_POD": name, "DEBUG_UNIX_SOCKET": str(site.root / f"{name}.socket")}
    return site.start(**({"ADDON_OPERATOR_HA": "true"} | own | extra))


def leads(operator: operator_process.OperatorProcess) -> bool:
    return operator.get("/metrics").status == 200 and operator.metrics().total("leader") == 1


def wait_leads(operator: operator_process.OperatorProcess) -> None:
    operator.wait_until(lambda: leads(operator), "it leads")


def wait_standing_by(operator: operator_process.OperatorProcess, leader: str) -> None:
    operator.wait_until(
        lambda: operator.get("/status/converge").text == f"STANDBY: {leader} leads\n", f"{leader} leads"
    )


def pair(
    site: operator_site.Site, **extra: str
) -> tuple[operator_process.OperatorProcess, operator_process.OperatorProcess]:
    """A leader and a standby."""
    first = replica(site, "first", **extra)
    wait_leads(first)
    second = replica(site, "second", **extra)
    wait_standing_by(second, "first")
    return first, second


def kept(site: operator_site.Site) -> list[tuple[str, str, str]]:
    """What stays of the release, by kind and name, and since when."""
    status = (site.find("module", "web") or {}).get("status") or {}
    return [(each["kind"], each["name"], each["since"]) for each in status.get("kept") or ()]


def test_one_replica_leads_and_another_takes_over_at_once_when_it_stops(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"}, values="web: {data: x}")
    kind = definitions.definition(f"{site.namespace}.example.com", "things", "v1")
    (web / "templates" / "things.yaml").write_text(f"{{{{ if .Values.web.data }}}}\n{kind}{{{{ end }}}}\n")
    site.hook(web, "look.sh", {"onStartup": 1})
    first, second = pair(site, **LONG_LEASE)
    first.wait_ready()
    second.wait_ready()
    assert (leads(first), leads(second)) == (True, False)
    assert second.get("/healthz").status == 200
    assert site.labels() == ["look.sh onStartup"], "a standby runs no hook"
    # The API server warns of a field of the definition.
    second.wait_until(
        lambda: '<li class="attention" id="m-web">' in second.get("/").text, "it shows what first wrote"
    )
    page = second.get("/").text
    assert f"<code>kubectl -n {site.namespace} port-forward pod/first {second.port}</code>" in page
    assert 'class="operator attention"' in page
    assert "as the leader wrote them into their Module objects, last <time" in page
    assert '<b id="count-attention">1</b>' in page
    assert "<dt>Revision</dt><dd>1</dd>" in page
    site.config(web="data: ''")
    # What stays is remembered before Helm is called.
    first.wait_until(lambda: site.deployed() == {"web": 2}, "the definition is out of the release")
    before = first.wait_until(lambda: kept(site), "the first leader remembers what stays of the release")
    first.wait_idle()
    assert lease(site)["holderIdentity"].startswith("first")
    first.terminate()
    wait_leads(second)
    assert first.wait_end().exit_code == 0
    second.wait_ready()
    assert lease(site)["holderIdentity"].startswith("second")
    assert lease(site)["leaseTransitions"] == 1
    assert site.deployed() == {"web": 2}
    site.kubectl("delete", "module", "web")
    second.wait_until(lambda: kept(site) == before, "so does the second one")
    site.config(web="{data: '', color: red}")
    second.wait_until(lambda: len(site.labels()) == 2, "the second one has run the hook")
    # The page may be a second old.
    second.wait_until(
        lambda: "Module objects, last" not in second.get("/").text, "it shows what it knows itself"
    )
    page = second.get("/").text
    assert "<h2>Queues</h2>" in page
    second.stop()
    assert lease(site)["holderIdentity"] == ""


@pytest.mark.slow
def test_a_killed_leader_is_followed_by_another_with_the_default_durations(site: operator_site.Site) -> None:
    site.values("webEnabled: true\napiEnabled: true")
    site.module("010-web", {"color": "green"})
    slow = site.module("020-api", {"color": "green"})
    site.hook(slow, "gate.sh", {"beforeHelm": 1}, f"[[ -e {site.root}/open ]] || exec sleep 60")
    first, second = pair(site)
    first.wait_until(lambda: site.labels() == ["gate.sh beforeHelm"], "the second module runs")
    first.kill()
    (site.root / "open").touch()
    wait_leads(second)
    second.wait_ready()
    assert site.revisions() == {"web": 1, "api": 1}


@pytest.mark.slow
def test_a_leader_that_was_paused_past_its_lease_does_nothing_any_more(site: operator_site.Site) -> None:
    """Also its hook ends, while the leader itself is paused and before the next one leads."""
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    done = site.root / "done"
    pid = site.root / "pid"
    body = f"""\
    [[ -e {site.root}/open ]] && exit 0
    echo $$ > {pid}
    sleep 30
    touch {done}
    """
    site.hook(web, "slow.sh", {"beforeHelm": 1}, body)
    first, second = pair(site, **operator_site.SHORT_LEASE)
    first.wait_until(lambda: pid.exists() and pid.read_text().strip(), "the hook runs")
    hook, processes = int(pid.read_text()), daemons.ProcessTable()
    os.kill(first.pid, signal.SIGSTOP)
    (site.root / "open").touch()
    second.wait_until(lambda: leads(second), "another one leads")
    assert processes.identify(hook) is None, "the hook ended before"
    second.wait_ready()
    revisions, version = site.revisions(), lease(site)["renewTime"]
    os.kill(first.pid, signal.SIGCONT)
    ended = first.wait_end()
    assert ended.exit_code == 1
    assert "the Lease addon-operator-leader-election" in ended.output
    assert "Traceback" not in ended.output
    assert site.revisions() == revisions == {"web": 1}
    assert not done.exists()
    assert lease(site)["holderIdentity"].startswith("second")
    assert version <= lease(site)["renewTime"]
    second.stop()


def test_a_lease_taken_away_ends_the_leader_and_its_hook(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "green"})
    pid = site.root / "pid"
    site.hook(web, "slow.sh", {"beforeHelm": 1}, f"echo $$ > {pid}; exec sleep 60")
    operator = replica(site, "first", **operator_site.SHORT_LEASE)
    operator.wait_until(lambda: pid.exists() and pid.read_text().strip(), "the hook runs")
    hook, processes = int(pid.read_text()), daemons.ProcessTable()
    site.patch("lease", LEASE, {"spec": {"holderIdentity": "somebody"}})
    ended = operator.wait_end()
    assert ended.exit_code == 1
    assert "was taken away: somebody holds it now" in ended.output
    assert "Traceback" not in ended.output
    assert processes.identify(hook) is None
    assert lease(site)["holderIdentity"] == "somebody"
    assert site.revisions() == {}


@pytest.mark.slow
def test_a_wrong_config_map_ends_neither_the_standby_nor_the_next_leader(site: operator_site.Site) -> None:
    site.values("webEnabled: true")
    web = site.module("010-web", {"color": "{{ .Values.web.color }}"})
    (web / "module.yaml").write_text("requires: {kubernetes: '>=1.30'}")
    site.config(web="color: green")
    first, second = pair(site, **operator_site.SHORT_LEASE)
    first.wait_ready()
    first.wait_until(lambda: "Ready" in site.kubectl("get", "events"), "it told of the module")
    site.config(**{"global": "["})
    first.wait_logged("the last good values stay in force")
    second.wait_until(
        lambda: "Not in force" in second.get("/").text, "the standby shows what the leader wrote"
    )
    page = second.get("/").text
    assert "Kubernetes &gt;=1.30" in page, "by its own files"
    assert "<b>Ready</b>" in page, "the Events in the cluster"
    first.stop()
    second.wait_logged("nothing runs until it is fixed")
    second.wait_until(lambda: "as the last leader wrote them" in second.get("/").text, "whose view this is")
    assert '<li class="attention" id="m-web">' in second.get("/").text
    assert leads(second)
    assert "'global'" in second.get("/readyz").text
    third = replica(site, "third", **operator_site.SHORT_LEASE)
    wait_standing_by(third, "second")
    third.wait_ready()
    site.config(web="color: red", **{"global": None})
    second.wait_ready()
    second.wait_until(lambda: site.data("web") == {"color": "red"}, "it goes on with the mended values")
    third.stop()
    second.stop()


def test_a_standby_ends_at_once(site: operator_site.Site) -> None:
    site.module("010-web", {"color": "green"})
    first, second = pair(site)
    second.stop()
    assert leads(first)
    first.stop()


class Load:
    """Creates pods, several at a time, and remembers what became of them."""

    def __init__(self, client: api.ApiClient, namespace: str) -> None:
        self._client = client
        self._path = admitting.PODS.format(namespace)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(AT_A_TIME)]
        self.injected = 0
        self.bad: list[str] = []
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while not self._over.wait(0.05):
            answer = self._client.request("POST", self._path, _pod())
            if _is_injected(answer):
                self.injected += 1
            else:
                self.bad.append(answer.text)

    def wait_more(self, pods: int) -> None:
        aim = self.injected + pods
        operator_process.wait_until(lambda: self.injected >= aim, f"{pods} more pods")

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)


def _pod() -> dict[str, Any]:
    metadata = {"generateName": "web-", "labels": admitting.LABELS}
    spec = {"containers": [admitting.container()], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _is_injected(answer: api.ApiAnswer) -> bool:
    return answer.is_success and bool(json.loads(answer.text)["spec"]["containers"][0].get("env"))


@contextlib.contextmanager
def admitting_pair(
    site: operator_site.Site, cluster: handle.DevCluster
) -> Iterator[tuple[operator_process.OperatorProcess, operator_process.OperatorProcess, Load]]:
    """Two replicas behind one address, without whom no pod is created, and a load of pods."""
    client = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
    ports = [operator_process.free_port() for _ in range(2)]
    namespace = cluster.namespace("shop")
    configurations = [f"{path}/addon-operator-{site.namespace}" for path in admitting.CONFIGURATIONS]
    with contextlib.closing(balancing.Balancer(ports)) as balancer, contextlib.ExitStack() as stack:
        stack.callback(cluster.delete_namespace, namespace)
        for path in configurations:
            stack.callback(client.request, "DELETE", path)
        url = {"WEBHOOK_URL": f"https://127.0.0.1:{balancer.port}", "WEBHOOK_FAILURE_POLICY": "Fail"}
        environments = [
            operator_site.SHORT_LEASE | admitting.webhook_environment(port) | url for port in ports
        ]
        first = replica(site, "first", **environments[0])
        wait_leads(first)
        second = replica(site, "second", **environments[1])
        stack.callback(second.kill)
        stack.callback(first.kill)
        first.wait_ready()
        second.wait_ready()
        first.wait_until(
            lambda: all(client.request("GET", path).is_success for path in configurations), "the webhooks"
        )
        shop = admitting.Shop(namespace, first, cluster, client)
        shop.preset(env=[{"name": "DB_PORT", "value": "6379"}], selector={"matchLabels": admitting.LABELS})
        wait_both_inject(client, namespace, first, second)
        load = Load(client, namespace)
        stack.callback(load.stop)
        yield first, second, load


def wait_both_inject(
    client: api.ApiClient, namespace: str, *operators: operator_process.OperatorProcess
) -> None:
    """The API server keeps connections: only pods that are created side by side reach both replicas."""
    path = admitting.PODS.format(namespace)

    def both() -> bool:
        with futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            answers = list(pool.map(lambda _: client.request("POST", path, _pod()), range(2 * AT_A_TIME)))
        return all(map(_is_injected, answers)) and all(map(served, operators))

    operator_process.wait_until(both, "both replicas inject")


def served(operator: operator_process.OperatorProcess) -> float:
    return operator.metrics().total("podpreset_admissions_total", result="injected")


@pytest.mark.slow
def test_pods_are_admitted_all_the_time_while_the_leader_stops(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    site.module("010-web", {"color": "green"})
    with admitting_pair(site, devcluster) as (first, second, load):
        load.wait_more(30)
        first.stop()
        wait_leads(second)
        load.wait_more(30)
        load.stop()
        assert load.bad == []


@pytest.mark.slow
def test_pods_are_admitted_all_the_time_while_the_leader_is_killed(
    site: operator_site.Site, devcluster: handle.DevCluster
) -> None:
    site.module("010-web", {"color": "green"})
    with admitting_pair(site, devcluster) as (first, second, load):
        load.wait_more(30)
        first.kill()
        wait_leads(second)
        load.wait_more(30)
        load.stop()
        # Pods that are in the hands of a process when it is killed are out of anybody's reach.
        assert len(load.bad) < AT_A_TIME, load.bad
