"""A few plain requests to the API server, as its administrator."""

import contextlib
import http.client
import json
import select
import socket
import ssl
import threading
import urllib.parse
from typing import Final

import msgspec

from addon_operator.devcluster import layout
from addon_operator.devcluster.controlplane import certificates
from addon_operator.kernel import json_types

REQUEST_TIMEOUT: Final = 60.0
"""Seconds until a silent API server counts as not there; on a busy machine, it takes its time."""


class ApiAnswer(msgspec.Struct, frozen=True):
    """What the API server answered."""

    status: int
    """HTTP status; 0 when there was no answer."""
    text: str
    """Body, or why there was no answer."""

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.status < 300

    def document(self) -> json_types.JsonObject:
        """Return the body as an object of the Kubernetes API; empty when it is not an object."""
        try:
            decoded = json.loads(self.text)
        except ValueError:
            return {}
        return decoded if isinstance(decoded, dict) else {}


class ApiClient:
    """Talks to one API server with the administrator's token; each thread keeps its connection.

    To open one costs both sides some milliseconds of processor time: who asks again and again would pay most
    for that.
    """

    def __init__(self, where: layout.Layout, url: str, timeout: float = REQUEST_TIMEOUT) -> None:
        self._timeout = timeout
        self._address = urllib.parse.urlsplit(url).netloc
        self._tls = ssl.create_default_context(cafile=str(where.certificate(certificates.CA)))
        self._bearer = certificates.bearer(where.pki)
        self._kept = threading.local()

    def request(
        self,
        method: str,
        path: str,
        body: json_types.JsonValue = None,
        content_type: str = "application/json",
    ) -> ApiAnswer:
        """Send a request; an API server that is not there is an answer too, with status 0."""
        content = None if body is None else json.dumps(body).encode()
        connection = getattr(self._kept, "connection", None) or self._open()
        if connection.sock is not None and _has_ended(connection.sock):
            connection.close()
        try:
            connection.request(method, path, content, {"Content-Type": content_type} | self._bearer)
            answer = connection.getresponse()
            return ApiAnswer(answer.status, answer.read().decode("utf-8", errors="replace"))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return ApiAnswer(0, str(error))

    def _open(self) -> "_Connection":
        opened = self._kept.connection = _Connection(self._address, timeout=self._timeout, context=self._tls)
        return opened


class _Connection(http.client.HTTPSConnection):
    """Closed with the thread that has it."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _has_ended(kept: socket.socket) -> bool:
    """Return whether the server closed a connection on which nothing is expected: something can be read."""
    looked = select.poll()
    looked.register(kept, select.POLLIN)
    return bool(looked.poll(0))
