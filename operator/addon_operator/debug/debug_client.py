"""Asking the debug endpoint of a running operator; without an event loop, for the command line."""

import contextlib
import errno
import http.client
import json
import os
import pathlib
import socket
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from addon_operator.debug import debug_socket
from addon_operator.kernel import errors

TIMEOUT_SECONDS: Final = 10.0
RENDER_SECONDS: Final = 300.0
"""Helm may take its time."""
NO_DIFFERENCES: Final = "No differences.\n"
"""The answer that there is nothing to show."""
NOTHING_PENDING: Final = "Nothing is held back.\n"
"""The answer that nothing waits for a window."""
_HOW_TO_FIND: Final = (
    "start one with 'addon-operator start', or name its socket with DEBUG_UNIX_SOCKET or "
    "--debug-unix-socket, or its cluster with --kubeconfig"
)
_UNREACHABLE: Final = {
    errno.ENOENT: "no operator runs: there is no socket {path}; " + _HOW_TO_FIND,
    errno.ECONNREFUSED: "no operator runs: nobody answers on the socket {path}; " + _HOW_TO_FIND,
    errno.EACCES: "the socket {path} belongs to another user: run the command as the operator's user",
    errno.ENOTDIR: "no operator runs: there is no socket {path}; " + _HOW_TO_FIND,
    errno.ENOTSOCK: "{path} is not a socket; " + _HOW_TO_FIND,
}


class DebugClientError(errors.AddonOperatorError):
    """The operator cannot be asked, or refuses to answer."""


class DebugClient:
    """Requests to the socket of one operator; each makes a connection of its own."""

    def __init__(self, path: pathlib.Path, timeout: float = TIMEOUT_SECONDS) -> None:
        """``timeout`` is seconds for each answer."""
        self._path = path.absolute()
        self._timeout = timeout

    @property
    def place(self) -> str:
        """Where the operator is, for a person."""
        return f"on {self._path}"

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401  # JSON
        """Return the document at a path that ends in ``.json``.

        Raises :class:`DebugClientError`.
        """
        text = self.get_text(path, query)
        return self._decoded(text)

    def get_text(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """Return the text at a path, whatever it is; raises :class:`DebugClientError`."""
        target = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        return self._request("GET", target, None)

    def post(self, path: str, form: Mapping[str, str]) -> Any:  # noqa: ANN401  # JSON
        """Send a form; raises :class:`DebugClientError`."""
        return self._decoded(self.post_text(path, urllib.parse.urlencode(form)))

    def post_text(self, path: str, body: str) -> str:
        """Send an encoded form, and return the text of the answer; raises :class:`DebugClientError`."""
        return self._request("POST", path, body)

    def _decoded(self, text: str) -> Any:  # noqa: ANN401  # JSON
        try:
            return json.loads(text)
        except ValueError:
            raise DebugClientError(f"the answer {self.place} is not JSON: is it an operator's?") from None

    def _request(self, method: str, target: str, body: str | None) -> str:
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        with contextlib.closing(_SocketConnection(self._path, self._timeout)) as connection:
            try:
                connection.request(method, target, body, headers)
                answer = connection.getresponse()
                text = answer.read().decode(errors="replace")
            except TimeoutError:
                raise DebugClientError(
                    f"the operator on {self._path} does not answer within {self._timeout:g} s; "
                    "its /healthz says whether it is alive"
                ) from None
            except OSError as error:
                raise DebugClientError(self._unreachable(error)) from None
            except (http.client.HTTPException, ValueError) as error:
                reason = " ".join(str(error).split())
                raise DebugClientError(f"the request {target!r} or its answer is broken: {reason}") from None
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise DebugClientError(_error_of(text, answer.status))
        return text

    def _unreachable(self, error: OSError) -> str:
        template = _UNREACHABLE.get(error.errno or 0)
        if template is not None:
            return template.format(path=self._path)
        return f"the operator on {self._path} cannot be asked: {error.strerror or error}"


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        debug_socket.check_length(self._path)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def _error_of(text: str, status: int) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the operator answers with status {status}: {text.strip()[:200]}"
