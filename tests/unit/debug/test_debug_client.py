"""Asking an operator that does not answer as it should."""

import contextlib
import pathlib
import socket
import tempfile
import threading
from collections.abc import Iterator

import pytest

from addon_operator.debug import debug_client, debug_socket


@pytest.fixture
def path() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="ao-") as directory:
        yield pathlib.Path(directory) / "debug.socket"


@contextlib.contextmanager
def answering(path: pathlib.Path, answer: bytes | None) -> Iterator[None]:
    """Listen, and give that answer to one request; ``None`` gives none."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_answer, args=(listener, answer), daemon=True)
        if answer is not None:
            thread.start()
        yield
        if answer is not None:
            thread.join(60)


def _answer(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)


def http(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


def error(path: pathlib.Path, timeout: float = 5.0) -> str:
    with pytest.raises(debug_client.DebugClientError) as refused:
        debug_client.DebugClient(path, timeout).get("/module/list.json")
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_a_document_is_decoded(path: pathlib.Path) -> None:
    with answering(path, http("200 OK", b'{"a": [1]}')):
        assert debug_client.DebugClient(path).get("/x.json", {"b": "c d"}) == {"a": [1]}


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (http("404 Not Found", b'{"error": "there is no module"}'), "there is no module"),
        (http("502 Bad Gateway", b"<html>"), "answers with status 502: <html>"),
        (http("500 Oops", b'{"other": 1}'), "answers with status 500"),
        (http("200 OK", b"plain text"), "is not JSON: is it an operator's?"),
        (b"SSH-2.0-OpenSSH\r\n", "or its answer is broken"),
        (b"", "cannot be asked: "),
    ],
    ids=["sentence", "other server", "other document", "no json", "no http", "nothing"],
)
def test_what_is_wrong_with_an_answer_is_one_sentence(path: pathlib.Path, answer: bytes, part: str) -> None:
    with answering(path, answer):
        assert part in error(path)


def test_an_operator_that_does_not_answer_in_time_is_reported(path: pathlib.Path) -> None:
    with answering(path, None):
        assert "does not answer within 0.05 s" in error(path, 0.05)


def test_a_stale_socket_is_not_an_operator(path: pathlib.Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as gone:
        gone.bind(str(path))
    assert error(path).startswith(f"no operator runs: nobody answers on the socket {path}; ")


def test_a_missing_socket_is_not_an_operator(path: pathlib.Path) -> None:
    assert error(path).startswith(f"no operator runs: there is no socket {path}; ")


def test_a_path_that_is_too_long_is_reported(path: pathlib.Path) -> None:
    with pytest.raises(debug_socket.DebugSocketError, match="a socket's may have 107"):
        debug_client.DebugClient(path.with_name("x" * 120)).get("/x.json")


def test_a_path_that_cannot_stand_in_a_request_is_reported(path: pathlib.Path) -> None:
    with answering(path, None), pytest.raises(debug_client.DebugClientError, match="is broken"):
        debug_client.DebugClient(path).get_text("/a b\n")
