"""The command line of each component: what makes the programs one cluster on loopback."""

import pathlib
from collections.abc import Mapping
from typing import Final

from addon_operator.devcluster import layout
from addon_operator.devcluster.binaries import components
from addon_operator.devcluster.controlplane import certificates

LOOPBACK: Final = "127.0.0.1"
SERVICE_NETWORK: Final = "10.96.0.0/16"
NODE_NETWORK: Final = "10.244.0.1/16"

CORE: Final = (components.ETCD, components.KUBE_APISERVER)
"""What has to be there before anything else can start."""
CONTROLLERS: Final = (components.KUBE_CONTROLLER_MANAGER,)
NODES: Final = (components.KUBE_SCHEDULER, components.KWOK)
"""What makes pods run, or look as if they did."""

USERS: Final[Mapping[str, certificates.User]] = {
    components.KUBE_CONTROLLER_MANAGER: certificates.CONTROLLER_MANAGER_USER,
    components.KUBE_SCHEDULER: certificates.SCHEDULER_USER,
    components.KWOK: certificates.KWOK_USER,
}
"""As whom each component talks to the API server."""

# Whoever reaches etcd is above RBAC. Its sockets are in the cluster's directory, which only the owner may
# enter, and in which the programs start: relative names fit, however long its path is.
_ETCD_URL: Final = f"unix://{layout.ETCD_SOCKET}"
_PEER_URL: Final = "unix://etcd-peer.sock"

# These programs hold themselves back by default; on a machine of one's own that only costs time.
_QPS: Final = ("--kube-api-qps=500", "--kube-api-burst=1000")


def component_names(*, nodes: bool) -> tuple[str, ...]:
    """Return what a cluster consists of, in the order of start."""
    return (*CORE, *CONTROLLERS, *(NODES if nodes else ()))


def command(
    name: str, where: layout.Layout, port: int, binaries: Mapping[str, pathlib.Path]
) -> tuple[str, ...]:
    """Return the program and arguments that start a component in the cluster's directory.

    ``port`` is that of the API server.
    """
    arguments = {
        components.ETCD: _etcd,
        components.KUBE_APISERVER: _api_server,
        components.KUBE_CONTROLLER_MANAGER: _controller_manager,
        components.KUBE_SCHEDULER: _scheduler,
        components.KWOK: _kwok,
    }[name]
    return (str(binaries[name]), *arguments(where, port))


def kubeconfig_of(name: str, where: layout.Layout) -> pathlib.Path:
    """Return the kubeconfig of a component."""
    return where.kubeconfigs / name


def _etcd(where: layout.Layout, _: int) -> tuple[str, ...]:
    return (
        "--name=devcluster",
        f"--data-dir={where.etcd}",
        f"--listen-client-urls={_ETCD_URL}",
        f"--advertise-client-urls={_ETCD_URL}",
        f"--listen-peer-urls={_PEER_URL}",
        f"--initial-advertise-peer-urls={_PEER_URL}",
        f"--initial-cluster=devcluster={_PEER_URL}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    )


def _api_server(where: layout.Layout, port: int) -> tuple[str, ...]:
    service_account = certificates.SERVICE_ACCOUNT
    return (
        f"--etcd-servers={_ETCD_URL}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={where.certificate(certificates.API_SERVER)}",
        f"--tls-private-key-file={where.key(certificates.API_SERVER)}",
        f"--client-ca-file={where.certificate(certificates.CA)}",
        f"--token-auth-file={where.pki / certificates.TOKENS}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={where.pki / service_account}.pub",
        f"--service-account-signing-key-file={where.key(service_account)}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        # Nothing plays kube-proxy: Services of webhooks and aggregated APIs lead to their endpoints.
        "--enable-aggregator-routing=true",
        "--profiling=false",
    )


def _controller_manager(where: layout.Layout, _: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={kubeconfig_of(components.KUBE_CONTROLLER_MANAGER, where)}",
        f"--service-account-private-key-file={where.key(certificates.SERVICE_ACCOUNT)}",
        f"--root-ca-file={where.certificate(certificates.CA)}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--controllers=*",
        "--secure-port=0",
        *_QPS,
    )


def _scheduler(where: layout.Layout, _: int) -> tuple[str, ...]:
    kubeconfig = kubeconfig_of(components.KUBE_SCHEDULER, where)
    return (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0", *_QPS)


def _kwok(where: layout.Layout, _: int) -> tuple[str, ...]:
    return (
        f"--config={where.stages}",
        f"--kubeconfig={kubeconfig_of(components.KWOK, where)}",
        "--manage-all-nodes=true",
        f"--cidr={NODE_NETWORK}",
        f"--node-ip={LOOPBACK}",
        "--node-lease-duration-seconds=40",
    )
