"""Which pod is asked for an operator of a cluster."""

import socket

import pytest

from addon_operator.commands.outside import leader, place
from addon_operator.kube import api_errors
from addon_operator.kube.client import pod_exec
from tests.support import api_server, rows

LEASES = "/apis/coordination.k8s.io/v1/namespaces/addons/leases"
USUAL = "addon-operator-leader-election"
LEASES_ELSEWHERE = [(USUAL, "b"), (f"{USUAL}-x", "a"), ("kube-scheduler", "kube-system")]
POD = "/api/v1/namespaces/addons/pods/ao-0"


def lease(holder: str, name: str = USUAL) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


def pod(phase: str = "Running", *containers: str) -> dict[str, object]:
    return {
        "metadata": {"name": "ao-0", "namespace": "addons"},
        "spec": {"containers": [{"name": each} for each in containers or ("addon-operator",)]},
        "status": {"phase": phase},
    }


async def found(server: api_server.ApiServer, *, is_named: bool = False) -> pod_exec.Container:
    where = place.Place(api_server.access_to(server.url), "addons", USUAL, is_named)
    async with api_server.client_of(server, api_server.Pauses()) as kube:
        return await leader.find(kube, where)


@rows.each("holder", ["ao-0_0a1b2c3d", "ao-0_0a-1-2", "ao-0.10-0-0-1.addons.pod", "ao-0"])
async def test_the_lease_names_the_pod(holder: str) -> None:
    server = api_server.ApiServer()
    server.on("GET", f"{LEASES}/{USUAL}", lease(holder))
    server.on("GET", POD, pod("Running", "sidecar", "addon-operator"))
    assert await found(server) == pod_exec.Container("addons", "ao-0", "addon-operator")


async def test_an_operator_with_a_configmap_of_another_name_has_a_lease_of_its_own() -> None:
    server = api_server.ApiServer()
    server.on("GET", LEASES, {"items": [lease("ao-0", f"{USUAL}-other"), lease("x", "else")], "metadata": {}})
    server.on("GET", POD, pod())
    assert (await found(server)).pod == "ao-0"


@rows.each(
    ("leases", "said"),
    [
        ([], "no operator is found in namespace addons of the fake server: there is no Lease "),
        ([f"{USUAL}-b", f"{USUAL}-a"], f"choose one with LEASE_NAME: {USUAL}-a, {USUAL}-b"),
    ],
)
async def test_without_exactly_one_lease_there_is_nobody_to_ask(leases: list[str], said: str) -> None:
    server = api_server.ApiServer()
    server.on("GET", LEASES, {"items": [lease("ao-0", name) for name in leases], "metadata": {}})
    with pytest.raises(leader.NoOperatorError, match=said):
        await found(server)


async def test_only_a_lease_that_is_named_is_looked_for() -> None:
    server = api_server.ApiServer()
    with pytest.raises(leader.NoOperatorError, match="there is no Lease"):
        await found(server, is_named=True)
    assert server.requests == [f"GET {LEASES}/{USUAL}"]


@rows.each("spec", [{}, {"holderIdentity": ""}, {"holderIdentity": None}])
async def test_nobody_may_lead_just_now(spec: dict[str, object]) -> None:
    server = api_server.ApiServer()
    server.on("GET", f"{LEASES}/{USUAL}", {"metadata": {"name": USUAL}, "spec": spec})
    with pytest.raises(leader.NoOperatorError, match="nobody holds the Lease addon-operator-leader-election"):
        await found(server)


async def test_the_leader_may_be_gone_or_not_running() -> None:
    server = api_server.ApiServer()
    server.on("GET", f"{LEASES}/{USUAL}", lease("ao-0_0a1b2c3d"))
    with pytest.raises(
        leader.NoOperatorError, match=r"the leader is gone: .* names ao-0, and there is no such"
    ) as caught:
        await found(server)
    for word in ("kubectl -n addons get pods", "half a minute", "kubectl -n addons get modules"):
        assert word in str(caught.value), "what to do if it runs in a pod"
    for word in ("without -n, --context and --kubeconfig", "--debug-unix-socket PATH"):
        assert word in str(caught.value), "what to do if it runs on a machine"
    renewed = lease("ao-0")
    renewed["spec"] = {"holderIdentity": "ao-0", "renewTime": "2026-01-02T03:04:05.000000Z"}
    server.on("GET", f"{LEASES}/{USUAL}", renewed)
    with pytest.raises(leader.NoOperatorError, match=r"renewed last at 2026-01-02T03:04:05\.000000Z, names"):
        await found(server)
    server.on("GET", POD, pod("Pending"))
    with pytest.raises(leader.NoOperatorError, match=r"the leader ao-0 in .* does not run: it is Pending"):
        await found(server)


async def test_an_operator_on_this_machine_is_to_be_asked_at_its_socket() -> None:
    server = api_server.ApiServer()
    server.on("GET", f"{LEASES}/{USUAL}", lease(f"{socket.gethostname()}_0a1b2c3d"))
    with pytest.raises(
        leader.NoOperatorError, match=r"on this machine, .* without -n.* --debug-unix-socket PATH"
    ):
        await found(server)


@rows.each("may_list", [True, False])
async def test_where_operators_work_is_said_to_who_may_see_it(may_list: bool) -> None:
    server = api_server.ApiServer()
    there = [{"metadata": {"name": name, "namespace": where}} for name, where in LEASES_ELSEWHERE]
    seen = {"items": there, "metadata": {}} if may_list else api_server.status(403, "Forbidden")
    server.on("GET", LEASES, {"items": [], "metadata": {}})
    server.on("GET", "/apis/coordination.k8s.io/v1/leases", seen)
    with pytest.raises(leader.NoOperatorError, match="there is no Lease") as caught:
        await found(server)
    assert ("--namespace (operators work in: a, b)," in str(caught.value)) is may_list


async def test_a_right_that_is_missing_is_the_clients_error() -> None:
    server = api_server.ApiServer()
    server.on("GET", f"{LEASES}/{USUAL}", api_server.status(403, "Forbidden"))
    with pytest.raises(api_errors.Forbidden):
        await found(server)
