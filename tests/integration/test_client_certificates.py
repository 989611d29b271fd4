"""An admission server that answers API servers with a client certificate, and a real one that has it."""

import contextlib
import datetime as dt
import json
import os
import pathlib
from collections.abc import AsyncIterator, Iterator

import pytest
from cryptography.x509 import oid

from addon_operator.admission.certificates import tls
from addon_operator.devcluster import api, layout, state
from addon_operator.devcluster.pytest_plugin import DevCluster
from addon_operator.kernel import x509
from addon_operator.kube import api_errors, paths
from addon_operator.kube.access import auth
from addon_operator.kube.client import client
from addon_operator.process import daemons
from tests.integration import operator_process
from tests.integration.admission_replicas import configuration, replica, withdraw

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_SERVER = "kube-apiserver"
_OPTION = "--admission-control-config-file"


def made_authority() -> x509.Signed:
    now = dt.datetime.now(dt.UTC)
    life = x509.Life(now, now + dt.timedelta(days=1))
    return x509.make_authority(x509.name_of("webhook-clients"), life, path_length=0, signs_data=False)


def admission_configuration(directory: pathlib.Path, authority: x509.Signed) -> pathlib.Path:
    """The files that docs/explanation/admission.md describes; JSON is YAML."""
    now = dt.datetime.now(dt.UTC)
    holder = x509.Holder(x509.name_of(_SERVER), [oid.ExtendedKeyUsageOID.CLIENT_AUTH])
    made = x509.issue(authority, holder, x509.Life(now, now + dt.timedelta(days=1)))
    (directory / "apiserver.crt").write_bytes(made.certificate_pem())
    (directory / "apiserver.key").write_bytes(made.key_pem())
    user = {
        "client-certificate": str(directory / "apiserver.crt"),
        "client-key": str(directory / "apiserver.key"),
    }
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (directory / "webhooks.yaml").write_text(json.dumps(kubeconfig))
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(directory / "webhooks.yaml"),
    }
    names = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": name, "configuration": plugin} for name in names],
    }
    path = directory / "admission.yaml"
    path.write_text(json.dumps(document))
    return path


@contextlib.contextmanager
def another_api_server(
    devcluster: DevCluster, config: pathlib.Path, directory: pathlib.Path
) -> Iterator[str]:
    """One more API server of the same cluster, with that configuration of admission; its URL."""
    where = layout.Layout(devcluster.kubeconfig.parent)
    found = state.load(where.state)
    assert found is not None
    port = operator_process.free_port()
    argv = [each for each in found.components[_SERVER].argv if not each.startswith("--secure-port=")]
    argv += [f"--secure-port={port}", f"{_OPTION}={config}"]
    table = daemons.ProcessTable()
    env = {"HOME": str(directory), "PATH": os.defpath}
    process = daemons.start(argv, where.root, log=directory / "apiserver.log", env=env, table=table)
    try:
        url = f"https://127.0.0.1:{port}"
        asked = api.ApiClient(where, url)
        operator_process.wait_until(lambda: asked.request("GET", "/readyz").is_success, "it is ready")
        yield url
    finally:
        table.kill([process])


@pytest.fixture
async def kube(devcluster: DevCluster) -> AsyncIterator[client.KubeClient]:
    async with client.KubeClient(auth.load_access(devcluster.kubeconfig, None, None, {})) as opened:
        yield opened


async def test_the_api_server_with_the_certificate_is_answered_and_the_one_without_is_not(
    devcluster: DevCluster, kube: client.KubeClient, namespace: str, tmp_path: pathlib.Path
) -> None:
    authority = made_authority()
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem())
    config = admission_configuration(tmp_path, authority)
    collection = paths.of("v1", "configmaps", namespace=namespace)
    try:
        async with replica(kube, namespace) as running:
            asking = tls.ClientAuthority(tmp_path / "ca.crt", running.tls, running.observer)
            await asking.load()
            with another_api_server(devcluster, config, tmp_path) as url:
                access = auth.load_access(devcluster.kubeconfig, None, url, {})
                async with client.KubeClient(access) as with_certificate:
                    created = await with_certificate.create(
                        collection, {"metadata": {"name": "a"}, "data": {"a": "b"}}
                    )
            assert created["data"]["marked"] == "yes"
            with pytest.raises(api_errors.ApiError, match="failed calling webhook"):
                await running.create("b")
    finally:
        await withdraw(kube, configuration(namespace))
