"""Streams of a server that speaks TLS, and that may be gone at any time."""

import asyncio
import contextlib
import pathlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from addon_operator.kube.access import auth
from addon_operator.kube.client import client, connection
from tests.unit.kube import certifying, kubeconfigs

PATIENT = 30.0
"""Seconds that a busy machine may take for what has to come."""
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Stalling:
    """Begins to answer one request, and then only looks at what arrives."""

    def __init__(self, directory: pathlib.Path) -> None:
        certificate, key = certifying.certify(directory, "kubernetes")
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENT)
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.rest: bytes | None = None
        """What came after the request until the client's end; ``None`` when that did not come."""
        self.thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        with self._listener, self._listener.accept()[0] as raw:
            raw.settimeout(PATIENT)
            with self._context.wrap_socket(raw, server_side=True) as secured:
                secured.recv(65536)
                secured.sendall(HEAD + b"2\r\n{}\r\n")
                with socket.socket(fileno=secured.detach()) as bare:
                    bare.settimeout(PATIENT)
                    with contextlib.suppress(TimeoutError):
                        self.rest = b"".join(iter(lambda: bare.recv(65536), b""))


@pytest.fixture
def stalling(tmp_path: pathlib.Path) -> Iterator[Stalling]:
    server = Stalling(tmp_path)
    server.thread.start()
    yield server
    server.thread.join()


async def test_a_stream_that_is_left_is_closed_at_once_without_waiting_for_the_server(
    stalling: Stalling, tmp_path: pathlib.Path
) -> None:
    config = kubeconfigs.document()
    config["clusters"][0]["cluster"] = {"server": stalling.url, "insecure-skip-tls-verify": True}
    access = auth.load_access(kubeconfigs.write(tmp_path / "config", config), None, None, {})
    async with client.KubeClient(access) as kube:
        async with kube.stream(connection.Request("GET", "/watch", timeout=None)) as lines:
            assert await lines.readexactly(2) == b"{}"
        await asyncio.to_thread(stalling.thread.join)
    assert stalling.rest == b""
