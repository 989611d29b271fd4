"""A few plain requests to the API server, as its administrator."""

import dataclasses
import http.client
import json
import ssl
import urllib.parse
from typing import Final

from addon_operator.devcluster import layout
from addon_operator.devcluster.controlplane import certificates
from addon_operator.kernel import json_types

REQUEST_TIMEOUT: Final = 60.0
"""Seconds until a silent API server counts as not there; on a busy machine, it takes its time."""


@dataclasses.dataclass(frozen=True, slots=True)
class ApiAnswer:
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
    """Talks to one API server with the administrator's certificate; one connection per request."""

    def __init__(self, where: layout.Layout, url: str, timeout: float = REQUEST_TIMEOUT) -> None:
        self._timeout = timeout
        self._address = urllib.parse.urlsplit(url).netloc
        self._tls = ssl.create_default_context(cafile=str(where.certificate(certificates.CA)))
        file = certificates.file_of(certificates.ADMIN_USER)
        self._tls.load_cert_chain(where.certificate(file), where.key(file))

    def request(self, method: str, path: str, body: json_types.JsonObject | None = None) -> ApiAnswer:
        """Send a request; an API server that is not there is an answer too, with status 0."""
        connection = http.client.HTTPSConnection(self._address, timeout=self._timeout, context=self._tls)
        content = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return ApiAnswer(answer.status, answer.read().decode("utf-8", errors="replace"))
        except (OSError, http.client.HTTPException) as error:
            return ApiAnswer(0, str(error))
        finally:
            connection.close()
