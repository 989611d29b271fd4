"""Repositories of charts on loopback: an OCI registry, and an ``index.yaml`` that is served over HTTP."""

import base64
import contextlib
import dataclasses
import datetime as dt
import http
import http.client
import http.server
import json
import os
import pathlib
import select
import socket
import ssl
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Final

from cryptography.x509 import oid
from typing_extensions import override

from addon_operator.devcluster import locations, reporters
from addon_operator.devcluster.binaries import binaries, components
from addon_operator.kernel import x509
from tests.integration import operator_process

USER: Final = "reader"
PASSWORD: Final = "canary-of-a-password"
_TOKEN: Final = "canary-of-a-token"
_SEEN: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-seen}
data:
  values: {{ toJson .Values | quote }}
  version: {{ .Chart.Version | quote }}
"""


def registry_binary() -> pathlib.Path:
    """The program of the registry, built once per machine."""
    with binaries.workshop(locations.locate(os.environ), os.environ, reporters.Reporter()) as store:
        return store.ensure([binaries.Wanted(components.CHART_REGISTRY)])[components.REGISTRY]


def package(
    root: pathlib.Path,
    helm: pathlib.Path,
    version: str = "1.2.3",
    more: Mapping[str, str] | None = None,
    name: str = "upstream",
) -> pathlib.Path:
    """The archive of a chart that shows the values that it gets; ``more`` are further files."""
    chart = root / version / name
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n",
        "values.yaml": "replicas: 1\n",
        "templates/seen.yaml": _SEEN,
        **(more or {}),
    }
    for path, text in files.items():
        (chart / path).parent.mkdir(parents=True, exist_ok=True)
        (chart / path).write_text(text)
    _helm(helm, root, "package", str(chart), "--destination", str(root))
    return root / f"{name}-{version}.tgz"


PODINFO_ADDRESS: Final = "oci://ghcr.io/stefanprodan/charts"
"""Where documents and examples have their public chart from."""
_DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata: {labels: {app: podinfo}}
    spec:
      containers:
      - {name: podinfo, image: podinfo, env: [{name: MESSAGE, value: {{ .Values.ui.message | quote }}}]}
"""


def podinfo(root: pathlib.Path, helm: pathlib.Path, version: str) -> pathlib.Path:
    """A chart that takes the place of the public one."""
    values = 'replicaCount: 1\nui: {message: "", color: blue}\n'
    return package(
        root, helm, version, {"values.yaml": values, "templates/seen.yaml": _DEPLOYMENT}, "podinfo"
    )


