"""What tests do with a cluster; a small server plays the API server."""

import dataclasses
import datetime as dt
import http.server
import json
import pathlib
import ssl
import threading
from collections.abc import Iterator

import pytest
from typing_extensions import override

from addon_operator.devcluster import errors, handle, layout
from addon_operator.devcluster.controlplane import certificates
from addon_operator.process import commands

from . import fakes


@dataclasses.dataclass
class ApiServer:
    """Answers as it is told, and remembers what it was asked."""

    token: str
    url: str = ""
    asked: list[str] = dataclasses.field(default_factory=list)
    missing: int = 0
    """How often a ServiceAccount is not there yet."""
    refuses: bool = False

    def answer(self, method: str, path: str) -> tuple[int, str]:
        self.asked.append(f"{method} {path}")
        if self.refuses:
            return 403, "forbidden"
        if path.endswith("/serviceaccounts/default") and self.missing:
            self.missing -= 1
            return 404, "not found"
        return 200, "{}"


def handler_of(api_server: ApiServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            knows = self.headers["Authorization"] == api_server.token
            status, text = api_server.answer(self.command, self.path) if knows else (401, "Unauthorized")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - names that the library asks for

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> layout.Layout:
    found = layout.Layout(tmp_path_factory.mktemp("clusters") / "one")
    found.root.mkdir()
    found.make()
    certificates.write_all(found.pki, [certificates.ADMIN_USER], dt.datetime.now(tz=dt.UTC))
    return found


@pytest.fixture
def api_server(where: layout.Layout) -> Iterator[ApiServer]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(where.certificate("apiserver"), where.key("apiserver"))
    found = ApiServer(certificates.bearer(where.pki)["Authorization"])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(found)) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        found.url = f"https://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def devcluster(where: layout.Layout, api_server: ApiServer) -> handle.DevCluster:
    return handle.DevCluster(where.name, "v1.36.3", api_server.url, where.kubeconfig, where.bin)


def test_a_namespace_is_given_out_when_pods_can_be_created(
    devcluster: handle.DevCluster, api_server: ApiServer
) -> None:
    api_server.missing = 2
    clock = fakes.Clock()
    name = devcluster.namespace("mine", clock, clock.sleep)
    assert name.startswith("mine-")
    account = f"GET /api/v1/namespaces/{name}/serviceaccounts/default"
    assert api_server.asked == ["POST /api/v1/namespaces", account, account, account]


def test_no_two_namespaces_have_the_same_name(devcluster: handle.DevCluster) -> None:
    assert devcluster.namespace() != devcluster.namespace()


def test_a_refused_namespace_is_reported(devcluster: handle.DevCluster, api_server: ApiServer) -> None:
    api_server.refuses = True
    with pytest.raises(errors.DevClusterError, match="one refused POST /api/v1/namespaces: forbidden"):
        devcluster.namespace()


def test_a_namespace_that_gets_no_account_is_reported_with_the_log_to_look_at(
    devcluster: handle.DevCluster, api_server: ApiServer
) -> None:
    api_server.missing = 100_000
    clock = fakes.Clock()
    with pytest.raises(errors.DevClusterError, match=r"no ServiceAccount within 30 s; see .*manager\.log"):
        devcluster.namespace("mine", clock, lambda _: clock.sleep(10))


def test_a_namespace_is_deleted_without_waiting(devcluster: handle.DevCluster, api_server: ApiServer) -> None:
    devcluster.delete_namespace("mine-1")
    assert api_server.asked == ["DELETE /api/v1/namespaces/mine-1"]


def test_an_api_server_that_is_gone_does_not_break_the_end_of_a_test(where: layout.Layout) -> None:
    gone = handle.DevCluster(where.name, "v1.36.3", "https://127.0.0.1:1", where.kubeconfig, where.bin)
    gone.delete_namespace("mine-1")


@pytest.mark.parametrize("program", ["kubectl", "helm"])
def test_programs_run_against_the_cluster(devcluster: handle.DevCluster, program: str) -> None:
    fakes.write_program(devcluster.bin / program, 'echo "$@"')
    run = devcluster.run_kubectl if program == "kubectl" else devcluster.run_helm
    assert run("version", "--client").stdout == f"--kubeconfig={devcluster.kubeconfig} version --client\n"


def test_kubectl_reads_what_it_is_given(devcluster: handle.DevCluster) -> None:
    fakes.write_program(devcluster.bin / "kubectl", "cat")
    manifest = json.dumps({"kind": "ConfigMap"})
    assert devcluster.run_kubectl("apply", "-f", "-", stdin=manifest).stdout == manifest


def test_a_program_that_fails_says_why(devcluster: handle.DevCluster) -> None:
    fakes.write_program(devcluster.bin / "helm", "echo Error: chart not found >&2; exit 1")
    with pytest.raises(commands.CommandError, match="exit code 1: Error: chart not found"):
        devcluster.run_helm("install", "x", str(pathlib.Path("/none")))