def _helm(helm: pathlib.Path, home: pathlib.Path, *arguments: str) -> str:
    """Run helm with nothing of this user's; what it said."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run([helm, *arguments], env=environ, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@dataclasses.dataclass(slots=True)
class Registry:
    """A registry in memory, which can be stopped."""

    helm: pathlib.Path
    home: pathlib.Path
    port: int = dataclasses.field(default_factory=operator_process.free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"oci://localhost:{self.port}/charts"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [registry_binary(), "-port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        operator_process.wait_until(self._answers, "the registry answers")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def push(self, archive: pathlib.Path) -> str:
        """The digest of the manifest."""
        said = _helm(self.helm, self.home, "push", str(archive), self.address, "--plain-http")
        return said.partition("Digest: ")[2].split()[0]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def registry(helm: pathlib.Path, home: pathlib.Path) -> Iterator[Registry]:
    """A registry that runs."""
    made = Registry(helm, home)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def index(helm: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
    """Write the index.yaml of the archives in a directory."""
    _helm(helm, directory, "repo", "index", str(directory))
    return directory / "index.yaml"


def credentials(path: pathlib.Path, *hosts: str, password: str = PASSWORD) -> pathlib.Path:
    """A Docker configuration that lets the user in."""
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    path.write_text(json.dumps({"auths": {host: {"auth": auth} for host in hosts}}))
    return path


@dataclasses.dataclass(frozen=True, slots=True)
class Authority:
    """A private CA with a certificate of a server."""

    ca: pathlib.Path
    chain: pathlib.Path


def authority(root: pathlib.Path, *hosts: str) -> Authority:
    """A CA that nobody knows; its server has these names."""
    now = dt.datetime.now(dt.UTC)
    life = x509.Life(now, now + dt.timedelta(days=1))
    made = x509.make_authority(x509.name_of("private-ca"), life, path_length=None, signs_data=False)
    holder = x509.Holder(x509.name_of("server"), [oid.ExtendedKeyUsageOID.SERVER_AUTH], hosts)
    server = x509.issue(made, holder, life)
    found = Authority(root / "private-ca.crt", root / "server.pem")
    found.ca.write_bytes(made.certificate_pem())
    found.chain.write_bytes(server.certificate_pem() + server.key_pem())
    return found


@dataclasses.dataclass(slots=True)
class Gate:
    """What a server does with requests."""

    files: pathlib.Path | None = None
    upstream: int | None = None
    """Port of a registry to which requests are passed on, instead of serving files."""
    password: str = ""
    """That of :data:`USER`, if one is needed."""
    identity: str = ""
    """What a client exchanges at ``/token`` for a token, if that is needed."""
    opened: threading.Event = dataclasses.field(default_factory=threading.Event)
    """Until it is set, requests hang."""
    requests: list[str] = dataclasses.field(default_factory=list)
    moved: dict[str, str] = dataclasses.field(default_factory=dict)
    """Addresses to which requests for a path are redirected."""
    credentials: set[str] = dataclasses.field(default_factory=set)
    """What came as ``Authorization``."""
    port: int = 0

    @property
    def address(self) -> str:
        """Where it stands before a registry."""
        return f"oci://127.0.0.1:{self.port}/charts"


class _Handler(http.server.SimpleHTTPRequestHandler):
    gate: Gate

    @override
    def do_GET(self) -> None:
        self.gate.requests.append(self.path)
        self.gate.opened.wait()
        self.gate.credentials |= {self.headers["Authorization"]} if "Authorization" in self.headers else set()
        if self.gate.password and not self._is_let_in():
            self._refuse('Basic realm="charts"')
        elif self.gate.identity and self.headers.get("Authorization") != f"Bearer {_TOKEN}":
            self._refuse(f'Bearer realm="http://127.0.0.1:{self.gate.port}/token",service="charts"')
        elif self.path in self.gate.moved:
            self.send_response(http.HTTPStatus.FOUND)
            self.send_header("Location", self.gate.moved[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.gate.upstream is not None:
            self._pass_on(self.gate.upstream)
        else:
            super().do_GET()

    @override
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        given = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if given.get("refresh_token") != [self.gate.identity]:
            self._refuse("Bearer")
            return
        answer = json.dumps({"access_token": _TOKEN}).encode()
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _refuse(self, challenge: str) -> None:
        self.send_response(http.HTTPStatus.UNAUTHORIZED)
        self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _is_let_in(self) -> bool:
        wanted = base64.b64encode(f"{USER}:{self.gate.password}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _pass_on(self, port: int) -> None:
        connection = http.client.HTTPConnection("localhost", port, timeout=20)
        with contextlib.closing(connection):
            connection.request(self.command, self.path, headers={"Accept": self.headers.get("Accept", "*/*")})
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    @override
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(gate: Gate, tls: Authority | None = None) -> Iterator[Gate]:
    """A server on loopback."""
    handler = type("Handler", (_Handler,), {"gate": gate})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *given: handler(*given, directory=str(gate.files))
    )
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.chain)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    gate.port = server.server_port
    with _running(server):
        try:
            yield gate
        finally:
            gate.opened.set()


@contextlib.contextmanager
def _running(server: http.server.ThreadingHTTPServer) -> Iterator[None]:
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def proxy(target: int, asked: list[str]) -> Iterator[int]:
    """A proxy for HTTPS that leads each host to one port of this machine, and notes the hosts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            with socket.create_connection(("127.0.0.1", target)) as there:
                self.send_response(http.HTTPStatus.OK)
                self.end_headers()
                _splice(self.connection, there)
            self.close_connection = True

        @override
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with _running(server):
        yield server.server_port


def _splice(one: socket.socket, other: socket.socket) -> None:
    """Pass on what either says, until one of them ends."""
    while True:
        ready, _, _ = select.select([one, other], [], [], 20)
        for source in ready:
            data = source.recv(65536)
            if not data:
                return
            (other if source is one else one).sendall(data)
        if not ready:
            return
